//! What programs print and a trial reads: reports of pgbench and its progress, numbers by expression or pointer, what
//! a resident program answers, jitter as JSON, versions. Whatever it is, no figure comes of it that is no number.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_trial::postgres::Version;
use planish_trial::{Number, Sample, raw};
use std::time::Duration;

/// Where figures are looked for, as files of trials say it.
const WAYS: [(Option<&str>, Option<&str>); 6] = [
    (Some("rate: ([0-9.e+-]+)"), None),
    (Some("[0-9]+"), None),
    (Some("(?:x=|^)(.*)$"), None),
    (None, Some("")),
    (None, Some("/a")),
    (None, Some("/a/0/b~1c")),
];

fuzz_target!(|text: &str| {
    let (first, second) = text.split_once("\n\n").unwrap_or((text, text));
    for left_out in [0, 1, u64::MAX] {
        for (report, progress) in [(first, second), (second, first)] {
            sound(raw::pgbench(report, progress, Duration::from_secs(left_out)).ok());
        }
    }
    sound(raw::jitter(text).ok());
    for line in text.lines() {
        sound(raw::slice(line).ok());
        let _ = (raw::backing(line), Version::parse(line));
    }
    for (regex, pointer) in WAYS {
        let (regex, pointer) = (regex.map(str::to_owned), pointer.map(str::to_owned));
        let better = serde_json::from_str("\"lower\"").expect("a direction");
        let number = Number { name: "x".into(), unit: String::new(), better, regex, pointer };
        assert!(raw::number(&number, text).is_ok_and(f64::is_finite) || raw::number(&number, text).is_err());
    }
});

/// Every figure is a number: one that is none would be compared with others.
fn sound(sample: Option<Sample>) {
    let Some(sample) = sample else { return };
    for (name, metric) in &sample.metrics {
        assert!(metric.value.is_finite(), "{name} is {}", metric.value);
    }
    for (name, collected) in &sample.collectors {
        assert!(
            collected.value.as_ref().is_ok_and(|value| value.is_finite()) || collected.value.is_err(),
            "{name}"
        );
    }
    assert!(sample.windows.iter().chain(&sample.operations).all(|value| value.is_finite()), "{sample:?}");
}
