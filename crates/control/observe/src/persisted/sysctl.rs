//! The files of `sysctl.d(5)`: which, in which order, and what their lines mean.
//!
//! All folders are merged and sorted by file name, the last name wins; of one name /etc wins over /run over
//! /usr/local/lib over /usr/lib. Two programs read them at boot, and differ:
//!
//! - `systemd-sysctl`, where systemd is process 1, reads the folders and nothing else. `/etc/sysctl.conf` counts only
//!   through a link in one of them (`99-sysctl.conf` of Debian 12, Ubuntu and Red Hat; Debian 13 has none), in the
//!   place that the name of the link has. A line that repeats the value of an earlier one keeps the earlier place, and
//!   a bare `-key` takes the lines of its key before it back (systemd 252, `src/sysctl/sysctl.c`).
//! - `sysctl --system` of procps, elsewhere, writes every line in turn and reads `/etc/sysctl.conf` last, whatever
//!   links lead to it (procps 4.0, `src/sysctl.c`). OpenRC calls it.
//!
//! A third one comes later where tuned has a section for it: it writes `/etc/sysctl.d` once more, and then
//! `/etc/sysctl.conf`, whatever links lead to it (`reapply_sysctl`; tuned 2.15 to 2.27, `plugin_sysctl.py`).
//!
//! Non-goals: start scripts of their own making, in yet another order, and the credential `sysctl.extra`.

use std::collections::{HashMap, HashSet};

use planish_formats::sysctl::{Line, in_order};
use planish_host::Host;
use planish_model::{BootValue, Persisted, ValueType, place};

use super::{Setting, files};
use crate::writers::{self, unit};

