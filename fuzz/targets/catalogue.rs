//! Knob, profile and finding files: a user's own are read as root, so no text may do more than fail.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_model::Catalogue;

fuzz_target!(|text: &str| {
    // One input plays all three files: rows of one kind are errors in the others.
    let mut catalogue = Catalogue::default();
    let knobs = catalogue.add_knobs("knobs.toml", text);
    let profile = catalogue.add_profile("profile.toml", text);
    let findings = catalogue.add_findings("findings.toml", text);
    if knobs.is_ok() || profile.is_ok() || findings.is_ok() {
        let _ = catalogue.check();
    }
    for knob in catalogue.knobs() {
        assert!(!knob.id.as_str().is_empty(), "a knob without a name");
    }
});
