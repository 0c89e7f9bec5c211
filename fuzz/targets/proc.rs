//! Tables of the kernel in /proc: what it counts (interrupts, softirqs, stat, loadavg, pressure, buddyinfo), and what
//! it tells of a process and its memory (status, stat, maps, smaps, numa_maps) and of mounts (mountinfo), where names
//! come from whoever mapped a file or mounted something.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_host::activity::{PerCpu, cpu_ticks, cpu_ticks_of, load_1m, runnable, waited_avg10, waited_us};
use planish_host::mounts::{Mount, Table};
use planish_model::{BuddyRow, place};
use planish_sys::pagemap::{Filled, Run};

fuzz_target!(|text: &str| {
    counters(text);
    for row in BuddyRow::parse_all(text) {
        // Larger pages never fit more often, and a base page fits wherever anything does.
        let fits: Vec<u64> = (12..40).map_while(|shift| row.fitting(1 << shift, 4096)).collect();
        assert!(fits.is_sorted_by(|smaller, larger| smaller >= larger), "{row:?}: {fits:?}");
    }
    process(text);
    mounts(text);
});

fn counters(text: &str) {
    let read = PerCpu::parse(text);
    for &cpu in read.cpus() {
        assert_eq!(read.growth(&read, cpu).count(), 0, "nothing grows in no time");
        let from_nothing = PerCpu::default();
        for (name, count) in read.growth(&from_nothing, cpu) {
            assert_eq!(read.count(name, cpu), Some(count));
        }
        let _ = cpu_ticks_of(text, cpu);
    }
    if let Some(ticks) = cpu_ticks(text) {
        assert!(ticks.idle <= ticks.total && ticks.steal <= ticks.total);
    }
    let _ = (runnable(text), load_1m(text), waited_us(text), waited_avg10(text));
}

/// Who names the places of mounts and who reads them agree, and a name leads back to its mount.
fn mounts(text: &str) {
    let all = Mount::all(text);
    let table = Table::of(&all);
    for name in table.names() {
        let mount = table.get(name).expect("it is listed");
        assert!(all.contains(mount), "{mount:?}");
        assert_eq!(place::mount_name(mount.path()), name);
        let point = place::mount_point(&format!("{}{name}/atime", place::MOUNTS)).expect("a path");
        assert_eq!(place::mount_name(&point), name, "{mount:?}");
        let _ = (mount.access_time(), mount.huge());
    }
}

fn process(text: &str) {
    if let Ok(regions) = planish_residency::parse_smaps(text) {
        // The headers of smaps are the lines of maps.
        let is_header = |line: &&str| !line.split(' ').next().is_some_and(|word| word.ends_with(':'));
        let headers: Vec<&str> = text.lines().filter(is_header).collect();
        if let Ok(areas) = planish_residency::parse_maps(&headers.join("\n")) {
            assert_eq!(areas.len(), regions.len(), "{text:?}");
        }
    }
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
    let ranges: Vec<_> = areas.iter().map(|area| area.range.clone()).collect();
    for piece in planish_residency::join(&ranges, &runs) {
        let area = &areas[piece.area];
        assert!(area.range.start <= piece.range.start && piece.range.end <= area.range.end);
        assert!(!piece.range.is_empty());
        let _ = (area.extent(), area.is_jit());
    }
}
