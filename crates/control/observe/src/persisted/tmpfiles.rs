//! `tmpfiles.d(5)`: lines of type `w` write a value to a file at boot, which is how settings of /sys are
//! kept.
//!
//! Files are sorted by name over all folders; of several lines for one path the first counts, but lines that append
//! (`w+`) all do, and a file of the kernel has what the last of them writes. A path may hold wildcards
//! and braces, which systemd has `glob(3)` take apart (`GLOB_BRACE`): lines are of one path where their words are the
//! same, and not where they come to the same file.
//!
//! Lines of type `f+` (once `F`) write to a file that is there as well, and before all lines of type `w`.

use std::collections::HashMap;

use planish_formats::tmpfiles;
use planish_host::Host;
use planish_model::place;

use super::{Setting, files};

const FOLDERS: [&str; 5] = [
    "/etc/tmpfiles.d",
    super::RUN_TMPFILES,
    "/usr/local/lib/tmpfiles.d",
    "/usr/lib/tmpfiles.d",
    "/lib/tmpfiles.d",
];

/// What the lines of a host will do at its next boot.
pub(crate) struct Tmpfiles {
    /// Those of lines that an earlier one of the same path takes out, the first one last.
    pub(super) passed_by: Vec<Setting>,
    /// The values that are written.
    pub(super) settings: Vec<Setting>,
    /// What may be set besides: as `sysctl::of_this_boot` has it, and what a credential holds where there is one.
    pub(super) undecided: Vec<Setting>,
}

impl Tmpfiles {
    /// Reads the lines of a host.
    pub(crate) fn read(host: &Host) -> Self {
        let (mut plain, mut wild) = (Kept::default(), Kept::default());
        let files = super::of_run(host, &FOLDERS, ".conf");
        let mut undecided: Vec<Line> = files.iter().flat_map(|(file, text)| parse(text, file)).collect();
        for line in of_kept_files(host) {
            match (line.is_of_credential, line.is_wild) {
                (true, _) => undecided.push(line),
                (false, true) => wild.add(line),
                (false, false) => plain.add(line),
            }
        }
        let (mut passed_by, mut settings) = (Vec::new(), Vec::new());
        for path in plain.0.into_iter().chain(wild.0) {
            passed_by.extend(path.passed_by.into_iter().rev().flat_map(Line::settings));
            settings.extend(path.counting.into_iter().flat_map(Line::settings));
        }
        Self { passed_by, settings, undecided: undecided.into_iter().flat_map(Line::settings).collect() }
    }

    /// Takes out all lines of files that a boot leaves as they are.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Setting> {
        std::mem::take(&mut self.passed_by).into_iter().chain(std::mem::take(&mut self.settings))
    }
}

/// The lines of all files that a boot leaves as they are.
fn of_kept_files(host: &Host) -> Vec<Line> {
    let files = files(host, &super::kept(&FOLDERS), ".conf").into_iter();
    let texts = files.filter_map(|file| host.read_lossy(&file).ok().map(|text| (file, text)));
    texts.flat_map(|(file, text)| parse(&text, &file)).collect()
}

/// The lines of each path, in the order in which the paths came up.
#[derive(Default)]
struct Kept(Vec<OfPath>, HashMap<String, usize>);

/// The lines of one path.
#[derive(Default)]
struct OfPath {
    /// Those behind the first one, which do not count: systemd passes them by.
    passed_by: Vec<Line>,
    counting: Vec<Line>,
}

impl Kept {
    fn add(&mut self, line: Line) {
        let at = *self.1.entry(line.path.clone()).or_insert(self.0.len());
        if at == self.0.len() {
            self.0.push(OfPath::default());
        }
        let OfPath { passed_by, counting } = &mut self.0[at];
        // All of them append where the first one does: another one behind it does not count.
        let counts = counting.first().is_none_or(|first| line.appends && first.appends);
        if counts { counting.push(line) } else { passed_by.push(line) }
    }
}

/// A line that writes.
#[derive(Debug)]
struct Line {
    path: String,
    /// Whether the path may mean several files.
    is_wild: bool,
    appends: bool,
    is_of_credential: bool,
    value: String,
    source: String,
}

impl Line {
    /// What it sets: its braces may name several paths.
    fn settings(self) -> Vec<Setting> {
        let paths = if self.is_wild { place::in_braces(&self.path) } else { vec![self.path] };
        paths.iter().map(|path| Setting::new(path, &self.value, &self.source)).collect()
    }

