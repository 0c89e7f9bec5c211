//! `planish hold`, hidden: the process that keeps a limit in force which counts while a file is open.

use clap::{Subcommand, value_parser};
use planish_sys::hold;

use crate::answer::Answer;
use crate::failure::Failure;

/// Hold a limit of the kernel until this process is ended
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    limit: Limit,
}

#[derive(Debug, Subcommand)]
enum Limit {
    /// The longest wake-up of any CPU
    CpuDmaLatency {
        /// Microseconds
        #[arg(value_name = "US", value_parser = value_parser!(u32).range(..i64::from(hold::NO_LIMIT_US)))]
        limit_us: u32,
    },
}

pub(crate) fn run(args: &Args) -> Result<Answer, Failure> {
    let Limit::CpuDmaLatency { limit_us } = args.limit;
    match hold::hold(limit_us) {
        Ok(never) => match never {},
        Err(error) => Err(Failure::refused(format!("{} cannot be held: {error}", hold::DEVICE))
            .hint("it takes root, and a kernel with CPU idle states: planish apply starts this process")),
    }
}
