//! The noise page: what this machine hides under this workload, and what was done against it.

use planish_trial::{Gain, Pressure, Quieter, SelfCheck, SelfCheckVerdict, TrialOutcome, WarmUp};

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

/// All that there is to tell, in the order of the page.
fn facts(check: &SelfCheck) -> Vec<Fact> {
    let mut facts = of_pairs(check);
    facts.extend(of_starts(check));
    facts.extend(of_machine(check));
    facts.extend(of_budget(check));
    facts
}

fn share(part: &str, value: f64) -> Html {
    Html::default().then(Figure::share(format!("{AT}/{part}"), value))
}

fn maybe(part: &str, value: Option<f64>) -> Option<Html> {
    value.map(|value| share(part, value))
}

/// Those of some facts that there is a value for.
fn known(facts: impl IntoIterator<Item = (&'static str, Option<Html>, &'static str)>) -> Vec<Fact> {
    let known = |(name, value, meaning): (_, Option<Html>, _)| Some(fact(name, value?, meaning));
    facts.into_iter().filter_map(known).collect()
}

/// What every self-check tells.
fn of_pairs(check: &SelfCheck) -> Vec<Fact> {
    vec![
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
        fact(
            "spikes",
            share("spike_share", check.spike_share),
            "units slower than their neighbours by more than 2.5 times the spread of a pair",
        ),
    ]
}

/// Where in a pair, in a start and in a row of them the noise lies.
fn of_starts(check: &SelfCheck) -> Vec<Fact> {
    let position = |gain: Gain| interval(&format!("{AT}/position_effect"), gain);
    let coefficient = |value| Html::default().then(Figure::coefficient(format!("{AT}/cross_lag1"), value));
    known([
        (
            "running second",
            check.position_effect.map(position),
            "gain from the place within a pair; the coin flip cancels it",
        ),
        (
            "across arms",
            check.cross_lag1.map(coefficient),
            "the same of neighbours of different arms: what one leaves to the next",
        ),
        ("between starts", maybe("between_starts", check.between_starts), "standard deviation of logs"),
        ("within a start", maybe("within_starts", check.within_starts), "standard deviation of logs"),
    ])
}

/// What the machine did meanwhile, and what a block is run again for.
fn of_machine(check: &SelfCheck) -> Vec<Fact> {
    // Proofs of before have only the first of the stalls.
    let waited = maybe("psi", check.psi).filter(|_| check.pressure.is_empty());
    let stall = |resource| check.pressure.get(resource).map(|stall| stalls(resource, *stall));
    let thermal = |rate| {
        let rate = Figure::quantity(format!("{AT}/thermal"), rate, "")?;
        Some(Html::default().then(rate).text(" a second"))
    };
    known([
        ("steal", maybe("steal", check.steal), "processor time that the hypervisor took"),
        ("waiting", waited, "time in which some task waited for a processor"),
        ("CPU stalls", stall("cpu"), "time in which some and all tasks waited for a processor"),
        ("memory stalls", stall("memory"), "the same for memory"),
        ("I/O stalls", stall("io"), "the same for devices"),
        ("CPU quota", maybe("throttled", check.throttled), "CPU seconds per second that a quota took"),
        ("heat", check.thermal.and_then(thermal), "CPUs slowed themselves down"),
        ("CPU frequency", frequency(check), "lowest and highest of any CPU between units"),
        ("run again", limits(check), "blocks beyond these are redone"),
    ])
}

/// What a start and a pair take, and what would tell more.
fn of_budget(check: &SelfCheck) -> Vec<Fact> {
    let read_back = |text: &String| Html::default().then(Quote::new(format!("{AT}/read_back"), text));
    let pair = Figure::seconds(format!("{AT}/pair_seconds"), check.pair_seconds);
    known([
        ("warm-up", check.warm_up.as_ref().map(warm_up), ""),
        ("read back", check.read_back.as_ref().map(read_back), "two equal arms must not differ"),
        ("time of a pair", Some(Html::default().then(pair)), ""),
        ("needed", needed(check), "to see the smallest gain worth keeping"),
        ("a quieter metric", check.quieter.as_ref().map(quieter), "spread of its pairs"),
    ])
}

fn quieter(metric: &Quieter) -> Html {
    Html::default()
        .then(Html::own("<code>"))
        .then(Quote::new(format!("{AT}/quieter/metric"), &metric.metric))
        .then(Html::own("</code> "))
        .then(Figure::share(format!("{AT}/quieter/sigma_d"), metric.sigma_d))
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
    let needed = Html::default().then(pairs).text(" pairs of each rung");
    Some(match check.hours_needed {
        Some(hours) => {
            let all = Figure::hours(format!("{AT}/hours_needed"), hours);
            needed.text(", ").then(all).text(" for the whole trial")
        }
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
