//! Files of other tools: read as root's settings, so no text may do more than be refused.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use planish_exchange::{ImportFormat, import, recognise};
use planish_model::Catalogue;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::embedded().expect("sound"));

const FORMATS: [ImportFormat; 8] = [
    ImportFormat::Script,
    ImportFormat::Sysctl,
    ImportFormat::Tmpfiles,
    ImportFormat::Tuned,
    ImportFormat::Saptune,
    ImportFormat::KernelArgs,
    ImportFormat::Ansible,
    ImportFormat::NodeTuning,
];

fuzz_target!(|text: &str| {
    for format in FORMATS.into_iter().chain([ImportFormat::guess(text)]) {
        let _ = recognise(text, format);
        let imported = import(&CATALOGUE, "mine", text, format);
        // What was accepted is a sound profile, and its file says the same.
        let again = CATALOGUE.parse_profile("mine.toml", &imported.to_toml()).expect("a profile");
        assert_eq!(again, imported.profile);
    }
});
