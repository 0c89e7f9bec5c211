//! What happens between units, the same for every arm: rest before each start, and a reset after each.
//!
//! An arm must not meet what the one before it has left: heat, a queue of dirty pages, memory in pieces. None of that
//! can create a false keep, since the coin deals it to both; but it shrinks effects and widens intervals. Whatever is
//! done about it is done before every unit of every arm, or after every one, and never for what an arm did: otherwise
//! it would be an arm of its own.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::child::{Launch, run_once};
use crate::control::Stop;
use crate::host::{Action, HostControl};
use crate::kernel;
use crate::sample::ArmError;

/// How long a command between units may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(600);
/// The kernel renews its averages every two seconds (kernel/sched/psi.c, PSI_FREQ).
const LOOK: Duration = Duration::from_millis(500);
/// Where the kernel tells who waits for what.
const PRESSURES: [(&str, &str); 3] =
    [("cpu", "/proc/pressure/cpu"), ("memory", "/proc/pressure/memory"), ("io", "/proc/pressure/io")];

/// Rest before each start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SettleSpec {
    /// A command, run first.
    pub command: Vec<String>,
    /// Have the kernel move small pages together. Needs root.
    pub compact_memory: bool,
    /// Have the kernel drop its page cache. Needs root.
    pub drop_caches: bool,
    /// Wait until tasks have waited for a processor, for memory and for a disk in less than this share of the last ten
    /// seconds, in percent (`some avg10` of PSI).
    pub psi_below: Option<f64>,
    /// How long to wait for that at most, in seconds; the unit then runs all the same, and the outcome says how often.
    pub psi_seconds: f64,
    /// Then rest for so many seconds.
    pub seconds: f64,
}

impl Default for SettleSpec {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            compact_memory: false,
            drop_caches: false,
            psi_below: None,
            psi_seconds: 60.0,
            seconds: 0.0,
        }
    }
}

/// What undoes the state that outlives an arm: huge pages in pieces, a page cache, pages that were moved to another
/// node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResetSpec {
    /// A command, run first.
    pub command: Vec<String>,
    /// Have the kernel move small pages together. Needs root.
    pub compact_memory: bool,
    /// Have the kernel drop its page cache. Needs root.
    pub drop_caches: bool,
}

impl ResetSpec {
    /// Whether it does nothing.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Every hook of a trial.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    settle: SettleSpec,
    resets: Vec<ResetSpec>,
    /// Units before which the machine did not become calm in time, and the last reason.
    restless: usize,
    reason: String,
    settled: usize,
}

impl Hooks {
    /// Equal resets of several arms are one.
    pub(crate) fn new(settle: SettleSpec, resets: impl IntoIterator<Item = ResetSpec>) -> Self {
        let mut hooks = Self { settle, ..Self::default() };
        for reset in resets {
            if !reset.is_empty() && !hooks.resets.contains(&reset) {
                hooks.resets.push(reset);
            }
        }
        hooks
    }

    /// The actions that they need, each once.
    pub(crate) fn actions(&self) -> Vec<Action> {
        let compact = self.settle.compact_memory || self.resets.iter().any(|reset| reset.compact_memory);
        let drop = self.settle.drop_caches || self.resets.iter().any(|reset| reset.drop_caches);
        let all = [(Action::CompactMemory, compact), (Action::DropCaches, drop)];
        all.into_iter().filter(|(_, needed)| *needed).map(|(action, _)| action).collect()
    }

    /// Before a unit. What cannot be done ends the trial: it is not the arm's fault.
    pub(crate) fn settle(&mut self, host: &mut dyn HostControl, stop: &Stop) -> Result<(), ArmError> {
        let SettleSpec { command, compact_memory, drop_caches, psi_below, .. } = &self.settle;
        run("settle", command, stop)?;
        act(host, *compact_memory, *drop_caches)?;
        if let Some(below) = *psi_below {
            let limit = Duration::from_secs_f64(self.settle.psi_seconds);
            self.settled += 1;
            if let Some(reason) = wait_for_calm(below, limit, stop, &kernel::read)? {
                self.restless += 1;
                self.reason = reason;
            }
        }
        if stop.sleep(Duration::from_secs_f64(self.settle.seconds)) { Ok(()) } else { Err(ArmError::Stopped) }
    }

