//! Objects of JSON from any client: they may have faults, not panic, and give the same batches in pieces of any length.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_ingest::JsonDecoder;

#[path = "../shared/ingest.rs"]
mod ingest;

fuzz_target!(|data: &[u8]| {
    ingest::hold(data, |options| Box::new(JsonDecoder::new(ingest::target(), options)));
});
