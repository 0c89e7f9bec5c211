//! Branch stacks as what BOLT aggregates: branches, and the straight runs of code between two of them.
//!
//! ```text
//! stack, the youngest first:   c -> d   a -> b
//! branches                     a -> b, c -> d
//! run without a taken branch   b ... c           every block in it ran once more
//! ```
//! perf2bolt would start `perf` for this, and more than once. BOLT also reads the sums themselves ("pre-aggregated"):
//! `B from to count missed` and `F first last count`, in addresses of the file. Source: bolt/include/bolt/Profile/
//! DataAggregator.h of LLVM.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::container::{Container, kinds};
use super::{Placer, wanted_event};
use crate::collect::{Collector, Place};
use crate::error::ProfileError;
use crate::program::Program;

/// What the branch stacks of a recording say of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// How often each branch was taken, and how often of that unforeseen.
    branches: BTreeMap<(u64, u64), (u64, u64)>,
    /// How often the code from one branch's target to the next one's source ran through.
    runs: BTreeMap<(u64, u64), u64>,
}

impl Traces {
    /// Sums up the branch stacks of one event; without a name, of the first.
    ///
    /// # Errors
    /// Those of [`crate::import`] for the same bytes, and [`ProfileError::NoSamples`] where no stack has a branch of
    /// the program.
    pub fn read(bytes: &[u8], program: &Program, event: Option<&str>) -> Result<Self, ProfileError> {
        let container = Container::parse(bytes)?;
        let wanted = wanted_event(&container, event)?;
        let mut placer = Placer::new(&container, program);
        let names = Collector::new(Some(program));
        let (mut traces, mut samples) = (Self::default(), 0);
        for record in container.records() {
            if record.kind != kinds::SAMPLE {
                placer.follow(&record);
                continue;
            }
            let Some((_, sample)) = container.sample(&record).filter(|(event, _)| *event == wanted) else {
                continue;
            };
            samples += 1;
            // The source of the younger branch, which a run of code ends in.
            let mut younger: Option<Spot> = None;
            for (from, to, is_missed) in sample.branches() {
                let mut spot = |ip: u64| -> Result<Option<Spot>, ProfileError> {
                    Ok(Spot::of(placer.place(&names, sample.pid, ip)?, program))
                };
                let (from, to) = (spot(from)?, spot(to)?);
                if let (Some(first), Some(last)) = (to, younger) {
                    traces.run(first, last);
                }
                if let (Some(from), Some(to)) = (from, to) {
                    let (count, missed) = traces.branches.entry((from.address, to.address)).or_default();
                    *count += 1;
                    *missed += u64::from(is_missed);
                }
                younger = from;
            }
        }
        if traces.branches.is_empty() {
            return Err(ProfileError::NoSamples { program: program.name.clone(), samples });
        }
        Ok(traces)
    }

    /// Where a branch was lost, two that do not belong together stand next to each other.
    fn run(&mut self, first: Spot, last: Spot) {
        if first.function == last.function && first.address <= last.address {
            *self.runs.entry((first.address, last.address)).or_default() += 1;
        }
    }

    /// Taken branches in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.branches.values().map(|(count, _)| count).sum()
    }

    /// The text that `llvm-bolt --pa` reads.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        for ((from, to), (count, missed)) in &self.branches {
            let _ = writeln!(text, "B {from:x} {to:x} {count} {missed}");
        }
        for ((first, last), count) in &self.runs {
            let _ = writeln!(text, "F {first:x} {last:x} {count}");
        }
        text
    }
}

/// An address in a function.
#[derive(Clone, Copy)]
struct Spot {
    function: u32,
    address: u64,
}

impl Spot {
    fn of(place: Place, program: &Program) -> Option<Self> {
        let Place::In(function, Some(offset)) = place else { return None };
        let address = program.functions()[function as usize].address.checked_add(offset)?;
        Some(Self { function, address })
    }
}
