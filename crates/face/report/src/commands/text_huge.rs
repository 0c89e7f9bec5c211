//! `planish text huge`: what a program's text lay on, what it lies on now, and by which route.

use planish_model::{BuddyRow, EntryId, KnobId};
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report, styles};
use crate::table::{Cell, Table};
use crate::units;

/// What the page cache has of a file's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextCacheRow {
    /// Bytes of code in the file.
    pub text_bytes: u64,
    /// Of these, bytes in whole huge pages: the most that can lie on some.
    pub whole_bytes: u64,
    /// Of these, bytes on huge pages of the page cache, which every process maps that starts now.
    pub huge_bytes: u64,
    /// Bytes in whole huge pages that are not in the page cache at all.
    pub cold_bytes: u64,
}

impl TextCacheRow {
    /// In words: `24 MiB of 24 MiB on huge pages`.
    pub(crate) fn told(&self) -> String {
        let on =
            format!("{} of {} on huge pages", units::bytes(self.huge_bytes), units::bytes(self.whole_bytes));
        match self.cold_bytes {
            0 => on,
            cold => format!("{on}, {} not in memory", units::bytes(cold)),
        }
    }
}

/// A route that was tried, or why it was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextRouteRow {
    /// Its name: already, warm, copy, collapse.
    pub route: String,
    /// won, short (less came of it than was asked for), failed or skipped.
    pub outcome: String,
    /// Why; null where there is nothing to say.
    pub why: Option<String>,
}

/// A process that runs the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextRunnerRow {
    /// Its PID.
    pub pid: u32,
    /// Bytes of its text on huge pages before.
    pub before_bytes: u64,
    /// The same afterwards.
    pub now_bytes: u64,
}

/// Something that the kernel did once, and that nothing takes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextActionRow {
    /// The action.
    pub knob: KnobId,
    /// What was written for it.
    pub value: String,
    /// Its entry in the journal; null on a dry run.
    pub entry: Option<EntryId>,
}

/// How room was made for huge pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextPrepared {
    /// What was done, in its order.
    pub actions: Vec<TextActionRow>,
    /// Free blocks before.
    pub before: Vec<BuddyRow>,
    /// Free blocks afterwards; on a dry run the same.
    pub after: Vec<BuddyRow>,
    /// Huge pages that lay whole in free blocks before; null where blocks cannot tell.
    pub pages_before: Option<u64>,
    /// The same afterwards.
    pub pages_after: Option<u64>,
}

impl TextPrepared {
    fn told(&self) -> String {
        let action = |row: &TextActionRow| match row.entry {
            Some(entry) => format!("{} (entry {entry})", row.knob),
            None => format!("{} (not done)", row.knob),
        };
        let actions: Vec<String> = self.actions.iter().map(action).collect();
        let pages = |pages: Option<u64>| pages.map_or("unknown".to_owned(), |pages| pages.to_string());
        let (before, after) = (pages(self.pages_before), pages(self.pages_after));
        format!("{}: free huge pages {before} before, {after} now", actions.join(", "))
    }
}

/// What `text huge` did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextHugeReport {
    /// The program's file, once all links are followed.
    pub program: String,
    /// Size of a huge page.
    pub page_bytes: u64,
    /// The page cache before.
    pub before: TextCacheRow,
    /// The page cache afterwards, by a fresh look; null where nothing was tried.
    pub after: Option<TextCacheRow>,
    /// The route by which it came to be so; null where none did.
    pub route: Option<String>,
    /// Every route, in the order in which they are tried.
    pub routes: Vec<TextRouteRow>,
    /// What a copy of the file has otherwise than the file.
    pub changes: Vec<String>,
    /// The entry that undoes it; null where no file was replaced.
    pub entry: Option<EntryId>,
    /// Where the original lies; null where no file was replaced.
    pub original: Option<String>,
    /// Processes that run it.
    pub running: Vec<TextRunnerRow>,
    /// How room was made before; null where nobody asked for it, and where it was not needed.
    pub prepared: Option<TextPrepared>,
    /// Whether it only looked.
    pub dry_run: bool,
}

