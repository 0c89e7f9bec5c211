//! Arms whose unit is one fresh start.
//!
//! ```text
//! settle -> apply the host arm, read back -> start the server -> ready -> warm-up -> load -> stop -> undo -> reset
//! ```
//!
//! Whatever fails on the way, the server is ended and the host arm undone before the next unit begins. A host
//! that cannot be put back ends the trial: nothing that follows could be believed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use planish_model::Profile;
use planish_sys::CpuSet;

use crate::adapter::{Load, Unit};
use crate::arm::Recipe;
use crate::build::{seed_of, turn_of};
use crate::child::{Launch, Service, padding, run_once, watch_descendants};
use crate::collect::{TreeUsage, Window, tree, tree_usage};
use crate::control::Stop;
use crate::duet;
use crate::file::ServiceSpec;
use crate::hooks::Hooks;
use crate::host::{Applied, AtRest, HostControl};
use crate::ladder::{Field, Stack};
use crate::outcome::{Achieved, Better, UnitKind};
use crate::port::{answering, check_free};
use crate::sample::{ArmError, Sample};
use crate::text::TextArm;

/// Makes the programs of a recipe: the load, and the server where there is one.
pub(crate) type Make = Box<dyn Fn(&Recipe) -> (Load, Option<Launch>)>;

/// One arm, ready to be started.
struct StartArm {
    recipe: Recipe,
    host: Option<Profile>,
    /// One for each build of its program.
    variants: Vec<Variant>,
    built: bool,
}

/// An arm with one build of its program.
struct Variant {
    load: Load,
    service: Option<Launch>,
    facts: Achieved,
}

/// What all arms share.
pub(crate) struct StartPlan {
    /// Of the seeds of builds, and of their turns.
    pub(crate) seed: u64,
    pub(crate) trial: String,
    /// The metric that decides.
    pub(crate) primary: String,
    pub(crate) service: Option<ServiceSpec>,
    pub(crate) limit: Duration,
    /// What happens between units.
    pub(crate) hooks: Hooks,
    /// For pairs whose arms run at the same time: the CPUs of each.
    pub(crate) sides: Option<[CpuSet; 2]>,
}

/// Arms whose unit is one fresh start.
pub(crate) struct StartField<'h> {
    arms: Vec<StartArm>,
    /// The second instance of the baseline.
    placebo: usize,
    /// What host arms apply and this host can have: a placebo beside them goes through an apply that changes nothing,
    /// so that what the applying itself does to a unit is no gain and no loss of the rungs.
    rehearsed: Vec<Profile>,
    rehearsals: usize,
    /// Time for which the load runs before it is measured.
    warm: Duration,
    /// Windows of a unit at least, while a warm-up is looked for.
    lengthened: Option<usize>,
    plan: StartPlan,
    make: Make,
    host: &'h mut dyn HostControl,
    rest: AtRest,
    stop: Stop,
    /// Pairs of the race before this one: whose build it is the turn of.
    block: usize,
}

impl<'h> StartField<'h> {
    /// Arms of these recipes; the first is the baseline, and a second instance of it is added as placebo.
    pub(crate) fn new(
        recipes: Vec<Recipe>,
        plan: StartPlan,
        make: Make,
        host: &'h mut dyn HostControl,
        stop: Stop,
    ) -> Self {
        let baseline = recipes.first().map(Recipe::once_more);
        let placebo = recipes.len();
        let mut field = Self {
            arms: Vec::new(),
            placebo,
            rehearsed: Vec::new(),
            rehearsals: 0,
            warm: Duration::ZERO,
            lengthened: None,
            plan,
            make,
            host,
            rest: AtRest::default(),
            stop,
            block: 0,
        };
        recipes.into_iter().chain(baseline).for_each(|recipe| field.add(recipe));
        field
    }

    fn add(&mut self, recipe: Recipe) {
        let variant = |index: usize| {
            let (load, service) = (self.make)(&recipe.of_build(index));
            Variant { load, service, facts: Achieved::default() }
        };
        let variants = (0..recipe.builds()).map(variant).collect();
        let host = recipe.profile(&self.plan.trial);
        self.arms.push(StartArm { recipe, host, variants, built: false });
    }

    /// The build of an arm whose turn it is.
    fn turn(&self, arm: usize) -> usize {
        turn_of(self.plan.seed, self.block, self.arms[arm].variants.len())
    }

