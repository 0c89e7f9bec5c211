//! Words that have a form of their own, most of them of the kernel's command line. At boot nobody hears an error: what
//! cannot be read is passed over, or half of it.
//!
//! ```text
//!   other   fifo:2                      the schedule of a thread of the kernel
//!   16K-64K:always;128K,512K:inherit    sizes of transparent huge pages (mm/huge_memory.c, setup_thp_anon)
//!   auto,nosmt   auto,no_user_kernel    guards of the CPU (kernel/cpu.c, mitigations_parse_cmdline)
//!   4G   0:2G,1:2G                      memory, or that of each node (mm/hugetlb.c, cmdline_parse_hugetlb_cma)
//! ```

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which form a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Sizes of transparent huge pages of programs, each with its word.
    ThpAnon,
    /// The same of shared memory.
    ThpShmem,
    /// Memory in all, or of each node.
    NodeBytes,
    /// What a tmpfs may hold: bytes, or percent of the memory.
    TmpfsSize,
    /// How a thread of the kernel is scheduled.
    ThreadSchedule,
    /// How far the guards against leaks through the CPU go.
    Mitigations,
}

/// The highest priority of a thread of the kernel that is wanted. Threads of interrupts have 50 where nobody said
/// another (kernel/irq/manage.c, `sched_set_fifo`), so that what an interrupt leaves for later never keeps the next one
/// waiting; threads that stop a CPU, and watchdogs, have 99.
const PRIORITY_MAX: u32 = 49;

/// Words for pages of programs.
const ANON: [&str; 4] = ["always", "inherit", "madvise", "never"];
/// Words for pages of shared memory.
const SHMEM: [&str; 5] = ["always", "inherit", "within_size", "advise", "never"];
/// How far all guards go; `auto` where nothing stands there.
const GUARDS: [&str; 4] = ["auto,nosmt", "auto", "off", ""];
/// Guards that are left out behind that, since Linux 6.17
/// (Documentation/admin-guide/hw-vuln/attack_vector_controls.rst). An older kernel takes none of it then,
/// and keeps `auto`.
const GUARDS_LESS: [&str; 5] =
    ["no_user_kernel", "no_user_user", "no_guest_host", "no_guest_guest", "no_cross_thread"];
/// The smallest and the largest page that has a size of its own on any machine, in bytes.
const PAGE_BYTES: std::ops::RangeInclusive<u64> = 8 << 10..=1 << 30;

impl Form {
    /// What a value of it is, for people.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::ThpAnon => {
                "sizes and one of always, inherit, madvise, never, such as 64K:always or 16K-64K,1M:madvise"
            }
            Self::ThpShmem => {
                "sizes and one of always, inherit, within_size, advise, never, such as 64K:always or 16K-64K,1M:advise"
            }
            Self::ThreadSchedule => "other, or fifo:1 to fifo:49, below the threads of interrupts",
            Self::Mitigations => {
                "auto, auto,nosmt or off, and since Linux 6.17 without some guards, such as auto,no_user_kernel"
            }
            Self::NodeBytes => "memory, such as 4G, or that of nodes, such as 0:2G,1:2G",
            Self::TmpfsSize => "a size above zero, such as 8G or 50%, a part of the memory",
        }
    }

    /// Whether the kernel takes a text whole.
    pub(super) fn is_one(self, text: &str) -> bool {
        match self {
            Self::ThpAnon => are_sizes(text, &ANON),
            Self::ThpShmem => are_sizes(text, &SHMEM),
            Self::ThreadSchedule => {
                text == "other" || priority(text).is_some_and(|level| level <= PRIORITY_MAX)
            }
            Self::Mitigations => are_guards(text),
            Self::NodeBytes => node_bytes(text).is_some_and(|bytes| bytes > 0),
            // With no memory at all, percent of it are nothing.
            Self::TmpfsSize => tmpfs_bytes(text, 1 << 40, 1).is_some_and(|bytes| bytes > 0),
        }
    }
}

/// The schedule of a thread without what does not count: the nice value of a realtime thread (`fifo:2 nice:-5`) is kept
/// by undo, and is no other schedule.
pub(super) fn schedule(text: &str) -> &str {
    let is_realtime = text.starts_with("fifo:") || text.starts_with("rr:");
    let hidden = text.split_once(" nice:").filter(|(_, nice)| is_realtime && !nice.contains(' '));
    hidden.map_or(text, |(class, _)| class)
}

/// The priority of `fifo:2`.
fn priority(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("fifo:")?;
    let level: u32 = digits.parse().ok()?;
    (level > 0 && level.to_string() == digits).then_some(level)
}

/// Whether arguments give every size of pages its wanted word. They are added up, and of one size the last word counts;
/// sizes that are not wanted may have any.
pub(super) fn gives_words(given: &str, wanted: &str) -> bool {
    match (words_by_size(given), words_by_size(wanted)) {
        (Some(given), Some(wanted)) => wanted.iter().all(|(size, word)| given.get(size) == Some(word)),
        _ => given == wanted,
    }
}

