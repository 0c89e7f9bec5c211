//! Where a server has its memory and its threads: pages, node and CPUs, as they were asked for and as they were had.
//!
//! ```text
//!   ingest   main, upkeep, logs of tables, connections, decoders ── --ingest-cpus, else those of --node-id
//!   queries  threads of DataFusion, crew of the kernels         ── --query-cpus, else those of --node-id
//!   memory   rows                                               ── --pages, --node-id
//! ```
//!
//! A thread begins on the CPUs of the one that starts it. So the main thread is put on those of ingest before it starts
//! any other, and threads of queries put themselves on theirs.

use std::time::Duration;

use clap::Args;
use planish_arena::{Achieved, Arena, ArenaError, Fallback, NodeChoice, Page, Preference};
use planish_host::Host;
use planish_latency::{Isolation, LatencyError, Problem, check_isolation};
use planish_sys::{CpuSet, affinity};
use planish_topo::Topology;

use crate::database::GROWTH;
use crate::ended::Ended;
use crate::failure::chain;

/// How long each CPU is watched for interrupts.
const WATCH: Duration = Duration::from_millis(50);

/// What may be asked for.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PlacingOptions {
    /// Pages of the rows in memory: 4k, thp, 2m, 1g; smaller ones where there are none, which is told [default: thp]
    #[arg(long, value_name = "PAGES", value_parser = page)]
    pages: Option<Page>,
    /// The NUMA node for rows, and for threads that no other option places
    #[arg(long, value_name = "NODE")]
    node_id: Option<u32>,
    /// CPUs of the threads that take rows in, as 0-3,8
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    ingest_cpus: Option<CpuSet>,
    /// CPUs of the threads of queries
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    query_cpus: Option<CpuSet>,
}

impl PlacingOptions {
    pub(crate) fn node_id(&self) -> Option<u32> {
        self.node_id
    }
}

fn page(text: &str) -> Result<Page, String> {
    text.parse().map_err(|error: planish_arena::ParsePageError| error.to_string())
}

fn cpus(text: &str) -> Result<CpuSet, String> {
    match CpuSet::parse_list(text) {
        Ok(cpus) if !cpus.is_empty() => Ok(cpus),
        _ => Err("expected numbers of CPUs, as 0-3,8".to_owned()),
    }
}

/// What threads are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Ingest,
    Queries,
}

impl Work {
    pub(crate) const ALL: [Self; 2] = [Self::Ingest, Self::Queries];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Queries => "queries",
        }
    }
}

/// Where it all goes.
#[derive(Debug, Clone)]
pub(crate) struct Placing {
    options: PlacingOptions,
    /// CPUs that were asked for, by themselves or by their node.
    ingest: Option<CpuSet>,
    queries: Option<CpuSet>,
    /// Those that this process had before.
    before: CpuSet,
}

impl Placing {
    /// Looks whether what was asked for is there.
    ///
    /// # Errors
    /// A node that is not, or has no memory for this process; CPUs that it may not use.
    pub(crate) fn find(options: &PlacingOptions) -> Result<Self, Ended> {
        let refused = |error: &dyn std::error::Error| Ended::refused(chain(error));
        let PlacingOptions { node_id, ingest_cpus, query_cpus, .. } = options;
        let before = match (node_id, ingest_cpus, query_cpus) {
            (None, None, None) => CpuSet::new(),
            _ => affinity::get(None).map_err(|error| refused(&error))?,
        };
        let mut of_node = None;
        if let Some(node) = *node_id {
            // A page that is bound to it: whether there is the node, and memory of it.
            let page = Preference::From(Page::Base);
            let builder = Arena::builder().page(page).node(NodeChoice::only(node)).capacity(1);
            builder.build().map_err(|error| refused(&error))?;
            let allowed = affinity::allowed().map_err(|error| refused(&error))?;
            let topology = Topology::read(&Host::live());
            let cpus = topology.node(node).map(|node| node.cpus.intersection(&allowed));
            // A node may have memory alone.
            of_node = cpus.filter(|cpus| !cpus.is_empty());
        }
        let find = |asked: &Option<CpuSet>| -> Result<Option<CpuSet>, Ended> {
            let cpus = asked.clone().or_else(|| of_node.clone());
            if let Some(cpus) = &cpus {
                on_a_thread(|| affinity::pin(cpus)).map_err(|error| refused(&error))?;
            }
            Ok(cpus)
        };
        let (ingest, queries) = (find(ingest_cpus)?, find(query_cpus)?);
        Ok(Self { options: options.clone(), ingest, queries, before })
    }

