//! `planish text prune`: what a store holds.

use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report};
use crate::table::{Cell, Table};
use crate::units;

/// A blob of a store.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextPruneRow {
    /// Its name there.
    pub handle: String,
    /// Its length.
    pub bytes: u64,
    /// When it was last stored, in seconds since 1970 by the clock of the store.
    pub put_at: u64,
    /// Days since then.
    pub age_days: f64,
    /// Why it stays: pinned (a pin names it, now or as what was pinned before), newest (one of the newest), young
    /// (stored not long ago); unkept where nothing keeps it.
    pub fate: String,
    /// Whether it was taken away.
    pub deleted: bool,
}

/// What `text prune` found, and what it took away.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextPruneReport {
    /// The store: a folder or a URL.
    pub store: String,
    /// The files of the pins whose blobs are kept.
    pub pins: Vec<String>,
    /// What it held, the newest first.
    pub blobs: Vec<TextPruneRow>,
    /// How many objects among them are none of planish: nobody touches them.
    pub foreign: usize,
}

impl Report for TextPruneReport {
    const COMMAND: &'static str = "text-prune";

    fn text(&self, page: &mut Page<'_>) {
        page.fact("store", &self.store);
        if !self.pins.is_empty() {
            page.fact("pins", &self.pins.join(", "));
        }
        page.fact("held", &told(self.blobs.iter()));
        let unkept = || self.blobs.iter().filter(|row| row.fate == "unkept");
        page.fact("nothing keeps", &told(unkept()));
        if self.blobs.iter().any(|row| row.deleted) {
            page.fact("taken away", &told(self.blobs.iter().filter(|row| row.deleted)));
        }
        if self.foreign > 0 {
            page.fact("not ours", &format!("{}, left alone", units::count(self.foreign, "object")));
        }
        if self.blobs.is_empty() {
            return;
        }
        page.gap();
        let mut table = Table::new(&["name", ">size", ">days", "kept"]);
        for row in &self.blobs {
            let kept = match (row.deleted, row.fate.as_str()) {
                (true, _) => "no: taken away",
                (false, "unkept") => "by nothing",
                (false, "pinned") => "a pin names it",
                (false, "newest") => "one of the newest",
                (false, _) => "stored not long ago",
            };
            let (size, days) = (units::bytes(row.bytes), format!("{:.1}", row.age_days));
            table.row([row.handle.clone(), size, days, kept.to_owned()].map(Cell::from));
        }
        page.table(&table);
    }
}

/// How many, and how much room they take.
fn told<'a>(rows: impl Iterator<Item = &'a TextPruneRow>) -> String {
    let (count, bytes) = rows.fold((0, 0), |(count, bytes), row| (count + 1, bytes + row.bytes));
    format!("{}, {}", units::count(count, "file"), units::bytes(bytes))
}
