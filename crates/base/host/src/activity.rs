//! How busy a host says that it is: the running totals in `/proc`, as text that was read before.
//!
//! Pure: whoever compares two moments reads the file twice. Source: Documentation/filesystems/proc.rst (stat, loadavg,
//! interrupts, softirqs), Documentation/accounting/psi.rst.

use std::collections::BTreeMap;

/// Times of processors, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTicks {
    /// Everything.
    pub total: u64,
    /// Idle, and idle while waiting for a device.
    pub idle: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

/// All processors together, of `/proc/stat`. Guest time is part of user time there and is not counted twice.
pub fn cpu_ticks(stat: &str) -> Option<CpuTicks> {
    ticks(stat.lines().next()?.strip_prefix("cpu ")?)
}

/// One processor, of `/proc/stat`; none while it is offline.
pub fn cpu_ticks_of(stat: &str, cpu: u32) -> Option<CpuTicks> {
    let name = format!("cpu{cpu} ");
    ticks(stat.lines().find_map(|line| line.strip_prefix(&name))?)
}

fn ticks(fields: &str) -> Option<CpuTicks> {
    let fields: Vec<u64> = fields.split_whitespace().map_while(|field| field.parse().ok()).take(8).collect();
    let steal = *fields.get(7)?;
    let total = fields.iter().fold(0, |sum: u64, field| sum.saturating_add(*field));
    Some(CpuTicks { total, idle: fields[3].saturating_add(fields[4]), steal })
}

/// Tasks that run or wait for a processor at this moment, of `/proc/stat`; the one that reads is among them.
pub fn runnable(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("procs_running "))?.trim().parse().ok()
}

/// The load of the last minute, of `/proc/loadavg`.
pub fn load_1m(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok().filter(|load: &f64| load.is_finite())
}

/// The running total of `some` in a file of `/proc/pressure`, in microseconds.
pub fn waited_us(pressure: &str) -> Option<u64> {
    stalled_us(pressure, "some")
}

/// The running total of `some` or of `full` in a file of `/proc/pressure`, in microseconds.
pub fn stalled_us(pressure: &str, share: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.split(' ').next() == Some(share))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

/// The share of the last ten seconds in which some task waited, in percent, of a file of `/proc/pressure`.
pub fn waited_avg10(pressure: &str) -> Option<f64> {
    let line = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}

/// `/proc/interrupts` or `/proc/softirqs`: what has been counted on each CPU since boot.
///
/// ```text
///            CPU0       CPU2            <- only those that are online; of softirqs all that are possible
///  24:          1          0  IO-APIC   5-edge      ACPI:Ged
/// LOC:     218507     228303   Local timer interrupts
/// ERR:          0                       <- one number for the machine: of no CPU, and left out
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerCpu {
    cpus: Vec<u32>,
    rows: BTreeMap<String, (Vec<u64>, String)>,
}

