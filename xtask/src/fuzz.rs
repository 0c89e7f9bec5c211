//! `./x fuzz`: coverage-guided fuzzing of each parser with libFuzzer, on the stable toolchain.
//!
//! cargo-fuzz wants a nightly compiler for flags that stable has too, behind `RUSTC_BOOTSTRAP`. That
//! is used here, for this build alone; nothing that is shipped is built with it.

use crate::{ground, setup, shell};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// What to fuzz, and how long.
#[derive(clap::Args)]
pub struct Options {
    /// Name of a target in fuzz/targets; all of them when left out
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, value_name = "N", default_value_t = 30)]
    seconds: u32,
}

/// As cargo-fuzz sets them: edge coverage, comparisons as hints, and checks that release leaves out.
const FLAGS: &str = "--cfg fuzzing -Cdebug-assertions -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Fuzzes; a crash is a failure, and its input stays in the corpus folder for a test.
pub fn run(options: &Options) -> Result<ExitCode> {
    setup::ensure(&[&setup::CXX], setup::Without::Refused)?;
    let all = targets()?;
    let wanted: Vec<&String> = match &options.target {
        Some(name) => all.iter().filter(|target| *target == name).collect(),
        None => all.iter().collect(),
    };
    if wanted.is_empty() {
        bail!("no such target; there are: {}", all.join(", "));
    }
    let host = shell::output(Command::new("rustc").arg("--print=host-tuple"))?.trim().to_owned();
    let target_dir = ground::target_dir()?.join("fuzz");
    let mut build = ground::cargo();
    build.args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host]);
    build.env("CARGO_TARGET_DIR", &target_dir).env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", FLAGS);
    shell::run(&mut build)?;

    let mut failed = Vec::new();
    for name in wanted {
        let program = target_dir.join(&host).join("release").join(name);
        if !fuzz(&program, name, options.seconds)? {
            failed.push(name.as_str());
        }
    }
    if !failed.is_empty() {
        bail!("crashed: {}", failed.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Compiles every target as far as its types, so that none rots unseen between two runs of the fuzzer.
///
/// Nothing is linked, so that libFuzzer itself (some minutes of C++, and a compiler for it) is not built: its build
/// script is told of one that is there already.
pub fn check() -> Result<()> {
    let mut check = ground::cargo();
    check.args(["check", "--locked", "--profile", "ci", "--manifest-path", "fuzz/Cargo.toml"]);
    let named = ground::target_dir()?.join("fuzz-check/libfuzzer.a");
    shell::run(check.env("CUSTOM_LIBFUZZER_PATH", named))
}

/// Runs one target over its corpus in the cache, seeded from `fuzz/seeds`; says whether it survived.
fn fuzz(program: &Path, name: &str, seconds: u32) -> Result<bool> {
    let corpus = ground::cache_dir()?.join("fuzz").join(name);
    let seeds = PathBuf::from("fuzz/seeds").join(name);
    fs::create_dir_all(&corpus).with_context(|| format!("make {}", corpus.display()))?;
    let mut command = Command::new(program);
    command.arg(format!("-max_total_time={seconds}")).args([
        "-timeout=5",
        "-rss_limit_mb=1024",
        "-print_final_stats=1",
    ]);
    command.arg(format!("-artifact_prefix={}/", corpus.display())).arg(&corpus);
    if seeds.is_dir() {
        command.arg(&seeds);
    }
    shell::say(&command);
    let status =
        command.stdin(Stdio::null()).status().with_context(|| format!("start {}", program.display()))?;
    println!("{name}: {}", if status.success() { "survived" } else { "CRASHED" });
    Ok(status.success())
}

/// Names of the targets: one file each.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir("fuzz/targets").context("list fuzz/targets")?.flatten() {
        let path = entry.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}
