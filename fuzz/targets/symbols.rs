//! Symbols of a program, as it reads its own before it puts its text on huge pages: the hot range, and functions that
//! perf is told. A linker, or whoever changed the file afterwards, may have written anything.

#![no_main]

use std::slice::from_ref;

use libfuzzer_sys::fuzz_target;
use planish_hugify::Symbols;

fuzz_target!(|bytes: &[u8]| {
    let Some(symbols) = Symbols::parse(bytes) else { return };
    assert!(symbols.names_bytes() > 0, "a table of names is not empty");
    let hot = symbols.marks();
    assert!(hot.as_ref().is_none_or(|hot| hot.start < hot.end), "{hot:?}");
    let both = [0..4 << 20, 4 << 20..u64::MAX];
    let all = symbols.functions(from_ref(&(0..u64::MAX))).count();
    for ranges in [&[][..], &both[..1], &both[1..], &both[..]] {
        let mut count = 0;
        for (at, size, name) in symbols.functions(ranges) {
            let end = at.saturating_add(size);
            assert!(ranges.iter().any(|range| at < range.end && range.start < end), "{at:x} {size:x}");
            assert!(!name.contains(&0), "a name ends at the first zero");
            // It is a part of the input, and not what lies behind it.
            assert!(name.is_empty() || bytes.as_ptr_range().contains(&name.as_ptr()));
            count += 1;
        }
        assert!(count <= all, "what lies in a part lies in the whole");
    }
});
