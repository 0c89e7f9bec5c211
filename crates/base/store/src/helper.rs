//! Starting a helper for one blob: bytes go by files in memory, so that neither side can wait for the other.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use planish_sys::child::{ChildSetup, kill_and_wait, prepare};
use planish_sys::process::{pidfd, wait_readable};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Pid;

use crate::contract::{CHANGED, DELETE_IF, DONE, GET, LIST, MISSING, PUT};
use crate::error::StoreError;
use crate::store::{Got, Object};

/// What is kept of what a helper says of itself.
const TOLD_MAX: u64 = 4096;
/// How often it is looked whether a helper hands out more than we take.
const LOOK: Duration = Duration::from_millis(50);

/// A program that reaches one kind of store.
pub(crate) struct Helper {
    pub program: String,
    pub store: String,
    pub patience: Duration,
    /// Bytes that are taken of it at most.
    pub limit: u64,
}

/// How a helper ended.
struct Ended {
    code: Option<i32>,
    out: File,
    told: String,
    is_too_long: bool,
}

impl Helper {
    pub fn get(&self, url: &str) -> Result<Got, StoreError> {
        let mut ended = self.run(&[GET, url], &[])?;
        if ended.is_too_long {
            return Ok(Got::TooLong);
        }
        match ended.code {
            Some(code) if code == i32::from(DONE) => Ok(Got::Bytes(self.said(&mut ended)?)),
            Some(code) if code == i32::from(MISSING) => Ok(Got::Missing),
            _ => Err(self.failed(ended)),
        }
    }

    pub fn put(&self, url: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let ended = self.run(&[PUT, url], bytes)?;
        if ended.code == Some(i32::from(DONE)) { Ok(()) } else { Err(self.failed(ended)) }
    }

    /// What there is below a URL.
    pub fn list(&self, url: &str) -> Result<Vec<Object>, StoreError> {
        let mut ended = self.run(&[LIST, url], &[])?;
        if ended.is_too_long || ended.code != Some(i32::from(DONE)) {
            return Err(self.failed(ended));
        }
        let bytes = self.said(&mut ended)?;
        String::from_utf8_lossy(&bytes).lines().map(|line| self.object(line)).collect()
    }

    /// An object by its line; its name may have blanks.
    fn object(&self, line: &str) -> Result<Object, StoreError> {
        let mut words = line.splitn(3, ' ');
        let object = (|| {
            let (bytes, put_at) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let name = words.next().filter(|name| !name.is_empty())?.to_owned();
            Some(Object { name, bytes, put_at })
        })();
        object.ok_or_else(|| StoreError::Line { program: self.program.clone(), line: line.to_owned() })
    }

    /// Takes an object away, unless it was put anew since `put_at`; says whether it is gone.
    pub fn delete(&self, url: &str, put_at: u64) -> Result<bool, StoreError> {
        let ended = self.run(&[DELETE_IF, url, &put_at.to_string()], &[])?;
        match ended.code {
            Some(code) if code == i32::from(DONE) => Ok(true),
            Some(code) if code == i32::from(CHANGED) => Ok(false),
            _ => Err(self.failed(ended)),
        }
    }

