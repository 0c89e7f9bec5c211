//! A resident program that is asked for slices of work in lines, such as `planish workload series --serve`.
//!
//! ```text
//! it says   {"achieved": {"backing": "thp", ...}, ...}          once, when it is warm
//! we say    slice 350 4711                                      milliseconds, seed
//! it says   {"ops": 12000, "wall_ns": 1, "user_ns": 1, "system_ns": 1, "latency_ns": {"p50": 1}}
//! ```
//!
//! Unknown keys are ignored and missing ones leave their metric out. It ends when its input ends. Status 3
//! with a reason on standard error means that it cannot have what it was asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use planish_sorted::CollectMap as _;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::latency;
use crate::child::{Launch, Talker, padding};
use crate::collect::{Window, tree};
use crate::control::Stop;
use crate::outcome::{Achieved, Better};
use crate::resident::ResidentArm;
use crate::sample::{ArmError, Sample};

/// Time that an idle program gets to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// Time that an answer may take beyond its slice.
const PATIENCE: Duration = Duration::from_secs(30);

/// A resident arm that speaks the slice protocol.
#[derive(Debug)]
pub struct SliceArm {
    name: String,
    launch: Launch,
    /// The backing that it must report to be believed; `None` where pages are not what the arm is about.
    backing: Option<String>,
    start_limit: Duration,
    /// Seed of the sizes of its environments.
    seed: u64,
    starts: u64,
    stop: Stop,
    talker: Option<Talker>,
    /// The program and what it had started when it was ready.
    pids: Vec<u32>,
}

/// The first line of the program.
#[derive(Deserialize)]
struct Ready {
    #[serde(default)]
    achieved: Map<String, Value>,
}

/// The answer to a slice.
#[derive(Deserialize)]
struct Answer {
    ops: f64,
    wall_ns: f64,
    /// CPU time of the operations alone, where the program tells it apart from its own bookkeeping.
    cpu_ns: Option<f64>,
    user_ns: Option<f64>,
    system_ns: Option<f64>,
    errors: Option<f64>,
    faults: Option<f64>,
    #[serde(default)]
    latency_ns: Map<String, Value>,
    /// Those of other kinds of operations, by a word for each kind.
    #[serde(default)]
    latencies_ns: BTreeMap<String, Map<String, Value>>,
}

impl SliceArm {
    /// An arm of this name that starts `launch`, which must be ready within `start_limit`.
    #[must_use]
    pub fn new(name: &str, launch: Launch, start_limit: Duration, stop: &Stop) -> Self {
        let stop = stop.clone();
        Self {
            name: name.to_owned(),
            launch,
            backing: None,
            start_limit,
            seed: 0,
            starts: 0,
            stop,
            talker: None,
            pids: Vec::new(),
        }
    }

    /// Believes the arm only if it reports this backing.
    #[must_use]
    pub fn must_have(mut self, backing: &str) -> Self {
        self.backing = Some(backing.to_owned());
        self
    }

    /// Draws the sizes of its environments from this seed, which no other arm of the trial may have.
    #[must_use]
    pub fn padded_by(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    fn check(&self, achieved: &Achieved) -> Result<(), ArmError> {
        let Some(wanted) = &self.backing else { return Ok(()) };
        let had = achieved.backing.as_deref().unwrap_or("unknown");
        if had == wanted {
            return Ok(());
        }
        Err(ArmError::unavailable(format!("its memory is {had}, not {wanted}")))
    }
}

impl ResidentArm for SliceArm {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Achieved, ArmError> {
        self.stop();
        self.launch.check_bound()?;
        self.starts += 1;
        let (talker, line) =
            Talker::start(&self.launch, padding(self.seed, self.starts), self.start_limit, &self.stop)?;
        self.pids = talker.pid().map(tree).unwrap_or_default();
        let bound = talker.pid().map_or(Ok(None), |pid| self.launch.bound(pid));
        self.talker = Some(talker);
        let mut achieved = read_ready(&line)?;
        self.check(&achieved)?;
        achieved.verify(self.backing.is_some().then_some(Some(true)), bound?);
        Ok(achieved)
    }

    fn slice(&mut self, duration: Duration, seed: u64) -> Result<Sample, ArmError> {
        let Some(talker) = &mut self.talker else { return Err(ArmError::crashed("it was not started")) };
        let window = Window::open(self.pids.clone());
        let line = format!("slice {} {seed}", duration.as_millis());
        let reply = talker.ask(&line, duration + PATIENCE, &self.stop)?;
        let mut sample = read(&reply)?;
        window.close(&mut sample);
        Ok(sample)
    }

