//! Words that become lines of units: the calendar event of `install check --every`, programs, folders. What is taken
//! is one value in its one line, whatever characters it is made of.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_pipeline::{InstallCheck, Session, SessionOptions, check_units};

#[path = "../shared/folder.rs"]
mod folder;

thread_local! {
    /// Of a host without anything, which is gone by then: units are text.
    static SESSION: Session = {
        let folder = folder::Folder::new("calendar");
        let options = SessionOptions { root: Some(folder.0.clone()), ..SessionOptions::default() };
        for part in ["proc", "sys"] {
            std::fs::create_dir_all(folder.0.join(part)).expect("room for a folder");
        }
        Session::open(options).expect("a host")
    };
}

fuzz_target!(|text: &str| {
    let mut lines = text.split('\n');
    let every = lines.next().unwrap_or_default();
    let usual = || InstallCheck {
        program: "/usr/bin/planish".to_owned(),
        every: "hourly".to_owned(),
        profile: None,
        exclude: Vec::new(),
        state: None,
    };
    let word = lines.next().unwrap_or("/usr/bin/planish");
    let all = [
        InstallCheck { every: every.to_owned(), ..usual() },
        // Lines of an event too: the user's shell may hand in any.
        InstallCheck { every: text.to_owned(), ..usual() },
        InstallCheck { program: word.to_owned(), ..usual() },
        InstallCheck { state: Some(word.to_owned()), ..usual() },
        InstallCheck { profile: Some(word.to_owned()), ..usual() },
        InstallCheck { profile: Some("series".to_owned()), exclude: vec![word.to_owned()], ..usual() },
    ];
    SESSION.with(|session| {
        let count = |wanted: &InstallCheck| {
            let files = check_units(session, wanted).ok()?;
            assert!(files.iter().all(|file| !file.text.contains(|c: char| c.is_control() && c != '\n')));
            Some(files.iter().map(|file| file.text.lines().count()).collect::<Vec<_>>())
        };
        let known = count(&usual()).expect("the usual words");
        for wanted in all {
            if let Some(lines) = count(&wanted) {
                assert_eq!(lines, known, "{wanted:?}");
            }
        }
    });
});
