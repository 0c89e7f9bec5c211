//! `sysctl.d(5)`: which files, in which order, and what their lines mean.
//!
//! All folders are merged and sorted by file name, the last name wins; of one name /etc wins over /run over
//! /usr/local/lib over /usr/lib. `/etc/sysctl.conf` is read last by procps; systemd reads it through the link
//! `99-sysctl.conf` that Debian ships, which is then the same text twice.

use planish_host::Host;
use planish_model::place;

use super::{Setting, files};

const FOLDERS: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];

/// The settings of all files, in the order in which they are applied.
pub(crate) fn settings(host: &Host) -> Vec<Setting> {
    let mut settings = Vec::new();
    let last = host.read("/etc/sysctl.conf").ok();
    for file in files(host, &FOLDERS, ".conf") {
        let Ok(text) = host.read(&file) else { continue };
        if file.ends_with("/99-sysctl.conf") && last.as_deref() == Some(text.as_str()) {
            continue;
        }
        settings.extend(parse(&text, &file));
    }
    if let Some(text) = last {
        settings.extend(parse(&text, "/etc/sysctl.conf"));
    }
    explicit_after_wild(settings)
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
fn parse(text: &str, file: &str) -> Vec<Setting> {
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
            Some(Setting::new(place::of_sysctl(key), value, &source))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use planish_host::Host;
    use proptest::prelude::*;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the test writes the tree that it reads")]
    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("proc")).expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().expect("absolute")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        let host = Host::open(folder.path()).expect("a tree");
        (folder, host)
    }

    fn winner(files: &[(&str, &str)], place: &str) -> Option<(String, String)> {
        let (_folder, host) = host(files);
        super::super::winner(&settings(&host), place).map(|found| (found.value, found.source))
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
        assert_eq!(winner(&files[..2], PLACE).expect("set").0, "3");
    }

    #[test]
    fn sysctl_conf_comes_last_and_its_link_is_not_told_twice() {
        let text = "vm.swappiness=9\n";
        let files = [
            ("/etc/sysctl.conf", text),
            ("/etc/sysctl.d/99-sysctl.conf", text),
            ("/etc/sysctl.d/99-z.conf", "vm/swappiness=5\n"),
        ];
        let (_folder, host) = host(&files);
        let found = super::super::winner(&settings(&host), PLACE).expect("set");
        assert_eq!(found.source, "/etc/sysctl.conf:1");
        assert_eq!(found.overridden, ["5 (/etc/sysctl.d/99-z.conf:1)"]);
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
