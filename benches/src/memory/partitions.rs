//! A million rows of 28 bytes in 278 partitions, one an hour: each partition with a bump on one arena, beside one
//! region of 32 MB for each partition, faulted in before it is used, which is how an engine of this kind does it.
//!
//! Each side runs in a process of its own, which tells how long it took and how much more it then had resident.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use planish_arena::{Arena, Growth};

use super::{first_line, measured, room};
use crate::rounds::{Arm, Rounds};
use crate::row::{Figure, Limit, Rows};

const ROWS: u32 = 1_000_000;
const ROWS_PER_PARTITION: u32 = 3600;
const PARTITIONS: usize = ROWS.div_ceil(ROWS_PER_PARTITION) as usize;
/// Rows that a partition takes memory for at once.
const SEGMENT_ROWS: usize = 64;
const REGION_BYTES: usize = 32 << 20;
/// Each takes seconds, for it has nine gigabytes faulted in.
const ROUNDS: usize = 6;
const RESIDENT_MAX: f64 = 1.3;
const RATIO_MIN: f64 = 20.0;

/// A row of 28 bytes: time, symbol, price, size and the like.
type Row = [u32; 7];

/// Adds the rows.
pub fn measure(rows: &mut Rows) {
    let data_bytes = f64::from(ROWS) * size_of::<Row>() as f64;
    let one = run("arena");
    rows.add_with_note(
        "1M rows, 278 partitions: resident / data",
        "ratio",
        (Limit::AtMost, RESIDENT_MAX),
        || {
            let outcome = one.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))?;
            let note = format!("{:.1} MB for {:.1} MB", outcome.resident_bytes / 1e6, data_bytes / 1e6);
            Ok((Figure::exact(outcome.resident_bytes / data_bytes), note))
        },
    );
    rows.beside("1M rows, 278 partitions, blocks as they are by default: resident / data", "ratio", || {
        Ok(Figure::exact(run("arena-blocks")?.resident_bytes / data_bytes))
    });
    rows.add_with_note("1M rows: a 32 MB region each / arena", "ratio", (Limit::AtLeast, RATIO_MIN), || {
        room((PARTITIONS * REGION_BYTES) as u64)?;
        let arm = |role: &'static str| -> Arm<'_> {
            Box::new(move || {
                if role == "regions" {
                    // Others may have taken memory since.
                    room((PARTITIONS * REGION_BYTES) as u64)?;
                }
                Ok(run(role)?.seconds)
            })
        };
        let rounds = Rounds::measure(ROUNDS, &mut [arm("regions"), arm("arena")])?;
        let note = format!("{:.1} ms, regions {:.0} ms", rounds.median(1) * 1e3, rounds.median(0) * 1e3);
        Ok((rounds.over(0, 1)?, note))
    });
}

struct Outcome {
    seconds: f64,
    resident_bytes: f64,
}

/// One run of a side in a process of its own.
fn run(role: &str) -> Result<Outcome> {
    let mut child = measured(role).spawn().context("start the process that is measured")?;
    let line = first_line(&mut child);
    let status = child.wait().context("wait for it")?;
    let line = line?;
    ensure!(status.success(), "the process with {role} left with {status}");
    let numbers: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [seconds, resident_bytes] = numbers[..] else { bail!("it said {line:?}") };
    Ok(Outcome { seconds, resident_bytes })
}

/// The measured side: says seconds and resident bytes, once all rows are there and were read back.
pub fn serve(role: &str) -> Result<()> {
    let (before, start) = (resident_bytes()?, Instant::now());
    let (seconds, resident, sum) = match role {
        "arena" | "arena-blocks" => {
            let arena =
                Arena::builder().growth(Growth { first_bytes: 2 << 20, cap_bytes: 2 << 20 }).build()?;
            // A partition has 100 kB at last: whoever knows that wastes less.
            let small = Growth { first_bytes: 4 << 10, cap_bytes: 16 << 10 };
            let blocks = if role == "arena" { small } else { Growth::BLOCKS };
            let bumps: Vec<_> = (0..PARTITIONS).map(|_| arena.bump(blocks)).collect();
            let mut partitions: Vec<Vec<&mut [Row]>> = bumps.iter().map(|_| Vec::new()).collect();
            for row in 0..ROWS {
                let partition = (row / ROWS_PER_PARTITION) as usize;
                let at = (row % ROWS_PER_PARTITION) as usize % SEGMENT_ROWS;
                let segments = &mut partitions[partition];
                if at == 0 {
                    segments.push(bumps[partition].alloc_slice(SEGMENT_ROWS)?);
                }
                segments.last_mut().expect("it was just pushed")[at] = row_of(row);
            }
            let end = (start.elapsed(), resident_bytes()?);
            let sum = partitions.iter().flatten().flat_map(|segment| segment.iter()).map(sum_of).sum::<u64>();
            (end.0, end.1, sum)
        }
        _ => {
            // Written all over, as such an engine does: that is what faults it in.
            let mut regions: Vec<Vec<u8>> = (0..PARTITIONS).map(|_| vec![u8::MAX; REGION_BYTES]).collect();
            for row in 0..ROWS {
                let at = (row % ROWS_PER_PARTITION) as usize * size_of::<Row>();
                let region = &mut regions[(row / ROWS_PER_PARTITION) as usize];
                for (place, word) in region[at..at + size_of::<Row>()].chunks_exact_mut(4).zip(row_of(row)) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
            }
            let end = (start.elapsed(), resident_bytes()?);
            (end.0, end.1, sum_of_regions(&regions))
        }
    };
    let wanted: u64 = (0..ROWS).map(|row| sum_of(&row_of(row))).sum();
    ensure!(sum == wanted, "rows are lost: {sum}, and {wanted} were stored");
    println!("{} {}", seconds.as_secs_f64(), resident.saturating_sub(before));
    Ok(())
}

fn row_of(row: u32) -> Row {
    [row, row / ROWS_PER_PARTITION, row % 97, 100, row ^ 0x5555, 7, 1]
}

fn sum_of(row: &Row) -> u64 {
    row.iter().map(|word| u64::from(*word)).sum()
}

fn sum_of_regions(regions: &[Vec<u8>]) -> u64 {
    let rows =
        |partition: usize| ROWS_PER_PARTITION.min(ROWS - partition as u32 * ROWS_PER_PARTITION) as usize;
    let word = |bytes: &[u8]| u64::from(u32::from_le_bytes(bytes.try_into().expect("four bytes")));
    let sum = |(partition, region): (usize, &Vec<u8>)| -> u64 {
        region[..rows(partition) * size_of::<Row>()].chunks_exact(4).map(word).sum()
    };
    regions.iter().enumerate().map(sum).sum()
}

fn resident_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("read /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().context("VmRSS is no number")?;
    Ok(kilobytes << 10)
}
