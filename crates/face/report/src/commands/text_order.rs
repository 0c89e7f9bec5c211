//! `planish text order`: the orders that were tried, what each came to, and which was taken.

use planish_order::{Choice, Subject};
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report, styles};
use crate::table::{Cell, Table};
use crate::units;

/// One order that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextOrderRow {
    /// How it was made: keep (as the program is), previous, weight, density, c3, cdsort or
    /// cdsort-calls.
    pub name: String,
    /// Pages of the functions that hold 99 % of the weight.
    pub pages: usize,
    /// Simulated misses of the instruction cache in a thousand fetches.
    pub l1i: f64,
    /// Simulated misses of the first TLB in a thousand fetches.
    pub itlb: f64,
    /// Simulated walks of the page table in a thousand fetches.
    pub walks: f64,
    /// Ext-TSP score as a share of all calls.
    pub ext_tsp: f64,
    /// The fraction of the simulated cycles of fetching that it saves of the order that is there; positive is better.
    pub gain: f64,
}

/// What `text order` made.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextOrderReport {
    /// The program.
    pub program: String,
    /// The share of the profile's weight whose functions the program has, from 0 to 1.
    pub matched: f64,
    /// The share of calls through a procedure linkage table, which no order moves.
    pub linkage: f64,
    /// Functions that are ordered.
    pub functions: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Size of the pages that were simulated.
    pub page_bytes: u64,
    /// Every order that was tried, the one that is there first.
    pub orders: Vec<TextOrderRow>,
    /// The name of the one that was taken.
    pub chosen: String,
    /// Whether a better one was within the margin, so that the order that is there was kept.
    pub near_tie: bool,
    /// The form of the file.
    pub form: String,
    /// Where it was written; null for stdout.
    pub file: Option<String>,
    /// The first ordered function with a name for all files: where `__hot_start` can be set.
    pub hot_start: Option<String>,
    /// The last one: `__hot_end` lies at its end.
    pub hot_end: Option<String>,
    /// The order itself where it was not written to a file.
    pub text: Option<String>,
    /// The profile for AutoFDO, where one was asked for.
    pub autofdo: Option<TextAutoFdo>,
}

/// A profile for AutoFDO.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextAutoFdo {
    /// Where it was written.
    pub file: String,
    /// Functions in it; what was inlined is a part of them.
    pub functions: usize,
    /// The share of the samples with an address whose line is known, from 0 to 1.
    pub placed: f64,
}

impl TextOrderReport {
    /// The rows and facts of a choice; how it was written is left empty.
    #[must_use]
    pub fn new(program: &str, subject: &Subject, choice: &Choice, page_bytes: u64) -> Self {
        let calls: f64 = subject.graph.arcs().iter().map(|arc| arc.weight as f64).sum();
        let row = |candidate: &planish_order::Candidate| {
            let misses = &candidate.misses;
            TextOrderRow {
                name: candidate.kind.word().to_owned(),
                pages: candidate.pages,
                l1i: misses.per_thousand(misses.l1i),
                itlb: misses.per_thousand(misses.itlb),
                walks: misses.per_thousand(misses.walks),
                ext_tsp: if calls > 0.0 { candidate.ext_tsp / calls } else { 0.0 },
                gain: choice.gain(candidate),
            }
        };
        Self {
            program: program.to_owned(),
            matched: subject.matched,
            linkage: subject.linkage,
            functions: subject.functions.len(),
            bytes: subject.graph.nodes().iter().map(|node| node.bytes).sum(),
            page_bytes,
            orders: choice.candidates.iter().map(row).collect(),
            chosen: choice.chosen().kind.word().to_owned(),
            near_tie: choice.is_near_tie,
            form: String::new(),
            file: None,
            hot_start: None,
            hot_end: None,
            text: None,
            autofdo: None,
        }
    }
}

impl Report for TextOrderReport {
    const COMMAND: &'static str = "text-order";

    fn text(&self, page: &mut Page<'_>) {
        if let Some(text) = &self.text {
            return page.line(text.trim_end());
        }
        page.fact("written", &format!("{} ({})", self.file.as_deref().unwrap_or_default(), self.form));
        page.fact("program", &self.program);
        let hot = format!("{}, {}", units::count(self.functions, "function"), units::bytes(self.bytes));
        page.fact("hot", &format!("{hot}; {:.1} % of the profile's weight is in them", self.matched * 100.0));
        if let Some((start, end)) = self.hot_start.as_ref().zip(self.hot_end.as_ref()) {
            page.fact("hot range", &format!("{start} .. {end}"));
        }
        if let Some(TextAutoFdo { file, functions, placed }) = &self.autofdo {
            let known = format!(
                "{}, lines of {:.1} % of the samples",
                units::count(*functions, "function"),
                placed * 100.0
            );
            page.fact("AutoFDO", &format!("{file} ({known})"));
        }
        page.gap();
        let pages = format!(">pages of {}", units::bytes(self.page_bytes));
        let titles = ["order", &pages, ">L1i", ">iTLB", ">walks", ">ext-TSP", ">fetch cycles saved", ""];
        let mut table = Table::new(&titles);
        for (index, row) in self.orders.iter().enumerate() {
            let numbers = [row.l1i, row.itlb, row.walks].map(|count| Cell::from(format!("{count:.2}")));
            let name = if row.name == "keep" { "as it is" } else { &row.name };
            let gain = if index == 0 { "-".to_owned() } else { units::gain(row.gain) };
            let mark = if row.name == self.chosen { Cell::styled("chosen", styles::GOOD) } else { "".into() };
            let cells = [Cell::from(name), row.pages.to_string().into()].into_iter().chain(numbers);
            table.row(cells.chain([format!("{:.3}", row.ext_tsp).into(), gain.into(), mark]));
        }
        page.table(&table);
        page.line("Simulated, misses in a thousand fetches: ranks orders of one program, predicts no time.");
    }
}
