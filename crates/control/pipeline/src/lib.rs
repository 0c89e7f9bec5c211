//! The commands of the control plane, each one readable from top to bottom on one screen.
//!
//! ```text
//! observe -> decide -> act -> verify -> record
//! ```
//!
//! Only this crate knows all stages. It holds no logic of its own beyond their order: which lock is taken before
//! which read, what is on disk before which write, and what a failure leaves behind.
//!
//! Each stage is a span of `tracing`, under the name of the arrow above; `planish --timings` prints them.
//!
//! Promises, each kept by a test that stops at every operation of the journal and at every write to the host:
//! - nothing is written without a plan, and nothing before every original is on disk;
//! - a kill at any moment leaves a host that `undo` brings back, or a difference that it names;
//! - what someone else set since is kept, unless the user forces it;
//! - applying twice writes nothing.

#![forbid(unsafe_code)]

mod apply;
mod bereft;
mod boot;
mod calendar;
mod carry_out;
mod changed;
mod check;
mod confirm;
mod contents;
mod copied;
mod deed;
mod devices;
mod doctor;
mod error;
mod export;
mod gone;
mod holding;
mod install;
mod intent;
mod interrupted;
mod log;
mod meant;
mod merged;
mod mistaken;
mod next_boot;
mod once;
mod persist;
mod plan;
mod pools;
mod prepare;
mod preview;
mod program;
mod relocate;
mod resume;
mod rules;
mod session;
mod settle;
mod size;
mod source;
mod state;
mod texts;
mod transition;
mod unborne;
mod unconfirmed;
mod undo;
mod units;
mod unread;
mod until_reboot;
mod warm;
mod watch;
mod weekly;

pub use apply::{Applied, ApplyOptions, apply, can_persist};
pub use boot::lost::LostRun;
pub use boot::ungiven;
pub use changed::ChangedFile;
pub use check::{Checked, Stranger, check, check_without};
pub use confirm::{Confirmed, confirm};
pub use deed::{deed_access, do_once};
pub use doctor::{Doctor, KnobStatus, doctor};
pub use error::{PipelineError, move_aside};
pub use export::{LeftOut, Outgoing, outgoing};
pub use install::{InstallCheck, Installed, UnitFile, check_units, install_check};
pub use intent::{refuse_elsewhere, refuse_forged, refuse_impossible, refuse_short_of_memory};
pub use interrupted::{Half, Interrupted};
pub use log::{in_force, log};
pub use meant::running_like;
pub use mistaken::Judging;
pub use once::{apply_once, boot_alone, boots_on_trial, carried_over, default_entry, once_preview};
pub use plan::{PlanOptions, plan};
pub use planish_act::relocate::Named;
pub use preview::{Preview, persisted, preview, refuse_moved};
pub use program::{
    NewProgram, ReplacedProgram, check_program, check_replacement, kept_original, replace_program,
    replaced_before,
};
pub use relocate::{MOVE_RATE, MoveRequest, MovedProcess, MovedThreads, Relocated, relocate, told_end};
pub use resume::{
    ResumeUnit, can_resume, end_boots, install_resume, reboot, remove_resume, resume_units, stop_resume,
};
pub use session::{Seams, Session, SessionOptions, TrialAtWork};
pub use size::{Service, SizeRequest, size};
pub use source::Source;
pub use texts::{HeldText, TextFile};
pub use transition::Unfinished;
pub use unborne::{Unborne, is_undo_refused};
pub use unconfirmed::{Unconfirmed, all as unconfirmed};
pub use undo::{Target, Undone, undo};
pub use unread::UnreadDropIn;
pub use warm::{InstallWarm, has_unit, install_warm, masked, warm_units};
#[doc(hidden)]
pub use watch::take_unconfirmed;
pub use watch::{WATCH_COMMAND, keep_watch};
pub use weekly::{InstallPublish, Weekly, install_publish, publish_units};
