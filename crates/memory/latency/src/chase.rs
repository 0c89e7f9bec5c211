//! Loads that each wait for the one before: a walk along a random cycle through all lines of some memory.
//!
//! ```text
//!  line    0       1       2       3            each holds the place of the next; one cycle through all of them
//!        [ 2 .. ][ 0 .. ][ 3 .. ][ 1 .. ]       0 -> 2 -> 3 -> 1 -> 0
//! ```
//!
//! The next address is known only when the load is done, so that nothing overlaps, and no prefetcher guesses it. The
//! walk goes on where it stopped: a line comes again only after all others, which no cache smaller than the memory
//! keeps, as far as it throws out what was used longest ago.

use std::hint::black_box;
use std::time::Instant;

use planish_stats::Rng;

/// Words in a line of 64 bytes.
pub(crate) const LINE_WORDS: usize = 8;

/// Memory with a cycle in it.
pub(crate) struct Cycle<'a> {
    words: &'a [u64],
    at: usize,
}

impl<'a> Cycle<'a> {
    /// Lays a random cycle through all whole lines of `words`, of which there must be two at least.
    pub(crate) fn lay(words: &'a mut [u64], rng: &mut Rng) -> Self {
        let lines = words.len() / LINE_WORDS;
        assert!(
            (2..=u32::MAX as usize).contains(&lines),
            "a cycle needs lines, and their numbers fit 32 bits"
        );
        // Sattolo's algorithm: a random permutation that is one cycle.
        let mut next: Vec<u32> = (0..lines as u32).collect();
        for last in (1..lines).rev() {
            next.swap(last, rng.below(last));
        }
        for (line, next) in next.into_iter().enumerate() {
            words[line * LINE_WORDS] = u64::from(next) * LINE_WORDS as u64;
        }
        Self { words, at: 0 }
    }

    /// The memory as it is, for reading.
    pub(crate) fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Goes so many lines further; nanoseconds of a load.
    pub(crate) fn walk(&mut self, steps: usize) -> f64 {
        let (words, mut at) = (self.words, self.at);
        let begun = Instant::now();
        for _ in 0..steps {
            at = words[at] as usize;
        }
        let at = black_box(at);
        let took = begun.elapsed();
        self.at = at;
        took.as_nanos() as f64 / steps as f64
    }
}

/// Reads all of some memory in its order; something that depends on every word, so that none is left out.
pub(crate) fn read_all(words: &[u64]) -> u64 {
    let mut sums = [0_u64; LINE_WORDS];
    let lines = words.chunks_exact(LINE_WORDS);
    for line in lines {
        for (sum, word) in sums.iter_mut().zip(line) {
            *sum = sum.wrapping_add(*word);
        }
    }
    black_box(sums.into_iter().fold(0, u64::wrapping_add))
}

#[cfg(test)]
mod tests {
    use planish_stats::Rng;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_walk_comes_to_every_line_once(lines in 2_usize..300, seed in 0_u64..1000) {
            let mut words = vec![0_u64; lines * LINE_WORDS + 3];
            let cycle = Cycle::lay(&mut words, &mut Rng::new(seed));
            let (mut seen, mut at) = (vec![false; lines], 0_usize);
            for _ in 0..lines {
                prop_assert!(at.is_multiple_of(LINE_WORDS) && !seen[at / LINE_WORDS]);
                seen[at / LINE_WORDS] = true;
                at = cycle.words()[at] as usize;
            }
            prop_assert_eq!(at, 0);
        }
    }

    #[test]
    fn a_walk_goes_on_where_it_stopped() {
        let mut words = vec![0_u64; 64 * LINE_WORDS];
        let mut cycle = Cycle::lay(&mut words, &mut Rng::new(3));
        assert!(cycle.walk(40) >= 0.0);
        let middle = cycle.at;
        cycle.walk(24);
        assert_eq!(cycle.at, 0, "64 steps in all");
        cycle.walk(40);
        assert_eq!(cycle.at, middle);
    }

    #[test]
    fn every_word_is_read() {
        let words: Vec<u64> = (0..64).collect();
        assert_eq!(read_all(&words), 63 * 64 / 2);
    }
}
