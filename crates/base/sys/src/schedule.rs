//! How the kernel schedules a thread, in full, and as one text: `other`, `fifo:2`, `other:-5 reset-on-fork`.
//!
//! rustix has neither of the two calls, and the older ones (`sched_setscheduler`, `setpriority`) set the class and the
//! nice value one after the other, so that a kill between them would leave a third thing. These set all at once
//! (`sched_setattr(2)`, Linux 3.14). A nice value that counts for nothing at the time, of a realtime thread, is kept
//! too: `fifo:1 nice:-5`. The kernel takes no such one with the class, and that of an idle thread neither, so that they
//! come by a call of their own, behind it.

use std::fmt;

use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::{Error, Result};
use crate::raw::syscall;

/// Classes by their numbers (include/uapi/linux/sched.h), with whether a thread of them has a nice value. Deadlines
/// (6) are none of them: they are more than a number, and no thread that is bound to its CPU can have one.
const CLASSES: [(u32, &str, bool); 6] = [
    (0, "other", true),
    (1, "fifo", false),
    (2, "rr", false),
    (3, "batch", true),
    (5, "idle", true),
    (7, "ext", true),
];

/// `SCHED_FLAG_RESET_ON_FORK`: children begin as ordinary threads. The other flags of a thread tell what its call
/// leaves alone, and the kernel shows none of them.
const RESET_ON_FORK: u64 = 1;

/// What stands behind the class where children begin as ordinary threads.
const RESETS: &str = " reset-on-fork";

/// What stands before the nice value of a realtime thread, where it is not 0.
const NICE: &str = " nice:";

/// The class, priority and nice value of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    policy: u32,
    priority: u32,
    nice: i32,
    resets: bool,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = CLASSES.iter().find(|(number, ..)| *number == self.policy);
        match class {
            Some((_, name, true)) if self.nice == 0 => f.write_str(name)?,
            Some((_, name, true)) => write!(f, "{name}:{}", self.nice)?,
            Some((_, name, false)) if self.nice == 0 => write!(f, "{name}:{}", self.priority)?,
            Some((_, name, false)) => write!(f, "{name}:{}{NICE}{}", self.priority, self.nice)?,
            None => write!(f, "class {}", self.policy)?,
        }
        if self.resets { f.write_str(RESETS) } else { Ok(()) }
    }
}

impl Schedule {
    /// What a text says, as it is shown; `None` for a class that cannot be set back, and for what is no such text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (class, resets) = text.strip_suffix(RESETS).map_or((text, false), |class| (class, true));
        let (class, hidden) =
            class.split_once(NICE).map_or((class, None), |(class, nice)| (class, Some(nice)));
        let (name, number) =
            class.split_once(':').map_or((class, None), |(name, number)| (name, Some(number)));
        let (policy, _, is_nice) = *CLASSES.iter().find(|(_, known, _)| *known == name)?;
        let of = |text: Option<&str>| text.map_or(Some(0), |text| text.parse::<i32>().ok());
        let (number, hidden) = (of(number)?, of(hidden)?);
        let (priority, nice) = if is_nice { (0, number) } else { (number, hidden) };
        let is_legal = if is_nice { hidden == 0 } else { (1..=99).contains(&priority) };
        let priority = priority.unsigned_abs();
        (is_legal && (-20..=19).contains(&nice)).then_some(Self { policy, priority, nice, resets })
    }

    /// How a thread is scheduled now.
    ///
    /// # Errors
    /// `ESRCH` for a thread that is gone.
    pub fn of(tid: Pid) -> Result<Self> {
        let mut attr = libc::sched_attr {
            size: 0,
            sched_policy: 0,
            sched_flags: 0,
            sched_nice: 0,
            sched_priority: 0,
            sched_runtime: 0,
            sched_deadline: 0,
            sched_period: 0,
        };
        let size = size_of_val(&attr);
        // SAFETY: the kernel writes at most `size` bytes at `attr`, which has that many and outlives the call; all of
        // its fields are numbers, for which any bytes are values.
        let outcome = unsafe { syscall!(libc::SYS_sched_getattr, tid.as_raw_pid(), &raw mut attr, size, 0) };
        outcome.map_err(|errno| Error::of("sched_getattr", errno))?;
        // Of a realtime thread the call tells no nice value.
        let nice = if attr.sched_priority == 0 { attr.sched_nice } else { nice(tid)? };
        Ok(Self {
            policy: attr.sched_policy,
            priority: attr.sched_priority,
            nice,
            resets: attr.sched_flags & RESET_ON_FORK != 0,
        })
    }

    /// Schedules a thread so. What its utilisation is held to stays as it is.
    ///
    /// # Errors
    /// `ESRCH` for a thread that is gone, `EPERM` without the right (CAP_SYS_NICE).
    pub fn set(self, tid: Pid) -> Result<()> {
        let attr = libc::sched_attr {
            size: size_of::<libc::sched_attr>() as u32,
            sched_policy: self.policy,
            sched_flags: if self.resets { RESET_ON_FORK } else { 0 },
            sched_nice: self.nice,
            sched_priority: self.priority,
            sched_runtime: 0,
            sched_deadline: 0,
            sched_period: 0,
        };
        if !CLASSES.iter().any(|(number, ..)| *number == self.policy) {
            return Err(Error::of("sched_setattr", Errno::INVAL));
        }
        // SAFETY: the kernel reads `attr.size` bytes at `attr`, which is as large as it says and outlives the call.
        let outcome = unsafe { syscall!(libc::SYS_sched_setattr, tid.as_raw_pid(), &raw const attr, 0) };
        outcome.map_err(|errno| Error::of("sched_setattr", errno))?;
        if nice(tid)? != self.nice {
            rustix::process::setpriority_process(Some(tid), self.nice)
                .map_err(|errno| Error::of("setpriority", errno))?;
        }
        Ok(())
    }
}

