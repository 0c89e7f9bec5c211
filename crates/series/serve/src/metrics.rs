//! What a server counts, in the text of Prometheus.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use planish_arena::Arena;
use planish_latency::Problem;
use planish_sql::ViewSize;
use planish_sys::CpuSet;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::placing::{Found, Work};

/// The type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Requests by what was asked and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Asked {
    pub(crate) kind: &'static str,
    pub(crate) status: u16,
}

/// Memory by the kind of its pages.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OnPage {
    page: String,
}

/// Memory by node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OnNode {
    node: u32,
}

/// CPUs by what threads on them do, and by what is amiss with them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kept {
    work: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Amiss {
    work: &'static str,
    problem: &'static str,
}

/// Where memory and threads are, next to where they were asked to be.
#[derive(Debug, Default)]
struct Places {
    on_pages: Family<OnPage, Gauge>,
    on_nodes: Family<OnNode, Gauge>,
    is_as_asked: Gauge,
    cpus: Family<Kept, Gauge>,
    amiss: Family<Amiss, Gauge>,
    /// When memory was looked at: the kernel counts page by page.
    looked: Mutex<Option<Instant>>,
}

impl Places {
    fn register(&self, all: &mut Registry) {
        let help = "Memory of rows by the pages that it lies on";
        all.register_with_unit("memory", help, Unit::Bytes, self.on_pages.clone());
        let help = "Memory of rows by node, where the kernel tells";
        all.register_with_unit("memory_node", help, Unit::Bytes, self.on_nodes.clone());
        let help = "Whether all memory of rows lies on the pages that were asked for";
        all.register("memory_as_asked", help, self.is_as_asked.clone());
        all.register("cpus", "CPUs that threads are kept on, by what they do", self.cpus.clone());
        let help = "CPUs of them that something else uses, by what was found at the start";
        all.register("cpus_amiss", help, self.amiss.clone());
    }
}

/// The word for a problem in a label.
fn word(problem: Problem) -> &'static str {
    match problem {
        Problem::NotPinned => "not_pinned",
        Problem::NotIsolated => "not_isolated",
        Problem::SharedCore => "shared_core",
        Problem::Ticks => "ticks",
        Problem::Irqs => "irqs",
        Problem::Backing => "backing",
        Problem::Remote => "remote",
    }
}

/// How long what was found about memory is good for.
const MEMORY_TIME: Duration = Duration::from_secs(10);

/// All of it.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) requests: Family<Asked, Counter>,
    pub(crate) query_seconds: Histogram,
    pub(crate) query_rows: Counter,
    /// Queries that ended before they had answered: by time, by memory, by an error, since nobody waited.
    pub(crate) queries_cut: Counter,
    pub(crate) inserted_rows: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) line_connections: Gauge,
    /// Connections of lines that ended by a fault, or broke.
    pub(crate) line_failures: Counter,
    /// Connections on which no keys were agreed upon.
    pub(crate) tls_failures: Counter,
    running: Gauge,
    waiting: Gauge,
    memory_bytes: Gauge,
    tables: Gauge,
    views: Gauge,
    view_bars: Gauge,
    view_bytes: Gauge,
    view_rows_read: Gauge,
    places: Places,
}

