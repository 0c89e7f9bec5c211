//! One file per command: its arguments and what it does.

pub(crate) mod version;

use crate::answer::Answer;
use crate::args::Command;
use crate::context::Context;
use crate::failure::Failure;

impl Command {
    /// The name that stands in the envelope and names the schema.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Version(_) => "version",
        }
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, context: &Context) -> Result<Answer, Failure> {
        match self {
            Self::Version(_) => Ok(version::run(context)),
        }
    }
}
