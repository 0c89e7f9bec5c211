//! `planish version`

use planish_model::Catalogue;
use planish_report::VersionReport;

use crate::answer::Answer;
use crate::context::Context;

/// Print the version, the architecture and how the binary is linked
#[derive(Debug, clap::Args)]
pub(crate) struct Args;

pub(crate) fn run(context: &Context) -> Answer {
    context.answer(&VersionReport::of_this_build(), &Catalogue::default())
}
