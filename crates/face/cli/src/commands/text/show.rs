//! `planish text show`

use std::path::PathBuf;

use planish_model::Catalogue;
use planish_profile::hot_pages;
use planish_report::TextShowReport;
use planish_sys::pages;

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;

/// Show a call profile: hot functions, who calls them, and the pages that they lie on
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A call profile, or samples of any format that names functions
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,
    /// The program; without it, the file that was sampled if it is still the same build
    #[arg(long, value_name = "BIN")]
    program: Option<PathBuf>,
    /// Show so many functions
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let named = args.program.as_deref().map(super::program).transpose()?;
    let profile = super::profile(&args.profile, named.as_ref())?;
    let program = named.or_else(|| super::program_of(&profile));
    let sizes = [Some(pages::base_bytes()), pages::thp_bytes()];
    let sizes = sizes.into_iter().flatten().map(|bytes| u64::try_from(bytes).expect("an address is 64 bits"));
    let counted = program.iter().flat_map(|program| {
        let profile = &profile;
        sizes.clone().map(move |bytes| hot_pages(profile, program, bytes))
    });
    let counted: Vec<_> = counted.collect();
    let report = TextShowReport::new(&profile, args.top, &counted);
    let answer = context.answer(&report, &Catalogue::default());
    Ok(if program.is_none() { answer.note("pages are told with --program BIN") } else { answer })
}
