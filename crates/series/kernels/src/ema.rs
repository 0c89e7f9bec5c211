//! Exponential moving average, by row.
//!
//! `y = c * y + a * x` is a chain of dependent steps. A vector of rows is a weighted prefix sum instead, to
//! which the average before it is added with the powers of `c`; so only one multiplication and one addition a
//! few vectors stand in the chain. The same holds for the parts of a table: each is scanned from 0, and what
//! the part before it ended with is added until it has decayed.

use crate::crew::{cut_mut, parts_of};
use crate::number::sealed::Lanes;
use crate::simd::{Isa, Kernel, Simd, scan_powers};
use crate::{Crew, KernelError, Keys};

/// Rows that are looked over for nulls at once; they stay in the first cache for the loop after it.
const BLOCK_ROWS: usize = 1024;

/// A carry that has decayed below this share of itself is no longer added: 2^-70, far below one unit in the
/// last place of any average that it could change.
pub(crate) const DECAYED: f64 = 1.0 / (1u128 << 70) as f64;

/// The recurrence `y = alpha * x + (1 - alpha) * y`, begun with the first value that is not null.
///
/// A null neither moves nor ages the average: its row repeats the last one (pandas: `adjust=False,
/// ignore_na=True`). Rows before the first value are NaN. Infinities stay; two opposite ones leave NaN for
/// good, and so does one with alpha 1, for `0 * y` is NaN then (pandas, too). State is carried, so chunks may
/// be cut anywhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ema {
    isa: Isa,
    alpha: f64,
    /// NaN until the first value.
    last: f64,
    has_begun: bool,
}

impl Ema {
    /// An average with smoothing factor `alpha`.
    ///
    /// # Errors
    /// [`KernelError::Parameter`] unless `0 < alpha <= 1`.
    pub fn with_alpha(alpha: f64) -> Result<Self, KernelError> {
        let is_allowed = alpha > 0.0 && alpha <= 1.0;
        KernelError::check_parameter("alpha", alpha, is_allowed, "above 0 and at most 1")?;
        Ok(Self { isa: Isa::best(), alpha, last: f64::NAN, has_begun: false })
    }

    /// An average over about `span` rows: alpha is 2 / (span + 1).
    ///
    /// # Errors
    /// [`KernelError::Parameter`] unless `span >= 1`.
    pub fn with_span(span: f64) -> Result<Self, KernelError> {
        KernelError::check_parameter("span", span, span >= 1.0 && span.is_finite(), "at least 1")?;
        Self::with_alpha(2.0 / (span + 1.0))
    }

    /// An average in which a value has lost half its weight after `half_life` rows.
    ///
    /// # Errors
    /// [`KernelError::Parameter`] unless `half_life` is above 0 and alpha, 1 - 2^(-1 / half life), too.
    pub fn with_half_life(half_life: f64) -> Result<Self, KernelError> {
        let is_allowed = half_life > 0.0 && half_life.is_finite();
        KernelError::check_parameter("half life", half_life, is_allowed, "above 0")?;
        // Not `1 - exp2(..)`, which loses digits where the half life is long.
        Self::with_alpha(-f64::exp_m1(-std::f64::consts::LN_2 / half_life))
    }

