//! Files of other tools: read as root's settings, so no text may do more than be refused.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use planish_exchange::{ImportFormat, import, recognise};
use planish_model::Catalogue;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::embedded().expect("sound"));

const FORMATS: [ImportFormat; 10] = [
    ImportFormat::Script,
    ImportFormat::Sysctl,
    ImportFormat::Tmpfiles,
    ImportFormat::Tuned,
    ImportFormat::Saptune,
    ImportFormat::KernelArgs,
    ImportFormat::Ansible,
    ImportFormat::NodeTuning,
    ImportFormat::Udev,
    ImportFormat::Unit,
];

fuzz_target!(|text: &str| {
    assert!(FORMATS.contains(&ImportFormat::guess(text)));
    for format in FORMATS {
        let _ = recognise(text, format);
        let imported = import(&CATALOGUE, "mine", text, format);
        let accepted = imported.lines.iter().filter(|line| line.is_accepted()).count();
        assert!(imported.profile.want.len() <= accepted, "{:?}", imported.profile);
        assert!(imported.lines.iter().all(|line| line.is_accepted() || line.reason.is_some()), "no reason");
        // The empty profile is the same for all, and reading it is what takes long.
        if accepted > 0 {
            // What was accepted is a sound profile, and its file says the same.
            let again = CATALOGUE.parse_profile("mine.toml", &imported.to_toml()).expect("a profile");
            assert_eq!(again, imported.profile);
        }
    }
});
