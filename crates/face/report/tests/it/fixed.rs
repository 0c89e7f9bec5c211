//! Outcomes that are always the same: figures as a trial gives them, rounded so that the last bit of a
//! logarithm cannot change them.

use std::collections::BTreeMap;

use planish_model::HostFacts;
use planish_stats::{Rng, Walsh};
use planish_trial::{
    Achieved, Better, BuildRow, Builds, CollectorRow, Confirmed, Detectable, Discard, First, Frequency, Gain,
    GuardRow, LadderMode, MetricRow, MetricSpec, PostgresSetup, Pressure, Quieter, Refusal, Rung,
    RungVerdict, SelfCheck, SelfCheckVerdict, Setup, TrialOutcome, UnitKind, WarmUp, WarmUpState,
};
use serde_json::{Value, json};

const LEVEL: f64 = 0.98;

/// The rungs of such a machine, in their planned order.
fn rungs_of_series(rng: &mut Rng) -> Vec<Rung> {
    let mut thp = rung(rng, "thp", 0.043, 0.021, 24, RungVerdict::Keep);
    thp.achieved = achieved("thp", &[("thp_bytes", json!(536_870_912)), ("cpus", json!("0-15"))]);
    thp.reason = "the interval is clear of zero and the gain is at least 1.0 %".to_owned();
    thp.confirmed = Some(confirmed(0.039, 0.012));
    let mut two = rung(rng, "2m", 0.071, 0.023, 24, RungVerdict::Keep);
    two.achieved = achieved(
        "hugetlb-2m",
        &[
            ("as_requested", json!(true)),
            ("node_bytes", json!({"0": 268_435_456, "1": 268_435_456})),
            ("why_not", json!([])),
        ],
    );
    two.reason = "the interval is clear of zero and the gain is at least 1.0 %".to_owned();
    two.confirmed = Some(confirmed(0.068, 0.011));
    two.pair_logs[5] = 1.25;
    let mut one = unavailable("1g");
    one.reason = "no 1 GB page was granted on node 0".to_owned();
    let mut pinned = rung(rng, "pinned", -0.013, 0.022, 32, RungVerdict::Drop);
    pinned.achieved = achieved("base", &[("cpus", json!("3"))]);
    pinned.reason = "the interval lies below the smallest gain worth keeping".to_owned();
    let mut open = rung(rng, "2m+pinned", 0.004, 0.06, 40, RungVerdict::Inconclusive);
    open.achieved = achieved("hugetlb-2m", &[("cpus", json!("3"))]);
    open.reason = "the budget ended before the interval left zero".to_owned();
    open.builds = Some(Builds {
        builds: (0..3).map(|index| build(index, 0.004 * index as f64)).collect(),
        distinct: 3,
        gain: Some(Gain { effect: 0.004, low: -0.006, high: 0.014 }),
        level: LEVEL,
        spread: Some(0.004),
    });
    let mut placebo = rung(rng, TrialOutcome::PLACEBO, 0.0, 0.012, 24, RungVerdict::Drop);
    placebo.achieved = achieved("base", &[]);
    placebo.reason = "the interval lies below the smallest gain worth keeping".to_owned();
    vec![thp, two, one, pinned, open, placebo]
}

/// A trial on a machine that has everything but 1 GB pages.
pub fn series() -> TrialOutcome {
    let mut rng = Rng::new(2026);
    let rungs = rungs_of_series(&mut rng);
    let blocks = vec![rungs.iter().map(|rung| rung.name.clone()).collect(); 40];
    TrialOutcome {
        trial: "series".to_owned(),
        summary: "What do page sizes and pinning give a memory-bound time-series engine here?".to_owned(),
        command: "planish prove series --html series.html --seed 7239104412385".to_owned(),
        setup: Some(Setup::File(
            "name = \"series\"\nprimary = \"cpu_ns_per_op\"\n\n[workload]\nadapter = \"slices\"\n".to_owned(),
        )),
        version: "0.1.0".to_owned(),
        unit: UnitKind::Slice,
        primary: cpu_time(),
        mode: LadderMode::Block,
        duet: false,
        baseline: "4k".to_owned(),
        baseline_achieved: achieved("base", &[]),
        min_gain: 0.01,
        alpha: 0.05,
        seed: 7_239_104_412_385,
        started_at: 1_795_167_600,
        seconds: 563.4,
        overhead: 0.0042,
        quick: false,
        host: host(),
        selfcheck: Some(selfcheck(&mut rng, SelfCheckVerdict::Ok)),
        rungs,
        blocks,
        refused: vec![Refusal {
            what: "1 GB pages for the rung 1g".to_owned(),
            why: "node 0 has no free block of 1 GB: memory is scattered".to_owned(),
            cure: "reserve them at boot: hugepagesz=1G hugepages=1, see `planish plan series`".to_owned(),
        }],
        discarded: vec![Discard {
            block: 17,
            covariate: "steal".to_owned(),
            reason: "steal 4.1 % is above the threshold of 2.0 %".to_owned(),
        }],
        notes: vec!["the pool of 2 MB pages on node 0 was raised by 320 pages and given back".to_owned()],
        budget_needed_seconds: None,
        boots: None,
        exit: 0,
        proof_id: Some("9f2c4c1b6d0e8a7750c2b3c1b77e1c55d7d8b6cbf0a4c9d1d5f2a6b8e3c7f901".to_owned()),
    }
}