/// The word of each size in bytes.
fn words_by_size(text: &str) -> Option<BTreeMap<u64, &str>> {
    let mut words = BTreeMap::new();
    for group in text.split(';') {
        let (sizes, word) = group.split_once(':')?;
        for part in sizes.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (size(first).filter(|first| *first > 0)?, size(last)?);
            let each = std::iter::successors(Some(first), |size| size.checked_mul(2));
            words.extend(each.take_while(|size| *size <= last).map(|size| (size, word)));
        }
    }
    Some(words)
}

/// `4G`, `512M`, `4096`: a size with the kernel's suffixes (`lib/cmdline.c`, `memparse`).
fn size(text: &str) -> Option<u64> {
    let last = text.chars().last()?;
    let shift = "kmgtpe".find(last.to_ascii_lowercase()).map(|at| 10 * (at + 1));
    let digits = if shift.is_some() { &text[..text.len() - 1] } else { text };
    let is_number = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
    digits.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(1 << shift.unwrap_or(0))
}

/// The bytes of `8G`, `67108864` or `50%`, as tmpfs counts them (mm/shmem.c, `shmem_parse_one`): of percent those of
/// the memory, and whole pages in any case.
#[must_use]
pub fn tmpfs_bytes(text: &str, memory: u64, page: u64) -> Option<u64> {
    let bytes = match text.strip_suffix('%') {
        None => size(text)?,
        Some(percent) => {
            let is_number = !percent.is_empty() && percent.bytes().all(|c| c.is_ascii_digit());
            let parts = percent.parse::<u64>().ok().filter(|parts| is_number && *parts <= 100)?;
            u64::try_from(u128::from(memory) * u128::from(parts) / 100).ok()?
        }
    };
    bytes.checked_next_multiple_of(page.max(1))
}

/// All bytes of `4G` or `0:2G,1:2G`.
#[must_use]
pub fn node_bytes(text: &str) -> Option<u64> {
    if let Some(all) = size(text) {
        return Some(all);
    }
    text.split(',').try_fold(0_u64, |sum, part| {
        let (node, bytes) = part.split_once(':')?;
        let is_node = !node.is_empty() && node.len() <= 4 && node.bytes().all(|c| c.is_ascii_digit());
        sum.checked_add(size(bytes).filter(|_| is_node)?)
    })
}

/// The nodes of `0:2G,1:2G`; none of `4G`.
#[must_use]
pub fn node_numbers(text: &str) -> Vec<u32> {
    let number = |part: &str| part.split_once(':')?.0.parse().ok();
    text.split(',').filter_map(number).collect()
}

/// The bytes of all sizes of `16K-64K:always;2M:inherit`, from the smallest.
#[must_use]
pub fn page_sizes(text: &str) -> Vec<u64> {
    words_by_size(text).unwrap_or_default().into_keys().collect()
}

/// Whether a text names guards of the CPU that are left out, which kernels before 6.17 do not read: they take nothing
/// of such a text, and keep all guards.
#[must_use]
pub fn leaves_guards_out(text: &str) -> bool {
    text.split(',').any(|word| GUARDS_LESS.contains(&word))
}

/// Whether a text is one of [`GUARDS`], and those that it leaves out. What stands behind `off` is not read.
fn are_guards(text: &str) -> bool {
    let is_less = |rest: &str| rest.split(',').all(|word| GUARDS_LESS.contains(&word));
    let is_one = |guards: &str| {
        let is_rest = |rest: &str| guards != "off" && rest.strip_prefix(',').is_some_and(is_less);
        text.strip_prefix(guards).is_some_and(|rest| rest.is_empty() || is_rest(rest))
    };
    !text.is_empty() && GUARDS.into_iter().any(is_one)
}

