//! Who interrupted a CPU: the kernel's own counters between two moments.

use std::time::Instant;

use planish_host::Host;
use planish_host::activity::{PerCpu, cpu_ticks_of};
use planish_sorted::SortSmall as _;

use crate::figure::{Figure, Spread};

/// The kernel's counters at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    at: Instant,
    interrupts: PerCpu,
    softirqs: PerCpu,
    stat: String,
}

impl Totals {
    pub(crate) fn read(host: &Host) -> Self {
        let text = |path: &str| host.read(path).unwrap_or_default();
        Self {
            interrupts: PerCpu::parse(&text("/proc/interrupts")),
            softirqs: PerCpu::parse(&text("/proc/softirqs")),
            stat: text("/proc/stat"),
            at: Instant::now(),
        }
    }
}

/// One row of the kernel's counters.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// `irq` or `softirq`.
    pub kind: &'static str,
    /// The row: `LOC`, `24`, `TIMER`.
    pub name: String,
    /// What the kernel says of it.
    pub told: String,
    /// How often, in all rounds.
    pub count: u64,
}

/// Who interrupted, while a thread was spinning on the CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceFigures {
    /// Time between the readings, in all rounds.
    pub seconds: f64,
    /// Interrupts of the local timer in a second; none where the kernel shows no counters.
    pub ticks_per_s: Option<Figure>,
    /// All other interrupts in a second, those between CPUs among them.
    pub irqs_per_s: Option<Figure>,
    /// Softirqs in a second.
    pub softirqs_per_s: Option<Figure>,
    /// Share of its time that the hypervisor took.
    pub steal_share: Option<Figure>,
    /// The rows behind it, most first.
    pub sources: Vec<Source>,
}

/// Whether a row of `/proc/interrupts` is the timer of the CPU: `LOC` on x86, `arch_timer` on Arm.
fn is_local_timer(name: &str, told: &str) -> bool {
    name == "LOC" || told.contains("arch_timer")
}

fn seconds((before, after): &(Totals, Totals)) -> f64 {
    after.at.duration_since(before.at).as_secs_f64().max(1e-9)
}

/// Interrupts of a CPU in a second between two readings: those of its timer, or all others.
pub(crate) fn interrupts_per_s(round: &(Totals, Totals), cpu: u32, timer: bool) -> Option<f64> {
    let (before, after) = (&round.0.interrupts, &round.1.interrupts);
    // Without a column for the CPU nothing was counted, which is not the same as nothing having happened.
    after.cpus().contains(&cpu).then_some(())?;
    let is_wanted = |name: &str| {
        let told = after.rows().find(|(row, _)| *row == name).map_or("", |(_, told)| told);
        is_local_timer(name, told) == timer
    };
    let grown = after.growth(before, cpu).filter(|(name, _)| is_wanted(name));
    Some(grown.map(|(_, count)| count).sum::<u64>() as f64 / seconds(round))
}

/// What the rounds add up to.
pub(super) fn figures(cpu: u32, rounds: &[(Totals, Totals)], spread: Spread) -> SourceFigures {
    let each = |value: &dyn Fn(&(Totals, Totals)) -> Option<f64>| {
        let values: Option<Vec<f64>> = rounds.iter().map(value).collect();
        Figure::of(&values?, spread)
    };
    let softirqs = |round: &(Totals, Totals)| {
        let (before, after) = (&round.0.softirqs, &round.1.softirqs);
        after.cpus().contains(&cpu).then_some(())?;
        Some(after.growth(before, cpu).map(|(_, count)| count).sum::<u64>() as f64 / seconds(round))
    };
    let steal = |(before, after): &(Totals, Totals)| {
        let (before, after) = (cpu_ticks_of(&before.stat, cpu)?, cpu_ticks_of(&after.stat, cpu)?);
        let total = after.total.saturating_sub(before.total);
        // A short round may have no tick of the accounting at all.
        Some(if total == 0 { 0.0 } else { after.steal.saturating_sub(before.steal) as f64 / total as f64 })
    };
    SourceFigures {
        seconds: rounds.iter().map(seconds).sum(),
        ticks_per_s: each(&|round| interrupts_per_s(round, cpu, true)),
        irqs_per_s: each(&|round| interrupts_per_s(round, cpu, false)),
        softirqs_per_s: each(&softirqs),
        steal_share: each(&steal),
        sources: sources(cpu, rounds),
    }
}

