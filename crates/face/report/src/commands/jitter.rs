//! `planish latency --jitter`: the time that CPUs do not give to a thread of their own.

use schemars::JsonSchema;
use serde::Serialize;

use super::latency::{LatencyFigure, LatencyQuiet};
use crate::page::{Page, Report};
use crate::table::{Cell, Table};
use crate::units;

/// A quantile and its name.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JitterQuantile {
    /// `p50`, `p99`, `p99_9` or `p99_99`.
    pub name: String,
    /// The quantile in nanoseconds; null where there is too little to tell it from.
    pub ns: Option<LatencyFigure>,
    /// How many events it takes, where it is null.
    pub needed: Option<u64>,
}

/// Gaps of similar length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JitterBucket {
    /// Shortest that it holds, in nanoseconds.
    pub from_ns: u64,
    /// Those that it holds are shorter than this.
    pub below_ns: u64,
    /// How many there were.
    pub count: u64,
}

/// The time that a spinning thread did not get.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JitterGaps {
    /// Time that was spun.
    pub seconds: f64,
    /// Between two looks at the clock when nothing happens, in nanoseconds: what is shorter cannot be seen.
    pub look_ns: u64,
    /// Gaps of at least the threshold.
    pub count: u64,
    /// Gaps in a second.
    pub per_s: LatencyFigure,
    /// Share of the time that lies in gaps.
    pub lost_share: LatencyFigure,
    /// Quantiles by time: the length of the gap in which a random moment falls.
    pub by_time: Vec<JitterQuantile>,
    /// The longest gap of each round, in nanoseconds.
    pub longest_ns: LatencyFigure,
    /// The longest of all.
    pub max_ns: u64,
    /// Lengths by powers of two.
    pub buckets: Vec<JitterBucket>,
}

/// By how much timers were late.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JitterWake {
    /// Wake-ups.
    pub count: u64,
    /// Quantiles by number.
    pub late: Vec<JitterQuantile>,
    /// The latest of each round, in nanoseconds; null where there was none.
    pub latest_ns: Option<LatencyFigure>,
    /// The latest of all.
    pub max_ns: u64,
}

/// A row of the kernel's counters.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JitterSource {
    /// `irq` or `softirq`.
    pub kind: String,
    /// Name of the row: `LOC`, `24`, `TIMER`.
    pub name: String,
    /// What the kernel says of it.
    pub told: String,
    /// How often.
    pub count: u64,
    /// The same for each second.
    pub per_s: f64,
}

/// One CPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JitterCpu {
    /// Its number.
    pub cpu: u32,
    /// Time that a spinning thread did not get.
    pub gaps: JitterGaps,
    /// By how much timers were late.
    pub wake: JitterWake,
    /// Interrupts of the local timer in a second, while a thread was spinning; null where the kernel shows none.
    pub ticks_per_s: Option<LatencyFigure>,
    /// All other interrupts in a second.
    pub irqs_per_s: Option<LatencyFigure>,
    /// Softirqs in a second.
    pub softirqs_per_s: Option<LatencyFigure>,
    /// Share of its time that the hypervisor took.
    pub steal_share: Option<LatencyFigure>,
    /// The rows behind it, most first.
    pub sources: Vec<JitterSource>,
}

/// The jitter of some CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JitterReport {
    /// Whether the machine was quiet.
    pub quiet: LatencyQuiet,
    /// Rounds, each of a spinning and a sleeping half.
    pub rounds: u64,
    /// What drew their order.
    pub seed: u64,
    /// How long it all took, in seconds.
    pub seconds: f64,
    /// A gap is at least so long.
    pub threshold_ns: u64,
    /// Every CPU.
    pub cpus: Vec<JitterCpu>,
}

/// Rows of counters that a text shows of each CPU.
const SOURCES_MAX: usize = 6;
/// Characters of the longest bar of a histogram.
const BAR_MAX: f64 = 40.0;

fn ns(value: f64) -> String {
    units::quantity(value, "ns")
}

fn rate(figure: Option<LatencyFigure>) -> Cell {
    figure.map_or("-".into(), |figure| format!("{:.0}", figure.value).into())
}

impl Report for JitterReport {
    const COMMAND: &'static str = "latency-jitter";

    fn text(&self, page: &mut Page<'_>) {
        self.quiet.text(page);
        let gap = ns(self.threshold_ns as f64);
        page.fact(
            "rounds",
            &format!("{} of a spinning and a sleeping half; a gap is {gap} or more", self.rounds),
        );
        self.gap_text(page);
        self.wake_text(page);
        self.source_text(page);
        for cpu in &self.cpus {
            self.histogram(page, cpu);
        }
    }
}

