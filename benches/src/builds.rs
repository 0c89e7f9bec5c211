//! planish-series by how it was built and by its allocator: what each step of `./x dist` gives the same queries.
//!
//! A sample is the CPU time of processes that plan and answer queries (as a shell asks), or that load a file. Arms are
//! measured beside each other in rounds, and every arm has to give the same answers.

use crate::rounds::{Arm, Rounds};
use crate::row::Rows;
use anyhow::{Context, Result, ensure};
use planish_sys::child;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Rounds of each workload.
const ROUNDS: usize = 24;
/// Symbols of the file that is loaded.
const SYMBOLS: u64 = 100;
const LOADED_ROWS: u64 = 300_000;

/// One way to have the engine: `NAME=PROGRAM`, or `NAME=PROGRAM:LIBRARY` with a library for `LD_PRELOAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    name: String,
    program: PathBuf,
    preload: Option<PathBuf>,
}

impl std::str::FromStr for Build {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once('=').ok_or("a build is NAME=PROGRAM[:LIBRARY]")?;
        let (program, preload) = rest
            .split_once(':')
            .map_or((rest, None), |(program, preload)| (program, Some(PathBuf::from(preload))));
        Ok(Self { name: name.to_owned(), program: program.into(), preload })
    }
}

/// What processes of the engine do.
struct Workload {
    name: &'static str,
    /// Rows of the demonstration tables.
    rows: u64,
    queries: &'static [&'static str],
}

/// Of few rows planning is the work, of many the operators and kernels are.
const WORKLOADS: [Workload; 2] = [
    Workload {
        name: "queries of 10,000 rows",
        rows: 10_000,
        queries: &[
            "SELECT sym, count(*), max(price) FROM trades WHERE size > 10 GROUP BY sym ORDER BY sym",
            "SELECT t.sym, count(*) FROM trades t JOIN quotes q ON t.sym = q.sym AND t.ts = q.ts GROUP BY t.sym",
            "SELECT sym, rank() OVER (PARTITION BY sym ORDER BY price DESC, ts) AS place, price FROM trades \
             WHERE sym LIKE '%A%' ORDER BY 1, 2 LIMIT 20",
        ],
    },
    Workload {
        name: "queries of 2,000,000 rows",
        rows: 2_000_000,
        queries: &[
            "SELECT sym, xbar(ts, INTERVAL '1 minute') AS bar, max(price), min(price), sum(size) FROM trades \
             GROUP BY sym, bar ORDER BY sym, bar LIMIT 20",
            "SELECT size % 97 AS part, count(*), sum(size), min(price) FROM trades GROUP BY part ORDER BY part",
        ],
    },
];

/// Measures every build beside the first.
pub fn measure(builds: &[Build], rows: &mut Rows) -> Result<()> {
    let (first, others) =
        builds.split_first().context("builds wants --build NAME=PROGRAM, twice at least")?;
    ensure!(!others.is_empty(), "one build alone has nothing to be compared with: --build NAME=PROGRAM");
    let folder = tempfile::Builder::new().prefix("planish-bench").tempdir()?;
    for workload in &WORKLOADS {
        let data = folder.path().join(workload.rows.to_string());
        let demo = format!("--demo={}", workload.rows);
        run(first, &["load", &demo, "--into", text(&data)?])?;
        let ask =
            |build: &Build, sql: &str| run(build, &["query", "--data", text(&data)?, "--format", "csv", sql]);
        let unit = |build: &Build| {
            workload.queries.iter().try_fold((0.0, String::new()), |(sum, said), sql| {
                let (milliseconds, answer) = ask(build, sql)?;
                Ok((sum + milliseconds, said + &answer))
            })
        };
        compare(builds, workload.name, unit, rows)?;
    }
    let file = folder.path().join("trades.csv");
    std::fs::write(&file, trades()).context("write the file to load")?;
    let into = folder.path().join("loaded");
    let unit = |build: &Build| {
        let _ = std::fs::remove_dir_all(&into);
        let columns = "ts TIMESTAMP(9), sym SYMBOL, price DOUBLE, size BIGINT";
        let words = ["load", text(&file)?, "--into", text(&into)?, "--table", "trades", "--columns", columns];
        // It says nothing: how many rows there are now is its answer.
        let (milliseconds, _) = run(build, &words)?;
        let count = ["query", "--data", text(&into)?, "--format", "csv", "SELECT count(*) FROM trades"];
        Ok((milliseconds, run(build, &count)?.1))
    };
    compare(builds, "load of 300,000 lines of CSV", unit, rows)
}