impl PerCpu {
    /// Reads a text. Lines that cannot be understood are left out; without a line of CPUs there are none.
    pub fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let number = |word: &str| word.strip_prefix("CPU")?.parse().ok();
        let head = lines.next().unwrap_or_default().split_whitespace();
        let Some(cpus) = head.map(number).collect::<Option<Vec<u32>>>().filter(|cpus| !cpus.is_empty())
        else {
            return Self::default();
        };
        let row = |line: &str| {
            let (name, rest) = line.split_once(':')?;
            let mut words = rest.split_whitespace();
            let counts: Option<Vec<u64>> =
                cpus.iter().map(|_| words.next().and_then(|word| word.parse().ok())).collect();
            let told = words.collect::<Vec<_>>().join(" ");
            Some((name.trim().to_owned(), (counts?, told)))
        };
        let rows = lines.filter_map(row).filter(|(name, _)| !name.is_empty()).collect();
        Self { cpus, rows }
    }

    /// The CPUs that it counts for.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Every row: its name (`24`, `LOC`, `TIMER`) and what the kernel says of it.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rows.iter().map(|(name, (_, told))| (name.as_str(), told.as_str()))
    }

    /// What a row has counted on a CPU.
    pub fn count(&self, row: &str, cpu: u32) -> Option<u64> {
        let column = self.cpus.iter().position(|&it| it == cpu)?;
        self.rows.get(row)?.0.get(column).copied()
    }

    /// What each row has counted on a CPU since `before`, without those that have not moved. A row that is new began at
    /// nothing; a counter that went back (an interrupt that was given to another device) has counted nothing.
    pub fn growth<'a>(&'a self, before: &'a Self, cpu: u32) -> impl Iterator<Item = (&'a str, u64)> + 'a {
        let grown = move |name: &'a str| {
            let now = self.count(name, cpu)?;
            let growth = now.saturating_sub(before.count(name, cpu).unwrap_or(0));
            (growth > 0).then_some((name, growth))
        };
        self.rows().filter_map(move |(name, _)| grown(name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_kernel_s_lines_are_read() {
        let stat = "cpu  10 1 2 80 3 0 0 4 7 0\ncpu0 1 1\ncpu1 10 0 0 5 1 0 0 2 0 0\nprocs_running 3\n";
        assert_eq!(cpu_ticks(stat), Some(CpuTicks { total: 100, idle: 83, steal: 4 }));
        assert_eq!(cpu_ticks_of(stat, 1), Some(CpuTicks { total: 18, idle: 6, steal: 2 }));
        assert_eq!((cpu_ticks_of(stat, 0), cpu_ticks_of(stat, 7)), (None, None));
        assert_eq!(cpu_ticks("cpu  10 1 5\n"), None);
        assert_eq!(cpu_ticks(""), None);
        assert_eq!((runnable(stat), runnable("procs 1")), (Some(3), None));
        assert_eq!(
            (load_1m("2.04 1.09 0.46 3/106 7250\n"), load_1m("nan"), load_1m("")),
            (Some(2.04), None, None)
        );
        assert_eq!(
            waited_us("some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull total=9\n"),
            Some(1234)
        );
        assert_eq!((waited_us("full total=9"), stalled_us("full total=9\n", "full")), (None, Some(9)));
        assert_eq!(waited_avg10("some avg10=1.25 avg60=0.00 total=1\nfull avg10=9.00\n"), Some(1.25));
        assert_eq!(waited_avg10("full avg10=9.00"), None);
    }

    const INTERRUPTS: &str = "           CPU0       CPU2       \n \
         24:          1          0  IO-APIC   5-edge      ACPI:Ged\n\
         LOC:     218507     228303   Local timer interrupts\n\
         ERR:          0\n";

    #[test]
    fn a_cpu_that_is_offline_shifts_no_column() {
        let counts = PerCpu::parse(INTERRUPTS);
        assert_eq!(counts.cpus(), [0, 2]);
        assert_eq!(
            (counts.count("LOC", 2), counts.count("LOC", 1), counts.count("24", 0)),
            (Some(228303), None, Some(1))
        );
        let rows: Vec<_> = counts.rows().collect();
        assert_eq!(rows, [("24", "IO-APIC 5-edge ACPI:Ged"), ("LOC", "Local timer interrupts")]);
    }

    #[test]
    fn what_moved_between_two_moments_is_told() {
        let before = PerCpu::parse(INTERRUPTS);
        let later = INTERRUPTS.replace("228303", "228553").replace(" 24: ", " 31: ");
        let later = PerCpu::parse(&later);
        assert_eq!(later.growth(&before, 2).collect::<Vec<_>>(), [("LOC", 250)]);
        // A new row counts from nothing; one that is gone counts no more.
        assert_eq!(later.growth(&before, 0).collect::<Vec<_>>(), [("31", 1)]);
        assert_eq!(before.growth(&later, 2).count(), 0, "backwards is nothing");
    }

    #[test]
    fn softirqs_have_the_same_form() {
        let text = "                    CPU0       CPU1       \n      TIMER:      30545      35858\n";
        let counts = PerCpu::parse(text);
        assert_eq!((counts.count("TIMER", 1), counts.rows().next()), (Some(35858), Some(("TIMER", ""))));
    }

    #[test]
    fn odd_text_counts_nothing() {
        for text in ["", "CPU0 x\nLOC: 1 2", "CPUx\nLOC: 1", "CPU0 CPU1\nLOC: 1", "CPU0\nLOC 1", "CPU0\n: 1"]
        {
            let counts = PerCpu::parse(text);
            assert_eq!(counts.count("LOC", 0), None, "{text:?}");
            assert_eq!(counts.rows().count(), 0, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn counts_survive_the_text(
            counts in proptest::collection::vec((0_u64..u64::MAX, 0_u64..u64::MAX), 0..20),
            junk in ".{0,80}",
        ) {
            let mut text = "  CPU3   CPU11\n".to_owned();
            for (row, (first, second)) in counts.iter().enumerate() {
                text.push_str(&format!("{row}: {first} {second} PCI-MSI eth0:{row}\n"));
            }
            // What cannot be understood spoils nothing above it.
            text.push_str(&junk.replace(':', ""));
            let read = PerCpu::parse(&text);
            prop_assert_eq!(read.rows().count(), counts.len());
            for (row, (first, second)) in counts.iter().enumerate() {
                prop_assert_eq!(read.count(&row.to_string(), 3), Some(*first));
                prop_assert_eq!(read.count(&row.to_string(), 11), Some(*second));
            }
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC{0,200}", lines in "(CPU[0-9]{1,12} ?){0,4}\n.{0,90}") {
            for text in [&text, &lines] {
                let read = PerCpu::parse(text);
                let _ = read.growth(&read, 0).count();
                let _ = (cpu_ticks(text), runnable(text), load_1m(text), waited_us(text));
            }
        }
    }
}
