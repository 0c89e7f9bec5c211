//! Every form of an order through the linker that it is for: the functions must lie as they were ordered.

#![expect(clippy::disallowed_methods, reason = "tests compile and link programs of their own")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use planish_order::emit::{Form, hot_range, write};
use planish_order::flags::{Builder, Compiler, Linker, Wishes, flags, recipe};
use planish_order::{ChooseOptions, Kind, Subject, choose};
use planish_profile::{Allows, CallProfile, ImportOptions, Program, import};
use planish_skip::skip;

const FUNCTIONS: usize = 60;

/// Every sixth function is hot and calls the next hot one; they lie among cold ones.
fn source() -> String {
    let mut text = String::from("volatile int sink;\n");
    for index in 0..FUNCTIONS {
        let _ = writeln!(text, "int f{index}(int);");
    }
    for index in 0..FUNCTIONS {
        let callee = (index + 6) % FUNCTIONS;
        let _ = writeln!(
            text,
            "__attribute__((noinline)) int f{index}(int x) {{\n\
             sink += x * {index}; sink ^= x; return x > 0 ? f{callee}(x - 1) + 1 : 0; }}"
        );
    }
    text + "int main(int c, char **v) { return f0(c) + f1(c) + f2(c); }\n"
}

/// Stacks of the hot functions, as `perf script` would be folded.
fn stacks() -> String {
    let mut text = String::new();
    for index in (0..FUNCTIONS).step_by(6) {
        let _ = writeln!(text, "main;f{};f{index} {}", (index + FUNCTIONS - 6) % FUNCTIONS, 1000 + index * 7);
    }
    text
}

fn built(folder: &Path, flags: &[&str]) -> Result<Program, String> {
    let mut command = Command::new("cc");
    command.current_dir(folder).args(["-O1", "-ffunction-sections", "-o", "prog", "main.c"]).args(flags);
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).lines().take(3).collect::<Vec<_>>().join("; "));
    }
    Program::parse("prog", &fs::read(folder.join("prog")).expect("it was linked"))
        .map_err(|error| error.to_string())
}

/// A short walk: what these tests ask does not depend on it.
fn quick() -> ChooseOptions {
    ChooseOptions { fetches: 20_000, ..ChooseOptions::on_pages(4096) }
}

struct Case {
    folder: tempfile::TempDir,
    program: Program,
    profile: CallProfile,
}

fn case(name: &str) -> Option<Case> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("main.c"), source()).expect("the folder can be written");
    let program = match built(folder.path(), &[]) {
        Ok(program) => program,
        Err(why) => {
            skip(name, &why);
            return None;
        }
    };
    let options = ImportOptions { program: Some(&program), ..ImportOptions::default() };
    let profile = import(stacks().as_bytes(), &options).expect("stacks").profile;
    Some(Case { folder, program, profile })
}

/// Orders by density, links with the file, and tells how the hot functions lie.
fn linked(name: &str, form: Form, flags: &dyn Fn(&Path, String) -> Vec<String>) {
    let Some(Case { folder, program, profile }) = case(name) else { return };
    let subject = Subject::new(&profile, &program).expect("a subject");
    let choice = choose(&subject, None, Some(Kind::Density), &quick());
    let order = &choice.chosen().order;
    let text = write(form, order, &subject, &program);
    let flags = flags(folder.path(), text);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let again = match built(folder.path(), &flags) {
        Ok(again) => again,
        Err(why) => return skip(name, &why),
    };
    let wanted: Vec<&str> = order
        .iter()
        .map(|index| program.functions()[subject.functions[*index as usize] as usize].name.as_str())
        .filter(|function| *function != "main")
        .collect();
    let address =
        |name: &str| again.functions()[again.by_name(name).expect("it is still there") as usize].address;
    let addresses: Vec<u64> = wanted.iter().map(|name| address(name)).collect();
    assert!(addresses.is_sorted(), "{name}: {wanted:?} lie at {addresses:x?}");
    let cold =
        (0..FUNCTIONS).map(|index| format!("f{index}")).filter(|name| !wanted.contains(&name.as_str()));
    let range = addresses[0]..*addresses.last().expect("some are hot");
    assert!(
        cold.map(|name| address(&name)).all(|cold| !range.contains(&cold)),
        "{name}: cold ones lie among them"
    );
    let (first, last) = hot_range(order, &subject, &program).expect("they are global");
    assert!(address(first) <= address(last));
}

