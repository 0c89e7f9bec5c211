//! A program as the kernel loads it, of which not one instruction runs.
//!
//! ```text
//! fork --> PTRACE_TRACEME, die with the parent --> execve(2): the kernel maps program and loader, and stops it there
//!   --> its maps can be read, its pages can be touched through /proc/PID/mem --> killed
//! ```
//!
//! So a file is tried that nobody dares to start: a server would bind its port, a tool would do what it is for.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use crate::error::{Error, Result};
use crate::raw::check;
use crate::{process, signals};

/// A program that is loaded and does not run. It ends with this value, or with the thread that loaded it.
#[derive(Debug)]
pub struct Loaded {
    child: Child,
    memory: File,
}

impl Loaded {
    /// Loads a program.
    ///
    /// # Errors
    /// What execve(2) says of the file; [`Error::Forbidden`] where nobody may trace.
    pub fn new(program: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let parent = rustix::process::getpid();
        // SAFETY: plain system calls, which allocate nothing.
        unsafe { command.pre_exec(move || begin(parent).map_err(io::Error::from)) };
        let errno = |error: &io::Error| Errno::from_io_error(error).unwrap_or(Errno::IO);
        let mut child = command.spawn().map_err(|error| match errno(&error) {
            Errno::OPNOTSUPP => Error::of("ptrace", Errno::PERM),
            errno => Error::of("execve", errno),
        })?;
        let pid = Pid::from_child(&child);
        let memory = stopped(pid).and_then(|()| same(program, pid)).and_then(|()| {
            let opened = File::open(format!("/proc/{}/mem", pid.as_raw_pid()));
            opened.map_err(|error| Error::of("open of mem", errno(&error)))
        });
        match memory {
            Ok(memory) => Ok(Self { child, memory }),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    /// Its PID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where the kernel tells it that its program headers lie (`AT_PHDR`).
    ///
    /// # Errors
    /// Its auxiliary vector cannot be read, or has no such word.
    pub fn program_headers(&self) -> Result<u64> {
        let told = process::auxiliary(Pid::from_child(&self.child), libc::AT_PHDR)
            .map_err(|error| Error::of_io("read of auxv", &error))?;
        told.ok_or_else(|| Error::of("read of auxv", Errno::NODATA))
    }

    /// Reads a byte of its memory, so that its page is mapped.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn touch(&self, address: u64) -> Result<()> {
        let read = self.memory.read_exact_at(&mut [0], address);
        read.map_err(|error| Error::of_io("read of mem", &error))
    }
}

/// The child's part: what it asks for before it executes.
fn begin(parent: Pid) -> std::result::Result<(), Errno> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(parent) {
        return Err(Errno::SRCH);
    }
    // The stop behind execve is a SIGTRAP: where we have that blocked, the program would run.
    signals::block_none()?;
    // SAFETY: it takes no address, and asks the kernel to stop this process where it executes.
    let traced = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
    // By an error that no execve gives: it is told apart from those.
    check(traced).map(drop).map_err(|_| Errno::OPNOTSUPP)
}

/// Waits for the stop behind execve.
fn stopped(pid: Pid) -> Result<()> {
    loop {
        match waitpid(Some(pid), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => break,
            Ok(_) => return Err(Error::of("ptrace", Errno::CHILD)),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::of("waitpid", errno)),
        }
    }
    // SAFETY: it names our own child, which is stopped, and takes no address.
    let set = unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid.as_raw_pid(), 0, libc::PTRACE_O_EXITKILL) };
    check(set).map(drop).map_err(|errno| Error::of("ptrace", errno))
}

/// Whether it is that file which the kernel executes, and not the interpreter of a script, or a shell that was tried by
/// the C library where the kernel did not know what it is.
fn same(program: &Path, pid: Pid) -> Result<()> {
    let exe = format!("/proc/{}/exe", pid.as_raw_pid());
    let file = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    match (file(program), file(Path::new(&exe))) {
        (Some(meant), Some(executed)) if meant == executed => Ok(()),
        _ => Err(Error::of("execve", Errno::NOEXEC)),
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for Loaded {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use planish_skip::skip;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of this test")]
    fn a_program_is_loaded_and_does_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let loaded = match Loaded::new(Path::new("/bin/sh")) {
            Err(Error::Forbidden { .. }) => return skip("a_program_is_loaded_and_does_nothing", "no ptrace"),
            loaded => loaded.unwrap(),
        };
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", loaded.pid())).unwrap();
        let text = maps.lines().find(|line| line.contains(" r-xp ")).expect("it has code");
        let start = u64::from_str_radix(text.split('-').next().unwrap(), 16).unwrap();
        loaded.touch(start).unwrap();
        let headers = loaded.program_headers().unwrap();
        assert_ne!(headers, 0);
        loaded.touch(headers).unwrap();
        assert!(loaded.touch(0).is_err());
        let pid = loaded.pid();
        drop(loaded);
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "it ended");

        let script = folder.path().join("script");
        std::fs::write(&script, format!("#!/bin/sh\necho ran > {}\n", told.display())).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(Loaded::new(&script).unwrap_err().errno(), Some(Errno::NOEXEC), "a shell is executed");
        assert!(!told.exists(), "not one line of it ran");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of this test")]
    fn what_the_kernel_does_not_load_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("odd");
        std::fs::write(&file, "\x7fELF and no more").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(Loaded::new(&file).unwrap_err().errno(), Some(Errno::NOEXEC));
        assert_eq!(Loaded::new(&folder.path().join("none")).unwrap_err().errno(), Some(Errno::NOENT));
    }
}
