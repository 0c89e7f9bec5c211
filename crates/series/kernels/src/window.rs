//! Window join: what the right table did around each row of the left one.
//!
//! Both tables are in time order, so both borders of the window only move forward:
//!
//! ```text
//!   right rows   . . . [ a  b  c | d  e ) . . .
//!                      low      split   high
//! ```
//!
//! A short window is added up anew. Of a long one, rows that leave would have to be subtracted from a running
//! sum, which loses all digits after one large value and turns an infinity into NaN; minima cannot be
//! subtracted at all. So the window is kept as two parts instead: of the older one the aggregate of *every
//! suffix* is stored, of the newer one a running aggregate. Each answer merges two aggregates; when the older
//! part is used up, the newer one is stored in its place. Each right row is added twice in all (the two-stack
//! queue; Tangwongsan, Hirzel and Schneider, "In-order sliding-window aggregation", 2017).
//!
//! By key there are two ways again, chosen by how many rows a window has before keys are looked at: few are
//! compared with the key, a vector at once; for many, both tables are sorted by key first.

use crate::crew::{cut_mut, parts_of};
use crate::number::sealed::Lanes;
use crate::ranges::{Border, Positions};
use crate::simd::{Isa, Kernel, Simd};
use crate::{Crew, KernelError, Keys, Times};

/// Windows of up to this many rows are added up anew; fewer steps than keeping the two parts.
const DIRECT_ROWS: usize = 24;
/// Left rows whose borders are found before their windows are added up. Each time the search begins anew for every
/// stretch that is walked; so they are as many as stay in the first cache.
const BORDER_ROWS: usize = 4096;
/// Left rows whose windows are added up before they are put into their columns.
const BLOCK_ROWS: usize = 512;
/// Above this many rows a window, sorting by key is cheaper than looking at every key in it.
const SWEEP_ROWS: usize = 128;
/// Windows that are looked at to tell how many rows they have.
const SAMPLES: usize = 64;
/// Keys that are compared at once.
const KEY_LANES: usize = 16;

/// Which results are wanted of each window, and where they go; each column has one row a left row. Nulls take
/// no part. Of no value, the sum and the count are 0 and everything else is NaN.
#[derive(Debug, Default)]
pub struct WindowColumns<'a> {
    /// Sum of the values.
    pub sum: Option<&'a mut [f64]>,
    /// Mean value.
    pub avg: Option<&'a mut [f64]>,
    /// Lowest value.
    pub min: Option<&'a mut [f64]>,
    /// Highest value.
    pub max: Option<&'a mut [f64]>,
    /// First value, in row order.
    pub first: Option<&'a mut [f64]>,
    /// Last value, in row order.
    pub last: Option<&'a mut [f64]>,
    /// How many values there are.
    pub count: Option<&'a mut [u64]>,
}

