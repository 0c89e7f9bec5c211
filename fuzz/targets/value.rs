//! Values as the kernel shows them: the normal form is what "ours or theirs" is decided by.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_model::ValueType;

fuzz_target!(|text: &str| {
    let types = [
        ValueType::Int { int: "pages".into(), min: Some(-1), max: Some(1 << 40) },
        ValueType::Choice { choice: vec!["always".into(), "madvise".into(), "never".into()] },
        ValueType::Flag { flag: true },
        ValueType::Text { text: true },
    ];
    for kind in types {
        let normal = kind.normal(text);
        assert_eq!(kind.normal(&normal), normal, "the normal form of {text:?} is not stable");
        assert!(kind.same(text, &normal), "{text:?} is not the same as its normal form");
        if kind.validate(text).is_ok() {
            kind.validate(&normal).expect("the normal form of a legal value is legal");
        }
    }
});
