//! What one unit of one arm brings home, and how it may fail.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;

use crate::outcome::{Achieved, Better};

/// One number of one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: Cow<'static, str>,
    /// The good direction.
    pub better: Better,
}

/// What a unit is cut into.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The metric of each window: the one that decides, or the nearest that a window can have.
    pub metric: String,
    /// Length of a window.
    pub length: Duration,
}

/// One explaining number of one unit, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Collected {
    /// The unit of the value.
    pub unit: &'static str,
    /// The value, or why it cannot be had here.
    pub value: Result<f64, String>,
}

/// The result of one unit of one arm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Metrics by name. Names end in their unit, except for rates and quantiles that have none.
    pub metrics: BTreeMap<String, Metric>,
    /// Explaining columns by name.
    pub collectors: BTreeMap<String, Collected>,
    /// A metric in windows inside this unit, oldest first, where the program tells: separates the noise between
    /// starts from that within one, and shows how long a start takes to become steady.
    pub windows: Vec<f64>,
    /// What these windows are.
    pub window: Option<Window>,
    /// Operations behind the metrics, where the load counts them: makes a server's CPU time one per
    /// operation.
    pub operations: Option<f64>,
    /// The number of the build that ran, of an arm that has several.
    pub build: Option<usize>,
    /// What the arm was read back to have, where the unit tells anew.
    pub achieved: Option<Achieved>,
    /// Time of the unit that went into reading counters: ours, and not the arm's.
    pub bookkeeping: Duration,
}

impl Sample {
    /// Adds a metric whose lower values are better.
    #[must_use]
    pub fn lower(mut self, name: &str, unit: &'static str, value: f64) -> Self {
        self.put(name, unit, Better::Lower, value);
        self
    }

    /// Adds a metric whose higher values are better.
    #[must_use]
    pub fn higher(mut self, name: &str, unit: &'static str, value: f64) -> Self {
        self.put(name, unit, Better::Higher, value);
        self
    }

    /// Adds a metric.
    pub fn put(&mut self, name: &str, unit: impl Into<Cow<'static, str>>, better: Better, value: f64) {
        self.metrics.insert(name.to_owned(), Metric { value, unit: unit.into(), better });
    }

    /// Adds an explaining number, or why there is none.
    pub fn collect(&mut self, name: &str, unit: &'static str, value: Result<f64, String>) {
        self.collectors.insert(name.to_owned(), Collected { unit, value });
    }

    /// The value of a metric.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.metrics.get(name).map(|metric| metric.value)
    }
}

/// Why an arm gave no sample.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ArmError {
    /// The machine, the user or the program cannot have this arm. Legal, and fails nothing.
    #[error("{reason}")]
    Unavailable {
        /// Why, for people.
        reason: String,
        /// What would make it possible; empty when nothing would.
        cure: String,
    },
    /// The program ended, or answered nonsense. A result: the arm may be what broke it.
    #[error("{detail}")]
    Crashed {
        /// Exit status and the last words of the program.
        detail: String,
    },
    /// The program did not answer in time. A result too.
    #[error("no answer within {:.1} s", after.as_secs_f64())]
    TimedOut {
        /// The limit.
        after: Duration,
    },
    /// The host could not be set, or not be set back: nothing that follows could be believed.
    #[error("{detail}")]
    Host {
        /// What happened.
        detail: String,
        /// Whether the host is as it was.
        restored: bool,
    },
    /// The trial cannot be run, or not go on, as things are here: nothing that follows would be about its arms.
    #[error("{what}")]
    Refused {
        /// What is in its way.
        what: String,
        /// What to do about it.
        cure: String,
    },
    /// The trial was told to stop.
    #[error("stopped")]
    Stopped,
}

impl ArmError {
    /// An arm that cannot be had, and nothing would change that.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into(), cure: String::new() }
    }

    /// Whether it ends the whole trial, whichever arm it came from.
    pub(crate) fn ends_the_trial(&self) -> bool {
        matches!(self, Self::Host { .. } | Self::Refused { .. })
    }

    /// A program that ended or answered nonsense.
    pub fn crashed(detail: impl Into<String>) -> Self {
        Self::Crashed { detail: detail.into() }
    }
}
