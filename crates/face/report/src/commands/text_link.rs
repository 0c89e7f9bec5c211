//! `planish text check`, `link-flags` and `verify`: what a link allows, the flags that mend it, and what came of it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::text::{TextPagesRow, pages_table};
use crate::commands::text_huge::TextCacheRow;
use crate::page::{Page, Report, styles};
use crate::table::{Cell, Table};
use crate::units;

/// One thing that a program allows or does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextCheckRow {
    /// What was looked at.
    pub what: String,
    /// Whether it is as it should be; null where that cannot be told.
    pub good: Option<bool>,
    /// What was found.
    pub found: String,
    /// The flag, or the step, that mends it; null where nothing is to mend.
    pub cure: Option<String>,
}

/// What `text check` found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextCheckReport {
    /// The program.
    pub program: String,
    /// Size of the huge pages that it was checked for.
    pub page_bytes: u64,
    /// Row by row, in the order of the way to huge pages.
    pub rows: Vec<TextCheckRow>,
}

impl Report for TextCheckReport {
    const COMMAND: &'static str = "text-check";

    fn text(&self, page: &mut Page<'_>) {
        page.fact("program", &self.program);
        page.fact("pages", &format!("of {}", units::bytes(self.page_bytes)));
        page.gap();
        let mut table = Table::new(&["", "what", "found", "cure"]);
        for row in &self.rows {
            let mark = match row.good {
                Some(true) => Cell::styled("yes", styles::GOOD),
                Some(false) => Cell::styled("no", styles::WARNING),
                None => Cell::styled("?", styles::DIM),
            };
            let cure = row.cure.clone().unwrap_or_default();
            table.row([mark, row.what.as_str().into(), row.found.as_str().into(), cure.into()]);
        }
        page.table(&table);
    }
}

/// What `text link-flags` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextLinkFlagsReport {
    /// For every compilation.
    pub compile: Vec<String>,
    /// For the link.
    pub link: Vec<String>,
    /// The file that the recipe goes into; null where no tool was named.
    pub file: Option<String>,
    /// The lines for that file.
    pub recipe: Option<String>,
}

impl Report for TextLinkFlagsReport {
    const COMMAND: &'static str = "text-link-flags";

    fn text(&self, page: &mut Page<'_>) {
        match (&self.file, &self.recipe) {
            (Some(file), Some(recipe)) => {
                page.line(format!("# {file}"));
                page.line(recipe.trim_end());
            }
            _ => {
                page.line(self.compile.join(" "));
                page.line(self.link.join(" "));
            }
        }
    }
}

/// Where the text of a running process lies.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextProcessRow {
    /// The process.
    pub pid: u32,
    /// Bytes of the program's code that are mapped.
    pub text_bytes: u64,
    /// Of these, bytes in whole huge pages: the most that can lie on some.
    pub whole_bytes: u64,
    /// Of the text, bytes on huge pages, as the page tables say: of the page cache, or put there by the process itself.
    pub huge_bytes: u64,
    /// Bytes of the hot range; null where the program has no marks of one.
    pub hot_bytes: Option<u64>,
    /// Of these, bytes on huge pages.
    pub hot_huge_bytes: Option<u64>,
    /// The share of the profile's weight on huge pages, from 0 to 1; null without a profile.
    pub weight_huge: Option<f64>,
    /// Bytes on huge pages that are not hot: what the last page wastes, and more where too much was moved.
    pub wasted_bytes: Option<u64>,
}

/// What `text verify` found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextVerifyReport {
    /// The program.
    pub program: String,
    /// `__hot_start`; null where the program has no such mark.
    pub hot_start: Option<u64>,
    /// `__hot_end`.
    pub hot_end: Option<u64>,
    /// The share of the profile's weight inside of the hot range, from 0 to 1.
    pub inside: Option<f64>,
    /// Pages that hold the weight; empty without a profile.
    pub pages: Vec<TextPagesRow>,
    /// Where it lies in memory; null for a program that was not asked for as a process.
    pub process: Option<TextProcessRow>,
    /// What the page cache has of the file now; null where this kernel has no huge pages.
    pub cache: Option<TextCacheRow>,
    /// The same of the original, where `text huge` has replaced the file by a copy: what there was before.
    pub original: Option<TextCacheRow>,
    /// What fell short; empty where all is well.
    pub short: Vec<String>,
}

impl Report for TextVerifyReport {
    const COMMAND: &'static str = "text-verify";

    fn text(&self, page: &mut Page<'_>) {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        page.fact("program", &self.program);
        if let Some((start, end)) = self.hot_start.zip(self.hot_end) {
            let inside = self.inside.map(|share| format!(", {} of the samples inside", percent(share)));
            let size = units::bytes(end - start);
            page.fact("hot range", &format!("{start:#x}..{end:#x}, {size}{}", inside.unwrap_or_default()));
        }
        let told = |row: &Option<TextCacheRow>| row.as_ref().map(TextCacheRow::told).unwrap_or_default();
        page.fact("cached", &told(&self.cache));
        page.fact("before", &told(&self.original));
        if let Some(process) = &self.process {
            let of = |part: u64, whole: u64| {
                let share = percent(part as f64 / whole.max(1) as f64);
                format!("{} of {} on huge pages ({share})", units::bytes(part), units::bytes(whole))
            };
            page.fact("process", &process.pid.to_string());
            page.fact("text", &of(process.huge_bytes, process.text_bytes));
            page.fact("can be", &format!("{} in whole huge pages", units::bytes(process.whole_bytes)));
            if let Some((huge, hot)) = process.hot_huge_bytes.zip(process.hot_bytes) {
                page.fact("hot", &of(huge, hot));
            }
            page.fact(
                "samples",
                &process.weight_huge.map(percent).map_or(String::new(), |share| share + " on huge pages"),
            );
            if let Some(wasted) = process.wasted_bytes.filter(|wasted| *wasted > 0) {
                page.fact("not hot", &format!("{} on huge pages", units::bytes(wasted)));
            }
        }
        pages_table(&self.pages, page);
    }
}