impl WindowColumns<'_> {
    fn floats(&mut self) -> [(&'static str, Option<&mut [f64]>); 6] {
        [
            ("sum", self.sum.as_deref_mut()),
            ("avg", self.avg.as_deref_mut()),
            ("min", self.min.as_deref_mut()),
            ("max", self.max.as_deref_mut()),
            ("first", self.first.as_deref_mut()),
            ("last", self.last.as_deref_mut()),
        ]
    }

    fn check(&mut self, rows: usize) -> Result<(), KernelError> {
        for (name, column) in self.floats() {
            KernelError::check_length(name, rows, column.map_or(rows, |column| column.len()))?;
        }
        KernelError::check_length("count", rows, self.count.as_ref().map_or(rows, |column| column.len()))
    }

    fn wants_ends(&self) -> bool {
        self.first.is_some() || self.last.is_some()
    }

    /// The rows of each of `parts` parts.
    fn cut(&mut self, parts: usize) -> Vec<WindowColumns<'_>> {
        let mut cut: Vec<WindowColumns<'_>> = Vec::new();
        cut.resize_with(parts, WindowColumns::default);
        macro_rules! share_out {
            ($($column:ident)*) => { $(
                if let Some(column) = self.$column.as_deref_mut() {
                    for (part, column) in cut.iter_mut().zip(cut_mut(column, parts)) {
                        part.$column = Some(column);
                    }
                }
            )* };
        }
        share_out!(sum avg min max first last count);
        cut
    }

    /// Columns in the same places as those of `self`, over buffers of `rows` rows.
    fn like<'b>(
        &self,
        floats: &'b mut [Vec<f64>; 6],
        count: &'b mut Vec<u64>,
        rows: usize,
    ) -> WindowColumns<'b> {
        let [sum, avg, min, max, first, last] = floats;
        fn part<T: Copy + Default>(column: &mut Vec<T>, wanted: bool, rows: usize) -> Option<&mut [T]> {
            wanted.then(|| {
                column.resize(rows, T::default());
                column.as_mut_slice()
            })
        }
        WindowColumns {
            sum: part(sum, self.sum.is_some(), rows),
            avg: part(avg, self.avg.is_some(), rows),
            min: part(min, self.min.is_some(), rows),
            max: part(max, self.max.is_some(), rows),
            first: part(first, self.first.is_some(), rows),
            last: part(last, self.last.is_some(), rows),
            count: part(count, self.count.is_some(), rows),
        }
    }

    /// Writes the rows from `row` on, a column at a time.
    #[inline(always)]
    fn put(&mut self, row: usize, windows: &[Aggregate]) {
        let rows = row..row + windows.len();
        if let Some(sum) = self.sum.as_deref_mut() {
            sum[rows.clone()].iter_mut().zip(windows).for_each(|(sum, window)| *sum = window.sum);
        }
        if let Some(avg) = self.avg.as_deref_mut() {
            let mean = |window: &Aggregate| window.sum / window.count as f64;
            avg[rows.clone()].iter_mut().zip(windows).for_each(|(avg, window)| *avg = mean(window));
        }
        if let Some(min) = self.min.as_deref_mut() {
            min[rows.clone()].iter_mut().zip(windows).for_each(|(min, it)| *min = it.or_nan(it.lowest));
        }
        if let Some(max) = self.max.as_deref_mut() {
            max[rows.clone()].iter_mut().zip(windows).for_each(|(max, it)| *max = it.or_nan(it.highest));
        }
        if let Some(count) = self.count.as_deref_mut() {
            count[rows].iter_mut().zip(windows).for_each(|(count, window)| *count = window.count);
        }
    }

    #[inline(always)]
    fn put_ends(&mut self, row: usize, ends: (f64, f64)) {
        if let Some(first) = self.first.as_deref_mut() {
            first[row] = ends.0;
        }
        if let Some(last) = self.last.as_deref_mut() {
            last[row] = ends.1;
        }
    }
}

/// What a window holds, without the nulls. Parts of one merge.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Aggregate {
    sum: f64,
    lowest: f64,
    highest: f64,
    count: u64,
}

impl Aggregate {
    const EMPTY: Self = Self { sum: 0.0, lowest: f64::INFINITY, highest: f64::NEG_INFINITY, count: 0 };

    /// A result, unless there is no value.
    #[inline(always)]
    fn or_nan(&self, result: f64) -> f64 {
        if self.count == 0 { f64::NAN } else { result }
    }

    #[inline(always)]
    fn add(mut self, value: f64) -> Self {
        let is_known = !value.is_nan();
        self.sum += if is_known { value } else { 0.0 };
        // Comparisons with NaN are false; one instruction each, unlike `f64::min`.
        self.lowest = if value < self.lowest { value } else { self.lowest };
        self.highest = if value > self.highest { value } else { self.highest };
        self.count += u64::from(is_known);
        self
    }

    #[inline(always)]
    fn merge(self, other: &Self) -> Self {
        Self {
            sum: self.sum + other.sum,
            lowest: if other.lowest < self.lowest { other.lowest } else { self.lowest },
            highest: if other.highest > self.highest { other.highest } else { self.highest },
            count: self.count + other.count,
        }
    }
}

/// Joins each left row at time `t` with the right rows in `[t + from, t + to]`, both borders included.
///
/// The struct owns the scratch memory of the join and may be used again; once that has grown to what the
/// tables need, a join on one thread without keys allocates nothing.
#[derive(Debug)]
pub struct WindowJoin {
    isa: Isa,
    low: Border,
    high: Border,
    scratch: Vec<Scratch>,
}

