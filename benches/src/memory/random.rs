//! Random access over 1 GiB on base pages and on pages of 2 MB. Of reads, each address depends on what was read before,
//! so that a read waits for its own walk of the page table; of updates, as in the RandomAccess benchmark of the HPC
//! Challenge (GUPS), as many are on their way at once as the CPU has room for.

use std::cell::Cell;
use std::hint::black_box;

use anyhow::{Context, Result};
use planish_arena::{Arena, Fallback, Page, Preference};

use super::pool::Pool;
use super::{cpu_ns, room};
use crate::rounds::{Arm, Rounds};
use crate::row::{Limit, Rows};

const BYTES: usize = 1 << 30;
/// Words of 8 bytes, a power of two of them: their number is the upper bits of what is drawn.
const INDEX_BITS: u32 = BYTES.ilog2() - 3;
const READS: usize = 1_000_000;
const UPDATES: usize = 4_000_000;
const ROUNDS: usize = 31;
const RATIO_MIN: f64 = 1.3;
const HUGE_BYTES: usize = 2 << 20;

/// Adds the rows: transparent huge pages, which need no pool, and those of a pool.
pub fn measure(rows: &mut Rows) {
    let kinds: [(&str, Access); 2] = [("random reads", read), ("random updates", update)];
    for (page, pages) in
        [(Page::Thp, "transparent huge pages"), (Page::HugeTlb(HUGE_BYTES), "2 MiB pages of a pool")]
    {
        for (access, by) in kinds {
            let name = format!("{access} over 1 GiB: base pages / {pages}");
            rows.add_with_note(&name, "ratio", (Limit::AtLeast, RATIO_MIN), || {
                room(2 * BYTES as u64)?;
                let _pool =
                    matches!(page, Page::HugeTlb(_)).then(|| Pool::raise(HUGE_BYTES, BYTES)).transpose()?;
                let [base, huge] = [memory(Page::Base)?, memory(page)?];
                let [base_words, huge_words] = [words(&base)?, words(&huge)?];
                let mut arms: [Arm<'_>; 2] =
                    [Box::new(|| Ok(by(base_words))), Box::new(|| Ok(by(huge_words)))];
                let rounds = Rounds::measure(ROUNDS, &mut arms)?;
                let note = format!("{:.1} ns, base pages {:.1} ns", rounds.median(1), rounds.median(0));
                Ok((rounds.over(0, 1)?, note))
            });
        }
    }
}

/// Nanoseconds of CPU time for an access to one of these words.
type Access = fn(&[Cell<u64>]) -> f64;

/// Memory that lies on exactly these pages, or the reason why not.
fn memory(page: Page) -> Result<Arena> {
    let builder = Arena::builder().page(Preference::From(page)).fallback(Fallback::Refuse);
    builder.capacity(BYTES).build().with_context(|| format!("1 GiB on {page}"))
}

fn words(arena: &Arena) -> Result<&[Cell<u64>]> {
    let words = arena.alloc_slice::<u64>(1 << INDEX_BITS)?;
    // No two of them alike, so that the compiler cannot know what a read gives.
    for (index, word) in words.iter_mut().enumerate() {
        *word = index as u64;
    }
    Ok(Cell::from_mut(words).as_slice_of_cells())
}

/// Of a linear congruential generator the upper bits are random.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

fn index_of(state: u64) -> usize {
    (state >> (u64::BITS - INDEX_BITS)) as usize
}

/// The word that was read goes into the next address.
fn read(words: &[Cell<u64>]) -> f64 {
    let before = cpu_ns();
    let mut state = black_box(1u64);
    for _ in 0..READS {
        let word = words[index_of(state)].get();
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(word | 1);
    }
    black_box(state);
    (cpu_ns() - before) / READS as f64
}

/// No address waits for a word.
fn update(words: &[Cell<u64>]) -> f64 {
    let before = cpu_ns();
    let mut state = black_box(1u64);
    for _ in 0..UPDATES {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(1);
        let word = &words[index_of(state)];
        word.set(word.get() ^ state);
    }
    black_box(words);
    (cpu_ns() - before) / UPDATES as f64
}
