//! The readers of what others wrote, each alone: everywhere else they stand behind a program that runs. Fuzz targets
//! ask for them here (`fuzz/targets`), and nobody else should.

use std::path::Path;
use std::time::Duration;

use planish_stats::Rng;

use crate::adapter::{self, Number};
use crate::error::TrialError;
use crate::postgres;
use crate::sample::{ArmError, Sample};

/// The statements of one transaction of a script of pgbench, with variables that this seed draws.
///
/// # Errors
/// The line of what is not understood.
pub fn script(text: &str, seed: u64, scale: u64) -> Result<Result<Vec<String>, String>, TrialError> {
    let script = postgres::Script::parse(Path::new("own.sql"), text)?;
    let statements = script.statements(&mut Rng::stream(seed, 0), scale);
    Ok(statements.map(|all| all.into_iter().map(|statement| statement.text).collect()))
}

/// What pgbench reported at its end, and on its way.
///
/// # Errors
/// What is missing, for a message.
pub fn pgbench(report: &str, progress: &str, left_out: Duration) -> Result<Sample, String> {
    adapter::read_pgbench(report, progress, left_out)
}

/// What `planish latency --jitter --json` told.
///
/// # Errors
/// What is missing, for a message.
pub fn jitter(output: &str) -> Result<Sample, String> {
    adapter::read_jitter(output)
}

/// What a resident program answered to a slice.
///
/// # Errors
/// It is no answer, or tells of no operation.
pub fn slice(line: &str) -> Result<Sample, ArmError> {
    adapter::read_slice(line)
}

/// The backing that a resident program told in its first line.
///
/// # Errors
/// It is no such line.
pub fn backing(line: &str) -> Result<Option<String>, ArmError> {
    adapter::read_ready(line).map(|achieved| achieved.backing)
}

/// A number in the output of a program.
///
/// # Errors
/// It is not there, or none.
pub fn number(number: &Number, output: &str) -> Result<f64, String> {
    number.find(output)
}