/// What one thread works in.
#[derive(Debug, Default)]
struct Scratch {
    lows: Vec<u32>,
    highs: Vec<u32>,
    windows: Vec<Aggregate>,
    suffixes: Vec<Aggregate>,
}

impl WindowJoin {
    /// A join over `[t + from, t + to]`, in the unit of the time columns; either may be negative. Borders
    /// beyond the ends of `i64` stop there.
    ///
    /// # Errors
    /// [`KernelError::Parameter`] when the window ends before it begins.
    pub fn new(from: i64, to: i64) -> Result<Self, KernelError> {
        KernelError::check_parameter("window end", to, from <= to, "not before its begin")?;
        let (low, high) = (Border { offset: from, is_after: false }, Border { offset: to, is_after: true });
        Ok(Self { isa: Isa::best(), low, high, scratch: vec![Scratch::default()] })
    }

    /// Uses these instructions.
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.isa = isa;
        self
    }

    /// Makes room for windows of `rows` right rows, so that no join allocates.
    #[must_use]
    pub fn with_window_rows(mut self, rows: usize) -> Self {
        for scratch in &mut self.scratch {
            scratch.lows.resize(BORDER_ROWS, 0);
            scratch.highs.resize(BORDER_ROWS, 0);
            scratch.windows.resize(BLOCK_ROWS, Aggregate::EMPTY);
            scratch.suffixes.reserve_exact(rows);
        }
        self
    }

    /// Joins on time alone.
    ///
    /// # Errors
    /// [`KernelError::Length`] when `values` does not fit `right` or a column of `out` does not fit `left`;
    /// [`KernelError::Parameter`] when the right table has 2^32 rows or more.
    pub fn run(
        &mut self,
        left: Times<'_>,
        right: Times<'_>,
        values: &[f64],
        out: WindowColumns<'_>,
    ) -> Result<(), KernelError> {
        self.join(None, (left, None), (right, None), values, out)
    }

    /// Joins on time alone, the left rows shared out among a crew.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_on(
        &mut self,
        crew: &mut Crew,
        left: Times<'_>,
        right: Times<'_>,
        values: &[f64],
        out: WindowColumns<'_>,
    ) -> Result<(), KernelError> {
        self.join(Some(crew), (left, None), (right, None), values, out)
    }

    /// Joins on time and key, the work shared out among a crew.
    ///
    /// # Errors
    /// As [`run`](Self::run); [`KernelError::Length`] too when a key column does not fit or the two tables
    /// count keys differently.
    pub fn run_by_key(
        &mut self,
        crew: &mut Crew,
        (left, left_keys): (Times<'_>, Keys<'_>),
        (right, right_keys): (Times<'_>, Keys<'_>),
        values: &[f64],
        mut out: WindowColumns<'_>,
    ) -> Result<(), KernelError> {
        KernelError::check_length("left key", left.as_slice().len(), left_keys.as_slice().len())?;
        KernelError::check_length("right key", right.as_slice().len(), right_keys.as_slice().len())?;
        KernelError::check_length("right key table", left_keys.count(), right_keys.count())?;
        if self.rows_per_window(left, right) <= SWEEP_ROWS || left_keys.count() == 1 {
            let is_one = left_keys.count() == 1;
            let keys = |keys| if is_one { None } else { Some(keys) };
            return self.join(Some(crew), (left, keys(left_keys)), (right, keys(right_keys)), values, out);
        }
        KernelError::check_length("value", right.as_slice().len(), values.len())?;
        out.check(left.as_slice().len())?;
        self.sorted(crew, (left, left_keys), (right, right_keys), values, &mut out)
    }

    /// Mean number of right rows in a window, keys not looked at, from a sample.
    fn rows_per_window(&self, left: Times<'_>, right: Times<'_>) -> usize {
        let (left, right) = (left.as_slice(), right.as_slice());
        let samples = left.len().min(SAMPLES);
        let rows = |sample: usize| {
            let time = left[sample * left.len() / samples];
            let low = right.partition_point(|&other| other < time.saturating_add(self.low.offset));
            right.partition_point(|&other| other <= time.saturating_add(self.high.offset)) - low
        };
        (0..samples).map(rows).sum::<usize>() / samples.max(1)
    }

    fn join(
        &mut self,
        crew: Option<&mut Crew>,
        (left, left_keys): (Times<'_>, Option<Keys<'_>>),
        (right, right_keys): (Times<'_>, Option<Keys<'_>>),
        values: &[f64],
        mut out: WindowColumns<'_>,
    ) -> Result<(), KernelError> {
        let rows = left.as_slice().len();
        KernelError::check_length("value", right.as_slice().len(), values.len())?;
        out.check(rows)?;
        let is_allowed = u32::try_from(values.len()).is_ok();
        KernelError::check_parameter(
            "rows of the right table",
            values.len(),
            is_allowed,
            "below 4294967296",
        )?;
        let has_null = self.isa.run(AnyNull(values));
        let known = Known::of(has_null && out.wants_ends(), values);
        let (isa, low, high) = (self.isa, self.low, self.high);
        let threads = crew.as_ref().map_or(1, |crew| crew.threads());
        self.scratch.resize_with(threads.max(self.scratch.len()), Scratch::default);
        let part = |(range, out, scratch): (std::ops::Range<usize>, WindowColumns<'_>, &mut Scratch)| {
            let left_keys = left_keys.map(|keys| keys.slice(range.clone()).as_slice());
            let right_keys = right_keys.map(Keys::as_slice);
            let keys = left_keys.zip(right_keys);
            let left = left.slice(range);
            isa.run(Join { left, right, keys, values, has_null, known: &known, low, high, scratch, out });
        };
        match crew {
            None => part((0..rows, out, &mut self.scratch[0])),
            Some(crew) => {
                let columns = parts_of(rows, threads).zip(out.cut(threads)).zip(&mut self.scratch);
                crew.map(columns.map(|((range, out), scratch)| (range, out, scratch)).collect(), part);
            }
        }
        Ok(())
    }

    /// Sorts both tables by key, joins key by key, and puts the results where their rows are.
    fn sorted(
        &mut self,
        crew: &mut Crew,
        (left, left_keys): (Times<'_>, Keys<'_>),
        (right, right_keys): (Times<'_>, Keys<'_>),
        values: &[f64],
        out: &mut WindowColumns<'_>,
    ) -> Result<(), KernelError> {
        let none: &[f64] = &[];
        let sides = vec![(left, left_keys, none), (right, right_keys, values)];
        let mut sides = crew.map(sides, |(times, keys, values)| ByKey::sort(times, keys, values));
        let (right, left) = (sides.pop().expect("two sides"), sides.pop().expect("two sides"));
        let (from, to, isa) = (self.low.offset, self.high.offset, self.isa);
        let shape = &*out;
        let results = crew.map((0..left_keys.count()).collect(), |key: usize| {
            let (left, _) = left.of(key);
            let (right, values) = right.of(key);
            let (mut floats, mut counts) = (<[Vec<f64>; 6]>::default(), Vec::new());
            let columns = shape.like(&mut floats, &mut counts, left.as_slice().len());
            Self::new(from, to)?.with_isa(isa).run(left, right, values, columns)?;
            Ok((floats, counts))
        });
        let results = results.into_iter().collect::<Result<Vec<_>, KernelError>>()?;
        let mut next = vec![0; left_keys.count()];
        for (row, &key) in left_keys.as_slice().iter().enumerate() {
            let key = key as usize;
            let (floats, counts) = &results[key];
            for ((_, column), result) in out.floats().into_iter().zip(floats) {
                if let Some(column) = column {
                    column[row] = result[next[key]];
                }
            }
            if let Some(count) = out.count.as_deref_mut() {
                count[row] = counts[next[key]];
            }
            next[key] += 1;
        }
        Ok(())
    }
}

