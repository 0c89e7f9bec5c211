//! CSV from any client, with a header or without: it may have faults, not panic, and gives the same batches in pieces
//! of any length.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_ingest::{CsvDecoder, Header};

#[path = "../shared/ingest.rs"]
mod ingest;

fuzz_target!(|data: &[u8]| {
    let names = ["s", "x", "d", "t"].map(str::to_owned).to_vec();
    for header in [Header::First, Header::Named(names)] {
        ingest::hold(data, |options| {
            Box::new(CsvDecoder::new(ingest::target(), header.clone(), b',', options))
        });
    }
});
