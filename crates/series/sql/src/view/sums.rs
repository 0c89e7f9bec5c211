//! What the rows of a bar add up to, and which of it a view holds.
//!
//! Unlike a kernel's, these sums are SQL's to the last case: rows whose price is null, sizes that are null, whole
//! numbers beyond 2^53. So a view never has to ask the table because a kernel would not do.

use crate::kernel::Cell;

/// What rows, in order of time, add up to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    rows: u64,
    prices: u64,
    /// Prices of the first and the last row; NaN is null.
    first: f64,
    last: f64,
    /// Of those rows that have one; NaN for none. So are the next two.
    first_known: f64,
    last_known: f64,
    high: f64,
    low: f64,
    /// Sum of sizes that are whole numbers: it wraps, as SQL's here.
    volume_whole: i64,
    volume: f64,
    /// Rows whose size is known, and rows whose price is, too.
    sizes: u64,
    both: u64,
    /// Over the latter: price times size, and size.
    value: f64,
    weight: f64,
}

/// A size: a whole number, or a float of which NaN is null.
pub(super) trait Size: Copy {
    fn is_known(self) -> bool;
    fn whole(self) -> i64;
    fn float(self) -> f64;
}

impl Size for i64 {
    fn is_known(self) -> bool {
        true
    }

    fn whole(self) -> i64 {
        self
    }

    fn float(self) -> f64 {
        self as f64
    }
}

impl Size for f64 {
    fn is_known(self) -> bool {
        !self.is_nan()
    }

    fn whole(self) -> i64 {
        0
    }

    fn float(self) -> f64 {
        self
    }
}

impl Sums {
    pub(super) const EMPTY: Self = Self {
        rows: 0,
        prices: 0,
        first: f64::NAN,
        last: f64::NAN,
        first_known: f64::NAN,
        last_known: f64::NAN,
        high: f64::NAN,
        low: f64::NAN,
        volume_whole: 0,
        volume: 0.0,
        sizes: 0,
        both: 0,
        value: 0.0,
        weight: 0.0,
    };

    /// Adds the next row.
    pub(super) fn add<S: Size>(&mut self, price: f64, size: S) {
        if self.rows == 0 {
            self.first = price;
        }
        self.rows += 1;
        self.last = price;
        let is_priced = !price.is_nan();
        if is_priced {
            if self.prices == 0 {
                self.first_known = price;
            }
            self.prices += 1;
            self.last_known = price;
            self.high = self.high.max(price);
            self.low = self.low.min(price);
        }
        if size.is_known() {
            self.sizes += 1;
            self.volume_whole = self.volume_whole.wrapping_add(size.whole());
            self.volume += size.float();
            if is_priced {
                self.both += 1;
                self.value += price * size.float();
                self.weight += size.float();
            }
        }
    }

    /// A part of it as it is held.
    pub(super) fn word(&self, part: Part) -> u64 {
        match part {
            Part::Rows => self.rows,
            Part::Prices => self.prices,
            Part::First => self.first.to_bits(),
            Part::Last => self.last.to_bits(),
            Part::FirstKnown => self.first_known.to_bits(),
            Part::LastKnown => self.last_known.to_bits(),
            Part::High => self.high.to_bits(),
            Part::Low => self.low.to_bits(),
            Part::VolumeWhole => self.volume_whole.cast_unsigned(),
            Part::Volume => self.volume.to_bits(),
            Part::Sizes => self.sizes,
            Part::Both => self.both,
            Part::Value => self.value.to_bits(),
            Part::Weight => self.weight.to_bits(),
        }
    }
}

/// A part of [`Sums`]: eight bytes of each bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Rows,
    Prices,
    First,
    Last,
    FirstKnown,
    LastKnown,
    High,
    Low,
    VolumeWhole,
    Volume,
    Sizes,
    Both,
    Value,
    Weight,
}

impl Part {
    /// What a column of the view is made of.
    pub(super) fn of(cell: Cell, is_whole_size: bool) -> &'static [Self] {
        match cell {
            Cell::Symbol | Cell::Bucket => &[],
            Cell::Open { ignores_nulls: false } => &[Self::First],
            Cell::Open { ignores_nulls: true } => &[Self::FirstKnown],
            Cell::Close { ignores_nulls: false } => &[Self::Last],
            Cell::Close { ignores_nulls: true } => &[Self::LastKnown],
            Cell::High => &[Self::High],
            Cell::Low => &[Self::Low],
            Cell::Volume if is_whole_size => &[Self::VolumeWhole],
            Cell::Volume => &[Self::Volume, Self::Sizes],
            Cell::Rows => &[Self::Rows],
            Cell::Prices => &[Self::Prices],
            Cell::Value => &[Self::Value, Self::Both],
            Cell::Vwap => &[Self::Value, Self::Weight],
        }
    }
}