/// A table in the order of its keys, and of its rows within each.
struct ByKey {
    times: Vec<i64>,
    values: Vec<f64>,
    /// Where each key begins; one more at the end.
    begins: Vec<usize>,
}

impl ByKey {
    /// Counts, then moves each row to its place. A table without values has none after, either.
    fn sort(times: Times<'_>, keys: Keys<'_>, values: &[f64]) -> Self {
        let (times, count) = (times.as_slice(), keys.count());
        let mut begins = vec![0; count + 1];
        for &key in keys.as_slice() {
            begins[key as usize + 1] += 1;
        }
        for key in 0..count {
            begins[key + 1] += begins[key];
        }
        let mut next = begins.clone();
        let mut sorted = Self { times: vec![0; times.len()], values: vec![0.0; values.len()], begins };
        for (row, &key) in keys.as_slice().iter().enumerate() {
            let place = &mut next[key as usize];
            sorted.times[*place] = times[row];
            if let Some(&value) = values.get(row) {
                sorted.values[*place] = value;
            }
            *place += 1;
        }
        sorted
    }

    fn of(&self, key: usize) -> (Times<'_>, &[f64]) {
        let range = self.begins[key]..self.begins[key + 1];
        let values = if self.values.is_empty() { &[][..] } else { &self.values[range.clone()] };
        (Times::new(&self.times[range]).expect("rows of a key keep their order"), values)
    }
}

