//! Programs: files that users name, built by any linker or broken on the way.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_profile::Program;

fuzz_target!(|bytes: &[u8]| {
    let Ok(program) = Program::parse("fuzzed", bytes) else { return };
    for function in program.functions() {
        let _ = program.by_name(&function.name);
        let _ = program.at(function.address);
    }
    let _ = (program.by_name("main/a.c/1"), program.address_of(64), program.holds_code(u64::MAX));
});
