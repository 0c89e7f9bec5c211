//! The benchmarks behind `./x bench NAME`: each row is measured here and now, beside the limit that it
//! must keep.
//!
//! They start the real binary, as a user does. Time is the wall clock of a whole process, with the
//! interval of its median; shares of simulated experiments carry their exact binomial interval.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "it reads the checkout and its own files, never a host")]

mod process;
mod row;
mod simulated;
mod spine;

use anyhow::Result;
use clap::Parser;
use row::Rows;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure what planish must keep
#[derive(Parser)]
struct Arguments {
    /// Which benchmark
    name: Name,
    /// Write the figures as JSON too
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
    /// The release binary
    #[arg(long, value_name = "FILE")]
    planish: PathBuf,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Name {
    /// Start, doctor, apply, binary, trial overhead, false keeps
    Spine,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut rows = Rows::default();
    match arguments.name {
        Name::Spine => spine::measure(&arguments.planish, &mut rows)?,
    }
    rows.print();
    if let Some(file) = &arguments.json {
        rows.write_json(file)?;
    }
    // The contract's 1: there are findings, here figures over their limit.
    Ok(ExitCode::from(u8::from(!rows.all_kept())))
}