/// Where the known values next to a row are; empty where all are known, or nobody asks.
struct Known {
    /// First known row at or after each row, and one more for the end.
    next: Vec<u32>,
    /// One more than the last known row before each row and the end; 0 for none.
    before: Vec<u32>,
}

impl Known {
    fn of(is_needed: bool, values: &[f64]) -> Self {
        let (mut next, mut before) = (Vec::new(), Vec::new());
        if is_needed {
            let rows = values.len();
            next.resize(rows + 1, rows as u32);
            before.resize(rows + 1, 0);
            for row in (0..rows).rev() {
                next[row] = if values[row].is_nan() { next[row + 1] } else { row as u32 };
            }
            for row in 0..rows {
                before[row + 1] = if values[row].is_nan() { before[row] } else { row as u32 + 1 };
            }
        }
        Self { next, before }
    }

    /// First and last value of the rows `[low, high)`.
    #[inline(always)]
    fn ends(&self, values: &[f64], low: usize, high: usize) -> (f64, f64) {
        if low >= high {
            return (f64::NAN, f64::NAN);
        }
        let first = self.next.get(low).map_or(low, |&row| row as usize);
        let last = self.before.get(high).map_or(high, |&row| row as usize);
        if first < high { (values[first], values[last - 1]) } else { (f64::NAN, f64::NAN) }
    }
}

struct AnyNull<'a>(&'a [f64]);

impl Kernel for AnyNull<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        f64::any_null(simd, self.0)
    }
}

/// The join of one part of the left table.
struct Join<'a> {
    left: Times<'a>,
    right: Times<'a>,
    /// Of the left and the right table, unless time alone joins.
    keys: Option<(&'a [u32], &'a [u32])>,
    values: &'a [f64],
    has_null: bool,
    known: &'a Known,
    low: Border,
    high: Border,
    scratch: &'a mut Scratch,
    out: WindowColumns<'a>,
}

impl Kernel for Join<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let mut scratch = std::mem::take(self.scratch);
        let Scratch { lows, highs, windows, suffixes } = &mut scratch;
        lows.resize(BORDER_ROWS, 0);
        highs.resize(BORDER_ROWS, 0);
        windows.resize(BLOCK_ROWS, Aggregate::EMPTY);
        let wanted = Wanted::of(&self.out);
        suffixes.clear();
        let mut parts =
            TwoParts { suffixes, values: self.values, split: 0, newer: Aggregate::EMPTY, high: 0 };
        let (rows, mut low, mut high) = (self.left.as_slice().len(), 0, 0);
        for border in (0..rows).step_by(BORDER_ROWS) {
            let left = self.left.slice(border..rows.min(border + BORDER_ROWS));
            let count = left.as_slice().len();
            let (lows, highs) = (&mut lows[..count], &mut highs[..count]);
            let right = self.right;
            Positions { left, right, border: self.low, from: low, out: lows }.run(simd);
            Positions { left, right, border: self.high, from: high, out: highs }.run(simd);
            (low, high) = (lows[count - 1] as usize, highs[count - 1] as usize);
            let blocks = lows.chunks(BLOCK_ROWS).zip(highs.chunks(BLOCK_ROWS));
            for (block, (lows, highs)) in (border..).step_by(BLOCK_ROWS).zip(blocks) {
                let are_few = |(low, high): (&u32, &u32)| (high - low) as usize <= DIRECT_ROWS;
                let all_few = lows.iter().zip(highs).fold(true, |all, window| all & are_few(window));
                if all_few && !self.has_null && self.keys.is_none() {
                    self.few(simd, block, lows, highs);
                    continue;
                }
                let windows = &mut windows[..lows.len()];
                let borders = lows.iter().zip(highs);
                for (row, ((&low, &high), window)) in (block..).zip(borders.zip(&mut *windows)) {
                    *window = self.window(simd, row, (low as usize, high as usize), wanted, &mut parts);
                }
                self.out.put(block, windows);
            }
        }
        *self.scratch = scratch;
    }
}

