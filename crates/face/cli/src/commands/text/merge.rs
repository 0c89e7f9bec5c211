//! `planish text merge`

use std::path::PathBuf;

use planish_model::Catalogue;
use planish_profile::{Dated, MergeOptions, file, merge, overlap};
use planish_report::TextMergeReport;

use crate::answer::Answer;
use crate::commands::write_file;
use crate::context::Context;
use crate::failure::Failure;

/// Below this share of common weight two profiles are of different workloads.
const OVERLAP_MIN: f64 = 0.7;

/// Make one call profile of many: hosts weighed alike, old ones faded, builds matched by name
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Call profiles of one program
    #[arg(value_name = "PROFILE", required = true)]
    profiles: Vec<PathBuf>,
    /// After so many days a profile counts half
    #[arg(long, value_name = "DAYS", default_value_t = 7.0, value_parser = positive)]
    half_life: f64,
    /// The most that one host may count, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = positive)]
    host_cap: f64,
    /// Write to F instead of stdout
    #[arg(long, short, value_name = "F")]
    output: Option<PathBuf>,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a number above 0".to_owned())
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    const DAY_SECONDS: f64 = 86_400.0;
    let now = super::now(context);
    let mut dated = Vec::with_capacity(args.profiles.len());
    for path in &args.profiles {
        let profile = super::profile(path, None)?;
        let end = profile.window.map_or(now, |window| window.end);
        dated.push(Dated { profile, age_days: now.saturating_sub(end) as f64 / DAY_SECONDS });
    }
    let options = MergeOptions {
        half_life_days: args.half_life,
        host_share_max: (args.host_cap / 100.0).min(1.0),
        ..MergeOptions::default()
    };
    let merged = merge(&dated, &options).map_err(Failure::usage)?;
    let overlaps: Vec<f64> = dated.iter().map(|dated| overlap(&dated.profile, &merged)).collect();
    let text = file::write(&merged);
    if let Some(path) = &args.output {
        write_file(path, &text)?;
    }
    let report = TextMergeReport {
        file: args.output.as_ref().map(|path| path.display().to_string()),
        merged: dated.len(),
        overlaps: overlaps.clone(),
        profile: (&merged).into(),
        text: args.output.is_none().then_some(text),
    };
    let mut answer = context.answer(&report, &Catalogue::default());
    for (path, overlap) in args.profiles.iter().zip(overlaps).filter(|(_, overlap)| *overlap < OVERLAP_MIN) {
        let share = overlap * 100.0;
        answer = answer.warning(format!(
            "{} shares {share:.0} % of its weight with the merged profile: another workload?",
            path.display()
        ));
    }
    Ok(match &args.output {
        Some(path) => answer.next(context.line(&format!("text show {}", path.display()))),
        None => answer.next(context.again("-o merged.planish")),
    })
}
