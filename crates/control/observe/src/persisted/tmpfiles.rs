//! `tmpfiles.d(5)`: lines of type `w` write a value to a file at boot, which is how settings of /sys are
//! kept.
//!
//! Files are sorted by name over all folders; of several lines for one path the first counts. A path may hold wildcards
//! and braces, which systemd has `glob(3)` take apart (`GLOB_BRACE`): lines are of one path where their words are the
//! same, and not where they come to the same file.

use std::collections::HashSet;

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

/// The values that are written at boot.
pub(crate) fn settings(host: &Host) -> Vec<Setting> {
    let mut seen = HashSet::new();
    let mut settings = Vec::new();
    for file in files(host, &super::kept(&FOLDERS), ".conf") {
        let Ok(text) = host.read_lossy(&file) else { continue };
        let lines = parse(&text, &file).into_iter().filter(|line| seen.insert(line.path.clone()));
        settings.extend(lines.flat_map(Line::settings));
    }
    settings
}

/// What the next boot may set besides, as `sysctl::of_this_boot` has it.
pub(crate) fn of_this_boot(host: &Host) -> Vec<Setting> {
    let files = super::of_run(host, &FOLDERS, ".conf");
    files.iter().flat_map(|(file, text)| parse(text, file)).flat_map(Line::settings).collect()
}

/// A line that writes.
struct Line {
    path: String,
    value: String,
    source: String,
}

impl Line {
    /// What it sets: its braces may name several paths.
    fn settings(self) -> Vec<Setting> {
        let paths = place::in_braces(&self.path);
        paths.iter().map(|path| Setting::new(path, &self.value, &self.source)).collect()
    }
}

/// Lines such as `w! /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise`.
fn parse(text: &str, file: &str) -> Vec<Line> {
    text.lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let mut rest = line.trim();
            let mut field = || {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                let (field, after) = rest.split_at(end);
                rest = after.trim_start();
                (!field.is_empty()).then_some(field)
            };
            // The letter may carry modifiers: `w+` appends, `!` is for boot only.
            if !field()?.starts_with('w') {
                return None;
            }
            let path = field()?.trim_matches(['"', '\'']).to_owned();
            for _ in ["mode", "user", "group", "age"] {
                field()?;
            }
            let source = format!("{file}:{}", index + 1);
            let literal = |text: &str| text.replace("%%", "%").replace("\\\\", "\\");
            (!rest.is_empty()).then(|| Line { path: literal(&path), value: literal(rest), source })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{parse, settings};

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
        let told: Vec<String> = settings(&host)
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

    proptest! {
        #[test]
        fn odd_text_is_passed_over(text in "\\PC{0,200}") {
            let _ = parse(&text, "t.conf");
        }
    }
}
