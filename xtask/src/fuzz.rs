//! `./x fuzz`: coverage-guided fuzzing of each parser with libFuzzer, on the stable toolchain.
//!
//! cargo-fuzz wants a nightly compiler for flags that stable has too, behind `RUSTC_BOOTSTRAP`. That
//! is used here, for this build alone; nothing that is shipped is built with it.

mod log;
mod session;

use crate::tally::Tally;
use crate::tree::Tree;
use crate::{ground, setup, shell};
use anyhow::{Context, Result, bail, ensure};
use session::Session;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};

/// What to fuzz, and how long.
#[derive(clap::Args)]
pub struct Options {
    /// Names of targets in fuzz/targets; all of them when left out
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// CPU seconds for each target
    #[arg(long, value_name = "N", default_value_t = 30)]
    seconds: u32,
    /// Targets that run at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Write what came of each run into docs/fuzz.md
    #[arg(long)]
    log: bool,
    /// Put the inputs of each corpus that go over most edges into fuzz/seeds
    #[arg(long)]
    keep: bool,
}

/// Longer inputs are cut before they are kept: all that is kept is read by every `./x ci`.
const KEPT_BYTES_MAX: u32 = 512;
/// Inputs of one target that are kept besides those that somebody wrote.
const KEPT_MAX: usize = 24;

/// As cargo-fuzz sets them: edge coverage, comparisons as hints, and checks that release leaves out.
const FLAGS: &str = "--cfg fuzzing -Cdebug-assertions -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Fuzzes; a crash is a failure, and its input stays in the corpus folder for a test.
pub fn run(options: &Options) -> Result<ExitCode> {
    setup::ensure(&[&setup::CXX], setup::Without::Refused)?;
    let all = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !all.contains(name)) {
        bail!("no target {unknown}; there are: {}", all.join(", "));
    }
    let tree = options.log.then(|| Tree::committed(&["fuzz/targets"])).transpose()?;
    if tree.is_some() {
        log::refresh(&all)?;
    }
    let built = build()?;
    let wanted = if options.targets.is_empty() { &all } else { &options.targets };
    let folder = held(&built, wanted)?;
    let queue = Mutex::new(wanted.iter());
    let done = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        while let Some(name) = next(&queue) {
            let program = folder.join(name);
            let session = match &tree {
                Some(tree) => logged(&program, name, tree, options.seconds, &done)?,
                None => fuzz(&program, name, options.seconds)?,
            };
            print(name, &session);
            if options.keep && session.found.is_none() {
                keep(&program, name)?;
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).push((name, session));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        let ends = workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
        ends.collect::<Vec<_>>().into_iter().collect::<Result<()>>()
    })?;
    let _ = fs::remove_dir_all(&folder);
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let failed: Vec<&str> =
        done.iter().filter(|(_, session)| session.found.is_some()).map(|(name, _)| name.as_str()).collect();
    if !failed.is_empty() {
        bail!("something found in: {}", failed.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a target for what is missing of its time, and puts the sum into docs/fuzz.md, one thread at a time.
fn logged<T>(program: &Path, name: &str, tree: &Tree, seconds: u32, page: &Mutex<T>) -> Result<Session> {
    let state = log::state(tree, name)?;
    let before = log::so_far(name, &state);
    let missing_s = seconds.saturating_sub(before.as_ref().map_or(0, |before| before.cpu_s as u32));
    let session = match before {
        Some(before) if missing_s == 0 => return Ok(before),
        Some(before) => fuzz(program, name, missing_s)?.after(&before),
        None => fuzz(program, name, missing_s)?,
    };
    let _page = page.lock().unwrap_or_else(PoisonError::into_inner);
    // A target may have come since: the page lists those of now.
    log::add(&targets()?, name, &tree.day, &state, &session)?;
    Ok(session)
}

/// Takes the next one from a queue that several threads share.
fn next<'a>(queue: &Mutex<std::slice::Iter<'a, String>>) -> Option<&'a String> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).next()
}

/// Builds every target with libFuzzer; says in which folder they lie.
fn build() -> Result<PathBuf> {
    let host = shell::output(Command::new("rustc").arg("--print=host-tuple"))?.trim().to_owned();
    let target_dir = ground::target_dir()?.join("fuzz");
    let mut build = ground::cargo();
    build.args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host]);
    build.env("CARGO_TARGET_DIR", &target_dir).env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", FLAGS);
    shell::run(&mut build)?;
    Ok(target_dir.join(&host).join("release"))
}