    /// What it handed out.
    fn said(&self, ended: &mut Ended) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        let read = ended.out.rewind().and_then(|()| ended.out.read_to_end(&mut bytes));
        read.map_err(|error| self.odd(error))?;
        Ok(bytes)
    }

    /// Starts it with these words, of which the second is a URL.
    fn run(&self, words: &[&str], bytes: &[u8]) -> Result<Ended, StoreError> {
        let file = || in_memory(&[]).map_err(|error| self.odd(error));
        let (out, mut told) = (file()?, file()?);
        let input = in_memory(bytes).map_err(|error| self.odd(error))?;
        let stream = |file: &File| file.try_clone().map(Stdio::from).map_err(|error| self.odd(error));
        let mut command = Command::new(self.path());
        command.args(words).stdin(Stdio::from(input)).stdout(stream(&out)?).stderr(stream(&told)?);
        // A build that is broken off leaves nobody behind.
        let mut child = prepare(&mut command, ChildSetup { die_with_parent: true, ..ChildSetup::default() })
            .spawn()
            .map_err(|error| self.not_started(error))?;
        let ended = self.wait(&mut child, &out, &told);
        let Some(status) = ended.map_err(|error| self.odd(error))? else {
            let is_too_long = length(&out) > self.limit;
            kill_and_wait(child).map_err(|error| self.odd(error))?;
            if is_too_long {
                return Ok(Ended { code: None, out, told: String::new(), is_too_long });
            }
            let (program, url) = (self.program.clone(), words[1].to_owned());
            return Err(StoreError::Silent { program, url, patience: self.patience });
        };
        let mut text = Vec::new();
        told.rewind()
            .and_then(|()| (&told).take(TOLD_MAX).read_to_end(&mut text))
            .map_err(|e| self.odd(e))?;
        let is_too_long = length(&out) > self.limit;
        let told = String::from_utf8_lossy(&text).trim().replace('\n', "; ");
        Ok(Ended { code: status.code(), out, told, is_too_long })
    }

    /// Waits for the end of a helper; `None` where it is to be ended: it takes too long, or hands out too much.
    fn wait(&self, child: &mut Child, out: &File, told: &File) -> io::Result<Option<ExitStatus>> {
        let handle = pidfd(Pid::from_child(child)).map_err(io::Error::other)?;
        let begun = Instant::now();
        while !wait_readable(&handle, Some(LOOK)).map_err(io::Error::other)? {
            if begun.elapsed() >= self.patience || length(out).max(length(told)) > self.limit {
                return Ok(None);
            }
        }
        child.wait().map(Some)
    }

    /// The program: beside ours, as it is installed, or on the PATH.
    fn path(&self) -> PathBuf {
        let beside = std::env::current_exe().ok().map(|own| own.with_file_name(&self.program));
        beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(&self.program))
    }

    fn not_started(&self, source: io::Error) -> StoreError {
        let program = self.program.clone();
        match source.kind() {
            io::ErrorKind::NotFound => StoreError::NoHelper { store: self.store.clone(), program },
            _ => StoreError::NotStarted { program, source },
        }
    }

    fn odd(&self, source: io::Error) -> StoreError {
        StoreError::NotStarted { program: self.program.clone(), source }
    }

    fn failed(&self, ended: Ended) -> StoreError {
        let how = match ended.code {
            _ if ended.is_too_long => format!("it says more than {} MiB", self.limit >> 20),
            Some(code) => format!("it ended with {code}"),
            None => "a signal ended it".to_owned(),
        };
        let told = if ended.told.is_empty() { how } else { ended.told };
        StoreError::Helper { program: self.program.clone(), told }
    }
}

