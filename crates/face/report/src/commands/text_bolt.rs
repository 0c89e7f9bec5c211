//! `planish text bolt`: what BOLT made of a program, by which profile, and what was looked at before it got its name.

use planish_model::EntryId;
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report, styles};
use crate::table::{Cell, Table};
use crate::units;

/// A function that BOLT was told to leave alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextBoltSkipRow {
    /// Its name.
    pub function: String,
    /// Why.
    pub why: String,
}

/// Something that was looked at before the new program got its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextBoltCheckRow {
    /// What: `outside` (loader, libraries, dynamic symbols, entry), `loaded` by the kernel, `--try`.
    pub what: String,
    /// Whether it is as it should be; null where that could not be asked here.
    pub good: Option<bool>,
    /// What was found.
    pub found: String,
}

/// The text of a program, before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextBoltFile {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of its executable segments.
    pub text_bytes: u64,
    /// Of these, bytes in whole huge pages; null where this kernel has none.
    pub whole_bytes: Option<u64>,
    /// Its build id; null where it has none. BOLT changes one bit of it.
    pub build_id: Option<String>,
}

impl TextBoltFile {
    fn told(&self) -> String {
        let whole = self.whole_bytes.map(|bytes| format!(" ({} in whole huge pages)", units::bytes(bytes)));
        format!(
            "{}, {} of text{}",
            units::bytes(self.bytes),
            units::bytes(self.text_bytes),
            whole.unwrap_or_default()
        )
    }
}

/// What `text bolt` did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextBoltReport {
    /// The program.
    pub program: String,
    /// The new one.
    pub output: String,
    /// What was done: blocks (and functions), functions, or instrument.
    pub layout: String,
    /// Why so: what the profile holds.
    pub why: String,
    /// The `llvm-bolt` that was run.
    pub llvm_bolt: String,
    /// Its version.
    pub version: String,
    /// The words that it was given last. Files in them that begin with a dot are gone.
    pub arguments: Vec<String>,
    /// How often it was run for this: once more for each time that it failed and named a function.
    pub runs: u32,
    /// Functions that it was told to leave alone.
    pub skipped: Vec<TextBoltSkipRow>,
    /// How the functions were ordered; null where BOLT did it, or nobody.
    pub order: Option<String>,
    /// Functions that have a profile, or a place in the order; null where nothing is laid out.
    pub profiled: Option<u64>,
    /// All functions that BOLT knows; null like that.
    pub functions: Option<u64>,
    /// Functions whose profile is of other code.
    pub stale: u64,
    /// Taken branches as the profile counted them, before; null without blocks.
    pub taken_before: Option<u64>,
    /// The same as the new layout has them.
    pub taken_after: Option<u64>,
    /// `__hot_start`; null where there is none.
    pub hot_start: Option<u64>,
    /// `__hot_end`.
    pub hot_end: Option<u64>,
    /// The program.
    pub before: TextBoltFile,
    /// The new one; null on a dry run.
    pub after: Option<TextBoltFile>,
    /// What was looked at before it got its name.
    pub checks: Vec<TextBoltCheckRow>,
    /// Where an instrumented program writes its profile; null for others.
    pub fdata: Option<String>,
    /// Where the program lies that the new one has the name of; null where it is beside it.
    pub original: Option<String>,
    /// The entry that puts it back; null where none does.
    pub entry: Option<EntryId>,
    /// Whether it only looked.
    pub dry_run: bool,
}

impl Report for TextBoltReport {
    const COMMAND: &'static str = "text-bolt";

    fn text(&self, page: &mut Page<'_>) {
        page.fact("program", &units::harmless(&self.program));
        page.fact("output", &units::harmless(&self.output));
        page.fact("original", &self.original.clone().unwrap_or_default());
        page.fact("layout", &format!("{}: {}", self.layout, self.why));
        let runs = if self.runs > 1 { format!(", run {} times", self.runs) } else { String::new() };
        page.fact("llvm-bolt", &format!("{} ({}){runs}", self.version, self.llvm_bolt));
        if self.dry_run || page.is_detailed() {
            page.fact("words", &self.arguments.join(" "));
        }
        if let Some((profiled, functions)) = self.profiled.zip(self.functions) {
            let order = self.order.as_ref().map(|order| format!(", ordered by {order}"));
            page.fact("functions", &format!("{profiled} of {functions}{}", order.unwrap_or_default()));
        }
        if let Some((before, after)) = self.taken_before.zip(self.taken_after) {
            let change = units::gain(after as f64 / before.max(1) as f64 - 1.0);
            page.fact("branches", &format!("{before} taken before, {after} now ({change})"));
        }
        if let Some((start, end)) = self.hot_start.zip(self.hot_end) {
            let size = units::bytes(end.saturating_sub(start));
            page.fact("hot range", &format!("{start:#x}..{end:#x}, {size}"));
        }
        page.fact("before", &self.before.told());
        if let Some(after) = &self.after {
            page.fact("now", &after.told());
        }
        page.fact("profile to", &self.fdata.clone().unwrap_or_default());
        if !self.skipped.is_empty() {
            page.gap();
            let mut table = Table::new(&["left alone", "why"]);
            for row in &self.skipped {
                table.row([row.function.as_str(), row.why.as_str()].map(Cell::from));
            }
            page.table(&table);
        }
        if self.checks.is_empty() {
            return;
        }
        page.gap();
        let mut table = Table::new(&["", "looked at", "found"]);
        for row in &self.checks {
            let mark = match row.good {
                Some(true) => Cell::styled("yes", styles::GOOD),
                Some(false) => Cell::styled("no", styles::WARNING),
                None => Cell::styled("?", styles::DIM),
            };
            table.row([mark, row.what.as_str().into(), row.found.as_str().into()]);
        }
        page.table(&table);
    }
}
