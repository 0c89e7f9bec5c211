//! Names of functions where perf looks for those of code that no file has: /tmp/perf-PID.map, a line for each function
//! (tools/perf/Documentation/jit-interface.txt).
//!
//! Everybody may write to /tmp. So nothing that lies there is opened, let alone followed: the file is new, or there is
//! none. One that an earlier process of the same number has left is taken away first, where it is our own; what was
//! written since this process began is somebody's names for it (a compiler at run time writes the same file), and
//! stays.
//!
//! It stays when the process ends, as perf reads it afterwards.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use memchr::memchr;
use planish_host::Host;
use rustix::fs::{FileType, lstat, statvfs, unlink};
use rustix::param::clock_ticks_per_second;
use rustix::process::geteuid;
use rustix::time::{ClockId, clock_gettime};

/// Where perf looks, whatever TMPDIR says.
pub(super) const FOLDER: &str = "/tmp";

/// Of what is free there no more than a part of this is taken: each process leaves a file.
const PARTS: u64 = 64;

/// A function: address, bytes, name.
pub(super) type Function<'a> = (u64, u64, &'a [u8]);

/// The line of a function. Formatted by hand: a program of a hundred thousand functions waits for them.
fn push_line(lines: &mut Vec<u8>, (at, bytes, name): Function) {
    // From its end: `at`, a blank, `bytes`, a blank.
    let mut head = [b' '; HEAD_BYTES];
    let start = put_hex(&mut head, HEAD_BYTES - 1, bytes);
    let start = put_hex(&mut head, start - 1, at);
    lines.extend_from_slice(&head[start..]);
    let from = lines.len();
    lines.extend_from_slice(name);
    if memchr(b'\n', name).is_some() {
        // Its rest would be a line of its own to perf.
        lines[from..].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b'?');
    }
    lines.push(b'\n');
}

/// The most that stands before a name: two numbers of 64 bits, and a blank behind each.
pub(super) const HEAD_BYTES: usize = 2 * 17;

/// Writes a number that ends before a place, and tells where it starts.
fn put_hex(head: &mut [u8; HEAD_BYTES], end: usize, mut number: u64) -> usize {
    let mut start = end;
    loop {
        start -= 1;
        head[start] = b"0123456789abcdef"[(number & 0xf) as usize];
        number >>= 4;
        if number == 0 {
            return start;
        }
    }
}

/// Writes the file of this process, which takes `about_bytes`.
pub(super) fn put<'a>(
    folder: &Path,
    functions: impl Iterator<Item = Function<'a>>,
    about_bytes: u64,
) -> io::Result<()> {
    let path = of_this_process(folder);
    let room = statvfs(folder)?;
    let bytes_max = room.f_bavail.saturating_mul(room.f_frsize) / PARTS;
    let no_room = || io::Error::other(format!("too little room is left in {}", folder.display()));
    if about_bytes > bytes_max {
        return Err(no_room());
    }
    // O_EXCL, which follows no link at the end of a name either.
    let create = || File::options().write(true).create_new(true).mode(0o644).open(&path);
    let file = match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_left_over(&path) => {
            unlink(&path)?;
            create()?
        }
        created => created?,
    };
    // Many symbols may share one long name, so that what is written is held to the same.
    let written =
        write_lines(&file, functions, bytes_max).and_then(|is_all| is_all.then_some(()).ok_or_else(no_room));
    if written.is_err() {
        // Half of the names would give the other half to their neighbours.
        let _ = unlink(&path);
    }
    written
}

fn of_this_process(folder: &Path) -> PathBuf {
    folder.join(format!("perf-{}.map", std::process::id()))
}

/// Piece by piece: memory that was just written is still in the cache when the kernel copies it. Whether all of it took
/// no more than `bytes_max`; it ends where it would.
fn write_lines<'a>(
    mut file: &File,
    functions: impl Iterator<Item = Function<'a>>,
    bytes_max: u64,
) -> io::Result<bool> {
    const PIECE_BYTES: usize = 128 << 10;
    let mut lines = Vec::with_capacity(PIECE_BYTES + (PIECE_BYTES >> 3));
    let mut left = bytes_max;
    let mut give = |lines: &mut Vec<u8>| {
        let Some(rest) = left.checked_sub(lines.len() as u64) else { return Ok(false) };
        left = rest;
        file.write_all(lines)?;
        lines.clear();
        Ok(true)
    };
    for function in functions {
        push_line(&mut lines, function);
        if lines.len() >= PIECE_BYTES && !give(&mut lines)? {
            return Ok(false);
        }
    }
    give(&mut lines)
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

    fn put_name(folder: &Path, name: &str) -> io::Result<()> {
        put(folder, std::iter::once((0x1000, 1, name.as_bytes())), 1)
    }

    #[test]
    fn lines_are_as_perf_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let functions = [
            (0x55_0000_1000, 0x20, &b"main"[..]),
            (0x1020, 0, b"odd\nname"),
            (u64::MAX, u64::MAX, b"f"),
            (0, 16, b""),
        ];
        put(folder.path(), functions.into_iter(), 100).unwrap();
        let text = fs::read_to_string(of_this_process(folder.path())).unwrap();
        assert_eq!(text, "5500001000 20 main\n1020 0 odd?name\nffffffffffffffff ffffffffffffffff f\n0 10 \n");
    }

    #[test]
    fn many_lines_are_whole_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let name = "n".repeat(1000);
        put(folder.path(), (0..1000_u64).map(|at| (at, 1, name.as_bytes())), 1 << 20).unwrap();
        let text = fs::read_to_string(of_this_process(folder.path())).unwrap();
        let wanted = (0..1000).map(|at| format!("{at:x} 1 {name}\n"));
        assert!(text == wanted.collect::<String>());
    }

    #[test]
    fn no_more_is_written_than_there_may_be() {
        let name = "n".repeat(1000);
        let lines = |bytes_max| {
            let file = tempfile::tempfile().unwrap();
            let functions = (0..1000_u64).map(|_| (16, 1, name.as_bytes()));
            let is_all = write_lines(&file, functions, bytes_max).unwrap();
            (is_all, file.metadata().unwrap().len())
        };
        // Of 1000 times "10 1 ", the name and the end of the line.
        assert_eq!(lines(1_006_000), (true, 1_006_000));
        let (is_all, bytes) = lines(1_005_999);
        assert!(!is_all && bytes < 1_005_999, "{bytes}");
        assert_eq!(lines(0), (false, 0));
    }

    #[test]
    fn nothing_that_lies_there_is_followed_or_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = of_this_process(folder.path());
        let other = folder.path().join("other");
        fs::write(&other, "theirs").unwrap();
        for target in [&other, &folder.path().join("none")] {
            symlink(target, &path).unwrap();
            let refused = put_name(folder.path(), "names").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::read(&other).unwrap(), b"theirs");
        assert!(!folder.path().join("none").exists());
        // Another name of a file is not to be lost with this one.
        fs::hard_link(&other, &path).unwrap();
        assert!(put_name(folder.path(), "names").is_err());
    }

    #[test]
    fn names_of_an_earlier_process_of_the_same_number_go_and_those_of_this_one_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = of_this_process(folder.path());
        put_name(folder.path(), "first").unwrap();
        assert_eq!(put_name(folder.path(), "second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"1000 1 first\n");
        let long_ago = SystemTime::now() - Duration::from_secs(10 * 365 * 24 * 3600);
        File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        put_name(folder.path(), "second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"1000 1 second\n");
    }
}
