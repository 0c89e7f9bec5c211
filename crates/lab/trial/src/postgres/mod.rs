//! `planish prove postgres`: one PostgreSQL on base pages, transparent huge pages, 2 MB and 1 GB pages.
//!
//! ```text
//!            initdb + tables, once
//!                   |
//!        a copy of the data for each server
//!      /        |        |        |        \
//!    off       thp       2m       1g     placebo     resident together, prewarmed, each page size proved
//!      \        |        |        |        /
//!       slices of 0.35 s in complete random blocks: CPU time of the backends per transaction
//! ```
//!
//! Servers that are started one at a time show the neighbours of the machine and not the pages (+34 % and -11 %
//! for the same change were seen); resident together and sliced they agree within two points. What slices cannot
//! average out is the layout that a server got at its start, so a long run starts all of them afresh for each block.
//! Nothing of an existing cluster is touched: data, sockets and user are our own.

mod arm;
mod budget;
mod existing;
mod install;
mod layout;
mod proof;
mod query;
mod reach;
mod rehearsal;
mod room;
mod script;
mod server;
#[cfg(test)]
mod tests;
mod work;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use planish_model::HostFacts;
use planish_stats::Rng;
use planish_stats::ladder::Strictness;

pub use self::budget::SCALE_MAX;
pub use self::existing::{ConfLine, Existing, inspect};
pub use self::install::{Install, Version};
pub use self::layout::{Allocation, Backend, Cached, Layout, layout};
pub use self::query::{Queried, Query};

use self::arm::{ServerArm, SharedHost};
use self::budget::{Budget, Wish};
pub(crate) use self::room::account;
use self::room::{Account, Room};
pub(crate) use self::script::Script;
use self::server::{Pages, make_seed};
use self::work::Work;
use crate::control::{Phase, Stop, Tick};
use crate::error::TrialError;
use crate::kernel;
use crate::ladder::{Confirm, LadderOptions, PairsCure, WarmUpPlan, host_error};
use crate::outcome::{Better, LadderMode, MetricSpec, PostgresSetup, Setup, TrialOutcome};
use crate::resident::{Freshness, ResidentArm, ResidentArms, Slicing, run_resident};
use crate::run::{Ground, RunOptions};

/// Length of one slice: short against the moods of the machine, long against a backend's time slice.
const SLICE: Duration = Duration::from_millis(350);

/// Time for everything, long and quick, the making of the data included: the servers' end comes on top.
const BUDGET: [Duration; 2] = [Duration::from_secs(1200), Duration::from_secs(85)];

/// Slices of each server between two starts of a long run. A start is the unit there: two servers on the same kind of
/// pages differ by the layout of their memory, which slices of one start would take for an effect.
const SLICES_PER_START: usize = 6;

/// Smallest gain worth a reservation of memory.
const MIN_GAIN: f64 = 0.01;

/// The largest gain that is hoped for: the blog's 12 % and some more for in-server work.
const HOPE: f64 = 0.25;

/// Servers beside each other: baseline, three rungs, placebo.
const SERVERS: u64 = 5;

/// How PostgreSQL is proved, beside what every trial is told.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Rows in units of 100,000; without it as many as memory allows, 55 at most.
    pub scale: Option<u64>,
    /// `shared_buffers` of each server in bytes; without it a tenth more than the data.
    pub shared_buffers_bytes: Option<u64>,
    /// Clients of each server.
    pub clients: usize,
    /// A pgbench script instead of lookups. It may only read.
    pub workload: Option<PathBuf>,
    /// Folder of `postgres` and `initdb`.
    pub bin_folder: Option<PathBuf>,
}

/// What all servers of a run share.
#[derive(Debug)]
struct Stage {
    install: Install,
    room: Room,
    budget: Budget,
    work: Work,
    /// The text of the script that is the work.
    script: Option<String>,
    clients: usize,
    stop: Stop,
    /// Set at the end of the time for everything, too: no data is made or copied beyond it.
    until: Stop,
}

impl Stage {
    /// What is run, for the outcome.
    fn setup(&self) -> PostgresSetup {
        PostgresSetup {
            version: self.install.version.to_string(),
            bin_folder: self.install.folder.clone(),
            scale: self.budget.scale,
            shared_buffers_bytes: self.budget.shared_buffers_bytes,
            clients: self.clients,
            script: self.script.clone(),
        }
    }
}

