//! `./x ci`: everything that a change must pass, cheapest first, each stage with its time.

use crate::suite::{self, SuiteOptions};
use crate::tally::Tally;
use crate::{docs, edges, fuzz, ground, licences, setup, shell, tidy, vm};
use anyhow::{Result, ensure};
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

/// Names of the stages, in their order.
const STAGES: &[&str] = &["fmt", "lock", "tidy", "edges", "licences", "clippy", "fuzz", "docs", "test", "vm"];

/// The cases of property tests are drawn from it, so that one tree is judged alike each time. `./x test` and `./x soak`
/// look for other cases; what they find becomes a test of its own.
const PROPERTY_SEED: u64 = 20_261_122;

/// What to check.
#[derive(clap::Args)]
pub struct Options {
    /// Run this stage only; may be given several times
    #[arg(long, value_name = "STAGE", value_parser = clap::builder::PossibleValuesParser::new(STAGES))]
    only: Vec<String>,
    #[command(flatten)]
    suite: SuiteOptions,
}

impl Options {
    fn wants(&self, stage: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == stage)
    }
}

/// Runs all stages, also after one has failed: one run shows everything that is wrong.
pub fn run(options: &Options) -> Result<ExitCode> {
    if options.wants("test") || options.wants("vm") {
        setup::ensure(setup::TESTS, setup::Without::asked(options.suite.skip_missing))?;
    }
    let mut stages = Stages::default();
    let mut tally = Tally::default();
    for name in STAGES.iter().filter(|name| options.wants(name)) {
        stages.run(name, &mut tally, || stage(name, options));
    }
    stages.print();
    tally.print();
    Ok(suite::code(&tally))
}

fn stage(name: &str, options: &Options) -> Result<Tally> {
    match name {
        "fmt" => shell::run(ground::cargo().args(["fmt", "--all", "--check"]))?,
        "lock" => locked()?,
        "tidy" => tidy::run()?,
        "edges" => edges::run()?,
        "licences" => return licences::run(),
        "clippy" => clippy()?,
        "fuzz" => return fuzz::check(),
        "docs" => docs::check()?,
        "test" if options.wants("vm") && !options.suite.no_vm => {
            return beside_a_build(|| suite::workspace(Some(PROPERTY_SEED), suite::SLOW_TO_BUILD));
        }
        "test" => return suite::workspace(Some(PROPERTY_SEED), suite::SLOW_TO_BUILD),
        "vm" if options.suite.no_vm => {}
        "vm" => return vm::run(&vm::Options::default()),
        _ => unreachable!("STAGES and this match name the same stages"),
    }
    Ok(Tally::default())
}

/// Tests, and meanwhile the build of what the guests run: one of its steps takes one CPU for minutes, and tests wait
/// for timers and disks. It gives way to them, as some are timed.
fn beside_a_build(tests: impl FnOnce() -> Result<Tally>) -> Result<Tally> {
    thread::scope(|scope| {
        scope.spawn(|| {
            // Of this thread and what it starts.
            let _ = rustix::process::nice(19);
            // The stage that needs it builds it again, and tells what is wrong.
            let _ = vm::build_ahead();
        });
        tests()
    })
}

/// Cargo.lock is committed and complete: a clone builds what was tested.
fn locked() -> Result<()> {
    shell::output(ground::cargo().args(["metadata", "--locked", "--format-version=1"])).map(drop)
}

fn clippy() -> Result<()> {
    let mut clippy = ground::cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--profile", "ci"]);
    clippy.args(suite::SLOW_TO_BUILD.iter().flat_map(|name| ["--exclude", name]));
    clippy.args(["--", "-D", "warnings"]);
    shell::run(&mut clippy)
}

/// Wall time and end of each stage.
#[derive(Default)]
struct Stages {
    rows: Vec<(String, f64, bool)>,
}

impl Stages {
    /// Runs one stage; the stage itself counts as one test of the sum.
    fn run(&mut self, name: &str, sum: &mut Tally, run: impl FnOnce() -> Result<Tally>) {
        eprintln!("== {name}");
        let start = Instant::now();
        let result = run().and_then(|tally| {
            let failed_count = tally.failed_count;
            sum.add(tally);
            ensure!(failed_count == 0, "{failed_count} failed");
            Ok(())
        });
        match &result {
            Ok(()) => sum.passed_count += 1,
            Err(error) => {
                eprintln!("x: {name}: {error:#}");
                sum.fail(format!("{name}: {error:#}"));
            }
        }
        self.rows.push((name.to_owned(), start.elapsed().as_secs_f64(), result.is_ok()));
    }

    fn print(&self) {
        println!("\nstage         seconds");
        for (name, seconds, passed) in &self.rows {
            println!("{name:<12} {seconds:>8.1}  {}", if *passed { "ok" } else { "FAILED" });
        }
    }
}