    /// One unit of an arm, from rest to rest.
    fn unit_of(&mut self, arm: usize, seed: u64) -> Result<Sample, ArmError> {
        self.plan.hooks.settle(self.host, &self.stop)?;
        let build = self.turn(arm);
        let mut achieved = self.arms[arm].variants[build].facts.clone();
        let applied = match &self.arms[arm].host {
            Some(profile) => self.host.apply(profile)?,
            None if arm == self.placebo => self.rehearse()?,
            None => Applied::default(),
        };
        let measured = match applied.short.first() {
            Some(short) => Err(ArmError::unavailable(short.clone())),
            None => {
                let [of_load, of_server] = paddings(arm, seed);
                let unit = self.unit_with(of_load);
                self.arms[arm].variants[build].measure(&self.plan, &unit, of_server)
            }
        };
        if let Some(entry) = applied.entry {
            self.host.undo(entry)?;
        }
        self.plan.hooks.reset(self.host, &self.stop)?;
        achieved.facts.extend(applied.values);
        achieved.count_parts();
        let mut sample = measured?;
        let of_host = self.arms[arm].host.as_ref().map(|_| Some(achieved.in_part.is_none()));
        achieved.verify(of_host, sample.achieved.take());
        sample.achieved = Some(achieved);
        sample.build = self.arms[arm].build(build);
        Ok(sample)
    }

    /// An apply that changes nothing, of each host arm in turn.
    fn rehearse(&mut self) -> Result<Applied, ArmError> {
        if self.rehearsed.is_empty() {
            return Ok(Applied::default());
        }
        self.rehearsals += 1;
        self.host.rehearse(&self.rehearsed[self.rehearsals % self.rehearsed.len()])
    }

    fn unit_with(&self, padding: usize) -> Unit<'_> {
        let (left_out, windows) = (self.warm, self.lengthened);
        Unit { padding, left_out, windows, limit: self.plan.limit, stop: &self.stop }
    }

    /// The units of one block, in this order.
    fn units(&mut self, order: &[usize], seed: u64) -> Vec<Result<Sample, ArmError>> {
        if let (Some(sides), &[one, other]) = (self.plan.sides.clone(), order) {
            return self.duo([one, other], seed, &sides);
        }
        let mut lost = None;
        order
            .iter()
            .map(|&arm| {
                // Once the host could not be put back, no further arm may start on it.
                if let Some(error) = &lost {
                    return Err(ArmError::clone(error));
                }
                let sample = self.unit_of(arm, seed);
                lost = sample.as_ref().err().filter(|error| error.ends_the_trial()).cloned();
                sample
            })
            .collect()
    }

    fn look_at_rest(&mut self) {
        let profiles: Vec<&Profile> = self.arms.iter().filter_map(|arm| arm.host.as_ref()).collect();
        self.rest.look(&profiles, self.host);
    }

    /// One unit of two arms at the same time, each on its side. They differ in nothing that the host is set to.
    fn duo(&mut self, order: [usize; 2], seed: u64, sides: &[CpuSet; 2]) -> Vec<Result<Sample, ArmError>> {
        if let Err(error) = self.plan.hooks.settle(self.host, &self.stop) {
            return vec![Err(error.clone()), Err(error)];
        }
        let units = [0, 1].map(|side| {
            let arm = &self.arms[order[side]];
            let turn = self.turn(order[side]);
            let variant = &arm.variants[turn];
            let load = variant.load.on_side(side, &sides[side]);
            let unit = self.unit_with(paddings(order[side], seed)[0]);
            let build = arm.build(turn);
            move || {
                let mut sample = load.measure(&unit)?;
                // The half of the CPUs that the coin dealt is nothing that the arm stands for.
                let mut achieved = variant.facts.clone();
                achieved.verify(Some(None), sample.achieved.take());
                sample.achieved = Some(achieved);
                sample.build = build;
                Ok(sample)
            }
        });
        let samples = duet::side_by_side(units);
        match self.plan.hooks.reset(self.host, &self.stop) {
            Ok(()) => samples.into(),
            Err(error) => vec![Err(error.clone()), Err(error)],
        }
    }

    /// Builds the arm's program, once, and remembers which one it is.
    fn build(&mut self, arm: usize) -> Result<(), ArmError> {
        if self.arms[arm].built {
            return Ok(());
        }
        // The placebo is the baseline once more: what was built for it is not built over.
        let recipe = self.arms[arm].recipe.clone();
        let twin = self.arms.iter().find(|other| other.built && other.recipe == recipe);
        let built = match twin {
            Some(twin) => twin.variants.iter().map(|variant| variant.facts.facts.clone()).collect(),
            None => (0..recipe.builds())
                .map(|index| recipe.build(index, seed_of(self.plan.seed, arm, index), &self.stop))
                .collect::<Result<Vec<_>, _>>()?,
        };
        let arm = &mut self.arms[arm];
        arm.built = true;
        for (variant, facts) in arm.variants.iter_mut().zip(built) {
            variant.facts.facts = facts;
            variant.facts.facts.extend(recipe.facts());
        }
        Ok(())
    }
}

