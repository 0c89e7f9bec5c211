//! `/proc/PID/stat`: who a process is, and whether it is still the same one.
//!
//! Source: Documentation/filesystems/proc.rst, table 1-4. The name stands in parentheses and may hold anything, so
//! that fields count from the last `)`.

/// Kernel threads have no memory of their own (PF_KTHREAD in include/linux/sched.h).
const PF_KTHREAD: u64 = 0x0020_0000;

/// What /proc/PID/stat, or that of one thread, says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Name of the program, at most 15 bytes.
    pub name: String,
    /// PID of its parent.
    pub parent: u32,
    /// Whether it has ended, and waits for its parent to take note of it; of a process its first thread, while others
    /// may go on.
    pub has_ended: bool,
    /// Whether it is a thread of the kernel.
    pub is_kernel_thread: bool,
    /// CPU time that it has used, in clock ticks.
    pub cpu_ticks: u64,
    /// Page faults that took no disk.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// Number of threads.
    pub threads: u32,
    /// Resident pages, without those of a pool.
    pub resident_pages: u64,
    /// When it began, in clock ticks since boot: with the PID it names a process for good.
    pub start_ticks: u64,
    /// Where its code and its stack begin: another program has been executed when they differ. 0 where we may not
    /// know.
    pub layout: (u64, u64),
    /// The CPU that it ran on last; `None` where untold.
    pub cpu: Option<u32>,
}

impl Stat {
    /// Whether `self` and `other` are one process that runs one program.
    pub fn is_same(&self, other: &Self) -> bool {
        self.start_ticks == other.start_ticks && self.layout == other.layout
    }
}

/// Reads the text of stat; `None` when it is none. Fields beyond its end are 0.
pub fn parse_stat(text: &str) -> Option<Stat> {
    let (head, tail) = text.trim_end().rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    // Field 3 of the manual is the first one here.
    let field = |number: usize| fields.get(number - 3).and_then(|word| word.parse::<u64>().ok());
    let parent = u32::try_from(field(4)?).ok()?;
    let or_zero = |number| field(number).unwrap_or(0);
    Some(Stat {
        name: name.to_owned(),
        parent,
        has_ended: fields[0].starts_with(['Z', 'X']),
        is_kernel_thread: or_zero(9) & PF_KTHREAD != 0,
        cpu_ticks: or_zero(14).saturating_add(or_zero(15)),
        minor_faults: or_zero(10),
        major_faults: or_zero(12),
        threads: u32::try_from(or_zero(20)).unwrap_or(0),
        resident_pages: or_zero(24),
        start_ticks: or_zero(22),
        layout: (or_zero(26), or_zero(28)),
        cpu: field(39).and_then(|cpu| u32::try_from(cpu).ok()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = parse_stat(
            "77 (a) R (b) S 4 77 77 0 -1 4194304 1 2 3 4 50 7 0 0 20 0 3 0 9000 1 2 3 111 4 222 \
             0 0 0 0 0 0 0 0 0 17 6\n",
        )
        .unwrap();
        assert_eq!((stat.name.as_str(), stat.parent, stat.cpu_ticks), ("a) R (b", 4, 57));
        assert_eq!((stat.start_ticks, stat.layout, stat.cpu), (9000, (111, 222), Some(6)));
        assert!(!stat.is_kernel_thread && !stat.has_ended);
        assert!(parse_stat("77 (R) Z 4 77").unwrap().has_ended);
    }

    #[test]
    fn a_kernel_thread_is_known_by_its_flag() {
        assert!(parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0").unwrap().is_kernel_thread);
        assert!(parse_stat("2 kthreadd S 0").is_none() && parse_stat("").is_none());
    }

    #[test]
    fn another_program_or_another_start_is_another_process() {
        let stat = Stat { start_ticks: 5, layout: (1, 2), ..Stat::default() };
        assert!(stat.is_same(&Stat { cpu_ticks: 9, ..stat.clone() }));
        assert!(!stat.is_same(&Stat { start_ticks: 6, ..stat.clone() }), "the PID belongs to another now");
        assert!(!stat.is_same(&Stat { layout: (3, 2), ..stat.clone() }), "it has executed a program");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([0-9]{1,21} |\\(|\\)|.){0,48}") {
            let _ = parse_stat(&text);
        }
    }
}
