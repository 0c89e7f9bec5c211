//! A folder of files that are read together.

use std::path::{Path, PathBuf};

use planish_exchange::{NamedFile, TOGETHER, recognise_file, text_of};

use super::refused;
use crate::commands::read_file;
use crate::failure::Failure;

/// Folders below each other that are looked through: `etc/systemd/system/NAME.service.d` has four.
const DEPTH_MAX: usize = 8;

/// Files that are looked at: no export has as many.
const FILES_MAX: usize = 256;

/// The files of a folder that are one profile; `None` of what is no folder, or has no such file: that is read by
/// itself. `is_named` says whether the format was.
pub(super) fn files_of(folder: &Path, is_named: bool) -> Result<Option<Vec<NamedFile>>, Failure> {
    // tuned has each profile in a folder of its own.
    if is_named || !folder.is_dir() || folder.join("tuned.conf").exists() {
        return Ok(None);
    }
    let (mut found, mut passed) = (Vec::new(), Vec::new());
    look_in(folder, 0, &mut found, &mut passed);
    if found.len() > FILES_MAX {
        let told =
            format!("{} has more than {FILES_MAX} files: it is not what one export wrote", folder.display());
        return Err(Failure::refused(told).hint("name a file of it"));
    }
    found.sort();
    let mut files = Vec::new();
    for path in &found {
        let text = text_of(&read_file(path)?);
        let format = recognise_file(&text, &path.to_string_lossy()).map_err(|error| refused(path, &error))?;
        let path = path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned();
        files.push(NamedFile { path, text, format });
    }
    if let (Some(odd), false) = (passed.first(), files.is_empty()) {
        let told = format!(
            "{} is no file, and no folder that is looked into: what it says is not known",
            odd.display()
        );
        return Err(
            Failure::refused(told).hint("put the file itself in its place, or take it out of the folder")
        );
    }
    let has_some = files.iter().any(|file| TOGETHER.contains(&file.format));
    Ok(has_some.then_some(files))
}

/// Adds the files below a folder, and what is neither file nor folder: links are none of an export, and may lead in a
/// ring.
fn look_in(folder: &Path, depth: usize, found: &mut Vec<PathBuf>, passed: &mut Vec<PathBuf>) {
    #[expect(clippy::disallowed_methods, reason = "a folder that the user names, and no file of the host")]
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => {
                look_in(&entry.path(), depth + 1, found, passed);
            }
            Ok(kind) if kind.is_file() && found.len() <= FILES_MAX => found.push(entry.path()),
            _ => passed.push(entry.path()),
        }
    }
}