    /// Uses these instructions.
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.isa = isa;
        self
    }

    /// The average so far; NaN before the first value.
    #[must_use]
    pub fn last(&self) -> f64 {
        self.last
    }

    /// Takes one value and returns the average after it.
    #[inline]
    pub fn push(&mut self, value: f64) -> f64 {
        if !self.has_begun {
            self.has_begun = !value.is_nan();
            self.last = value;
            return value;
        }
        // Each average waits for the one before it, so nothing but one multiplication and one addition may
        // stand between them: whether the value is null decides the factors, not the result. Adding -0
        // changes nothing.
        let (kept, added) = if value.is_nan() { (1.0, -0.0) } else { (1.0 - self.alpha, self.alpha * value) };
        self.last = kept * self.last + added;
        self.last
    }

    /// Takes one chunk of a series and writes the average after each row.
    ///
    /// # Errors
    /// [`KernelError::Length`] when `out` differs in length from `values`.
    pub fn feed(&mut self, values: &[f64], out: &mut [f64]) -> Result<(), KernelError> {
        KernelError::check_length("out", values.len(), out.len())?;
        self.isa.run(Feed { ema: self, values, out });
        Ok(())
    }

    /// Takes one chunk of a series, its rows shared out among a crew.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub fn run(&mut self, crew: &mut Crew, values: &[f64], out: &mut [f64]) -> Result<(), KernelError> {
        KernelError::check_length("out", values.len(), out.len())?;
        let threads = crew.threads();
        let first = *self;
        let parts = parts_of(values.len(), threads).zip(cut_mut(out, threads)).enumerate().collect();
        let ends = crew.map(parts, |(part, (range, out))| {
            // Every part but the first begins with an average of 0, to which the true one is added below.
            let zero = Self { last: 0.0, has_begun: true, ..first };
            let mut ema = if part == 0 { first } else { zero };
            ema.isa.run(Feed { ema: &mut ema, values: &values[range], out });
            ema
        });
        let ranges = parts_of(values.len(), threads);
        for (part, ((range, out), end)) in ranges.zip(cut_mut(out, threads)).zip(ends).enumerate() {
            if part == 0 {
                *self = end;
            } else {
                self.carry_into(&values[range], out, end.last);
            }
        }
        Ok(())
    }

    /// Adds what the rows before left to a part that was scanned from 0 and ended with `end`.
    fn carry_into(&mut self, values: &[f64], out: &mut [f64], end: f64) {
        let mut from = 0;
        if !self.has_begun {
            // With this the first value becomes the average: alpha * x + (1 - alpha) * x.
            from = values.iter().position(|value| !value.is_nan()).unwrap_or(values.len());
            out[..from].fill(f64::NAN);
            let Some(&value) = values.get(from) else { return };
            self.last = value;
            self.has_begun = true;
        }
        let rest = self.isa.run(Carry {
            factor: 1.0 - self.alpha,
            carry: self.last,
            values: &values[from..],
            out: &mut out[from..],
        });
        self.last = end + rest;
    }
}

struct Feed<'a> {
    ema: &'a mut Ema,
    values: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for Feed<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { ema, values, out } = self;
        let mut begun = 0;
        while begun < values.len() && !ema.has_begun {
            out[begun] = ema.push(values[begun]);
            begun += 1;
        }
        let (values, out) = (&values[begun..], &mut out[begun..]);
        let factor = 1.0 - ema.alpha;
        let powers = scan_powers(simd, factor);
        let (lanes, vector_factor) = (lane_powers(simd, factor), factor.powi(S::LANES as i32));
        let chunk_factor = vector_factor * vector_factor;
        let alpha = simd.splat(ema.alpha);
        let all = simd.bits(simd.known(alpha));
        let mut value_chunks = values.chunks_exact(2 * S::LANES);
        let mut out_chunks = out.chunks_exact_mut(2 * S::LANES);
        for (values, out) in (&mut value_chunks).zip(&mut out_chunks) {
            let (left, right) = (simd.load(values), simd.load(&values[S::LANES..]));
            if simd.bits(simd.both(simd.known(left), simd.known(right))) != all {
                for (&value, out) in values.iter().zip(out) {
                    *out = ema.push(value);
                }
                continue;
            }
            let left = simd.scan(simd.mul(alpha, left), &powers);
            let right = simd.scan(simd.mul(alpha, right), &powers);
            let middle = vector_factor * ema.last + simd.last(left);
            // Not from `middle`: that would put both steps into the chain.
            let ends = vector_factor * simd.last(left) + simd.last(right);
            simd.store(simd.mul_add(lanes, simd.splat(ema.last), left), out);
            simd.store(simd.mul_add(lanes, simd.splat(middle), right), &mut out[S::LANES..]);
            ema.last = chunk_factor * ema.last + ends;
        }
        for (&value, out) in value_chunks.remainder().iter().zip(out_chunks.into_remainder()) {
            *out = ema.push(value);
        }
    }
}

