//! Where in a program the weight of a profile lies: pages, and ranges.

use std::collections::BTreeMap;

use planish_sorted::SortSmall as _;

use crate::profile::CallProfile;
use crate::program::Program;

/// How many pages hold how much of the weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotPages {
    /// Size of a page.
    pub page_bytes: u64,
    /// The fewest pages that hold 90 % of the weight.
    pub p90: usize,
    /// The fewest pages that hold 99 % of the weight.
    pub p99: usize,
    /// Pages that hold any.
    pub all: usize,
    /// Pages that the functions touch which together hold 99 % of the weight, the heaviest first.
    pub of_functions_p99: usize,
}

/// Counts the pages of a program that hold the weight of a profile. Functions that the program does not have are
/// left out; one without offsets has its weight spread evenly over its bytes.
#[must_use]
pub fn hot_pages(profile: &CallProfile, program: &Program, page_bytes: u64) -> HotPages {
    let mut weights: BTreeMap<u64, f64> = BTreeMap::new();
    let mut ranges = Vec::new();
    for (function, start, bytes) in placed(profile, program) {
        spread(function, start, bytes, |address, weight| {
            *weights.entry(address / page_bytes).or_default() += weight;
        });
        ranges.push((function.weight, start / page_bytes, (start + bytes.max(1) - 1) / page_bytes));
    }
    weights.retain(|_, weight| *weight > 0.0);
    let mut sorted: Vec<f64> = weights.into_values().collect();
    sorted.sort_small_by(|left, right| right.total_cmp(left));
    let total: f64 = sorted.iter().sum();
    let needed = |share: f64| {
        let mut sum = 0.0;
        // The sum of many parts may miss the whole by rounding.
        let reached = |weight: &f64| {
            sum += weight;
            sum >= total * share * (1.0 - 1e-12)
        };
        sorted.iter().position(reached).map_or(sorted.len(), |last| last + 1)
    };
    HotPages {
        page_bytes,
        p90: needed(0.90),
        p99: needed(0.99),
        all: sorted.len(),
        of_functions_p99: pages_of(&mut ranges, 0.99),
    }
}

/// Pages touched by the heaviest ranges that hold a share of the weight.
fn pages_of(ranges: &mut [(u64, u64, u64)], share: f64) -> usize {
    ranges.sort_unstable_by(|left, right| right.cmp(left));
    let total: f64 = ranges.iter().map(|(weight, ..)| *weight as f64).sum();
    let mut pages = std::collections::BTreeSet::new();
    let mut sum = 0.0;
    for (weight, first, last) in ranges.iter().filter(|(weight, ..)| *weight > 0) {
        if sum >= total * share {
            break;
        }
        pages.extend(*first..=*last);
        sum += *weight as f64;
    }
    pages.len()
}

/// The share of a profile's weight at addresses that are asked for; `None` where the program has none of it.
#[must_use]
pub fn share_where(profile: &CallProfile, program: &Program, wanted: impl Fn(u64) -> bool) -> Option<f64> {
    let (mut inside, mut total) = (0.0, 0.0);
    for (function, start, bytes) in placed(profile, program) {
        spread(function, start, bytes, |address, weight| {
            total += weight;
            if wanted(address) {
                inside += weight;
            }
        });
    }
    (total > 0.0).then_some(inside / total)
}

/// Functions of the profile with their address and size in the program. Offsets of another build are left out.
fn placed<'a>(
    profile: &'a CallProfile,
    program: &'a Program,
) -> impl Iterator<Item = (Placed<'a>, u64, u64)> {
    let same_build = profile.is_of_build(program.build_id.as_deref());
    profile.functions.iter().filter_map(move |function| {
        let found = &program.functions()[program.by_name(&function.name)? as usize];
        let hits = if same_build { function.hits.as_slice() } else { &[] };
        Some((Placed { weight: function.weight, hits }, found.address, found.bytes))
    })
}

/// What a function weighs, and where in it.
#[derive(Clone, Copy)]
struct Placed<'a> {
    weight: u64,
    hits: &'a [(u64, u64)],
}

/// Gives the weight of a function by address.
fn spread(function: Placed<'_>, start: u64, bytes: u64, mut give: impl FnMut(u64, f64)) {
    /// Weight without offsets is given out in pieces of a cache line.
    const PIECE_BYTES: u64 = 64;
    if !function.hits.is_empty() {
        let inside = function.hits.iter().filter(|(offset, _)| *offset < bytes);
        return inside.for_each(|(offset, weight)| give(start + offset, *weight as f64));
    }
    let pieces = bytes.div_ceil(PIECE_BYTES).max(1);
    let weight = function.weight as f64 / pieces as f64;
    (0..pieces).for_each(|piece| give(start + piece * PIECE_BYTES, weight));
}
