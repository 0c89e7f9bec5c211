//! Which files queries may read.

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use glob::Pattern;

/// Files that one path may mean; more are refused.
const FILES_MAX: usize = 10_000;

/// Which files queries may read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Files {
    /// None.
    #[default]
    None,
    /// All that the process may; paths begin in its working folder.
    Any,
    /// Those that lie in a folder or below; paths begin there.
    Under(PathBuf),
}

impl fmt::Display for Files {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => out.write_str("no files"),
            Self::Any => out.write_str("all files"),
            Self::Under(folder) => write!(out, "files of {}", folder.display()),
        }
    }
}

impl Files {
    /// The same with the folder as it is without links, which must be there.
    pub(crate) fn resolved(self) -> io::Result<Self> {
        match self {
            Self::Under(folder) => {
                let folder = folder.canonicalize()?;
                match folder.is_dir() {
                    true => Ok(Self::Under(folder)),
                    false => Err(io::ErrorKind::NotADirectory.into()),
                }
            }
            other => Ok(other),
        }
    }

    /// The files that a path means, in order of their names; there is at least one.
    ///
    /// # Errors
    /// A path that leaves the folder, by its text or by a link, means no file or too many, or one that is a folder.
    pub(super) fn of(&self, path: &str) -> Result<Vec<PathBuf>> {
        let folder = match self {
            Self::None => return plan_err!("{path}: files are not read here"),
            Self::Any => None,
            Self::Under(folder) => Some(folder.as_path()),
        };
        // Nothing outside is looked for, so that no answer tells what is there.
        if folder.is_some_and(|folder| !stays(folder, Path::new(path))) {
            return leaves(path);
        }
        let whole = folder.map_or_else(|| PathBuf::from(path), |folder| folder.join(path));
        let found = if whole.exists() { vec![whole] } else { matches(path, folder)? };
        if found.is_empty() {
            return plan_err!("{path}: no such file");
        }
        let real = |file: PathBuf| {
            let real = file.canonicalize().map_err(DataFusionError::IoError)?;
            match folder {
                Some(folder) if !real.starts_with(folder) => leaves(path),
                _ if real.is_dir() => plan_err!("{path} is a folder; write '{path}/*.parquet'"),
                // A pipe would be waited for.
                _ if !real.is_file() => plan_err!("{path} is no file"),
                _ => Ok(real),
            }
        };
        found.into_iter().map(real).collect()
    }
}

/// Whether a path, as it is written, goes only down from a folder.
fn stays(folder: &Path, path: &Path) -> bool {
    let below = if path.is_absolute() { path.strip_prefix(folder).ok() } else { Some(path) };
    let is_down = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    below.is_some_and(|below| below.components().all(is_down))
}

fn leaves<T>(path: &str) -> Result<T> {
    plan_err!("{path} leaves the folder of files that may be read")
}

/// The files that match a pattern; folders that match are none of them.
fn matches(path: &str, folder: Option<&Path>) -> Result<Vec<PathBuf>> {
    if !path.contains(['*', '?', '[']) {
        return Ok(Vec::new());
    }
    let pattern = match folder.filter(|_| Path::new(path).is_relative()) {
        None => path.to_owned(),
        Some(folder) => match folder.to_str() {
            Some(folder) => format!("{}/{path}", Pattern::escape(folder)),
            None => return plan_err!("{path}: patterns need a folder whose name is UTF-8"),
        },
    };
    let found = glob::glob(&pattern);
    let found = found.map_err(|error| DataFusionError::Plan(format!("{path} is no pattern: {error}")))?;
    let mut files = Vec::new();
    for file in found {
        let file = file.map_err(|error| DataFusionError::Plan(format!("{path}: {error}")))?;
        if file.is_dir() {
            continue;
        }
        if files.len() >= FILES_MAX {
            return plan_err!("{path} means more than {FILES_MAX} files");
        }
        files.push(file);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// `in/{a.csv,b.csv,sub/c.csv}`, `out/d.csv`, and links in `in` to inside and outside.
    fn tree() -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["in/sub", "out", "in/links"] {
            std::fs::create_dir_all(at(path)).unwrap();
        }
        for path in ["in/a.csv", "in/b.csv", "in/sub/c.csv", "out/d.csv", "in/[1].csv"] {
            std::fs::File::create(at(path)).unwrap();
        }
        symlink(at("out/d.csv"), at("in/links/d.csv")).unwrap();
        symlink(at("out"), at("in/links/out")).unwrap();
        symlink(at("in/a.csv"), at("in/links/a.csv")).unwrap();
        let files = Files::Under(at("in")).resolved().unwrap();
        (folder, files)
    }

    fn names(files: &Files, path: &str) -> std::result::Result<Vec<String>, String> {
        let name = |file: PathBuf| file.file_name().unwrap().to_str().unwrap().to_owned();
        files.of(path).map(|found| found.into_iter().map(name).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn files_of_a_folder_are_found_from_there() {
        let (folder, files) = tree();
        let absolute = folder.path().canonicalize().unwrap().join("in/b.csv");
        for (path, wanted) in [
            ("a.csv", vec!["a.csv"]),
            ("./sub/c.csv", vec!["c.csv"]),
            ("[ab].csv", vec!["a.csv", "b.csv"]),
            ("?.csv", vec!["a.csv", "b.csv"]),
            // The file of that very name comes before the pattern.
            ("[1].csv", vec!["[1].csv"]),
            ("sub*/*", vec!["c.csv"]),
            ("links/a.csv", vec!["a.csv"]),
            (absolute.to_str().unwrap(), vec!["b.csv"]),
        ] {
            assert_eq!(names(&files, path), Ok(wanted.into_iter().map(str::to_owned).collect()), "{path}");
        }
    }

    #[test]
    fn no_way_leads_out_of_the_folder() {
        let (folder, files) = tree();
        let out = folder.path().canonicalize().unwrap().join("out/d.csv");
        for path in [
            "../out/d.csv",
            "../out/none.csv",
            "sub/../../out/d.csv",
            "sub/../a.csv",
            "../*/d.csv",
            "/etc/passwd",
            "/etc/*",
            out.to_str().unwrap(),
            "links/d.csv",
            "links/*.csv",
            "links/out/d.csv",
            "links/*/d.csv",
        ] {
            let error = names(&files, path).expect_err(path);
            assert!(error.contains("leaves the folder"), "{path}: {error}");
        }
    }

    #[test]
    fn what_is_no_file_is_told() {
        let (_folder, files) = tree();
        for (path, told) in [
            ("none.csv", "no such file"),
            ("none*.csv", "no such file"),
            ("sub", "is a folder"),
            ("", "is a folder"),
            ("a**b.csv", "no pattern"),
        ] {
            let error = names(&files, path).expect_err(path);
            assert!(error.contains(told), "{path}: {error}");
        }
        assert!(names(&Files::None, "a.csv").unwrap_err().contains("not read here"));
        assert!(Files::Under("/nonexistent".into()).resolved().is_err());
        assert!(Files::Under("/proc/version".into()).resolved().is_err());
    }
}
