//! Every operation of every instruction set of this CPU against its definition.

use super::*;
use proptest::prelude::*;

/// Runs all lanes of one set over one input and compares with plain loops.
struct Definition<'a> {
    values: &'a [f64; 8],
    whole: &'a [i64; 8],
    keys: &'a [u32],
    key: u32,
    time: i64,
}

impl Kernel for Definition<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let lanes = S::LANES;
        let out = |vector: S::Vector| {
            let mut to = [f64::NAN; 8];
            simd.store(vector, &mut to);
            to[..lanes].to_vec()
        };
        let same = |got: &[f64], wanted: &[f64]| {
            let equal = |(left, right): (&f64, &f64)| left == right || (left.is_nan() && right.is_nan());
            assert!(got.iter().zip(wanted).all(equal), "{got:?} is not {wanted:?}");
        };
        let (values, wanted) = (simd.load(self.values), &self.values[..lanes]);
        same(&out(values), wanted);
        let known: Vec<f64> = wanted.iter().copied().filter(|value| !value.is_nan()).collect();
        let kept = simd.keep(simd.known(values), values);
        same(
            &out(kept),
            &wanted.iter().map(|value| if value.is_nan() { 0.0 } else { *value }).collect::<Vec<_>>(),
        );
        let bits = (0..lanes).map(|lane| u32::from(!wanted[lane].is_nan()) << lane).sum::<u32>();
        assert_eq!(simd.bits(simd.known(values)), bits);
        assert_eq!(simd.bits(simd.both(simd.known(values), simd.known(simd.splat(f64::NAN)))), 0);
        let low = simd.lowest(simd.lower(simd.splat(f64::INFINITY), values));
        assert_eq!(low, known.iter().copied().fold(f64::INFINITY, f64::min));
        let high = simd.highest(simd.higher(simd.splat(f64::NEG_INFINITY), values));
        assert_eq!(high, known.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        let scale = 1e-12 * known.iter().map(|value| value.abs()).sum::<f64>();
        assert!((simd.sum(kept) - known.iter().sum::<f64>()).abs() <= scale);
        assert_eq!(simd.last(kept), out(kept)[lanes - 1]);
        for part in 0..=lanes {
            let mut wanted = self.values[..part].to_vec();
            wanted.resize(lanes, f64::NAN);
            same(&out(simd.load_part(&self.values[..part])), &wanted);
        }
        let cast: Vec<f64> = self.whole[..lanes].iter().map(|&whole| whole as f64).collect();
        assert_eq!(out(simd.load_i64(self.whole)), cast);
        let below = self.whole[..lanes].iter().filter(|&&time| time < self.time).count();
        assert_eq!(simd.count_below(self.whole, self.time), below);
        let equal = self.keys.iter().enumerate().map(|(row, &key)| u32::from(key == self.key) << row);
        assert_eq!(simd.equal_keys(self.keys, self.key), equal.sum::<u32>());
        let scanned = out(simd.scan(kept, &scan_powers(simd, 0.5)));
        let mut sum = 0.0;
        for (lane, value) in out(kept).into_iter().enumerate() {
            sum = 0.5 * sum + value;
            assert!((scanned[lane] - sum).abs() <= scale, "lane {lane}: {} is not {sum}", scanned[lane]);
        }
        let product = out(simd.mul_add(kept, simd.splat(3.0), simd.mul(kept, simd.splat(2.0))));
        let sums = out(simd.add(kept, kept));
        for (lane, value) in out(kept).into_iter().enumerate() {
            assert!((product[lane] - 5.0 * value).abs() <= scale && sums[lane] == 2.0 * value);
        }
        let mut pair = [self.values[0], self.values[1]];
        let best = simd.pair_higher(simd.pair(0.0, f64::NEG_INFINITY), simd.pair_load(&pair));
        simd.pair_store(simd.pair_add(best, simd.pair(1.0, 2.0)), &mut pair);
        let higher = |best: f64, value: f64| if value > best { value } else { best };
        same(&pair, &[higher(0.0, self.values[0]) + 1.0, higher(f64::NEG_INFINITY, self.values[1]) + 2.0]);
        let few: Vec<f64> =
            known.iter().copied().cycle().take(if known.is_empty() { 0 } else { 24 }).collect();
        for count in 0..=few.len() {
            let few = &few[..count];
            assert!((simd.sum_of_few(few) - few.iter().sum::<f64>()).abs() <= 24.0 * scale);
            assert_eq!(simd.lowest_of_few(few), few.iter().copied().fold(f64::INFINITY, f64::min));
            assert_eq!(simd.highest_of_few(few), few.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        }
        simd.prefetch(self.keys, usize::MAX);
    }
}

fn whole() -> impl Strategy<Value = i64> {
    prop_oneof![-9i64..9, any::<i64>(), Just(i64::MIN), Just(i64::MAX), (0u32..63).prop_map(|bit| 1 << bit)]
}

proptest! {
    #[test]
    fn every_operation_is_what_it_says(
        values in prop::array::uniform8(crate::testing::null_or_value()), mut whole in prop::array::uniform8(whole()),
        keys in prop::collection::vec(0u32..4, 0..=16), key in 0u32..4, time in -10i64..10,
    ) {
        whole.sort_unstable();
        for isa in Isa::all() {
            isa.run(Definition { values: &values, whole: &whole, keys: &keys, key, time });
        }
    }
}

#[test]
fn sets_are_found_by_name_and_scalar_is_always_there() {
    assert_eq!(Isa::all().last(), Some(Isa::SCALAR));
    for isa in Isa::all() {
        assert_eq!(Isa::named(&isa.to_string()), Some(isa));
    }
    assert_eq!(Isa::named("sse9"), None);
    assert_eq!(Isa::all().next(), Some(Isa::best()));
}
