//! Samples of every format, from whoever recorded them: the first byte chooses a format, or none. Pins, which come with
//! a repository, too.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use planish_profile::pin::Pin;
use planish_profile::{Format, ImportOptions, Program, file, import, perf_data};

/// The fuzzer's own binary: a real program for addresses and names to lie in.
static PROGRAM: LazyLock<Program> = LazyLock::new(|| {
    let bytes = std::fs::read("/proc/self/exe").expect("the fuzzer can read itself");
    Program::parse("/bin/server", &bytes).expect("an ELF file")
});

fuzz_target!(|bytes: &[u8]| {
    let Some((first, samples)) = bytes.split_first() else { return };
    let format = Format::ALL.get(usize::from(first & 0x0f)).map(|(_, format)| *format);
    let program = (first & 0x80 != 0).then(|| &*PROGRAM);
    let options = ImportOptions { format, program, event: None, stacks: true };
    let _ = perf_data::overview(samples);
    let _ = perf_data::contention(samples, &mut |_, _| None);
    let _ = perf_data::Traces::read(samples, &PROGRAM, None).map(|traces| traces.text());
    if let Some(pin) = std::str::from_utf8(samples).ok().and_then(|text| Pin::parse(text).ok()) {
        // An overlap has four digits, once it was written.
        let text = pin.text();
        assert_eq!(Pin::parse(&text).expect("what we write we read").text(), text);
    }
    if let Ok(imported) = import(samples, &options) {
        // What was read can be written, and reads the same.
        let text = file::write(&imported.profile);
        let again = file::parse(&text).expect("what we write we read");
        assert_eq!(file::write(&again), text);
    }
});
