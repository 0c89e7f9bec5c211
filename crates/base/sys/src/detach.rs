//! Helpers that outlive us, and the alarm that they wait for.
//!
//! The dead-man timer of `apply --confirm` must undo the change also when we are killed or the terminal
//! goes away, on machines without systemd. It is a process of its own session whose parent is init:
//!
//! ```text
//! planish --fork--> middle --setsid, fork--> helper (adopted by init; /dev/null for its streams)
//!    |                 |
//!    +---- waits ------+ ends at once, so no zombie stays
//! ```

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use crate::error::{Error, Result};
use crate::raw::check;

/// Starts `command` as a helper that neither our end nor our terminal's can touch.
///
/// Its streams are /dev/null, and since Linux 5.11 it has no other open file of ours or of whoever started us: a pipe
/// that a helper keeps open never ends for its reader. A program that cannot be executed is an error here.
pub fn spawn_detached(command: &mut Command) -> io::Result<()> {
    let in_middle = || {
        rustix::process::setsid()?;
        close_at_exec();
        match fork()? {
            // The helper: goes on to exec.
            None => Ok(()),
            // SAFETY: ends the middle process at once, without destructors that belong to our parent.
            Some(_) => unsafe { libc::_exit(0) },
        }
    };
    // SAFETY: between fork and exec only async-signal-safe calls may be made: `in_middle` makes setsid, close_range,
    // fork and _exit, allocates nothing, and std execs straight after it.
    unsafe { command.pre_exec(in_middle) };
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Held until the middle process is gone: whoever looks for orphans meanwhile would take it for one.
    let mut sessions = sessions();
    let mut middle = command.spawn()?;
    sessions.insert(middle.id());
    let middle = middle.wait()?;
    if middle.success() { Ok(()) } else { Err(io::Error::other("the middle process was killed")) }
}

/// Sessions of the helpers that were started here, each by the PID of its middle process: no other process is given
/// that number while the session has a member.
static SESSIONS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn sessions() -> MutexGuard<'static, BTreeSet<u32>> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a session is that of a helper of [`spawn_detached`], or of one that is being started: its processes are to
/// outlive us, also where orphans come to us and not to init. For processes that were there before the question.
#[must_use]
pub fn is_helper(session: u32) -> bool {
    sessions().contains(&session)
}

/// Has exec close every open file but the three streams, as far as the kernel can.
fn close_at_exec() {
    let number = linux_raw_sys::general::__NR_close_range;
    // `CLOSE_RANGE_CLOEXEC` of linux/close_range.h.
    const AT_EXEC: libc::c_uint = 1 << 2;
    let (first, last) = (libc::STDERR_FILENO + 1, libc::c_uint::MAX);
    // SAFETY: the call takes three numbers and marks descriptors, which changes nothing until an exec.
    let _ = unsafe { crate::raw::syscall!(number, first, last, AT_EXEC) };
    // Before Linux 5.11 there is no such call or flag; what was opened by Rust is closed at exec all the same.
}

/// Starts `command` as a helper apart from us: as a transient unit of this name where PID 1 is systemd, which ends what
/// a session leaves behind, and by [`spawn_detached`] elsewhere.
///
/// Of the command a unit takes the program and its arguments, and nothing else.
pub fn start_apart(command: &mut Command, unit: &str) -> io::Result<()> {
    if systemd_runs() && start_unit(Path::new("systemd-run"), command, unit) {
        return Ok(());
    }
    spawn_detached(command)
}

/// Whether PID 1 is systemd: sd_booted(3).
fn systemd_runs() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Starts a helper as a transient unit by `systemd-run`; false where that does not work.
fn start_unit(systemd_run: &Path, command: &Command, unit: &str) -> bool {
    let unit = format!("--unit={unit}");
    let started = Command::new(systemd_run)
        // Of the type `exec` the unit has started only when the program runs: with the usual one a program that may not
        // be executed (noexec, a security module) is success. A systemd older than 240 refuses, and is done without.
        .args(["--quiet", "--collect", "--no-ask-password", "--service-type=exec", &unit, "--"])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    started.is_ok_and(|status| status.success())
}

/// Runs `work` in a helper that neither our end nor our terminal's can touch; returns the helper's PID.
///
/// The helper is a copy of this process. That is sound only while no other thread exists, whose locks would
/// stay locked in the copy for ever: with threads about it is refused ([`Error::Threads`]); then use
/// [`spawn_detached`]. The helper ends with the number that `work` returns, or 101 when it panics, and
/// keeps our open files; its streams are /dev/null.
pub fn detach(work: impl FnOnce() -> u8) -> Result<Pid> {
    let threads = thread_count()?;
    if threads != 1 {
        return Err(Error::Threads { threads });
    }
    let (reader, writer) = io::pipe().map_err(|error| Error::of_io("pipe", &error))?;
    match fork().map_err(|errno| Error::of("fork", errno))? {
        Some(middle) => {
            drop(writer);
            wait_for(middle)?;
            read_pid(reader)
        }
        None => {
            // The middle process; nothing below returns into the caller's copy.
            let code = middle(reader, writer, work);
            // SAFETY: ends this copy without the destructors and buffers that belong to the original.
            unsafe { libc::_exit(code.into()) }
        }
    }
}

