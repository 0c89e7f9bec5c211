//! Who would be disturbed by an open: holders of a lease for writing (`F_SETLEASE`, delegations of an NFS server).
//!
//! An open of theirs by anybody breaks it: the holder is sent SIGIO, which ends a program that has no handler, and
//! the open waits for it. `/proc/locks` tells every lease that our PID namespace may see.
//!
//! It is read right before each open: a lease that is taken in between is broken all the same, in some microseconds.
//!
//! Source: `lock_get_status` in fs/locks.c.

use std::collections::HashSet;

use planish_host::{Host, ReadError};

use crate::maps::FileId;

/// Why a file is not to be opened.
#[derive(Debug)]
pub(crate) enum Lease {
    /// An open would break one.
    Held,
    /// An open may break one.
    Untold(ReadError),
}

/// Why the file `id` is not to be opened now, for reading or for `writing` as well; `None` where nobody minds.
pub(crate) fn forbid(host: &Host, id: &FileId, writing: bool) -> Option<Lease> {
    // A folder of processes alone (`subset=pid`) has no such file, and then a lease may be there.
    match host.read_lossy("/proc/locks") {
        Ok(text) => breakable(&text, writing).contains(id).then_some(Lease::Held),
        Err(error) => Some(Lease::Untold(error)),
    }
}

/// The files whose leases an open breaks: one for reading, all but those that were taken for reading and are in force;
/// one for `writing`, all.
fn breakable(text: &str, writing: bool) -> HashSet<FileId> {
    text.lines().filter_map(|line| lease(line, writing)).collect()
}

/// `3: LEASE  ACTIVE    WRITE 1234 00:19:5 0 EOF`
fn lease(line: &str, writing: bool) -> Option<FileId> {
    let (_, fields) = line.split_once(": ")?;
    let mut fields = fields.split_ascii_whitespace();
    let kind = fields.next()?;
    let (state, access) = (fields.next()?, fields.next()?);
    let id = fields.nth(1)?;
    let bears_readers = (state, access) == ("ACTIVE", "READ");
    if !matches!(kind, "LEASE" | "DELEG") || bears_readers && !writing {
        return None;
    }
    let (device, inode) = id.rsplit_once(':')?;
    let (major, minor) = device.split_once(':')?;
    let hex = |digits| u32::from_str_radix(digits, 16).ok();
    // Nobody can open a segment of System V, and so nobody has a lease on one.
    Some(FileId {
        device: (hex(major)?, hex(minor)?),
        inode: inode.parse().ok()?,
        key: None,
        ipc_namespace: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_that_an_open_for_reading_breaks_are_found() {
        let text = "1: POSIX  ADVISORY  WRITE 7 fe:00:11 0 EOF\n\
                    2: LEASE  ACTIVE    WRITE 1234 00:19:5 0 EOF\n\
                    2: -> LEASE  BREAKER   READ 1235 00:19:6 0 EOF\n\
                    3: LEASE  ACTIVE    READ 1234 00:19:7 0 EOF\n\
                    4: LEASE  BREAKING  READ 1234 00:1a:8 0 EOF\n\
                    5: DELEG  ACTIVE    WRITE 0 103:02:9 0 EOF\n\
                    6: LEASE  ACTIVE    WRITE 9 <none>:0 0 EOF\n\
                    7: LEASE\n\n";
        let file = |device, inode| FileId { device, inode, key: None, ipc_namespace: None };
        let expected = [file((0, 0x19), 5), file((0, 0x1a), 8), file((0x103, 2), 9)];
        assert_eq!(breakable(text, false), expected.into_iter().collect());
        // To open for writing, as the pools of kernels before 6.1 want it, ends what readers hold, too.
        let with_readers = expected.into_iter().chain([file((0, 0x19), 7)]);
        assert_eq!(breakable(text, true), with_readers.collect());
    }
}
