//! `./x bench NAME`: the release binary, then the benchmark that starts it.

use crate::{ground, shell, target};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};

/// Which benchmark.
#[derive(clap::Args)]
pub struct Options {
    /// Name: spine
    name: String,
    /// Write the figures as JSON too
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
}

/// Builds, runs, and leaves with the code of the benchmark.
pub fn run(options: &Options) -> Result<ExitCode> {
    let planish = target::pick()?.build("release", &["--bin", "planish"])?.join("planish");
    let mut bench = ground::cargo();
    bench.args(["run", "--quiet", "--release", "--package", "planish-bench", "--", &options.name]);
    bench.arg("--planish").arg(planish);
    if let Some(file) = &options.json {
        bench.arg("--json").arg(file);
    }
    shell::say(&bench);
    let status = bench.stdin(Stdio::null()).status().context("start the benchmark")?;
    Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)))
}
