//! What the kernel tells of a process's memory: names in it come from whoever mapped the file.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = planish_residency::parse_smaps(text);
    let _ = planish_residency::parse_rollup(text);
    let _ = planish_residency::parse_numa_maps(text);
    let _ = planish_residency::parse_status(text);
});
