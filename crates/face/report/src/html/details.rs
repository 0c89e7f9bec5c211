//! Everything else that was counted, rung by rung: metrics, explaining columns, guards, what was read back.

use planish_sorted::SortSmall as _;
use planish_trial::{Achieved, Builds, CollectorRow, GuardRow, MetricRow, Rung, TrialOutcome};
use serde_json::Value;

use super::figure::{Figure, interval};
use super::markup::{Html, Quote, member};
use super::rungs::at_rung;
use super::words;

/// Metrics in the order in which people ask for them; others follow by name.
const ORDER: [&str; 23] = [
    "cpu_ns_per_op",
    "user_ns_per_op",
    "system_ns_per_op",
    "select_cpu_ns_per_op",
    "cpu_s",
    "user_s",
    "system_s",
    "wall_ns_per_op",
    "wall_s",
    "ops_per_s",
    "select_ops_per_s",
    "tps",
    "mean_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p99_9_ns",
    "max_ns",
    "sd_ns",
    "iqr_ns",
    "rss_bytes",
    "faults",
    "error_rate",
];

/// The figures of one rung.
pub(super) struct Details {
    pub(super) name: Quote,
    pub(super) metrics: Vec<Metric>,
    pub(super) collectors: Vec<Collector>,
    /// Names of the columns in which nothing happened in either arm.
    pub(super) still: Vec<String>,
    /// Columns that this machine cannot count, gathered by their reason.
    pub(super) missing: Vec<Missing>,
    pub(super) guards: Vec<Guard>,
    pub(super) builds: Option<Recipe>,
    pub(super) facts: Vec<Fact>,
}

/// A metric beside the baseline's.
pub(super) struct Metric {
    pub(super) name: String,
    pub(super) key: String,
    pub(super) is_primary: bool,
    pub(super) baseline: Option<Figure>,
    pub(super) value: Option<Figure>,
    pub(super) gain: Option<Html>,
}

/// An explaining column.
pub(super) struct Collector {
    pub(super) key: String,
    pub(super) baseline: Option<Figure>,
    pub(super) value: Option<Figure>,
}

/// Columns that are not available, and why.
pub(super) struct Missing {
    pub(super) keys: Vec<String>,
    pub(super) reason: Quote,
}

/// A guard.
pub(super) struct Guard {
    pub(super) metric: Quote,
    pub(super) margin: Figure,
    pub(super) low: Option<Figure>,
    /// Word and mark of what became of it.
    pub(super) tone: &'static str,
    pub(super) word: &'static str,
    pub(super) reason: Quote,
}

/// What the builds of a recipe say together.
pub(super) struct Recipe {
    pub(super) builds: Vec<Build>,
    pub(super) gain: Option<Html>,
    pub(super) level: Figure,
    pub(super) distinct: Figure,
}

/// One build.
pub(super) struct Build {
    pub(super) index: Figure,
    pub(super) pairs: Figure,
    pub(super) effect: Figure,
    pub(super) sha256: Option<Quote>,
}

impl Recipe {
    fn of(at: &str, builds: &Builds) -> Self {
        let at = format!("{at}/builds");
        let rows = builds.builds.iter().enumerate().map(|(place, row)| {
            let at = format!("{at}/builds/{place}");
            Build {
                index: Figure::count(format!("{at}/index"), row.index as u64),
                pairs: Figure::count(format!("{at}/pairs"), row.pairs as u64),
                effect: Figure::gain(format!("{at}/effect"), row.effect),
                sha256: row.sha256.as_deref().map(|sha256| Quote::new(format!("{at}/sha256"), sha256)),
            }
        });
        Self {
            builds: rows.collect(),
            gain: builds.gain.map(|gain| interval(&format!("{at}/gain"), gain)),
            level: Figure::chosen_share(format!("{at}/level"), builds.level),
            distinct: Figure::count(format!("{at}/distinct"), builds.distinct as u64),
        }
    }
}

/// A fact that was read back.
pub(super) struct Fact {
    pub(super) name: String,
    pub(super) value: Html,
}

/// The figures of all rungs that have any.
pub(super) fn details(outcome: &TrialOutcome) -> Vec<Details> {
    let rungs = outcome.rungs.iter().enumerate();
    rungs.map(|(index, rung)| Details::of(outcome, index, rung)).filter(Details::has_any).collect()
}

impl Details {
    fn of(outcome: &TrialOutcome, index: usize, rung: &Rung) -> Self {
        let at = at_rung(index);
        let mut names: Vec<&String> = rung.metrics.keys().collect();
        let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
        names.sort_small_by_key(|name| (**name != outcome.primary.name, place(name)));
        let metric = |name: &String| Metric::of(outcome, &at, name, &rung.metrics[name]);
        let counted = rung.collectors.iter().filter(|(_, row)| row.available);
        let (still, moved): (Vec<_>, Vec<_>) = counted.partition(|(_, row)| is_still(row));
        Self {
            name: Quote::new(format!("{at}/name"), &rung.name),
            metrics: names.into_iter().map(metric).collect(),
            collectors: moved.into_iter().map(|(name, row)| Collector::of(&at, name, row)).collect(),
            still: still.into_iter().map(|(name, _)| name.clone()).collect(),
            missing: missing(&at, rung),
            guards: rung.guards.iter().enumerate().map(|(n, row)| Guard::of(&at, n, row)).collect(),
            builds: rung.builds.as_ref().map(|builds| Recipe::of(&at, builds)),
            facts: rung.achieved.as_ref().map_or(Vec::new(), |achieved| facts(&at, achieved)),
        }
    }

