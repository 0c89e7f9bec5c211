//! The seeds of every fuzz target, given to it again: a parser that no longer holds what it held of them is found
//! without libFuzzer, which is some minutes of C++.
//!
//! The targets are the files that libFuzzer runs (`fuzz/targets`), compiled here as modules: what they take for the
//! crate `libfuzzer_sys` is this program.

#![expect(clippy::disallowed_methods, reason = "seeds are files of this checkout")]
#![expect(
    clippy::duplicate_mod,
    reason = "a target has what it shares with others in itself, being a program"
)]
#![expect(unused_attributes, reason = "each target is a program of its own under libFuzzer: `no_main`")]

extern crate self as libfuzzer_sys;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[path = "../../../../../fuzz/targets/boot.rs"]
mod boot;
#[path = "../../../../../fuzz/targets/boots.rs"]
mod boots;
#[path = "../../../../../fuzz/targets/calendar.rs"]
mod calendar;
#[path = "../../../../../fuzz/targets/call_profile.rs"]
mod call_profile;
#[path = "../../../../../fuzz/targets/cards.rs"]
mod cards;
#[path = "../../../../../fuzz/targets/catalogue.rs"]
mod catalogue;
#[path = "../../../../../fuzz/targets/command_line.rs"]
mod command_line;
#[path = "../../../../../fuzz/targets/documents.rs"]
mod documents;
#[path = "../../../../../fuzz/targets/elf.rs"]
mod elf;
#[path = "../../../../../fuzz/targets/host.rs"]
mod host;
#[path = "../../../../../fuzz/targets/image.rs"]
mod image;
#[path = "../../../../../fuzz/targets/import.rs"]
mod import;
#[path = "../../../../../fuzz/targets/ingest_arrow.rs"]
mod ingest_arrow;
#[path = "../../../../../fuzz/targets/ingest_csv.rs"]
mod ingest_csv;
#[path = "../../../../../fuzz/targets/ingest_json.rs"]
mod ingest_json;
#[path = "../../../../../fuzz/targets/ingest_line.rs"]
mod ingest_line;
#[path = "../../../../../fuzz/targets/journal.rs"]
mod journal;
#[path = "../../../../../fuzz/targets/loader.rs"]
mod loader;
#[path = "../../../../../fuzz/targets/log.rs"]
mod log;
#[path = "../../../../../fuzz/targets/output.rs"]
mod output;
#[path = "../../../../../fuzz/targets/preload.rs"]
mod preload;
#[path = "../../../../../fuzz/targets/proc.rs"]
mod proc;
#[path = "../../../../../fuzz/targets/program.rs"]
mod program;
#[path = "../../../../../fuzz/targets/redact.rs"]
mod redact;
#[path = "../../../../../fuzz/targets/salvage.rs"]
mod salvage;
#[path = "../../../../../fuzz/targets/script.rs"]
mod script;
#[path = "../../../../../fuzz/targets/symbols.rs"]
mod symbols;
#[path = "../../../../../fuzz/targets/table.rs"]
mod table;
#[path = "../../../../../fuzz/targets/trial.rs"]
mod trial;
#[path = "../../../../../fuzz/targets/words.rs"]
mod words;

/// As libFuzzer's: the body becomes a function of one input. It stands behind the targets, since they find it by the
/// path that they name.
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: &str| $body:block) => {
        pub(crate) fn replay(bytes: &[u8]) {
            let $input = $crate::text(bytes);
            $body
        }
    };
    (|$input:ident: &[u8]| $body:block) => {
        pub(crate) fn replay($input: &[u8]) $body
    };
}

/// What of an input is text, as libFuzzer hands it on: up to the first byte that is none.
pub(crate) fn text(bytes: &[u8]) -> &str {
    let end = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    std::str::from_utf8(&bytes[..end]).expect("cut where it was text")
}

fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz").join(name)
}

/// Gives every seed of a target to it, and tells each that breaks it.
fn replay(name: &str, target: fn(&[u8])) {
    let seeds = folder("seeds").join(name);
    let mut count = 0;
    let mut broken = Vec::new();
    for seed in std::fs::read_dir(&seeds).unwrap_or_else(|error| panic!("{}: {error}", seeds.display())) {
        let seed = seed.expect("a seed").path();
        let bytes = std::fs::read(&seed).expect("a seed is a file");
        if catch_unwind(AssertUnwindSafe(|| target(&bytes))).is_err() {
            broken.push(seed);
        }
        count += 1;
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(count > 0, "no seed in {}", seeds.display());
}

macro_rules! targets {
    ($($name:ident),*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            replay(stringify!($name), crate::$name::replay);
        })*
    };
}

mod seeds {
    use super::{folder, replay};

    targets!(
        boot,
        boots,
        calendar,
        call_profile,
        cards,
        catalogue,
        command_line,
        documents,
        elf,
        host,
        image,
        import,
        ingest_arrow,
        ingest_csv,
        ingest_json,
        ingest_line,
        journal,
        loader,
        log,
        output,
        preload,
        proc,
        program,
        redact,
        salvage,
        script,
        symbols,
        table,
        trial,
        words
    );

    #[test]
    fn of_every_target_are_replayed() {
        let listed = std::fs::read_dir(folder("targets")).expect("the targets").flatten();
        let mut targets: Vec<String> =
            listed.filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned())).collect();
        targets.sort();
        assert_eq!(targets, NAMES);
    }
}
