//! The ladder: each rung as a row of the chart, a row of the table, and a strip of its pairs.

use planish_trial::{Achieved, Better, First, Gain, Rung, TrialOutcome};

use super::figure::{Figure, interval};
use super::markup::{Html, Quote, member};
use super::svg::{Datum, Lane, Scale, axis};
use super::words;
use crate::units;

/// Height of a row of the ladder, and where its interval and the one of the fresh run stand.
const ROW: u32 = 52;
const ROW_ONLY: u32 = 26;
const ROW_UPPER: u32 = 18;
const ROW_LOWER: u32 = 37;

/// Height of a strip of pairs; the pairs whose baseline ran first stand above the others.
const STRIP: u32 = 52;
const STRIP_BASELINE_FIRST: u32 = 12;
const STRIP_ARM_FIRST: u32 = 32;

/// All rungs, and the two scales that they share.
pub(super) struct Ladder {
    pub(super) rows: Vec<Row>,
    /// Labels under the ladder; `None` when no rung has an interval.
    pub(super) axis: Option<Html>,
    /// Labels under the strips; `None` when no rung has pairs.
    pub(super) pairs_axis: Option<Html>,
}

/// One rung.
pub(super) struct Row {
    pub(super) name: Quote,
    pub(super) is_placebo: bool,
    /// What it was compared with, where that is not the baseline of all.
    pub(super) against: Option<Html>,
    /// Smallest gain at which it is kept.
    pub(super) least: Option<Figure>,
    /// Word, mark and colour of the verdict.
    pub(super) verdict: &'static str,
    pub(super) gain: Option<Html>,
    pub(super) level: Option<Figure>,
    pub(super) confirmed: Option<Html>,
    pub(super) confirmed_level: Option<Figure>,
    pub(super) confirmed_pairs: Option<Figure>,
    pub(super) pairs: Figure,
    /// The decisive metric: of the baseline, of the rung.
    pub(super) baseline: Option<Figure>,
    pub(super) value: Option<Figure>,
    pub(super) got: Option<Got>,
    pub(super) reason: Quote,
    /// Its interval, drawn; the bare scale where it has none.
    pub(super) lane: Html,
    /// Its pairs, drawn.
    pub(super) strip: Option<Html>,
}

/// What was read back.
pub(super) struct Got {
    pub(super) backing: Option<Quote>,
    pub(super) verified: Option<bool>,
    /// What of a profile was set, and what there is of it.
    pub(super) in_part: Option<[Figure; 2]>,
}

impl Got {
    fn of(at: &str, achieved: &Achieved) -> Self {
        let backing = achieved.backing.as_deref();
        let at = format!("{at}/achieved");
        let count = |name: &str, count: usize| Figure::count(format!("{at}/in_part/{name}"), count as u64);
        Self {
            backing: backing.map(|backing| Quote::new(format!("{at}/backing"), backing)),
            verified: achieved.verified,
            in_part: achieved.in_part.map(|part| [count("set", part.set), count("of", part.of)]),
        }
    }
}

/// The pointer of a rung.
pub(super) fn at_rung(index: usize) -> String {
    format!("/rungs/{index}")
}

/// The gain of a rung, where it has one.
pub(super) fn gain(rung: &Rung) -> Option<Gain> {
    let gain = Gain { effect: rung.effect?, low: rung.low?, high: rung.high? };
    [gain.effect, gain.low, gain.high].iter().all(|value| value.is_finite()).then_some(gain)
}

impl Ladder {
    pub(super) fn of(outcome: &TrialOutcome) -> Self {
        let fresh = |rung: &Rung| rung.confirmed.as_ref().map(|confirmed| confirmed.gain);
        let gains: Vec<Gain> =
            outcome.rungs.iter().flat_map(|rung| gain(rung).into_iter().chain(fresh(rung))).collect();
        let ends = || gains.iter().flat_map(|gain| [gain.low, gain.effect, gain.high]);
        let leasts = || outcome.rungs.iter().map(|rung| least(outcome, rung));
        let scale = Scale::over(ends().chain(leasts()));
        let better = outcome.primary.better;
        let logs = outcome.rungs.iter().flat_map(|rung| &rung.pair_logs);
        let pairs: Vec<f64> = logs.map(|log| gain_of_log(better, *log)).collect();
        let pairs_scale = Scale::over_bulk(&pairs, ends().chain(leasts()));
        let row = |(index, rung)| Row::of(outcome, index, rung, (scale, pairs_scale));
        Self {
            rows: outcome.rungs.iter().enumerate().map(row).collect(),
            axis: (!gains.is_empty()).then(|| axis(&scale)),
            pairs_axis: (!pairs.is_empty()).then(|| axis(&pairs_scale)),
        }
    }

    /// Whether the trial came as far as to run its placebo.
    pub(super) fn has_placebo(&self) -> bool {
        self.rows.iter().any(|row| row.is_placebo)
    }
}