fn file(folder: &Path, text: String) -> String {
    let path = folder.join("order");
    fs::write(&path, text).expect("the folder can be written");
    path.display().to_string()
}

/// Flags that make `cc` link with the lld of the Rust toolchain.
fn lld() -> Vec<String> {
    let text = |args: &[&str]| {
        let output = Command::new("rustc").args(args).output().expect("rustc built this test");
        String::from_utf8(output.stdout).expect("a path").trim().to_owned()
    };
    let (root, host) = (text(&["--print", "sysroot"]), text(&["--print", "host-tuple"]));
    vec!["-fuse-ld=lld".into(), format!("-B{root}/lib/rustlib/{host}/bin/gcc-ld")]
}

#[test]
fn lld_lays_symbols_as_ordered() {
    linked("lld_lays_symbols_as_ordered", Form::Symbols, &|folder, text| {
        let file = file(folder, text);
        [lld(), vec![format!("-Wl,--symbol-ordering-file={file}")]].concat()
    });
}

#[test]
fn lld_takes_the_call_graph() {
    const NAME: &str = "lld_takes_the_call_graph";
    let Some(Case { folder, program, profile }) = case(NAME) else { return };
    let subject = Subject::new(&profile, &program).expect("a subject");
    let text = write(Form::CallGraph, &subject.current(), &subject, &program);
    let flags =
        [lld(), vec![format!("-Wl,--call-graph-ordering-file={}", file(folder.path(), text))]].concat();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    match built(folder.path(), &flags) {
        Ok(again) => assert!(again.by_name("f6").is_some()),
        Err(why) => skip(NAME, &why),
    }
}

#[test]
fn gold_lays_sections_as_ordered() {
    linked("gold_lays_sections_as_ordered", Form::Gold, &|folder, text| {
        vec!["-fuse-ld=gold".into(), format!("-Wl,--section-ordering-file={}", file(folder, text))]
    });
}

#[test]
fn gnu_ld_lays_what_its_script_says() {
    linked("gnu_ld_lays_what_its_script_says", Form::LinkerScript, &|folder, text| {
        let told = Command::new("cc").args(["-Wl,--verbose", "-fuse-ld=bfd"]).output().expect("cc was there");
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        let script =
            told.split("==================================================").nth(1).unwrap_or_default();
        let head = script.find("\n  .text ").and_then(|at| Some(at + script[at..].find('{')? + 1));
        let head = head.expect("a default script has .text");
        let script = format!("{}\n{text}\n{}", &script[..head], &script[head..]);
        vec!["-fuse-ld=bfd".into(), format!("-Wl,-T,{}", file(folder, script))]
    });
}

#[test]
fn gnu_ld_2_43_gets_statements_of_text() {
    // No linker of that version is packaged for the machines that this is tested on: the text is compared.
    const NAME: &str = "gnu_ld_2_43_gets_statements_of_text";
    let Some(Case { program, profile, .. }) = case(NAME) else { return };
    let subject = Subject::new(&profile, &program).expect("a subject");
    let f6 = subject.functions.iter().position(|index| program.functions()[*index as usize].name == "f6");
    let order = [u32::try_from(f6.expect("f6 is hot")).expect("a small index")];
    let text = write(Form::GnuLd, &order, &subject, &program);
    assert_eq!(text, ".text : {\n  *(.text.f6 .text.hot.f6)\n}\n");
    assert_eq!(write(Form::Bolt, &order, &subject, &program), "f6\n");
}

