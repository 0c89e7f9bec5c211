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
    /// The limit that it must keep; `null` for what others take, which has none.
    pub baseline: Option<f64>,
    /// Figure over limit.
    pub ratio: Option<f64>,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Which side of the limit is right.
    pub limit: Option<Limit>,
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
        self.push(name, unit, Some((limit, baseline)), measure);
    }

    /// What something else takes, to be read beside the rows of ours: no limit is kept or broken by it, and where it is
    /// not there to be measured, the reason stands in its place.
    pub fn beside(&mut self, name: &str, unit: &'static str, measure: impl FnOnce() -> Result<Figure>) {
        self.push(name, unit, None, || Ok((measure()?, String::new())));
    }

    fn push(
        &mut self,
        name: &str,
        unit: &'static str,
        limit: Option<(Limit, f64)>,
        measure: impl FnOnce() -> Result<(Figure, String)>,
    ) {
        eprintln!("measuring {name}");
        let result = measure();
        let baseline = limit.map(|(_, baseline)| baseline);
        let note = result.as_ref().ok().map(|(_, note)| note.clone()).filter(|note| !note.is_empty());
        let figure = result.as_ref().ok().map(|(figure, _)| figure);
        self.rows.push(Row {
            name: name.to_owned(),
            value: figure.map(|figure| figure.value),
            unit,
            baseline,
            ratio: figure.zip(baseline).map(|(figure, baseline)| figure.value / baseline),
            low: figure.map(|figure| figure.low),
            high: figure.map(|figure| figure.high),
            limit: limit.map(|(limit, _)| limit),
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
        match (self.limit, self.ratio) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(Limit::AtMost), Some(ratio)) => ratio <= 1.0,
            (Some(Limit::AtLeast), Some(ratio)) => ratio >= 1.0,
        }
    }

    fn line(&self, width: usize) -> String {
        let sign = if self.limit == Some(Limit::AtMost) { "<=" } else { ">=" };
        let limit = self.baseline.map_or_else(|| "-".to_owned(), |baseline| format!("{sign} {baseline}"));
        let Some(value) = self.value else {
            let reason = self.reason.as_deref().unwrap_or("not measured");
            return format!(
                "{:<width$}  {:>10}  {:>21}  {limit:>9}  {:>6}  {reason}",
                self.name, "-", "", "-"
            );
        };
        let interval = format!("{:.4} .. {:.4}", self.low.unwrap_or(value), self.high.unwrap_or(value));
        let ratio = self.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        let note = self.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        let over = if self.is_kept() { "" } else { "  NOT KEPT" };
        format!(
            "{:<width$}  {value:>10.4}  {interval:>21}  {limit:>9}  {ratio:>6}  {}{note}{over}",
            self.name, self.unit
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Figure, Limit, Rows};

    #[test]
    fn what_stands_beside_breaks_no_limit_and_what_is_over_its_own_does() {
        let mut rows = Rows::default();
        rows.add("ours", "ms", (Limit::AtMost, 50.0), || Ok(Figure::exact(10.0)));
        rows.beside("theirs", "ms", || Ok(Figure::exact(1000.0)));
        rows.beside("not here", "ms", || anyhow::bail!("is not installed here"));
        assert!(rows.all_kept());
        assert!(rows.rows[1].line(0).contains("  -       -  ms"), "{}", rows.rows[1].line(0));
        assert!(rows.rows[2].line(0).ends_with("is not installed here"));
        rows.add("ours, slow", "ms", (Limit::AtMost, 50.0), || Ok(Figure::exact(51.0)));
        assert!(!rows.all_kept());
        let mut missing = Rows::default();
        missing.add("ours", "ms", (Limit::AtMost, 50.0), || anyhow::bail!("not measured"));
        assert!(!missing.all_kept());
    }
}
