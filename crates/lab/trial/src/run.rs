//! Runs a trial file: arms from its rows, the ladder over them, the proof, and what is kept.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use planish_model::{EntryId, Exit};
use planish_pipeline::Session;
use planish_sorted::SortSmall as _;
use planish_stats::Rng;

use crate::adapter::{AdapterKind, Load, SliceArm};
use crate::arm::{Recipe, own_program};
use crate::child::Launch;
use crate::control::{Phase, Progress, SECONDS_MAX, Stop, Tick};
use crate::duet;
use crate::error::TrialError;
use crate::file::TrialFile;
use crate::hooks::{Hooks, has_pressure};
use crate::host::{HostControl, Kept, PipelineHost};
use crate::ladder::{
    Confirm, Field, LadderOptions, PairsCure, SEED_LIMIT, check_only, climb, fresh_seed, host_error,
};
use crate::outcome::{Refusal, RungVerdict, SelfCheck, Setup, TrialOutcome};
use crate::proof::{Honesty, Proofs};
use crate::resident::{Freshness, ResidentArm, ResidentArms, ResidentField, Slicing};
use crate::sample::ArmError;
use crate::start::{StartField, StartPlan, stacked};
use crate::text::{self, TextArm};

/// What helps where the pairs of a trial file are too few.
const PAIRS_CURE: PairsCure = PairsCure {
    more: "raise `pairs` in the trial file, or in a copy of a shipped one (4096 at most)",
    beyond: "no trial runs as many as that: ask for a larger `min_gain` in the trial file, or in a copy of a shipped \
             one, or run it at a quieter time",
};

/// How a trial is run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The short form: time, sizes and slices of the file's `[quick]`, and no confirmation.
    pub quick: bool,
    /// Persist what is kept and confirmed.
    pub keep: bool,
    /// Run the two arms of a pair at the same time, also where the file does not say so.
    pub duet: bool,
    /// Seed of every draw; without one the file's, or a fresh one.
    pub seed: Option<u64>,
    /// Time for everything; without one the file's.
    pub budget: Option<Duration>,
    /// The program that `planish` stands for in commands: the running one.
    pub program: PathBuf,
    /// The command line that was typed: what root would have to type is made from it.
    pub command: String,
    /// Ends the trial early.
    pub stop: Stop,
}

impl RunOptions {
    /// The seed that was asked for, that of the trial's file, or a fresh one.
    pub(crate) fn checked_seed(&self, of_file: Option<u64>) -> Result<u64, TrialError> {
        let seed = self.seed.or(of_file).unwrap_or_else(fresh_seed);
        if seed < SEED_LIMIT {
            return Ok(seed);
        }
        let cure = "give one below 2^53".to_owned();
        Err(TrialError::Refused { what: format!("the seed {seed} is too large"), cure })
    }

    /// The command line that runs the same again with this seed, which was drawn where none was typed.
    pub(crate) fn repeated(&self, seed: u64) -> String {
        match self.seed {
            None if !self.command.is_empty() => format!("{} --seed {seed}", self.command),
            _ => self.command.clone(),
        }
    }

    /// The time that was asked for, or that of the trial.
    pub(crate) fn checked_budget(&self, of_trial: Duration) -> Result<Duration, TrialError> {
        let budget = self.budget.unwrap_or(of_trial);
        if budget <= Duration::from_secs(SECONDS_MAX) {
            return Ok(budget);
        }
        let what = format!("a budget of {} s is too long", budget.as_secs());
        Err(TrialError::Refused { what, cure: format!("give {SECONDS_MAX} s at most, which is 30 days") })
    }
}

/// Everything that a run stands on.
pub struct Ground<'a> {
    /// How it is run.
    pub options: &'a RunOptions,
    /// The control plane.
    pub host: &'a mut dyn HostControl,
    /// Where its proof goes.
    pub proofs: &'a Proofs,
    /// Who listens.
    pub progress: &'a mut dyn Progress,
}

