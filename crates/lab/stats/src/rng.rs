//! The one generator: xoshiro256++ seeded through SplitMix64 (Blackman and Vigna, 2019).
//!
//! A trial stores its seed, and the seed alone must give back every order that was drawn, with any later
//! version. So the generator is ours and its first outputs are pinned by a test. Coins, permutations and
//! whole numbers use integer arithmetic only and are equal on every machine; [`Rng::normal`] and
//! [`Rng::exponential`] pass through the platform's `ln` and may differ in the last bit, which is good
//! enough for simulations.

/// A deterministic generator. Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Rng {
    /// The generator of one seed.
    pub fn new(seed: u64) -> Rng {
        let mut mixer = seed;
        Rng { state: std::array::from_fn(|_| split_mix(&mut mixer)) }
    }

    /// Stream `index` of a seed: independent of the others for every practical purpose, so that one
    /// repetition of a simulation can be run again alone.
    pub fn stream(seed: u64, index: u64) -> Rng {
        let mut mixer = seed;
        let mut mixer = split_mix(&mut mixer) ^ index;
        Rng::new(split_mix(&mut mixer))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A fair coin.
    pub fn coin(&mut self) -> bool {
        self.next_u64() >> 63 == 1
    }

    /// A whole number in `0..bound`, each equally likely.
    ///
    /// # Panics
    /// When `bound` is zero: there is nothing to choose from.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "a choice needs at least one candidate");
        let bound = bound as u64;
        // Outputs in the incomplete last round would favour small numbers, so they are drawn again.
        let unfair = (u64::MAX % bound + 1) % bound;
        loop {
            let drawn = self.next_u64();
            if drawn <= u64::MAX - unfair {
                return (drawn % bound) as usize;
            }
        }
    }

    /// A random permutation of `items`, in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// Uniform in `[0, 1)`, in steps of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `share`.
    pub fn chance(&mut self, share: f64) -> bool {
        self.uniform() < share
    }

    /// Standard normal (Box and Muller; the second value of each draw is not used).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_seeds_keep_their_meaning() {
        // SplitMix64 of 1234567 as published with the algorithm; xoshiro256++ from state 1, 2, 3, 4
        // likewise.
        let mut mixer = 1_234_567;
        let mixed: Vec<u64> = (0..3).map(|_| split_mix(&mut mixer)).collect();
        assert_eq!(mixed, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let drawn: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(drawn, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn every_permutation_is_equally_likely() {
        let mut rng = Rng::new(5);
        let mut seen = std::collections::BTreeMap::<[u8; 3], usize>::new();
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            rng.shuffle(&mut items);
            *seen.entry(items).or_default() += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|&count| (850..1150).contains(&count)), "{seen:?}");
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut rng = Rng::stream(7, 3);
        let n = 40_000;
        let normals: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let mean = normals.iter().sum::<f64>() / n as f64;
        let square = normals.iter().map(|x| x * x).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.02 && (square - 1.0).abs() < 0.03, "{mean} {square}");
        let wait = (0..n).map(|_| rng.exponential(2.0)).sum::<f64>() / n as f64;
        assert!((wait - 2.0).abs() < 0.05, "{wait}");
        let heads = (0..n).filter(|_| rng.coin()).count();
        assert!((19_600..20_400).contains(&heads), "{heads}");
    }
}
