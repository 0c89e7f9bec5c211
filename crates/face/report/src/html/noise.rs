//! The noise page: what this machine hides under this workload, and what was done against it.

use planish_trial::{Gain, Pressure, SelfCheck, SelfCheckVerdict, TrialOutcome, WarmUp};

use super::figure::{Figure, interval};
use super::markup::{Html, Quote, member};
use super::rungs::{gain_of_log, spread};
use super::svg::{Datum, Lane, Scale, axis};
use crate::units;

const AT: &str = "/selfcheck";

/// Height of the strip of A/A pairs.
const STRIP: u32 = 34;

/// One fact: its name, its figures, what it means.
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) value: Html,
    pub(super) meaning: &'static str,
}

/// The self-check as it is shown.
pub(super) struct Noise {
    /// Class of its colour and mark.
    pub(super) tone: &'static str,
    pub(super) verdict: &'static str,
    pub(super) advice: Quote,
    pub(super) facts: Vec<Fact>,
    /// The pairs of identical arms, drawn; `None` when there are none.
    pub(super) strip: Option<Html>,
    pub(super) axis: Html,
    pub(super) detectable: Vec<(Figure, Figure)>,
}

impl Noise {
    pub(super) fn of(outcome: &TrialOutcome) -> Option<Self> {
        let check = outcome.selfcheck.as_ref()?;
        let (tone, verdict) = match check.verdict {
            SelfCheckVerdict::Ok => {
                ("keep", "Quiet enough: this budget can see the smallest gain worth keeping.")
            }
            SelfCheckVerdict::Noisy => {
                ("inconclusive", "Noisy: this budget cannot see the smallest gain worth keeping.")
            }
            SelfCheckVerdict::Broken if check.read_back.is_some() => {
                ("drop", "Broken: two identical arms were read back to be different.")
            }
            SelfCheckVerdict::Broken => ("drop", "Broken: two identical arms differ."),
        };
        let (strip, axis) = strip(outcome, check);
        let rows = check.detectable.iter().enumerate();
        Some(Self {
            tone,
            verdict,
            advice: Quote::new(format!("{AT}/advice"), &check.advice),
            facts: facts(check),
            strip,
            axis,
            detectable: rows
                .map(|(index, row)| {
                    let at = format!("{AT}/detectable/{index}");
                    let pairs = Figure::count(format!("{at}/pairs"), row.pairs as u64);
                    (pairs, Figure::share(format!("{at}/mde"), row.mde))
                })
                .collect(),
        })
    }
}

fn facts(check: &SelfCheck) -> Vec<Fact> {
    let share = |part: &str, value: f64| Html::default().then(Figure::share(format!("{AT}/{part}"), value));
    let mut facts = vec![
        fact(
            "A/A pairs",
            Html::default().then(Figure::count(format!("{AT}/pairs"), check.pairs as u64)),
            "pairs of the same arm",
        ),
        fact(
            "spread of a pair",
            share("sigma_d", check.sigma_d),
            "robust standard deviation of its log ratio",
        ),
        fact("smallest visible gain", share("mde", check.mde), "found four times out of five in this budget"),
        fact("spread of units", share("cv", check.cv), "coefficient of variation"),
        fact(
            "neighbours",
            Html::default().then(Figure::coefficient(format!("{AT}/lag1"), check.lag1)),
            "lag-1 correlation: how long the machine keeps a mood",
        ),
        fact("spikes", share("spike_share", check.spike_share), "units far slower than their neighbours"),
    ];
    let mut optional = |name, value: Option<Html>, meaning| {
        facts.extend(value.map(|value| fact(name, value, meaning)));
    };
    let maybe = |part: &str, value: Option<f64>| value.map(|value| share(part, value));
    optional(
        "running second",
        check.position_effect.map(|gain: Gain| interval(&format!("{AT}/position_effect"), gain)),
        "gain from the place within a pair; the coin flip cancels it",
    );
    let coefficient = |value| Html::default().then(Figure::coefficient(format!("{AT}/cross_lag1"), value));
    optional(
        "across arms",
        check.cross_lag1.map(coefficient),
        "the same of neighbours of different arms: what one leaves to the next",
    );
    optional("between starts", maybe("between_starts", check.between_starts), "standard deviation of logs");
    optional("within a start", maybe("within_starts", check.within_starts), "standard deviation of logs");
    optional("steal", maybe("steal", check.steal), "processor time that the hypervisor took");
    if check.pressure.is_empty() {
        optional("waiting", maybe("psi", check.psi), "time in which some task waited for a processor");
    }
    for (resource, name, meaning) in [
        ("cpu", "CPU stalls", "time in which some and all tasks waited for a processor"),
        ("memory", "memory stalls", "the same for memory"),
        ("io", "I/O stalls", "the same for devices"),
    ] {
        optional(name, check.pressure.get(resource).map(|stall| stalls(resource, *stall)), meaning);
    }
    optional("CPU quota", maybe("throttled", check.throttled), "CPU seconds per second that a quota took");
    let thermal = |rate| {
        let rate = Figure::quantity(format!("{AT}/thermal"), rate, "")?;
        Some(Html::default().then(rate).text(" a second"))
    };
    optional("heat", check.thermal.and_then(thermal), "CPUs slowed themselves down");
    optional("CPU frequency", frequency(check), "lowest and highest of any CPU between units");
    optional("run again", limits(check), "blocks beyond these are redone");
    optional("warm-up", check.warm_up.as_ref().map(warm_up), "");
    optional(
        "read back",
        check
            .read_back
            .as_ref()
            .map(|text| Html::default().then(Quote::new(format!("{AT}/read_back"), text))),
        "two equal arms must not differ",
    );
    let pair = Figure::seconds(format!("{AT}/pair_seconds"), check.pair_seconds);
    optional("time of a pair", Some(Html::default().then(pair)), "");
    optional("needed", needed(check), "to see the smallest gain worth keeping");
    optional(
        "a quieter metric",
        check.quieter.as_ref().map(|quieter| {
            Html::default()
                .then(Html::own("<code>"))
                .then(Quote::new(format!("{AT}/quieter/metric"), &quieter.metric))
                .then(Html::own("</code> "))
                .then(Figure::share(format!("{AT}/quieter/sigma_d"), quieter.sigma_d))
        }),
        "spread of its pairs",
    );
    facts
}

