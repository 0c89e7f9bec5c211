//! The method against its rivals on simulated hosts: what `docs/statistics.md` shows and the tests hold it
//! to.
//!
//! Every method sees the same hosts. A repetition is a stream of the seed, so any one of them can be run
//! again alone.

mod guard;
mod host;
mod ladder;
mod layout;
mod method;
mod step;
mod table;
mod warmup;

pub use guard::{GUARD_REPS, GuardCell, Spoils, guard_cell, guard_table};
pub use host::{Setting, TRIALS, trace};
pub use ladder::{LadderMethod, MIXED_LADDER, NULL_LADDER};
pub use layout::{LAYOUT_REPS, LAYOUT_SDS, LayoutCell, layout_cell, layout_table};
pub use method::{Claim, Method};
pub use step::{StepMixed, StepNull, StepRow, StepTable, step_row, step_table};
pub use table::{
    FalseKeepCell, FalseKeepRow, FalseKeepTable, LadderRow, LadderTable, MixedLadder, NullLadder,
    false_keep_cell, false_keep_table, ladder_row, ladder_table,
};
pub use warmup::{
    Beginning, Care, CareCell, WARM_UP_REPS, WARM_UP_SETTINGS, WarmUpCell, care_cell, care_table,
    warm_up_cell, warm_up_table,
};

/// Repetitions behind the tables of `docs/statistics.md`.
pub const REPS: u32 = 1000;

/// Seed of the tables of `docs/statistics.md`.
pub const SEED: u64 = 1;
