//! What a server counts, in the text of Prometheus.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// The type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Requests by what was asked and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Asked {
    pub(crate) kind: &'static str,
    pub(crate) status: u16,
}

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
    running: Gauge,
    waiting: Gauge,
    memory_bytes: Gauge,
    tables: Gauge,
}

/// What is as it is at the moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) memory_bytes: usize,
    pub(crate) tables: usize,
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
            running: Gauge::default(),
            waiting: Gauge::default(),
            memory_bytes: Gauge::default(),
            tables: Gauge::default(),
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
        all.register("queries_running", "Queries at work", self.running.clone());
        all.register("queries_waiting", "Queries that wait for a place", self.waiting.clone());
        let help = "Memory of rows that are in no file yet";
        all.register_with_unit("table_memory", help, Unit::Bytes, self.memory_bytes.clone());
        all.register("tables", "Tables", self.tables.clone());
        self
    }

    /// The text.
    pub(crate) fn text(&self, now: Now) -> String {
        let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.running.set(whole(now.running));
        self.waiting.set(whole(now.waiting));
        self.memory_bytes.set(whole(now.memory_bytes));
        self.tables.set(whole(now.tables));
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
        let text = metrics.text(Now { running: 1, waiting: 2, memory_bytes: 3, tables: 4 });
        for line in [
            "planish_series_requests_total{kind=\"query\",status=\"200\"} 1",
            "planish_series_query_duration_seconds_count 1",
            "planish_series_inserted_rows_total 7",
            "planish_series_queries_running 1",
            "planish_series_queries_waiting 2",
            "planish_series_table_memory_bytes 3",
            "planish_series_tables 4",
            "# EOF",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