/// Forks again, reports the helper's PID, and is the helper afterwards. Returns the exit code of the copy.
fn middle(reader: io::PipeReader, mut writer: io::PipeWriter, work: impl FnOnce() -> u8) -> u8 {
    drop(reader);
    if rustix::process::setsid().is_err() {
        return 1;
    }
    match fork() {
        Err(_) => 1,
        Ok(Some(helper)) => {
            let told = writer.write_all(&helper.as_raw_pid().to_le_bytes());
            u8::from(told.is_err())
        }
        Ok(None) => {
            drop(writer);
            if silence_streams().is_err() {
                return 1;
            }
            let work = std::panic::AssertUnwindSafe(work);
            std::panic::catch_unwind(work).unwrap_or(101)
        }
    }
}

fn read_pid(mut reader: io::PipeReader) -> Result<Pid> {
    let mut bytes = [0; 4];
    reader.read_exact(&mut bytes).map_err(|error| Error::of_io("fork", &error))?;
    Pid::from_raw(i32::from_le_bytes(bytes)).ok_or(Error::of("fork", Errno::CHILD))
}

/// Puts /dev/null in the place of the three standard streams.
fn silence_streams() -> io::Result<()> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Forks; `None` in the child.
pub(crate) fn fork() -> std::result::Result<Option<Pid>, Errno> {
    // SAFETY: the callers allow the child only what is sound after a fork: `spawn_detached` async-signal-safe
    // calls up to exec, a warden such calls up to its end, `detach` anything, because it has made sure that no other
    // thread exists.
    let returned = unsafe { libc::fork() };
    check(returned.into())?;
    Ok(Pid::from_raw(returned))
}

pub(crate) fn wait_for(pid: Pid) -> Result<()> {
    loop {
        match rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::of("waitpid", errno)),
        }
    }
}

/// Number of threads of this process. Links of the task folder, so that no text is parsed.
fn thread_count() -> Result<usize> {
    let stat = rustix::fs::stat("/proc/self/task").map_err(|errno| Error::of("stat", errno))?;
    Ok(usize::try_from(stat.st_nlink).unwrap_or(usize::MAX).saturating_sub(2))
}

/// An alarm on the boot clock, which also runs while the machine is suspended.
#[derive(Debug)]
pub struct Alarm {
    fd: OwnedFd,
}