/// `factor` to the powers 1, 2, .. in the lanes.
#[inline(always)]
fn lane_powers<S: Simd>(simd: S, factor: f64) -> S::Vector {
    let mut powers = [factor; 8];
    for lane in 1..powers.len() {
        powers[lane] = powers[lane - 1] * factor;
    }
    simd.load(&powers)
}

/// Adds a decaying carry to averages; returns what is left of it.
struct Carry<'a> {
    factor: f64,
    carry: f64,
    values: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for Carry<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        let floor = decay_floor(self.carry);
        let (lanes, vector_factor) = (lane_powers(simd, self.factor), self.factor.powi(S::LANES as i32));
        let all = simd.bits(simd.known(simd.splat(0.0)));
        let mut rest = self.carry;
        for (values, out) in self.values.chunks(S::LANES).zip(self.out.chunks_mut(S::LANES)) {
            if rest.abs() <= floor {
                return 0.0;
            }
            if values.len() == S::LANES && simd.bits(simd.known(simd.load(values))) == all {
                let whole = simd.mul_add(lanes, simd.splat(rest), simd.load(out));
                simd.store(whole, out);
                rest *= vector_factor;
                continue;
            }
            for (value, out) in values.iter().zip(out) {
                rest *= if value.is_nan() { 1.0 } else { self.factor };
                *out += rest;
            }
        }
        rest
    }
}

/// The magnitude at which a carry has decayed. An infinite one never does, and a NaN neither.
pub(crate) fn decay_floor(carry: f64) -> f64 {
    if carry.is_finite() { carry.abs() * DECAYED } else { -1.0 }
}

/// The average of each of many interleaved series, all of one kind.
#[derive(Debug, Clone)]
pub struct KeyedEma {
    kind: Ema,
    last: Vec<f64>,
    has_begun: Vec<bool>,
    waiting: usize,
}

impl KeyedEma {
    /// Averages like `kind`, which has not begun, for `key_count` keys.
    #[must_use]
    pub fn new(kind: Ema, key_count: usize) -> Self {
        let (last, has_begun) = (vec![f64::NAN; key_count], vec![false; key_count]);
        Self { kind, last, has_begun, waiting: key_count }
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.last.fill(f64::NAN);
        self.has_begun.fill(false);
        self.waiting = self.last.len();
    }

    /// The average of each key so far; NaN before its first value.
    #[must_use]
    pub fn last(&self) -> &[f64] {
        &self.last
    }

    /// Takes one chunk and writes the average of the row's key after each row.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ or the keys are not counted as in [`new`](Self::new).
    pub fn feed(&mut self, keys: Keys<'_>, values: &[f64], out: &mut [f64]) -> Result<(), KernelError> {
        self.check(keys, values, out)?;
        self.kind.isa.run(KeyedFeed { ema: self, keys: keys.as_slice(), values, out });
        Ok(())
    }

