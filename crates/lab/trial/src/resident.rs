//! Arms that stay resident together and are compared in short slices.
//!
//! Servers that were restarted one after the other on a shared machine gave +34 % and -11 % for the same
//! change; the same servers resident together, in 0.35 s slices in random order, gave an interval of two
//! points. The price: a process keeps the layout of its memory, so a slice says nothing about the next start.
//! That is what [`Freshness::Restart`] is for, and why slices of resident processes keep nothing by themselves: what
//! they seem to gain is confirmed with fresh processes in every pair.
//!
//! ```text
//! block 0:  thp  4k  placebo  2m        every arm once, in an order drawn before the block
//! block 1:  4k   2m  thp  placebo       every rung is paired with the baseline of its own block
//! ```

use std::time::Duration;

use planish_stats::Rng;

use crate::control::{Progress, Stop};
use crate::error::TrialError;
use crate::ladder::{Field, LadderOptions, climb};
use crate::outcome::{Achieved, TrialOutcome, UnitKind};
use crate::sample::{ArmError, Sample, Window};

/// A program that is started once, then asked for slices of work.
///
/// Between slices it must be idle: the other arms share the machine with it.
pub trait ResidentArm {
    /// The name of its rung.
    fn name(&self) -> &str;

    /// Starts it, warms it up and reads back what it really got.
    ///
    /// # Errors
    /// [`ArmError::Unavailable`] when the machine cannot have it, which is legal; others as they are.
    fn start(&mut self) -> Result<Achieved, ArmError>;

    /// Works for `duration` on the work that `seed` stands for: equal seeds are equal work on every arm.
    ///
    /// # Errors
    /// The program ended, answered nonsense or did not answer.
    fn slice(&mut self, duration: Duration, seed: u64) -> Result<Sample, ArmError>;

    /// Ends it. Called also after a failed start, and more than once.
    fn stop(&mut self);
}

/// When processes are replaced by fresh ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Never within a ladder: a slice is the unit. The confirmation starts all arms afresh for each block.
    Resident,
    /// At each block: a fresh start is the unit, and its value the median over this many interleaved slices.
    Restart {
        /// Slices of each arm per start.
        slices: usize,
    },
}

/// The stream of a block's seed that the orders of its later rounds are drawn from.
const TURNS: u64 = 1;
/// The stream of a block's seed that the order in which its arms end is drawn from.
const ENDS: u64 = 2;

/// Slices of each fresh start in a confirmation of arms that were resident in the ladder: what takes time is the start.
const SLICES_CONFIRMED: usize = 3;

/// The arms of a resident ladder.
pub struct ResidentArms<'a> {
    /// What every rung is compared with.
    pub baseline: Box<dyn ResidentArm + 'a>,
    /// The rungs, in their planned order.
    pub rungs: Vec<Box<dyn ResidentArm + 'a>>,
    /// A second instance of the baseline: hidden while the trial runs.
    pub placebo: Box<dyn ResidentArm + 'a>,
}

/// How slices are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slicing {
    /// Length of one slice.
    pub slice: Duration,
    /// When processes are replaced.
    pub freshness: Freshness,
}

/// Runs a ladder of resident arms: self-check, randomised blocks with planned looks, confirmation.
///
/// # Errors
/// The baseline does not get through the self-check or does not report the primary metric, or the numbers allow no
/// conclusion.
pub fn run_resident(
    arms: ResidentArms<'_>,
    slicing: Slicing,
    options: &LadderOptions,
    progress: &mut dyn Progress,
    stop: &Stop,
) -> Result<TrialOutcome, TrialError> {
    let mut field = ResidentField::new(arms, slicing, options.primary.name.clone(), stop.clone());
    climb(&mut field, options, progress, stop)
}

/// The resident arms as the ladder sees them: the baseline first, the placebo last.
pub(crate) struct ResidentField<'a> {
    arms: Vec<Box<dyn ResidentArm + 'a>>,
    slicing: Slicing,
    primary: String,
    /// Slices before those that are measured: of each start, or of the one that a resident process has.
    warm: usize,
    /// Slices of a start at least, while a warm-up is looked for.
    lengthened: usize,
    /// Whether each block starts its arms afresh, whatever the ladder did.
    is_afresh: bool,
    stop: Stop,
}

impl<'a> ResidentField<'a> {
    pub(crate) fn new(arms: ResidentArms<'a>, slicing: Slicing, primary: String, stop: Stop) -> Self {
        let ResidentArms { baseline, rungs, placebo } = arms;
        let arms = [baseline].into_iter().chain(rungs).chain([placebo]).collect();
        Self { arms, slicing, primary, warm: 0, lengthened: 0, is_afresh: false, stop }
    }

    /// When processes are replaced by now.
    fn freshness(&self) -> Freshness {
        match self.slicing.freshness {
            Freshness::Resident if self.is_afresh => Freshness::Restart { slices: SLICES_CONFIRMED },
            freshness => freshness,
        }
    }

    fn slice(&mut self, arm: usize, seed: u64) -> Result<Sample, ArmError> {
        if self.stop.is_set() {
            return Err(ArmError::Stopped);
        }
        self.arms[arm].slice(self.slicing.slice, seed)
    }

    /// Ends all arms, in an order of its own, before one of the block starts. An arm that ended and started while the
    /// others hold theirs is given its own pages back, block after block: the coin would deal orders, and no places.
    /// And what was freed last is given first.
    fn end_all(&mut self, seed: u64) {
        let mut ends: Vec<usize> = (0..self.arms.len()).collect();
        Rng::stream(seed, ENDS).shuffle(&mut ends);
        ends.into_iter().for_each(|arm| self.arms[arm].stop());
    }

