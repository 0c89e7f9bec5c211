//! Arms whose unit is one fresh start.
//!
//! ```text
//! rest -> apply the host arm, read back -> start the server -> ready -> warm-up -> load -> stop -> undo
//! ```
//!
//! Whatever fails on the way, the server is ended and the host arm undone before the next unit begins. A host
//! that cannot be put back ends the trial: nothing that follows could be believed.

use std::io::Read;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use planish_model::Profile;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::adapter::Load;
use crate::arm::Recipe;
use crate::child::{Launch, PADDING_MAX, Service, run_once};
use crate::collect::{TreeUsage, Window, tree, tree_usage};
use crate::control::Stop;
use crate::file::ServiceSpec;
use crate::host::{Applied, HostControl};
use crate::ladder::{Field, Stack};
use crate::outcome::{Achieved, Better, UnitKind};
use crate::sample::{ArmError, Sample};

/// How long a build may take.
const BUILD_LIMIT: Duration = Duration::from_secs(3 * 3600);

/// Makes the programs of a recipe: the load, and the server where there is one.
pub(crate) type Make = Box<dyn Fn(&Recipe) -> (Load, Option<Launch>)>;

/// One arm, ready to be started.
struct StartArm {
    recipe: Recipe,
    host: Option<Profile>,
    load: Load,
    service: Option<Launch>,
    built: bool,
    facts: Achieved,
}

/// What all arms share.
pub(crate) struct StartPlan {
    pub(crate) trial: String,
    pub(crate) service: Option<ServiceSpec>,
    pub(crate) limit: Duration,
    pub(crate) settle: Duration,
}

