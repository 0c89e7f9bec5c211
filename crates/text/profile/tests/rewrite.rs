//! What a rewriter must know of a program, and what it must leave: asked of programs that are linked here.

#![expect(clippy::disallowed_methods, reason = "tests compile and link programs of their own")]

use std::fs;
use std::process::Command;

use planish_profile::{FileKind, Program, Rewritable, same_outside};
use planish_skip::skip;

const SOURCE: &str = "
#include <stdio.h>
static int interpret(const unsigned char *at, int x) {
  static const void *const table[] = { &&more, &&less, &&end };
  goto *table[*at++];
more: x += 3; goto *table[*at++];
less: x -= 1; goto *table[*at++];
end: return x;
}
int choose(int x) { switch (x) { case 0: return puts(\"a\"); case 1: return puts(\"b\"); case 2: return 7;
  case 3: return puts(\"d\"); case 4: return puts(\"e\"); default: return 1; } }
#ifdef MORE
int more(int x) { return x; }
#endif
int main(int argc, char **argv) { return interpret((const unsigned char *) argv[1], argc) + choose(argc); }
";

fn linked(test: &str, flags: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("p.c"), SOURCE).expect("the folder can be written");
    let mut command = Command::new("cc");
    command.current_dir(folder.path()).args(["-O2", "-o", "p", "p.c"]).args(flags);
    match command.output() {
        Ok(output) if output.status.success() => Some(fs::read(folder.path().join("p")).expect("linked")),
        Ok(output) => {
            skip(test, format!("cc fails: {}", String::from_utf8_lossy(&output.stderr).trim()));
            None
        }
        Err(error) => {
            skip(test, format!("no cc: {error}"));
            None
        }
    }
}

fn looked_at(bytes: &[u8]) -> (Program, Rewritable) {
    let program = Program::parse("p", bytes).expect("an ELF file");
    let found = Rewritable::parse(bytes, &program).expect("an ELF file");
    (program, found)
}

#[test]
fn tables_of_labels_are_told_from_tables_of_jumps() {
    let name = "tables_of_labels_are_told_from_tables_of_jumps";
    let Some(bytes) = linked(name, &["-fPIE", "-pie", "-Wl,--emit-relocs"]) else { return };
    let (program, found) = looked_at(&bytes);
    let named: Vec<&str> =
        found.label_tables.iter().map(|index| program.functions()[*index as usize].name.as_str()).collect();
    assert!(named.len() == 1 && matches!(named[0], "interpret" | "main"), "{named:?}");
    assert!(found.relocations && found.is_position_independent() && !found.is_static && !found.debug_info);
    assert_eq!((found.kind, found.rewritten), (FileKind::Pie, None));
    // Without the relocations nothing shows them.
    let Some(bytes) = linked(name, &["-g"]) else { return };
    let (_, found) = looked_at(&bytes);
    assert!(!found.relocations && found.label_tables.is_empty() && found.debug_info);
}

#[test]
fn programs_are_the_same_from_outside_or_told_apart_by_what_others_see() {
    let name = "programs_are_the_same_from_outside_or_told_apart_by_what_others_see";
    let library = |more: &[&str]| linked(name, &[&["-shared", "-fPIC"], more].concat());
    let (Some(first), Some(second)) = (library(&[]), library(&["-O0"])) else { return };
    same_outside(&first, &second).expect("other code, the same symbols");
    for (other, why) in [
        (library(&["-DMORE"]), "the dynamic symbol more is new"),
        (library(&["-Wl,-soname,other.so"]), "its list of libraries changed"),
        (linked(name, &["-no-pie"]), "it is another kind of file"),
    ] {
        let Some(other) = other else { return };
        let told = same_outside(&first, &other).expect_err(why).to_string();
        assert_eq!(told, why);
    }
    let Some(more) = library(&["-DMORE"]) else { return };
    assert_eq!(same_outside(&more, &first).unwrap_err().to_string(), "the dynamic symbol more is missing");
    assert!(same_outside(&first, &first[..200]).is_err());
    let mut lost = first.clone();
    // `e_entry`: nowhere in the code.
    lost[24..32].copy_from_slice(&1_u64.to_le_bytes());
    assert!(same_outside(&first, &lost).unwrap_err().to_string().contains("entry 0x1"));
}