/// `some 11.20 %, full 0.10 %`.
fn stalls(resource: &str, stall: Pressure) -> Html {
    let at = format!("{AT}/pressure/{resource}");
    let mut told = Html::default();
    for (index, (name, share)) in [("some", stall.some), ("full", stall.full)].into_iter().enumerate() {
        if let Some(share) = share {
            let comma = if index > 0 && stall.some.is_some() { ", " } else { "" };
            let lead = format!("{comma}{name} ");
            told = told.text(&lead).then(Figure::share(format!("{at}/{name}"), share));
        }
    }
    told
}

fn frequency(check: &SelfCheck) -> Option<Html> {
    let at = |part: &str| format!("{AT}/frequency/{part}");
    let told = &check.frequency;
    match (told.min_mhz.zip(told.max_mhz), &told.reason) {
        (Some((low, high)), _) => Some(
            Html::default()
                .then(Figure::quantity(at("min_mhz"), low, "MHz")?)
                .text(" to ")
                .then(Figure::quantity(at("max_mhz"), high, "MHz")?),
        ),
        (None, Some(reason)) => {
            Some(Html::default().text("unavailable: ").then(Quote::new(at("reason"), reason)))
        }
        (None, None) => None,
    }
}

fn limits(check: &SelfCheck) -> Option<Html> {
    let mut told = Html::default();
    for (index, (name, limit)) in check.limits.iter().enumerate() {
        let at = member(&format!("{AT}/limits"), name);
        let lead = if index > 0 { ", " } else { "above " };
        told = told.text(&format!("{lead}{name} "));
        told = match name.as_str() {
            "thermal" => told.then(Figure::quantity(at, *limit, "")?).text(" a second"),
            _ => told.then(Figure::chosen_share(at, *limit)),
        };
    }
    (!check.limits.is_empty()).then_some(told)
}

fn warm_up(found: &WarmUp) -> Html {
    let at = format!("{AT}/warm_up");
    let told = Html::default().then(Quote::new(format!("{at}/reason"), &found.reason));
    match found.unsteady_share {
        Some(share) => told
            .text("; never steady: ")
            .then(Figure::share(format!("{at}/unsteady_share"), share))
            .text(" of the starts"),
        None => told,
    }
}

fn fact(name: &'static str, value: Html, meaning: &'static str) -> Fact {
    Fact { name, value, meaning }
}

fn needed(check: &SelfCheck) -> Option<Html> {
    let pairs = Figure::count(format!("{AT}/pairs_needed"), check.pairs_needed? as u64);
    let needed = Html::default().then(pairs).text(" pairs");
    Some(match check.hours_needed {
        Some(hours) => needed.text(", ").then(Figure::hours(format!("{AT}/hours_needed"), hours)),
        None => needed,
    })
}

/// The pairs of identical arms: what differs here is noise alone.
fn strip(outcome: &TrialOutcome, check: &SelfCheck) -> (Option<Html>, Html) {
    let gains: Vec<f64> =
        check.pair_logs.iter().map(|log| gain_of_log(outcome.primary.better, *log)).collect();
    let scale = Scale::over_bulk(&gains, [-outcome.min_gain, outcome.min_gain]);
    let label = format!("{} of the baseline with itself", units::count(gains.len(), "pair"));
    let mut lane =
        Lane::new(scale, STRIP, label).band(-outcome.min_gain, outcome.min_gain, "too-small").grid();
    for (index, (log, shown)) in check.pair_logs.iter().zip(&gains).enumerate() {
        let at = format!("{AT}/pair_logs/{index}");
        let title = format!("A/A pair {}: {}", index + 1, units::gain(*shown));
        lane.dot(&Datum { at: &at, value: *log }, *shown, 13 + spread(index), "dot", &title);
    }
    ((!gains.is_empty()).then(|| lane.finish()), axis(&scale))
}
