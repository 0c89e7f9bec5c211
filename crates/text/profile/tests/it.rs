//! Readers against real programs and against perf's own reading of the same samples.

#![expect(clippy::disallowed_methods, reason = "tests compile and record programs of their own")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use planish_profile::{
    CallProfile, Edges, ImportOptions, ProfileError, Program, Weights, import, perf_data, share_where,
};
use planish_skip::skip;
use tempfile::TempDir;

const MAIN: &str = r#"
__attribute__((noinline)) static unsigned long leaf(unsigned long x) {
    for (int i = 0; i < 200; i++) x = x * 2862933555777941757UL + 3037000493UL;
    return x;
}
__attribute__((noinline)) unsigned long beta(unsigned long x) { return leaf(x) + 1; }
unsigned long other_name(unsigned long) __attribute__((alias("beta"), weak));
int helper(int);
int main(void) {
    volatile unsigned long x = 1;
    for (int i = 0; i < 150000; i++) { x = beta(x); if (i % 3 == 0) x += helper((int)(x & 255)); }
    return 0;
}
"#;
const HELPER: &str = r#"
__attribute__((noinline)) static int leaf(int x) {
    volatile int y = x;
    for (int i = 0; i < 100; i++) y += i;
    return y;
}
int helper(int x) { return leaf(x) * 3; }
"#;

