//! Short texts: sets of CPUs and nodes, values of knobs, patterns with holes, keys of sysctl, sizes, and what a user
//! types for them. The first line is a text of any of these kinds, the second a path that is held against it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_arena::Page;
use planish_host::Pattern;
use planish_model::{CpuForm, Cpus, Form, ValueType, place};
use planish_placement::{Wish, parse_huge, parse_numa};
use planish_sys::{CpuSet, pages::parse_pool_name};
use std::collections::BTreeSet;

fuzz_target!(|text: &str| {
    let (first, second) = text.split_once('\n').unwrap_or((text, ""));
    cpus(first);
    values(text);
    patterns(first, second);
    sizes(first);
    let _ = (parse_numa(first, &mut Wish::default()), parse_huge(first, &mut Wish::default()));
});

/// What is printed is read, as the same set, in either form; and both readers of lists agree.
fn cpus(text: &str) {
    if let Ok(set) = CpuSet::parse_list(text) {
        let again = CpuSet::parse_list(&set.to_string()).expect("what we print, we read");
        assert_eq!(set, again, "list form of {text:?}");
        let again = CpuSet::parse_mask(&set.to_mask()).expect("what we print, we read");
        assert_eq!(set, again, "mask form of {text:?}");
        if let Some(noun) = Cpus::parse(text) {
            assert!(set.iter().eq(noun.iter()), "{text:?} is {set} and {noun}");
        }
    }
    if let Ok(set) = CpuSet::parse_mask(text) {
        let again = CpuSet::parse_list(&set.to_string()).expect("what we print, we read");
        assert_eq!(set, again, "list form of the mask {text:?}");
    }
    if let Some(noun) = Cpus::parse(text) {
        assert_eq!(Cpus::parse(&noun.to_string()), Some(noun));
    }
}

/// The normal form is what "ours or theirs" is decided by.
fn values(text: &str) {
    let types = [
        ValueType::Int { int: "pages".into(), min: Some(-1), max: Some(1 << 40), words: vec!["n/a".into()] },
        ValueType::Ints { ints: "bytes".into(), count: 3, min: Some(1), max: Some(1 << 31), ascending: true },
        ValueType::Choice { choice: vec!["always".into(), "madvise".into(), "never".into()] },
        ValueType::Flag { flag: true },
        ValueType::Cpus { cpus: CpuForm::List, empty: true },
        ValueType::Cpus { cpus: CpuForm::Mask, empty: false },
        ValueType::Directives { directives: vec!["CPUAffinity".into(), "NUMAMask".into()] },
        ValueType::Text { text: true },
        ValueType::Form { form: Form::ThpAnon },
        ValueType::Form { form: Form::NodeBytes },
        ValueType::BootCpus { boot_cpus: vec!["domain".into()] },
    ];
    for kind in types {
        let normal = kind.normal(text);
        assert_eq!(kind.normal(&normal), normal, "the normal form of {text:?} as {kind:?} is not stable");
        assert!(kind.same(text, &normal), "{text:?} is not the same as its normal form");
        if kind.validate(text).is_ok() {
            kind.validate(&normal).expect("the normal form of a legal value is legal");
        }
    }
}

/// Patterns come from knob files, and from a user's own.
fn patterns(pattern: &str, path: &str) {
    if let Ok(parsed) = Pattern::parse(pattern) {
        assert_eq!(parsed.as_str(), pattern);
        let captures = parsed.captures(path);
        if let Some(literal) = parsed.literal() {
            assert_eq!(captures.is_some(), literal == path, "{pattern:?} against {path:?}");
        }
    }
    if let Some(holes) = place::captures(pattern, path) {
        let names: BTreeSet<&str> = holes.iter().map(|(name, _)| *name).collect();
        let plain = pattern.matches('{').count() == holes.len() && !path.contains('{');
        if plain && names.len() == holes.len() {
            assert_eq!(place::fill(pattern, &holes), path, "{pattern:?} with {holes:?}");
        }
    }
    assert!(place::matches("*", path));
    let is_literal = !pattern.contains(['*', '?']);
    assert!(!is_literal || place::matches(pattern, path) == (pattern == path), "{pattern:?} {path:?}");
    assert!(place::of_sysctl(pattern).starts_with("/proc/sys/"));
    let _ = place::of_line(pattern);
}

fn sizes(text: &str) {
    if let Ok(Page::HugeTlb(bytes)) = text.parse() {
        assert!(bytes.is_power_of_two());
        assert_eq!(format!("{bytes}").parse(), Ok(Page::HugeTlb(bytes)));
    }
    if let Some(bytes) = parse_pool_name(text) {
        assert_eq!(parse_pool_name(&format!("hugepages-{}kB", bytes / 1024)), Some(bytes));
    }
}
