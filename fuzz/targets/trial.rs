//! Trial files, and the descriptions of recorded hosts: both are handed from machine to machine.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_host::Meta;
use planish_trial::TrialFile;

fuzz_target!(|text: &str| {
    if let Err(error) = TrialFile::parse("trial.toml", text) {
        // The message points into the text; that must hold for every text.
        assert!(!error.to_string().is_empty());
    }
    let _ = toml::from_str::<Meta>(text);
});
