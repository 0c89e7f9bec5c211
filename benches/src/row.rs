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

/// What an interval says of a limit: noise explains neither of the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All of it is on the right side.
    Kept,
    /// None of it is.
    NotKept,
    /// The limit lies within.
    Undecided,
}

impl Verdict {
    fn of(figure: Figure, (limit, baseline): (Limit, f64)) -> Self {
        let keeps = |value: f64| match limit {
            Limit::AtMost => value <= baseline,
            Limit::AtLeast => value >= baseline,
        };
        match (keeps(figure.low), keeps(figure.high)) {
            (true, true) => Self::Kept,
            (false, false) => Self::NotKept,
            _ => Self::Undecided,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::NotKept => "not kept",
            Self::Undecided => "undecided",
        }
    }
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
    /// What the interval says of the limit; `null` where there is no figure or no limit.
    pub verdict: Option<Verdict>,
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
    /// What a row has in its name, to be measured at all.
    only: Option<String>,
}

impl Rows {
    /// None yet, and none but those whose name has these words in it.
    pub fn only(words: Option<String>) -> Self {
        Self { only: words, ..Self::default() }
    }

    /// Whether a row of this name is measured.
    pub fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|words| name.contains(words))
    }

    /// Whether nothing is wanted that is here: then a word was mistaken.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

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
        self.beside_with_note(name, unit, || Ok((measure()?, String::new())));
    }

    /// The same with a note.
    pub fn beside_with_note(
        &mut self,
        name: &str,
        unit: &'static str,
        measure: impl FnOnce() -> Result<(Figure, String)>,
    ) {
        self.push(name, unit, None, measure);
    }

    fn push(
        &mut self,
        name: &str,
        unit: &'static str,
        limit: Option<(Limit, f64)>,
        measure: impl FnOnce() -> Result<(Figure, String)>,
    ) {
        if !self.wants(name) {
            return;
        }
        eprintln!("measuring {name}");
        let result = measure();
        let baseline = limit.map(|(_, baseline)| baseline);
        let note = result.as_ref().ok().map(|(_, note)| note.clone()).filter(|note| !note.is_empty());
        let figure = result.as_ref().ok().map(|(figure, _)| figure);
        let verdict = figure.zip(limit).map(|(figure, limit)| Verdict::of(*figure, limit));
        self.rows.push(Row {
            name: name.to_owned(),
            value: figure.map(|figure| figure.value),
            unit,
            baseline,
            ratio: figure.zip(baseline).map(|(figure, baseline)| figure.value / baseline),
            low: figure.map(|figure| figure.low),
            high: figure.map(|figure| figure.high),
            limit: limit.map(|(limit, _)| limit),
            verdict,
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

    /// Writes the table as a page of Markdown under `heading`, with how it was written, the machine and the day, for
    /// docs/.
    pub fn write_page(&self, file: &Path, heading: &str, written: &str) -> Result<()> {
        let mut page = format!("# {heading}\n\n{written}\n\n{}\n\n", machine());
        page += "| what | value | interval | limit | verdict | |\n|---|---|---|---|---|---|\n";
        for row in &self.rows {
            page += &row.page_line();
        }
        std::fs::write(file, page).with_context(|| format!("write {}", file.display()))
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

    fn page_line(&self) -> String {
        let sign = if self.limit == Some(Limit::AtMost) { "<=" } else { ">=" };
        let limit = self.baseline.map_or_else(String::new, |baseline| format!("{sign} {baseline}"));
        let (name, note) = (&self.name, self.note.as_deref().unwrap_or_default());
        let Some(value) = self.value else {
            let reason = self.reason.as_deref().unwrap_or("not measured");
            return format!("| {name} | - | | {limit} | | {reason} |\n");
        };
        let interval = match (self.low, self.high) {
            (Some(low), Some(high)) if low < high => format!("{} .. {}", shown(low), shown(high)),
            _ => String::new(),
        };
        let verdict = self.verdict.map_or("", Verdict::word);
        format!("| {name} | {} {} | {interval} | {limit} | {verdict} | {note} |\n", shown(value), self.unit)
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
        // Decided by the value, and told apart where noise alone may have done it.
        let over = match (self.is_kept(), self.verdict) {
            (true, Some(Verdict::Undecided)) => "  within noise of the limit",
            (true, _) => "",
            (false, Some(Verdict::Undecided)) => "  NOT KEPT, within noise",
            (false, _) => "  NOT KEPT",
        };
        format!(
            "{:<width$}  {value:>10.4}  {interval:>21}  {limit:>9}  {ratio:>6}  {}{note}{over}",
            self.name, self.unit
        )
    }
}

/// Three digits, as many as such figures are good for.
fn shown(value: f64) -> String {
    let digits = (2 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 6);
    format!("{value:.*}", digits as usize)
}

/// The machine and the day, in one line.
fn machine() -> String {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
        line.map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned())
    };
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let kilobytes = field(&read("/proc/meminfo"), "MemTotal");
    let gib = kilobytes.trim_end_matches("kB").trim().parse::<f64>().unwrap_or(0.0) / f64::from(1 << 20);
    let is_guest = read("/proc/cpuinfo")
        .lines()
        .any(|line| line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor"));
    let days = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |now| now.as_secs() / 86400);
    format!(
        "{}: {cpus} CPUs ({}), {gib:.0} GiB{}, kernel {}. Load {}.",
        date(days),
        field(&read("/proc/cpuinfo"), "model name"),
        if is_guest { ", a guest" } else { "" },
        read("/proc/sys/kernel/osrelease").trim().split('-').next().unwrap_or("unknown"),
        read("/proc/loadavg").split_whitespace().next().unwrap_or("unknown"),
    )
}

/// Days since 1970 as a date (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn date(days: u64) -> String {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::{Figure, Limit, Rows, Verdict, date, shown};

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

    #[test]
    fn noise_explains_neither_what_is_kept_nor_what_is_not() {
        let of = |low, high, limit| Verdict::of(Figure { value: (low + high) / 2.0, low, high }, limit);
        for (low, high, at_most, at_least) in [
            (0.8, 0.9, Verdict::Kept, Verdict::NotKept),
            (0.9, 1.1, Verdict::Undecided, Verdict::Undecided),
            (1.1, 1.2, Verdict::NotKept, Verdict::Kept),
            (1.0, 1.0, Verdict::Kept, Verdict::Kept),
        ] {
            assert_eq!(of(low, high, (Limit::AtMost, 1.0)), at_most, "{low} .. {high}");
            assert_eq!(of(low, high, (Limit::AtLeast, 1.0)), at_least, "{low} .. {high}");
        }
        let mut rows = Rows::default();
        let figure = Figure { value: 1.01, low: 0.9, high: 1.2 };
        rows.add("ours", "ratio", (Limit::AtMost, 1.0), || Ok(figure));
        assert!(rows.rows[0].line(0).ends_with("NOT KEPT, within noise"), "{}", rows.rows[0].line(0));
    }

    #[test]
    fn a_page_has_every_row_and_says_why_one_is_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("page.md");
        let mut rows = Rows::default();
        let figure = Figure { value: 1.094, low: 1.05, high: 1.13 };
        rows.add_with_note("ours", "ns", (Limit::AtMost, 3.0), || Ok((figure, "beside".into())));
        rows.add("refused", "ms", (Limit::AtMost, 1.0), || anyhow::bail!("too little memory"));
        rows.write_page(&file, "Figures", "Written by me.").expect("written");
        let page = std::fs::read_to_string(file).expect("there");
        assert!(page.starts_with("# Figures\n\nWritten by me.\n\n20"), "{page}");
        assert!(page.contains("| ours | 1.09 ns | 1.05 .. 1.13 | <= 3 | kept | beside |\n"), "{page}");
        assert!(page.ends_with("| refused | - | | <= 1 | | too little memory |\n"), "{page}");
    }

    #[test]
    fn days_are_dates_and_figures_have_three_digits() {
        assert_eq!(
            [0, 59, 20_780, 20_513].map(date),
            ["1970-01-01", "1970-03-01", "2026-11-23", "2026-03-01"]
        );
        assert_eq!([0.01234, 1.0, 98.76, 1234.5].map(shown), ["0.0123", "1.00", "98.8", "1234"]);
    }
}