/// A short trial of an ordinary user in a noisy guest, with names that try to break the page.
pub fn poor() -> TrialOutcome {
    let mut rng = Rng::new(7);
    let mut open = rung(&mut rng, "a<b>&\"c\" '</script>", 0.02, 0.3, 12, RungVerdict::Inconclusive);
    open.reason = "noise: <script>alert(1)</script> & more".to_owned();
    open.metrics.insert("x/y~z".to_owned(), open.metrics["ops_per_s"].clone());
    let mut two = unavailable("2m");
    two.reason = "a pool may be raised by root only".to_owned();
    let mut outcome = series();
    outcome.trial = "my </title> & trial".to_owned();
    outcome.summary = "Does jemalloc help \"here\"? <!-- -->".to_owned();
    outcome.unit = UnitKind::Start;
    outcome.primary =
        MetricSpec { name: "ops_per_s".to_owned(), unit: "1/s".to_owned(), better: Better::Higher };
    outcome.baseline = "as & is".to_owned();
    outcome.baseline_achieved = None;
    // Postgres with a script of its own, and words that try to break the page.
    outcome.command = "planish prove postgres --workload '</pre><b>.sql' --seed 7239104412385".to_owned();
    outcome.setup = Some(Setup::Postgres(PostgresSetup {
        version: "15.18".to_owned(),
        bin_folder: "/usr/lib/postgresql/15/bin".into(),
        scale: 55,
        shared_buffers_bytes: 956_301_312,
        clients: 1,
        script: Some("SELECT '</pre><script>' -- &\n;\n".to_owned()),
    }));
    outcome.quick = true;
    outcome.rungs = vec![open, two];
    outcome.rungs.iter_mut().for_each(|rung| rung.against = vec![outcome.baseline.clone()]);
    outcome.blocks.truncate(12);
    outcome.selfcheck = Some(selfcheck(&mut rng, SelfCheckVerdict::Noisy));
    outcome.discarded.clear();
    outcome.notes.clear();
    outcome.host.root = false;
    outcome.host.guest = Some("hypervisor flag and KVM signature".to_owned());
    outcome.exit = 6;
    outcome.proof_id = None;
    outcome
}

/// A trial that was stopped before anything was measured.
pub fn stopped() -> TrialOutcome {
    let mut outcome = series();
    outcome.selfcheck = None;
    outcome.rungs = vec![unavailable("2m"), unavailable("1g")];
    outcome.refused.clear();
    outcome.blocks.clear();
    outcome
}

fn host() -> HostFacts {
    HostFacts {
        host_id: "c0ffee".to_owned(),
        boot_id: "b007".to_owned(),
        kernel: "6.12.48-cloud-amd64".to_owned(),
        arch: "x86_64".to_owned(),
        cpu_model: "Imagined Processor 9000 @ 2.80GHz".to_owned(),
        cpus_online: 16,
        nodes: vec![0, 1],
        cpu_nodes: vec![0, 1],
        page_bytes: 4096,
        huge_page_bytes: vec![2 << 20, 1 << 30],
        memory_bytes: 64 << 30,
        available_bytes: 51 << 30,
        root: true,
        ..HostFacts::default()
    }
}

fn cpu_time() -> MetricSpec {
    MetricSpec { name: "cpu_ns_per_op".to_owned(), unit: "ns".to_owned(), better: Better::Lower }
}

/// To a millionth.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn logs(rng: &mut Rng, effect: f64, sigma: f64, pairs: usize) -> Vec<f64> {
    (0..pairs).map(|_| round(effect + sigma * rng.normal())).collect()
}

