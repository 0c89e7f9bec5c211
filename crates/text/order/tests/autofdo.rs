//! Profiles for AutoFDO of real programs: the lines that a compiler tells, and LLVM's own reading of what is written.

#![expect(clippy::disallowed_methods, reason = "tests compile programs of their own")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use planish_order::Subject;
use planish_order::emit::{AutoFdo, autofdo};
use planish_profile::{CallProfile, Format, ImportOptions, Program, import};
use planish_skip::skip;
use tempfile::TempDir;

/// The brace of `scan` stands below its name: lines count from the name.
const SOURCE: &str = "\
static inline __attribute__((always_inline)) unsigned mix(unsigned x) {
    return x * 2654435761u ^ x >> 7;
}
__attribute__((noinline)) unsigned scan(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += mix(i + sum);
    return sum;
}
int main(int count, char **words) {
    (void)words;
    return (int)scan((unsigned)count * 1000);
}
";
/// What AutoFDO wants of clang.
const FOR_PROFILING: &[&str] = &["-O2", "-gline-tables-only", "-fdebug-info-for-profiling"];

/// A program of LLVM: on the path, or with the number of the newest version that is here.
fn llvm(name: &str) -> String {
    let of_version = |major: u32| format!("/usr/lib/llvm-{major}/bin/{name}");
    let newest = (14..40).rev().map(of_version).find(|path| Path::new(path).exists());
    newest.unwrap_or_else(|| name.to_owned())
}

fn compiled(name: &str, compiler: &str, flags: &[&str]) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("scan.c"), SOURCE).expect("the folder can be written");
    let mut compile = Command::new(if compiler == "clang" { llvm(compiler) } else { compiler.to_owned() });
    compile.current_dir(folder.path()).args(flags).args(["-Wl,--build-id", "-o", "prog", "scan.c"]);
    match compile.output() {
        Ok(output) if output.status.success() => {
            let program = folder.path().join("prog");
            Some((folder, program))
        }
        Ok(output) => {
            skip(name, String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Err(_) => {
            skip(name, format!("no {compiler}"));
            None
        }
    }
}

/// One sample of each byte of `scan`, 10 of the first byte of `main`, 3 calls: in BOLT's words, which have addresses.
fn sampled(path: &Path) -> (CallProfile, AutoFdo) {
    let bytes = fs::read(path).expect("the program was linked");
    let program = Program::parse("prog", &bytes).expect("an ELF file");
    let scan = &program.functions()[program.by_name("scan").expect("a function") as usize];
    let mut samples = String::from("no_lbr cycles:\n1 main 0 10\n");
    (0..scan.bytes).for_each(|offset| writeln!(samples, "1 scan {offset:x} 1").expect("a string"));
    let options = ImportOptions { program: Some(&program), ..ImportOptions::default() };
    let profile = import(samples.as_bytes(), &options).expect("a profile").profile;
    let subject = Subject::new(&profile, &program).expect("functions of the program");
    let made = autofdo(&profile, &subject, &program, &bytes).expect("debug information that can be read");
    (profile, made)
}

/// Lines of a function, without its own.
fn body<'t>(text: &'t str, function: &str) -> Vec<&'t str> {
    let head = format!("{function}:");
    let lines = text.lines().skip_while(|line| !line.starts_with(&head)).skip(1);
    lines.take_while(|line| line.starts_with(' ')).collect()
}

/// What LLVM reads of a text, written by itself.
fn of_llvm(text: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("p.afdo"), text).expect("the folder can be written");
    let merge = ["merge", "--sample", "--text", "p.afdo", "-o", "-"];
    let output = Command::new(llvm("llvm-profdata")).current_dir(folder.path()).args(merge).output().ok()?;
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn samples_stand_at_their_lines_below_what_inlined_them() {
    const NAME: &str = "samples_stand_at_their_lines_below_what_inlined_them";
    for (compiler, flags) in
        [("cc", &["-O2", "-g"][..]), ("cc", &["-O2", "-g", "-gz"]), ("clang", FOR_PROFILING)]
    {
        let Some((_folder, path)) = compiled(NAME, compiler, flags) else { continue };
        let (profile, made) = sampled(&path);
        let lines = body(&made.text, "scan");
        let call = lines.iter().position(|line| line.starts_with(" 4") && line.contains(": mix:"));
        let call =
            call.unwrap_or_else(|| panic!("{compiler}: mix is inlined four lines below scan\n{}", made.text));
        assert!(lines[call + 1].starts_with("  1: "), "{compiler}: {}", made.text);
        assert!(
            body(&made.text, "main").iter().all(|line| line.starts_with(" 0: ") || line.starts_with(" 2: "))
        );
        assert!(made.placed > 0.9 && made.functions == 2, "{compiler}: {made:?}");
        // What we write we read: the same weights, but for the bytes that have no line.
        let again = import(made.text.as_bytes(), &ImportOptions::default()).expect("a profile");
        assert_eq!(again.format, Format::AutoFdo);
        assert_eq!(again.profile.functions[0].name, "scan");
        let known = made.placed * profile.named() as f64;
        if compiler == "cc" {
            assert_eq!(again.profile.named(), known.round() as u64, "{}", made.text);
        } else {
            // Lines of which clang made several copies count as often.
            assert!(again.profile.named() >= known.round() as u64, "{}", made.text);
        }
    }
}

#[test]
fn llvm_reads_what_is_written_as_it_was_meant() {
    const NAME: &str = "llvm_reads_what_is_written_as_it_was_meant";
    for (compiler, flags) in
        [("cc", &["-O2", "-g"][..]), ("clang", FOR_PROFILING), ("clang", &["-O2", "-gline-tables-only"])]
    {
        let Some((folder, path)) = compiled(NAME, compiler, flags) else { continue };
        let (_, made) = sampled(&path);
        match of_llvm(&made.text) {
            Some(text) => assert_eq!(text, made.text),
            None => skip(NAME, "no llvm-profdata"),
        }
        if compiler == "clang" {
            fs::write(folder.path().join("p.afdo"), &made.text).expect("the folder can be written");
            let uses =
                ["-O2", "-gline-tables-only", "-Werror", "-fprofile-sample-use=p.afdo", "-S", "scan.c"];
            let mut compile = Command::new(llvm("clang"));
            compile
                .current_dir(folder.path())
                .args(uses)
                .args(["-emit-llvm", "-o", "-"])
                .stderr(Stdio::inherit());
            let output = compile.output().expect("clang was there");
            let code = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && code.contains("!\"function_entry_count\""), "{code}");
        }
    }
}

#[test]
fn a_program_without_lines_gives_no_function() {
    const NAME: &str = "a_program_without_lines_gives_no_function";
    let Some((_folder, path)) = compiled(NAME, "cc", &["-O2", "-g0"]) else { return };
    let (_, made) = sampled(&path);
    assert_eq!((made.functions, made.text.as_str(), made.placed), (0, "", 0.0));
}
