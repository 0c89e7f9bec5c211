//! In which order loaders show entries of files: the first one is the default where none is named, and GRUB counts
//! them.
//!
//! Sources: `grub-core/commands/blscfg.c` of Fedora's GRUB (`vercmp`, `split_cmp`); systemd, `src/boot/boot.c`
//! (`config_entry_compare`) and `src/fundamental/string-util-fundamental.c` (`strverscmp_improved`).

use std::cmp::Ordering;

use crate::entry::Entry;

/// The part of a text as long as a condition holds, and the rest.
fn take(text: &[u8], is_part: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| !is_part(*byte)).unwrap_or(text.len()))
}

/// Digits without the zeroes in front of them.
fn number(digits: &[u8]) -> &[u8] {
    take(digits, |byte| byte == b'0').1
}

fn numbers(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (number(a), number(b));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Which of two entries of `blscfg` is the newer one, by the names of their files without `.conf`: the newest is shown
/// first. Names are taken apart as those of packages: `ID-5.14.0-427.el9.x86_64`.
#[must_use]
pub fn by_grub(a: &str, b: &str) -> Ordering {
    let split = |id: &str| -> [String; 3] {
        let mut parts = id.rsplitn(3, '-').map(str::to_owned);
        let (release, version, name) = (parts.next(), parts.next(), parts.next());
        // What is missing in front is taken from behind.
        let release = release.unwrap_or_default();
        let version = version.unwrap_or_else(|| release.clone());
        [name.unwrap_or_else(|| version.clone()), version, release]
    };
    let (a, b) = (split(a), split(b));
    let parts = a.iter().zip(&b).map(|(a, b)| of_package(a.as_bytes(), b.as_bytes()));
    parts.fold(Ordering::Equal, Ordering::then)
}

/// Versions of packages: runs of digits and of letters, with what stands between them passed over.
fn of_package(mut a: &[u8], mut b: &[u8]) -> Ordering {
    loop {
        let is_between = |byte: u8| !byte.is_ascii_alphanumeric() && byte != b'~';
        (a, b) = (take(a, is_between).1, take(b, is_between).1);
        match (a.first(), b.first()) {
            (Some(b'~'), Some(b'~')) => (a, b) = (&a[1..], &b[1..]),
            (Some(b'~'), _) => return Ordering::Less,
            (_, Some(b'~')) => return Ordering::Greater,
            (None, _) | (_, None) => return a.len().cmp(&b.len()),
            (Some(first), Some(_)) => {
                let is_number = first.is_ascii_digit();
                let is_part =
                    |byte: u8| if is_number { byte.is_ascii_digit() } else { byte.is_ascii_alphabetic() };
                let ((left, rest), (right, other)) = (take(a, is_part), take(b, is_part));
                if right.is_empty() {
                    // A number is newer than letters.
                    return if is_number { Ordering::Greater } else { Ordering::Less };
                }
                let order = if is_number { numbers(left, right) } else { left.cmp(right) };
                if order != Ordering::Equal {
                    return order;
                }
                (a, b) = (rest, other);
            }
        }
    }
}

/// Which of two entries systemd-boot shows first, by their files' names without `.conf` and what they say.
#[must_use]
pub fn by_systemd(a: (&str, &Entry), b: (&str, &Entry)) -> Ordering {
    let ((name, one), (other_name, other)) = (a, b);
    let id = |name: &str| format!("{}.conf", name.to_lowercase());
    let ids = || version(&id(other_name), &id(name));
    let by_key = match (&one.sort_key, &other.sort_key) {
        (Some(key), Some(other_key)) => {
            let machines = || one.machine_id.cmp(&other.machine_id);
            key.cmp(other_key).then_with(machines).then_with(|| version(&other.version, &one.version))
        }
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    };
    is_used_up(name).cmp(&is_used_up(other_name)).then(by_key).then_with(ids)
}

/// Whether an entry counts its tries and has none left: `linux+0-3`.
#[must_use]
pub fn is_used_up(name: &str) -> bool {
    name.rsplit_once('+').is_some_and(|(_, tries)| {
        let left = tries.split('-').next().unwrap_or_default();
        !left.is_empty() && left.bytes().all(|byte| byte == b'0')
    })
}

/// The name of an entry without the tries that are counted in it: `linux` of `linux+3`, of `linux+2-1` and of `linux`.
/// systemd-boot renames the file in every boot that it counts, and systemd-bless-boot takes the count off (Boot Loader
/// Specification, Boot counting): what it is called without them is the entry's own.
#[must_use]
pub fn uncounted(name: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_count = |tries: &str| match tries.split_once('-') {
        Some((left, done)) => is_number(left) && is_number(done),
        None => is_number(tries),
    };
    name.rsplit_once('+').filter(|(id, tries)| !id.is_empty() && is_count(tries)).map_or(name, |(id, _)| id)
}

/// `strverscmp_improved`: which of two versions is the newer one.
fn version(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    let is_other = |byte: u8| !byte.is_ascii_alphanumeric() && !b"~-^.".contains(&byte);
    loop {
        (a, b) = (take(a, is_other).1, take(b, is_other).1);
        let (first, second) = (a.first().copied(), b.first().copied());
        let marks = |mark: u8| (first == Some(mark), second == Some(mark));
        // What is marked by `~` is older than the end of the text, and the end is older than the rest.
        if let (true, _) | (_, true) = marks(b'~') {
            match (first != Some(b'~')).cmp(&(second != Some(b'~'))) {
                Ordering::Equal => (a, b) = (&a[1..], &b[1..]),
                order => return order,
            }
            continue;
        }
        if a.is_empty() || b.is_empty() {
            return a.len().min(1).cmp(&b.len().min(1));
        }
        if let Some(mark) = [b'-', b'^', b'.'].into_iter().find(|mark| marks(*mark) != (false, false)) {
            match (first != Some(mark)).cmp(&(second != Some(mark))) {
                Ordering::Equal => (a, b) = (&a[1..], &b[1..]),
                order => return order,
            }
            continue;
        }
        let is_number = [first, second].iter().flatten().any(u8::is_ascii_digit);
        let is_part = |byte: u8| if is_number { byte.is_ascii_digit() } else { byte.is_ascii_alphabetic() };
        let ((left, rest), (right, other)) = (take(a, is_part), take(b, is_part));
        let order = if is_number { numbers(left, right) } else { left.cmp(right) };
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (rest, other);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn grub_shows_the_newest_kernel_first() {
        let sorted = |names: &[&str]| {
            let mut names = names.to_vec();
            names.sort_by(|a, b| by_grub(b, a));
            names.join(" ")
        };
        assert_eq!(
            sorted(&[
                "m-0-rescue",
                "m-5.14.0-70.el9.x86_64",
                "m-5.14.0-427.el9.x86_64",
                "m-6.1.0-1.el9.x86_64"
            ]),
            "m-6.1.0-1.el9.x86_64 m-5.14.0-427.el9.x86_64 m-5.14.0-70.el9.x86_64 m-0-rescue"
        );
        assert_eq!(sorted(&["linux", "m-6.1~rc1-1", "m-6.1-1"]), "m-6.1-1 m-6.1~rc1-1 linux");
        assert_eq!(sorted(&["a", "10", "9"]), "10 9 a", "a number is newer than letters");
    }

    #[test]
    fn systemd_boot_sorts_by_key_and_else_by_name() {
        let entry = |key: &str, version: &str| Entry {
            sort_key: (!key.is_empty()).then(|| key.to_owned()),
            version: version.to_owned(),
            ..Entry::default()
        };
        let sorted = |entries: &[(&'static str, Entry)]| {
            let mut all: Vec<&(&str, Entry)> = entries.iter().collect();
            all.sort_by(|a, b| by_systemd((a.0, &a.1), (b.0, &b.1)));
            all.iter().map(|(name, _)| *name).collect::<Vec<_>>()
        };
        let (with, without) = (entry("arch", "6.1"), entry("", "6.9"));
        assert_eq!(
            sorted(&[
                ("b", without.clone()),
                ("linux-6.9", without.clone()),
                ("a", with),
                ("c", entry("arch", "6.12"))
            ]),
            ["c", "a", "linux-6.9", "b"]
        );
        assert_eq!(
            sorted(&[("linux+0-3", without.clone()), ("Z-1", without.clone()), ("linux+2-1", without)]),
            ["Z-1", "linux+2-1", "linux+0-3"]
        );
        assert!(is_used_up("a+0") && is_used_up("a+00-3") && !is_used_up("a+1-0") && !is_used_up("a+b"));
    }

    #[test]
    fn a_count_is_no_part_of_a_name() {
        for name in ["m-6.12", "m-6.12+3", "m-6.12+2-1", "m-6.12+0-3"] {
            assert_eq!(uncounted(name), "m-6.12");
        }
        for name in ["m-6.12+", "m-6.12+b3", "m-6.12+3-", "m-6.12+-1", "m-6.12+3-rc1", "+3", "m-6.1+2.1"] {
            assert_eq!(uncounted(name), name);
        }
        assert_eq!(uncounted("m-6.12+1+3"), "m-6.12+1", "the last one is the count");
    }

    #[test]
    fn versions_are_those_of_systemd() {
        // From newest to oldest, as the comment on strverscmp_improved has it.
        let order = [
            "124-1",
            "123a-1",
            "123.1-1",
            "123.a-1",
            "123^post1",
            "123-1.1",
            "123-1",
            "123-a.1",
            "123-a",
            "123",
            "123~rc1-1",
            "122.1",
        ];
        for pair in order.windows(2) {
            assert_eq!(version(pair[0], pair[1]), Ordering::Greater, "{pair:?}");
            assert_eq!(version(pair[1], pair[0]), Ordering::Less, "{pair:?}");
        }
        assert_eq!(version("0012", "12"), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn both_orders_are_the_same_seen_from_either_side(
            a in "[a-bA-B0-1~.^+_-]{0,8}", b in "[a-bA-B0-1~.^+_-]{0,8}",
        ) {
            prop_assert_eq!(version(&a, &b), version(&b, &a).reverse());
            prop_assert_eq!(by_grub(&a, &b), by_grub(&b, &a).reverse());
        }
    }
}
