//! `fstab(5)` and units of systemd for mounts: the options that a mount will have when it is made.
//!
//! Either has all options of its mount, so that what is not said there is the kernel's own choice: `relatime`, and half
//! of the memory for a tmpfs. Of a unit and a line of fstab the unit counts where it lies in /etc or /run, the line
//! where it is a package's; drop-ins for the unit count for the line, too (`systemd.mount(5)`: fstab is made into
//! units in
//! /run/systemd/generator). A mount that nothing speaks of is somebody's by hand, or systemd's own, as /dev/shm is.
//!
//! Non-goals: units that are not started at a boot, and what the boot loader says of the root (`rootflags=`).

use planish_host::Host;
use planish_model::{Access, Observation, place, tmpfs_bytes};

use super::{Setting, files};
use crate::writers::is_systemd;
use crate::writers::unit::FOLDERS;

const FSTAB: &str = "/etc/fstab";

/// The options of one source, and where they stand.
struct Options {
    is_tmpfs: bool,
    words: String,
    source: String,
}

/// What is said of the mounts that are there.
pub(crate) fn settings(host: &Host, observation: &Observation) -> Vec<Setting> {
    let readings = observation.knobs.values().flatten();
    let there = readings.filter(|reading| reading.access != Access::Absent);
    let places: Vec<&str> = there
        .map(|reading| reading.place.as_str())
        .filter(|place| place.starts_with(place::MOUNTS))
        .collect();
    if places.is_empty() {
        return Vec::new();
    }
    let table = host.read_lossy(FSTAB).unwrap_or_default();
    let mut settings = Vec::new();
    for place in places {
        let Some(point) = place::mount_point(place) else { continue };
        let Some((_, name)) = place.rsplit_once('/') else { continue };
        for options in sources(host, &table, &point) {
            let value = value(&options, name, observation);
            settings.extend(value.map(|value| Setting::new(place, &value, &options.source)));
        }
    }
    settings
}

/// What speaks of a mount, the last of which counts.
fn sources(host: &Host, table: &str, point: &str) -> Vec<Options> {
    let line = line_of(table, point);
    if !is_systemd(host) {
        return line.into_iter().collect();
    }
    let unit = format!("{}.mount", place::mount_name(point));
    let own = FOLDERS.iter().map(|folder| format!("{folder}/{unit}")).find(|path| host.exists(path));
    let folders: Vec<String> = FOLDERS.iter().map(|folder| format!("{folder}/{unit}.d")).collect();
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let is_local = |path: &String| path.starts_with("/etc/") || path.starts_with("/run/");
    let in_unit = |path: &String| in_unit(&host.read_lossy(path).unwrap_or_default(), path);
    let before = own.iter().filter(|path| !is_local(path)).filter_map(in_unit);
    let after = own.iter().filter(|path| is_local(path)).filter_map(in_unit);
    let mut all: Vec<Options> = before.chain(line).chain(after).collect();
    let is_tmpfs = all.last().is_some_and(|options| options.is_tmpfs);
    let drop_ins = files(host, &folders, ".conf");
    all.extend(drop_ins.iter().filter_map(in_unit).map(|options| Options { is_tmpfs, ..options }));
    all
}

/// The first line of fstab for a mount: systemd passes over a second one.
fn line_of(table: &str, point: &str) -> Option<Options> {
    let first = (1..).zip(table.lines()).find_map(|(number, line)| {
        let mut words = line.split_whitespace();
        let source = words.next().filter(|word| !word.starts_with('#'));
        let (at, kind, options) = (source.and(words.next())?, words.next()?, words.next()?);
        let same = plain(at).trim_end_matches('/') == point.trim_end_matches('/');
        same.then(|| Options {
            is_tmpfs: kind == "tmpfs",
            words: options.to_owned(),
            source: format!("{FSTAB}:{number}"),
        })
    });
    // What no boot mounts is somebody's by hand.
    first.filter(|line| last_of(&line.words, "noauto", "auto") != Some(true))
}

/// A path of fstab: blanks are written as `\040`.
fn plain(told: &str) -> String {
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    codes.iter().fold(told.to_owned(), |path, (code, character)| path.replace(code, character))
}

/// The options of a unit or a drop-in of one: the last line that gives any.
fn in_unit(text: &str, path: &str) -> Option<Options> {
    let (mut within, mut is_tmpfs, mut found) = (false, false, None);
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.starts_with('[') {
            within = line == "[Mount]";
        } else if let (true, Some((name, value))) = (within, line.split_once('=')) {
            match name.trim() {
                "Type" => is_tmpfs = value.trim() == "tmpfs",
                "Options" => found = Some((value.trim().to_owned(), format!("{path}:{number}"))),
                _ => {}
            }
        }
    }
    found.map(|(words, source)| Options { is_tmpfs, words, source })
}