const ETC: &str = "/etc/sysctl.d";
const FOLDERS: [&str; 5] =
    [ETC, super::RUN_SYSCTL, "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];
/// What procps reads last.
const LAST: &str = "/etc/sysctl.conf";

/// What the files come to.
pub(crate) struct Found {
    /// The settings, in the order in which they are applied.
    pub(crate) settings: Vec<Setting>,
    /// Places of which a line takes back what is said before it: that line, and those that it takes back. Of all, the
    /// mask of the unit that would read them.
    pub(crate) taken_back: HashMap<String, Persisted>,
}

/// Reads all files. Lines that a program writes `again` later stand behind the others, and nowhere else.
pub(crate) fn read(host: &Host, again: Vec<Setting>) -> Found {
    let is_systemd = writers::is_systemd(host);
    let lines = loaded(host, is_systemd, &super::kept(&FOLDERS));
    let (lines, mut taken_back) =
        if is_systemd { in_order_of_systemd(lines.into_iter()) } else { (lines, HashMap::new()) };
    let mut settings = explicit_after_wild(lines);
    if let Some(mask) = unit::mask_of(host, "systemd-sysctl.service") {
        super::take_back(&mut taken_back, std::mem::take(&mut settings), &mask);
    }
    if !again.is_empty() {
        // The same line by the name of a link is the same line.
        let mut names: HashMap<String, Option<String>> = HashMap::new();
        let mut line_of = |source: &str| {
            let (file, line) = source.rsplit_once(':')?;
            let real = names.entry(file.to_owned()).or_insert_with(|| host.canonical(file));
            Some((real.clone()?, line.to_owned()))
        };
        let later: HashSet<_> = again.iter().filter_map(|line| line_of(&line.source)).collect();
        settings.retain(|line| !line_of(&line.source).is_some_and(|line| later.contains(&line)));
        settings.extend(again);
    }
    Found { settings, taken_back }
}

/// The lines that tuned writes again, as it reads them: a key with a `-`, with a wildcard, or with a slash between its
/// first words names no file for it, a key that fits a pattern of `except` it passes over, and files of packages
/// (`/usr/lib/sysctl.d`) it does not read. What lies in /run goes with this boot.
pub(crate) fn written_again(host: &Host, except: &[&str]) -> Vec<Setting> {
    let lines = sources(host, false, &[ETC]).into_iter().flat_map(|(file, text)| {
        let lines = text.lines().enumerate().filter_map(|(index, line)| {
            let line = line.trim();
            let (key, value) = line.split_once('=').filter(|_| !line.starts_with(['#', ';', '-']))?;
            let (key, value) = (key.trim(), value.trim());
            let is_path = key.find(['.', '/']).is_some_and(|at| key[at..].starts_with('/'));
            let is_left = except.iter().any(|pattern| place::matches(pattern, key));
            let is_none = is_path || is_left || key.contains(['*', '?', '[']) || value.is_empty();
            (!is_none).then(|| Setting::new(&place::of_sysctl(key), value, &format!("{file}:{}", index + 1)))
        });
        lines.collect::<Vec<_>>()
    });
    lines.collect()
}

/// The lines that `sysctl --system` sets, in their order.
pub(crate) fn loaded_by_all(host: &Host) -> Vec<Setting> {
    loaded(host, false, &super::kept(&FOLDERS))
}

/// The lines that are set once somebody has all of them loaded now, those of /run among them: in the order of systemd,
/// and in that of procps.
pub(super) fn loaded_now(host: &Host) -> [Vec<Setting>; 2] {
    [true, false].map(|is_systemd| {
        let lines = loaded(host, is_systemd, &FOLDERS);
        explicit_after_wild(if is_systemd { in_order_of_systemd(lines.into_iter()).0 } else { lines })
    })
}

/// A number of pages as the kernel reads it. It is the only number there: what stands behind a blank is not read.
pub(super) fn pages(text: &str) -> Option<u64> {
    number(text.split_whitespace().next()?)
}

/// A number as the kernel reads it (`proc_get_long`): `0x` is hexadecimal, and `0` octal.
fn number(word: &str) -> Option<u64> {
    let (digits, radix) = match word {
        word if word.starts_with("0x") || word.starts_with("0X") => (&word[2..], 16),
        word if word.starts_with('0') => (word, 8),
        word => (word, 10),
    };
    // Rust takes a sign here, and the kernel none but `-`.
    let digits = Some(digits).filter(|digits| !digits.starts_with('+'))?;
    u64::from_str_radix(digits, radix).ok()
}

/// What the kernel makes of a value for a place below /proc/sys that has numbers: decimal ones, as many as there are
/// (`__do_proc_dointvec`). What is no number to it, such as `08`, is told as such. `None` for all else.
pub(super) fn as_read(of: &ValueType, value: &str) -> Option<String> {
    let count = match of {
        ValueType::Int { words, .. } if words.iter().any(|word| word == value.trim()) => return None,
        ValueType::Int { .. } | ValueType::Unsigned { .. } | ValueType::Flag { .. } => 1,
        ValueType::Ints { count, .. } => *count,
        _ => return None,
    };
    let words: Vec<&str> = value.split_whitespace().take(count).collect();
    let read = |word: &&str| match word.strip_prefix('-') {
        Some(word) => Some(format!("-{}", number(word)?)),
        None => Some(number(word)?.to_string()),
    };
    let Some(numbers) = words.iter().map(read).collect::<Option<Vec<String>>>() else {
        return Some(format!("{} (no number to the kernel)", value.trim()));
    };
    (numbers.len() == count).then(|| numbers.join(" "))
}

/// What the next boot may set besides: files of /run go with this one, and whoever wrote them may do so again.
pub(crate) fn of_this_boot(host: &Host) -> Vec<Setting> {
    super::of_run(host, &FOLDERS, ".conf").iter().flat_map(|(file, text)| parse(text, file)).collect()
}

/// Whether a line of /run loses to the one that wins, also where somebody makes it again: its file is read before that,
/// or not at all beside one of its name in /etc.
pub(super) fn is_before(line: &Setting, winner: &Persisted) -> bool {
    let name_of = |source: &str| {
        let (folder, name) = source.rsplit_once('/')?;
        folder.ends_with("/sysctl.d").then(|| name.split(':').next().unwrap_or(name).to_owned())
    };
    let names = name_of(&line.source).zip(name_of(&winner.source));
    let is_hidden = winner.source.starts_with("/etc/");
    line.source.starts_with(super::RUN_SYSCTL)
        && names.is_some_and(|(own, other)| own < other || (own == other && is_hidden))
}

/// The lines of all files, in their order.
fn loaded(host: &Host, is_systemd: bool, folders: &[&str]) -> Vec<Setting> {
    let files = sources(host, is_systemd, folders).into_iter();
    files.flat_map(|(file, text)| parse(&text, &file)).collect()
}

/// The files that are read, with their text, in their order. A link to /dev/null has none, and masks.
fn sources(host: &Host, is_systemd: bool, folders: &[&str]) -> Vec<(String, String)> {
    let mut names = files(host, folders, ".conf");
    if !is_systemd {
        // What is read last wins: to read it through a link before changes nothing, and would be told twice.
        let last = host.canonical(LAST);
        names.retain(|name| host.canonical(name) != last);
        names.push(LAST.to_owned());
    }
    names.into_iter().filter_map(|name| host.read_lossy(&name).ok().map(|text| (name, text))).collect()
}

impl Line for Setting {
    fn place(&self) -> &str {
        &self.path
    }

    fn value(&self) -> &str {
        &self.value
    }
}

/// The order in which systemd applies lines, without those that one behind them takes back; and whichever does so.
fn in_order_of_systemd(lines: impl Iterator<Item = Setting>) -> (Vec<Setting>, HashMap<String, Persisted>) {
    let lines = in_order(lines);
    let empty = lines.iter().enumerate().filter(|(_, line)| line.value.is_empty());
    let last: HashMap<String, usize> = empty.map(|(at, line)| (line.path.clone(), at)).collect();
    let by = |(path, at): (&String, &usize)| (path.clone(), super::given_nothing(&lines[*at].source));
    let mut taken_back: HashMap<String, Persisted> = last.iter().map(by).collect();
    let mut stay = Vec::new();
    for (at, line) in lines.into_iter().enumerate() {
        match taken_back.get_mut(&line.path) {
            Some(by) if at < last[&line.path] => {
                by.overridden.push(BootValue::new(&line.value, &line.source));
            }
            _ => stay.push(line),
        }
    }
    (stay, taken_back)
}

/// An explicit key beats a wildcard, wherever the two stand; a key without a value only spares its path.
fn explicit_after_wild(settings: Vec<Setting>) -> Vec<Setting> {
    let (mut wild, explicit): (Vec<_>, Vec<_>) = settings.into_iter().partition(Setting::is_wild);
    let (spared, explicit): (Vec<_>, Vec<_>) =
        explicit.into_iter().partition(|setting| setting.value.is_empty());
    let spared: Vec<String> = spared.into_iter().map(|setting| setting.path).collect();
    for setting in &mut wild {
        setting.spared.clone_from(&spared);
    }
    wild.into_iter().chain(explicit).collect()
}

/// The lines of one file. A leading `-` only says that failure is ignored.
pub(crate) fn parse(text: &str, file: &str) -> Vec<Setting> {
    text.lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                return None;
            }
            let (spared, bare) = line.strip_prefix('-').map_or((false, line), |rest| (true, rest));
            let (key, value) = match bare.split_once('=') {
                Some((key, value)) => (key.trim(), value.trim()),
                None if spared => (bare.trim(), ""),
                None => return None,
            };
            let source = format!("{file}:{}", index + 1);
            Some(Setting::new(&place::of_sysctl(key), value, &source))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use planish_host::Host;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::host;

    #[test]
    fn a_line_of_this_boot_may_win_only_behind_the_winner() {
        let is_lost = |line: &str, winner: &str| {
            let found = Persisted {
                value: String::new(),
                source: format!("{winner}:2"),
                at_boot: None,
                overridden: Vec::new(),
            };
            is_before(&Setting::new("/proc/sys/vm/swappiness", "12", &format!("{line}:1")), &found)
        };
        for (line, winner, lost) in [
            ("/run/sysctl.d/10-a.conf", "/etc/sysctl.d/99-local.conf", true),
            ("/run/sysctl.d/99-z.conf", "/etc/sysctl.d/99-local.conf", false),
            ("/run/sysctl.d/99-local.conf", "/etc/sysctl.d/99-local.conf", true),
            ("/run/sysctl.d/99-local.conf", "/usr/lib/sysctl.d/99-local.conf", false),
            ("/run/sysctl.d/10-a.conf", "/etc/sysctl.conf", false),
            ("/run/tmpfiles.d/10-a.conf", "/etc/sysctl.d/99-local.conf", false),
        ] {
            assert_eq!(is_lost(line, winner), lost, "{line} {winner}");
        }
    }

    #[test]
    fn numbers_are_what_the_kernel_reads() {
        let int = ValueType::Int { int: "x".to_owned(), min: None, max: None, words: Vec::new() };
        let three =
            ValueType::Ints { ints: "x".to_owned(), count: 3, min: None, max: None, ascending: false };
        for (of, text, read) in [
            (&int, "010", Some("8")),
            (&int, "-0x10", Some("-16")),
            (&int, "10 # of theirs", Some("10")),
            (&int, "0", Some("0")),
            (&int, "09", Some("09 (no number to the kernel)")),
            (&int, "+9", Some("+9 (no number to the kernel)")),
            (&int, "", None),
            (&three, "010 0x10\t10", Some("8 16 10")),
            (&three, "1 2", None),
            (&ValueType::Choice { choice: vec!["010".to_owned()] }, "010", None),
        ] {
            assert_eq!(as_read(of, text).as_deref(), read, "{text}");
        }
    }

    fn settings(host: &Host, again: Vec<Setting>) -> Vec<Setting> {
        read(host, again).settings
    }

    fn winner(files: &[(&str, &str)], place: &str) -> Option<(String, String)> {
        let (_folder, host) = host(files);
        super::super::winner(&settings(&host, Vec::new()), place).map(|found| (found.value, found.source))
    }

    const PLACE: &str = "/proc/sys/vm/swappiness";

    #[test]
    fn the_last_name_wins_over_all_folders() {
        let files = [
            ("/etc/sysctl.d/10-a.conf", "vm.swappiness = 1\n"),
            ("/usr/lib/sysctl.d/50-b.conf", "# c\n\nvm.swappiness=2\n"),
        ];
        assert_eq!(winner(&files, PLACE), Some(("2".to_owned(), "/usr/lib/sysctl.d/50-b.conf:3".to_owned())));
    }

    #[test]
    fn of_one_name_etc_masks_the_others() {
        let files = [
            ("/usr/lib/sysctl.d/50-b.conf", "vm.swappiness=2\n"),
            ("/run/sysctl.d/50-b.conf", "vm.swappiness=3\n"),
            ("/etc/sysctl.d/50-b.conf", ""),
        ];
        assert_eq!(winner(&files, PLACE), None);
        // What lies in /run goes with this boot.
        assert_eq!(winner(&files[..2], PLACE).expect("set").0, "2");
        let (_folder, host) = host(&files[..2]);
        let may: Vec<String> = of_this_boot(&host).into_iter().map(|line| line.value).collect();
        assert_eq!(may, ["3"]);
        let (_folder, host) = self::host(&files);
        assert_eq!(of_this_boot(&host), [], "masked");
    }

    /// A link of the tree, as systemd and distributions make them.
    fn link(host: &Host, at: &str, target: &str) {
        let at = host.folder().expect("a tree").join(at.trim_start_matches('/'));
        std::os::unix::fs::symlink(target, at).expect("a link");
    }

    /// Process 1 is systemd.
    const SYSTEMD: (&str, &str) = ("/run/systemd/system/.keep", "");
    const CONF: (&str, &str) = ("/etc/sysctl.conf", "vm.swappiness=9\n");
    const LATE: (&str, &str) = ("/etc/sysctl.d/99-z.conf", "vm/swappiness=5\n");

    fn told(host: &Host) -> (String, Vec<String>) {
        let found = super::super::winner(&settings(host, Vec::new()), PLACE).expect("set");
        let lost = found.overridden.iter().map(|lost| format!("{} ({})", lost.value, lost.source));
        (format!("{} {}", found.value, found.source), lost.collect())
    }

    #[test]
    fn without_systemd_sysctl_conf_comes_last_and_its_link_is_not_told_twice() {
        let (_folder, host) = host(&[CONF, LATE]);
        let expected = ("9 /etc/sysctl.conf:1".to_owned(), vec!["5 (/etc/sysctl.d/99-z.conf:1)".to_owned()]);
        assert_eq!(told(&host), expected);
        link(&host, "/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
        assert_eq!(told(&host), expected);
    }

    #[test]
    fn systemd_reads_sysctl_conf_through_a_link_alone_and_in_its_place() {
        let (_folder, host) = host(&[SYSTEMD, CONF, ("/etc/sysctl.d/10-a.conf", "vm.dirty_ratio=3\n")]);
        assert_eq!(super::super::winner(&settings(&host, Vec::new()), PLACE), None, "nothing leads to it");
        link(&host, "/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
        assert_eq!(told(&host), ("9 /etc/sysctl.d/99-sysctl.conf:1".to_owned(), Vec::new()));

        let (_folder, host) = self::host(&[SYSTEMD, CONF, LATE]);
        link(&host, "/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
        let overridden = vec!["9 (/etc/sysctl.d/99-sysctl.conf:1)".to_owned()];
        assert_eq!(told(&host), ("5 /etc/sysctl.d/99-z.conf:1".to_owned(), overridden));
    }

    #[test]
    fn a_link_to_nothing_masks_a_file_of_its_name() {
        for init in [&[SYSTEMD][..], &[]] {
            let vendor = ("/usr/lib/sysctl.d/50-b.conf", "vm.swappiness=2\n");
            let (_folder, host) = host(&[init, &[vendor, ("/etc/sysctl.d/10-a.conf", "")]].concat());
            assert_eq!(told(&host).0, "2 /usr/lib/sysctl.d/50-b.conf:1");
            link(&host, "/etc/sysctl.d/50-b.conf", "/dev/null");
            assert_eq!(super::super::winner(&settings(&host, Vec::new()), PLACE), None);
        }
    }

    const TWINS: [(&str, &str); 3] = [
        ("/etc/sysctl.d/10-a.conf", "vm.dirty_bytes = 4096000\n"),
        ("/etc/sysctl.d/50-b.conf", "vm.dirty_ratio = 20\n"),
        ("/etc/sysctl.d/90-planish.conf", "vm.dirty_bytes = 4096000\n"),
    ];

    fn order(files: &[(&str, &str)]) -> Vec<String> {
        let (_folder, host) = host(files);
        settings(&host, Vec::new()).into_iter().map(|setting| setting.source).collect()
    }

    #[test]
    fn a_repeated_line_keeps_the_place_of_the_first_under_systemd_alone() {
        let [first, ratio, again] = TWINS.map(|(file, _)| format!("{file}:1"));
        assert_eq!(order(&[&[SYSTEMD][..], &TWINS].concat()), [&first, &again, &ratio].map(String::clone));
        assert_eq!(order(&TWINS), [&first, &ratio, &again].map(String::clone));
        // Another value between the two makes it a new line.
        let between = ("/etc/sysctl.d/20-c.conf", "vm.dirty_bytes = 1\n");
        let last = order(&[&[SYSTEMD, between][..], &TWINS].concat());
        assert_eq!(last.last(), Some(&again), "{last:?}");
    }

    #[test]
    fn a_bare_key_takes_back_what_was_said_before_it_under_systemd_alone() {
        let files = [("/etc/sysctl.d/10-a.conf", "vm.swappiness = 1\n-vm.swappiness\nvm.* = 7\n")];
        let of_systemd = [&[SYSTEMD][..], &files].concat();
        assert_eq!(winner(&of_systemd, PLACE), None);
        assert_eq!(winner(&files, PLACE).expect("set").0, "1");
        let taken_back = |files: &[(&str, &str)]| {
            let (_folder, host) = host(files);
            let line = read(&host, Vec::new()).taken_back.remove(PLACE)?;
            Some((line.source, line.overridden.into_iter().map(|lost| lost.source).collect::<Vec<_>>()))
        };
        let (by, lost) = ("/etc/sysctl.d/10-a.conf:2".to_owned(), "/etc/sysctl.d/10-a.conf:1".to_owned());
        assert_eq!(taken_back(&of_systemd), Some((by, vec![lost])));
        assert_eq!(taken_back(&files), None);
    }

    /// Files and links as they are met, for the programs that are asked below.
    fn odd_tree() -> (tempfile::TempDir, Host) {
        let (folder, host) = host(&[
            SYSTEMD,
            CONF,
            LATE,
            ("/etc/sysctl.d/.hidden.conf", "a/b=1\n"),
            ("/etc/sysctl.d/50-b.conf", "a/b=1\n"),
            ("/etc/sysctl.d/README.sysctl", "a/b=1\n"),
            ("/run/sysctl.d/50-b.conf", "a/b=2\n"),
            ("/run/sysctl.d/9-a.conf", "a/b=2\n"),
            ("/usr/lib/sysctl.d/10-default.conf", "a/b=3\n"),
            ("/usr/lib/sysctl.d/50-b.conf", "a/b=4\n"),
            ("/usr/lib/sysctl.d/60-masked.conf", "a/b=5\n"),
            ("/usr/local/lib/sysctl.d/A.conf", "a/b=6\n"),
        ]);
        link(&host, "/etc/sysctl.d/60-masked.conf", "/dev/null");
        link(&host, "/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
        (folder, host)
    }

    /// Needs systemd-analyze, which is asked for the files that it would read below a root.
    #[test]
    fn files_are_read_in_the_order_that_systemd_tells() {
        const NAME: &str = "files_are_read_in_the_order_that_systemd_tells";
        let (_folder, odd) = odd_tree();
        let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../hosts");
        let recorded = ["metal-2s", "metal-1s-amd", "rhel9-guest"].map(|name| Host::open(&hosts.join(name)));
        for host in recorded.into_iter().map(|host| host.expect("a recorded host")).chain([odd]) {
            let root = host.folder().expect("a tree").canonicalize().expect("there");
            let mut asked = Command::new("systemd-analyze");
            asked.args(["cat-config", "--no-pager", "sysctl.d"]).arg("--root").arg(&root);
            let Ok(output) = asked.output() else { return planish_skip::skip(NAME, "no systemd-analyze") };
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let text = String::from_utf8(output.stdout).expect("text");
            let head = format!("# {}/", root.display());
            let theirs: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(&head)).collect();
            // It lists a mask as well, of which nothing is read.
            let is_mask = |name: &str| host.read_link(name).as_deref() == Some("/dev/null");
            let theirs = theirs.iter().map(|name| format!("/{name}")).filter(|name| !is_mask(name));
            let ours = sources(&host, true, &FOLDERS).into_iter().map(|(name, _)| name);
            assert_eq!(ours.collect::<Vec<_>>(), theirs.collect::<Vec<_>>(), "{}", root.display());
        }
    }

    /// Needs systemd-sysctl, which is handed lines of keys that no kernel has, and tells each that it cannot write.
    #[test]
    fn lines_are_applied_in_the_order_of_systemd() {
        const NAME: &str = "lines_are_applied_in_the_order_of_systemd";
        const PROGRAMS: [&str; 2] = ["/usr/lib/systemd/systemd-sysctl", "/lib/systemd/systemd-sysctl"];
        let Some(program) = PROGRAMS.into_iter().find(|path| Path::new(path).exists()) else {
            return planish_skip::skip(NAME, "no systemd-sysctl");
        };
        let text = "planish-none.a = 1\nplanish-none.b = 2\nplanish-none.a = 1\nplanish-none.c = 3\n\
                    planish-none.b = 4\nplanish-none.d = 5\n-planish-none.d\nplanish-none/e = 6\n\
                    planish-none.c = 7\nplanish-none.c = 3\nplanish-none.f = 8\nplanish-none.e = 6\n";
        let (_folder, host) = host(&[SYSTEMD, ("/etc/sysctl.d/1.conf", text)]);
        let file = host.folder().expect("a tree").join("etc/sysctl.d/1.conf");
        let mut asked = Command::new(program);
        let output = asked.arg(file).env("SYSTEMD_LOG_TARGET", "console").env("SYSTEMD_LOG_LEVEL", "debug");
        let output = output.output().expect("it runs");
        let told = String::from_utf8(output.stderr).expect("text");
        // Couldn't write '1' to 'planish-none/a', ignoring: No such file or directory
        let quoted = told.lines().filter_map(|line| line.split_once("write '")?.1.split_once("' to '"));
        let theirs: Vec<String> = quoted
            .filter_map(|(value, rest)| Some(format!("{}={value}", rest.split_once('\'')?.0)))
            .collect();
        assert!(theirs.len() > 4, "{told}");
        // Of each key systemd keeps one line, which is the last of ours.
        let all = settings(&host, Vec::new());
        let is_last =
            |(at, line): &(usize, &Setting)| all[at + 1..].iter().all(|after| after.path != line.path);
        let lines = all.iter().enumerate().filter(is_last).map(|(_, line)| line);
        let key = |line: &Setting| line.path.trim_start_matches("/proc/sys/").to_owned();
        let ours: Vec<String> = lines.map(|line| format!("{}={}", key(line), line.value)).collect();
        assert_eq!(ours, theirs, "{told}");
    }

    #[test]
    fn an_explicit_key_beats_a_wildcard_and_a_bare_key_is_spared() {
        let files = [
            ("/etc/sysctl.d/10-a.conf", "-vm.swappiness = 1\nvm.dirty_ratio = 3\n-vm.dirty_bytes\n"),
            ("/etc/sysctl.d/20-b.conf", "vm.* = 7\n"),
        ];
        assert_eq!(winner(&files, PLACE).expect("set").0, "1");
        assert_eq!(winner(&files, "/proc/sys/vm/zone_reclaim_mode").expect("set").0, "7");
        assert_eq!(winner(&files, "/proc/sys/vm/dirty_bytes"), None);
    }

    proptest! {
        #[test]
        fn odd_text_is_no_setting_of_ours(text in "[^=]{0,100}") {
            prop_assert!(parse(&text, "f").iter().all(|setting| setting.value.is_empty()));
        }
    }
}
