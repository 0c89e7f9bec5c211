//! What a run is asked for.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use planish_arena::{Fallback, Page};
use planish_sys::CpuSet;

use crate::error::WorkloadError;

/// One kind of query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Query {
    /// Bars of the trades, all symbols together.
    Xbar,
    /// Moving average of the price, of each symbol.
    Ema,
    /// Quotes around each trade.
    Window,
    /// Newest quote of the symbol at each trade.
    Asof,
    /// Volume-weighted price of each symbol.
    Vwap,
    /// Price of an order by its number, at random: the query that lives or dies by the TLB.
    Lookup,
}

impl Query {
    /// Every kind, in the order of output.
    pub const ALL: [Self; 6] = [Self::Xbar, Self::Ema, Self::Window, Self::Asof, Self::Vwap, Self::Lookup];

    /// Its word on the command line and in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xbar => "xbar",
            Self::Ema => "ema",
            Self::Window => "window",
            Self::Asof => "asof",
            Self::Vwap => "vwap",
            Self::Lookup => "lookup",
        }
    }

    /// Reads names parted by commas. A name that comes twice counts once.
    ///
    /// # Errors
    /// [`WorkloadError::UnknownQuery`] for a wrong name, an empty one too.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, WorkloadError> {
        let mut queries =
            text.split(',').map(|name| name.trim().parse()).collect::<Result<Vec<Self>, _>>()?;
        queries.sort_unstable();
        queries.dedup();
        Ok(queries)
    }
}

impl fmt::Display for Query {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Query {
    type Err = WorkloadError;

    fn from_str(name: &str) -> Result<Self, WorkloadError> {
        let found = Self::ALL.into_iter().find(|query| query.name() == name);
        found.ok_or_else(|| WorkloadError::UnknownQuery { name: name.to_owned() })
    }
}

/// When timed work ends; always at the end of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// After this time, but not before [`CHECKED_ROUNDS`](crate::CHECKED_ROUNDS) rounds.
    Time(Duration),
    /// After this many rounds on each thread.
    Rounds(u64),
}

/// One run, or a server of many short ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Load, warm up, run once, print one JSON object.
    Once {
        /// How long to run before the timed part.
        warm_up: Duration,
        /// How long to run timed.
        limit: Limit,
    },
    /// Load, warm up, print a JSON line when ready, then run one slice for each line of standard input.
    Serve {
        /// How long to run before the ready line.
        warm_up: Duration,
    },
}

/// What a run is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Working set: everything that lies in the arena.
    pub bytes: usize,
    /// Queries of a round.
    pub queries: Vec<Query>,
    /// Pages that the working set lies on.
    pub page: Page,
    /// Whether smaller pages will do.
    pub fallback: Fallback,
    /// CPUs that the threads are pinned to, one each and round again; not pinned when `None`.
    pub cpus: Option<CpuSet>,
    /// NUMA node that the working set lies on; where the threads run when `None`.
    pub node: Option<u32>,
    /// Threads that each run whole rounds.
    pub threads: NonZeroUsize,
    /// Decides the data and, in a single run, the queries.
    pub seed: u64,
    /// One run or many.
    pub mode: Mode,
}

impl Default for Options {
    /// 512 MB on transparent huge pages or a refusal, every query, one thread, one run of five seconds.
    fn default() -> Self {
        let warm_up = Duration::from_millis(200);
        Self {
            bytes: 512 << 20,
            queries: Query::ALL.to_vec(),
            page: Page::Thp,
            fallback: Fallback::Refuse,
            cpus: None,
            node: None,
            threads: NonZeroUsize::MIN,
            seed: 1,
            mode: Mode::Once { warm_up, limit: Limit::Time(Duration::from_secs(5)) },
        }
    }
}

/// Reads a number of bytes: `512M`, `1G`, `64k`, `4096`. Units are binary; `MB` and `MiB` mean the same.
///
/// # Errors
/// [`WorkloadError::Bytes`] for anything else, zero and overflow included.
pub fn parse_bytes(text: &str) -> Result<usize, WorkloadError> {
    let error = || WorkloadError::Bytes { text: text.to_owned() };
    let bytes = planish_sys::parse_bytes(text).and_then(|bytes| usize::try_from(bytes).ok());
    bytes.filter(|&bytes| bytes > 0).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_in_any_unit() {
        for (text, bytes) in
            [("512M", 512 << 20), ("1g", 1 << 30), ("64KiB", 64 << 10), ("7", 7), ("2 MB", 2 << 20)]
        {
            assert_eq!(parse_bytes(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "M", "0", "-1M", "1.5G", "5X", "99999999999T", "é", "1Gé"] {
            assert!(matches!(parse_bytes(text), Err(WorkloadError::Bytes { .. })), "{text}");
        }
    }

    #[test]
    fn queries_are_read_in_any_order_once_each() {
        let wanted = [Query::Ema, Query::Lookup];
        assert_eq!(Query::parse_list("lookup, ema,lookup").unwrap(), wanted);
        for text in ["", "xbar,", "Xbar", "xbars"] {
            assert!(matches!(Query::parse_list(text), Err(WorkloadError::UnknownQuery { .. })), "{text}");
        }
        for query in Query::ALL {
            assert_eq!(query.to_string().parse::<Query>().unwrap(), query);
        }
    }
}
