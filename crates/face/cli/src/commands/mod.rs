//! One file per command: its arguments and what it does.

pub(crate) mod host;
pub(crate) mod topo;
pub(crate) mod version;
pub(crate) mod workload;

use crate::answer::Answer;
use crate::args::Command;
use crate::context::Context;
use crate::failure::Failure;

impl Command {
    /// The name that stands in the envelope and names the schema.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Host(args) => args.name(),
            Self::Topo(_) => "topo",
            Self::Workload(_) => "workload",
            Self::Version(_) => "version",
        }
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, context: &Context) -> Result<Answer, Failure> {
        match self {
            Self::Host(args) => host::run(args, context),
            Self::Topo(_) => topo::run(context),
            Self::Workload(args) => workload::run(args),
            Self::Version(_) => Ok(version::run(context)),
        }
    }
}