/// Runs a trial on the host of a session, and stores its proof in the state folder of it.
///
/// # Errors
/// As [`run_on`].
pub fn run(
    trial: &TrialFile,
    session: &Session,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<TrialOutcome, TrialError> {
    check_keep(trial, options)?;
    let sets = sets_host(trial);
    let other = session.trial_at_work().filter(|_| !sets);
    let mut outcome = on_session(session, options, sets, progress, |ground| run_on(trial, ground))?;
    outcome.notes.extend(other.map(|pid| {
        format!("another trial (pid {pid}) was setting this host when this one began: here that is noise")
    }));
    Ok(outcome)
}

/// Runs only the self-check of a trial, on the host of a session; `None` when it was stopped.
///
/// # Errors
/// As [`run_on`].
pub fn selfcheck(
    trial: &TrialFile,
    session: &Session,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Option<SelfCheck>, TrialError> {
    on_session(session, options, sets_host(trial), progress, |ground| selfcheck_on(trial, ground))
}

/// The false-keep rate of all placebos whose proofs are in the state folder of a session.
///
/// # Errors
/// The folder cannot be read.
pub fn honesty(session: &Session) -> Result<Honesty, TrialError> {
    Proofs::of_state(session.state_folder()).honesty()
}

/// Whether a trial changes the host for an arm, or between its units.
fn sets_host(trial: &TrialFile) -> bool {
    let name = trial.name.get_ref();
    recipes(trial).iter().any(|recipe| recipe.profile(name).is_some()) || !trial.hooks().actions().is_empty()
}

/// The ground of a session. Where this trial `sets` the host, no other one does.
pub(crate) fn on_session<T>(
    session: &Session,
    options: &RunOptions,
    sets: bool,
    progress: &mut dyn Progress,
    run: impl FnOnce(&mut Ground<'_>) -> Result<T, TrialError>,
) -> Result<T, TrialError> {
    // A slip of the hand is told whoever else is at work.
    options.checked_budget(Duration::ZERO)?;
    let mut host = PipelineHost::new(session, &options.command);
    if sets {
        host.begin()?;
    }
    let proofs = Proofs::of_state(session.state_folder());
    run(&mut Ground { options, host: &mut host, proofs: &proofs, progress })
}

/// Runs a trial on a ground of the caller and leaves the host as it was, except for what is kept.
///
/// # Errors
/// The baseline does not get through the self-check, the numbers allow no conclusion, the host cannot be set or not be
/// put back, or the proof cannot be stored. The host has been put back in all cases but the one that says otherwise.
pub fn run_on(trial: &TrialFile, ground: &mut Ground<'_>) -> Result<TrialOutcome, TrialError> {
    if trial.boots.is_some() {
        return Err(TrialError::Usage {
            what: "arms of this trial are boots, which are not run within one of them".to_owned(),
            cure: "planish trial run FILE --allow reboot".to_owned(),
        });
    }
    check_keep(trial, ground.options)?;
    ground.proofs.check_writable()?;
    let mut recipes = recipes(trial);
    if ground.options.keep && !ground.options.quick {
        ask_to_persist(&recipes[1..], trial, ground.host)?;
    }
    // What is refused is refused before minutes of compiling.
    refuse_duet(trial, ground.options)?;
    ladder_options(trial, ground)?;
    hooks(trial, ground)?;
    // Nobody makes other programs in the folder of these until the proof is stored.
    let _programs = text::make(trial, &mut recipes, ground)?;
    let outcome = with_field(trial, &recipes, ground, |field, options, progress, stop| {
        climb(field, options, progress, stop)
    });
    let restored = ground.host.undo_all().map_err(host_error);
    let mut outcome = outcome?;
    restored?;
    // After this point the host is as it was, and no child of ours runs.
    outcome.command = ground.options.repeated(outcome.seed);
    outcome.setup = Some(Setup::File(trial.resolved().to_text()));
    text::look_again(&recipes, ground.options, &mut outcome);
    ground.proofs.store(&mut outcome)?;
    if ground.options.keep {
        keep(&recipes, &mut outcome, ground.host);
    }
    Ok(outcome)
}

/// What is kept and not confirmed is not persisted, and whether it will be is known before the first unit.
fn check_keep(trial: &TrialFile, options: &RunOptions) -> Result<(), TrialError> {
    if !options.keep || trial.confirm {
        return Ok(());
    }
    Err(TrialError::Usage {
        what: "--keep persists what is confirmed, and the trial file says `confirm = false`".to_owned(),
        cure: "take `confirm = false` out of the file, or leave --keep out".to_owned(),
    })
}

/// Asks for the right to persist each rung that can be had here, before anything is measured for it.
pub(crate) fn ask_to_persist(
    rungs: &[Recipe],
    trial: &TrialFile,
    host: &dyn HostControl,
) -> Result<(), TrialError> {
    let profiles = rungs.iter().filter_map(|recipe| recipe.profile(trial.name.get_ref()));
    profiles.filter(|profile| host.can_have(profile).is_ok()).try_for_each(|profile| {
        host.can_persist(&profile).map_err(|error| match error {
            TrialError::Refused { what, cure } => TrialError::Refused {
                what: format!("--keep could not persist what pays: {what}"),
                cure: format!("{cure}; or leave --keep out"),
            },
            error => error,
        })
    })
}

/// Runs only the self-check of a trial; `None` when it was stopped.
///
/// # Errors
/// As [`run_on`].
pub fn selfcheck_on(trial: &TrialFile, ground: &mut Ground<'_>) -> Result<Option<SelfCheck>, TrialError> {
    let mut recipes = recipes(trial);
    // The program as it is linked is all that it runs.
    recipes.iter_mut().skip(1).for_each(|recipe| recipe.text_words.clear());
    let _programs = text::make(trial, &mut recipes, ground)?;
    let check = with_field(trial, &recipes, ground, check_only);
    ground.host.undo_all().map_err(host_error)?;
    check
}

pub(crate) fn recipes(trial: &TrialFile) -> Vec<Recipe> {
    [&trial.baseline].into_iter().chain(&trial.rung).map(Recipe::of).collect()
}

pub(crate) fn with_field<T>(
    trial: &TrialFile,
    recipes: &[Recipe],
    ground: &mut Ground<'_>,
    run: impl FnOnce(&mut dyn Field, &LadderOptions, &mut dyn Progress, &Stop) -> Result<T, TrialError>,
) -> Result<T, TrialError> {
    refuse_duet(trial, ground.options)?;
    let mut options = ladder_options(trial, ground)?;
    let stop = ground.options.stop.clone();
    if trial.workload.adapter == AdapterKind::Slices {
        let total_seconds = options.budget.as_secs_f64();
        ground.progress.tick(&Tick { phase: Phase::Prepare, done: 0, of: 1, left_seconds: total_seconds });
        let begun = Instant::now();
        let mut field = resident_field(trial, recipes, options.seed, ground)?;
        // What the raising of pools has left of the time for everything.
        options.spent = begun.elapsed();
        options.budget = options.budget.saturating_sub(options.spent);
        return run(&mut field, &options, ground.progress, &stop);
    }
    let plan = StartPlan {
        seed: options.seed,
        trial: trial.name.get_ref().clone(),
        primary: trial.primary_name(),
        service: trial.service.clone(),
        limit: Duration::from_secs_f64(trial.workload.timeout_seconds),
        hooks: hooks(trial, ground)?,
        sides: if options.duet { Some(duet::sides()?) } else { None },
    };
    let make = maker(trial, ground.options);
    let mut field = StartField::new(recipes.to_vec(), plan, make, ground.host, stop.clone());
    run(&mut field, &options, ground.progress, &stop)
}

/// The hooks of a trial, once it is known that this user may do what they need.
fn hooks(trial: &TrialFile, ground: &Ground<'_>) -> Result<Hooks, TrialError> {
    let hooks = trial.hooks();
    for action in hooks.actions() {
        ground.host.can_do(action).map_err(|error| {
            let cure = match &error {
                ArmError::Unavailable { cure, .. } if !cure.is_empty() => cure.clone(),
                _ => format!("leave {} out of `settle` and `reset`", action.knob().0),
            };
            TrialError::Refused { what: format!("between the units: {error}"), cure }
        })?;
    }
    if trial.workload.settle.psi_below.is_some() && !has_pressure() {
        let what = "`psi_below`: this kernel tells no pressure in /proc/pressure".to_owned();
        return Err(TrialError::Refused {
            what,
            cure: "wait for a fixed time instead: `seconds`".to_owned(),
        });
    }
    Ok(hooks)
}

fn is_duet(trial: &TrialFile, options: &RunOptions) -> bool {
    options.duet || trial.duet.as_ref().is_some_and(|duet| *duet.get_ref())
}

/// A file that asks for a duet was checked; one that is asked to be one on the command line was not.
fn refuse_duet(trial: &TrialFile, options: &RunOptions) -> Result<(), TrialError> {
    match duet::objection(trial).filter(|_| is_duet(trial, options)) {
        Some(what) => Err(TrialError::Refused { what, cure: "leave --duet out".to_owned() }),
        None => Ok(()),
    }
}

pub(crate) fn ladder_options(trial: &TrialFile, ground: &Ground<'_>) -> Result<LadderOptions, TrialError> {
    let options = ground.options;
    let seed = options.checked_seed(trial.seed)?;
    let seconds = if options.quick { trial.quick.budget_seconds } else { trial.budget_seconds };
    let confirm = if options.quick {
        Confirm::Skip { because: "the short form has no time for it".to_owned() }
    } else if !trial.confirm {
        Confirm::Skip { because: "the trial file says so".to_owned() }
    } else {
        Confirm::Fresh
    };
    Ok(LadderOptions {
        trial: trial.name.get_ref().clone(),
        summary: trial.summary.clone(),
        quick: options.quick,
        primary: trial.primary_spec(),
        mode: trial.mode(),
        duet: is_duet(trial, options),
        min_gain: trial.least_gain(),
        rung_gains: trial.rung_gains(),
        hope: trial.hope,
        strictness: trial.strictness(),
        guards: trial.guards(),
        seed,
        budget: options.checked_budget(Duration::from_secs_f64(seconds))?,
        spent: Duration::ZERO,
        pairs_max: trial.pairs,
        pairs_cure: PAIRS_CURE,
        pairs_min: trial.pairs_min,
        selfcheck_pairs: trial.selfcheck_pairs,
        warm_up: trial.warm_up(),
        confirm,
        host: ground.host.facts(),
        refused: Vec::new(),
    })
}

/// Makes load and server out of a recipe: the recipe changes the server where there is one, else the load.
fn maker(trial: &TrialFile, options: &RunOptions) -> crate::start::Make {
    let workload = trial.workload.clone();
    let service = trial.service.clone();
    let planish = options.program.clone();
    let more = if options.quick { trial.quick.args.clone() } else { Vec::new() };
    Box::new(move |recipe: &Recipe| {
        let server = service.as_ref().map(|service| recipe.launch(&service.command, &planish, &more));
        let launch = match server {
            Some(_) => Launch {
                env: recipe.text.as_ref().map(TextArm::env_of_load).unwrap_or_default(),
                ..Launch::of(own_program(&workload.command, &planish))
            },
            None => recipe.launch(&workload.command, &planish, &more),
        };
        let load = match (workload.adapter, &workload.http) {
            (AdapterKind::Http, Some(http)) => Load::Http(http.clone()),
            (AdapterKind::Number, _) => Load::Number(launch, workload.metric.clone()),
            (AdapterKind::Pgbench, _) => Load::Pgbench(launch),
            (AdapterKind::Jitter, _) => Load::Jitter(launch),
            _ => Load::Command(launch),
        };
        (load, server)
    })
}

/// Arms that stay resident. Their pools are raised first, for as long as the trial lasts.
fn resident_field(
    trial: &TrialFile,
    recipes: &[Recipe],
    seed: u64,
    ground: &mut Ground<'_>,
) -> Result<ResidentField<'static>, TrialError> {
    let mut seeds = Rng::new(seed);
    let mut arms: Vec<Box<dyn ResidentArm>> = Vec::new();
    for recipe in recipes.iter().chain(recipes.first()) {
        let pool = match recipe.profile(trial.name.get_ref()) {
            Some(profile) => raise(ground.host, &profile)?,
            None => Pool::Enough,
        };
        let inner = slice_arm(trial, recipe, ground.options).padded_by(seeds.next_u64());
        arms.push(Box::new(SlicedArm { inner, pool }));
    }
    let placebo = arms.pop().expect("the baseline was added twice");
    let baseline = arms.remove(0);
    let quick = ground.options.quick;
    let slices = if quick { trial.quick.slices_per_start } else { trial.workload.slices_per_start };
    let freshness = match slices {
        Some(slices) => Freshness::Restart { slices },
        None => Freshness::Resident,
    };
    let slicing = Slicing { slice: Duration::from_millis(trial.workload.slice_ms), freshness };
    let stop = ground.options.stop.clone();
    Ok(ResidentField::new(
        ResidentArms { baseline, rungs: arms, placebo },
        slicing,
        trial.primary_name(),
        stop,
    ))
}

pub(crate) fn slice_arm(trial: &TrialFile, recipe: &Recipe, options: &RunOptions) -> SliceArm {
    let more = if options.quick { trial.quick.args.as_slice() } else { &[] };
    let launch = recipe.launch(&trial.workload.command, &options.program, more);
    let limit = Duration::from_secs_f64(trial.workload.timeout_seconds);
    let arm = SliceArm::new(&recipe.name, launch, limit, &options.stop);
    match &recipe.backing {
        Some(backing) => arm.must_have(backing),
        None => arm,
    }
}

/// What became of the pool that an arm wants.
enum Pool {
    /// It is there, or none was wanted.
    Enough,
    /// It could not be raised, or not by enough: the arm may find free pages all the same.
    Lacking { reason: String, cure: String },
}

fn raise(host: &mut dyn HostControl, profile: &planish_model::Profile) -> Result<Pool, TrialError> {
    match host.can_have(profile).and_then(|()| host.apply(profile)) {
        Ok(applied) => Ok(match applied.short.into_iter().next() {
            None => Pool::Enough,
            Some(reason) => {
                give_back(host, applied.entry)?;
                Pool::Lacking { reason, cure: String::new() }
            }
        }),
        Err(ArmError::Unavailable { reason, cure }) => Ok(Pool::Lacking { reason, cure }),
        Err(error) => Err(host_error(error)),
    }
}

/// Pages of a short grant help nobody: too few for the arm, and missed by all others.
fn give_back(host: &mut dyn HostControl, entry: Option<EntryId>) -> Result<(), TrialError> {
    entry.map_or(Ok(()), |entry| host.undo(entry).map_err(host_error))
}

/// A slice arm that knows what became of its pool, to say why it cannot start.
struct SlicedArm {
    inner: SliceArm,
    pool: Pool,
}

impl ResidentArm for SlicedArm {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn start(&mut self) -> Result<crate::outcome::Achieved, ArmError> {
        self.inner.start().map_err(|error| match (error, &self.pool) {
            (ArmError::Unavailable { reason, cure: own }, Pool::Lacking { reason: pool, cure }) => {
                let cure = if cure.is_empty() { own } else { cure.clone() };
                ArmError::Unavailable { reason: format!("{pool} ({reason})"), cure }
            }
            (error, _) => error,
        })
    }

    fn slice(&mut self, duration: Duration, seed: u64) -> Result<crate::sample::Sample, ArmError> {
        self.inner.slice(duration, seed)
    }

    fn stop(&mut self) {
        self.inner.stop();
    }
}

/// Persists what is kept, and says what of it is not a matter of the host. Whatever comes of it, the outcome is there.
fn keep(recipes: &[Recipe], outcome: &mut TrialOutcome, host: &mut dyn HostControl) {
    let kept: Vec<&Recipe> = recipes.iter().filter(|recipe| is_kept(outcome, &recipe.name)).collect();
    let placebo = outcome.placebo_was_kept();
    let confirmed = outcome.rungs.iter().any(|rung| rung.confirmed.is_some());
    if placebo || (!kept.is_empty() && !confirmed) {
        let why = if placebo { "the placebo was kept too" } else { "nothing was confirmed" };
        outcome.refused.push(Refusal {
            what: "--keep".to_owned(),
            why: why.to_owned(),
            cure: "run it again, in the long form".to_owned(),
        });
        return;
    }
    let Some(stack) = stacked(measured_together(kept, outcome)) else {
        outcome.notes.push("nothing was kept, so nothing was persisted".to_owned());
        return;
    };
    if let Some(mut profile) = stack.profile(&outcome.trial) {
        profile.name = format!("trial-{}", outcome.trial);
        let proof = outcome.proof_id.clone().unwrap_or_default();
        match host.persist(&profile, &format!("trial {}, proof {proof}", outcome.trial)) {
            Ok(kept) => note_kept(outcome, kept),
            Err(error) => not_kept(outcome, &error),
        }
    }
    let yours = yours(&stack);
    if !yours.is_empty() {
        outcome.notes.push(format!("to be set where the program is started: {}", yours.join(", ")));
    }
}

/// Of several arms that were kept those that were confirmed as one: all of them where their stack was, else the best
/// one alone. What nobody has measured together is not persisted together: two pools of pages are twice the memory.
fn measured_together<'r>(mut kept: Vec<&'r Recipe>, outcome: &mut TrialOutcome) -> Vec<&'r Recipe> {
    if kept.len() < 2 || is_kept(outcome, TrialOutcome::STACK) {
        return kept;
    }
    let confirmed = |recipe: &&Recipe| {
        let rung = outcome.rungs.iter().find(|rung| rung.name == recipe.name);
        rung.and_then(|rung| rung.confirmed.as_ref()).map_or(f64::NEG_INFINITY, |fresh| fresh.gain.effect)
    };
    kept.sort_small_by(|one, other| confirmed(other).total_cmp(&confirmed(one)));
    let others: Vec<String> = kept.drain(1..).map(|recipe| format!("`{}`", recipe.name)).collect();
    outcome.notes.push(format!(
        "only the best, `{}`, is persisted: {} paid alone too, and nobody has measured them together",
        kept[0].name,
        others.join(", ")
    ));
    kept
}

