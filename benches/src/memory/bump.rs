//! Bump allocation beside bumpalo: the same items into blocks that are there, in CPU time of the thread.

use std::hint::black_box;

use anyhow::Result;
use planish_arena::{Arena, Growth, Page, Preference};

use super::cpu_ns;
use crate::rounds::{Arm, Rounds};
use crate::row::{Limit, Rows};

/// Items of a sample. Those of 8 bytes stay in a cache of the second level: what is measured is taking, not storing.
const ITEMS: usize = 100_000;
const ROUNDS: usize = 41;
const NS_MAX: f64 = 3.0;
const RATIO_MAX: f64 = 1.2;

/// Adds the rows.
pub fn measure(rows: &mut Rows) {
    beside(rows, "8 bytes", || black_box(7u64));
    // Made of one word in registers. An item that was hidden from the compiler in memory is written there word by word
    // and read at once in wider pieces, for which the CPU waits longer than all of a bump takes.
    beside(rows, "28 bytes", || [black_box(7u32); 7]);
}

fn beside<T: Copy>(rows: &mut Rows, size: &str, make: impl Fn() -> T) {
    let rounds = rounds(make);
    let rounds = || rounds.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"));
    rows.add(&format!("bump of {size}"), "ns", (Limit::AtMost, NS_MAX), || rounds()?.value(0));
    rows.add_with_note(&format!("bump / bumpalo, {size}"), "ratio", (Limit::AtMost, RATIO_MAX), || {
        let rounds = rounds()?;
        let note = format!("{:.2} ns, bumpalo {:.2} ns", rounds.median(0), rounds.median(1));
        Ok((rounds.over(0, 1)?, note))
    });
}

fn rounds<T: Copy>(make: impl Fn() -> T) -> Result<Rounds> {
    // As much as all of them take, so that neither asks for more while it is measured.
    let bytes = ITEMS * size_of::<T>() + 4096;
    let arena = Arena::builder().page(Preference::From(Page::Base)).capacity(bytes).build()?;
    let mut ours = arena.bump(Growth { first_bytes: bytes, cap_bytes: bytes });
    let mut theirs = bumpalo::Bump::with_capacity(bytes);
    let mut arms: [Arm<'_>; 2] = [
        Box::new(|| {
            ours.clear();
            let before = cpu_ns();
            for _ in 0..ITEMS {
                black_box(ours.alloc(make())?);
            }
            Ok((cpu_ns() - before) / ITEMS as f64)
        }),
        Box::new(|| {
            theirs.reset();
            let before = cpu_ns();
            for _ in 0..ITEMS {
                black_box(theirs.alloc(make()));
            }
            Ok((cpu_ns() - before) / ITEMS as f64)
        }),
    ];
    Rounds::measure(ROUNDS, &mut arms)
}
