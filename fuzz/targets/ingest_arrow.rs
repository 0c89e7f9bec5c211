//! Streams of Arrow from any client: they may be broken, not panic, and give the same batches in pieces of any length.

#![no_main]

use std::panic;
use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use planish_ingest::ArrowDecoder;

#[path = "../shared/ingest.rs"]
mod ingest;

/// libFuzzer ends at any panic. Those of the reader of Arrow are caught by the decoder, as a broken input.
fn bear_panics_of_the_reader() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let ends = panic::take_hook();
        panic::set_hook(Box::new(move |told| {
            let of_the_reader = |file: &str| file.contains("/arrow-") || file.contains("/flatbuffers-");
            // The standard library speaks for its callers there: slices, vectors, memory that is not to be had.
            let is_std = |file: &str| file.contains("/rustc/") || file.contains("/library/");
            if !told.location().is_some_and(|at| of_the_reader(at.file()) || is_std(at.file())) {
                ends(told);
            }
        }));
    });
}

fuzz_target!(|data: &[u8]| {
    bear_panics_of_the_reader();
    ingest::hold(data, |options| Box::new(ArrowDecoder::new(ingest::target(), options)));
});
