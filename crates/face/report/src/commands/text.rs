//! `planish text import`, `merge` and `show`: what a call profile holds.

use planish_profile::{CallProfile, HotPages, names};
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report};
use crate::table::Table;
use crate::units;

/// The head of a call profile.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextProfileFacts {
    /// Path or name of the program.
    pub program: String,
    /// Its build ids: one, unless several builds were merged.
    pub build_ids: Vec<String>,
    /// The event that was sampled.
    pub event: String,
    /// What weights of functions count: samples, branches or cost.
    pub weights: String,
    /// What weights of calls count: none, stacks or calls.
    pub edges: String,
    /// Where it was sampled.
    pub hosts: Vec<String>,
    /// When, in seconds since 1970: the first sample.
    pub window_start: Option<u64>,
    /// When: the last sample.
    pub window_end: Option<u64>,
    /// Weight of all that was sampled.
    pub total: u64,
    /// Weight in functions with a name.
    pub named: u64,
    /// Weight in the program where no symbol is.
    pub unnamed: u64,
    /// Weight elsewhere: the kernel, libraries, other programs.
    pub outside: u64,
    /// Number of functions.
    pub functions: usize,
    /// Number of pairs of caller and callee.
    pub calls: usize,
}

impl From<&CallProfile> for TextProfileFacts {
    fn from(profile: &CallProfile) -> Self {
        Self {
            program: profile.program.clone(),
            build_ids: profile.build_ids.clone(),
            event: profile.event.clone(),
            weights: profile.weights.to_string(),
            edges: profile.edges_are.to_string(),
            hosts: profile.hosts.clone(),
            window_start: profile.window.map(|window| window.start),
            window_end: profile.window.map(|window| window.end),
            total: profile.total,
            named: profile.named(),
            unnamed: profile.unnamed,
            outside: profile.outside,
            functions: profile.functions.len(),
            calls: profile.edges.len(),
        }
    }
}

impl TextProfileFacts {
    pub(super) fn text(&self, page: &mut Page<'_>) {
        let or_unknown = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
        page.fact("program", &or_unknown(&self.program));
        page.fact("build id", &or_unknown(&self.build_ids.join(", ")));
        page.fact(
            "event",
            &format!("{}: weights are {}, calls are {}", self.event, self.weights, self.edges),
        );
        page.fact("hosts", &self.hosts.join(", "));
        if let Some((start, end)) = self.window_start.zip(self.window_end) {
            page.fact("window", &format!("{} to {}", units::moment(start), units::moment(end)));
        }
        let share = |part: u64| percent(part as f64 / self.total.max(1) as f64);
        let (named, unnamed, outside) = (share(self.named), share(self.unnamed), share(self.outside));
        page.fact(
            "weight",
            &format!("{}: {named} in functions, {unnamed} without a symbol, {outside} elsewhere", self.total),
        );
        let functions = units::count(self.functions, "function");
        page.fact("graph", &format!("{functions}, {}", units::count(self.calls, "pair")));
    }
}

pub(super) fn percent(fraction: f64) -> String {
    format!("{:.1} %", fraction * 100.0)
}

/// What `text import` read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextImportReport {
    /// The format that was read.
    pub format: String,
    /// Where the profile was written; null for stdout.
    pub file: Option<String>,
    /// What it holds.
    pub profile: TextProfileFacts,
    /// Samples that the recorder lost.
    pub lost: u64,
    /// The profile file itself where it was not written to a file.
    pub text: Option<String>,
}

impl Report for TextImportReport {
    const COMMAND: &'static str = "text-import";

    fn text(&self, page: &mut Page<'_>) {
        if let Some(text) = &self.text {
            return page.line(text.trim_end());
        }
        page.fact("written", self.file.as_deref().unwrap_or_default());
        page.fact("format", &self.format);
        self.profile.text(page);
        if self.lost > 0 {
            page.fact("lost", &format!("{} samples, by the recorder's own count", self.lost));
        }
    }
}

/// What `text merge` made.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextMergeReport {
    /// Where the profile was written; null for stdout.
    pub file: Option<String>,
    /// How many profiles went in.
    pub merged: usize,
    /// How much of its weight each profile shares with the merged one, from 0 to 1, in the order of the arguments.
    pub overlaps: Vec<f64>,
    /// What it holds.
    pub profile: TextProfileFacts,
    /// The profile file itself where it was not written to a file.
    pub text: Option<String>,
}

impl Report for TextMergeReport {
    const COMMAND: &'static str = "text-merge";

    fn text(&self, page: &mut Page<'_>) {
        if let Some(text) = &self.text {
            return page.line(text.trim_end());
        }
        page.fact("written", self.file.as_deref().unwrap_or_default());
        let overlaps: Vec<String> = self.overlaps.iter().map(|overlap| percent(*overlap)).collect();
        page.fact(
            "merged",
            &format!("{}, overlap {}", units::count(self.merged, "profile"), overlaps.join(", ")),
        );
        self.profile.text(page);
    }
}