/// A rung whose interval is the one that its pairs give.
fn rung(rng: &mut Rng, name: &str, effect: f64, sigma: f64, pairs: usize, verdict: RungVerdict) -> Rung {
    let pair_logs = logs(rng, effect, sigma, pairs);
    let estimate = Walsh::new(&pair_logs).expect("some pairs").estimate(LEVEL);
    let gain = |log: f64| round(-(-log).exp_m1());
    let orders = (0..pairs).map(|_| if rng.normal() < 0.0 { First::Arm } else { First::Baseline }).collect();
    Rung {
        name: name.to_owned(),
        against: vec!["4k".to_owned()],
        min_gain: Some(0.01),
        verdict,
        effect: Some(gain(estimate.value)),
        low: Some(gain(estimate.interval.low)),
        high: Some(gain(estimate.interval.high)),
        level: Some(LEVEL),
        pairs,
        achieved: None,
        reason: String::new(),
        confirmed: None,
        builds: None,
        metrics: metrics(effect),
        collectors: collectors(effect),
        guards: guards(),
        pair_logs,
        orders,
        tested: Some(true),
    }
}

fn build(index: usize, effect: f64) -> BuildRow {
    let sha256 = Some(format!("{index}3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1"));
    BuildRow { index, seed: Some(17 + index as u64), sha256, pairs: 8, effect, pair_logs: Vec::new() }
}

fn unavailable(name: &str) -> Rung {
    Rung {
        name: name.to_owned(),
        against: vec!["4k".to_owned()],
        min_gain: Some(0.01),
        verdict: RungVerdict::Unavailable,
        effect: None,
        low: None,
        high: None,
        level: None,
        pairs: 0,
        achieved: None,
        reason: "not on this machine".to_owned(),
        confirmed: None,
        builds: None,
        metrics: BTreeMap::new(),
        collectors: BTreeMap::new(),
        guards: Vec::new(),
        pair_logs: Vec::new(),
        orders: Vec::new(),
        tested: Some(false),
    }
}

fn confirmed(effect: f64, half: f64) -> Confirmed {
    let gain = Gain { effect, low: round(effect - half), high: round(effect + half) };
    let (pair_logs, orders) = (vec![round((1.0 + effect).ln()); 12], vec![First::Baseline; 12]);
    Confirmed { gain, level: Some(0.991), pairs: 12, pair_logs, orders, guards: guards() }
}

fn achieved(backing: &str, facts: &[(&str, Value)]) -> Option<Achieved> {
    let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Some(Achieved { verified: Some(true), in_part: None, backing: Some(backing.to_owned()), facts })
}

fn metrics(effect: f64) -> BTreeMap<String, MetricRow> {
    let row = |unit: &str, better, baseline: f64, effect: f64| {
        let sign = if better == Better::Lower { -1.0 } else { 1.0 };
        let gain = Gain { effect, low: round(effect - 0.015), high: round(effect + 0.015) };
        let value = round(baseline * (1.0 + sign * effect));
        let unit = unit.to_owned();
        let pair_logs = Vec::new();
        MetricRow { unit, better, baseline: Some(baseline), value: Some(value), gain: Some(gain), pair_logs }
    };
    let mut rows: BTreeMap<String, MetricRow> = [
        ("cpu_ns_per_op", row("ns", Better::Lower, 82.413, effect)),
        ("user_ns_per_op", row("ns", Better::Lower, 81.207, effect)),
        ("system_ns_per_op", row("ns", Better::Lower, 1.206, 0.31)),
        ("wall_ns_per_op", row("ns", Better::Lower, 83.02, effect)),
        ("ops_per_s", row("1/s", Better::Higher, 12_045_290.0, effect)),
        ("p50_ns", row("ns", Better::Lower, 7_420_112.0, effect)),
        ("p90_ns", row("ns", Better::Lower, 8_104_220.0, effect)),
        ("p99_ns", row("ns", Better::Lower, 12_932_981.0, 0.12)),
        ("max_ns", row("ns", Better::Lower, 1_044_233_122.0, -0.04)),
        ("sd_ns", row("ns", Better::Lower, 311_204.0, 0.02)),
    ]
    .map(|(name, row)| (name.to_owned(), row))
    .into();
    let none = MetricRow {
        unit: "share".to_owned(),
        better: Better::Lower,
        baseline: Some(0.0),
        value: Some(0.0),
        gain: None,
        pair_logs: Vec::new(),
    };
    rows.insert("error_rate".to_owned(), none);
    rows
}