    /// Fresh processes of the block's arms, then their slices in turn: the first round in the order of the block, each
    /// later one in an order of its own. In a rotation each arm would follow the same one for ever.
    fn restarted_block(
        &mut self,
        order: &[usize],
        seed: u64,
        slices: usize,
    ) -> Vec<Result<Sample, ArmError>> {
        self.end_all(seed);
        let mut started: Vec<Result<Achieved, ArmError>> = Vec::new();
        for &arm in order {
            started.push(if self.stop.is_set() { Err(ArmError::Stopped) } else { self.arms[arm].start() });
        }
        let mut samples: Vec<Result<Vec<Sample>, ArmError>> =
            started.iter().map(|start| start.as_ref().map(|_| Vec::new()).map_err(Clone::clone)).collect();
        let mut draw = Rng::stream(seed, TURNS);
        let mut places: Vec<usize> = (0..order.len()).collect();
        for round in 0..self.warm + slices.max(self.lengthened) {
            if round > 0 {
                draw.shuffle(&mut places);
            }
            for &place in &places {
                if let Ok(mut done) = std::mem::replace(&mut samples[place], Err(ArmError::Stopped)) {
                    samples[place] =
                        self.slice(order[place], seed.wrapping_add(round as u64)).map(|sample| {
                            if round >= self.warm {
                                done.push(sample);
                            }
                            done
                        });
                }
            }
        }
        samples
            .into_iter()
            .zip(started)
            .map(|(samples, achieved)| Ok(self.median_of(samples?, achieved?)))
            .collect()
    }

    /// One sample for a start: the median over the slices of each metric and of each column, the slices themselves as
    /// windows.
    fn median_of(&self, slices: Vec<Sample>, achieved: Achieved) -> Sample {
        let mut whole = slices.last().cloned().unwrap_or_default();
        for (name, metric) in &mut whole.metrics {
            let values: Vec<f64> = slices.iter().filter_map(|slice| slice.value(name)).collect();
            metric.value = planish_stats::summary::median(&values);
        }
        for (name, column) in &mut whole.collectors {
            let told = slices.iter().filter_map(|slice| slice.collectors.get(name)?.value.as_ref().ok());
            let values: Vec<f64> = told.copied().collect();
            if !values.is_empty() {
                column.value = Ok(planish_stats::summary::median(&values));
            }
        }
        whole.windows = slices.iter().filter_map(|slice| slice.value(&self.primary)).collect();
        whole.window = Some(Window { metric: self.primary.clone(), length: self.slicing.slice });
        whole.bookkeeping = slices.iter().map(|slice| slice.bookkeeping).sum();
        whole.achieved = Some(achieved);
        whole
    }
}

impl Field for ResidentField<'_> {
    fn unit(&self) -> UnitKind {
        match self.slicing.freshness {
            Freshness::Resident => UnitKind::Slice,
            Freshness::Restart { .. } => UnitKind::Start,
        }
    }

    fn names(&self) -> Vec<String> {
        self.arms.iter().map(|arm| arm.name().to_owned()).collect()
    }

    fn twins(&self) -> [usize; 2] {
        match self.slicing.freshness {
            // One process, twice: another one would bring its own layout, which a slice cannot average out.
            Freshness::Resident => [0, 0],
            Freshness::Restart { .. } => [0, self.arms.len() - 1],
        }
    }

    fn open(&mut self, arm: usize) -> Result<Option<Achieved>, ArmError> {
        if self.stop.is_set() {
            return Err(ArmError::Stopped);
        }
        self.arms[arm].stop();
        let mut achieved = self.arms[arm].start();
        if self.freshness() == Freshness::Resident {
            // It runs once and for all: the seeds of its warm-up are nobody's later work.
            let warmed =
                (0..self.warm as u64).try_for_each(|round| self.slice(arm, u64::MAX - round).map(drop));
            achieved = achieved.and_then(|achieved| warmed.map(|()| achieved));
        }
        if achieved.is_err() || matches!(self.freshness(), Freshness::Restart { .. }) {
            self.arms[arm].stop();
        }
        achieved.map(Some)
    }

    fn shut(&mut self, arm: usize) {
        self.arms[arm].stop();
    }

    fn start_afresh(&mut self) {
        self.is_afresh = true;
    }

    fn lengthen(&mut self, windows: Option<usize>) {
        self.lengthened = windows.unwrap_or(0);
    }

    fn warm_up(&mut self, time: Duration) -> bool {
        self.warm = (time.as_secs_f64() / self.slicing.slice.as_secs_f64() - 1e-6).ceil() as usize;
        true
    }

    /// The value of a start is the median of its slices, so that those of the warm-up can be left out afterwards.
    fn recut(&self, sample: &Sample) -> Option<(Sample, f64)> {
        let Freshness::Restart { slices } = self.slicing.freshness else { return None };
        let measured: Vec<f64> = sample.windows.iter().skip(self.warm).take(slices).copied().collect();
        if measured.is_empty() {
            return None;
        }
        let more = (self.warm + slices) as f64 - sample.windows.len() as f64;
        let mut sample = sample.clone();
        sample.metrics.get_mut(&self.primary)?.value = planish_stats::summary::median(&measured);
        sample.windows = measured;
        Some((sample, more * self.slicing.slice.as_secs_f64()))
    }

    fn block(&mut self, order: &[usize], seed: u64) -> Vec<Result<Sample, ArmError>> {
        match self.freshness() {
            Freshness::Resident => order.iter().map(|&arm| self.slice(arm, seed)).collect(),
            Freshness::Restart { slices } => self.restarted_block(order, seed, slices),
        }
    }
}
