//! Retention, backup, and a look whether the files are as they were written.

use std::sync::atomic::Ordering;

use crate::durable::manifest::MANIFEST;
use crate::durable::{Durable, Manifest};
use crate::error::TableError;
use crate::files::TableFile;
use crate::log::scan;
use crate::storage::Storage;

/// What retention let go of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// Rows that were in memory.
    pub rows: usize,
    /// Rows that were in files.
    pub file_rows: u64,
    /// Those files.
    pub files: usize,
}

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// Files that were copied, the manifest included.
    pub files: usize,
    /// Bytes of those.
    pub bytes: u64,
}

impl Durable<'_> {
    /// Lets go of all partitions, in memory and in files, that end before `time`, for good: rows of that age are
    /// refused from then on.
    ///
    /// # Errors
    /// [`TableError::LogLost`] and [`TableError::Io`]; the table is then as it was.
    pub fn drop_before(&self, time: i64) -> Result<Dropped, TableError> {
        let _upkeep = self.keep_up();
        let mut state = self.write_state();
        let _ = self.apply_to(&mut state);
        self.committer.sync()?;
        let span = self.schema.partitioning().span;
        let first = state.manifest.first_span.map_or(i64::MIN, |first| first).max(time.div_euclid(span));
        let mut manifest = state.manifest.clone();
        let is_old = |file: &TableFile| file.span < first;
        let old: Vec<TableFile> = manifest.files.iter().filter(|file| is_old(file)).cloned().collect();
        manifest.first_span = Some(first);
        manifest.files.retain(|file| !is_old(file));
        state.settle(&mut manifest, |(_, span)| *span >= first);
        manifest.flushed.retain(|it| it.span >= first);
        manifest.write(self.storage.as_ref())?;
        state.manifest = manifest;
        state.unflushed.retain(|(_, span), _| *span >= first);
        state.deleted.retain(|(_, span), _| *span >= first);
        // The earliest time of all has no span before it.
        let kept_from = first.saturating_mul(span);
        let rows = state.table.drop_before(kept_from);
        state.table.release(self.spare_bytes);
        self.kept_from.store(kept_from, Ordering::Relaxed);
        for file in &old {
            // What stays is removed by the next open, for no manifest names it.
            let _ = self.storage.remove(&file.name);
        }
        self.trim_log(state.manifest.replay_from);
        Ok(Dropped { rows, file_rows: old.iter().map(TableFile::live_rows).sum(), files: old.len() })
    }

    /// Copies the table as it is now into an empty folder, from which it can be opened. Appends are acknowledged
    /// meanwhile, and may or may not be in the copy; what was acknowledged before is.
    ///
    /// # Errors
    /// [`TableError::Exists`] when the other folder has a table, [`TableError::Damaged`] when a file here is not as it
    /// was written, [`TableError::Io`]. The manifest is copied last: a backup that failed cannot be opened.
    pub fn backup(&self, to: &dyn Storage) -> Result<Backup, TableError> {
        if Manifest::read(to)?.is_some() {
            return Err(TableError::Exists { path: to.path().join(MANIFEST) });
        }
        self.committer.sync()?;
        // While it is held nothing is flushed, dropped or removed.
        let state = self.read_state();
        let mut backup = Backup { files: 0, bytes: 0 };
        for file in &state.manifest.files {
            let bytes = self.read_whole(&file.name)?;
            self.check_bytes(file, &bytes)?;
            backup.put(to, &file.name, &bytes)?;
        }
        let log_files = self.log_files.lock().expect("nothing panics while the list is changed").clone();
        let last = log_files.len().saturating_sub(1);
        for (index, (first, name)) in log_files.into_iter().enumerate() {
            let mut bytes = self.read_whole(&name)?;
            if let Some(bad) = scan(&bytes, state.manifest.table, first).bad {
                if index < last || bad.is_damage() {
                    let (path, offset) = (self.storage.path().join(&name), bad.offset as u64);
                    return Err(TableError::Damaged { path, offset, reason: bad.reason.to_owned() });
                }
                // A frame that is being written ends the copy.
                bytes.truncate(bad.offset);
            }
            backup.put(to, &name, &bytes)?;
        }
        backup.put(to, MANIFEST, &self.read_whole(MANIFEST)?)?;
        let path = to.path().to_owned();
        to.sync_folder().map_err(|source| TableError::Io { action: "sync", path, source })?;
        Ok(backup)
    }

    /// Reads every file and compares it with the manifest; returns their bytes.
    ///
    /// # Errors
    /// The first that is not as it was written, or cannot be read.
    pub fn verify(&self) -> Result<u64, TableError> {
        let state = self.read_state();
        let mut total = 0;
        for file in &state.manifest.files {
            let bytes = self.read_whole(&file.name)?;
            self.check_bytes(file, &bytes)?;
            total += file.bytes;
        }
        Ok(total)
    }

    fn read_whole(&self, name: &str) -> Result<Vec<u8>, TableError> {
        let path = self.storage.path().join(name);
        self.storage.read(name).map_err(|source| TableError::Io { action: "read", path, source })
    }

    fn check_bytes(&self, file: &TableFile, bytes: &[u8]) -> Result<(), TableError> {
        if bytes.len() as u64 == file.bytes && crc32c::crc32c(bytes) == file.crc32c {
            return Ok(());
        }
        let path = self.storage.path().join(&file.name);
        let reason = "its bytes are not those that the manifest tells".to_owned();
        Err(TableError::Damaged { path, offset: 0, reason })
    }
}

impl Backup {
    /// Writes a file and syncs it.
    fn put(&mut self, to: &dyn Storage, name: &str, bytes: &[u8]) -> Result<(), TableError> {
        let written = to.create(name).and_then(|mut output| {
            output.write_at(0, bytes)?;
            output.sync()
        });
        let path = to.path().join(name);
        written.map_err(|source| TableError::Io { action: "write", path, source })?;
        self.files += 1;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}