impl JitterReport {
    fn gap_text(&self, page: &mut Page<'_>) {
        page.heading("Time that a spinning thread did not get");
        let mut table =
            Table::new(&[">CPU", ">lost", "interval", ">gaps/s", ">p99", ">p99.9", ">p99.99", ">longest"]);
        let share = |share: f64| format!("{:.3} %", share * 100.0);
        for cpu in &self.cpus {
            let gaps = &cpu.gaps;
            let mut cells: Vec<Cell> = vec![
                cpu.cpu.to_string().into(),
                share(gaps.lost_share.value).into(),
                format!("{} to {}", share(gaps.lost_share.low), share(gaps.lost_share.high)).into(),
                format!("{:.0}", gaps.per_s.value).into(),
            ];
            let beyond = gaps.by_time.iter().skip(1);
            cells.extend(beyond.map(|it| it.ns.map_or("-".into(), |figure| ns(figure.value).into())));
            cells.push(ns(gaps.max_ns as f64).into());
            table.row(cells);
        }
        page.table(&table);
        page.fact(
            "by time",
            "a quantile is the gap in which a random moment falls, of each round: the median of the rounds stands \
             here, and the longest gap of all of them",
        );
        self.intervals(page, &|cpu| (cpu.gaps.by_time.as_slice(), Some(cpu.gaps.longest_ns)));
    }

    fn wake_text(&self, page: &mut Page<'_>) {
        page.heading("Late wake-ups of a timer");
        let titles = [">CPU", ">wake-ups", ">p50", ">p99", ">p99.9", ">p99.99", ">latest"];
        let mut table = Table::new(&titles);
        for cpu in &self.cpus {
            let wake = &cpu.wake;
            let mut cells: Vec<Cell> = vec![cpu.cpu.to_string().into(), wake.count.to_string().into()];
            cells.extend(
                wake.late.iter().map(|it| it.ns.map_or("-".into(), |figure| ns(figure.value).into())),
            );
            cells.push(ns(wake.max_ns as f64).into());
            table.row(cells);
        }
        page.table(&table);
        let needed = self.cpus.iter().flat_map(|cpu| &cpu.wake.late).filter_map(|it| it.needed).min();
        let told = needed.map(|needed| {
            format!(
                "a quantile with - takes {} wake-ups of a CPU or more: --seconds",
                units::grouped(&needed.to_string())
            )
        });
        page.fact("missing", &told.unwrap_or_default());
        self.intervals(page, &|cpu| (cpu.wake.late.as_slice(), cpu.wake.latest_ns));
    }

    /// The intervals of quantiles, a line for each CPU.
    fn intervals<'a>(
        &'a self,
        page: &mut Page<'_>,
        of: &dyn Fn(&'a JitterCpu) -> (&'a [JitterQuantile], Option<LatencyFigure>),
    ) {
        for cpu in &self.cpus {
            let (quantiles, longest) = of(cpu);
            let told = quantiles.iter().filter_map(|it| Some((it.name.replace('_', "."), it.ns?)));
            let told = told.chain(longest.map(|figure| ("longest of a round".to_owned(), figure)));
            let told: Vec<String> =
                told.map(|(name, figure)| format!("{name} {}", figure.ends("ns"))).collect();
            page.fact("interval", &format!("CPU {}: {}", cpu.cpu, told.join(", ")));
        }
    }

    fn source_text(&self, page: &mut Page<'_>) {
        page.heading("Who interrupted, in a second");
        let mut table = Table::new(&[">CPU", ">timer", ">other irq", ">softirq", ">stolen", "most of it"]);
        for cpu in &self.cpus {
            let most = cpu.sources.iter().take(SOURCES_MAX);
            let most: Vec<String> = most
                .map(|source| {
                    let told =
                        source.told.split_whitespace().last().filter(|_| source.name.parse::<u32>().is_ok());
                    let told = told.map_or(String::new(), |told| format!(" ({told})"));
                    format!("{}{told} {:.0}", source.name, source.per_s)
                })
                .collect();
            table.row([
                cpu.cpu.to_string().into(),
                rate(cpu.ticks_per_s),
                rate(cpu.irqs_per_s),
                rate(cpu.softirqs_per_s),
                cpu.steal_share.map_or("-".into(), |it| format!("{:.1} %", it.value * 100.0).into()),
                most.join(", ").into(),
            ]);
        }
        page.table(&table);
        if page.is_detailed() {
            let ends = |name: &str, figure: Option<LatencyFigure>| {
                figure.map(|it| format!("{name} {:.0} to {:.0}", it.low, it.high))
            };
            for cpu in &self.cpus {
                let told = [
                    ends("timer", cpu.ticks_per_s),
                    ends("other irq", cpu.irqs_per_s),
                    ends("softirq", cpu.softirqs_per_s),
                ];
                let told: Vec<String> = told.into_iter().flatten().collect();
                page.fact("interval", &format!("CPU {}: {}", cpu.cpu, told.join(", ")));
            }
        }
    }

    /// Lengths of gaps by powers of two; a bar grows with the logarithm, for a tick comes a thousand times a hiccup.
    fn histogram(&self, page: &mut Page<'_>, cpu: &JitterCpu) {
        let most = cpu.gaps.buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0);
        if most == 0 {
            return;
        }
        page.heading(&format!("Gaps of CPU {} by length", cpu.cpu));
        let mut table = Table::new(&[">from", ">below", ">gaps", ""]);
        for bucket in &cpu.gaps.buckets {
            let height = |count: u64| (count as f64 + 1.0).log2();
            let bar = (BAR_MAX * height(bucket.count) / height(most)).round() as usize;
            table.row([
                ns(bucket.from_ns as f64).into(),
                ns(bucket.below_ns as f64).into(),
                units::grouped(&bucket.count.to_string()).into(),
                "█".repeat(bar).into(),
            ]);
        }
        page.table(&table);
    }
}
