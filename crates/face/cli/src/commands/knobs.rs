//! `planish knobs`

use planish_model::KnobId;
use planish_report::{KnobRow, KnobsReport};

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;

/// List every setting that planish knows, and what it means on this host
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Tell everything about this one
    #[arg(value_name = "ID")]
    id: Option<String>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let catalogue = session.sound_catalogue()?;
    let asked = args.id.as_ref().map(KnobId::new);
    if let Some(id) = &asked {
        catalogue.knob(id)?;
    }
    let statuses = session.verdicts(&session.observe());
    let wanted = statuses.into_iter().filter(|status| asked.as_ref().is_none_or(|id| *id == status.id));
    let rows = wanted.map(|status| {
        let knob = catalogue.knob(&status.id)?;
        Ok::<_, Failure>(KnobRow {
            id: status.id,
            place: status.place,
            class: knob.class,
            when: knob.when,
            why: knob.why.clone(),
            cost: knob.cost.clone(),
            source: knob.source.clone(),
            proof: knob.proof.clone(),
            legal: knob.r#type.describe(),
            verdict: status.verdict,
            readings: status.places,
        })
    });
    let report = KnobsReport { knobs: rows.collect::<Result<_, _>>()? };
    let next = match asked {
        Some(_) => context.line("knobs"),
        None => context.line("knobs ID"),
    };
    Ok(context.answer(&report, catalogue).next(next))
}
