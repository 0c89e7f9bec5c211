//! `planish run`: what a program was started with, and where its memory really lies.

use schemars::JsonSchema;
use serde::Serialize;

use super::map::MapBacking;
use crate::page::{Page, Report};
use crate::table::Table;
use crate::units;

/// Bytes on one kind of pages on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunShare {
    /// NUMA node; null where nobody tells.
    pub node: Option<u32>,
    /// On which pages they lie.
    pub backing: MapBacking,
    /// Size of one of the pages in bytes.
    pub page_bytes: u64,
    /// Resident bytes.
    pub resident_bytes: u64,
}

/// A shared segment that was placed before its first use.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunSegment {
    /// The process that mapped it.
    pub pid: u32,
    /// How it was made: anonymous, file or sysv.
    pub kind: String,
    /// Name of its mapping.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Where it lies.
    pub shares: Vec<RunShare>,
    /// Time that placing and filling took inside the call of the program; 0 where nothing is filled.
    pub seconds: f64,
    /// Threads that filled it; 0 where it was not filled.
    pub threads: u32,
    /// What differs from what was wanted; empty where all was achieved.
    pub short: Vec<String>,
}

/// Private memory of one process: heaps and anonymous mappings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunPrivate {
    /// The process.
    pub pid: u32,
    /// Where it lies.
    pub shares: Vec<RunShare>,
    /// The nodes that its threads ran on last.
    pub ran_on: Vec<u32>,
    /// The share of its bytes on those nodes; null where it has none, nodes are not told, or there is one node only.
    pub local_share: Option<f64>,
    /// What differs from what was wanted.
    pub short: Vec<String>,
}

/// The code of a program that was started with `--huge text`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunText {
    /// How it came to that: already, warm, collapse, or copy, which is what is executed then.
    pub route: String,
    /// Bytes of its text.
    pub text_bytes: u64,
    /// Of these, bytes in whole huge pages: the most that can lie on some.
    pub whole_bytes: u64,
    /// Bytes on huge pages.
    pub huge_bytes: u64,
}

/// A variable that was set for the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunVariable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// One start of the program.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunInstance {
    /// The node that it is bound to, with `--each-node`.
    pub node: Option<u32>,
    /// Its process.
    pub pid: u32,
    /// Its exit code, 128 and the signal where one ended it; null while it runs.
    pub exit: Option<u8>,
    /// Whether its memory was looked at: a program may end before.
    pub seen: bool,
    /// Seconds from the start to the look that is told here: what it started or mapped later is not in it. Null where
    /// it was not looked at.
    pub looked_after_s: Option<f64>,
    /// Shared segments that were placed.
    pub segments: Vec<RunSegment>,
    /// Private memory of its processes.
    pub private: Vec<RunPrivate>,
    /// Resident bytes on transparent huge pages.
    pub thp_bytes: u64,
    /// The program's code, with `--huge text`; null where it was not seen.
    pub text: Option<RunText>,
    /// What could not be seen, with what would help.
    pub unseen: Vec<String>,
    /// The same as a drop-in of systemd.
    pub drop_in: String,
    /// Variables that were set for it.
    pub variables: Vec<RunVariable>,
}

/// What `run` started, and what was achieved.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunReport {
    /// The program and its arguments as they were typed.
    pub command: Vec<String>,
    /// The file that was executed.
    pub program: String,
    /// Its libc: glibc 2.N, musl, other, or none where it is linked statically.
    pub libc: String,
    /// One start, or one a node.
    pub instances: Vec<RunInstance>,
}

impl Report for RunReport {
    const COMMAND: &'static str = "run";

    fn text(&self, page: &mut Page<'_>) {
        for instance in &self.instances {
            instance.text(page);
        }
    }
}

impl RunInstance {
    fn text(&self, page: &mut Page<'_>) {
        let node = self.node.map(|node| format!(" for node {node}")).unwrap_or_default();
        page.heading(&format!("pid {}{node}", self.pid));
        let mut table = Table::new(&["memory", ">size", "on", "pages", "filled, local"]);
        for segment in &self.segments {
            let filled = match segment.threads {
                0 => "no".to_owned(),
                threads => format!(
                    "in {} by {}",
                    units::seconds(segment.seconds),
                    units::count(threads as usize, "thread")
                ),
            };
            table.row([
                format!("shared {}", segment.kind).into(),
                units::bytes(segment.bytes).into(),
                on_nodes(&segment.shares).into(),
                on_pages(&segment.shares).into(),
                filled.into(),
            ]);
        }
        for private in self.private.iter().filter(|private| !private.shares.is_empty()) {
            let local =
                private.local_share.map(|share| format!("{:.1} % local by where it ran last", share * 100.0));
            table.row([
                format!("private of {}", private.pid).into(),
                units::bytes(private.shares.iter().map(|share| share.resident_bytes).sum()).into(),
                on_nodes(&private.shares).into(),
                on_pages(&private.shares).into(),
                local.unwrap_or_default().into(),
            ]);
        }
        page.table(&table);
        if let Some(seconds) = self.looked_after_s {
            let after = units::seconds(seconds);
            page.fact("looked at", &format!("{after} after its start: what came later is not in it"));
        }
        if let Some(text) = &self.text {
            let [huge, whole, all] = [text.huge_bytes, text.whole_bytes, text.text_bytes].map(units::bytes);
            let told =
                format!("{huge} of {all} on huge pages, which {whole} of it can fill ({})", text.route);
            page.fact("text", &told);
        }
        for unseen in &self.unseen {
            page.fact("not seen", unseen);
        }
        if page.is_detailed() {
            page.heading("the same for a unit of systemd");
            self.drop_in.lines().for_each(|line| page.line(line));
        }
    }
}