/// Tells what was persisted. What does not last is a finding, as it is of `apply --persist`.
pub(crate) fn note_kept(outcome: &mut TrialOutcome, kept: Kept) {
    outcome.notes.extend(kept.notes);
    if !kept.lasts && outcome.exit == Exit::Done.code() {
        outcome.exit = Exit::Findings.code();
        outcome
            .notes
            .push("exit code 1: not all that was kept is in force, now and after the next boot".to_owned());
    }
}

/// Tells what came in the way of persisting. A host that was not put back is told by the exit code as well.
pub(crate) fn not_kept(outcome: &mut TrialOutcome, error: &TrialError) {
    if let TrialError::Host { .. } = error {
        outcome.exit = error.exit().code();
    }
    outcome.refused.push(Refusal {
        what: "--keep".to_owned(),
        why: error.to_string(),
        cure: error.hints().join("; "),
    });
}

fn is_kept(outcome: &TrialOutcome, name: &str) -> bool {
    outcome.real_rungs().any(|rung| rung.name == name && rung.verdict == RungVerdict::Keep)
}

/// What belongs to the program's own start and not to the host.
fn yours(stack: &Recipe) -> Vec<String> {
    let env = stack.env.iter().map(|(name, value)| format!("{name}={value}"));
    let cpus = stack.cpus.iter().map(|cpus| format!("CPUs {cpus}"));
    let node = stack.node.iter().map(|node| format!("memory of node {node}"));
    let program = stack.program.iter().map(|program| format!("program {program}"));
    let args = stack.args.iter().map(|arg| format!("argument {arg}"));
    let text = stack.text.iter().filter(|text| !text.words.is_empty());
    let text = text.map(|text| format!("text {} (docs/text-order.md)", text.words()));
    env.chain(cpus).chain(node).chain(program).chain(args).chain(text).collect()
}
