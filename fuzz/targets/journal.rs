//! The journal as a later planish finds it: whatever the disk did to it, reading may refuse, not panic.
//!
//! Random bytes never pass a checksum, so each line of the input gets the right one: what is fuzzed
//! is what lies behind it. Lines that start with `!` are taken as they are.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_journal::Storage;
use planish_model::Entry;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

struct Bytes(Vec<u8>);

impl Storage for Bytes {
    fn path(&self) -> &Path {
        Path::new("journal.jsonl")
    }

    fn read(&self) -> Result<Vec<u8>> {
        Ok(self.0.clone())
    }

    fn cut(&self, _length: u64) -> Result<()> {
        Err(Error::from(ErrorKind::ReadOnlyFilesystem))
    }

    fn reserve(&self, _bytes: u64) -> Result<()> {
        Err(Error::from(ErrorKind::ReadOnlyFilesystem))
    }

    fn append(&self, _bytes: &[u8]) -> Result<()> {
        Err(Error::from(ErrorKind::ReadOnlyFilesystem))
    }

    fn sync(&self) -> Result<()> {
        Err(Error::from(ErrorKind::ReadOnlyFilesystem))
    }
}

fuzz_target!(|text: &str| {
    let mut journal = Vec::new();
    for line in text.split_inclusive('\n') {
        match line.strip_prefix('{') {
            Some(rest) => {
                let body = line.strip_suffix('\n').unwrap_or(line);
                let crc = crc32fast::hash(body.as_bytes());
                journal.extend_from_slice(format!("{{\"crc\":\"{crc:08x}\",{rest}").as_bytes());
            }
            None => journal.extend_from_slice(line.strip_prefix('!').unwrap_or(line).as_bytes()),
        }
    }
    let journal = Bytes(journal);
    let ledger = planish_journal::read(&journal);
    if let Ok(ledger) = &ledger {
        asked(&ledger.entries);
    }
    // What is left of a damaged one, for an undo that goes on regardless.
    if let Ok(entries) = planish_journal::sound_entries(&journal) {
        asked(&entries);
        assert!(entries.is_sorted_by_key(|entry| entry.id), "{entries:?}");
    }
});

/// What undo asks of every entry.
fn asked(entries: &[Entry]) {
    for entry in entries {
        let _ = entry.is_open();
        for step in &entry.steps {
            let _ = (step.is_undone(), step.pages_held(), step.original());
        }
    }
}