    /// CPUs that were asked for.
    pub(crate) fn cpus(&self, work: Work) -> Option<&CpuSet> {
        match work {
            Work::Ingest => self.ingest.as_ref(),
            Work::Queries => self.queries.as_ref(),
        }
    }

    /// Keeps the calling thread, and those that it starts from here on, where some work goes.
    pub(crate) fn keep(&self, work: Work) -> Result<(), planish_sys::Error> {
        match (self.cpus(work), &self.ingest) {
            (Some(cpus), _) => affinity::pin(cpus),
            // It began where rows are taken in.
            (None, Some(_)) => affinity::set(None, &self.before),
            (None, None) => Ok(()),
        }
    }

    /// Does something on a thread of its own that is where some work goes: threads that it starts stay there.
    pub(crate) fn on<T: Send>(
        &self,
        work: Work,
        what: impl FnOnce() -> T + Send,
    ) -> Result<T, planish_sys::Error> {
        on_a_thread(|| self.keep(work).map(|()| what()))
    }

    /// Memory for rows, and why its pages are not those of the pool that was asked for. Where any of it was asked for a
    /// first piece is taken, so that it can be told what was had.
    pub(crate) fn arena(&self) -> Result<(Arena, Option<String>), ArenaError> {
        let PlacingOptions { pages, node_id, .. } = self.options;
        let mut builder = Arena::builder();
        if let Some(page) = pages {
            builder = builder.page(Preference::From(page));
        }
        if let Some(node) = node_id {
            builder = builder.node(NodeChoice::prefer(node));
        }
        let (mut growth, mut why_not) = (GROWTH, None);
        if let Some(Page::HugeTlb(page_bytes)) = pages {
            // Pieces as large as a page are for those who have such pages: others would take as much of small ones.
            match builder.clone().fallback(Fallback::Refuse).capacity(1).build() {
                Ok(_) => {
                    growth.first_bytes = growth.first_bytes.max(page_bytes);
                    growth.cap_bytes = growth.cap_bytes.max(page_bytes);
                }
                Err(error) => why_not = Some(chain(&error)),
            }
        }
        builder = builder.growth(growth);
        if self.is_memory_asked() {
            builder = builder.capacity(growth.first_bytes);
        }
        Ok((builder.build()?, why_not))
    }

    fn is_memory_asked(&self) -> bool {
        self.options.pages.is_some() || self.options.node_id.is_some()
    }

    /// What was had of what was asked for, a line each.
    pub(crate) fn told(&self, achieved: &Achieved, why_not: Option<&str>) -> Vec<String> {
        let mut lines = Vec::new();
        if self.is_memory_asked() {
            lines.push(told_memory(achieved, why_not));
        }
        for work in Work::ALL {
            if let Some(cpus) = self.cpus(work) {
                lines.push(format!("{} on CPUs {cpus}", work.name()));
            }
        }
        lines
    }
}