/// The rows that moved, most first.
fn sources(cpu: u32, rounds: &[(Totals, Totals)]) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::new();
    for (before, after) in rounds {
        let tables =
            [("irq", &before.interrupts, &after.interrupts), ("softirq", &before.softirqs, &after.softirqs)];
        for (kind, before, after) in tables {
            for (name, count) in after.growth(before, cpu) {
                match sources.iter_mut().find(|source| source.kind == kind && source.name == name) {
                    Some(source) => source.count += count,
                    None => {
                        let told = after.rows().find(|(row, _)| *row == name).map_or("", |(_, told)| told);
                        sources.push(Source { kind, name: name.to_owned(), told: told.to_owned(), count });
                    }
                }
            }
        }
    }
    sources.sort_small_by(|one, other| other.count.cmp(&one.count).then_with(|| one.name.cmp(&other.name)));
    sources
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn totals(at: Instant, timer: u64, disk: u64, softirqs: u64, steal: u64) -> Totals {
        let interrupts = format!(
            "  CPU0 CPU1\n 24: 7 {disk} PCI-MSI nvme0q1\nLOC: 9 {timer} Local timer interrupts\nERR: 0\n"
        );
        Totals {
            at,
            interrupts: PerCpu::parse(&interrupts),
            softirqs: PerCpu::parse(&format!("  CPU0 CPU1\n TIMER: 1 {softirqs}\n")),
            stat: format!("cpu 0\ncpu1 50 0 0 {} 0 0 0 {steal}\n", 50 - steal),
        }
    }

    #[test]
    fn rates_are_of_one_cpu_and_name_their_source() {
        let begun = Instant::now();
        let rounds: Vec<(Totals, Totals)> = (0..6)
            .map(|_| {
                let mut before = totals(begun, 1000, 40, 5, 0);
                before.stat = "cpu 0\ncpu1 0 0 0 0 0 0 0 0\n".to_owned();
                (before, totals(begun + Duration::from_secs(2), 1500, 48, 11, 5))
            })
            .collect();
        let figures = figures(1, &rounds, Spread::Usual);
        let value = |figure: Option<Figure>| figure.expect("it is counted").value;
        assert_eq!((value(figures.ticks_per_s), value(figures.irqs_per_s)), (250.0, 4.0));
        assert_eq!((value(figures.softirqs_per_s), value(figures.steal_share)), (3.0, 0.05));
        assert_eq!(figures.seconds, 12.0);
        let told: Vec<_> = figures.sources.iter().map(|it| (it.kind, it.name.as_str(), it.count)).collect();
        assert_eq!(told, [("irq", "LOC", 3000), ("irq", "24", 48), ("softirq", "TIMER", 36)]);
        assert_eq!(figures.sources[1].told, "PCI-MSI nvme0q1");
    }

    #[test]
    fn what_is_not_counted_is_not_nothing() {
        let begun = Instant::now();
        let rounds = [(totals(begun, 1, 1, 1, 0), totals(begun + Duration::from_secs(1), 2, 2, 2, 0))];
        let figures = figures(7, &rounds, Spread::Usual);
        assert_eq!((figures.ticks_per_s, figures.softirqs_per_s, figures.steal_share), (None, None, None));
        assert!(figures.sources.is_empty());
    }

    #[test]
    fn the_timer_of_a_cpu_has_another_name_on_arm() {
        assert!(
            is_local_timer("LOC", "Local timer interrupts")
                && is_local_timer("11", "GICv3 30 Level arch_timer")
        );
        assert!(!is_local_timer("24", "PCI-MSI nvme0q1"));
    }
}
