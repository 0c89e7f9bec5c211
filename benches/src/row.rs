//! One figure beside its limit, as text and as JSON.

use anyhow::{Context, Result};
use serde::Serialize;
use std::path::Path;

/// Which side of its limit a figure must stay on.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Times, sizes, error rates.
    AtMost,
    /// Power.
    AtLeast,
}

/// One figure.
#[derive(Serialize)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// The figure; `null` when it could not be measured, and `reason` says why.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: &'static str,
    /// The limit that it must keep.
    pub baseline: f64,
    /// Figure over limit.
    pub ratio: Option<f64>,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Which side of the limit is right.
    pub limit: Limit,
    /// Why there is no figure.
    pub reason: Option<String>,
    /// What else there is to say, such as the two times behind a ratio.
    pub note: Option<String>,
}

/// A figure with its interval.
#[derive(Clone, Copy)]
pub struct Figure {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Figure {
    /// A figure that is counted, not estimated.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }
}

/// All figures of a benchmark.
#[derive(Default)]
pub struct Rows {
    rows: Vec<Row>,
}

impl Rows {
    /// Measures one row and says on stderr that it is being measured.
    pub fn add(
        &mut self,
        name: &str,
        unit: &'static str,
        (limit, baseline): (Limit, f64),
        measure: impl FnOnce() -> Result<Figure>,
    ) {
        self.add_with_note(name, unit, (limit, baseline), || Ok((measure()?, String::new())));
    }

    /// The same with a note.
    pub fn add_with_note(
        &mut self,
        name: &str,
        unit: &'static str,
        (limit, baseline): (Limit, f64),
        measure: impl FnOnce() -> Result<(Figure, String)>,
    ) {
        eprintln!("measuring {name}");
        let result = measure();
        let note = result.as_ref().ok().map(|(_, note)| note.clone()).filter(|note| !note.is_empty());
        let figure = result.as_ref().ok().map(|(figure, _)| figure);
        self.rows.push(Row {
            name: name.to_owned(),
            value: figure.map(|figure| figure.value),
            unit,
            baseline,
            ratio: figure.map(|figure| figure.value / baseline),
            low: figure.map(|figure| figure.low),
            high: figure.map(|figure| figure.high),
            limit,
            reason: result.as_ref().err().map(|error| format!("{error:#}")),
            note,
        });
        // What was measured is not lost when the rest takes too long.
        self.rows.last().into_iter().for_each(|row| eprintln!("  {}", row.line(0)));
    }

    /// Whether every figure was measured and keeps its limit.
    pub fn all_kept(&self) -> bool {
        self.rows.iter().all(Row::is_kept)
    }

    /// Prints the table.
    pub fn print(&self) {
        let width = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        println!(
            "{:<width$}  {:>10}  {:>21}  {:>9}  {:>6}  unit",
            "name", "value", "interval", "limit", "ratio"
        );
        for row in &self.rows {
            println!("{}", row.line(width));
        }
    }

    /// Writes the envelope of the contract, schema `planish.bench/1`.
    pub fn write_json(&self, file: &Path) -> Result<()> {
        let envelope = serde_json::json!({
            "schema": "planish.bench/1",
            "version": env!("CARGO_PKG_VERSION"),
            "command": "bench",
            "exit": u8::from(!self.all_kept()),
            "result": { "rows": self.rows },
            "messages": [],
        });
        let text = serde_json::to_string_pretty(&envelope).context("rows are plain data")?;
        std::fs::write(file, text + "\n").with_context(|| format!("write {}", file.display()))
    }
}

impl Row {
    fn is_kept(&self) -> bool {
        self.ratio.is_some_and(|ratio| match self.limit {
            Limit::AtMost => ratio <= 1.0,
            Limit::AtLeast => ratio >= 1.0,
        })
    }

    fn line(&self, width: usize) -> String {
        let sign = if self.limit == Limit::AtMost { "<=" } else { ">=" };
        let limit = format!("{sign} {}", self.baseline);
        let (Some(value), Some(ratio)) = (self.value, self.ratio) else {
            let reason = self.reason.as_deref().unwrap_or("not measured");
            return format!(
                "{:<width$}  {:>10}  {:>21}  {limit:>9}  {:>6}  {reason}",
                self.name, "-", "", "-"
            );
        };
        let interval = format!("{:.4} .. {:.4}", self.low.unwrap_or(value), self.high.unwrap_or(value));
        let note = self.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        let over = if self.is_kept() { "" } else { "  NOT KEPT" };
        format!(
            "{:<width$}  {value:>10.4}  {interval:>21}  {limit:>9}  {ratio:>6.2}  {}{note}{over}",
            self.name, self.unit
        )
    }
}