/// Does something on a thread of its own.
fn on_a_thread<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        scope.spawn(what).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn told_memory(achieved: &Achieved, why_not: Option<&str>) -> String {
    let mebibytes = |bytes: usize| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let asked = match achieved.requested {
        Preference::Largest => "the largest pages".to_owned(),
        Preference::From(page) => page.to_string(),
    };
    let had: Vec<String> = achieved
        .backing
        .iter()
        .map(|backing| format!("{} on {}", mebibytes(backing.bytes), backing.page))
        .collect();
    let nodes = match &achieved.node_bytes {
        Some(nodes) => {
            nodes.iter().map(|(node, bytes)| format!("node {node}: {}", mebibytes(*bytes))).collect()
        }
        None => vec!["nodes unknown".to_owned()],
    };
    // What the pool has said is the longer word for the same.
    let is_said = |told: &&str| why_not.is_some_and(|why_not| why_not.starts_with(told));
    let told = achieved.why_not.iter().map(String::as_str).filter(|told| !is_said(told));
    let why = why_not.into_iter().chain(told);
    let why: String = why.map(|why| format!("; {why}")).collect();
    format!("memory for rows: {asked} asked for, {} had; {}{why}", had.join(", "), nodes.join(", "))
}

/// What keeps threads from having their CPUs to themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// With the CPUs that have it.
    pub(crate) problems: Vec<(Problem, CpuSet)>,
    /// What cannot be judged here of some.
    unknown: Vec<(Problem, CpuSet)>,
}

impl Found {
    fn of(isolations: &[Isolation]) -> Self {
        let with = |wanted: Option<bool>| {
            // Threads of a kind share their CPUs, so each of them may be moved: nothing that was not asked for.
            let all = Problem::ALL.into_iter().filter(|problem| *problem != Problem::NotPinned);
            let of = |problem: Problem| {
                let has = |isolation: &&Isolation| isolation.has(problem) == wanted;
                isolations.iter().filter(has).map(|isolation| isolation.cpu).collect::<CpuSet>()
            };
            let found = all.map(|problem| (problem, of(problem)));
            found.filter(|(_, cpus)| !cpus.is_empty()).collect::<Vec<_>>()
        };
        let is_of_memory =
            |(problem, _): &(Problem, CpuSet)| matches!(problem, Problem::Backing | Problem::Remote);
        // Memory is looked at from one CPU.
        let unknown = with(None).into_iter().filter(|found| !is_of_memory(found)).collect();
        Self { problems: with(Some(true)), unknown }
    }

    /// In words.
    pub(crate) fn told(&self, work: Work, cpus: &CpuSet) -> String {
        let list = |all: &[(Problem, CpuSet)]| {
            let words: Vec<String> =
                all.iter().map(|(problem, cpus)| format!("{problem} ({cpus})")).collect();
            words.join("; ")
        };
        let found =
            if self.problems.is_empty() { "nothing is amiss".to_owned() } else { list(&self.problems) };
        let unknown = match self.unknown.as_slice() {
            [] => String::new(),
            unknown => format!("; not to be seen here whether {}", list(unknown)),
        };
        format!("isolation of CPUs {cpus} for {}: {found}{unknown}", work.name())
    }
}