/// Whether the last of two words among options, each of which takes the other back, is the first one; `None` where
/// neither is there.
fn last_of(options: &str, word: &str, other: &str) -> Option<bool> {
    let mut words = options.split(',').map(str::trim).rev();
    words.find(|own| *own == word || *own == other).map(|own| own == word)
}

/// What options come to for one setting of a mount, by the name of its file.
fn value(options: &Options, name: &str, observation: &Observation) -> Option<String> {
    // The last of a word and its contrary counts (`mount(8)`): `noatime,atime` is relatime again.
    let has = |word: &str, other: &str| last_of(&options.words, word, other) == Some(true);
    let given = |key: &str| {
        let mut words = options.words.split(',').rev();
        words.find_map(|own| own.trim().strip_prefix(key)?.strip_prefix('=')).map(str::to_owned)
    };
    let host = &observation.host;
    let bytes = |size: &str| tmpfs_bytes(size, host.memory_bytes, host.page_bytes.max(1));
    match name {
        // In the order in which the kernel looks at them (`path_mount` of fs/namespace.c).
        "atime" if has("strictatime", "nostrictatime") => Some("strictatime".to_owned()),
        "atime" if has("noatime", "atime") => Some("noatime".to_owned()),
        "atime" => Some("relatime".to_owned()),
        "huge" if options.is_tmpfs => Some(given("huge").unwrap_or_else(|| "never".to_owned())),
        "size" if options.is_tmpfs => {
            let page = host.page_bytes.max(1);
            let mut words = options.words.split(',').map(str::trim).rev();
            // The last one counts, in bytes or in pages (mm/shmem.c, `shmem_parse_one`).
            let said = words.find_map(|own| match own.split_once('=')? {
                ("size", size) => Some(bytes(size)),
                ("nr_blocks", blocks) => {
                    Some(tmpfs_bytes(blocks, 0, 1).and_then(|blocks| blocks.checked_mul(page)))
                }
                _ => None,
            });
            let size = said.unwrap_or(Some(host.memory_bytes / 2 / page * page))?;
            (size > 0).then(|| size.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use planish_model::{HostFacts, KnobId, Reading};

    use super::*;

    fn told(files: &[(&str, &str)], place: &str) -> Vec<String> {
        let (_folder, host) = crate::testing::host(files);
        let (place, access) = (place.to_owned(), Access::Writable);
        let reading = Reading { place, value: None, unread: None, offered: Vec::new(), max: None, access };
        let facts = HostFacts { memory_bytes: 1 << 30, page_bytes: 4096, ..HostFacts::default() };
        let knobs = [(KnobId::new("x"), vec![reading])].into();
        let observation = Observation { host: facts, knobs, ..Observation::default() };
        let all = settings(&host, &observation).into_iter();
        all.map(|setting| format!("{} {}", setting.source, setting.value)).collect()
    }

    const FSTAB_TEXT: &str = "# a comment with /data\n\
        UUID=1 / ext4 defaults 0 1\n\
        /dev/sdb1\t/data/pg\\040main\txfs\tnoatime,nosuid 0 2\n\
        tmpfs /dev/shm tmpfs size=25%,huge=advise 0 0\n\
        tmpfs /dev/shm tmpfs size=50% 0 0\n\
        /dev/sdc /old ext3 strictatime,noatime 0 0\n\
        tmpfs /tmp tmpfs nosuid 0 0\n";
    const SYSTEMD: (&str, &str) = ("/run/systemd/system/.keep", "");

    #[test]
    fn a_line_of_fstab_has_all_options_of_its_mount() {
        let fstab = [("/etc/fstab", FSTAB_TEXT)];
        for (place, line) in [
            ("-/atime", "/etc/fstab:2 relatime"),
            ("data-pg\\x20main/atime", "/etc/fstab:3 noatime"),
            ("dev-shm/size", "/etc/fstab:4 268435456"),
            ("dev-shm/huge", "/etc/fstab:4 advise"),
            ("old/atime", "/etc/fstab:6 strictatime"),
            ("tmp/size", "/etc/fstab:7 536870912"),
            ("tmp/huge", "/etc/fstab:7 never"),
        ] {
            assert_eq!(told(&fstab, &format!("/planish/mounts/{place}")), [line], "{place}");
        }
        for place in ["data/atime", "old/size", "-/size"] {
            assert_eq!(told(&fstab, &format!("/planish/mounts/{place}")), [""; 0], "{place}");
        }
        assert_eq!(told(&[], "/planish/mounts/-/atime"), [""; 0]);
        assert_eq!(told(&fstab, "/proc/sys/vm/swappiness"), [""; 0]);
    }

    #[test]
    fn units_count_before_or_after_the_line_and_drop_ins_last() {
        let unit = "[Unit]\nOptions=size=1m\n[Mount]\nWhat=tmpfs\nType=tmpfs\nOptions=size=4m,nosuid\n";
        let shipped = ("/usr/lib/systemd/system/tmp.mount", unit);
        let own = ("/etc/systemd/system/tmp.mount", unit);
        let fstab = ("/etc/fstab", FSTAB_TEXT);
        let drop_in = ("/etc/systemd/system/tmp.mount.d/a.conf", "[Mount]\nOptions=size=8m\n");
        let seen = |files: &[(&str, &str)]| told(files, "/planish/mounts/tmp/size");
        let by = |file: &str, bytes: u64| format!("{file} {bytes}");
        let (of_unit, of_line) =
            (by("/usr/lib/systemd/system/tmp.mount:6", 4 << 20), by("/etc/fstab:7", 512 << 20));
        assert_eq!(seen(&[SYSTEMD, shipped, fstab]), [of_unit.clone(), of_line.clone()]);
        let local = by("/etc/systemd/system/tmp.mount:6", 4 << 20);
        assert_eq!(seen(&[SYSTEMD, own, fstab]), [of_line.clone(), local]);
        let dropped = by("/etc/systemd/system/tmp.mount.d/a.conf:2", 8 << 20);
        assert_eq!(seen(&[SYSTEMD, shipped, drop_in]), [of_unit, dropped]);
        assert_eq!(seen(&[own, fstab]), [of_line], "without systemd nobody reads units");
    }

    #[test]
    fn of_a_word_and_its_contrary_the_last_one_counts() {
        for (options, time) in [
            ("noatime,atime", "relatime"),
            ("atime,noatime", "noatime"),
            ("noatime,relatime", "noatime"),
            ("strictatime,noatime", "strictatime"),
            ("strictatime,noatime,nostrictatime", "noatime"),
        ] {
            let line = format!("/dev/sdb1 /data xfs {options} 0 0\n");
            let seen = told(&[("/etc/fstab", &line)], "/planish/mounts/data/atime");
            assert_eq!(seen, [format!("/etc/fstab:1 {time}")], "{options}");
        }
    }

    /// The crate that reads hosts and the one of the nouns may not know each other, and both have to name a mount.
    #[test]
    fn both_names_of_a_mount_are_those_of_systemd() {
        // As `systemd-escape --path` answers.
        for (path, name) in [
            ("/", "-"),
            ("/dev/shm", "dev-shm"),
            ("/var/lib/pg-1", "var-lib-pg\\x2d1"),
            ("/.hidden/.x", "\\x2ehidden-.x"),
            ("/a b", "a\\x20b"),
            ("/a:b_c.d", "a:b_c.d"),
            ("/\u{e4}", "\\xc3\\xa4"),
            ("/a\\b", "a\\x5cb"),
        ] {
            assert_eq!([place::mount_name(path), planish_host::mounts::name_of(path)], [name, name]);
        }
    }

    #[test]
    fn odd_lines_say_nothing() {
        for odd in ["/data", "x /data", "x /data xfs", "", "#x /data xfs noatime 0 0", "\u{fffd} /data xfs"] {
            assert_eq!(told(&[("/etc/fstab", odd)], "/planish/mounts/data/atime"), [""; 0], "{odd}");
        }
        let size = |options: &str| {
            told(&[("/etc/fstab", &format!("t /tmp tmpfs {options} 0 0\n"))], "/planish/mounts/tmp/size")
        };
        for (options, bytes) in [
            ("nr_blocks=4", "16384"),
            ("nr_blocks=1k", "4194304"),
            ("nr_blocks=4,size=1m", "1048576"),
            ("size=1m,nr_blocks=4", "16384"),
        ] {
            assert_eq!(size(options), [format!("/etc/fstab:1 {bytes}")], "{options}");
        }
        assert_eq!(size("noauto,size=1m"), [""; 0], "no boot mounts it");
        assert_eq!(size("noauto,size=1m,auto"), ["/etc/fstab:1 1048576"]);
        for odd in ["size=big", "size=0", "size=101%", "nr_blocks=0", "nr_blocks=50%", "nr_blocks=x"] {
            assert_eq!(size(odd), [""; 0], "{odd}");
        }
    }
}