fn are_sizes(text: &str, words: &[&str]) -> bool {
    let page = |text: &str| size(text).filter(|size| size.is_power_of_two() && PAGE_BYTES.contains(size));
    let is_range = |part: &str| match part.split_once('-') {
        Some((first, last)) => page(first).zip(page(last)).is_some_and(|(first, last)| first <= last),
        None => page(part).is_some(),
    };
    text.split(';').all(|group| match group.split_once(':') {
        Some((sizes, word)) => words.contains(&word) && sizes.split(',').all(is_range),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValueType;

    #[test]
    fn words_are_compared_by_their_sizes() {
        for (given, wanted, is_given) in [
            ("64K:always;2M:inherit", "2M:inherit;64K:always", true),
            ("16K:never;64K:always", "64K:always", true),
            ("64K:always", "16K:never;64K:always", false),
            ("64K:never;64K:always", "64K:always", true),
            ("64K:always;64K:never", "64K:always", false),
            ("16K-64K:always", "32K:always", true),
            ("0:always", "0:always", true),
            ("odd", "64K:always", false),
        ] {
            assert_eq!(gives_words(given, wanted), is_given, "{given} for {wanted}");
        }
    }

    #[test]
    fn a_thread_of_the_kernel_stays_below_those_of_interrupts() {
        let kind = ValueType::Form { form: Form::ThreadSchedule };
        for good in ["other", "fifo:1", "fifo:2", "fifo:49"] {
            assert!(kind.validate(good).is_ok(), "{good}");
        }
        for wrong in [
            "fifo", "fifo:0", "fifo:50", "fifo:99", "fifo:02", "fifo:-1", "rr:2", "other:5", "batch", "", "2",
        ] {
            assert!(kind.validate(wrong).is_err(), "{wrong}");
        }
        assert!(kind.same("fifo:2 nice:-5\n", "fifo:2") && !kind.same("other:-5", "other"));
        assert!(kind.same("fifo:2\n", "fifo:2") && !kind.same("fifo:2 reset-on-fork", "fifo:2"));
    }

    #[test]
    fn sizes_are_pages_with_a_word_that_is_one() {
        for good in
            ["64K:always", "64k:never", "16K-64K:always;128K,512K:inherit;1M-2M:madvise", "65536:always"]
        {
            assert!(Form::ThpAnon.is_one(good), "{good}");
        }
        for odd in [
            "banana",
            "64K:alwyas",
            "64K",
            "64K:",
            ":always",
            "63K:always",
            "64K-16K:always",
            "4K:always",
            "2G:always",
            "64K:always;",
            "64K,:always",
            "64K:within_size",
            "64K:always,2M:never",
            "+64K:always",
            "64KB:always",
            "",
        ] {
            assert!(!Form::ThpAnon.is_one(odd), "{odd}");
        }
        assert!(Form::ThpShmem.is_one("64K:within_size;2M:advise") && !Form::ThpShmem.is_one("64K:madvise"));
    }

    #[test]
    fn guards_are_words_that_a_kernel_has() {
        for good in
            ["auto", "auto,nosmt", "off", "auto,no_user_kernel", "auto,nosmt,no_guest_host,no_guest_guest"]
        {
            assert!(Form::Mitigations.is_one(good), "{good}");
        }
        assert!(Form::Mitigations.is_one(",no_cross_thread"), "auto is meant");
        for odd in [
            "",
            "1",
            "on",
            "Off",
            "nosmt",
            "auto,",
            "auto,off",
            "auto nosmt",
            "auto;no_user_kernel",
            "off,nosmt",
            "off,no_user_user",
            "auto,no_user",
            "no_user_kernel",
            "automatic",
        ] {
            assert!(!Form::Mitigations.is_one(odd), "{odd}");
        }
    }

    #[test]
    fn sizes_are_told_one_by_one() {
        assert_eq!(page_sizes("2M:inherit;16K-64K:always"), [16 << 10, 32 << 10, 64 << 10, 2 << 20]);
        assert_eq!(page_sizes("odd"), [0; 0]);
    }

    #[test]
    fn a_size_of_a_tmpfs_is_whole_pages_of_bytes_or_of_the_memory() {
        let bytes = |text| tmpfs_bytes(text, (1 << 30) + 4096, 4096);
        for (text, told) in [
            ("8G", Some(8 << 30)),
            ("65536k", Some(1 << 26)),
            ("4097", Some(8192)),
            ("0", Some(0)),
            ("100%", Some((1 << 30) + 4096)),
            ("50%", Some((1 << 29) + 4096)),
            ("%", None),
            ("101%", None),
            ("-1", None),
            ("1.5G", None),
            ("8GB", None),
            ("18446744073709551615", None),
        ] {
            assert_eq!(bytes(text), told, "{text}");
        }
        let kind = ValueType::Form { form: Form::TmpfsSize };
        assert_eq!((kind.normal(" 8G"), kind.normal("50%")), ("8589934592".to_owned(), "50%".to_owned()));
        assert!(kind.same("67108864", "64m") && !kind.same("67108864", "50%"));
        for odd in ["0", "0%", "big", "64m,huge=always"] {
            assert!(kind.validate(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn memory_is_counted_over_nodes() {
        assert_eq!(node_bytes("4G"), Some(4 << 30));
        assert_eq!(node_bytes("0:2G,1:512M"), Some((2 << 30) + (512 << 20)));
        for odd in [
            "banana",
            "",
            "G",
            "4GB",
            "4G,2G",
            "0:2G,",
            "0:",
            ":2G",
            "x:2G",
            "-1:2G",
            "99999999999999999999E",
        ] {
            assert_eq!(node_bytes(odd), None, "{odd}");
        }
        assert!(!Form::NodeBytes.is_one("0"), "nothing is set aside");
        assert_eq!((node_numbers("0:2G,12:512M"), node_numbers("4G")), (vec![0, 12], Vec::new()));
        let kind = ValueType::Form { form: Form::NodeBytes };
        assert_eq!(
            kind.validate("4 G").expect_err("two words").to_string(),
            "`4 G` is not memory, such as 4G, or that of nodes, such as 0:2G,1:2G"
        );
    }
}