    /// After a unit, when its arm is undone.
    pub(crate) fn reset(&self, host: &mut dyn HostControl, stop: &Stop) -> Result<(), ArmError> {
        for reset in &self.resets {
            run("reset", &reset.command, stop)?;
            act(host, reset.compact_memory, reset.drop_caches)?;
        }
        Ok(())
    }

    /// What is to be told of them at the end.
    pub(crate) fn note(&self) -> Option<String> {
        (self.restless > 0).then(|| {
            format!(
                "the machine did not become calm before {} of {} units: {}",
                self.restless, self.settled, self.reason
            )
        })
    }
}

fn run(what: &str, command: &[String], stop: &Stop) -> Result<(), ArmError> {
    if command.is_empty() {
        return Ok(());
    }
    match run_once(&Launch::of(command.to_vec()), 0, COMMAND_LIMIT, stop) {
        Ok(_) => Ok(()),
        Err(ArmError::Stopped) => Err(ArmError::Stopped),
        Err(error) => {
            Err(ArmError::Host { detail: format!("the command of `{what}` fails: {error}"), restored: true })
        }
    }
}

fn act(host: &mut dyn HostControl, compact_memory: bool, drop_caches: bool) -> Result<(), ArmError> {
    // What is dropped first leaves more room to move pages together.
    if drop_caches {
        host.act(Action::DropCaches)?;
    }
    if compact_memory {
        host.act(Action::CompactMemory)?;
    }
    Ok(())
}

/// Waits until nothing presses; tells what still did when the time was up.
fn wait_for_calm(
    below: f64,
    limit: Duration,
    stop: &Stop,
    read: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, ArmError> {
    let begun = Instant::now();
    loop {
        let presses = PRESSURES.iter().find_map(|(name, path)| {
            let avg10 = read(path).as_deref().and_then(kernel::waited_avg10)?;
            (avg10 >= below).then(|| format!("{name} pressure {avg10:.1} %, wanted below {below} %"))
        });
        let Some(reason) = presses else { return Ok(None) };
        if begun.elapsed() >= limit {
            return Ok(Some(reason));
        }
        if !stop.sleep(LOOK.min(limit.saturating_sub(begun.elapsed()))) {
            return Err(ArmError::Stopped);
        }
    }
}

/// Whether this kernel tells pressures at all: without them there is nothing to wait for.
pub(crate) fn has_pressure() -> bool {
    PRESSURES.iter().any(|(_, path)| kernel::read(path).as_deref().and_then(kernel::waited_avg10).is_some())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn pressure(avg10: f64) -> Option<String> {
        Some(format!("some avg10={avg10:.2} avg60=0.00 avg300=0.00 total=1\nfull avg10=99.00 total=0\n"))
    }

    #[test]
    fn rest_ends_when_nothing_presses_and_tells_what_did() {
        let looks = Cell::new(0);
        let falling = |path: &str| {
            if path.ends_with("io") {
                looks.set(looks.get() + 1);
            }
            if path.ends_with("io") && looks.get() < 3 { pressure(20.0) } else { pressure(1.0) }
        };
        let long = Duration::from_secs(60);
        assert_eq!(wait_for_calm(5.0, long, &Stop::default(), &falling), Ok(None));
        assert_eq!(looks.get(), 3);
        let high = |_: &str| pressure(20.0);
        let told =
            wait_for_calm(5.0, Duration::from_millis(10), &Stop::default(), &high).expect("not stopped");
        assert_eq!(told.as_deref(), Some("cpu pressure 20.0 %, wanted below 5 %"));
        assert_eq!(
            wait_for_calm(5.0, long, &Stop::default(), &|_| None),
            Ok(None),
            "a kernel that tells none"
        );
        let stop = Stop::default();
        stop.set();
        assert_eq!(wait_for_calm(5.0, long, &stop, &high), Err(ArmError::Stopped));
    }

    #[test]
    fn equal_resets_are_one() {
        let reset = ResetSpec { compact_memory: true, ..ResetSpec::default() };
        let hooks = Hooks::new(SettleSpec::default(), [reset.clone(), ResetSpec::default(), reset]);
        assert_eq!((hooks.resets.len(), hooks.actions()), (1, vec![Action::CompactMemory]));
        assert_eq!(hooks.note(), None);
    }
}
