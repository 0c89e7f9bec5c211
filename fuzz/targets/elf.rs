//! Programs: files that users name, built by any linker or broken on the way.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_profile::origins::origins;
use planish_profile::{Allows, Program, Rewritable, build_id, marked_range, same_outside};
use std::io::Cursor;

fuzz_target!(|bytes: &[u8]| {
    let Ok(program) = Program::parse("fuzzed", bytes) else { return };
    for function in program.functions() {
        let _ = program.by_name(&function.name);
        let _ = program.at(function.address);
    }
    let addresses: Vec<u64> = program.functions().iter().map(|function| function.address).collect();
    if let Ok(found) = origins(bytes, &program, &addresses) {
        assert_eq!(found.len(), addresses.len());
        assert!(found.iter().flatten().all(|origin| !origin.frames.is_empty()));
    }
    let huge_bytes = 2 << 20;
    if let Ok(allows) = Allows::parse(bytes, huge_bytes) {
        assert!(allows.whole_bytes <= allows.text_bytes, "{allows:?}");
        assert_eq!(allows.build_id, program.build_id.is_some());
    }
    if let Ok(Some(range)) = marked_range(&program, bytes) {
        assert!(range.start < range.end);
    }
    if let Ok(found) = Rewritable::parse(bytes, &program) {
        assert!(found.label_tables.iter().all(|index| (*index as usize) < program.functions().len()));
    }
    let _ = same_outside(bytes, bytes);
    let _ = build_id(Cursor::new(bytes));
    let _ = (program.by_name("main/a.c/1"), program.address_of(64), program.holds_code(u64::MAX));
});
