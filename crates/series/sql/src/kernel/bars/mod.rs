//! Bars: an aggregate by buckets of time, by symbol, or by both, of a scan.

mod exec;
mod merge;
mod recognise;

pub(crate) use exec::BarsExec;
pub(crate) use recognise::{Obstacle, obstacle};

use crate::kernel::shape::Width;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bars {
    /// Whether there is a bar for each symbol.
    by_symbol: bool,
    /// Buckets of time, if any.
    by_time: Option<Width>,
    /// The column of prices.
    price: usize,
    /// The column of sizes, if any; else prices take its place, and nothing is made of them.
    size: Option<usize>,
    /// What each column of the result is.
    columns: Vec<Cell>,
}

/// A column of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    Symbol,
    Bucket,
    /// First price in order of time; with or without nulls.
    Open {
        ignores_nulls: bool,
    },
    High,
    Low,
    Close {
        ignores_nulls: bool,
    },
    /// Sum of sizes.
    Volume,
    /// Rows.
    Rows,
    /// Prices that are known.
    Prices,
    /// Sum of price times size.
    Value,
    /// Volume-weighted average price.
    Vwap,
}

impl Cell {
    /// Whether the kernel gives what SQL asks for only where no price is null.
    fn needs_prices(self, is_vwap: bool) -> bool {
        match self {
            Self::Open { ignores_nulls } | Self::Close { ignores_nulls } => !ignores_nulls,
            Self::Rows | Self::Value => true,
            // There it is the weight of the rows that have a price.
            Self::Volume => is_vwap,
            _ => false,
        }
    }

    /// The same of sizes, which only floats can lack.
    fn needs_sizes(self) -> bool {
        matches!(self, Self::Volume | Self::Value)
    }
}

impl Bars {
    /// Whether there is a bar for each symbol.
    pub(crate) fn by_symbol(&self) -> bool {
        self.by_symbol
    }

    /// Buckets of time, if any.
    pub(crate) fn by_time(&self) -> Option<Width> {
        self.by_time
    }

    /// The column of prices.
    pub(crate) fn price(&self) -> usize {
        self.price
    }

    /// The column of sizes, if any.
    pub(crate) fn size(&self) -> Option<usize> {
        self.size
    }

    /// What each column of the result is.
    pub(crate) fn cells(&self) -> &[Cell] {
        &self.columns
    }

    /// Which kernel runs.
    fn kernel(&self) -> &'static str {
        match (self.by_symbol, self.by_time) {
            (false, _) => "xbar",
            (true, Some(_)) => "keyed_bars",
            (true, None) if self.is_vwap() => "keyed_vwap",
            (true, None) => "keyed_bars",
        }
    }

    /// Whether two sums a symbol are all that is asked for.
    fn is_vwap(&self) -> bool {
        let is_sum = |cell: &Cell| matches!(cell, Cell::Symbol | Cell::Vwap | Cell::Value | Cell::Volume);
        // A symbol without a row has no group; sums alone do not tell which those are.
        self.by_time.is_none() && self.columns.iter().all(is_sum)
    }
}
