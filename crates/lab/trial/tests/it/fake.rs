//! Arms whose truth is known.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use planish_model::HostFacts;
use planish_stats::Rng;
use planish_stats::ladder::Strictness;
use planish_trial::{
    Achieved, ArmError, Better, Confirm, GuardSpec, LadderMode, LadderOptions, MetricSpec, PairsCure,
    ResidentArm, ResidentArms, Sample, Stop, WarmUpPlan,
};

/// What happened to an arm, shared with the test.
#[derive(Debug, Default)]
pub struct Log {
    pub starts: usize,
    pub slices: usize,
    pub running: bool,
}

/// The memory of a machine: what each free place of it costs, in logs; the place that was freed last is given first.
pub type Memory = Rc<RefCell<Vec<f64>>>;

/// What a slice of an arm does instead of work.
#[derive(Clone, Debug, Default)]
pub enum Fault {
    #[default]
    None,
    Unavailable,
    CrashAlways,
    CrashAt(usize),
    /// In these slices, the first being 1.
    CrashIn(Range<usize>),
    /// From this slice on, and it does not start again.
    GoneAt(usize),
    TimesOutAt(usize),
    StopsTrialAt(usize, Stop),
    /// The user ends the trial while it crashes.
    CrashesAndStopsTrialAt(usize, Stop),
}

/// An arm that takes `cost` nanoseconds an operation, times log-normal noise.
pub struct Fake {
    name: String,
    cost: f64,
    sigma: f64,
    layout_sigma: f64,
    layout: f64,
    /// Where its layouts come from, if not from a draw of each start.
    memory: Option<Memory>,
    tail: f64,
    /// From which start on it costs less, and by how much in logs.
    luck: (usize, f64),
    /// What a slice costs beyond its level, in logs, by its number since the start.
    course: fn(usize) -> f64,
    since_start: usize,
    rng: Rng,
    fault: Fault,
    pub log: Rc<RefCell<Log>>,
    /// The slices of all arms that share it, by name, in their order.
    trace: Rc<RefCell<Vec<String>>>,
}

impl Fake {
    pub fn new(name: &str, cost: f64, sigma: f64, seed: u64) -> Self {
        Self {
            name: name.to_owned(),
            cost,
            sigma,
            layout_sigma: 0.0,
            layout: 0.0,
            memory: None,
            tail: 4.0,
            luck: (usize::MAX, 0.0),
            course: |_| 0.0,
            since_start: 0,
            rng: Rng::new(seed),
            fault: Fault::None,
            log: Rc::default(),
            trace: Rc::default(),
        }
    }

    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }

    /// Tells the order of its slices among those of others.
    pub fn traced(mut self, trace: &Rc<RefCell<Vec<String>>>) -> Self {
        self.trace = Rc::clone(trace);
        self
    }

    pub fn tail(mut self, tail: f64) -> Self {
        self.tail = tail;
        self
    }

    /// Costs `log` less from its start of this number on, the first being 1.
    pub fn lucky_from(mut self, start: usize, log: f64) -> Self {
        self.luck = (start, log);
        self
    }

    /// How each start goes on, in logs by the number of the slice.
    pub fn course(mut self, course: fn(usize) -> f64) -> Self {
        self.course = course;
        self
    }

    /// Every start draws a layout that all its slices share.
    pub fn layout(mut self, sigma: f64) -> Self {
        self.layout_sigma = sigma;
        self
    }

    /// Every start takes a place of this memory, and every end frees it.
    pub fn within(mut self, memory: &Memory) -> Self {
        self.memory = Some(Rc::clone(memory));
        self
    }

    pub fn boxed(self) -> Box<dyn ResidentArm> {
        Box::new(self)
    }
}