/// The nice value of a thread, whether it counts or not. The call takes threads as it takes processes.
fn nice(tid: Pid) -> Result<i32> {
    rustix::process::getpriority_process(Some(tid)).map_err(|errno| Error::of("getpriority", errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_and_a_schedule_are_the_same() {
        for text in [
            "other",
            "other:-5",
            "batch:3",
            "idle",
            "fifo:1",
            "fifo:99",
            "rr:7",
            "fifo:2 reset-on-fork",
            "fifo:1 nice:-5",
        ] {
            let read = Schedule::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(read.to_string(), text);
        }
        for none in [
            "",
            "fifo",
            "fifo:0",
            "fifo:100",
            "rr:-1",
            "other:20",
            "class 6",
            "deadline",
            "fifo:2 x",
            "other nice:3",
            "FIFO:2",
        ] {
            assert_eq!(Schedule::parse(none), None, "{none}");
        }
    }

    /// Threads of its own, which end with the test.
    #[test]
    fn a_thread_is_scheduled_as_asked_and_back() {
        let outcome = std::thread::spawn(|| {
            let own = rustix::thread::gettid();
            let before = Schedule::of(own).expect("our own");
            for wanted in ["batch:5", "idle:7", "fifo:1 nice:3 reset-on-fork", "rr:2", "idle:2", "other"] {
                let wanted = Schedule::parse(wanted).expect("legal");
                match wanted.set(own) {
                    Err(error) if error.errno() == Some(Errno::PERM) => {
                        planish_skip::skip("schedule", "a realtime class takes CAP_SYS_NICE");
                        continue;
                    }
                    set => set.expect("our own thread"),
                }
                assert_eq!(Schedule::of(own).expect("our own"), wanted);
            }
            let back = before.set(own);
            (before, back.and_then(|()| Schedule::of(own)))
        });
        let (before, after) = outcome.join().expect("no panic");
        match after {
            // Who has no right cannot lower a nice value again.
            Err(error) if error.errno() == Some(Errno::PERM) => {}
            after => assert_eq!(after.expect("our own"), before),
        }
    }

    #[test]
    fn a_thread_that_is_gone_is_told() {
        let gone = std::thread::spawn(rustix::thread::gettid).join().expect("a thread");
        // Its number may be another's at once, on a machine with much to do: then there is nothing to ask.
        if let Err(error) = Schedule::of(gone) {
            assert_eq!(error.errno(), Some(Errno::SRCH));
        }
    }
}
