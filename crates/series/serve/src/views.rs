//! Definitions of views, in one file of the folder of tables: what of a view outlives its process.
//!
//! ```text
//!   planish-views 1 SHA256       of the rest, which is JSON: the texts by name
//!   {"bars":"CREATE MATERIALIZED VIEW bars AS SELECT .."}
//! ```
//!
//! It is replaced as a whole: written beside the old one, synced, renamed, and the folder synced. So a kill leaves the
//! one or the other, and maybe the beginning of a file that nobody reads. Its name has a dot, as that of no table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use planish_sql::{Definition, Engine, View};
use sha2::{Digest, Sha256};

use crate::failure::{Failure, Kind};
use crate::statement::{STACK_BYTES, WORDS_MAX, is_too_deep};

const FILE: &str = "views.list";
const NEXT: &str = "views.new";
const TITLE: &str = "planish-views";
/// A newer one is refused by name.
const VERSION: u32 = 1;

/// Texts of definitions by name.
pub(crate) type Texts = BTreeMap<String, String>;

/// Why the definitions are not to be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ViewsError {
    #[error("cannot {action} {path}")]
    File { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{path} {reason}; no table needs it: move it away, and make the views anew")]
    Damaged { path: PathBuf, reason: &'static str },
    #[error("{path} is of format {version}, which a later planish wrote; this one knows {VERSION}")]
    Newer { path: PathBuf, version: u32 },
}

/// Reads the definitions of a folder; none where there is no file.
#[expect(clippy::disallowed_methods, reason = "a file of our own, not the host's")]
pub(crate) fn read(folder: &Path) -> Result<Texts, ViewsError> {
    let path = folder.join(FILE);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Texts::new()),
        Err(source) => return Err(ViewsError::File { action: "read", path, source }),
    };
    let damaged = |reason| ViewsError::Damaged { path: path.clone(), reason };
    let text = String::from_utf8(text).map_err(|_| damaged("is no text"))?;
    let (head, body) = text.split_once('\n').ok_or_else(|| damaged("has no first line"))?;
    let [TITLE, version, sum] = head.split(' ').collect::<Vec<_>>()[..] else {
        return Err(damaged("is no list of views"));
    };
    let version: u32 = version.parse().map_err(|_| damaged("is no list of views"))?;
    if version > VERSION {
        return Err(ViewsError::Newer { path, version });
    }
    if version != VERSION || sum != sum_of(body) {
        return Err(damaged("is not as it was written"));
    }
    serde_json::from_str(body).map_err(|_| damaged("is no list of views"))
}

/// Puts definitions in the place of those that a folder has; afterwards they are on the disk.
pub(crate) fn write(folder: &Path, texts: &Texts) -> Result<(), ViewsError> {
    let body = serde_json::json!(texts).to_string();
    let text = format!("{TITLE} {VERSION} {}\n{body}", sum_of(&body));
    let next = folder.join(NEXT);
    let failed = |action| {
        let path = next.clone();
        move |source| ViewsError::File { action, path, source }
    };
    let mut file = File::create(&next).map_err(failed("make"))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed("write"))?;
    std::fs::rename(&next, folder.join(FILE)).map_err(failed("rename"))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync the folder of"))
}

fn sum_of(body: &str) -> String {
    Sha256::digest(body.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Plans a view from its text, on a stack that is deep enough for any.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn plan(engine: &Engine, sql: &str) -> Result<View, Failure> {
    let work = || Ok(futures::executor::block_on(engine.plan_view(Definition::parse(sql)?))?);
    if is_too_deep(sql) {
        let text = format!("a view of more than {WORDS_MAX} words and marks, values of lists aside");
        return Err(Failure::new(Kind::TooLarge, text));
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("plan".to_owned()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, work);
        let thread = thread.map_err(|error| {
            Failure::new(Kind::Internal, format!("cannot start a thread to plan the view: {error}"))
        })?;
        thread.join().unwrap_or_else(|_| Err(Failure::new(Kind::Internal, "planning the view broke off")))
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of these tests")]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Texts {
        names.iter().map(|name| ((*name).to_owned(), format!("CREATE .. \"{name}\"\n-- é"))).collect()
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), Texts::new());
        for names in [&["a"][..], &["a", "b"], &[]] {
            write(folder.path(), &texts(names)).unwrap();
            assert_eq!(read(folder.path()).unwrap(), texts(names));
        }
    }

    /// A kill anywhere in a write leaves what was there before.
    #[test]
    fn a_torn_write_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &texts(&["a", "b"])).unwrap();
        let next = std::fs::read(folder.path().join(FILE)).unwrap();
        write(folder.path(), &texts(&["a"])).unwrap();
        for end in 0..=next.len() {
            std::fs::write(folder.path().join(NEXT), &next[..end]).unwrap();
            assert_eq!(read(folder.path()).unwrap(), texts(&["a"]));
        }
        write(folder.path(), &texts(&["c"])).unwrap();
        assert_eq!(read(folder.path()).unwrap(), texts(&["c"]));
    }

    #[test]
    fn damage_is_told_and_never_read() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &texts(&["a", "b"])).unwrap();
        let path = folder.path().join(FILE);
        let whole = std::fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read(folder.path()).unwrap_err()
        };
        for at in 0..whole.len() {
            assert!(!refused(&whole[..at]).to_string().is_empty(), "cut at {at}");
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            assert!(!refused(&flipped).to_string().is_empty(), "a bit at {at}");
        }
        let text = String::from_utf8(whole).unwrap();
        let error = refused(text.replacen(" 1 ", " 2 ", 1).as_bytes());
        assert!(matches!(error, ViewsError::Newer { version: 2, .. }), "{error}");
        let error = refused(text.replace("CREATE", "CREATF").as_bytes());
        assert!(
            error.to_string().ends_with(
                "is not as it was written; no table needs it: move it away, and make the \
                                             views anew"
            ),
            "{error}"
        );
    }
}
