//! `meta.toml`: what the files of a recording cannot say themselves.

use std::collections::BTreeMap;
use std::path::Path;

use planish_sorted::SortSmall as _;
use serde::{Deserialize, Serialize};

use crate::answers::{self, Answers};
use crate::error::OpenError;
use crate::pattern::Pattern;

/// The description of a recorded machine, as written in its `meta.toml`.
///
/// ```toml
/// name = "guest-2n"
/// origin = "recorded"              # or "hand-made"
/// note = "QEMU guest of two nodes"
/// arch = "x86_64"
/// kernel = "6.12.0"
/// date = "2026-11-20"              # of the recording
/// virtualisation = "kvm"           # "none" on bare metal, absent where nobody looked
/// page_bytes = 4096
/// host_id = "0f3a..."              # of the machine, hashed
/// root = true                      # the observer was root
/// read_only = ["/proc/sys"]        # folders that are mounted read-only
/// writable = false                 # may planish-act write to (a copy of) it?
///
/// [modes]                          # of files that somebody may write; all others are 0444
/// "0644" = ["/proc/sys/vm/**"]     # paths or patterns; the first one that matches counts
///
/// absent = ["hugepages.32m"]       # rows of the catalogue that were looked for, and nothing was there
///
/// [unreadable]                     # files that exist and whose reading fails
/// "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_cur_freq" = "EACCES"
/// ```
///
/// `[[answer]]` rows are described in [`crate::answers`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// Name of the machine; that of its folder under `hosts/`.
    pub name: String,
    /// Whether it was recorded or made by hand.
    pub origin: Origin,
    /// What it is for, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// `x86_64`, `aarch64`.
    pub arch: String,
    /// Kernel release.
    pub kernel: String,
    /// Day of the recording, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The hypervisor, or `none` on bare metal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtualisation: Option<String>,
    /// Size of a base page in bytes.
    pub page_bytes: u64,
    /// Identity of the machine, hashed; absent in hand-made ones, which are known by their facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
    /// Whether the observer was root, or is to be it: of a copy that may be written.
    #[serde(default = "yes")]
    pub root: bool,
    /// Folders that are mounted read-only, as in many containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_only: Vec<String>,
    /// Whether `planish-act` may write to it; a test does so in a copy.
    #[serde(default)]
    pub writable: bool,
    /// Names of what was looked for in vain: rows of the catalogue. What is not in the recording and not among these,
    /// nobody looked for. One made by hand without this list is whole: what is not in it, such a machine does not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<Vec<String>>,
    /// Paths or patterns by octal mode.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub modes: BTreeMap<String, Vec<String>>,
    /// Name of the error by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable: BTreeMap<String, String>,
    /// How writes are answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<answers::Row>,
}

/// How a recording came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Copied from a machine.
    #[default]
    Recorded,
    /// Written from documentation and from facts of like machines.
    HandMade,
}

fn yes() -> bool {
    true
}

/// The description with its patterns read.
#[derive(Debug, Default)]
pub(crate) struct Description {
    pub meta: Meta,
    pub answers: Answers,
    modes: Vec<(Pattern, u32)>,
}

impl Description {
    /// Reads the text of the `meta.toml` at `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self, OpenError> {
        let wrong = |source| OpenError::Meta { path: path.to_owned(), source: Box::new(source) };
        let odd = |source| OpenError::Pattern { path: path.to_owned(), source };
        let meta: Meta = toml::from_str(text).map_err(wrong)?;
        let mut modes = Vec::new();
        for (mode, places) in &meta.modes {
            let bits = u32::from_str_radix(mode, 8).ok().filter(|bits| *bits <= 0o777);
            let bits = bits.ok_or_else(|| wrong(custom(format!("mode {mode:?} is not octal"))))?;
            for place in places {
                modes.push((Pattern::parse(place).map_err(odd)?, bits));
            }
        }
        // A path without holes counts before any pattern.
        modes.sort_small_by_key(|(pattern, _)| pattern.literal().is_none());
        for error in meta.unreadable.values() {
            answers::errno_by_name(error)
                .ok_or_else(|| wrong(custom(format!("{error:?} is no name of an error"))))?;
        }
        let answers = Answers::from_rows(&meta.answer).map_err(|error| match error {
            answers::RowError::Pattern(source) => odd(source),
            answers::RowError::Row(message) => wrong(custom(message)),
        })?;
        Ok(Self { meta, answers, modes })
    }

    /// The mode that the description gives the file at `path`.
    pub fn mode(&self, path: &str) -> u32 {
        let found = self.modes.iter().find(|(pattern, _)| pattern.captures(path).is_some());
        found.map_or(0o444, |(_, mode)| *mode)
    }

    /// The folder above `path` that is mounted read-only, if one is.
    pub fn read_only_folder(&self, path: &str) -> Option<&str> {
        let below =
            |folder: &&String| path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'));
        self.meta.read_only.iter().find(below).map(String::as_str)
    }
}

fn custom(message: String) -> toml::de::Error {
    serde::de::Error::custom(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        name = "box"
        read_only = ["/proc/sys"]

        [modes]
        "0644" = ["/proc/sys/vm/*"]
        "0200" = ["/proc/sys/vm/compact_memory"]
    "#;

    fn text() -> String {
        [planish_skip::MACHINE, TEXT].concat()
    }

    fn parse(text: &str) -> Result<Description, OpenError> {
        Description::parse(text, Path::new("meta.toml"))
    }

    #[test]
    fn a_path_counts_before_a_pattern() {
        let description = parse(&text()).unwrap();
        assert_eq!(description.mode("/proc/sys/vm/compact_memory"), 0o200);
        assert_eq!(description.mode("/proc/sys/vm/swappiness"), 0o644);
        assert_eq!(description.mode("/proc/version"), 0o444);
    }

    #[test]
    fn a_read_only_folder_is_no_prefix_of_a_name() {
        let description = parse(&text()).unwrap();
        assert_eq!(description.read_only_folder("/proc/sys/vm/swappiness"), Some("/proc/sys"));
        assert_eq!(description.read_only_folder("/proc/sysvipc/shm"), None);
    }

    #[test]
    fn what_no_description_can_say_is_refused() {
        for (what, with) in [
            ("page_bytes = 4096", "page_bytes = 4096\nnonsense = 1"),
            ("\"0644\"", "\"0999\""),
            ("/proc/sys/vm/*", "proc"),
            ("[modes]", "[unreadable]\n\"/x\" = \"EWHAT\"\n[modes]"),
        ] {
            let odd = text().replace(what, with);
            assert!(parse(&odd).is_err(), "{odd}");
        }
    }
}
