//! CPU and node sets: what the kernel prints, and what a user types, in list and mask form.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_sys::CpuSet;

fuzz_target!(|text: &str| {
    if let Ok(set) = CpuSet::parse_list(text) {
        let again = CpuSet::parse_list(&set.to_string()).expect("what we print, we read");
        assert_eq!(set, again, "list form of {text:?}");
        let again = CpuSet::parse_mask(&set.to_mask()).expect("what we print, we read");
        assert_eq!(set, again, "mask form of {text:?}");
    }
    if let Ok(set) = CpuSet::parse_mask(text) {
        let again = CpuSet::parse_list(&set.to_string()).expect("what we print, we read");
        assert_eq!(set, again, "list form of the mask {text:?}");
    }
});
