//! `planish knobs`

use std::collections::BTreeSet;

use planish_model::{Bound, Catalogue, Knob, KnobId};
use planish_report::{KnobRow, KnobsReport};

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;

/// List every setting that planish knows, and what it means on this host
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Tell everything about this one; of what is no id, list those that begin with it, or say it: vm., swap
    #[arg(value_name = "ID|WORD")]
    id: Option<String>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let catalogue = session.sound_catalogue()?;
    let asked = match &args.id {
        Some(word) => meant(catalogue, word)?,
        None => catalogue.knobs().map(|knob| knob.id.clone()).collect(),
    };
    let statuses = session.verdicts(&session.observe());
    let wanted = statuses.into_iter().filter(|status| asked.contains(&status.id));
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
            legal: match knob.bound {
                None => knob.r#type.describe(),
                Some(
                    Bound::Limit
                    | Bound::Largest
                    | Bound::WakeUp
                    | Bound::Rests
                    | Bound::Turn(_)
                    | Bound::Age
                    | Bound::UnwrittenShare,
                ) => {
                    format!("{}; {ONE_WAY}", knob.r#type.describe())
                }
                Some(_) => format!("{}; {OF_THE_HOST}", knob.r#type.describe()),
            },
            verdict: status.verdict,
            readings: status.places,
        })
    });
    let report = KnobsReport { knobs: rows.collect::<Result<_, _>>()? };
    let next = if asked.len() == 1 { context.line("knobs") } else { context.line("knobs ID") };
    Ok(context.answer(&report, catalogue).next(next))
}

/// What a plan holds a value against that is safe one way only.
const ONE_WAY: &str = "one way only with --allow: see `bound` in docs/knobs.md";
/// What a plan holds a value against besides its range.
const OF_THE_HOST: &str = "what this host could not live with is refused: see `bound` in docs/knobs.md";

/// The knob of this id; else those whose id begins with the word, or else has it, or whose place or reason has.
fn meant(catalogue: &Catalogue, word: &str) -> Result<BTreeSet<KnobId>, Failure> {
    if word.trim_end_matches('*').trim().is_empty() {
        let told = format!("`{word}` is no id, and no word that a setting could have");
        return Err(Failure::usage(told).hint("leave it out: planish knobs lists all"));
    }
    let id = KnobId::new(word);
    let unknown = match catalogue.knob(&id) {
        Ok(_) => return Ok([id].into()),
        Err(unknown) => unknown,
    };
    let word = word.trim_end_matches('*').to_ascii_lowercase();
    let has = |text: &str| text.to_ascii_lowercase().contains(&word);
    let kinds: [&dyn Fn(&Knob) -> bool; 3] =
        [&|knob| knob.id.as_str().starts_with(&word), &|knob| has(knob.id.as_str()), &|knob| {
            has(&knob.path) || has(&knob.why)
        }];
    let found = |is_meant: &&dyn Fn(&Knob) -> bool| -> BTreeSet<KnobId> {
        catalogue.knobs().filter(|knob| is_meant(knob)).map(|knob| knob.id.clone()).collect()
    };
    let found = kinds.iter().map(found).find(|found| !found.is_empty());
    found.ok_or_else(|| unknown.into())
}
