//! What the kernel tells of a process's memory: names in it come from whoever mapped the file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_sys::pagemap::{Filled, Run};

fuzz_target!(|text: &str| {
    let _ = planish_residency::parse_smaps(text);
    let _ = planish_residency::parse_rollup(text);
    let _ = planish_residency::parse_numa_maps(text);
    let _ = planish_residency::parse_status(text);
    let _ = planish_residency::parse_stat(text);
    let Ok(mut areas) = planish_residency::parse_maps(text) else { return };
    // The kernel's order; then its own mappings as runs of pages, each shifted by half its length.
    areas.sort_by_key(|area| area.range.start);
    let shifted = areas.iter().map(|area| {
        let half = area.bytes() / 2;
        area.range.start.saturating_add(half)..area.range.end.saturating_add(half)
    });
    let runs: Vec<Run> = shifted.map(|range| Run { range, filled: Filled::Base }).collect();
    for piece in planish_residency::join(&areas, &runs) {
        let area = &areas[piece.area];
        assert!(area.range.start <= piece.range.start && piece.range.end <= area.range.end);
        assert!(!piece.range.is_empty());
        let _ = (area.extent(), area.is_jit());
    }
});
