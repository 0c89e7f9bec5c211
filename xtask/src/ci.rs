//! `./x ci`: everything that a change must pass, cheapest first, each stage with its time.

use crate::suite::{self, Options};
use crate::tally::Tally;
use crate::{edges, ground, licences, setup, shell, tidy, vm};
use anyhow::Result;
use std::process::ExitCode;
use std::time::Instant;

/// Runs all stages, also after one has failed: one run shows everything that is wrong.
pub fn run(options: &Options) -> Result<ExitCode> {
    setup::ensure(setup::TESTS, options.skip_missing)?;
    let mut stages = Stages::default();
    stages.check("fmt", || shell::run(ground::cargo().args(["fmt", "--all", "--check"])));
    stages.check("lock", || {
        shell::output(ground::cargo().args(["metadata", "--locked", "--format-version=1"]))
    });
    stages.check("tidy", tidy::run);
    stages.check("edges", edges::run);
    let skips = stages.check("licences", licences::run).unwrap_or_default();
    stages.check("clippy", clippy);
    let mut tally = stages.check("test", suite::workspace).unwrap_or_default();
    tally.skips.extend(skips);
    if !options.no_vm {
        tally.add(stages.check("vm", || vm::run(&vm::Options::default())).unwrap_or_default());
    }
    stages.print(&mut tally);
    tally.print();
    Ok(suite::code(&tally))
}

fn clippy() -> Result<()> {
    let mut clippy = ground::cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--profile", "ci", "--", "-D", "warnings"]);
    shell::run(&mut clippy)
}

/// Wall time and end of each stage.
#[derive(Default)]
struct Stages {
    rows: Vec<(&'static str, f64, bool)>,
}

impl Stages {
    fn check<T>(&mut self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Option<T> {
        eprintln!("== {name}");
        let start = Instant::now();
        let result = run();
        self.rows.push((name, start.elapsed().as_secs_f64(), result.is_ok()));
        result.inspect_err(|error| eprintln!("x: {name}: {error:#}")).ok()
    }

    /// Prints the table; a stage is one test of the sum.
    fn print(&self, tally: &mut Tally) {
        println!("\nstage         seconds");
        for (name, seconds, passed) in &self.rows {
            println!("{name:<12} {seconds:>8.1}  {}", if *passed { "ok" } else { "FAILED" });
            tally.passed_count += usize::from(*passed);
            tally.failed_count += usize::from(!passed);
        }
    }
}
