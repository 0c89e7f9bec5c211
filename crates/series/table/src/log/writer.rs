//! The end of the log: one file that frames are written to, and the next one when it is full.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::log::frame::{HEAD_BYTES, Head, write_frame};
use crate::log::reader::file_name;
use crate::storage::{Output, Storage, WriteError};

/// Files of the log, oldest first: number of the first batch, and name.
pub(crate) type Files = Arc<Mutex<Vec<(u64, String)>>>;

/// What became of a frame that could not be written.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing of it is left: the log is as it was, and may go on.
    Refused(PathBuf, io::Error),
    /// Nobody knows what the disk holds: the log must not go on.
    Lost(PathBuf, io::Error),
}

/// Writes frames.
#[derive(Debug)]
pub(crate) struct Writer {
    storage: Arc<dyn Storage>,
    table: u64,
    files: Files,
    /// Bytes after which the next file begins.
    file_bytes: u64,
    output: Option<Box<dyn Output>>,
    offset: u64,
    /// Number of the next batch.
    next: u64,
    /// Batches below this number are synced.
    synced: u64,
    frame: Vec<u8>,
}

impl Writer {
    /// Goes on behind batch `next - 1` in a new file, which it makes by its first write.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        table: u64,
        next: u64,
        files: Files,
        file_bytes: u64,
    ) -> Self {
        let (offset, frame) = (0, Vec::new());
        Self { storage, table, files, file_bytes, output: None, offset, next, synced: next, frame }
    }

    /// Number of the next batch.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether everything is synced.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced == self.next
    }

    /// Writes batches as one frame, and syncs it if asked for.
    pub(crate) fn write(&mut self, batches: &[Vec<u8>], sync: bool) -> Result<(), Failure> {
        self.make_room()?;
        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        let count = u32::try_from(batches.len()).expect("a group is bounded");
        write_frame(&mut frame, self.table, (self.next, count, self.synced), |out| {
            batches.iter().for_each(|batch| out.extend_from_slice(batch));
        });
        let path = self.path();
        let output = self.output.as_mut().expect("a file was made");
        let written = match sync {
            true => output.write_and_sync(self.offset, &frame),
            false => output.write_at(self.offset, &frame).map_err(WriteError::Write),
        };
        let length = frame.len() as u64;
        self.frame = frame;
        match written {
            Ok(()) => {
                self.offset += length;
                self.next += u64::from(count);
                if sync {
                    self.synced = self.next;
                }
                Ok(())
            }
            Err(WriteError::Sync(error)) => Err(Failure::Lost(path, error)),
            // What is left of the frame would be a bad place before the frames to come.
            Err(WriteError::Write(error)) => match output.cut(self.offset) {
                Ok(()) => Err(Failure::Refused(path, error)),
                Err(_) => Err(Failure::Lost(path, error)),
            },
        }
    }

    /// Syncs what was written and not synced.
    pub(crate) fn sync(&mut self) -> Result<(), Failure> {
        let path = self.path();
        if let (false, Some(output)) = (self.is_synced(), &mut self.output) {
            output.sync().map_err(|error| Failure::Lost(path, error))?;
        }
        self.synced = self.next;
        Ok(())
    }

    /// Syncs, and leaves a mark that says so, by which damage of the last frames can be told from a torn tail.
    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        self.sync()?;
        if self.output.is_some() { self.write(&[], true) } else { Ok(()) }
    }

    /// Begins the next file when this one is full, and the first one.
    fn make_room(&mut self) -> Result<(), Failure> {
        if self.output.is_some() && self.offset < self.file_bytes {
            return Ok(());
        }
        // A later file proves that the earlier ones are whole.
        self.sync()?;
        self.output = None;
        let name = file_name(self.next);
        let path = self.storage.path().join(&name);
        let made = self.storage.create(&name).and_then(|mut output| {
            output.write_at(0, &Head::new(self.table, self.next).to_bytes())?;
            output.sync()?;
            self.storage.sync_folder()?;
            Ok(output)
        });
        // Where this fails the next write begins with it again: no frame is written to the file before any more.
        self.output = Some(made.map_err(|error| Failure::Refused(path, error))?);
        self.offset = HEAD_BYTES as u64;
        let mut files = self.files.lock().expect("nothing panics while the list is changed");
        files.retain(|(first, _)| *first != self.next);
        files.push((self.next, name));
        Ok(())
    }

    fn path(&self) -> PathBuf {
        let files = self.files.lock().expect("nothing panics while the list is changed");
        self.storage.path().join(files.last().map_or("", |(_, name)| name))
    }
}
