//! Style that neither rustfmt nor clippy knows (the rules are in ARCHITECTURE.md, "Habits").

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

const LINE_CHARS_MAX: usize = 120;
/// From the line with `fn` to the one with its last brace.
const FN_LINES_MAX: usize = 70;
/// Longer files are listed, not refused: an algorithm may be one long ordered file.
const FILE_LINES_MAX: usize = 900;
/// Crates that may hold `unsafe`: fences around raw calls, memory, SIMD and the C interface.
const UNSAFE_CRATES: &[&str] = &[
    "crates/base/sys",
    "crates/base/residency",
    "crates/memory/arena",
    "crates/text/hugify",
    "crates/face/capi",
    "crates/series/kernels",
    "crates/series/table",
    "tests/vm",
    "benches",
];

/// Crates that compute and touch nothing outside of themselves: what ARCHITECTURE.md calls pure.
const PURE_CRATES: &[&str] = &[
    "crates/base/boot",
    "crates/base/udev",
    "crates/base/formats",
    "crates/base/sorted",
    "crates/control/model",
    "crates/control/decide",
    "crates/control/verify",
    "crates/control/exchange",
    "crates/text/order",
    "crates/lab/stats",
    "crates/series/ingest",
    "crates/series/kernels",
];
/// What leads out of a program.
const OUTSIDE: &[&str] = &["std::fs", "std::net", "std::process", "std::env", "std::os", "rustix::"];

/// Reads every source file and manifest once and lists all that is wrong.
pub fn run() -> Result<()> {
    let mut findings = Vec::new();
    for folder in ["crates", "xtask", "tests", "benches", "fuzz"].map(Path::new) {
        for file in files(folder)? {
            let text = || fs::read_to_string(&file).with_context(|| format!("read {}", file.display()));
            // fuzz/ is a workspace of its own and cannot inherit.
            let inherits = folder != Path::new("fuzz");
            match file.extension().and_then(|extension| extension.to_str()) {
                Some("rs") => source(&file, &text()?, &mut findings),
                Some("toml") if inherits && file.ends_with("Cargo.toml") => {
                    manifest(&file, &text()?, &mut findings)
                }
                _ => {}
            }
        }
    }
    let listed = UNSAFE_CRATES.iter().chain(PURE_CRATES);
    let empty = listed.filter(|folder| !Path::new(folder).join("Cargo.toml").exists());
    findings.extend(empty.map(|folder| format!("xtask/src/tidy.rs: no crate in {folder}, which is listed")));
    if findings.is_empty() {
        return Ok(());
    }
    findings.iter().for_each(|finding| println!("{finding}"));
    bail!("{} findings", findings.len())
}

fn source(file: &Path, text: &str, findings: &mut Vec<String>) {
    let name = file.display();
    // Written in two parts, so that this file does not find itself.
    let unfinished = [concat!("todo", "!("), concat!("unimplemented", "!(")];
    let is_pure = PURE_CRATES.iter().any(|folder| file.starts_with(Path::new(folder).join("src")));
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(word) = OUTSIDE.iter().find(|word| is_pure && line.contains(**word)) {
            findings.push(format!("{name}:{number}: {word} in a crate that is to be pure"));
        }
        if line.chars().count() > LINE_CHARS_MAX {
            findings.push(format!("{name}:{number}: longer than {LINE_CHARS_MAX} characters"));
        }
        if let Some(word) = unfinished.iter().find(|word| line.contains(**word)) {
            findings.push(format!("{name}:{number}: {word}...)"));
        }
    }
    long_functions(file, text, findings);
    let line_count = text.lines().count();
    if line_count > FILE_LINES_MAX {
        println!("{name}: {line_count} lines, more than {FILE_LINES_MAX}: could it be two files?");
    }
    let is_root = file.ends_with("src/lib.rs") || file.ends_with("src/main.rs");
    let may_be_unsafe = UNSAFE_CRATES.iter().any(|folder| file.starts_with(folder));
    if is_root && !may_be_unsafe && !text.contains("#![forbid(unsafe_code)]") {
        findings.push(format!("{name}: no #![forbid(unsafe_code)]"));
    }
}

