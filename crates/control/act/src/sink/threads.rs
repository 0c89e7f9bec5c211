//! The schedule of a thread of the kernel: a call for each, and found anew each time.

use std::io;

use planish_host::{Host, threads};
use planish_sys::schedule::Schedule;
use rustix::io::Errno;

/// The schedule of the thread of a place; `None` for another place.
pub(super) fn read(place: &str) -> Option<io::Result<String>> {
    threads::at(place)?;
    Some(threads::find(&Host::live(), place).and_then(threads::text))
}

/// Schedules the thread of a place; `None` for another place.
pub(super) fn write(place: &str, value: &str) -> Option<io::Result<()>> {
    threads::at(place)?;
    Some(set(place, value))
}

fn set(place: &str, value: &str) -> io::Result<()> {
    let wanted = Schedule::parse(value).ok_or(Errno::INVAL)?;
    let thread = threads::find(&Host::live(), place)?;
    // What could not be put back is not taken away.
    Schedule::parse(&threads::text(thread)?).ok_or(Errno::OPNOTSUPP)?;
    wanted.set(thread).map_err(|error| match error.errno() {
        Some(Errno::SRCH) => Errno::NOENT.into(),
        errno => errno.unwrap_or(Errno::IO).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