/// That every target can be built and is listed. Whether it compiles, and still holds what it held of its seeds, tells
/// a test of planish-cli (`tests/fuzz`), without libFuzzer, which is some minutes of C++. A long run that is due is a
/// skip.
pub fn check() -> Result<Tally> {
    let targets = targets()?;
    let file = "fuzz/Cargo.toml";
    let manifest = fs::read_to_string(file).with_context(|| format!("read {file}"))?;
    for name in &targets {
        let line = format!("path = \"targets/{name}.rs\"");
        ensure!(manifest.contains(&line), "{file} has no [[bin]] with {line}");
        ensure!(PathBuf::from("fuzz/seeds").join(name).is_dir(), "target {name} has no seeds in fuzz/seeds");
    }
    // The lock file is complete.
    let mut metadata = ground::cargo();
    metadata.args(["metadata", "--locked", "--format-version=1", "--manifest-path", file]);
    shell::output(&mut metadata)?;
    let due = log::check(&targets)?;
    let told = |name: &str| format!("SKIP fuzz.{name}: docs/fuzz.md has no long run of the target as it is");
    Ok(Tally { skips: due.into_iter().map(told).collect(), ..Tally::default() })
}

/// The programs in a folder of this run: a build of another state, hours later, does not change what still waits.
fn held(built: &Path, wanted: &[String]) -> Result<PathBuf> {
    let folder = built.join(format!("run-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).with_context(|| format!("make {}", folder.display()))?;
    for name in wanted {
        let program = built.join(name);
        fs::hard_link(&program, folder.join(name)).with_context(|| format!("link {}", program.display()))?;
    }
    Ok(folder)
}

/// Lists the targets of now in docs/fuzz.md.
pub fn refresh() -> Result<()> {
    log::refresh(&targets()?)
}

/// Runs one target over its corpus in the cache, seeded from `fuzz/seeds`.
fn fuzz(program: &Path, name: &str, seconds: u32) -> Result<Session> {
    let cache = ground::cache_dir()?.join("fuzz");
    let seeds = PathBuf::from("fuzz/seeds").join(name);
    let corpus = cache.join(name);
    fs::create_dir_all(&corpus).with_context(|| format!("make {}", corpus.display()))?;
    session::run(program, &corpus, &seeds, &cache.join(format!("{name}.txt")), seconds)
}

/// Puts beside the seeds of a target those inputs of its corpus that together go over most edges, in the place of those
/// that were put there before.
fn keep(program: &Path, name: &str) -> Result<()> {
    let cache = ground::cache_dir()?.join("fuzz");
    let (corpus, seeds) = (cache.join(name), PathBuf::from("fuzz/seeds").join(name));
    let chosen = cache.join(format!("{name}-kept"));
    let _ = fs::remove_dir_all(&chosen);
    fs::create_dir_all(&chosen).with_context(|| format!("make {}", chosen.display()))?;
    let mut merge = Command::new(program);
    merge.args(["-set_cover_merge=1", "-use_counters=0"]).arg(format!("-max_len={KEPT_BYTES_MAX}"));
    merge.args([&chosen, &seeds, &corpus]);
    shell::say(&merge);
    let output = merge.output().with_context(|| format!("start {}", program.display()))?;
    ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));

    for old in files(&seeds)?.iter().filter(|file| is_generated(file)) {
        fs::remove_file(old).with_context(|| format!("remove {}", old.display()))?;
    }
    let written: Vec<Vec<u8>> = files(&seeds)?.iter().filter_map(|file| fs::read(file).ok()).collect();
    // libFuzzer writes the one that goes over most first, and so on.
    let mut best = files(&chosen)?;
    best.sort_by_key(|file| file.metadata().and_then(|file| file.modified()).ok());
    for file in best.iter().take(KEPT_MAX) {
        let bytes = fs::read(file).with_context(|| format!("read {}", file.display()))?;
        let to = seeds.join(file.file_name().expect("a listed file has a name"));
        if !written.contains(&bytes) {
            fs::write(&to, bytes).with_context(|| format!("write {}", to.display()))?;
        }
    }
    Ok(())
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}

/// Whether libFuzzer has named a file: by the hash of its content.
fn is_generated(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Says what came of a run.
fn print(name: &str, session: &Session) {
    let Session { cpu_s, wall_s, executions, edges, corpus, found } = session;
    let found = found.as_deref().unwrap_or("nothing found");
    println!(
        "{name}: {found}; {cpu_s:.0} s of CPU in {wall_s:.0} s, {executions} executions, {edges} edges, \
         corpus of {corpus}"
    );
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