/// Looks at each of some CPUs from a thread that is kept there, at all of them at once; at memory from the first.
///
/// # Errors
/// What cannot be asked.
pub(crate) fn check(cpus: &CpuSet, arena: &Arena) -> Result<Found, LatencyError> {
    let first = cpus.first();
    let look = |cpu: u32| {
        affinity::pin(&[cpu].into_iter().collect()).map_err(|source| LatencyError::Pin { cpu, source })?;
        check_isolation(WATCH, Some(arena).filter(|_| first == Some(cpu)))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = cpus.iter().map(|cpu| scope.spawn(move || look(cpu))).collect();
        let found = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        Ok(Found::of(&found.collect::<Result<Vec<_>, _>>()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn isolation(cpu: u32, is_isolated: Option<bool>) -> Isolation {
        Isolation {
            cpu,
            node: 0,
            affinity: [cpu].into_iter().collect(),
            isolated: is_isolated,
            siblings: Some(CpuSet::new()),
            irqs: None,
            ticks_per_s: Some(if cpu == 1 { 250.0 } else { 1.0 }),
            irqs_per_s: Some(0.0),
            memory: None,
        }
    }

    #[test]
    fn problems_are_told_with_their_cpus_and_what_is_unknown_as_unknown() {
        let found = Found::of(&[isolation(0, Some(true)), isolation(1, Some(false)), isolation(2, None)]);
        let cpus = |list: &str| CpuSet::parse_list(list).unwrap();
        assert_eq!(found.problems, [(Problem::NotIsolated, cpus("1")), (Problem::Ticks, cpus("1"))]);
        let told = found.told(Work::Queries, &cpus("0-2"));
        assert_eq!(
            told,
            "isolation of CPUs 0-2 for queries: the scheduler puts other tasks on the CPU (1); the timer interrupts \
             the thread while it is busy (1); not to be seen here whether the scheduler puts other tasks on the CPU \
             (2); interrupts of devices are delivered to the CPU (0-2)"
        );
        let quiet = Isolation { irqs: Some(Vec::new()), ..isolation(0, Some(true)) };
        let told = Found::of(&[quiet]).told(Work::Ingest, &cpus("0"));
        assert_eq!(told, "isolation of CPUs 0 for ingest: nothing is amiss");
    }

    #[test]
    fn threads_are_where_they_were_put_and_so_are_those_that_they_start() {
        let before = affinity::get(None).unwrap();
        let cpu: CpuSet = [before.last().unwrap()].into_iter().collect();
        let options = PlacingOptions { query_cpus: Some(cpu.clone()), ..PlacingOptions::default() };
        let placing = Placing::find(&options).unwrap();
        let child = || std::thread::spawn(|| affinity::get(None).unwrap()).join().unwrap();
        assert_eq!(placing.on(Work::Queries, child).unwrap(), cpu);
        assert_eq!(placing.on(Work::Ingest, child).unwrap(), before);
        assert_eq!(affinity::get(None).unwrap(), before);
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let nowhere = PlacingOptions { node_id: Some(1000), ..PlacingOptions::default() };
        let error = Placing::find(&nowhere).unwrap_err();
        assert!(error.code == 3 && error.text.contains("node 1000 does not exist"), "{error:?}");
        let beyond = CpuSet::parse_list("4000").unwrap();
        let error = Placing::find(&PlacingOptions { ingest_cpus: Some(beyond), ..PlacingOptions::default() });
        let error = error.unwrap_err();
        assert!(error.code == 3 && error.text.contains("4000"), "{error:?}");
        assert!(cpus("").is_err() && cpus("a").is_err() && page("3m").is_err());
    }

    #[test]
    fn what_was_had_is_told_beside_what_was_asked_for() {
        let options = PlacingOptions { pages: Some(Page::Base), ..PlacingOptions::default() };
        let placing = Placing::find(&options).unwrap();
        let (arena, why_not) = placing.arena().unwrap();
        let told = placing.told(&arena.achieved().unwrap(), why_not.as_deref());
        let wanted = "memory for rows: base pages asked for, 2.0 MiB on base pages had; node";
        assert!(told.len() == 1 && told[0].starts_with(wanted), "{told:?}");
        assert!(
            Placing::find(&PlacingOptions::default())
                .unwrap()
                .told(&arena.achieved().unwrap(), None)
                .is_empty()
        );
        // A page of no machine: no piece is as large as that.
        let options = PlacingOptions { pages: Some(Page::HugeTlb(1 << 41)), ..options };
        let placing = Placing::find(&options).unwrap();
        let (arena, why_not) = placing.arena().unwrap();
        let achieved = arena.achieved().unwrap();
        assert!(achieved.mapped_bytes < 64 << 20 && !achieved.is_as_requested(), "{achieved:?}");
        let told = placing.told(&achieved, why_not.as_deref());
        assert!(told[0].matches("; this kernel has no 2048 GB huge pages").count() == 1, "{told:?}");
    }
}
