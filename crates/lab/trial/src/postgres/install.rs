//! The programs of a PostgreSQL installation, found and never installed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::TrialError;

/// Where packages put the programs of one major version; `*` is the version.
const PACKAGE_FOLDERS: [(&str, &str); 2] = [("/usr/lib/postgresql", "bin"), ("/usr", "bin")];

/// A version such as 15.18: major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 15 in 15.18.
    pub major: u32,
    /// 18 in 15.18; 0 for a development version.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Version {
    /// Oldest major version that is tried: the first with `plan_cache_mode`, by which every server runs one plan.
    const OLDEST: u32 = 12;

    /// The version in the text of `postgres --version`: `postgres (PostgreSQL) 15.18 (Debian ...)`,
    /// `18beta1`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let word = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        let digits = |text: &str| -> Option<u32> {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text[..end].parse().ok()
        };
        let minor = word.split_once('.').and_then(|(_, minor)| digits(minor)).unwrap_or(0);
        Some(Self { major: digits(word)?, minor })
    }

    /// The version in `server_version_num`: 150018.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self { major: number / 10_000, minor: number % 10_000 }
    }

    /// Whether the server can be told the size of its huge pages (`huge_page_size`).
    #[must_use]
    pub fn chooses_page_size(self) -> bool {
        self.major >= 14
    }

    /// Whether the server can tell how many huge pages it will need (`shared_memory_size_in_huge_pages`).
    #[must_use]
    pub fn counts_pages(self) -> bool {
        self.major >= 15
    }
}

/// The programs of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// The folder of `postgres` and `initdb`.
    pub folder: PathBuf,
    /// Its version.
    pub version: Version,
}

impl Install {
    /// The newest installation: in `folder` where it is given, else where packages put one and on the path.
    ///
    /// # Errors
    /// There is none, or the one in `folder` is not whole.
    pub fn find(folder: Option<&Path>) -> Result<Self, TrialError> {
        if let Some(folder) = folder {
            return Self::at(folder).ok_or_else(|| TrialError::Refused {
                what: format!("{}: no `postgres` (12 or newer) and `initdb` that run", folder.display()),
                cure: "name the folder that holds both with --bin".to_owned(),
            });
        }
        let found = candidates().iter().filter_map(|folder| Self::at(folder)).max_by_key(|it| it.version);
        found.ok_or_else(|| TrialError::Refused {
            what: "no PostgreSQL server is installed here".to_owned(),
            cure: "apt-get install postgresql (the package's own cluster is not touched), or name the folder of \
                   another one with --bin"
                .to_owned(),
        })
    }

    fn at(folder: &Path) -> Option<Self> {
        // A link such as /usr/local/bin/postgres leads to the folder that has the other programs too.
        let folder = folder.join("postgres").canonicalize().ok()?.parent()?.to_owned();
        if !folder.join("initdb").exists() {
            return None;
        }
        let output = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
        let version = Version::parse(&String::from_utf8_lossy(&output.stdout))?;
        (version.major >= Version::OLDEST).then_some(Self { folder, version })
    }

    /// The path of one of its programs.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

fn candidates() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for (above, below) in PACKAGE_FOLDERS {
        #[expect(
            clippy::disallowed_methods,
            reason = "looks for programs that we start, not at the host's settings"
        )]
        let entries = std::fs::read_dir(above).into_iter().flatten().flatten();
        let versioned = entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.trim_start_matches("pgsql-").starts_with(|c: char| c.is_ascii_digit())
        });
        folders.extend(versioned.map(|path| path.join(below)));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_server_says() {
        let version = |text| Version::parse(text).map(|it| it.to_string());
        assert_eq!(version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)").as_deref(), Some("15.18"));
        assert_eq!(version("postgres (PostgreSQL) 18beta1").as_deref(), Some("18.0"));
        assert_eq!(version("postgres: not found"), None);
        assert_eq!(Version::from_number(150_018), Version { major: 15, minor: 18 });
        assert!(Version::from_number(140_000).chooses_page_size());
        assert!(!Version::from_number(140_000).counts_pages());
    }

    #[test]
    fn a_folder_without_a_server_is_refused_with_a_cure() {
        let error = Install::find(Some(Path::new("/nonexistent"))).expect_err("there is none");
        assert_eq!(error.exit(), planish_model::Exit::Refused);
        assert!(error.hints()[0].contains("--bin"));
    }
}
