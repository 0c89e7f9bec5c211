//! The warm-up inside a start: looked for in the units of the self-check, and left out of those that follow.

use std::time::Duration;

use planish_stats::warmup::{Finding, WINDOWS_MIN};

use super::selfcheck::{Phasework, Ran};
use super::{Climb, WarmUpPlan};
use crate::error::TrialError;
use crate::outcome::{WarmUp, WarmUpState};
use crate::sample::Sample;

/// Windows of a unit of the self-check where a warm-up is asked for: it may take half of them.
const WINDOWS: usize = 32;

impl Climb<'_> {
    /// Before the first start: a warm-up that is given is run from the start, one that is asked for needs windows.
    pub(super) fn plan_warm_up(&mut self) {
        match self.options.warm_up {
            WarmUpPlan::Auto => {}
            WarmUpPlan::Detect => self.field.lengthen(Some(WINDOWS)),
            WarmUpPlan::Fixed(time) => {
                self.field.warm_up(time);
            }
        }
    }

    /// After the last pair: looks for the warm-up, leaves it out from now on, and out of these pairs as well, which are
    /// run again where nothing else helps.
    pub(super) fn leave_out_warm_up(&mut self, work: &mut Phasework) -> Result<(WarmUp, Ran), TrialError> {
        if let WarmUpPlan::Fixed(time) = self.options.warm_up {
            let seconds = time.as_secs_f64();
            let mut fixed = unknown(format!("{seconds:.1} s, as the trial says"));
            (fixed.state, fixed.cut_seconds) = (WarmUpState::Fixed, seconds);
            if !self.field.warm_up(time) {
                leave_in(&mut fixed);
            }
            return Ok((fixed, Ran::All));
        }
        let mut found = find(&work.samples);
        self.field.lengthen(None);
        if found.state == WarmUpState::Cut && !self.field.warm_up(Duration::from_secs_f64(found.cut_seconds))
        {
            leave_in(&mut found);
        }
        if found.state == WarmUpState::NeverSteady {
            self.notes.push(format!("this workload does not become steady: {}", found.reason));
        }
        let is_changed = found.cut_windows > 0 || self.options.warm_up == WarmUpPlan::Detect;
        let ran = if is_changed { self.without_warm_up(work)? } else { Ran::All };
        Ok((found, ran))
    }

    /// The pairs as units of now would have given them.
    fn without_warm_up(&mut self, work: &mut Phasework) -> Result<Ran, TrialError> {
        let recut: Option<Vec<(Sample, f64)>> =
            work.samples.iter().map(|sample| self.field.recut(sample)).collect();
        if let Some(recut) = recut {
            let more: f64 = recut.iter().map(|(_, seconds)| seconds).sum();
            work.took = Duration::from_secs_f64((work.took.as_secs_f64() + more).max(0.0));
            work.samples = recut.into_iter().map(|(sample, _)| sample).collect();
            return Ok(Ran::All);
        }
        let (ran, again) = self.run_again(work.orders.len())?;
        if ran == Ran::Stopped {
            return Ok(ran);
        }
        match again {
            Some(again) => *work = again,
            None => self.notes.push(
                "there was no time to run the self-check without its warm-up: its noise is that of whole units"
                    .to_owned(),
            ),
        }
        Ok(Ran::All)
    }
}

/// A metric of the whole program cannot be had without the program's begin.
fn leave_in(found: &mut WarmUp) {
    found.reason += "; the metric that decides cannot be had without it";
    (found.cut_windows, found.cut_seconds) = (0, 0.0);
}

/// What the windows of these starts say.
fn find(samples: &[Sample]) -> WarmUp {
    let Some(window) = samples.first().and_then(|sample| sample.window.as_ref()) else {
        return unknown("a unit is not cut into windows".to_owned());
    };
    let starts: Vec<Vec<f64>> = samples.iter().map(|sample| sample.windows.clone()).collect();
    let seconds = window.length.as_secs_f64();
    let (metric, window_seconds) = (Some(window.metric.clone()), Some(seconds));
    let windows = starts.first().map_or(0, Vec::len);
    let found = match planish_stats::WarmUp::of(&starts) {
        Ok(found) => found,
        Err(error) => return WarmUp { metric, window_seconds, windows, ..unknown(error.to_string()) },
    };
    let cut_seconds = found.cut as f64 * seconds;
    let count = starts.len();
    let (state, reason) = match found.finding {
        Finding::None => (WarmUpState::None, format!("{count} starts were level from their first window on")),
        Finding::Found => (
            WarmUpState::Cut,
            format!(
                "nine starts of ten are steady after {} of {windows} windows, {cut_seconds:.1} s",
                found.cut
            ),
        ),
        Finding::Unshared => {
            let why = "levels change within starts, but not alike in all of them: that is the machine";
            (WarmUpState::Unshared, format!("{why}, and nothing is left out"))
        }
        Finding::NeverSteady => {
            let share = (found.unsteady_share() * count as f64).round();
            let unit = windows as f64 * seconds;
            let why = format!("{share} of {count} starts reached no level within their {unit:.1} s");
            (
                WarmUpState::NeverSteady,
                format!("{why}; make the unit several times as long, or find what grows"),
            )
        }
    };
    let length = |length: Option<f64>| length.map(|windows| windows as usize);
    WarmUp {
        state,
        reason,
        metric,
        window_seconds,
        windows,
        lengths: found.courses.iter().map(|course| length(course.length())).collect(),
        unsteady_share: Some(found.unsteady_share()),
        cut_windows: found.cut,
        cut_seconds,
    }
}

fn unknown(reason: String) -> WarmUp {
    WarmUp {
        state: WarmUpState::Unknown,
        reason,
        metric: None,
        window_seconds: None,
        windows: 0,
        lengths: Vec::new(),
        unsteady_share: None,
        cut_windows: 0,
        cut_seconds: 0.0,
    }
}

const _: () = assert!(WINDOWS >= 2 * WINDOWS_MIN, "a warm-up of half a unit leaves enough to compare with");