fn collectors(effect: f64) -> BTreeMap<String, CollectorRow> {
    let row = |unit: &str, baseline: f64, value: f64| CollectorRow {
        available: true,
        reason: None,
        unit: unit.to_owned(),
        baseline: Some(baseline),
        value: Some(value),
    };
    let missing = |unit: &str| CollectorRow {
        available: false,
        reason: Some("no PMU in this machine".to_owned()),
        unit: unit.to_owned(),
        baseline: None,
        value: None,
    };
    [
        ("vmpte_kb", row("kB", 1_064.0, round(1_064.0 * (1.0 - effect)))),
        ("host_cpu_share", row("share", 0.5312, 0.5307)),
        ("thp_fault_alloc", row("", 0.0, 256.0)),
        ("compact_stall", row("", 0.0, 0.0)),
        ("psi_cpu_share", row("share", 0.0312, 0.0299)),
        ("cycles", missing("")),
        ("instructions", missing("")),
        ("dtlb_misses_per_million", missing("per million instructions")),
    ]
    .map(|(name, row)| (name.to_owned(), row))
    .into()
}

fn guards() -> Vec<GuardRow> {
    let guard = |metric: &str, margin, low, held: Option<bool>, reason: &str| GuardRow {
        metric: metric.to_owned(),
        margin,
        low,
        level: held.map(|_| 0.989),
        held,
        reason: reason.to_owned(),
        pair_values: Vec::new(),
    };
    vec![
        guard("p99_ns", 0.03, Some(-0.011), Some(true), "within its margin"),
        guard("rss_bytes", 0.1, None, None, "not reported by the program, or not measured"),
    ]
}

fn warm_up(never_steady: bool) -> WarmUp {
    let (state, reason, share) = if never_steady {
        let reason =
            "15 of 24 starts reached no level within their 8.4 s; make the unit several times as long";
        (WarmUpState::NeverSteady, reason, 0.625)
    } else {
        (WarmUpState::Cut, "nine starts of ten are steady after 3 of 24 windows, 1.1 s", 0.0)
    };
    WarmUp {
        state,
        reason: reason.to_owned(),
        metric: Some("cpu_ns_per_op".to_owned()),
        window_seconds: Some(0.35),
        windows: 24,
        lengths: (0..24).map(|start| (!never_steady || start % 8 > 4).then_some(start % 4)).collect(),
        unsteady_share: Some(share),
        cut_windows: if never_steady { 0 } else { 3 },
        cut_seconds: if never_steady { 0.0 } else { 1.05 },
    }
}

fn selfcheck(rng: &mut Rng, verdict: SelfCheckVerdict) -> SelfCheck {
    let noisy = verdict == SelfCheckVerdict::Noisy;
    let sigma_d = if noisy { 0.291 } else { 0.0214 };
    let mde = |pairs: usize| round(4.4 * sigma_d / (pairs as f64).sqrt());
    SelfCheck {
        verdict,
        pairs: 12,
        pair_logs: logs(rng, 0.0, sigma_d, 12),
        orders: vec![First::Arm; 12],
        sigma_d,
        mde: mde(96),
        detectable: [16, 32, 64, 96].map(|pairs| Detectable { pairs, mde: mde(pairs) }).to_vec(),
        cv: 0.0271,
        lag1: 0.38,
        cross_lag1: Some(0.41),
        spike_share: 0.0417,
        between_starts: noisy.then_some(0.0123),
        within_starts: noisy.then_some(0.0098),
        position_effect: Some(Gain { effect: -0.002, low: -0.011, high: 0.007 }),
        steal: Some(0.0031),
        psi: Some(0.112),
        pressure: [
            ("cpu", Some(0.112), Some(0.0)),
            ("memory", Some(0.0004), Some(0.0001)),
            ("io", Some(0.021), None),
        ]
        .map(|(resource, some, full)| (resource.to_owned(), Pressure { some, full }))
        .into(),
        throttled: noisy.then_some(0.031),
        thermal: (!noisy).then_some(0.0),
        frequency: if noisy {
            let reason = "a guest is told one fixed figure, whatever its CPUs do".to_owned();
            Frequency { reason: Some(reason), ..Frequency::default() }
        } else {
            Frequency { available: true, reason: None, min_mhz: Some(1_200.0), max_mhz: Some(3_400.0) }
        },
        limits: [("steal", 0.05), ("thermal", 0.1), ("waiting", 0.3)]
            .map(|(name, limit)| (name.to_owned(), limit))
            .into(),
        read_back: None,
        warm_up: Some(warm_up(noisy)),
        pair_seconds: 0.71,
        pairs_needed: noisy.then_some(16_394),
        hours_needed: noisy.then_some(3.24),
        quieter: noisy.then(|| Quieter { metric: "cpu_ns_per_op".to_owned(), sigma_d: 0.0312 }),
        advice: if noisy {
            "Let cpu_ns_per_op decide, or give the trial more time.".to_owned()
        } else {
            "Nothing to do.".to_owned()
        },
    }
}
