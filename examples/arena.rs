//! The program of `arena.c` in Rust, where slices know how long they may live.
//!
//! ```text
//! cargo run --example arena
//! ```

use std::error::Error;
use std::time::Duration;

use planish_arena::{Arena, ArenaError, Growth, NodeChoice};
use planish_latency::check_isolation;
use planish_sys::affinity;

/// Takes a CPU and memory beside it, works there, and says what it did not get.
pub fn main() -> Result<(), Box<dyn Error>> {
    let before = affinity::get(None)?;
    let cpu = affinity::allowed()?.last().expect("a thread runs somewhere");
    affinity::pin(&[cpu].into_iter().collect())?;
    let here = affinity::here()?;
    println!("on CPU {} of node {}", here.cpu, here.node);

    let local = || Arena::builder().capacity(4 << 20);
    let arena = match local().node(NodeChoice::Local).build() {
        // A container may forbid to choose nodes.
        Err(error @ ArenaError::Placement { .. }) => {
            println!("anywhere: {error}");
            local().build()?
        }
        outcome => outcome?,
    };

    // A column that grows where it is: it may have a billion rows one day, and has memory for those that it has.
    let mut column = Arena::builder().growing::<f64>(1_000_000_000)?;
    for row in 0..100_000 {
        column.push(f64::from(row))?;
    }
    // Names that stay, and room for one query that comes back.
    arena.alloc_slice::<u8>(1000)?[..6].copy_from_slice(b"trades");
    arena.lease::<u8>(1 << 20)?.fill(1);

    // What queries find, piece by piece: each thread has memory of its own, without a lock, and leaves it to the next.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let mut bump = arena.bump(Growth::BLOCKS);
            scope.spawn(move || {
                for query in 0..3 {
                    let rows: Result<Vec<&mut u32>, _> = (0..1000).map(|row| bump.alloc(row)).collect();
                    assert_eq!(rows.expect("memory for a thousand rows").len(), 1000, "query {query}");
                    bump.clear();
                }
            });
        }
    });
    // An engine of many threads has an arena on each node, and asks for that of the thread.
    let arenas = Arena::builder().per_node()?;
    arenas.here().alloc_slice::<u64>(1000)?.fill(1);

    let achieved = arena.achieved()?;
    println!("mapped {} bytes: {:?}", achieved.mapped_bytes, achieved.backing);
    achieved.why_not.iter().for_each(|why| println!("  not as asked for: {why}"));
    for problem in check_isolation(Duration::from_millis(50), Some(&arena))?.problems() {
        println!("  {problem}: {}", problem.cure());
    }

    let sum: f64 = column.iter().sum();
    affinity::pin(&before)?;
    println!("sum {sum}");
    if sum == 4_999_950_000.0 { Ok(()) } else { Err("the column is not what was written".into()) }
}