    /// Takes one chunk, its rows shared out among a crew.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub fn run(
        &mut self,
        crew: &mut Crew,
        keys: Keys<'_>,
        values: &[f64],
        out: &mut [f64],
    ) -> Result<(), KernelError> {
        self.check(keys, values, out)?;
        let (threads, keys) = (crew.threads(), keys.as_slice());
        let first = &*self;
        let parts = parts_of(keys.len(), threads).zip(cut_mut(out, threads)).enumerate().collect();
        let ends = crew.map(parts, |(part, (range, out))| {
            let key_count = first.last.len();
            let zero = || Self {
                kind: first.kind,
                last: vec![0.0; key_count],
                has_begun: vec![true; key_count],
                waiting: 0,
            };
            let mut ema = if part == 0 { first.clone() } else { zero() };
            let (keys, values) = (&keys[range.clone()], &values[range]);
            ema.kind.isa.run(KeyedFeed { ema: &mut ema, keys, values, out });
            ema
        });
        let ranges = parts_of(keys.len(), threads);
        for (part, ((range, out), end)) in ranges.zip(cut_mut(out, threads)).zip(ends).enumerate() {
            if part == 0 {
                *self = end;
            } else {
                self.carry_into(&keys[range.clone()], &values[range], out, &end.last);
            }
        }
        Ok(())
    }

    fn check(&self, keys: Keys<'_>, values: &[f64], out: &[f64]) -> Result<(), KernelError> {
        let rows = keys.as_slice().len();
        KernelError::check_length("value", rows, values.len())?;
        KernelError::check_length("out", rows, out.len())?;
        KernelError::check_length("key table", self.last.len(), keys.count())
    }

    /// Adds what the rows before left to a part that was averaged from 0 and ended with `ends`.
    fn carry_into(&mut self, keys: &[u32], values: &[f64], out: &mut [f64], ends: &[f64]) {
        let factor = 1.0 - self.kind.alpha;
        let mut floors: Vec<f64> = self.last.iter().map(|&carry| decay_floor(carry)).collect();
        // Keys whose carry is still to be added, those that have not begun among them.
        let is_carried = |key: usize| !self.has_begun[key] || self.last[key] != 0.0;
        let mut carried = (0..ends.len()).filter(|&key| is_carried(key)).count();
        for ((&key, &value), out) in keys.iter().zip(values).zip(out) {
            if carried == 0 {
                break;
            }
            let key = key as usize;
            if !self.has_begun[key] {
                *out = f64::NAN;
                if value.is_nan() {
                    continue;
                }
                self.has_begun[key] = true;
                self.waiting -= 1;
                // With this the first value becomes the average: alpha * x + (1 - alpha) * x.
                (self.last[key], *out) = (value, self.kind.alpha * value);
                floors[key] = decay_floor(value);
                carried -= usize::from(value == 0.0);
            }
            let rest = &mut self.last[key];
            if *rest == 0.0 {
                continue;
            }
            *rest *= if value.is_nan() { 1.0 } else { factor };
            *out += *rest;
            if rest.abs() <= floors[key] {
                *rest = 0.0;
                carried -= 1;
            }
        }
        for ((last, &end), &has_begun) in self.last.iter_mut().zip(ends).zip(&self.has_begun) {
            *last = if has_begun { *last + end } else { f64::NAN };
        }
    }
}