/// A file in memory that is read from its beginning.
fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("planish-store", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

fn length(file: &File) -> u64 {
    file.metadata().map_or(0, |metadata| metadata.len())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A helper that is this script. Another process writes it: a file that this one has open for writing is inherited
    /// by what another test starts at that moment, and the kernel runs none such.
    fn helper(folder: &tempfile::TempDir, script: &str) -> Helper {
        let path = folder.path().join("planish-store-test");
        let mut copy = Command::new("sh");
        copy.args(["-c", "printf '%s' \"$1\" >\"$2\"", "sh", script]).arg(&path);
        assert!(copy.status().unwrap().success());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = path.to_str().unwrap().to_owned();
        let patience = Duration::from_secs(60);
        Helper { program, store: "test://x".to_owned(), patience, limit: 1 << 20 }
    }

    #[test]
    fn a_helper_that_does_not_end_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut silent = helper(&folder, "#!/bin/sh\necho begun >&2; exec sleep 600\n");
        silent.patience = Duration::from_millis(300);
        let begun = Instant::now();
        for error in [silent.get("test://x/y").err(), silent.put("test://x/y", b"z").err()] {
            assert!(matches!(error, Some(StoreError::Silent { .. })), "{error:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_helper_that_hands_out_too_much_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let endless = helper(&folder, "#!/bin/sh\nwhile :; do head -c 65536 /dev/zero; sleep 0.01; done\n");
        assert!(matches!(endless.get("test://x/y"), Ok(Got::TooLong)));
        let long = helper(&folder, "#!/bin/sh\nexec head -c 1048577 /dev/zero\n");
        assert!(matches!(long.get("test://x/y"), Ok(Got::TooLong)));
    }

    #[test]
    fn a_list_is_read_to_the_last_line_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let told = |script: &str| helper(&folder, script).list("test://x/sha256");
        let two = told("#!/bin/sh\nprintf '3 1700000000 ab/abc\\n0 0 a b\\n'\n").unwrap();
        let names: Vec<_> = two.iter().map(|one| (one.name.as_str(), one.bytes, one.put_at)).collect();
        assert_eq!(names, [("ab/abc", 3, 1_700_000_000), ("a b", 0, 0)]);
        for odd in ["3 ab/abc", "x 1 a", "1 -2 a", "1 2 ", ""] {
            let error = told(&format!("#!/bin/sh\nprintf '1 1 a\\n{odd}\\n'\n")).unwrap_err();
            assert!(matches!(&error, StoreError::Line { line, .. } if line == odd), "{error}");
        }
        // One that knows get and put alone, and one that was cut off: a part of a list is none.
        for (code, told_why) in [(2, "unknown"), (1, "broken off")] {
            let script = format!("#!/bin/sh\necho '1 1 a'; echo {told_why} >&2; exit {code}\n");
            let error = told(&script).unwrap_err().to_string();
            assert!(error.ends_with(told_why), "{error}");
        }
        let endless = told("#!/bin/sh\nwhile :; do head -c 65536 /dev/zero; sleep 0.01; done\n").unwrap_err();
        assert!(endless.to_string().contains("more than 1 MiB"), "{endless}");
    }

    /// The second look is the helper's, right before it deletes: it is told what the list said, and may say no.
    #[test]
    fn what_was_put_anew_since_the_list_stays_and_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let script =
            "#!/bin/sh\n[ \"$1 $2\" = 'delete-if test://x/y' ] || exit 2\n[ $3 = 1700000000 ] || exit 5\n";
        let own = helper(&folder, script);
        assert!(own.delete("test://x/y", 1_700_000_000).unwrap());
        assert!(!own.delete("test://x/y", 1_700_000_001).unwrap());
        // One of before does not look, nor at further words: it must not be asked to delete.
        let script = "#!/bin/sh\n[ $1 = delete ] && exit 0\necho 'usage: get|put|delete URL' >&2; exit 2\n";
        let told = helper(&folder, script).delete("test://x/y", 7).unwrap_err().to_string();
        assert!(told.ends_with(": usage: get|put|delete URL"), "nothing goes unseen: {told}");
    }

    #[test]
    fn bytes_go_through_as_they_are_also_where_nobody_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..300_000_u32).map(|index| index as u8).collect();
        let kept = folder.path().join("kept");
        let script = format!("#!/bin/sh\n[ $1 = get ] && exec cat {0}; exec cat >{0}\n", kept.display());
        let echo = helper(&folder, &script);
        echo.put("test://x/y", &bytes).unwrap();
        assert!(matches!(echo.get("test://x/y"), Ok(Got::Bytes(got)) if got == bytes));
        let deaf = helper(&folder, "#!/bin/sh\necho 'no room' >&2; exit 1\n");
        let told = deaf.put("test://x/y", &bytes).unwrap_err().to_string();
        assert!(told.ends_with(": no room"), "{told}");
    }
}