#[test]
fn a_near_tie_keeps_the_previous_order() {
    const NAME: &str = "a_near_tie_keeps_the_previous_order";
    let Some(Case { program, profile, .. }) = case(NAME) else { return };
    let subject = Subject::new(&profile, &program).expect("a subject");
    let previous = subject.previous(["f54", "f12", "nothing", "f12"].into_iter(), &program);
    assert_eq!(previous.len(), subject.functions.len());
    let options = ChooseOptions { margin: 0.5, ..quick() };
    let choice = choose(&subject, Some(previous.clone()), None, &options);
    assert_eq!((choice.chosen().kind, &choice.chosen().order), (Kind::Previous, &previous));
    let names: Vec<&str> = previous
        .iter()
        .map(|index| program.functions()[subject.functions[*index as usize] as usize].name.as_str())
        .collect();
    assert_eq!(names[..2], ["f54", "f12"]);
}

#[test]
fn flags_for_huge_pages_make_text_that_fits_them() {
    const NAME: &str = "flags_for_huge_pages_make_text_that_fits_them";
    const HUGE_BYTES: u64 = 2 << 20;
    let Some(Case { folder, .. }) = case(NAME) else { return };
    let allows = || {
        let linked = fs::read(folder.path().join("prog")).expect("it was linked");
        Allows::parse(&linked, HUGE_BYTES).expect("an ELF file")
    };
    built(folder.path(), &["-pie", "-fPIE", "-Wl,-z,max-page-size=4096"]).expect("it was linked before");
    assert!(!allows().aligned, "a program that can be loaded anywhere was aligned to base pages");
    for linker in [Linker::Lld, Linker::Bfd, Linker::Gold] {
        let wishes =
            Wishes { huge_bytes: Some(HUGE_BYTES), frame_pointers: true, bolt: true, ..Wishes::default() };
        let flags = flags(Compiler::Gcc, linker, &wishes);
        let directory = lld().pop().expect("where lld is");
        let all: Vec<&str> = flags.compile.iter().chain(&flags.link).map(String::as_str).collect();
        let all = [&all[..], &["-pie", "-fPIE", &directory]].concat();
        if let Err(why) = built(folder.path(), &all) {
            skip(NAME, format!("{linker:?}: {why}"));
            continue;
        }
        let allows = allows();
        assert!(allows.congruent && allows.aligned && allows.relocations, "{linker:?}: {allows:?}");
        assert!(
            allows.symbols > FUNCTIONS && allows.text_bytes > 0 && !allows.text_relocations,
            "{allows:?}"
        );
    }
}

#[test]
fn the_recipe_for_make_builds_by_the_order() {
    const NAME: &str = "the_recipe_for_make_builds_by_the_order";
    let Some(Case { folder, program, profile }) = case(NAME) else { return };
    let subject = Subject::new(&profile, &program).expect("a subject");
    let choice = choose(&subject, None, Some(Kind::Weight), &quick());
    let order = &choice.chosen().order;
    let text = write(Form::Symbols, order, &subject, &program);
    let wishes = Wishes { order: Some(file(folder.path(), text)), ..Wishes::default() };
    let (_, lines) = recipe(Builder::Make, &flags(Compiler::Gcc, Linker::Lld, &wishes));
    let directory = lld().pop().expect("where lld is");
    let rules = format!(
        "{lines}LDFLAGS += {directory}\nprog: main.c\n\tcc -O1 $(CFLAGS) main.c -o prog $(LDFLAGS)\n"
    );
    fs::write(folder.path().join("Makefile"), rules).expect("the folder can be written");
    let made = Command::new("make").args(["-B", "prog"]).current_dir(folder.path()).output();
    if !made.as_ref().is_ok_and(|output| output.status.success()) {
        return skip(NAME, "no make, or no lld");
    }
    let linked = fs::read(folder.path().join("prog")).expect("make linked");
    let again = Program::parse("prog", &linked).expect("an ELF file");
    let address = |index: &u32| {
        let name = &program.functions()[subject.functions[*index as usize] as usize].name;
        again.functions()[again.by_name(name).expect("it is still there") as usize].address
    };
    assert!(order.iter().map(address).collect::<Vec<_>>().is_sorted());
}