/// `50.0 % node 0, 50.0 % node 1`
fn on_nodes(shares: &[RunShare]) -> String {
    let node =
        |share: &RunShare| share.node.map_or_else(|| "node ?".to_owned(), |node| format!("node {node}"));
    in_percent(shares, node)
}

/// `100.0 % thp 2 MiB`
fn on_pages(shares: &[RunShare]) -> String {
    in_percent(shares, |share| format!("{} {}", share.backing.word(), units::bytes(share.page_bytes)))
}

/// The share of each group in the whole.
fn in_percent(shares: &[RunShare], group: impl Fn(&RunShare) -> String) -> String {
    let total: u64 = shares.iter().map(|share| share.resident_bytes).sum();
    let mut groups: Vec<(String, u64)> = Vec::new();
    for share in shares {
        let name = group(share);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, bytes)) => *bytes += share.resident_bytes,
            None => groups.push((name, share.resident_bytes)),
        }
    }
    let told = groups.iter().map(|(name, bytes)| format!("{} % {name}", percent(*bytes, total)));
    told.collect::<Vec<_>>().join(", ")
}

/// `96.9`; of a little that is not nothing `< 0.1`, and of all but that `> 99.9`.
fn percent(bytes: u64, total: u64) -> String {
    let percent = bytes as f64 * 100.0 / total.max(1) as f64;
    match percent {
        _ if bytes > 0 && percent < 0.05 => "< 0.1".to_owned(),
        _ if bytes < total && percent >= 99.95 => "> 99.9".to_owned(),
        _ => format!("{percent:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use planish_model::Catalogue;

    use super::*;
    use crate::page::PageOptions;

    #[test]
    fn a_tail_of_a_page_is_neither_nothing_nor_is_the_rest_all() {
        let (page, whole) = (4096, 521_142_272);
        assert_eq!((percent(page, whole), percent(whole - page, whole)), ("< 0.1".into(), "> 99.9".into()));
        assert_eq!((percent(0, whole), percent(whole, whole)), ("0.0".into(), "100.0".into()));
        assert_eq!(
            (percent(1, 1000), percent(999, 1000), percent(0, 0)),
            ("0.1".into(), "99.9".into(), "0.0".into())
        );
    }

    #[test]
    fn shares_are_told_by_node_and_by_page() {
        let share = |node, backing, page_bytes, resident_bytes| RunShare {
            node: Some(node),
            backing,
            page_bytes,
            resident_bytes,
        };
        let shares = vec![
            share(0, MapBacking::Thp, 2 << 20, 32 << 20),
            share(1, MapBacking::Thp, 2 << 20, 30 << 20),
            share(1, MapBacking::Base, 4096, 2 << 20),
        ];
        assert_eq!(on_nodes(&shares), "50.0 % node 0, 50.0 % node 1");
        assert_eq!(on_pages(&shares), "96.9 % thp 2 MiB, 3.1 % base 4 KiB");
        let instance = RunInstance {
            node: Some(1),
            pid: 77,
            exit: None,
            seen: true,
            looked_after_s: Some(0.5),
            segments: vec![RunSegment {
                pid: 77,
                kind: "sysv".to_owned(),
                name: String::new(),
                bytes: 64 << 20,
                shares,
                seconds: 0.25,
                threads: 2,
                short: Vec::new(),
            }],
            private: Vec::new(),
            thp_bytes: 62 << 20,
            text: Some(RunText {
                route: "copy".to_owned(),
                text_bytes: 7 << 20,
                whole_bytes: 4 << 20,
                huge_bytes: 4 << 20,
            }),
            unseen: Vec::new(),
            drop_in: "[Service]\n".to_owned(),
            variables: Vec::new(),
        };
        let report = RunReport {
            command: Vec::new(),
            program: String::new(),
            libc: String::new(),
            instances: vec![instance],
        };
        let catalogue = Catalogue::default();
        let mut page = Page::new(PageOptions { width: 120, detailed: true }, &catalogue);
        report.text(&mut page);
        let text = page.into_text();
        assert!(text.contains("pid 77 for node 1") && text.contains("in 250 ms by 2 threads"), "{text}");
        assert!(text.contains("4 MiB of 7 MiB on huge pages, which 4 MiB of it can fill (copy)"), "{text}");
        assert!(text.contains("[Service]") && text.contains("500 ms after its start"), "{text}");
    }
}