impl Report for TextHugeReport {
    const COMMAND: &'static str = "text-huge";

    fn text(&self, page: &mut Page<'_>) {
        page.fact("program", &units::harmless(&self.program));
        page.fact(
            "text",
            &format!(
                "{}, of which {} in whole pages of {}",
                units::bytes(self.before.text_bytes),
                units::bytes(self.before.whole_bytes),
                units::bytes(self.page_bytes)
            ),
        );
        page.fact("before", &self.before.told());
        if let Some(after) = &self.after {
            page.fact("now", &after.told());
        }
        if let Some(prepared) = &self.prepared {
            page.fact("prepared", &prepared.told());
        }
        page.fact("original", &self.original.clone().unwrap_or_default());
        self.changes.iter().for_each(|change| page.fact("a copy has", change));
        page.gap();
        let mut table = Table::new(&["route", "", "why"]);
        for row in &self.routes {
            let outcome = match row.outcome.as_str() {
                "won" => Cell::styled("won", styles::GOOD),
                "skipped" => Cell::styled("skipped", styles::DIM),
                other => Cell::styled(other.to_owned(), styles::WARNING),
            };
            table.row([row.route.as_str().into(), outcome, row.why.clone().unwrap_or_default().into()]);
        }
        page.table(&table);
        if self.running.is_empty() {
            return;
        }
        page.gap();
        let mut table = Table::new(&[">pid", ">before", ">now"]);
        for row in &self.running {
            table.row([
                row.pid.to_string().into(),
                units::bytes(row.before_bytes).into(),
                units::bytes(row.now_bytes).into(),
            ]);
        }
        page.table(&table);
    }
}

#[cfg(test)]
mod tests {
    use planish_model::Catalogue;

    use super::*;
    use crate::page::PageOptions;

    #[test]
    fn before_and_after_are_told_with_the_route() {
        let before =
            TextCacheRow { text_bytes: 7 << 20, whole_bytes: 4 << 20, huge_bytes: 0, cold_bytes: 2 << 20 };
        let after = TextCacheRow { huge_bytes: 4 << 20, cold_bytes: 0, ..before };
        let row = |route: &str, outcome: &str, why: Option<&str>| TextRouteRow {
            route: route.to_owned(),
            outcome: outcome.to_owned(),
            why: why.map(str::to_owned),
        };
        let report = TextHugeReport {
            program: "/srv/engine".to_owned(),
            page_bytes: 2 << 20,
            before,
            after: Some(after),
            route: Some("copy".to_owned()),
            routes: vec![row("warm", "skipped", Some("it runs")), row("copy", "won", None)],
            changes: vec!["p_align of a huge page".to_owned()],
            entry: Some(EntryId(3)),
            original: Some("/srv/.engine.planish".to_owned()),
            running: vec![TextRunnerRow { pid: 77, before_bytes: 0, now_bytes: 0 }],
            prepared: Some(TextPrepared {
                actions: vec![TextActionRow {
                    knob: KnobId::new("vm.compact_memory"),
                    value: "1".to_owned(),
                    entry: Some(EntryId(2)),
                }],
                before: Vec::new(),
                after: Vec::new(),
                pages_before: Some(28),
                pages_after: Some(412),
            }),
            dry_run: false,
        };
        let catalogue = Catalogue::default();
        let mut page = Page::new(PageOptions { width: 100, detailed: false }, &catalogue);
        report.text(&mut page);
        let told = page.into_text();
        for words in [
            "7 MiB, of which 4 MiB in whole pages of 2 MiB",
            "0 B of 4 MiB on huge pages, 2 MiB not in memory",
            "4 MiB of 4 MiB on huge pages",
            "it runs",
            "p_align of a huge page",
            "/srv/.engine.planish",
            "vm.compact_memory (entry 2): free huge pages 28 before, 412 now",
        ] {
            assert!(told.contains(words), "{words} in {told}");
        }
    }
}
