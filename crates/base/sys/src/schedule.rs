//! How the kernel schedules a thread, in full, and as one text: `other`, `fifo:2`, `other:-5 reset-on-fork`.
//!
//! One call, so that a kill leaves no third thing. Where the nice value stays, that is the older one
//! (`sched_setscheduler(2)`): it keeps the nice value and, from Linux 6.12 on, the slice that an ordinary thread was
//! given (`sched_runtime`), also while the thread has another class, where nobody can ask for it (`_sched_setscheduler`
//! of kernel/sched/syscalls.c). The newer one (`sched_setattr(2)`, Linux 3.14) would take both away; it is for an
//! ordinary thread that gets another nice value with its class, and is told the slice that the thread shows.
//!
//! A nice value that counts for nothing at the time, of a realtime thread, is told and kept too: `fifo:1 nice:-5`.
//! Where it has to change, it does so while it counts for nothing, before the class: a kill between leaves the same
//! schedule.

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

/// What the older call takes beside the class for that flag (include/uapi/linux/sched.h).
const RESET_ON_FORK_OF_CLASS: u32 = 0x4000_0000;

/// The class, priority and nice value of a thread. A realtime one with a nice value of 0 says nothing of it, and leaves
/// the one that a thread has.
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

    /// The realtime priority; 0 for a thread without one.
    #[must_use]
    pub fn priority(self) -> u32 {
        self.priority
    }

    /// How a thread is scheduled now.
    ///
    /// # Errors
    /// `ESRCH` for a thread that is gone.
    pub fn of(tid: Pid) -> Result<Self> {
        let attr = attributes(tid)?;
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
        if !CLASSES.iter().any(|(number, ..)| *number == self.policy) {
            return Err(Error::of("sched_setscheduler", Errno::INVAL));
        }
        let (now, hidden) = (attributes(tid)?, nice(tid)?);
        let says_none = self.priority > 0 && self.nice == 0;
        if says_none || self.nice == hidden {
            return self.set_class(tid);
        }
        if is_ordinary(self.policy) && now.sched_priority == 0 {
            return self.set_whole(tid, slice_of(&now)?);
        }
        rustix::process::setpriority_process(Some(tid), self.nice)
            .map_err(|errno| Error::of("setpriority", errno))?;
        self.set_class(tid)
    }

    /// Class and priority, and nothing else.
    fn set_class(self, tid: Pid) -> Result<()> {
        let policy = self.policy | if self.resets { RESET_ON_FORK_OF_CLASS } else { 0 };
        let priority = self.priority.cast_signed();
        // SAFETY: of the parameters the kernel reads one number, which outlives the call.
        let outcome =
            unsafe { syscall!(libc::SYS_sched_setscheduler, tid.as_raw_pid(), policy, &raw const priority) };
        outcome.map(|_| ()).map_err(|errno| Error::of("sched_setscheduler", errno))
    }

    /// All of it, with the slice of an ordinary thread; 0 for the kernel's own.
    fn set_whole(self, tid: Pid, slice_ns: u64) -> Result<()> {
        let attr = libc::sched_attr {
            size: size_of::<libc::sched_attr>() as u32,
            sched_policy: self.policy,
            sched_flags: if self.resets { RESET_ON_FORK } else { 0 },
            sched_nice: self.nice,
            sched_priority: self.priority,
            sched_runtime: slice_ns,
            sched_deadline: 0,
            sched_period: 0,
        };
        // SAFETY: the kernel reads `attr.size` bytes at `attr`, which is as large as it says and outlives the call.
        let outcome = unsafe { syscall!(libc::SYS_sched_setattr, tid.as_raw_pid(), &raw const attr, 0) };
        outcome.map(|_| ()).map_err(|errno| Error::of("sched_setattr", errno))
    }
}

/// Whether the nice value of a class counts, and its slice (`fair_policy` of kernel/sched/sched.h).
fn is_ordinary(policy: u32) -> bool {
    [0, 3, 7].contains(&policy)
}