struct KeyedFeed<'a> {
    ema: &'a mut KeyedEma,
    keys: &'a [u32],
    values: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for KeyedFeed<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let KeyedEma { kind, last, has_begun, waiting } = self.ema;
        let (alpha, factor) = (kind.alpha, 1.0 - kind.alpha);
        let blocks = self.keys.chunks(BLOCK_ROWS).zip(self.values.chunks(BLOCK_ROWS));
        for ((keys, values), out) in blocks.zip(self.out.chunks_mut(BLOCK_ROWS)) {
            if *waiting == 0 && !f64::any_null(simd, values) {
                let last = last.as_mut_slice();
                for ((&key, &value), out) in keys.iter().zip(values).zip(out) {
                    debug_assert!((key as usize) < last.len());
                    // SAFETY: `Keys` found every key below its count, and `check` found as many averages.
                    let average = unsafe { last.get_unchecked_mut(key as usize) };
                    *average = factor * *average + alpha * value;
                    *out = *average;
                }
                continue;
            }
            for ((&key, &value), out) in keys.iter().zip(values).zip(out) {
                let key = key as usize;
                let mut one = Ema { last: last[key], has_begun: has_begun[key], ..*kind };
                *out = one.push(value);
                if one.has_begun != has_begun[key] {
                    has_begun[key] = true;
                    *waiting -= 1;
                }
                last[key] = one.last;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, column, crews, magnitude, null_or_value};
    use proptest::prelude::*;

    /// The closed form: every earlier value with its own weight, no recurrence.
    fn naive(values: &[f64], alpha: f64) -> f64 {
        let known: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        let Some((first, rest)) = known.split_first() else { return f64::NAN };
        let decay = |rows: usize| (1.0 - alpha).powi(rows as i32);
        let later = |(row, value): (usize, &f64)| alpha * value * decay(rest.len() - 1 - row);
        first * decay(rest.len()) + rest.iter().enumerate().map(later).sum::<f64>()
    }

    proptest! {
        #[test]
        fn equals_the_closed_form_cut_anywhere(
            values in column(90), alpha in prop_oneof![0.01f64..=1.0, Just(1.0), Just(1e-9)], cut in 0usize..90,
        ) {
            let cut = cut.min(values.len());
            let wanted: Vec<f64> = (0..values.len()).map(|row| naive(&values[..=row], alpha)).collect();
            let check = |got: &[f64], ema: &Ema| {
                for (row, (&got, &wanted)) in got.iter().zip(&wanted).enumerate() {
                    assert_close(got, wanted, magnitude(&values[..=row]));
                }
                assert_close(ema.last(), wanted.last().copied().unwrap_or(f64::NAN), magnitude(&values));
            };
            let mut got = vec![0.0; values.len()];
            for isa in Isa::all() {
                let mut ema = Ema::with_alpha(alpha).unwrap().with_isa(isa);
                ema.feed(&values[..cut], &mut got[..cut]).unwrap();
                ema.feed(&values[cut..], &mut got[cut..]).unwrap();
                check(&got, &ema);
                for crew in &mut crews() {
                    let mut ema = Ema::with_alpha(alpha).unwrap().with_isa(isa);
                    ema.run(crew, &values[..cut], &mut got[..cut]).unwrap();
                    ema.run(crew, &values[cut..], &mut got[cut..]).unwrap();
                    check(&got, &ema);
                }
            }
        }

        #[test]
        fn interleaved_series_equal_separate_ones(
            cells in prop::collection::vec((0u32..4, null_or_value()), 0..90), nulls in any::<bool>(),
            cut in 0usize..90, keys_count in 4usize..6,
        ) {
            let keys: Vec<u32> = cells.iter().map(|cell| cell.0).collect();
            let known = |value: f64| if value.is_nan() && !nulls { 1.5 } else { value };
            let values: Vec<f64> = cells.iter().map(|cell| known(cell.1)).collect();
            let cut = cut.min(keys.len());
            let kind = Ema::with_span(5.0).unwrap();
            let check = |got: &[f64], keyed: &KeyedEma| {
                for key in 0..4 {
                    let mut one = kind;
                    let mut scale = 0.0;
                    for row in (0..keys.len()).filter(|&row| keys[row] == key) {
                        scale += magnitude(&[values[row]]);
                        assert_close(got[row], one.push(values[row]), scale);
                    }
                    assert_close(keyed.last()[key as usize], one.last(), scale);
                }
            };
            let all = Keys::new(&keys, keys_count).unwrap();
            let mut got = vec![0.0; keys.len()];
            for isa in Isa::all() {
                let mut keyed = KeyedEma::new(kind.with_isa(isa), keys_count);
                for _again in 0..2 {
                    keyed.clear();
                    for range in [0..cut, cut..keys.len()] {
                        keyed.feed(all.slice(range.clone()), &values[range.clone()], &mut got[range]).unwrap();
                    }
                    check(&got, &keyed);
                }
                for crew in &mut crews() {
                    keyed.clear();
                    for range in [0..cut, cut..keys.len()] {
                        keyed.run(crew, all.slice(range.clone()), &values[range.clone()], &mut got[range]).unwrap();
                    }
                    check(&got, &keyed);
                }
            }
        }
    }

    #[test]
    fn a_long_series_in_parts_equals_one_pass() {
        let values: Vec<f64> = (0..20_000).map(|row| f64::from(row * 7919 % 1009) - 300.0).collect();
        let keys: Vec<u32> = (0..20_000u32).map(|row| row * row % 7).collect();
        let (mut wanted, mut got) = (vec![0.0; values.len()], vec![0.0; values.len()]);
        for alpha in [0.5, 2.0 / 21.0, 1e-4] {
            let kind = Ema::with_alpha(alpha).unwrap();
            let mut one = kind;
            values.iter().zip(&mut wanted).for_each(|(&value, out)| *out = one.push(value));
            for crew in &mut crews() {
                kind.clone().run(crew, &values, &mut got).unwrap();
                got.iter().zip(&wanted).for_each(|(&got, &wanted)| assert_close(got, wanted, 709.0));
            }
            let all = Keys::new(&keys, 7).unwrap();
            KeyedEma::new(kind, 7).feed(all, &values, &mut wanted).unwrap();
            for crew in &mut crews() {
                KeyedEma::new(kind, 7).run(crew, all, &values, &mut got).unwrap();
                got.iter().zip(&wanted).for_each(|(&got, &wanted)| assert_close(got, wanted, 709.0));
            }
        }
    }

    #[test]
    fn span_and_half_life_are_their_alphas() {
        assert_eq!(Ema::with_span(20.0).unwrap().alpha, 2.0 / 21.0);
        assert_close(Ema::with_half_life(1.0).unwrap().alpha, 0.5, 1e-6);
        let mut ema = Ema::with_half_life(7.0).unwrap();
        ema.push(1.0);
        let after: Vec<f64> = (0..7).map(|_| ema.push(0.0)).collect();
        assert_close(after[6], 0.5, 1e-6);
    }

    #[test]
    fn opposite_infinities_leave_nan_wherever_the_chunk_is_cut() {
        let mut values = vec![1.0; 70];
        (values[5], values[40], values[41]) = (f64::INFINITY, f64::NEG_INFINITY, f64::NAN);
        let wanted = |row: usize| match row {
            0..5 => 1.0,
            5..40 => f64::INFINITY,
            _ => f64::NAN,
        };
        for isa in Isa::all() {
            for cut in 0..values.len() {
                let mut ema = Ema::with_alpha(0.5).unwrap().with_isa(isa);
                let mut got = [0.0; 70];
                ema.feed(&values[..cut], &mut got[..cut]).unwrap();
                ema.feed(&values[cut..], &mut got[cut..]).unwrap();
                got.iter().enumerate().for_each(|(row, &got)| assert_close(got, wanted(row), 0.0));
            }
            for crew in &mut crews() {
                let mut got = [0.0; 70];
                Ema::with_alpha(0.5).unwrap().with_isa(isa).run(crew, &values, &mut got).unwrap();
                got.iter().enumerate().for_each(|(row, &got)| assert_close(got, wanted(row), 0.0));
            }
        }
    }

    #[test]
    fn alpha_one_repeats_the_values_up_to_an_infinity() {
        let mut ema = Ema::with_alpha(1.0).unwrap();
        let got = [3.0, f64::NAN, -7.0, f64::INFINITY].map(|value| ema.push(value));
        assert_eq!(got, [3.0, 3.0, -7.0, f64::INFINITY]);
        assert!(ema.push(2.0).is_nan());
    }

    #[test]
    fn refuses_a_factor_outside_its_range() {
        for alpha in [0.0, -0.5, 1.5, f64::NAN] {
            assert!(matches!(Ema::with_alpha(alpha), Err(KernelError::Parameter { name: "alpha", .. })));
        }
        assert!(matches!(Ema::with_span(0.5), Err(KernelError::Parameter { name: "span", .. })));
        assert!(matches!(Ema::with_half_life(0.0), Err(KernelError::Parameter { name: "half life", .. })));
    }
}
