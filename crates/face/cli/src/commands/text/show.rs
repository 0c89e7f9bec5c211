//! `planish text show`

use std::path::PathBuf;

use planish_model::Catalogue;
use planish_profile::hot_pages;
use planish_report::{TextPicture, TextShowReport, text_show_html};
use planish_sys::pages;

use crate::answer::Answer;
use crate::commands::{check_page, write_page};
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
    /// Also draw it into this HTML file: a treemap of the functions, and a flame graph of samples that have stacks
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    args.html.as_deref().map_or(Ok(()), check_page)?;
    let named = args.program.as_deref().map(super::program).transpose()?;
    let (profile, stacks) = super::imported(&args.profile, named.as_ref(), args.html.is_some())?;
    let program = named.or_else(|| super::program_of(&profile));
    let sizes = [Some(pages::base_bytes()), pages::thp_bytes()];
    let sizes = sizes.into_iter().flatten().map(|bytes| u64::try_from(bytes).expect("an address is 64 bits"));
    let counted = program.iter().flat_map(|program| {
        let profile = &profile;
        sizes.clone().map(move |bytes| hot_pages(profile, program, bytes))
    });
    let counted: Vec<_> = counted.collect();
    let report = TextShowReport::new(&profile, args.top, &counted);
    let mut answer = context.answer(&report, &Catalogue::default());
    if let Some(page) = &args.html {
        write_page(page, &text_show_html(&report, &TextPicture::new(&profile, stacks.as_ref())))?;
        if stacks.is_none() {
            answer = answer.note(
                "no flame graph: this input has no stacks; samples have them, such as those of text record --raw F",
            );
        }
    }
    Ok(if program.is_none() { answer.note("pages are told with --program BIN") } else { answer })
}