    fn has_any(&self) -> bool {
        !(self.metrics.is_empty()
            && self.collectors.is_empty()
            && self.still.is_empty()
            && self.missing.is_empty()
            && self.guards.is_empty()
            && self.facts.is_empty())
    }
}

impl Metric {
    fn of(outcome: &TrialOutcome, at: &str, name: &str, row: &MetricRow) -> Self {
        let at = member(&format!("{at}/metrics"), name);
        let value =
            |part: &str, value: Option<f64>| Figure::quantity(format!("{at}/{part}"), value?, &row.unit);
        Self {
            name: words::metric(name).to_owned(),
            key: name.to_owned(),
            is_primary: name == outcome.primary.name,
            baseline: value("baseline", row.baseline),
            value: value("value", row.value),
            gain: row.gain.map(|gain| interval(&format!("{at}/gain"), gain)),
        }
    }
}

impl Collector {
    fn of(at: &str, name: &str, row: &CollectorRow) -> Self {
        let at = member(&format!("{at}/collectors"), name);
        let value =
            |part: &str, value: Option<f64>| Figure::quantity(format!("{at}/{part}"), value?, &row.unit);
        Self {
            key: name.to_owned(),
            baseline: value("baseline", row.baseline),
            value: value("value", row.value),
        }
    }
}

fn is_still(row: &CollectorRow) -> bool {
    row.baseline == Some(0.0) && row.value == Some(0.0)
}

/// Columns without a counter, those with the same reason together.
fn missing(at: &str, rung: &Rung) -> Vec<Missing> {
    let mut groups: Vec<(&str, Missing)> = Vec::new();
    for (name, row) in rung.collectors.iter().filter(|(_, row)| !row.available) {
        let reason = row.reason.as_deref().unwrap_or("no reason was given");
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, group)) => group.keys.push(name.clone()),
            None => {
                let at = format!("{}/reason", member(&format!("{at}/collectors"), name));
                let quote = Quote::new(at, reason);
                groups.push((reason, Missing { keys: vec![name.clone()], reason: quote }));
            }
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

impl Guard {
    fn of(at: &str, index: usize, row: &GuardRow) -> Self {
        let at = format!("{at}/guards/{index}");
        let (tone, word) = match row.held {
            Some(true) => ("keep", "held"),
            Some(false) => ("drop", "breached"),
            None => ("inconclusive", "not judged"),
        };
        Self {
            metric: Quote::new(format!("{at}/metric"), &row.metric),
            margin: Figure::chosen_share(format!("{at}/margin"), row.margin),
            low: row.low.filter(|low| low.is_finite()).map(|low| Figure::gain(format!("{at}/low"), low)),
            tone,
            word,
            reason: Quote::new(format!("{at}/reason"), &row.reason),
        }
    }
}

/// What was read back, numbers in the unit that the end of their name tells.
fn facts(at: &str, achieved: &Achieved) -> Vec<Fact> {
    let at = format!("{at}/achieved/facts");
    let told = achieved.facts.iter();
    told.map(|(name, value)| Fact { name: name.clone(), value: fact(&member(&at, name), unit(name), value) })
        .collect()
}

fn fact(at: &str, unit: &str, value: &Value) -> Html {
    let none = Html::default();
    let parts: Vec<Html> = match value {
        Value::Number(number) => {
            let figure = number.as_f64().and_then(|number| Figure::quantity(at, number, unit));
            return figure.map_or(none, |figure| Html::default().then(figure));
        }
        Value::String(text) => return none.then(Quote::new(at, text)),
        Value::Bool(yes) => return none.text(if *yes { "yes" } else { "no" }),
        Value::Null => Vec::new(),
        Value::Array(list) => {
            let parts = list.iter().enumerate();
            parts.map(|(index, part)| fact(&format!("{at}/{index}"), unit, part)).collect()
        }
        Value::Object(map) => {
            let parts = map.iter();
            parts
                .map(|(key, part)| {
                    Html::default().text(key).text(": ").then(fact(&member(at, key), unit, part))
                })
                .collect()
        }
    };
    let joined = parts.into_iter().reduce(|all, part| all.text(", ").then(part));
    joined.unwrap_or_else(|| none.text("none"))
}

fn unit(name: &str) -> &'static str {
    match name.rsplit('_').next() {
        Some("bytes") => "B",
        Some("kb") => "kB",
        Some("ns") => "ns",
        _ => "",
    }
}
