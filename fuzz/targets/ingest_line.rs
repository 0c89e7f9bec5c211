//! Line protocol from any client: it may have faults, not panic, and gives the same batches in pieces of any length.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_ingest::LineDecoder;

#[path = "../shared/ingest.rs"]
mod ingest;

fuzz_target!(|data: &[u8]| {
    ingest::hold(data, |options| Box::new(LineDecoder::new(vec![ingest::target()], options)));
});