impl ResidentArm for Fake {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Achieved, ArmError> {
        if matches!(self.fault, Fault::Unavailable) {
            let cure = "sudo planish apply series".to_owned();
            return Err(ArmError::Unavailable { reason: "no such pages".to_owned(), cure });
        }
        if matches!(self.fault, Fault::GoneAt(at) if self.log.borrow().slices >= at) {
            return Err(ArmError::crashed("no such file"));
        }
        self.layout = match &self.memory {
            Some(memory) => memory.borrow_mut().pop().expect("a place for each arm"),
            None => self.layout_sigma * self.rng.normal(),
        };
        self.since_start = 0;
        let mut log = self.log.borrow_mut();
        log.starts += 1;
        if log.starts >= self.luck.0 {
            self.layout -= self.luck.1;
        }
        log.running = true;
        Ok(Achieved { verified: Some(true), backing: Some("base".to_owned()), ..Achieved::default() })
    }

    fn slice(&mut self, _duration: Duration, _seed: u64) -> Result<Sample, ArmError> {
        self.trace.borrow_mut().push(self.name.clone());
        let slices = {
            let mut log = self.log.borrow_mut();
            log.slices += 1;
            log.slices
        };
        match &self.fault {
            Fault::CrashAlways => return Err(ArmError::crashed("exit status 139")),
            Fault::CrashAt(at) if slices == *at => return Err(ArmError::crashed("exit status 139")),
            Fault::CrashIn(these) if these.contains(&slices) => {
                return Err(ArmError::crashed("exit status 139"));
            }
            Fault::GoneAt(at) if slices >= *at => return Err(ArmError::crashed("exit status 139")),
            Fault::TimesOutAt(at) if slices >= *at => {
                return Err(ArmError::TimedOut { after: Duration::from_secs(1) });
            }
            Fault::StopsTrialAt(at, stop) if slices >= *at => stop.set(),
            Fault::CrashesAndStopsTrialAt(at, stop) if slices >= *at => {
                stop.set();
                return Err(ArmError::crashed("exit status 139"));
            }
            _ => {}
        }
        let course = (self.course)(self.since_start);
        self.since_start += 1;
        let cost = self.cost * (self.layout + course + self.sigma * self.rng.normal()).exp();
        Ok(Sample::default()
            .lower("cpu_ns_per_op", "ns", cost)
            .higher("ops_per_s", "1/s", 1e9 / cost)
            .lower("p99_ns", "ns", self.tail * cost)
            .lower("error_rate", "share", 0.0))
    }

    fn stop(&mut self) {
        let was_running = std::mem::take(&mut self.log.borrow_mut().running);
        if let Some(memory) = self.memory.as_ref().filter(|_| was_running) {
            memory.borrow_mut().push(self.layout);
        }
    }
}

/// A ladder over `rungs`, its baseline and placebo at 100 ns.
pub fn arms(rungs: Vec<Fake>, sigma: f64, seed: u64) -> ResidentArms<'static> {
    ResidentArms {
        baseline: Fake::new("4k", 100.0, sigma, seed * 7 + 1).boxed(),
        rungs: rungs.into_iter().map(Fake::boxed).collect(),
        placebo: Fake::new("4k again", 100.0, sigma, seed * 7 + 2).boxed(),
    }
}

pub fn options(seed: u64) -> LadderOptions {
    LadderOptions {
        trial: "fake".to_owned(),
        summary: "arms whose truth is known".to_owned(),
        quick: false,
        primary: MetricSpec {
            name: "cpu_ns_per_op".to_owned(),
            unit: "ns".to_owned(),
            better: Better::Lower,
        },
        mode: LadderMode::Block,
        duet: false,
        min_gain: 0.01,
        rung_gains: Vec::new(),
        hope: 0.5,
        strictness: Strictness::Usual,
        guards: GuardSpec::usual(),
        seed,
        budget: Duration::from_secs(600),
        spent: Duration::ZERO,
        pairs_max: 32,
        pairs_cure: PairsCure::alike("raise `pairs`"),
        pairs_min: 0,
        selfcheck_pairs: 8,
        warm_up: WarmUpPlan::Auto,
        confirm: Confirm::Fresh,
        host: HostFacts::default(),
        refused: Vec::new(),
    }
}