/// What is as it is at the moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) memory_bytes: usize,
    pub(crate) tables: usize,
    pub(crate) views: usize,
    pub(crate) view_size: ViewSize,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let made = Self {
            registry: Registry::with_prefix("planish_series"),
            requests: Family::default(),
            query_seconds: Histogram::new(exponential_buckets(0.0001, 4.0, 10)),
            query_rows: Counter::default(),
            queries_cut: Counter::default(),
            inserted_rows: Counter::default(),
            received_bytes: Counter::default(),
            line_connections: Gauge::default(),
            line_failures: Counter::default(),
            tls_failures: Counter::default(),
            running: Gauge::default(),
            waiting: Gauge::default(),
            memory_bytes: Gauge::default(),
            tables: Gauge::default(),
            views: Gauge::default(),
            view_bars: Gauge::default(),
            view_bytes: Gauge::default(),
            view_rows_read: Gauge::default(),
            places: Places::default(),
        };
        made.registered()
    }

    fn registered(mut self) -> Self {
        let all = &mut self.registry;
        all.register(
            "requests",
            "Requests by what was asked and the status of the answer",
            self.requests.clone(),
        );
        let help = "From the request to the end of the answer";
        all.register_with_unit("query_duration", help, Unit::Seconds, self.query_seconds.clone());
        all.register("query_rows", "Rows of answers", self.query_rows.clone());
        let help = "Queries whose answer did not come to its end";
        all.register("queries_cut", help, self.queries_cut.clone());
        all.register("inserted_rows", "Rows that were taken in", self.inserted_rows.clone());
        let help = "Bytes of rows that came";
        all.register_with_unit("received", help, Unit::Bytes, self.received_bytes.clone());
        let help = "Connections of line protocol over TCP";
        all.register("line_connections", help, self.line_connections.clone());
        let help = "Connections of line protocol over TCP that ended by a fault, or broke";
        all.register("line_failures", help, self.line_failures.clone());
        let help = "Connections that did not come to agree on keys of TLS";
        all.register("tls_failures", help, self.tls_failures.clone());
        all.register("queries_running", "Queries at work", self.running.clone());
        all.register("queries_waiting", "Queries that wait for a place", self.waiting.clone());
        let help = "Memory of rows that are in no file yet";
        all.register_with_unit("table_memory", help, Unit::Bytes, self.memory_bytes.clone());
        all.register("tables", "Tables", self.tables.clone());
        all.register("views", "Materialised views", self.views.clone());
        all.register("view_bars", "Bars that views hold", self.view_bars.clone());
        let help = "Memory of bars that views hold, about";
        all.register_with_unit("view_memory", help, Unit::Bytes, self.view_bytes.clone());
        let help = "Rows that were read for views since they are there";
        all.register("view_rows_read", help, self.view_rows_read.clone());
        self.places.register(all);
        self
    }

    /// Notes where threads are kept, and what was found there.
    pub(crate) fn placed(&self, work: Work, cpus: &CpuSet, found: &Found) {
        let whole = |cpus: &CpuSet| i64::try_from(cpus.count()).unwrap_or(i64::MAX);
        let work = work.name();
        self.places.cpus.get_or_create(&Kept { work }).set(whole(cpus));
        for (problem, cpus) in &found.problems {
            self.places.amiss.get_or_create(&Amiss { work, problem: word(*problem) }).set(whole(cpus));
        }
    }

    /// Looks where memory lies, if that was not done a moment ago. It asks the kernel page by page.
    pub(crate) fn look(&self, arena: &Arena) {
        let Places { on_pages, on_nodes, is_as_asked, looked, .. } = &self.places;
        let mut looked = looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_some_and(|looked| looked.elapsed() < MEMORY_TIME) {
            return;
        }
        // Where the kernel does not tell, nothing is better than what was.
        on_pages.clear();
        on_nodes.clear();
        let Ok(achieved) = arena.achieved() else { return };
        let whole = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        for backing in &achieved.backing {
            on_pages.get_or_create(&OnPage { page: backing.page.backing() }).set(whole(backing.bytes));
        }
        for (node, bytes) in achieved.node_bytes.iter().flatten() {
            on_nodes.get_or_create(&OnNode { node: *node }).set(whole(*bytes));
        }
        is_as_asked.set(i64::from(achieved.is_as_requested()));
        *looked = Some(Instant::now());
    }

    /// The text.
    pub(crate) fn text(&self, now: Now) -> String {
        let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.running.set(whole(now.running));
        self.waiting.set(whole(now.waiting));
        self.memory_bytes.set(whole(now.memory_bytes));
        self.tables.set(whole(now.tables));
        self.views.set(whole(now.views));
        self.view_bars.set(whole(now.view_size.bars));
        self.view_bytes.set(whole(now.view_size.bytes));
        self.view_rows_read.set(i64::try_from(now.view_size.rows_read).unwrap_or(i64::MAX));
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a text takes whatever is written");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_told_by_name() {
        let metrics = Metrics::new();
        metrics.requests.get_or_create(&Asked { kind: "query", status: 200 }).inc();
        metrics.query_seconds.observe(0.5);
        metrics.inserted_rows.inc_by(7);
        let view_size = ViewSize { bars: 6, bytes: 7, rows_read: 8 };
        let text =
            metrics.text(Now { running: 1, waiting: 2, memory_bytes: 3, tables: 4, views: 5, view_size });
        for line in [
            "planish_series_requests_total{kind=\"query\",status=\"200\"} 1",
            "planish_series_query_duration_seconds_count 1",
            "planish_series_inserted_rows_total 7",
            "planish_series_queries_running 1",
            "planish_series_queries_waiting 2",
            "planish_series_table_memory_bytes 3",
            "planish_series_tables 4",
            "planish_series_views 5",
            "planish_series_view_bars 6",
            "planish_series_view_memory_bytes 7",
            "planish_series_view_rows_read 8",
            "# EOF",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