impl Join<'_> {
    /// The window of a row, of its key where there are keys.
    #[inline(always)]
    fn window<S: Simd>(
        &mut self,
        simd: S,
        row: usize,
        (low, high): (usize, usize),
        wanted: Wanted,
        parts: &mut TwoParts<'_>,
    ) -> Aggregate {
        if let Some((left_keys, right_keys)) = self.keys {
            let swept = sweep(simd, self.values, &right_keys[low..high], left_keys[row], low);
            self.out.put_ends(row, swept.1);
            return swept.0;
        }
        if wanted.ends {
            self.out.put_ends(row, self.known.ends(self.values, low, high));
        }
        match high - low <= DIRECT_ROWS {
            true => direct(simd, &self.values[low..high], wanted),
            false => parts.window(low, high),
        }
    }

    /// The windows of rows from `row` on that are all short, and of values that are all known: they need not be
    /// counted, and each column is written where it goes.
    #[inline(always)]
    fn few<S: Simd>(&mut self, simd: S, row: usize, lows: &[u32], highs: &[u32]) {
        let (rows, values) = (row..row + lows.len(), self.values);
        let slice = move |(&low, &high): (&u32, &u32)| &values[low as usize..high as usize];
        let windows = || lows.iter().zip(highs).map(slice);
        let or_nan = |values: &[f64], result: f64| if values.is_empty() { f64::NAN } else { result };
        if let Some(sum) = self.out.sum.as_deref_mut() {
            sum[rows.clone()].iter_mut().zip(windows()).for_each(|(sum, it)| *sum = simd.sum_of_few(it));
        }
        if let Some(avg) = self.out.avg.as_deref_mut() {
            let avg = &mut avg[rows.clone()];
            avg.iter_mut().zip(windows()).for_each(|(avg, it)| *avg = simd.sum_of_few(it));
            let counts = lows.iter().zip(highs).map(|(low, high)| f64::from(high - low));
            avg.iter_mut().zip(counts).for_each(|(avg, count)| *avg /= count);
        }
        if let Some(min) = self.out.min.as_deref_mut() {
            let lowest = |values: &[f64]| or_nan(values, simd.lowest_of_few(values));
            min[rows.clone()].iter_mut().zip(windows()).for_each(|(min, it)| *min = lowest(it));
        }
        if let Some(max) = self.out.max.as_deref_mut() {
            let highest = |values: &[f64]| or_nan(values, simd.highest_of_few(values));
            max[rows.clone()].iter_mut().zip(windows()).for_each(|(max, it)| *max = highest(it));
        }
        if let Some(count) = self.out.count.as_deref_mut() {
            let counts = lows.iter().zip(highs).map(|(low, high)| u64::from(high - low));
            count[rows].iter_mut().zip(counts).for_each(|(count, it)| *count = it);
        }
        if self.out.wants_ends() {
            for (row, (&low, &high)) in (row..).zip(lows.iter().zip(highs)) {
                self.out.put_ends(row, self.known.ends(values, low as usize, high as usize));
            }
        }
    }
}

/// What is wanted of each window.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    sum: bool,
    min: bool,
    max: bool,
    ends: bool,
}

impl Wanted {
    fn of(out: &WindowColumns<'_>) -> Self {
        Self {
            sum: out.sum.is_some() || out.avg.is_some(),
            min: out.min.is_some(),
            max: out.max.is_some(),
            ends: out.wants_ends(),
        }
    }
}

