//! Style that neither rustfmt nor clippy knows (the rules are in ARCHITECTURE.md, "Habits").

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

const LINE_CHARS_MAX: usize = 120;
/// Longer files are listed, not refused: an algorithm may be one long ordered file.
const FILE_LINES_MAX: usize = 900;
/// Crates that may hold `unsafe`: fences around raw calls, memory, SIMD and the C interface.
const UNSAFE_CRATES: &[&str] = &[
    "crates/base/sys",
    "crates/base/residency",
    "crates/memory/arena",
    "crates/series/kernels",
    "crates/series/table",
    "crates/face/capi",
    "tests/vm",
    "benches",
];

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
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.chars().count() > LINE_CHARS_MAX {
            findings.push(format!("{name}:{number}: longer than {LINE_CHARS_MAX} characters"));
        }
        if let Some(word) = unfinished.iter().find(|word| line.contains(**word)) {
            findings.push(format!("{name}:{number}: {word}...)"));
        }
    }
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
    fn passes_what_is_right() {
        let mut findings = Vec::new();
        source(Path::new("crates/base/sys/src/lib.rs"), "//! Raw calls.\n", &mut findings);
        manifest(Path::new("crates/base/sys/Cargo.toml"), "[lints]\nworkspace = true\n", &mut findings);
        assert!(findings.is_empty(), "{findings:?}");
    }
}