/// What the kernel tells of a thread.
fn attributes(tid: Pid) -> Result<libc::sched_attr> {
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
    // SAFETY: the kernel writes at most `size` bytes at `attr`, which has that many and outlives the call; all of its
    // fields are numbers, for which any bytes are values.
    let outcome = unsafe { syscall!(libc::SYS_sched_getattr, tid.as_raw_pid(), &raw mut attr, size, 0) };
    outcome.map_err(|errno| Error::of("sched_getattr", errno))?;
    Ok(attr)
}

/// The slice that an ordinary thread was given; 0 for the kernel's own, which all others show as well, ours among them.
fn slice_of(attr: &libc::sched_attr) -> Result<u64> {
    let own = attributes(rustix::thread::gettid())?.sched_runtime;
    Ok(if is_ordinary(attr.sched_policy) && attr.sched_runtime != own { attr.sched_runtime } else { 0 })
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
            for (wanted, shown) in [
                ("batch:5", "batch:5"),
                ("idle:7", "idle:7"),
                ("fifo:1 nice:3 reset-on-fork", "fifo:1 nice:3 reset-on-fork"),
                ("rr:2", "rr:2 nice:3"),
                ("idle:2", "idle:2"),
                ("other", "other"),
            ] {
                let wanted = Schedule::parse(wanted).expect("legal");
                match wanted.set(own) {
                    Err(error) if error.errno() == Some(Errno::PERM) => {
                        planish_skip::skip("schedule", "a realtime class takes CAP_SYS_NICE");
                        continue;
                    }
                    set => set.expect("our own thread"),
                }
                assert_eq!(Schedule::of(own).expect("our own").to_string(), shown);
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
    fn a_slice_and_a_nice_value_outlive_another_class() {
        const SLICE_NS: u64 = 7_000_000;
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        // A thread that waits, and is scheduled by another one, as those of the kernel are.
        let waits = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid()).expect("the test listens");
            let _ = ended.recv();
        });
        let thread = told.recv().expect("it tells");
        let slice = || attributes(thread).expect("it waits").sched_runtime;
        let start = Schedule::of(thread).expect("it waits");
        start.set_whole(thread, SLICE_NS).expect("an ordinary thread may have any slice");
        if slice() != SLICE_NS {
            return planish_skip::skip("slice", "this kernel keeps no slice of a thread");
        }
        match Schedule::parse("fifo:2").expect("legal").set(thread) {
            Err(error) if error.errno() == Some(Errno::PERM) => {
                planish_skip::skip("slice", "a realtime class takes CAP_SYS_NICE");
            }
            set => {
                set.expect("it waits");
                start.set(thread).expect("back");
                assert_eq!(slice(), SLICE_NS, "over another class");
                Schedule::parse("batch:5").expect("legal").set(thread).expect("another nice value");
                start.set(thread).expect("back");
                assert_eq!(slice(), SLICE_NS, "over another nice value");
                assert_eq!(Schedule::of(thread).expect("it waits"), start);
            }
        }
        drop(end);
        waits.join().expect("no panic");
    }

    #[test]
    fn a_nice_value_that_does_not_count_stays_where_none_is_said() {
        let outcome = std::thread::spawn(|| {
            let own = rustix::thread::gettid();
            let set = |text: &str| Schedule::parse(text).expect("legal").set(own);
            set("other:4").expect("a higher nice value is for everybody");
            if set("fifo:2").is_err() {
                return None;
            }
            let hidden = Schedule::of(own).expect("our own").to_string();
            set("other:4").expect("back");
            Some(hidden)
        });
        match outcome.join().expect("no panic") {
            None => planish_skip::skip("nice", "a realtime class takes CAP_SYS_NICE"),
            Some(hidden) => assert_eq!(hidden, "fifo:2 nice:4"),
        }
    }

    #[test]
    fn a_thread_that_is_gone_is_told() {
        let gone = std::thread::spawn(rustix::thread::gettid).join().expect("a thread");
        match Schedule::of(gone) {
            Err(error) => assert_eq!(error.errno(), Some(Errno::SRCH)),
            Ok(_) => {
                planish_skip::skip("schedule", "the number of the thread that ended is another's already")
            }
        }
    }
}