/// Adds up at most [`DIRECT_ROWS`] rows: where vectors are wide, with one branch on how many there are.
#[inline(always)]
fn direct<S: Simd>(simd: S, values: &[f64], wanted: Wanted) -> Aggregate {
    let mut wide = Wide::empty(simd);
    if S::LANES < 8 {
        for values in values.chunks(S::LANES) {
            wide.add(simd, values);
        }
    } else {
        wide.add(simd, values);
        wide.add(simd, &values[values.len().min(8)..]);
        if values.len() > 16 {
            wide.add(simd, &values[16..]);
        }
    }
    // A horizontal step costs as much as adding up a vector: only where it is wanted.
    Aggregate {
        sum: if wanted.sum { simd.sum(wide.sum) } else { 0.0 },
        lowest: if wanted.min { simd.lowest(wide.lowest) } else { 0.0 },
        highest: if wanted.max { simd.highest(wide.highest) } else { 0.0 },
        count: wide.count,
    }
}

/// An aggregate in lanes.
struct Wide<S: Simd> {
    sum: S::Vector,
    lowest: S::Vector,
    highest: S::Vector,
    count: u64,
}

impl<S: Simd> Wide<S> {
    #[inline(always)]
    fn empty(simd: S) -> Self {
        let (lowest, highest) = (simd.splat(f64::INFINITY), simd.splat(f64::NEG_INFINITY));
        Self { sum: simd.splat(0.0), lowest, highest, count: 0 }
    }

    /// Adds the first rows of a slice, at most a vector of them.
    #[inline(always)]
    fn add(&mut self, simd: S, values: &[f64]) {
        let vector = simd.load_part(values);
        let known = simd.known(vector);
        self.sum = simd.add(self.sum, simd.keep(known, vector));
        self.lowest = simd.lower(self.lowest, vector);
        self.highest = simd.higher(self.highest, vector);
        self.count += u64::from(simd.bits(known).count_ones());
    }
}

/// Adds up the rows of one key, of which the first has number `low`; with the first and the last value.
#[inline(always)]
fn sweep<S: Simd>(simd: S, values: &[f64], keys: &[u32], key: u32, low: usize) -> (Aggregate, (f64, f64)) {
    let mut window = Aggregate::EMPTY;
    let mut ends = (f64::NAN, f64::NAN);
    for (chunk, keys) in keys.chunks(KEY_LANES).enumerate() {
        let mut hits = simd.equal_keys(keys, key);
        while hits != 0 {
            let value = values[low + chunk * KEY_LANES + hits.trailing_zeros() as usize];
            hits &= hits - 1;
            if !value.is_nan() {
                ends = (if window.count == 0 { value } else { ends.0 }, value);
            }
            window = window.add(value);
        }
    }
    (window, ends)
}

/// The two parts of the window: stored suffixes of `[.., split)` and the running aggregate of `[split,
/// high)`.
struct TwoParts<'a> {
    /// Stored from the split outwards: entry `k` covers the `k + 1` rows below it.
    suffixes: &'a mut Vec<Aggregate>,
    values: &'a [f64],
    split: usize,
    newer: Aggregate,
    high: usize,
}

impl TwoParts<'_> {
    /// The aggregate of rows `[low, high)`; neither border may ever go back.
    #[inline(always)]
    fn window(&mut self, low: usize, high: usize) -> Aggregate {
        if low >= self.split {
            self.restart(low, high);
        } else {
            for &value in &self.values[self.high..high] {
                self.newer = self.newer.add(value);
            }
            self.high = high;
        }
        self.suffixes[self.split - low - 1].merge(&self.newer)
    }

    /// The older part is used up: the whole window becomes the older part.
    fn restart(&mut self, low: usize, high: usize) {
        self.suffixes.clear();
        let mut suffix = Aggregate::EMPTY;
        for &value in self.values[low..high].iter().rev() {
            suffix = suffix.add(value);
            self.suffixes.push(suffix);
        }
        self.split = high;
        self.high = high;
        self.newer = Aggregate::EMPTY;
    }
}

#[cfg(test)]
mod tests;