/// One function of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextFunctionRow {
    /// The linker's name.
    pub name: String,
    /// The name as people read it.
    pub readable: String,
    /// Its own weight.
    pub weight: u64,
    /// Its own weight as a share of all named weight.
    pub share: f64,
    /// Size of its code; 0 where unknown.
    pub bytes: u64,
    /// Who calls it, the heaviest first: name and share of its calls.
    pub callers: Vec<TextCallerRow>,
}

/// A caller.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextCallerRow {
    /// The linker's name.
    pub name: String,
    /// Its share of the calls.
    pub share: f64,
}

/// Where the weight lies in the program's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextPagesRow {
    /// Size of a page.
    pub page_bytes: u64,
    /// The fewest pages that hold 90 % of the weight.
    pub p90: usize,
    /// The fewest pages that hold 99 % of it.
    pub p99: usize,
    /// Pages that hold any.
    pub all: usize,
    /// Pages of the functions that hold 99 % of it.
    pub of_functions_p99: usize,
}

impl From<HotPages> for TextPagesRow {
    fn from(pages: HotPages) -> Self {
        let HotPages { page_bytes, p90, p99, all, of_functions_p99 } = pages;
        Self { page_bytes, p90, p99, all, of_functions_p99 }
    }
}

/// What `text show` tells.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextShowReport {
    /// The head.
    pub profile: TextProfileFacts,
    /// The heaviest functions.
    pub top: Vec<TextFunctionRow>,
    /// Pages of each size; empty where the program is not at hand.
    pub pages: Vec<TextPagesRow>,
}

impl TextShowReport {
    /// The `top` heaviest functions of a profile with their heaviest callers.
    #[must_use]
    pub fn new(profile: &CallProfile, top: usize, pages: &[HotPages]) -> Self {
        const CALLERS: usize = 3;
        let shown = top.min(profile.functions.len());
        let mut callers: Vec<Vec<(u64, u32)>> = vec![Vec::new(); shown];
        for edge in &profile.edges {
            if let Some(list) = callers.get_mut(edge.callee as usize) {
                list.push((edge.weight, edge.caller));
            }
        }
        let named = profile.named().max(1) as f64;
        let row = |(function, mut calls): (&planish_profile::Function, Vec<(u64, u32)>)| {
            calls.sort_unstable_by(|left, right| right.0.cmp(&left.0).then(left.1.cmp(&right.1)));
            let all: u64 = calls.iter().map(|(weight, _)| weight).sum();
            let caller = |(weight, caller): &(u64, u32)| TextCallerRow {
                name: profile.functions[*caller as usize].name.clone(),
                share: *weight as f64 / all.max(1) as f64,
            };
            TextFunctionRow {
                name: function.name.clone(),
                readable: names::readable(&function.name),
                weight: function.weight,
                share: function.weight as f64 / named,
                bytes: function.bytes,
                callers: calls.iter().take(CALLERS).map(caller).collect(),
            }
        };
        Self {
            profile: profile.into(),
            top: profile.functions.iter().zip(callers).map(row).collect(),
            pages: pages.iter().copied().map(TextPagesRow::from).collect(),
        }
    }
}

impl Report for TextShowReport {
    const COMMAND: &'static str = "text-show";

    fn text(&self, page: &mut Page<'_>) {
        self.profile.text(page);
        page.heading("Hot functions");
        let mut table = Table::new(&[">share", ">bytes", "function", "called by"]);
        for row in &self.top {
            let callers = row.callers.iter();
            let callers: Vec<String> = callers
                .map(|caller| {
                    format!("{} {:.0} %", short(&names::readable(&caller.name)), caller.share * 100.0)
                })
                .collect();
            let bytes = if row.bytes == 0 { "-".to_owned() } else { row.bytes.to_string() };
            let cells = [percent(row.share), bytes, short(&row.readable), callers.join(", ")];
            table.row(cells.map(Into::into));
        }
        page.table(&table);
        pages_table(&self.pages, page);
    }
}

/// Hot pages, size by size; nothing for none.
pub(crate) fn pages_table(pages: &[TextPagesRow], page: &mut Page<'_>) {
    if pages.is_empty() {
        return;
    }
    page.heading("Hot pages");
    let mut table = Table::new(&["pages of", ">for 90 %", ">for 99 %", ">touched", ">of 99 % of functions"]);
    for row in pages {
        let counts = [row.p90, row.p99, row.all, row.of_functions_p99].map(|count| count.to_string());
        table.row(std::iter::once(units::bytes(row.page_bytes)).chain(counts).map(Into::into));
    }
    page.table(&table);
}

/// A name that leaves room for its neighbours.
fn short(name: &str) -> String {
    const NAME_CHARS: usize = 44;
    if name.chars().count() <= NAME_CHARS {
        return name.to_owned();
    }
    let head: String = name.chars().take(NAME_CHARS - 2).collect();
    format!("{head}..")
}
