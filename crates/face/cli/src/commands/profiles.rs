//! `planish profiles`

use std::collections::BTreeMap;

use planish_model::{Catalogue, KnobId, Profile, Reading, quoted};
use planish_pipeline::{PipelineError, Session, Source};
use planish_report::{ProfileRow, ProfileWant, ProfilesReport};

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;

/// List the profiles that there are, or tell what one of them wants here
///
/// Of one, each row is told with what this host has now; behind the reason stands the profile that it inherits it from.
/// What a plan would change, and what it would not, `planish plan` tells.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Tell everything about this one: a profile by its name, or its file with a slash and the ending .toml
    #[arg(value_name = "PROFILE")]
    profile: Option<String>,
}

/// What this host has, by knob.
type Readings = BTreeMap<KnobId, Vec<Reading>>;

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let catalogue = session.sound_catalogue()?;
    let Some(named) = &args.profile else {
        let rows = catalogue.profile_names().filter_map(|name| catalogue.profile_as_written(name));
        let rows = rows.map(|(profile, file)| row(catalogue, profile, file, &Readings::new()));
        let report = ProfilesReport { profiles: rows.collect::<Result<_, _>>()?, is_one: false };
        return Ok(context.answer(&report, catalogue).next(context.line("profiles PROFILE")));
    };
    let statuses = session.verdicts(&session.observe());
    let readings = statuses.into_iter().map(|status| (status.id, status.places)).collect();
    let one = one(named, &session, catalogue, &readings)?;
    let report = ProfilesReport { profiles: vec![one], is_one: true };
    Ok(context.answer(&report, catalogue).next(context.line(&format!("plan {}", quoted(named)))))
}

/// The profile that the command line names.
fn one(
    named: &str,
    session: &Session,
    catalogue: &Catalogue,
    readings: &Readings,
) -> Result<ProfileRow, Failure> {
    let source = Source::named(named);
    if let Some(profile) = source.own_profile(session)? {
        return row(catalogue, &profile, Some(named), readings);
    }
    if source.is_file_by_name(session) {
        return Err(PipelineError::FileByName { name: named.to_owned() }.into());
    }
    match catalogue.profile_as_written(named) {
        Some((profile, file)) => row(catalogue, profile, file, readings),
        // The error says which there are, or what is wrong with it.
        None => row(catalogue, &catalogue.profile(named)?, None, readings),
    }
}

fn row(
    catalogue: &Catalogue,
    profile: &Profile,
    file: Option<&str>,
    readings: &Readings,
) -> Result<ProfileRow, Failure> {
    let whole = match catalogue.profile_as_written(&profile.name) {
        Some((known, _)) if known == profile => catalogue.profile(&profile.name)?,
        _ => catalogue.resolve(file.unwrap_or(&profile.name), profile)?,
    };
    let want = whole.want.iter().map(|(id, wanted)| {
        let knob = catalogue.knob(id)?;
        Ok::<_, Failure>(ProfileWant {
            id: id.clone(),
            wanted: wanted.clone(),
            from: catalogue.wanted_in(profile, id, wanted).to_owned(),
            class: knob.class,
            when: knob.when,
            why: knob.why.clone(),
            readings: readings.get(id).cloned().unwrap_or_default(),
        })
    });
    Ok(ProfileRow {
        name: profile.name.clone(),
        summary: profile.summary.clone(),
        file: file.map(str::to_owned),
        inherits: profile.inherits.clone(),
        programs: profile.programs.clone(),
        versions: profile.versions(),
        services: whole
            .placement
            .iter()
            .flat_map(|placement| &placement.service)
            .map(|one| one.unit.clone())
            .collect(),
        want: want.collect::<Result<_, _>>()?,
    })
}
