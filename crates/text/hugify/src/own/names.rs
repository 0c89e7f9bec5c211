//! Names of functions where perf looks for those of code that no file has: /tmp/perf-PID.map, a line for each function
//! (tools/perf/Documentation/jit-interface.txt).
//!
//! Everybody may write to /tmp. So nothing that lies there is opened, let alone followed: the file is new, or there is
//! none. One that an earlier process of the same number has left is taken away first, where it is our own; what was
//! written since this process began is somebody's names for it (a compiler at run time writes this file), and stays.
//!
//! It stays when the process ends, as perf reads it afterwards.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use planish_host::Host;
use rustix::fs::{FileType, lstat, statvfs, unlink};
use rustix::param::clock_ticks_per_second;
use rustix::process::geteuid;
use rustix::time::{ClockId, clock_gettime};

/// Where perf looks, whatever TMPDIR says.
pub(super) const FOLDER: &str = "/tmp";

/// Of what is free there no more than a part of this is taken: each process leaves a file.
const PARTS: u64 = 64;

/// The lines. Formatted by hand: a program of a hundred thousand functions waits for them.
pub(super) fn lines<'a>(functions: impl Iterator<Item = (u64, u64, &'a [u8])>, base: u64) -> Vec<u8> {
    let mut lines = Vec::new();
    for (at, bytes, name) in functions {
        put_hex(&mut lines, base.wrapping_add(at));
        lines.push(b' ');
        put_hex(&mut lines, bytes);
        lines.push(b' ');
        match name.contains(&b'\n') {
            true => lines.extend(name.iter().map(|byte| if *byte == b'\n' { b'?' } else { *byte })),
            false => lines.extend_from_slice(name),
        }
        lines.push(b'\n');
    }
    lines
}

fn put_hex(lines: &mut Vec<u8>, number: u64) {
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        let digit = (number >> (4 * place) & 0xf) as usize;
        lines.push(b"0123456789abcdef"[digit]);
    }
}

/// Writes the file of this process.
pub(super) fn put(folder: &Path, lines: &[u8]) -> io::Result<()> {
    let path = folder.join(format!("perf-{}.map", std::process::id()));
    let room = statvfs(folder)?;
    if lines.len() as u64 > room.f_bavail.saturating_mul(room.f_frsize) / PARTS {
        return Err(io::Error::other(format!("too little room is left in {}", folder.display())));
    }
    // O_EXCL, which follows no link at the end of a name either.
    let create = || File::options().write(true).create_new(true).mode(0o644).open(&path);
    let mut file = match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_left_over(&path) => {
            unlink(&path)?;
            create()?
        }
        created => created?,
    };
    let written = file.write_all(lines);
    if written.is_err() {
        // Half of the names would give the other half to their neighbours.
        let _ = unlink(&path);
    }
    written
}

/// Whether a file is our own, and older than this process.
fn is_left_over(path: &Path) -> bool {
    /// The kernel dates files by its last tick, and this process by the hundredth of a second in which it began.
    const NEAR_S: f64 = 1.0;
    let Some(began) = began_s() else { return false };
    lstat(path).is_ok_and(|stat| {
        let is_own = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == geteuid().as_raw()
            && stat.st_nlink == 1;
        is_own && stat.st_mtime as f64 + NEAR_S < began
    })
}

/// When this process began, by the clock of files, in seconds.
fn began_s() -> Option<f64> {
    let stat = Host::live().read_lossy("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may hold anything; `starttime` is the 20th word behind it.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let now = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let age = now(ClockId::Boottime) - ticks as f64 / clock_ticks_per_second() as f64;
    Some(now(ClockId::Realtime) - age)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of this test")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn lines_are_as_perf_reads_them() {
        let functions = [(0x1000, 0x20, &b"main"[..]), (0x1020, 0, b"odd\nname")];
        let text = lines(functions.into_iter(), 0x55_0000_0000);
        assert_eq!(text, b"5500001000 20 main\n5500001020 0 odd?name\n");
        assert_eq!(lines([(u64::MAX, 1, &b"f"[..])].into_iter(), 0), b"ffffffffffffffff 1 f\n");
    }

    #[test]
    fn nothing_that_lies_there_is_followed_or_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("perf-{}.map", std::process::id()));
        let other = folder.path().join("other");
        fs::write(&other, "theirs").unwrap();
        for target in [&other, &folder.path().join("none")] {
            symlink(target, &path).unwrap();
            let refused = put(folder.path(), b"names").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::read(&other).unwrap(), b"theirs");
        assert!(!folder.path().join("none").exists());
        // Another name of a file is not to be lost with this one.
        fs::hard_link(&other, &path).unwrap();
        assert!(put(folder.path(), b"names").is_err());
    }

    #[test]
    fn names_of_an_earlier_process_of_the_same_number_go_and_those_of_this_one_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("perf-{}.map", std::process::id()));
        put(folder.path(), b"first").unwrap();
        assert_eq!(put(folder.path(), b"second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        let long_ago = SystemTime::now() - Duration::from_secs(10 * 365 * 24 * 3600);
        File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        put(folder.path(), b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
    }
}
