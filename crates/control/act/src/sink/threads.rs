//! The schedule of a thread of the kernel: a call for each, and found anew each time.

use std::io;

use planish_host::{Host, threads};
use planish_sys::schedule::Schedule;
use rustix::io::Errno;
use rustix::process::Pid;

/// The schedule of the thread of a place; `None` for another place.
pub(super) fn read(place: &str) -> Option<io::Result<String>> {
    threads::at(place)?;
    Some(threads::find(&Host::live(), place).and_then(threads::text))
}

/// Schedules the thread of a place; `None` for another place.
pub(super) fn write(place: &str, value: &str) -> Option<io::Result<()>> {
    threads::at(place)?;
    let find = || threads::find(&Host::live(), place);
    Some(set(value, find, |thread| threads::is_still(&Host::live(), place, thread)))
}

/// A thread is named by its number, which may be another's between the look and the call, where it ended in between:
/// nothing holds it. So it is looked for once more behind the call, and told where it was not that thread any more.
fn set(
    value: &str,
    find: impl FnOnce() -> io::Result<Pid>,
    is_still: impl FnOnce(Pid) -> bool,
) -> io::Result<()> {
    let wanted = Schedule::parse(value).ok_or(Errno::INVAL)?;
    let thread = find()?;
    // What could not be put back is not taken away.
    Schedule::parse(&threads::text(thread)?).ok_or(Errno::OPNOTSUPP)?;
    wanted.set(thread).map_err(|error| match error.errno() {
        Some(Errno::SRCH) => Errno::NOENT.into(),
        errno => io::Error::from(errno.unwrap_or(Errno::IO)),
    })?;
    if is_still(thread) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the thread ended meanwhile; who has its number {} by now may have been set: look at chrt -p {0}",
        thread.as_raw_pid()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_that_thread_any_more_is_told() {
        // A thread of the test's own, which is ordinary and stays so.
        std::thread::spawn(|| {
            let own = rustix::thread::gettid();
            set("other", || Ok(own), |_| true).expect("the same thread");
            let error = set("other", || Ok(own), |_| false).expect_err("another one");
            assert!(error.to_string().contains("may have been set"), "{error}");
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn only_threads_are_scheduled_and_only_by_a_schedule() {
        // A CPU that cannot be: nothing of this machine is set, whatever comes of it.
        let place = "/planish/threads/ksoftirqd/99999";
        for value in ["", "fifo", "fifo:100", "deadline", "2"] {
            let error = write(place, value).expect("a thread's place").expect_err("no schedule");
            assert_eq!(Errno::from_io_error(&error), Some(Errno::INVAL), "{value}");
        }
        let gone = write(place, "fifo:1").expect("a thread's place").expect_err("no such thread");
        assert_eq!(Errno::from_io_error(&gone), Some(Errno::NOENT));
        assert!(
            write("/planish/threads/kworker/0", "fifo:1").is_none()
                && read("/proc/sys/vm/swappiness").is_none()
        );
    }
}