/// Proves PostgreSQL on this ground, leaves the host as it was, and stores the proof.
///
/// # Errors
/// No PostgreSQL, no room in memory or on disk, a script that is not understood or writes, a baseline that does not
/// run.
pub fn prove_on(wishes: &PostgresOptions, ground: &mut Ground<'_>) -> Result<TrialOutcome, TrialError> {
    ground.proofs.check_writable()?;
    let begun = Instant::now();
    let options = ground.options;
    let facts = ground.host.facts();
    let mut ladder = ladder_options(wishes, options, facts)?;
    let left_seconds = ladder.budget.as_secs_f64();
    ground.progress.tick(&Tick { phase: Phase::Prepare, done: 0, of: 1, left_seconds });
    let budget = ladder.budget;
    let in_time = |error| match error {
        TrialError::Stopped if !options.stop.is_set() => {
            TrialError::TimeUp { pairs: 0, seconds: 2 * budget.as_secs().max(1) }
        }
        error => error,
    };
    let until = options.stop.until(begun + budget);
    let stage = Rc::new(prepare(wishes, options, &ladder.host, until).map_err(in_time)?);
    // What the making of the data has left of the time for everything.
    ladder.spent = begun.elapsed();
    ladder.budget = ladder.budget.saturating_sub(ladder.spent);

    // After this point the data set is there; whatever happens, its folder goes with the stage.
    let host: SharedHost<'_> = Rc::new(RefCell::new(&mut *ground.host));
    let freshness =
        if options.quick { Freshness::Resident } else { Freshness::Restart { slices: SLICES_PER_START } };
    let slicing = Slicing { slice: SLICE, freshness };
    let outcome =
        run_resident(arms(&stage, ladder.seed, &host), slicing, &ladder, ground.progress, &options.stop);

    // The servers have ended with their arms, so that their pages are free to go back.
    let restored = host.borrow_mut().undo_all().map_err(host_error);
    let mut outcome = outcome.map_err(in_time)?;
    restored?;
    outcome.notes.extend(reach::notes(&stage.install, &stage.budget, stage.clients));
    outcome.command = options.repeated(outcome.seed);
    outcome.setup = Some(Setup::Postgres(stage.setup()));
    ground.proofs.store(&mut outcome)?;
    Ok(outcome)
}

/// Finds the programs, sizes the servers and makes the data set.
fn prepare(
    wishes: &PostgresOptions,
    options: &RunOptions,
    host: &HostFacts,
    until: Stop,
) -> Result<Stage, TrialError> {
    let (work, script) = match &wishes.workload {
        Some(file) => {
            let text = read_script(file)?;
            (Work::Script(Script::parse(file, &text)?), Some(text))
        }
        None => (Work::Reads, None),
    };
    let install = Install::find(wishes.bin_folder.as_deref())?;
    let wish = Wish {
        scale: wishes.scale,
        shared_buffers_bytes: wishes.shared_buffers_bytes,
        clients: wishes.clients as u64,
        quick: options.quick,
    };
    let available = kernel::memory_available_bytes().unwrap_or(host.available_bytes);
    let budget = Budget::new(wish, SERVERS, host.memory_bytes, available)?;
    let room = Room::make(Account::choose()?, &budget)?;
    make_seed(&install, &room, &budget, &until, |server| match (&work, &wishes.workload) {
        (Work::Script(script), Some(file)) => rehearsal::rehearse(server, file, script, budget.scale, &until),
        _ => Ok(()),
    })?;
    let (clients, stop) = (wishes.clients, options.stop.clone());
    Ok(Stage { install, room, budget, work, script, clients, stop, until })
}

fn arms<'h>(stage: &Rc<Stage>, seed: u64, host: &SharedHost<'h>) -> ResidentArms<'h> {
    let mut seeds = Rng::new(seed);
    let mut arm = |name: &str, pages| -> Box<dyn ResidentArm + 'h> {
        Box::new(ServerArm::new(name, pages, seeds.next_u64(), Rc::clone(stage), Rc::clone(host)))
    };
    // The 1 GB pages are asked for while memory is least scattered.
    ResidentArms {
        baseline: arm("off", Pages::Base),
        rungs: vec![arm("1g", Pages::Huge(1 << 30)), arm("2m", Pages::Huge(2 << 20)), arm("thp", Pages::Thp)],
        placebo: arm(TrialOutcome::PLACEBO, Pages::Base),
    }
}

fn ladder_options(
    wishes: &PostgresOptions,
    options: &RunOptions,
    host: HostFacts,
) -> Result<LadderOptions, TrialError> {
    let confirm = if options.quick {
        Confirm::Skip { because: "the short form has no time for it".to_owned() }
    } else {
        Confirm::Fresh
    };
    let what = match &wishes.workload {
        Some(file) => format!("the script {}", file.display()),
        None => "pgbench -S and in-server lookups".to_owned(),
    };
    Ok(LadderOptions {
        trial: "postgres".to_owned(),
        summary: format!("What do huge pages under shared_buffers save PostgreSQL for {what}?"),
        quick: options.quick,
        primary: MetricSpec {
            name: "cpu_ns_per_op".to_owned(),
            unit: "ns".to_owned(),
            better: Better::Lower,
        },
        mode: LadderMode::Block,
        duet: false,
        min_gain: MIN_GAIN,
        rung_gains: Vec::new(),
        hope: HOPE,
        strictness: Strictness::Usual,
        // Latency and throughput of clients that share the processors with everything else are their neighbours'.
        // They are shown and guard nothing; an SQL error ends the slice, and with it the arm.
        guards: Vec::new(),
        seed: options.checked_seed(None)?,
        budget: options.checked_budget(BUDGET[usize::from(options.quick)])?,
        spent: Duration::ZERO,
        pairs_max: 32,
        pairs_cure: PairsCure::alike("run it again at a quieter time: this proof runs no more"),
        pairs_min: 0,
        selfcheck_pairs: 8,
        warm_up: WarmUpPlan::Auto,
        confirm,
        host,
        refused: Vec::new(),
    })
}

fn read_script(file: &std::path::Path) -> Result<String, TrialError> {
    let text = planish_sys::file::read_text(file);
    text.map_err(|source| TrialError::Unreadable { path: file.to_owned(), source })
}