    fn stop(&mut self) {
        if let Some(mut talker) = self.talker.take() {
            talker.stop(GRACE);
        }
    }
}

/// Reads the first line.
pub(crate) fn read_ready(line: &str) -> Result<Achieved, ArmError> {
    let ready: Ready = serde_json::from_str(line).map_err(|error| {
        ArmError::crashed(format!("its first line is not understood: {error}: {}", beginning(line)))
    })?;
    let backing = ready.achieved.get("backing").and_then(Value::as_str).map(str::to_owned);
    Ok(Achieved { backing, facts: ready.achieved.into_iter().collect_map(), ..Achieved::default() })
}

/// Reads the answer to a slice.
pub(crate) fn read(line: &str) -> Result<Sample, ArmError> {
    let answer: Answer = serde_json::from_str(line).map_err(|error| {
        ArmError::crashed(format!("its answer is not understood: {error}: {}", beginning(line)))
    })?;
    answer.sample()
}

/// As much of a line as a message can take.
fn beginning(line: &str) -> String {
    line.chars().take(200).collect()
}

impl Answer {
    fn sample(&self) -> Result<Sample, ArmError> {
        if !(self.ops > 0.0 && self.wall_ns > 0.0) {
            return Err(ArmError::crashed("it did no operation in the slice"));
        }
        let mut sample = Sample::default();
        let per_op = |ns: f64| ns / self.ops;
        sample.put("wall_ns_per_op", "ns", Better::Lower, per_op(self.wall_ns));
        sample.put("ops_per_s", "1/s", Better::Higher, 1e9 * self.ops / self.wall_ns);
        if let (Some(user), Some(system)) = (self.user_ns, self.system_ns) {
            sample.put("user_ns_per_op", "ns", Better::Lower, per_op(user));
            sample.put("system_ns_per_op", "ns", Better::Lower, per_op(system));
            sample.put("cpu_ns_per_op", "ns", Better::Lower, per_op(user + system));
        }
        if let Some(cpu) = self.cpu_ns {
            sample.put("cpu_ns_per_op", "ns", Better::Lower, per_op(cpu));
        }
        if let Some(errors) = self.errors {
            sample.put("error_rate", "share", Better::Lower, errors / (errors + self.ops));
        }
        add_latencies(&mut sample, "", &self.latency_ns);
        for (kind, latencies) in &self.latencies_ns {
            add_latencies(&mut sample, &format!("{kind}_"), latencies);
        }
        sample.collect("faults", "", self.faults.ok_or_else(|| "the program does not tell".to_owned()));
        // Each number that it told is one. A quotient of two may be none, and what is none is kept in no file either.
        match sample.metrics.iter().find(|(_, metric)| !metric.value.is_finite()) {
            Some((name, metric)) => Err(ArmError::crashed(format!(
                "of its answer `{name}` is {}, which is no number",
                metric.value
            ))),
            None => Ok(sample),
        }
    }
}

/// Latencies under the names that other adapters use, behind the `prefix` of their kind. Of a quantile with fewer than
/// ten operations beyond it only the reason is told, where the program says how many there were.
fn add_latencies(sample: &mut Sample, prefix: &str, latencies: &Map<String, Value>) {
    let count = latencies.get("count").and_then(Value::as_f64).unwrap_or(f64::INFINITY);
    for (key, value) in latencies {
        let Some(value) = value.as_f64().filter(|_| key != "count") else { continue };
        let name = if key == "stddev" { "sd_ns".to_owned() } else { format!("{key}_ns") };
        latency::put(sample, prefix, &name, value, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = r#"echo '{"achieved":{"backing":"thp","thp_bytes":4096}}'
while read -r word millis seed; do
  cpu='"user_ns":1500,"system_ns":500'
  echo "{\"ops\":100,\"wall_ns\":2000,$cpu,\"faults\":$seed,\"latency_ns\":{\"p99\":40}}"
done"#;

    fn arm(script: &str) -> SliceArm {
        let launch = Launch::of(["sh", "-c", script].map(str::to_owned).to_vec());
        SliceArm::new("thp", launch, Duration::from_secs(60), &Stop::default())
    }

    #[test]
    fn an_answer_whose_quotients_are_no_numbers_is_none() {
        for answer in [
            r#"{"ops":1e308,"wall_ns":1e-308}"#,
            r#"{"ops":1,"wall_ns":1,"cpu_ns":1e308,"user_ns":1e308,"system_ns":1e308}"#,
            r#"{"ops":1e308,"wall_ns":1,"errors":1e308}"#,
            r#"{"ops":1e-308,"wall_ns":1e300}"#,
            r#"{"ops":9,"wall_ns":9,"errors":-9}"#,
        ] {
            match read(answer) {
                Ok(sample) => {
                    let values: Vec<f64> = sample.metrics.values().map(|metric| metric.value).collect();
                    assert!(values.iter().all(|value| value.is_finite()), "{answer}: {values:?}");
                }
                Err(error) => assert!(error.to_string().contains("number"), "{error}"),
            }
        }
    }

    #[test]
    fn a_slice_becomes_metrics_per_operation() {
        let mut arm = arm(SERVER).must_have("thp");
        let achieved = arm.start().expect("it starts");
        assert!(achieved.verified == Some(true) && achieved.facts["thp_bytes"] == 4096);
        let sample = arm.slice(Duration::from_millis(1), 7).expect("it answers");
        assert_eq!(sample.value("cpu_ns_per_op"), Some(20.0));
        assert_eq!(sample.value("user_ns_per_op"), Some(15.0));
        assert_eq!(sample.value("p99_ns"), Some(40.0));
        assert_eq!(sample.collectors["faults"].value, Ok(7.0));
        assert!(sample.collectors["vmpte_kb"].value.is_ok());
        crate::collect::tests::assert_complete(&sample);
        arm.stop();
        assert!(arm.slice(Duration::from_millis(1), 7).is_err());
    }

    #[test]
    fn each_start_of_each_arm_draws_its_environment_from_the_seed() {
        let script = r#"echo "{\"achieved\":{\"padding\":${#PLANISH_TRIAL_PADDING}}}"; read -r x"#;
        let sizes = |seed: u64| -> Vec<u64> {
            let mut arm = arm(script).padded_by(seed);
            let size = |_| arm.start().expect("it starts").facts["padding"].as_u64().expect("a number");
            (0..4).map(size).collect()
        };
        let (one, other) = (sizes(5), sizes(6));
        assert_eq!(one, sizes(5), "the seed gives them back");
        assert!(
            one.iter().chain(&other).collect::<std::collections::BTreeSet<_>>().len() >= 7,
            "{one:?} {other:?}"
        );
        assert!(one.iter().all(|&size| size <= 4096));
    }

    #[test]
    fn a_tail_of_a_few_operations_is_left_out() {
        let answer = r#"{"ops":9,"wall_ns":9,"latency_ns":{"count":534,"p90":5,"p99":7,"stddev":2}}"#;
        let sample = serde_json::from_str::<Answer>(answer).expect("plain").sample().expect("it worked");
        assert_eq!((sample.value("p90_ns"), sample.value("sd_ns")), (Some(5.0), Some(2.0)));
        assert_eq!((sample.value("p99_ns"), sample.value("count_ns")), (None, None));
        assert!(sample.collectors["p99_ns"].value.is_err() && !sample.collectors.contains_key("count_ns"));
    }

    #[test]
    fn latencies_of_each_kind_of_operation_are_metrics_of_their_own() {
        let answer = r#"{"ops":9,"wall_ns":9,"latency_ns":{"count":40,"mean":5,"stddev":1},
            "latencies_ns":{"parallel":{"count":20,"mean":7,"stddev":2,"p99":9}}}"#;
        let sample = read(answer).expect("it worked");
        let told = ["mean_ns", "sd_ns", "parallel_mean_ns", "parallel_sd_ns"].map(|name| sample.value(name));
        assert_eq!(told, [Some(5.0), Some(1.0), Some(7.0), Some(2.0)]);
        assert!(sample.collectors["parallel_p99_ns"].value.is_err(), "of 20 there is no such quantile");
    }

    #[test]
    fn an_arm_that_has_other_pages_than_it_stands_for_is_unavailable() {
        let error = arm(SERVER).must_have("hugetlb-1g").start().expect_err("other pages");
        assert_eq!(error, ArmError::unavailable("its memory is thp, not hugetlb-1g"));
    }

    #[test]
    fn an_arm_is_verified_by_what_was_compared_and_by_nothing_else() {
        let start = |arm: SliceArm| -> Result<Achieved, ArmError> { { arm }.start() };
        let told = start(arm(SERVER)).expect("it starts");
        assert_eq!((told.verified, told.backing.as_deref()), (None, Some("thp")));
        let last = planish_sys::affinity::get(None).expect("our own mask").last();
        let pinned = |cpus: planish_sys::CpuSet| {
            let mut arm = arm(SERVER).must_have("thp");
            arm.launch.cpus = Some(cpus);
            arm
        };
        let got = start(pinned(last.into_iter().collect())).expect("it starts");
        assert_eq!(got.facts["cpus"], last.expect("we run on a CPU").to_string());
        assert_eq!((got.verified, got.facts.len()), (Some(true), 3), "what it said, and its CPUs");
        let error = start(pinned("9000".parse().expect("a list"))).expect_err("no machine has it");
        assert!(error.to_string().starts_with("CPU 9000 is not online"), "{error}");
        // It changes its own CPUs before it is ready.
        let moved = format!("taskset -pc 0 $$ >&2; {SERVER}");
        if let Some(cpu) = last.filter(|&cpu| cpu != 0) {
            let mut arm = arm(&moved);
            arm.launch.cpus = Some(std::iter::once(cpu).collect());
            let error = arm.start().expect_err("it went elsewhere");
            assert_eq!(error.to_string(), format!("it may run on CPUs 0, not on {cpu}"));
        }
    }

    #[test]
    fn nonsense_is_a_crash() {
        assert!(matches!(arm("echo hello; read -r x").start(), Err(ArmError::Crashed { .. })));
        let mut idle = arm("echo '{}'; read -r x; echo '{\"ops\":0,\"wall_ns\":1}'; read -r x");
        idle.start().expect("an empty greeting is enough");
        assert!(matches!(idle.slice(Duration::from_millis(1), 1), Err(ArmError::Crashed { .. })));
    }
}