impl Alarm {
    /// An alarm that goes off once, `delay` from now (a delay of zero: at once).
    pub fn after(delay: Duration) -> Result<Self> {
        let fd = rustix::time::timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)
            .map_err(|errno| Error::of("timerfd_create", errno))?;
        // All zero would disarm the timer.
        let delay = delay.max(Duration::from_nanos(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(delay.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(delay.subsec_nanos()),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        rustix::time::timerfd_settime(&fd, TimerfdTimerFlags::empty(), &once)
            .map_err(|errno| Error::of("timerfd_settime", errno))?;
        Ok(Self { fd })
    }

    /// Waits until it goes off, for at most `limit`; true when it did.
    pub fn wait(&self, limit: Option<Duration>) -> Result<bool> {
        crate::process::wait_readable(&self.fd, limit)
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::PathBuf;
    use std::time::Instant;

    use super::*;

    #[test]
    fn an_alarm_goes_off_when_it_should() {
        let start = Instant::now();
        let alarm = Alarm::after(Duration::from_millis(60)).unwrap();
        assert!(!alarm.wait(Some(Duration::from_millis(5))).unwrap());
        assert!(alarm.wait(None).unwrap());
        assert!(start.elapsed() >= Duration::from_millis(60));
        assert!(Alarm::after(Duration::ZERO).unwrap().wait(Some(Duration::from_secs(5))).unwrap());
    }

    #[test]
    fn detach_refuses_while_other_threads_live() {
        // The test harness itself is a second thread.
        assert!(matches!(detach(|| 0), Err(Error::Threads { threads }) if threads > 1));
    }

    #[test]
    fn a_detached_command_is_no_child_of_ours() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        // Fields 4 and 6 of /proc/PID/stat: parent and session.
        let script = format!("cut -d ' ' -f 4,6 /proc/$$/stat > {0}.part; mv {0}.part {0}", told.display());
        spawn_detached(Command::new("sh").args(["-c", &script])).unwrap();
        let text = wait_for_text(&told);
        let ids: Vec<u32> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert_ne!(ids[0], std::process::id(), "adopted by another");
        // Our own may be 0: a session whose leader lives outside our PID namespace has no number here.
        #[expect(clippy::disallowed_methods, reason = "a test asks the kernel itself")]
        let ours = std::fs::read_to_string("/proc/self/stat").unwrap();
        let after_name = ours.rsplit_once(')').unwrap().1;
        let our_session: u32 = after_name.split_whitespace().nth(3).unwrap().parse().unwrap();
        assert_ne!(ids[1], our_session, "in a session of its own");
    }

    #[test]
    fn a_detached_copy_works_on_after_its_origin_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (told, part) = (folder.path().join("told"), folder.path().join("part"));
        // A copy of this process has one thread, as the command has that wants a dead-man timer.
        match fork().unwrap() {
            None => {
                let outcome = detach(|| {
                    let mut file = File::create(&part).expect("the folder is ours");
                    write!(file, "{}", std::process::id()).expect("there is room");
                    u8::from(std::fs::rename(&part, &told).is_err())
                });
                // SAFETY: ends the copy of the test without running the rest of the harness in it.
                unsafe { libc::_exit(outcome.is_err().into()) }
            }
            Some(copy) => wait_for(copy).unwrap(),
        }
        let helper: u32 = wait_for_text(&told).parse().unwrap();
        assert_ne!(helper, std::process::id());
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error() {
        let error = spawn_detached(&mut Command::new("/nonexistent/helper")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    /// A stand-in for systemd-run: notes its words, and ends as it is told.
    fn stand_in(folder: &Path, code: u8) -> PathBuf {
        let path = folder.join("systemd-run");
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$0.words\"\nexit {code}\n");
        // Written by a process of its own: a file that any thread's child still holds open for writing cannot be run.
        let write = r#"printf %s "$1" >"$0" && chmod 755 "$0""#;
        let written = Command::new("sh").args(["-c", write]).arg(&path).arg(script).status();
        assert!(written.expect("a shell").success());
        path
    }

    #[test]
    fn a_transient_unit_runs_the_helper_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("/usr/bin/planish");
        command.args(["watch-confirm", "7", "--state", "/a folder"]);
        assert!(start_unit(&stand_in(folder.path(), 0), &command, "planish-confirm-7-1"));
        let mut words = String::new();
        let told = File::open(folder.path().join("systemd-run.words"));
        told.expect("it ran").read_to_string(&mut words).expect("text");
        let (options, watcher) = words.split_once("--\n").expect("options end before the watcher");
        assert_eq!(watcher, "/usr/bin/planish\nwatch-confirm\n7\n--state\n/a folder\n");
        // Without --collect a unit that failed would keep its name; a password can be asked of nobody.
        assert!(options.contains("--collect\n") && options.contains("--no-ask-password\n"), "{options}");
        assert!(options.contains("--unit=planish-confirm-7-1\n"), "{options}");
        // Or a program that cannot be executed would pass for one that keeps watch.
        assert!(options.contains("--service-type=exec\n"), "{options}");
    }

    #[test]
    fn where_no_unit_can_be_made_it_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let command = Command::new("/usr/bin/planish");
        assert!(!start_unit(&stand_in(folder.path(), 1), &command, "planish-confirm-7-1"));
        assert!(!start_unit(&folder.path().join("absent"), &command, "planish-confirm-7-1"));
    }

    #[test]
    fn the_session_of_a_detached_command_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let script = format!("cut -d ' ' -f 6 /proc/$$/stat > {0}.part; mv {0}.part {0}", told.display());
        spawn_detached(Command::new("sh").args(["-c", &script])).unwrap();
        let session: u32 = wait_for_text(&told).trim().parse().unwrap();
        assert!(is_helper(session) && !is_helper(std::process::id()));
    }

    #[test]
    fn a_detached_command_has_no_file_of_ours() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        // A file that an exec leaves open, as those are that a shell hands down.
        let file = File::open(folder.path()).unwrap();
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        let script = format!("ls -l /proc/$$/fd > {0}.part; mv {0}.part {0}", told.display());
        spawn_detached(Command::new("sh").args(["-c", &script])).unwrap();
        let text = wait_for_text(&told);
        if !text.contains(&format!("{}\n", folder.path().display())) {
            return;
        }
        let kernel = rustix::system::uname();
        let old = ["4.", "5.1.", "5.2.", "5.3.", "5.4.", "5.5.", "5.6.", "5.7.", "5.8.", "5.9.", "5.10."];
        let release = kernel.release().to_string_lossy();
        assert!(old.iter().any(|old| release.starts_with(old)), "Linux {release}: {text}");
    }

    fn wait_for_text(path: &Path) -> String {
        let start = Instant::now();
        loop {
            if let Ok(mut file) = File::open(path) {
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                return text;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "the helper never wrote");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
