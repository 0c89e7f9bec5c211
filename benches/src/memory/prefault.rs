//! Faulting memory in: an arena with all that it does about it (it looks for room, faults in, reads back), beside
//! threads that share out a fresh mapping and call MADV_POPULATE_WRITE, as many as are best here, each once for all of
//! its share or in pieces: within one long call a thread that begins waits for the lock of the mappings.
//!
//! By the clock, for to use several CPUs is the point. A guest's memory is its host's to give: the first round, which
//! does not count, has it backed.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use planish_arena::{Arena, Fallback, Page, Preference};
use planish_sys::{Advice, MapOptions, PageRequest, map_anonymous};

use super::room;
use crate::rounds::{Arm, Rounds};
use crate::row::{Limit, Rows};

const BYTES: usize = 1 << 30;
const ROUNDS: usize = 25;
/// What a thread asks for at once: all of its share, or a piece.
const PIECES_BYTES: [usize; 3] = [usize::MAX, 64 << 20, 8 << 20];
/// Speed of ours over theirs.
const RATIO_MIN: f64 = 0.9;

/// Adds the rows.
pub fn measure(rows: &mut Rows) {
    for (page, request, name) in [
        (Page::Base, PageRequest::Base, "base pages"),
        (Page::Thp, PageRequest::Thp, "transparent huge pages"),
    ] {
        let name = format!("prefault of 1 GiB: best of N threads / arena, {name}");
        rows.add_with_note(&name, "ratio", (Limit::AtLeast, RATIO_MIN), || {
            room(BYTES as u64)?;
            let counts = thread_counts();
            let others: Vec<(usize, usize)> =
                counts.iter().flat_map(|&threads| PIECES_BYTES.map(|piece| (threads, piece))).collect();
            let mut arms: Vec<Arm<'_>> = vec![Box::new(|| ours(page))];
            arms.extend(
                others.iter().map(|&(threads, piece)| -> Arm<'_> {
                    Box::new(move || theirs(request, threads, piece))
                }),
            );
            let rounds = Rounds::measure(ROUNDS, &mut arms)?;
            let best = rounds.fastest(1..arms.len());
            let (own, other) = (rounds.median(0) * 1e3, rounds.median(best) * 1e3);
            let (threads, piece) = others[best - 1];
            let pieces = if piece == usize::MAX {
                "one call each".to_owned()
            } else {
                format!("{} MiB a call", piece >> 20)
            };
            let note = format!("{own:.0} ms; {threads} threads, {pieces}: {other:.0} ms");
            Ok((rounds.over(best, 0)?, note))
        });
    }
}

/// One thread, all that there are CPUs for, and powers of two between.
fn thread_counts() -> Vec<usize> {
    let most = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut counts: Vec<usize> = (0..).map(|power| 1 << power).take_while(|&count| count < most).collect();
    counts.push(most);
    counts
}

fn ours(page: Page) -> Result<f64> {
    let builder = Arena::builder().page(Preference::From(page)).fallback(Fallback::Refuse);
    let start = Instant::now();
    let arena = builder.capacity(BYTES).build()?;
    let seconds = start.elapsed().as_secs_f64();
    drop(arena);
    Ok(seconds)
}

fn theirs(request: PageRequest, threads: usize, piece: usize) -> Result<f64> {
    let start = Instant::now();
    let mapping = map_anonymous(BYTES, MapOptions::new(request)).context("map")?;
    let share = (BYTES / threads).next_multiple_of(mapping.page_bytes());
    let populate = |thread: usize| {
        let (mut at, end) = ((thread * share).min(BYTES), ((thread + 1) * share).min(BYTES));
        while at < end {
            let next = at.saturating_add(piece).min(end);
            mapping.advise_range(at..next, Advice::PopulateWrite)?;
            at = next;
        }
        Ok::<(), planish_sys::Error>(())
    };
    thread::scope(|scope| -> Result<()> {
        let populate = &populate;
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || populate(thread))).collect();
        populate(0).context("MADV_POPULATE_WRITE")?;
        for other in others {
            other.join().expect("it does not panic").context("MADV_POPULATE_WRITE")?;
        }
        Ok(())
    })?;
    let seconds = start.elapsed().as_secs_f64();
    drop(mapping);
    Ok(seconds)
}
