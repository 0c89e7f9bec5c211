//! What a disk holds after a power cut: what the guest had flushed by then, and nothing else.
//!
//! Killing QEMU alone would be too kind: every write that reached the disk's cache would still be there. So QEMU logs
//! writes and flushes (its driver `blklogwrites`; the format is that of Linux' `dm-log-writes`), and the log up to the
//! last flush is carried out on the disk as it was before the boot.

use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const FLUSH: u64 = 1;
/// Written through the cache.
const FORCED: u64 = 2;
const DISCARD: u64 = 4;

/// One write of the guest.
struct Write<'a> {
    at: u64,
    flags: u64,
    bytes: &'a [u8],
}

/// Carries out on a disk what a log says was flushed. Returns how many writes there were, and how many are lost.
pub fn carry_out(log: &Path, disk: &Path) -> Result<(usize, usize)> {
    let bytes = fs::read(log).with_context(|| format!("read {}", log.display()))?;
    let writes = read(&bytes).with_context(|| format!("the log {}", log.display()))?;
    let flushed_count = writes.iter().rposition(|write| write.flags & FLUSH != 0).map_or(0, |last| last + 1);
    let file = File::options().write(true).open(disk).with_context(|| format!("open {}", disk.display()))?;
    let is_kept = |index: usize, write: &Write<'_>| index < flushed_count || write.flags & FORCED != 0;
    let mut lost_count = 0;
    for (index, write) in writes.iter().enumerate() {
        if is_kept(index, write) {
            file.write_all_at(write.bytes, write.at).with_context(|| format!("write {}", disk.display()))?;
        } else {
            lost_count += 1;
        }
    }
    Ok((writes.len(), lost_count))
}

/// The writes of a log, in their order: a first sector that counts them, then each with a sector before its data.
fn read(log: &[u8]) -> Result<Vec<Write<'_>>> {
    let word = |at: usize| -> Result<u64> {
        let bytes = log.get(at..at + 8).context("it ends early")?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    };
    ensure!(word(0)? == MAGIC && word(8)? == VERSION, "it is none");
    let (count, sector) = (word(16)?, word(24)? & u64::from(u32::MAX));
    let size = usize::try_from(sector)?;
    let mut writes = Vec::new();
    let mut at = size;
    for _ in 0..count {
        let (to, sectors, flags) = (word(at)?, word(at + 8)?, word(at + 16)?);
        if flags & DISCARD != 0 {
            bail!("a discard: what is read there afterwards is not known");
        }
        let length = usize::try_from(sectors)? * size;
        let bytes = log.get(at + size..at + size + length).context("it ends within a write")?;
        writes.push(Write { at: to * sector, flags, bytes });
        at += size + length;
    }
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR: usize = 512;

    fn sector(words: &[u64]) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(SECTOR, 0);
        bytes
    }

    #[test]
    fn what_was_not_flushed_is_lost() {
        // Sector, flags, content of each write.
        let writes =
            [(0, 0, b'a'), (1, 0, b'b'), (0, FLUSH, 0), (0, 0, b'c'), (2, FORCED, b'd'), (1, 0, b'e')];
        let mut log = sector(&[MAGIC, VERSION, writes.len() as u64, SECTOR as u64]);
        for (to, flags, content) in writes {
            let count = u64::from(content != 0);
            log.extend(sector(&[to, count, flags, 0]));
            log.extend(vec![content; SECTOR * count as usize]);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (file, disk) = (folder.path().join("log"), folder.path().join("disk"));
        fs::write(&file, &log).expect("ours");
        fs::write(&disk, vec![b'.'; 4 * SECTOR]).expect("ours");
        assert_eq!(carry_out(&file, &disk).expect("a log"), (6, 2));
        let firsts: Vec<u8> = fs::read(&disk).expect("ours").into_iter().step_by(SECTOR).collect();
        assert_eq!(firsts, b"abd.");
        fs::write(&file, &log[..log.len() - 1]).expect("ours");
        assert!(carry_out(&file, &disk).is_err(), "it is cut off");
        fs::write(&file, vec![0; 4096]).expect("ours");
        assert!(carry_out(&file, &disk).is_err(), "it is no log");
    }
}