/// Arms whose unit is one fresh start.
pub(crate) struct StartField<'h> {
    arms: Vec<StartArm>,
    plan: StartPlan,
    make: Make,
    host: &'h mut dyn HostControl,
    stop: Stop,
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
        let placebo = recipes.first().cloned();
        let mut field = Self { arms: Vec::new(), plan, make, host, stop };
        recipes.into_iter().chain(placebo).for_each(|recipe| field.add(recipe));
        field
    }

    fn add(&mut self, recipe: Recipe) {
        let (load, service) = (self.make)(&recipe);
        let host = recipe.profile(&self.plan.trial);
        self.arms.push(StartArm { recipe, host, load, service, built: false, facts: Achieved::default() });
    }

    /// One unit of an arm, from rest to rest.
    fn unit_of(&mut self, arm: usize, seed: u64) -> Result<Sample, ArmError> {
        if !self.stop.sleep(self.plan.settle) {
            return Err(ArmError::Stopped);
        }
        let mut achieved = self.arms[arm].facts.clone();
        let applied = match &self.arms[arm].host {
            Some(profile) => self.host.apply(profile)?,
            None => Applied::default(),
        };
        let measured = match applied.short.first() {
            Some(short) => Err(ArmError::unavailable(short.clone())),
            None => self.measure(arm, seed),
        };
        if let Some(entry) = applied.entry {
            self.host.undo(entry)?;
        }
        achieved.facts.extend(applied.values);
        let mut sample = measured?;
        achieved.verified = true;
        sample.achieved = Some(achieved);
        Ok(sample)
    }

    fn measure(&mut self, arm: usize, seed: u64) -> Result<Sample, ArmError> {
        let padding = planish_stats::Rng::stream(seed, arm as u64).below(PADDING_MAX + 1);
        let (Some(launch), Some(spec)) = (&self.arms[arm].service, &self.plan.service) else {
            let load = &self.arms[arm].load;
            return load
                .warm_up(&self.stop)
                .and_then(|()| load.measure(padding, self.plan.limit, &self.stop));
        };
        let mut service = Service::start(launch, padding)?;
        let outcome = ready(&mut service, spec, &self.stop).and_then(|()| {
            if !self.stop.sleep(Duration::from_secs_f64(spec.warmup_seconds)) {
                return Err(ArmError::Stopped);
            }
            let load = &self.arms[arm].load;
            load.warm_up(&self.stop)?;
            let pid = service.pid();
            let window = Window::open(pid.map(tree).unwrap_or_default());
            let before = pid.and_then(tree_usage);
            let mut sample = load.measure(0, self.plan.limit, &self.stop)?;
            service.check()?;
            if let Some((before, after)) = before.zip(pid.and_then(tree_usage)) {
                add_service(&mut sample, &before, &after);
            }
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

    /// Builds the arm's program, once, and remembers which one it is.
    fn build(&mut self, arm: usize) -> Result<(), ArmError> {
        if self.arms[arm].built {
            return Ok(());
        }
        for command in &self.arms[arm].recipe.build {
            let launch = Launch { loud: true, ..Launch::of(command.clone()) };
            run_once(&launch, 0, BUILD_LIMIT, &self.stop).map_err(|error| match error {
                ArmError::Stopped => ArmError::Stopped,
                error => ArmError::unavailable(format!("its build fails: {error}")),
            })?;
        }
        let arm = &mut self.arms[arm];
        arm.built = true;
        let facts = &mut arm.facts.facts;
        if let Some(program) = &arm.recipe.program {
            let sha256 = fingerprint(program.as_ref())?;
            facts.insert("program".to_owned(), json!(program));
            facts.insert("program_sha256".to_owned(), json!(sha256));
        }
        if let Some(cpus) = &arm.recipe.cpus {
            facts.insert("cpus".to_owned(), json!(cpus.to_string()));
        }
        if let Some(node) = arm.recipe.node {
            facts.insert("node".to_owned(), json!(node));
        }
        if !arm.recipe.env.is_empty() {
            facts.insert("env".to_owned(), json!(arm.recipe.env));
        }
        Ok(())
    }
}

/// Waits until the server is ready by every sign that its spec names.
fn ready(service: &mut Service, spec: &ServiceSpec, stop: &Stop) -> Result<(), ArmError> {
    let limit = Duration::from_secs_f64(spec.ready_seconds);
    let begun = Instant::now();
    while !is_ready(spec, stop) {
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

fn is_ready(spec: &ServiceSpec, stop: &Stop) -> bool {
    let connects = |address: &String| {
        let addresses = address.to_socket_addrs().ok();
        addresses
            .into_iter()
            .flatten()
            .any(|at| TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_ok())
    };
    let succeeds = || {
        let launch = Launch::of(spec.ready_command.clone());
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

/// sha256 of a program: the verdict holds for these bytes and no others.
fn fingerprint(program: &std::path::Path) -> Result<String, ArmError> {
    let missing = |error: std::io::Error| {
        ArmError::unavailable(format!("its program {} cannot be read: {error}", program.display()))
    };
    let mut file = std::fs::File::open(program).map_err(missing)?;
    let mut hash = Sha256::new();
    let mut chunk = [0; 1 << 16];
    loop {
        match file.read(&mut chunk).map_err(missing)? {
            0 => break,
            length => hash.update(&chunk[..length]),
        }
    }
    Ok(crate::proof::hex(&hash.finalize()))
}

impl Field for StartField<'_> {
    fn unit(&self) -> UnitKind {
        UnitKind::Start
    }

    fn names(&self) -> Vec<String> {
        self.arms.iter().map(|arm| arm.recipe.name.clone()).collect()
    }

    fn twins(&self) -> [usize; 2] {
        [0, 0]
    }

    fn open(&mut self, arm: usize) -> Result<Option<Achieved>, ArmError> {
        if self.stop.is_set() {
            return Err(ArmError::Stopped);
        }
        if let Some(profile) = &self.arms[arm].host {
            self.host.can_have(profile)?;
        }
        self.build(arm)?;
        Ok(None)
    }

    fn shut(&mut self, _arm: usize) {}

    fn block(&mut self, order: &[usize], seed: u64) -> Vec<Result<Sample, ArmError>> {
        let mut lost = None;
        order
            .iter()
            .map(|&arm| {
                // Once the host could not be put back, no further arm may start on it.
                if let Some(error) = &lost {
                    return Err(ArmError::clone(error));
                }
                let sample = self.unit_of(arm, seed);
                if let Err(error @ ArmError::Host { .. }) = &sample {
                    lost = Some(error.clone());
                }
                sample
            })
            .collect()
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
