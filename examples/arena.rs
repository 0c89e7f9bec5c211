//! The program of `arena.c` in Rust, where slices know how long they may live.
//!
//! ```text
//! cargo run --example arena
//! ```

use std::error::Error;
use std::time::Duration;

use planish_arena::{Arena, ArenaError, NodeChoice};
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
