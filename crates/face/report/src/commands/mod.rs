//! One file per command: the value that it ends with, and how that value reads.

mod apply;
mod check;
mod doctor;
mod knobs;
mod log;
mod plan;
mod size;
mod trial;
mod undo;
mod version;

pub use apply::ApplyReport;
pub use check::CheckReport;
pub use doctor::{DoctorReport, KnobCounts};
pub use knobs::{KnobRow, KnobsReport};
pub use log::LogReport;
pub use trial::{ProveReport, SelfCheckReport, TrialRunReport};
pub use undo::{UndoReport, UndoneEntry};
pub use version::VersionReport;