/// Functions as rustfmt lays them out: one ends with the first brace that stands as far in as its own first line.
fn long_functions(file: &Path, text: &str, findings: &mut Vec<String>) {
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| is_function(line)) {
        let is_head_end = |line: &&str| line.ends_with(['{', '}', ';']);
        let Some(head) = lines[index..].iter().position(|line| is_head_end(&line.trim_end())) else {
            continue;
        };
        if !lines[index + head].trim_end().ends_with('{') {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let is_end = |line: &&str| line.trim_end().len() == indent + 1 && line.trim_start().starts_with('}');
        let Some(count) = lines[index..].iter().position(is_end).map(|last| last + 1) else { continue };
        if count > FN_LINES_MAX {
            let place = format!("{}:{}", file.display(), index + 1);
            findings.push(format!("{place}: a function of {count} lines, more than {FN_LINES_MAX}"));
        }
    }
}

/// Whether a line begins a function.
fn is_function(line: &str) -> bool {
    let mut words = line.split_whitespace().take_while(|word| {
        let is_visibility = word.starts_with("pub") || *word == "crate)" || word.ends_with("::)");
        is_visibility || ["const", "async", "unsafe", "extern", "\"C\"", "in", "fn"].contains(word)
    });
    words.any(|word| word == "fn")
}

fn manifest(file: &Path, text: &str, findings: &mut Vec<String>) {
    let mut lines = text.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    if lines.next() != Some("workspace = true") {
        findings.push(format!("{}: no [lints] workspace = true", file.display()));
    }
}

/// All files below a folder, in order; a folder that is not there has none.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        if !folder.exists() {
            continue;
        }
        for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{manifest, source};
    use std::path::Path;

    #[test]
    fn finds_what_it_looks_for() {
        let mut findings = Vec::new();
        let text = format!("fn f() {{ {}) }}\n{}", concat!("todo", "!("), "x".repeat(121));
        source(Path::new("crates/control/model/src/lib.rs"), &text, &mut findings);
        manifest(Path::new("crates/control/model/Cargo.toml"), "[lints]\n[dependencies]", &mut findings);
        assert_eq!(findings.len(), 4, "{findings:?}");
    }

    #[test]
    fn a_pure_crate_that_reaches_outside_is_found() {
        let found = |file: &str| {
            let mut findings = Vec::new();
            source(Path::new(file), "use std::fs::File;\n", &mut findings);
            findings
        };
        let file = "crates/control/decide/src/plan.rs";
        assert_eq!(found(file), [format!("{file}:1: std::fs in a crate that is to be pure")]);
        assert_eq!(found("crates/control/decide/tests/it.rs"), [""; 0], "its tests read the recorded hosts");
        assert_eq!(found("crates/control/act/src/sink.rs"), [""; 0]);
    }

    #[test]
    fn a_function_of_more_than_seventy_lines_is_found_and_one_of_seventy_is_not() {
        let found = |head: &str, lines: usize| {
            let body = "        f();\n".repeat(lines);
            let text =
                format!("//! A module.\nimpl A {{\n    {head}\n{body}    }}\n\n    fn short() {{}}\n}}\n");
            let mut findings = Vec::new();
            source(Path::new("crates/base/sys/src/a.rs"), &text, &mut findings);
            findings
        };
        for head in ["fn f() {", "pub(crate) const fn f() {", "pub unsafe extern \"C\" fn f() {"] {
            assert_eq!(found(head, 68), [""; 0], "{head}");
            let place = "crates/base/sys/src/a.rs:3: a function of 71 lines, more than 70";
            assert_eq!(found(head, 69), [place], "{head}");
        }
        let split = "fn f(\n        a: u8,\n    ) -> u8\n    where\n        A: B,\n    {";
        assert_eq!((found(split, 63).len(), found(split, 64).len()), (0, 1));
    }

    #[test]
    fn passes_what_is_right() {
        let mut findings = Vec::new();
        source(Path::new("crates/base/sys/src/lib.rs"), "//! Raw calls.\n", &mut findings);
        manifest(Path::new("crates/base/sys/Cargo.toml"), "[lints]\nworkspace = true\n", &mut findings);
        assert!(findings.is_empty(), "{findings:?}");
    }
}