impl Row {
    fn of(outcome: &TrialOutcome, index: usize, rung: &Rung, (scale, pairs_scale): (Scale, Scale)) -> Self {
        let at = at_rung(index);
        let metric = rung.metrics.get(&outcome.primary.name);
        let metric_at = member(&format!("{at}/metrics"), &outcome.primary.name);
        let value = |part: &str, value: Option<f64>| {
            Figure::quantity(format!("{metric_at}/{part}"), value?, &metric?.unit)
        };
        Self {
            name: Quote::new(format!("{at}/name"), &rung.name),
            is_placebo: words::is_placebo(rung),
            against: against(outcome, &at, rung),
            least: rung.min_gain.map(|least| Figure::plain_gain(format!("{at}/min_gain"), least)),
            verdict: words::verdict(rung.verdict),
            gain: gain(rung).map(|gain| interval(&at, gain)),
            level: rung.level.map(|level| Figure::chosen_share(format!("{at}/level"), level)),
            confirmed: rung.confirmed.as_ref().map(|fresh| interval(&format!("{at}/confirmed"), fresh.gain)),
            confirmed_level: rung
                .confirmed
                .as_ref()
                .and_then(|fresh| fresh.level)
                .map(|level| Figure::chosen_share(format!("{at}/confirmed/level"), level)),
            confirmed_pairs: rung
                .confirmed
                .as_ref()
                .map(|fresh| Figure::count(format!("{at}/confirmed/pairs"), fresh.pairs as u64)),
            pairs: Figure::count(format!("{at}/pairs"), rung.pairs as u64),
            baseline: value("baseline", metric.and_then(|row| row.baseline)),
            value: value("value", metric.and_then(|row| row.value)),
            got: rung.achieved.as_ref().map(|achieved| Got::of(&at, achieved)),
            reason: Quote::new(format!("{at}/reason"), &rung.reason),
            lane: lane(outcome, &at, rung, scale),
            strip: strip(outcome, &at, rung, pairs_scale),
        }
    }
}

/// The kept rungs that it was put on top of.
fn against(outcome: &TrialOutcome, at: &str, rung: &Rung) -> Option<Html> {
    let names = rung.against.iter().enumerate();
    let names = names.filter(|(_, name)| **name != outcome.baseline);
    let quotes =
        names.map(|(index, name)| Html::default().then(Quote::new(format!("{at}/against/{index}"), name)));
    quotes.reduce(|all, name| all.text(" + ").then(name))
}

/// The interval of a rung on the scale of the ladder, and under it the one of the fresh run.
fn lane(outcome: &TrialOutcome, at: &str, rung: &Rung, scale: Scale) -> Html {
    let verdict = words::verdict(rung.verdict);
    let label = match gain(rung) {
        Some(Gain { effect, low, high }) => {
            let [effect, low, high] = [effect, low, high].map(units::gain);
            format!("{}: {verdict}, {effect}, interval {low} to {high}", rung.name)
        }
        None => format!("{}: {verdict}, not measured", rung.name),
    };
    let mut lane = Lane::new(scale, ROW, label).band(0.0, least(outcome, rung), "too-small").grid();
    if let Some(gain) = gain(rung) {
        let upper = if rung.confirmed.is_some() { ROW_UPPER } else { ROW_ONLY };
        place(&mut lane, at, gain, upper, &format!("span {verdict}"), &format!("mark-{verdict}"));
    }
    if let Some(fresh) = &rung.confirmed {
        place(&mut lane, &format!("{at}/confirmed"), fresh.gain, ROW_LOWER, "span fresh", "mark-fresh");
    }
    lane.finish()
}

fn least(outcome: &TrialOutcome, rung: &Rung) -> f64 {
    rung.min_gain.unwrap_or(outcome.min_gain)
}

fn place(lane: &mut Lane, at: &str, gain: Gain, y: u32, span: &str, mark: &str) {
    let (low, high, effect) = (format!("{at}/low"), format!("{at}/high"), format!("{at}/effect"));
    let (low, high) = (Datum { at: &low, value: gain.low }, Datum { at: &high, value: gain.high });
    lane.span(&low, &high, y, span);
    lane.mark(&Datum { at: &effect, value: gain.effect }, y, mark);
}

/// Every pair of a rung as a dot, and the interval that they make as a band.
fn strip(outcome: &TrialOutcome, at: &str, rung: &Rung, scale: Scale) -> Option<Html> {
    if rung.pair_logs.is_empty() {
        return None;
    }
    let better = outcome.primary.better;
    let gains: Vec<f64> = rung.pair_logs.iter().map(|log| gain_of_log(better, *log)).collect();
    let above = gains.iter().filter(|gain| **gain > 0.0).count();
    let pairs = units::count(gains.len(), "pair");
    let mut lane = Lane::new(scale, STRIP, format!("{}: {pairs}, {above} above zero", rung.name)).grid();
    if let Some(gain) = gain(rung) {
        lane = lane.band(gain.low, gain.high, &format!("interval {}", words::verdict(rung.verdict)));
        lane.rule(gain.effect, &format!("estimate {}", words::verdict(rung.verdict)));
    }
    for (index, (log, shown)) in rung.pair_logs.iter().zip(&gains).enumerate() {
        let (y, class, first) = match rung.orders.get(index) {
            Some(First::Arm) => (STRIP_ARM_FIRST, "dot arm-first", ", rung first"),
            Some(First::Baseline) => (STRIP_BASELINE_FIRST, "dot", ", baseline first"),
            None => (STRIP_BASELINE_FIRST, "dot", ""),
        };
        let at = format!("{at}/pair_logs/{index}");
        let title = format!("pair {}{first}: {}", index + 1, units::gain(*shown));
        lane.dot(&Datum { at: &at, value: *log }, *shown, y + spread(index), class, &title);
    }
    Some(lane.finish())
}

/// Pairs that follow each other stand a little apart, so that equal ones do not hide each other.
pub(super) fn spread(index: usize) -> u32 {
    [0, 4, 8, 2, 6][index % 5]
}

/// The gain that people read from the log ratio of a pair.
pub(super) fn gain_of_log(better: Better, log: f64) -> f64 {
    let better = match better {
        Better::Lower => planish_stats::Better::Lower,
        Better::Higher => planish_stats::Better::Higher,
    };
    better.gain(log)
}