impl StartArm {
    /// The number of a build, for an arm that has several.
    fn build(&self, index: usize) -> Option<usize> {
        (self.variants.len() > 1).then_some(index)
    }
}

impl Variant {
    /// Runs the load, on a server of its own where the plan has one. `unit` is that of the load; the server has the
    /// other padding.
    fn measure(&self, plan: &StartPlan, unit: &Unit<'_>, of_server: usize) -> Result<Sample, ArmError> {
        let stop = unit.stop;
        let (Some(launch), Some(spec)) = (&self.service, &plan.service) else {
            return self.load.warm_up(unit).and_then(|()| self.load.measure(unit));
        };
        check_free(spec)?;
        let mut service = Service::start(launch, of_server)?;
        let outcome = ready(&mut service, spec, &launch.env, stop).and_then(|()| {
            if !stop.sleep(Duration::from_secs_f64(spec.warmup_seconds)) {
                return Err(ArmError::Stopped);
            }
            watch_descendants();
            self.load.warm_up(unit)?;
            let pid = service.pid();
            let bound = pid.map_or(Ok(None), |pid| launch.bound(pid))?;
            let begun = Instant::now();
            let pids = pid.map(tree).unwrap_or_default();
            let before = pid.and_then(tree_usage);
            let took = begun.elapsed();
            let window = Window::open(pids);
            let mut sample = self.load.measure(unit)?;
            sample.achieved = bound;
            service.check()?;
            let ended = Instant::now();
            if let Some((before, after)) = before.zip(pid.and_then(tree_usage)) {
                add_service(&mut sample, &before, &after);
            }
            sample.bookkeeping += took + ended.elapsed();
            // After the load, which may have told its own: what counts is the server.
            window.close(&mut sample);
            Ok(sample)
        });
        let used = service.stop(Duration::from_secs_f64(spec.stop_seconds));
        let mut sample = outcome?;
        if let Some(used) = used {
            sample.put("rss_bytes", "B", Better::Lower, used.resident_bytes_max as f64);
        }
        Ok(sample)
    }
}

/// The padding of the environments of a unit: of the load, and of its server. Each is a start, in each arm of a block.
fn paddings(arm: usize, seed: u64) -> [usize; 2] {
    [0, 1].map(|start| padding(seed, 2 * arm as u64 + start))
}

/// Waits until the server is ready by every sign that its spec names.
fn ready(
    service: &mut Service,
    spec: &ServiceSpec,
    env: &BTreeMap<String, String>,
    stop: &Stop,
) -> Result<(), ArmError> {
    let limit = Duration::from_secs_f64(spec.ready_seconds);
    let begun = Instant::now();
    while !is_ready(spec, env, stop) {
        service.check()?;
        if begun.elapsed() > limit {
            return Err(ArmError::TimedOut { after: limit });
        }
        if !stop.sleep(Duration::from_millis(20)) {
            return Err(ArmError::Stopped);
        }
    }
    service.check()
}

/// The environment is that of the server, for a command that asks where it is.
fn is_ready(spec: &ServiceSpec, env: &BTreeMap<String, String>, stop: &Stop) -> bool {
    let connects = |address: &String| answering(address).is_some();
    let succeeds = || {
        let launch = Launch { env: env.clone(), ..Launch::of(spec.ready_command.clone()) };
        spec.ready_command.is_empty() || run_once(&launch, 0, Duration::from_secs(10), stop).is_ok()
    };
    spec.ready_tcp.as_ref().is_none_or(connects)
        && spec.ready_path.as_ref().is_none_or(|path| path.exists())
        && succeeds()
}

/// The server's own cost of the window.
fn add_service(sample: &mut Sample, before: &TreeUsage, after: &TreeUsage) {
    sample.collect("faults", "", Ok(after.faults.saturating_sub(before.faults) as f64));
    let user = after.user.saturating_sub(before.user).as_secs_f64();
    let system = after.system.saturating_sub(before.system).as_secs_f64();
    for (name, seconds) in [("user", user), ("system", system), ("cpu", user + system)] {
        sample.put(&format!("service_{name}_s"), "s", Better::Lower, seconds);
        if let Some(operations) = sample.operations.filter(|&count| count > 0.0) {
            sample.put(&format!("{name}_ns_per_op"), "ns", Better::Lower, 1e9 * seconds / operations);
        }
    }
}

