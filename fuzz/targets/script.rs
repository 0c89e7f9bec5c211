//! Scripts of pgbench, as `prove postgres --workload` takes them: half understood, one would measure something else.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_trial::raw::script;

fuzz_target!(|text: &str| {
    let Ok(first) = script(text, 7, 1) else { return };
    assert_eq!(script(text, 7, 1).expect("it was read before"), first, "a seed is a work");
    // Of a larger database a number may become too large, and then it is said.
    let _ = script(text, 7, u64::MAX).expect("it was read before");
    let Ok(statements) = first else { return };
    assert!(!statements.is_empty() && statements.iter().all(|statement| !statement.is_empty()));
    if !text.contains(':') {
        let is_there = |line: &str| text.lines().any(|own| own.trim() == line.trim());
        assert!(statements.iter().flat_map(|statement| statement.lines()).all(is_there), "{statements:?}");
    }
});