/// A small program with an alias and two local functions of one name.
fn compiled(name: &str, flags: &[&str]) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (file, text) in [("main.c", MAIN), ("helper.c", HELPER)] {
        fs::write(folder.path().join(file), text).expect("the folder can be written");
    }
    let program = folder.path().join("prog");
    let always =
        ["-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id", "-o", "prog"];
    let ran = Command::new("cc")
        .current_dir(folder.path())
        .args(always)
        .args(flags)
        .args(["main.c", "helper.c"])
        .output();
    match ran {
        Ok(output) if output.status.success() => Some((folder, program)),
        Ok(output) => {
            skip(name, String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Err(_) => {
            skip(name, "no C compiler");
            None
        }
    }
}

fn parsed(path: &Path) -> Program {
    Program::parse(path.to_str().expect("a path"), &fs::read(path).expect("a program")).expect("an ELF file")
}

fn weight(profile: &CallProfile, name: &str) -> u64 {
    profile.functions.iter().find(|function| function.name == name).map_or(0, |function| function.weight)
}

#[test]
fn functions_of_a_program_count_once_each() {
    const NAME: &str = "functions_of_a_program_count_once_each";
    for flags in [&["-no-pie"][..], &["-pie", "-fPIE"], &["-ffunction-sections", "-Wl,--gc-sections"]] {
        let Some((_folder, path)) = compiled(NAME, flags) else { return };
        let program = parsed(&path);
        assert!(program.build_id.as_ref().is_some_and(|id| id.len() >= 16));
        let beta = program.by_name("beta").expect("a function");
        assert_eq!(program.by_name("other_name"), Some(beta), "an alias is the same function");
        assert_eq!(program.functions()[beta as usize].aliases, ["other_name"]);
        let leaves = ["leaf/main.c/1", "leaf/helper.c/1"].map(|name| program.by_name(name).expect("a local"));
        assert_ne!(leaves[0], leaves[1]);
        assert_eq!(program.by_name("leaf"), None, "two functions have that name");
        for pair in program.functions().windows(2) {
            assert!(pair[0].address + pair[0].bytes <= pair[1].address, "{pair:?}");
        }
        let function = &program.functions()[beta as usize];
        assert_eq!(program.at(function.address + 1), Some((beta, 1)));
    }
}

#[test]
fn a_stripped_program_and_a_broken_one_are_no_panic() {
    const NAME: &str = "a_stripped_program_and_a_broken_one_are_no_panic";
    let Some((_folder, path)) = compiled(NAME, &["-s"]) else { return };
    assert!(parsed(&path).by_name("leaf").is_none());
    let whole = fs::read(&path).expect("a program");
    for length in [0, 4, 63, 64, 400, whole.len() / 2] {
        let _ = Program::parse("cut", &whole[..length]);
    }
}

/// Records the program with perf; `None`, said aloud, where that cannot be.
fn recorded(name: &str, program: &Path, to: &str) -> Option<PathBuf> {
    let file = program.with_file_name("perf.data");
    let mut command = Command::new("perf");
    command
        .args(["record", "-q", "-F", "2000", "-e", "cpu-clock:u", "--call-graph", "fp", "-o", to])
        .arg(program);
    command.current_dir(program.parent().expect("a folder")).stdin(Stdio::null());
    let Ok(output) = command.output() else {
        skip(name, "no perf");
        return None;
    };
    if to == "-" {
        fs::write(&file, &output.stdout).expect("the folder can be written");
    }
    if !output.status.success() {
        skip(name, String::from_utf8_lossy(&output.stderr).trim());
        return None;
    }
    Some(file)
}

/// Samples of each function as `perf script` tells them, by the innermost frame.
fn perf_counts(file: &Path) -> Vec<(String, u64)> {
    let script = Command::new("perf").args(["script", "-F", "ip,sym", "-G", "-i"]).arg(file).output();
    let text = script.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let mut counts = std::collections::BTreeMap::new();
    for name in text.lines().filter_map(|line| line.split_ascii_whitespace().nth(1)) {
        *counts.entry(name.to_owned()).or_insert(0_u64) += 1;
    }
    counts.into_iter().collect()
}

#[test]
fn samples_are_counted_as_perf_counts_them() {
    const NAME: &str = "samples_are_counted_as_perf_counts_them";
    for (flags, to) in
        [(&["-pie", "-fPIE"][..], "perf.data"), (&["-no-pie"], "perf.data"), (&["-pie", "-fPIE"], "-")]
    {
        let Some((_folder, path)) = compiled(NAME, flags) else { return };
        let Some(file) = recorded(NAME, &path, to) else { return };
        let program = parsed(&path);
        let bytes = fs::read(&file).expect("a recording");
        let options = ImportOptions { program: Some(&program), ..ImportOptions::default() };
        let profile = import(&bytes, &options).expect("a profile").profile;
        assert_eq!((profile.weights, profile.edges_are), (Weights::Samples, Edges::Stacks));
        let perf = perf_counts(&file);
        if perf.is_empty() {
            return skip(NAME, "perf script tells nothing");
        }
        assert_eq!(profile.total, perf.iter().map(|(_, count)| count).sum::<u64>());
        for (name, count) in
            perf.iter().filter(|(name, _)| ["beta", "helper", "main"].contains(&name.as_str()))
        {
            assert_eq!(weight(&profile, name), *count, "{name}");
        }
        let leaves = weight(&profile, "leaf/main.c/1") + weight(&profile, "leaf/helper.c/1");
        assert_eq!(leaves, perf.iter().find(|(name, _)| name == "leaf").map_or(0, |(_, count)| *count));
        assert_eq!(perf_data::overview(&bytes).expect("an overview").samples, profile.total);
        if to == "-" {
            // perf writes no build ids into a pipe unless it is asked to.
            continue;
        }
        let other = Program::parse(program.name.as_str(), &fs::read("/proc/self/exe").expect("this test"));
        let mut other = other.expect("an ELF file");
        other.build_id = Some("00".into());
        let options = ImportOptions { program: Some(&other), ..ImportOptions::default() };
        assert!(matches!(import(&bytes, &options), Err(ProfileError::BuildId { .. })));
    }
}

#[test]
fn the_text_of_perf_script_gives_the_same_profile() {
    const NAME: &str = "the_text_of_perf_script_gives_the_same_profile";
    let Some((_folder, path)) = compiled(NAME, &["-pie", "-fPIE"]) else { return };
    let Some(file) = recorded(NAME, &path, "perf.data") else { return };
    let program = parsed(&path);
    let script = Command::new("perf").args(["script", "-i"]).arg(&file).output().expect("perf is there");
    let options = ImportOptions { program: Some(&program), ..ImportOptions::default() };
    let direct = import(&fs::read(&file).expect("a recording"), &options).expect("a profile").profile;
    let text = import(&script.stdout, &options).expect("a profile").profile;
    let graph = |profile: &CallProfile| (profile.functions.clone(), profile.edges.clone());
    assert_eq!(graph(&direct), graph(&text));
}

#[test]
fn callgrind_counts_calls_exactly() {
    const NAME: &str = "callgrind_counts_calls_exactly";
    let Some((folder, path)) = compiled(NAME, &["-no-pie"]) else { return };
    let ran = Command::new("valgrind")
        .args(["-q", "--tool=callgrind", "--callgrind-out-file=out"])
        .arg(&path)
        .current_dir(folder.path())
        .output();
    if !ran.is_ok_and(|output| output.status.success()) {
        return skip(NAME, "no valgrind");
    }
    let program = parsed(&path);
    let options = ImportOptions { program: Some(&program), ..ImportOptions::default() };
    let profile =
        import(&fs::read(folder.path().join("out")).expect("costs"), &options).expect("a profile").profile;
    let calls = |caller: &str, callee: &str| {
        let name = |index: u32| profile.functions[index as usize].name.as_str();
        profile
            .edges
            .iter()
            .find(|edge| name(edge.caller) == caller && name(edge.callee) == callee)
            .map(|edge| edge.weight)
    };
    assert_eq!(calls("main", "beta"), Some(150_000));
    assert_eq!(calls("main", "helper"), Some(50_000));
    assert_eq!(profile.edges_are, Edges::Calls);
}

#[test]
fn offsets_of_another_build_place_nothing() {
    const NAME: &str = "offsets_of_another_build_place_nothing";
    let Some((_folder, path)) = compiled(NAME, &["-no-pie"]) else { return };
    let program = parsed(&path);
    let options = ImportOptions { program: Some(&program), ..ImportOptions::default() };
    let mut profile = import(b"no_lbr cycles:\n1 beta 0 10\n", &options).expect("a profile").profile;
    let start = program.functions()[program.by_name("beta").expect("a function") as usize].address;
    let at_start = |profile: &CallProfile| share_where(profile, &program, |address| address == start);
    assert_eq!(at_start(&profile), Some(1.0));
    profile.functions[0].hits = vec![(4, 10)];
    assert_eq!(at_start(&profile), Some(0.0));
    // Of another build the weight is known and its place is not: it is spread from the start on.
    profile.build_ids = vec!["00".into()];
    assert!(at_start(&profile).is_some_and(|share| share > 0.0));
}

#[test]
fn names_that_are_empty_or_end_lines_can_be_written() {
    for text in ["main;;scan 3\n", ";;; 3\n;a 2\n", "a\rb;c\rd 5\nx;y 5\n"] {
        let Ok(imported) = import(text.as_bytes(), &ImportOptions::default()) else { continue };
        let written = planish_profile::file::write(&imported.profile);
        let again = planish_profile::file::parse(&written).expect("what we write we read");
        assert_eq!(planish_profile::file::write(&again), written);
    }
}
