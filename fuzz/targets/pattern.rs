//! Patterns with holes: they come from knob files, and from a user's own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_host::Pattern;

fuzz_target!(|text: &str| {
    // The first line is the pattern, the second a path that is held against it.
    let (pattern, path) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(parsed) = Pattern::parse(pattern) else { return };
    assert_eq!(parsed.as_str(), pattern);
    let captures = parsed.captures(path);
    if let Some(literal) = parsed.literal() {
        assert_eq!(captures.is_some(), literal == path, "{pattern:?} against {path:?}");
    }
});