    fn of(text: &str, source: String) -> Option<Self> {
        let line = tmpfiles::Line::of(text)?;
        let is_wild = line.letter() == 'w';
        let writes_over = line.letter() == 'F' || line.letter() == 'f' && line.has('+');
        // No file of the kernel has a name with one of these: it would be taken for a pattern.
        let is_odd = !is_wild && line.path.contains(['*', '?', '[']);
        if !is_wild && !writes_over || is_odd {
            return None;
        }
        let value = match line.credential() {
            Some(name) => format!("what the credential {name} holds"),
            None => line.value().ok()?,
        };
        let (appends, is_of_credential) = (is_wild && line.has('+'), line.credential().is_some());
        Some(Self { is_wild, appends, is_of_credential, value, source, path: line.path })
    }
}

/// Lines such as `w! /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise`.
fn parse(text: &str, file: &str) -> Vec<Line> {
    let lines = text.lines().enumerate();
    lines.filter_map(|(index, line)| Line::of(line, format!("{file}:{}", index + 1))).collect()
}

/// What the lines of a text write, each for itself.
pub(super) fn parsed(text: &str, file: &str) -> Vec<Setting> {
    parse(text, file).into_iter().flat_map(Line::settings).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Tmpfiles, parse};

    #[test]
    fn only_written_values_are_settings() {
        let text = "# comment\nd /run/x 0755 root root -\n\
                    w! /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\n\
                    w /sys/block/*/queue/scheduler -   -  - - none\nw /sys/x - - -\n";
        let found = parse(text, "t.conf");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].value.as_str(), found[0].source.as_str()), ("madvise", "t.conf:3"));
        assert_eq!(found[1].path, "/sys/block/*/queue/scheduler");
    }

    #[test]
    fn braces_name_several_paths_and_do_not_hide_another_line() {
        let line = |path: &str, value: &str| format!("w {path} - - - - {value}\n");
        let text = [
            line("/sys/block/nvme{0,1}n1/queue/scheduler", "bfq"),
            line("/sys/block/nvme1n1/queue/scheduler", "kyber"),
            line("/sys/block/nvme{0,1}n1/queue/scheduler", "none"),
            line("'/sys/class/block/sd[ab]/queue/scheduler'", "bfq"),
        ];
        let (_folder, host) = crate::testing::host(&[("/etc/tmpfiles.d/z.conf", text.concat())]);
        let told: Vec<String> = Tmpfiles::read(&host)
            .settings
            .iter()
            .map(|set| {
                format!("{} {} {}", set.path, set.value, &set.source["/etc/tmpfiles.d/z.conf".len()..])
            })
            .collect();
        assert_eq!(
            told,
            [
                "/sys/block/nvme0n1/queue/scheduler bfq :1",
                "/sys/block/nvme1n1/queue/scheduler bfq :1",
                "/sys/block/nvme1n1/queue/scheduler kyber :2",
                "/sys/block/sd[ab]/queue/scheduler bfq :4",
            ]
        );
    }

    /// As systemd-tmpfiles 252 writes them, on files of a folder.
    #[test]
    fn lines_in_odd_forms_are_written_as_systemd_does() {
        const A: &str = "/sys/kernel/mm/ksm/run";
        let of = |text: &str| {
            let (_folder, host) = crate::testing::host(&[("/etc/tmpfiles.d/z.conf", text)]);
            let told = |set: Vec<super::Setting>| -> Vec<String> {
                set.into_iter().map(|set| format!("{} {}", set.path, set.value)).collect()
            };
            let read = Tmpfiles::read(&host);
            (told(read.settings), told(read.undecided))
        };
        for (text, expected) in [
            ("w \"@\" - - - - 1\nw @ - - - - 2\n", &["1"][..]),
            ("w //sys/kernel//mm/ksm/run - - - - 1\nw @ - - - - 2\n", &["1"]),
            ("w+ @ - - - - 1\nw+ @ - - - - 2\nw @ - - - - 3\n", &["1", "2"]),
            ("w @ - - - - 1\nw+ @ - - - - 2\n", &["1"]),
            ("w~ @ - - - - Mg==\n", &["2"]),
            ("w @ - - - - 2\\n\n", &["2"]),
            ("w @ - - - - 2\nf+ @ - - - - 1\nF @ - - - - 0\n", &["1", "2"]),
            ("f @ - - - - 1\nF /sys/[k]ernel/mm/ksm/run - - - - 0\n", &[]),
        ] {
            let expected: Vec<String> = expected.iter().map(|value| format!("{A} {value}")).collect();
            assert_eq!(of(&text.replace('@', A)), (expected, Vec::new()), "{text}");
        }
        let (set, may) = of(&"w^ @ - - - - tune\nw @ - - - - 2\n".replace('@', A));
        assert_eq!(set, [format!("{A} 2")]);
        assert_eq!(may, [format!("{A} what the credential tune holds")]);
    }

    proptest! {
        #[test]
        fn odd_text_is_passed_over(text in "\\PC{0,200}") {
            let _ = parse(&text, "t.conf");
        }
    }
}