/// Rows of one workload: of each build over the first one.
fn compare(
    builds: &[Build],
    name: &str,
    unit: impl Fn(&Build) -> Result<(f64, String)>,
    rows: &mut Rows,
) -> Result<()> {
    eprintln!("measuring {name}, {} builds in {ROUNDS} rounds", builds.len());
    let (_, expected) = unit(&builds[0])?;
    ensure!(!expected.is_empty(), "{name}: no answer");
    let arm = |build| -> Arm<'_> {
        let (unit, expected) = (&unit, &expected);
        Box::new(move || {
            let (milliseconds, said) = unit(build)?;
            let Build { name, .. } = build;
            ensure!(said == *expected, "{name} answers otherwise than {}: {said}", builds[0].name);
            Ok(milliseconds)
        })
    };
    let mut arms: Vec<Arm<'_>> = builds.iter().map(arm).collect();
    let rounds = Rounds::measure(ROUNDS, &mut arms)?;
    for (index, build) in builds.iter().enumerate().skip(1) {
        let title = format!("{name}: {} over {}", build.name, builds[0].name);
        let note = format!("{:.1} and {:.1} ms of CPU time", rounds.median(index), rounds.median(0));
        rows.beside_with_note(&title, "x", || Ok((rounds.over(index, 0)?, note)));
    }
    Ok(())
}

/// Starts the engine and tells its CPU time in milliseconds, and what it said.
fn run(build: &Build, words: &[&str]) -> Result<(f64, String)> {
    let mut command = Command::new(&build.program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    build.preload.iter().for_each(|library| {
        command.env("LD_PRELOAD", library);
    });
    let mut started = command.spawn().with_context(|| format!("start {}", build.program.display()))?;
    let mut said = String::new();
    let mut output = started.stdout.take().context("its output is a pipe")?;
    std::io::Read::read_to_string(&mut output, &mut said).context("read what it says")?;
    let mut complaint = String::new();
    let mut errors = started.stderr.take().context("its errors are a pipe")?;
    std::io::Read::read_to_string(&mut errors, &mut complaint).context("read what it complains of")?;
    let (status, usage) = child::wait_with_usage(started).context("wait for it")?;
    ensure!(status.success(), "{}: {} left with {status}: {complaint}", build.name, words.join(" "));
    // The loader passes over what it cannot preload, and says so.
    ensure!(!complaint.contains("LD_PRELOAD"), "{}: {complaint}", build.name);
    Ok(((usage.user + usage.system).as_secs_f64() * 1e3, said))
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not text", path.display()))
}

/// Lines of trades.
fn trades() -> String {
    let mut lines = String::from("ts,sym,price,size\n");
    for row in 0..LOADED_ROWS {
        let at = 1_767_225_600_000_000_000 + row * 1_000_003;
        let _ = writeln!(
            lines,
            "{at},S{},{}.{:02},{}",
            row * 7 % SYMBOLS,
            100 + row % 10,
            row % 100,
            row % 500 + 1
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_a_name_a_program_and_perhaps_a_library() {
        let build =
            |text: &str| text.parse::<Build>().map(|build| (build.name, build.program, build.preload));
        assert_eq!(build("fast=/a/b"), Ok(("fast".into(), "/a/b".into(), None)));
        assert_eq!(build("x=/a:/lib/m.so"), Ok(("x".into(), "/a".into(), Some("/lib/m.so".into()))));
        assert!(build("fast").is_err());
    }

    #[test]
    fn one_build_and_one_that_answers_otherwise_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let program = |name: &str, says: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, format!("#!/bin/sh\nmkdir -p \"$4\"; echo {says}\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&file, mode).unwrap();
            Build { name: name.to_owned(), program: file, preload: None }
        };
        let (one, other) = (program("one", "1"), program("other", "2"));
        assert!(measure(std::slice::from_ref(&one), &mut Rows::default()).is_err());
        let refused = measure(&[one, other], &mut Rows::default()).unwrap_err();
        assert!(refused.to_string().starts_with("other answers otherwise than one"), "{refused}");
    }
}
