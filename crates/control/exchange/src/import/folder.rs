//! Files that belong together, as `planish export sysctl --output` writes them: one of `sysctl.d`, one of
//! `tmpfiles.d`, rules of udev, a unit that has the first two read again, and drop-ins.
//!
//! Each has settings of its own, or says the same as another, so that they are one profile. Several files of one kind
//! are not: which of them counts is a matter of their names, and of what else such a folder has on a host.

use std::collections::BTreeSet;

use planish_model::Catalogue;

use super::collect::Collector;
use super::{ImportFormat, Imported, Judge, imported, sysctl, tmpfiles, udev, unit};
use crate::error::ExchangeError;

/// One of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Where it lies below the folder: `etc/sysctl.d/90-mine.conf`.
    pub path: String,
    /// Its text.
    pub text: String,
    /// What it is.
    pub format: ImportFormat,
}

/// The formats of files that belong together, in the order in which they are read.
pub const TOGETHER: [ImportFormat; 4] =
    [ImportFormat::Sysctl, ImportFormat::Tmpfiles, ImportFormat::Udev, ImportFormat::Unit];

/// Reads files that belong together as the profile `name`. Each line is told with its file.
///
/// # Errors
/// A file of another format, or several of one of which another order would be another profile.
pub fn import_files(
    catalogue: &Catalogue,
    name: &str,
    files: &[NamedFile],
    judge: Option<&dyn Judge>,
) -> Result<Imported, ExchangeError> {
    refuse_others(files)?;
    let mut collector = Collector::new(catalogue, judge);
    for format in TOGETHER {
        for file in files.iter().filter(|file| file.format == format) {
            collector.begins(&file.path);
            match format {
                ImportFormat::Sysctl => sysctl::read(&file.text, &mut collector),
                ImportFormat::Tmpfiles => tmpfiles::read(&file.text, &mut collector),
                ImportFormat::Udev => udev::read(&file.text, &mut collector),
                _ if has_all_read(&file.text, files) => {
                    unit::read(&file.text, Some(&file.path), &mut collector);
                }
                _ => unit::read_alone(&file.text, Some(&file.path), &mut collector),
            }
        }
    }
    let format = files.first().map_or(ImportFormat::Sysctl, |file| file.format);
    Ok(imported(collector, name, format))
}

fn refuse_others(files: &[NamedFile]) -> Result<(), ExchangeError> {
    let mut seen = BTreeSet::new();
    for file in files {
        // Of units each has drop-ins of its own.
        let kind = match file.format {
            ImportFormat::Unit => unit::unit_of(&file.path).unwrap_or_default(),
            format => format.name(),
        };
        if !TOGETHER.contains(&file.format) || !seen.insert(kind) {
            let (path, kind) = (file.path.clone(), file.format.name());
            return Err(ExchangeError::NotTogether { path, kind });
        }
    }
    Ok(())
}

/// Whether a unit has no files of settings read but those of the folder.
fn has_all_read(text: &str, files: &[NamedFile]) -> bool {
    let reads =
        |line: &&str| ["systemd-sysctl", "systemd-tmpfiles"].iter().any(|program| line.contains(program));
    let mut starts = text.lines().filter(|line| line.starts_with("Exec")).filter(reads);
    starts.all(|line| {
        let last = line.split_whitespace().next_back().unwrap_or_default();
        files.iter().any(|file| last.starts_with('/') && format!("/{}", file.path).ends_with(last))
    })
}