impl Field for StartField<'_> {
    fn unit(&self) -> UnitKind {
        UnitKind::Start
    }

    fn names(&self) -> Vec<String> {
        self.arms.iter().map(|arm| arm.recipe.name.clone()).collect()
    }

    fn twins(&self) -> [usize; 2] {
        [0, self.placebo]
    }

    fn open(&mut self, arm: usize) -> Result<Option<Achieved>, ArmError> {
        if self.stop.is_set() {
            return Err(ArmError::Stopped);
        }
        if let Some(spec) = &self.plan.service {
            check_free(spec)?;
        }
        self.arms[arm].recipe.text.as_ref().map_or(Ok(()), TextArm::check)?;
        if let Some(profile) = &self.arms[arm].host {
            self.host.can_have(profile)?;
            if self.arms[arm].recipe.differs_on_the_host_alone(&self.arms[0].recipe) {
                self.host.can_differ(profile)?;
            }
        } else if arm == self.placebo {
            let rungs = self.arms[1..self.placebo].iter().filter_map(|arm| arm.host.as_ref());
            self.rehearsed = rungs.filter(|profile| self.host.can_have(profile).is_ok()).cloned().collect();
        }
        let arms = &self.arms[arm].variants;
        let mut launches = arms.iter().flat_map(|it| it.service.as_ref().or_else(|| it.load.launch()));
        launches.try_for_each(Launch::check_bound)?;
        self.build(arm)?;
        Ok(None)
    }

    fn shut(&mut self, _arm: usize) {}

    fn at_block(&mut self, block: usize) {
        self.block = block;
    }

    fn is_disturbed(&self) -> bool {
        self.rest.is_changed()
    }

    fn notes(&self) -> Vec<String> {
        self.plan.hooks.note().into_iter().chain(self.rest.note()).collect()
    }

    fn block(&mut self, order: &[usize], seed: u64) -> Vec<Result<Sample, ArmError>> {
        self.look_at_rest();
        let samples = self.units(order, seed);
        self.look_at_rest();
        samples
    }

    fn lengthen(&mut self, windows: Option<usize>) {
        self.lengthened = windows;
    }

    fn warm_up(&mut self, time: Duration) -> bool {
        let mut loads = self.arms.iter().flat_map(|arm| &arm.variants).map(|variant| &variant.load);
        let can = loads.all(|load| load.can_warm_up(&self.plan.primary));
        if can {
            self.warm = time;
        }
        can
    }

    /// Pgbench tells its throughput in windows, whose mean it is; other loads must be run again.
    fn recut(&self, sample: &Sample) -> Option<(Sample, f64)> {
        let window = sample.window.as_ref().filter(|window| window.metric == self.plan.primary)?;
        if !matches!(self.arms.first()?.variants.first()?.load, Load::Pgbench(_)) {
            return None;
        }
        let left_out = (self.warm.as_secs_f64() / window.length.as_secs_f64()).round() as usize;
        let mut sample = sample.clone();
        sample.windows = sample.windows.split_off(left_out.min(sample.windows.len()));
        let metric = sample.metrics.get_mut(&self.plan.primary).filter(|_| !sample.windows.is_empty())?;
        metric.value = planish_stats::summary::mean(&sample.windows);
        Some((sample, 0.0))
    }

    fn stack(&mut self, kept: &[usize]) -> Option<Stack> {
        let mut left_out = Vec::new();
        let mut stack: Option<Recipe> = None;
        for &arm in kept {
            let recipe = &self.arms[arm].recipe;
            match stack.as_ref().map(|stack| stack.and(recipe)) {
                None => stack = Some(recipe.clone()),
                Some(Some(both)) => stack = Some(both),
                Some(None) => left_out.push(arm),
            }
        }
        let mut recipe = stack?;
        recipe.name = crate::outcome::TrialOutcome::STACK.to_owned();
        // Every program of the stack was built for its own rung.
        recipe.build.clear();
        self.add(recipe);
        Some(Stack { arm: self.arms.len() - 1, left_out })
    }
}

/// The arms of a stack, for those who persist it.
pub(crate) fn stacked<'r>(recipes: impl IntoIterator<Item = &'r Recipe>) -> Option<Recipe> {
    let mut recipes = recipes.into_iter();
    let first = recipes.next()?.clone();
    Some(recipes.fold(first, |stack, recipe| stack.and(recipe).unwrap_or(stack)))
}
