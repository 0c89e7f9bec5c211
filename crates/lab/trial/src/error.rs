//! Why a trial could not be run at all. An arm that fails is a result, not one of these.

use std::io;
use std::path::PathBuf;

use planish_model::{CatalogueError, Exit};
use planish_stats::StatsError;
use thiserror::Error;

use crate::sample::ArmError;

/// Why a trial gave no outcome.
#[derive(Debug, Error)]
pub enum TrialError {
    /// A trial file is wrong: place, what is wrong and, where there is one, the nearest valid name.
    #[error("{file}:{line}:{column}: {message}")]
    Malformed {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// No shipped trial of this name.
    #[error("no trial `{name}`{}", did_you_mean(nearest.as_ref()))]
    UnknownTrial {
        /// The name.
        name: String,
        /// The nearest valid name.
        nearest: Option<String>,
        /// The names of all shipped trials.
        known: Vec<String>,
    },
    /// No profile of this name.
    #[error("no profile `{name}`{}", did_you_mean(nearest.as_ref()))]
    UnknownProfile {
        /// The name.
        name: String,
        /// The nearest valid name.
        nearest: Option<String>,
        /// The names of all profiles.
        known: Vec<String>,
    },
    /// A profile that the user handed over is wrong.
    #[error("the profile is wrong")]
    Profile(#[source] CatalogueError),
    /// A profile that places services, where only wanted values can be held.
    #[error("profile `{name}` has a placement, which no trial file can hold")]
    Placement {
        /// The profile.
        name: String,
    },
    /// A file cannot be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file that the user named cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// What was asked for cannot be, whatever the host.
    #[error("{what}")]
    Usage {
        /// What is wrong with it.
        what: String,
        /// What to do about it.
        cure: String,
    },
    /// The folder of proofs cannot be written.
    #[error("no proof can be stored in {}", path.display())]
    Unwritable {
        /// The folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The arm that every rung is compared with does not run: it failed before there was anything to compare.
    #[error("the baseline `{name}` does not run: {detail}")]
    Baseline {
        /// Its name.
        name: String,
        /// What happened.
        detail: String,
    },
    /// It was told to end before anything could be measured.
    #[error("stopped before anything was measured")]
    Stopped,
    /// The time for everything was up before the self-check had its fewest pairs.
    #[error("the time was up after {pairs} pairs of the self-check")]
    TimeUp {
        /// Pairs that had run.
        pairs: usize,
        /// A budget in seconds: what would have been enough, or, where no pair tells that, twice what there was.
        seconds: u64,
    },
    /// The metric that decides is not among those that the program reports.
    #[error("the baseline reports no metric `{metric}`{}", did_you_mean(nearest.as_ref()))]
    NoMetric {
        /// The wanted metric.
        metric: String,
        /// The nearest that is reported.
        nearest: Option<String>,
        /// All that are reported.
        known: Vec<String>,
    },
    /// The metric that decides is zero, and has no ratio.
    #[error(
        "`{metric}` of the baseline is {value}, and gains are logs of ratios, which need values above zero"
    )]
    NotAboveZero {
        /// The metric.
        metric: String,
        /// Its value.
        value: f64,
        /// Another metric of the same unit that tells speed.
        instead: Option<String>,
    },
    /// The budget or the numbers of the trial allow no conclusion whatever is measured.
    #[error("the trial is too small for any conclusion")]
    Design(#[source] StatsError),
    /// The host could not be set for an arm.
    #[error("{detail}")]
    Host {
        /// What happened.
        detail: String,
        /// Whether the host is as it was before the trial.
        restored: bool,
    },
    /// Something that the trial needs is not there.
    #[error("{what}")]
    Refused {
        /// What is missing.
        what: String,
        /// What to do about it.
        cure: String,
    },
    /// Another planish is at work, and was waited for.
    #[error("{what}")]
    Busy {
        /// Who it is.
        what: String,
        /// What to do about it.
        cure: String,
    },
    /// The control plane refused or failed.
    #[error("the host could not be planned or observed")]
    Control(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The nearest valid name as the end of a sentence.
pub(crate) fn did_you_mean(nearest: Option<&String>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

impl TrialError {
    /// Why the arm `name`, without which nothing can be compared, gave nothing.
    pub(crate) fn of_baseline(name: &str, error: &ArmError) -> Self {
        match error {
            ArmError::Stopped => Self::Stopped,
            ArmError::Refused { what, cure } => Self::Refused { what: what.clone(), cure: cure.clone() },
            error => Self::Baseline { name: name.to_owned(), detail: error.to_string() },
        }
    }

    /// The exit code of the contract.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Malformed { .. }
            | Self::UnknownTrial { .. }
            | Self::UnknownProfile { .. }
            | Self::Profile(_)
            | Self::Placement { .. }
            | Self::NoMetric { .. }
            | Self::NotAboveZero { .. }
            | Self::Unreadable { .. }
            | Self::Usage { .. }
            | Self::Design(_) => Exit::Usage,
            Self::File { .. }
            | Self::Unwritable { .. }
            | Self::Baseline { .. }
            | Self::Refused { .. }
            | Self::Busy { .. }
            | Self::Control(_) => Exit::Refused,
            Self::Stopped | Self::TimeUp { .. } => Exit::Inconclusive,
            Self::Host { restored: true, .. } => Exit::FailedRestored,
            Self::Host { restored: false, .. } => Exit::FailedNotRestored,
        }
    }

    /// What to do about it: next commands and cures, for people.
    #[must_use]
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Refused { cure, .. } | Self::Busy { cure, .. } | Self::Usage { cure, .. }
                if !cure.is_empty() =>
            {
                vec![cure.clone()]
            }
            Self::Malformed { file, .. } => {
                vec![format!("mend {file} there; planish trial new --cmd COMMAND writes a sound one")]
            }
            Self::UnknownTrial { known, .. } => {
                vec![format!("the shipped trials are {}; a file is named with a slash", known.join(", "))]
            }
            Self::UnknownProfile { known, .. } => vec![format!(
                "the profiles are {}; one in a file is named with a slash: ./mine.toml",
                known.join(", ")
            )],
            Self::Profile(error) => vec![error.cure()],
            Self::Placement { name } => vec![format!(
                "keep it as {name}.toml among your own profiles (docs/profiles.md), and name it --profile {name}"
            )],
            Self::NoMetric { known, .. } => {
                vec![format!("name a metric that is reported as `primary`: {}", known.join(", "))]
            }
            Self::NotAboveZero { instead, .. } => vec![match instead {
                Some(other) => format!("make units longer, or decide by `primary = \"{other}\"`"),
                None => "make units longer, or name another metric as `primary`".to_owned(),
            }],
            Self::File { .. } | Self::Unreadable { .. } => {
                vec!["name a file that you may read, in a folder that is there".to_owned()]
            }
            Self::Unwritable { path, .. } => {
                let folder = path.parent().unwrap_or(path).display();
                vec![format!("make {folder} writable and give it room, or name another folder with --state")]
            }
            Self::TimeUp { pairs: 0, seconds } => vec![format!("give it --budget {seconds} or more")],
            Self::TimeUp { seconds, .. } => vec![format!("give it --budget {seconds}")],
            Self::Baseline { .. } => vec!["run its command by hand first".to_owned()],
            Self::Design(_) => vec!["give it more time: a larger budget or more pairs".to_owned()],
            Self::Host { restored: false, .. } => {
                vec!["planish log".to_owned(), "planish undo --all".to_owned()]
            }
            _ => Vec::new(),
        }
    }
}
