//! Where a store is: a folder, or a URL that a helper understands.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::contract::{PREFIX, SHIPPED, SHIPPED_SCHEMES};
use crate::error::StoreError;

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A folder of this machine, or one that is mounted.
    Folder(PathBuf),
    /// A place that only a helper reaches.
    Beyond {
        /// The URL without a slash at its end.
        url: String,
        /// What stands before `://`, in lower case.
        scheme: String,
    },
}

impl Location {
    /// Reads a location: `SCHEME://...`, or a folder. A relative one lies below `base`.
    ///
    /// # Errors
    /// [`StoreError::Location`]: it is empty, or has what must not be kept in a file of a repository (a password, a
    /// signature) or in a name (`?`, `#`, blanks).
    pub fn parse(text: &str, base: &Path) -> Result<Self, StoreError> {
        let wrong = |why| StoreError::Location { text: without_secrets(text), why };
        let Some((scheme, rest)) = text.split_once("://") else {
            return match text {
                "" => Err(wrong("it is empty")),
                folder => Ok(Self::Folder(base.join(folder))),
            };
        };
        let is_scheme = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let scheme = scheme.to_ascii_lowercase();
        if !scheme.starts_with(|c: char| c.is_ascii_lowercase()) || !scheme.chars().all(is_scheme) {
            return Err(wrong("what stands before :// is letters and digits"));
        }
        let rest = rest.trim_end_matches('/');
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err(wrong("a host or bucket stands behind ://"));
        }
        if host.contains('@') {
            return Err(wrong("names and passwords belong into the environment"));
        }
        if rest.contains(['?', '#', '%', '\\', '"', '\''])
            || rest.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            return Err(wrong("its path is plain words"));
        }
        if path.split('/').any(|word| word == "." || word == "..") {
            return Err(wrong("its path leads upwards"));
        }
        Ok(Self::Beyond { url: format!("{scheme}://{rest}"), scheme })
    }

    /// Whether it can be written.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        !matches!(self, Self::Beyond { scheme, .. } if SHIPPED_SCHEMES[1..].contains(&scheme.as_str()))
    }

    /// The program that reaches it; `None` for a folder.
    #[must_use]
    pub fn helper(&self) -> Option<String> {
        let Self::Beyond { scheme, .. } = self else { return None };
        Some(match SHIPPED_SCHEMES.contains(&scheme.as_str()) {
            true => SHIPPED.to_owned(),
            false => format!("{PREFIX}{scheme}"),
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Beyond { url, .. } => f.write_str(url),
        }
    }
}

/// A location as it may be told: what is refused may hold a password.
fn without_secrets(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let plain = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = plain.split_at(plain.find('/').unwrap_or(plain.len()));
    let host = authority.rsplit_once('@').map_or(authority.to_owned(), |(_, host)| format!("...@{host}"));
    if scheme.is_empty() { text.to_owned() } else { format!("{scheme}://{host}{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Location, StoreError> {
        Location::parse(text, Path::new("/repo/server"))
    }

    #[test]
    fn a_location_is_a_folder_or_a_url() {
        assert_eq!(read("../store").unwrap(), Location::Folder("/repo/server/../store".into()));
        assert_eq!(read("/srv/p").unwrap(), Location::Folder("/srv/p".into()));
        let s3 = read("S3://bucket/a/b//").unwrap();
        assert_eq!((s3.to_string().as_str(), s3.is_writable()), ("s3://bucket/a/b", true));
        assert_eq!(s3.helper().as_deref(), Some("planish-store-s3"));
        let web = read("https://host:8443/p").unwrap();
        assert_eq!((web.helper().as_deref(), web.is_writable()), (Some("planish-store-s3"), false));
        assert_eq!(read("gs://bucket").unwrap().helper().as_deref(), Some("planish-store-gs"));
        assert_eq!(read("/srv/p").unwrap().helper(), None);
    }

    #[test]
    fn what_must_not_be_kept_or_told_is_refused() {
        for wrong in [
            "",
            "://x",
            "s3://",
            "s3:///x",
            "x/y://z",
            "-://z",
            "s3://b/../c",
            "s3://b/a b",
            "https://h/%2e%2e",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let told = read("https://me:secret@host/x?sig=abc").unwrap_err().to_string();
        assert!(
            told.contains("https://...@host/x`") && !told.contains("secret") && !told.contains("abc"),
            "{told}"
        );
    }
}
