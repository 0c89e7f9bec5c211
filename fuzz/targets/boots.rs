//! The state of a trial whose arms are boots, as the next boot finds it: whatever a disk or an editor did to it, it may
//! be refused, and what is taken can be told, in JSON and as a page. Trial files with boots, too.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_pipeline::{Session, SessionOptions};
use planish_trial::{TrialFile, TrialOutcome, boots};

#[path = "../shared/folder.rs"]
mod folder;

thread_local! {
    static HERE: (folder::Folder, Session) = {
        let folder = folder::Folder::new("boots");
        for part in ["root/proc", "root/sys"] {
            std::fs::create_dir_all(folder.0.join(part)).expect("room for a folder");
        }
        let options = SessionOptions {
            root: Some(folder.0.join("root")),
            state: Some(folder.0.join("state")),
            ..SessionOptions::default()
        };
        let session = Session::open(options).expect("a host");
        std::fs::create_dir_all(session.state_folder()).expect("room for a folder");
        (folder, session)
    };
}

fuzz_target!(|text: &str| {
    let _ = TrialFile::parse("boots.toml", text);
    HERE.with(|(_, session)| {
        std::fs::write(session.state_folder().join("trial-boots.json"), text).expect("room for a file");
        let Ok(Some(outcome)) = boots::status(session) else { return };
        let told = serde_json::to_string(&outcome).expect("plain data with text keys");
        serde_json::from_str::<TrialOutcome>(&told).expect("what we write, we read");
        assert!(!planish_report::trial_html(&outcome).is_empty());
    });
});
