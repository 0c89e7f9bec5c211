//! What became of the programs while they were measured.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{HUGE_LEAST, Made, TextArm, steps};
use crate::arm::Recipe;
use crate::build::fingerprint;
use crate::control::Stop;
use crate::file::TextWord;
use crate::outcome::{Achieved, Rung, RungVerdict, TrialOutcome};
use crate::run::RunOptions;

/// Looks once more at every program: whether it is the one that was made, and on the pages that its arm stands for.
/// Memory that runs short takes huge pages away, and others may put a program on some. Then the figure of the arm is of
/// something else, and nothing is concluded from it; of the baseline, nothing from any.
pub(crate) fn look_again(recipes: &[Recipe], options: &RunOptions, outcome: &mut TrialOutcome) {
    let Some(baseline) = recipes.first().and_then(|recipe| recipe.text.as_ref()) else { return };
    // Whoever stopped the trial wants to know all the same.
    let options = RunOptions { stop: Stop::default(), ..options.clone() };
    let of_baseline = outcome.baseline_achieved.get_or_insert_default();
    let lost = look(baseline, of_baseline, true, &options);
    let mut is_open_again = lost.is_some();
    if let Some(why) = &lost {
        outcome.notes.push(format!("the baseline: {why}, so that nothing is concluded from this trial"));
    }
    let placebo = [(TrialOutcome::PLACEBO, baseline.twin())];
    let arms = recipes[1..].iter().filter_map(|recipe| Some((recipe.name.as_str(), recipe.text.clone()?)));
    for (name, text) in arms.chain(placebo) {
        let Some(rung) = outcome.rungs.iter_mut().find(|rung| rung.name == name) else { continue };
        let has_run = rung.pairs > 0;
        let why = look(&text, rung.achieved.get_or_insert_default(), has_run, &options);
        outcome.notes.extend(why.iter().map(|why| format!("`{name}`: {why}")));
        why.iter().for_each(|why| open_again(rung, why));
        is_open_again |= why.is_some();
    }
    if let Some(why) = &lost {
        outcome.rungs.iter_mut().for_each(|rung| open_again(rung, &format!("the baseline: {why}")));
    }
    if is_open_again {
        outcome.exit = outcome.exit_of_rungs().code();
    }
}

/// A rung whose figure is not of what it stands for.
fn open_again(rung: &mut Rung, why: &str) {
    if matches!(rung.verdict, RungVerdict::Keep | RungVerdict::Drop) {
        rung.verdict = RungVerdict::Inconclusive;
        rung.reason = format!("{why}; before that: {}", rung.reason);
    }
}

/// Adds what is found to what was read back of an arm, and gives what is wrong with it.
fn look(text: &TextArm, achieved: &mut Achieved, has_run: bool, options: &RunOptions) -> Option<String> {
    let Ok(made) = &text.made else { return None };
    // One that never ran has a program all the same.
    achieved.facts.extend(made.facts.clone());
    if fingerprint(&made.program).ok().map(|sha256| json!(sha256)).as_ref()
        != made.facts.get("program_sha256")
    {
        achieved.verified = Some(false);
        return Some(format!("somebody has changed its program {} meanwhile", made.program.display()));
    }
    let wants_huge = text.words.contains(&TextWord::Huge);
    let cached = match steps::cached(&made.program, options) {
        Ok(cached) => cached,
        Err(error) => {
            achieved.verified = None;
            achieved.facts.insert("text_huge_after_reason".to_owned(), json!(error.to_string()));
            return None;
        }
    };
    achieved.facts.extend(
        cached.get("text_huge_bytes").map(|bytes| ("text_huge_after_bytes".to_owned(), bytes.clone())),
    );
    let held = [made.facts.clone(), cached].iter().all(|facts| is_as_wanted(facts, wants_huge));
    if has_run {
        achieved.verified = Some(held && achieved.verified != Some(false));
    }
    (!held).then(|| on_others(made, wants_huge))
}

fn on_others(made: &Made, wants_huge: bool) -> String {
    let program = made.program.display();
    if wants_huge {
        return format!(
            "its text was not on huge pages until the end (planish text huge {program} --prepare makes room)"
        );
    }
    format!("its text, which was to be on base pages, was on huge pages at the end ({program})")
}

/// Whether text lies on the pages that an arm stands for, where this kernel tells.
pub(super) fn is_as_wanted(facts: &BTreeMap<String, Value>, wants_huge: bool) -> bool {
    let bytes = |name: &str| facts.get(name).and_then(Value::as_f64);
    let (whole, huge) = (bytes("text_whole_bytes").unwrap_or(0.0), bytes("text_huge_bytes").unwrap_or(0.0));
    if wants_huge { whole > 0.0 && huge >= HUGE_LEAST * whole } else { huge == 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_pages_are_none_of_the_others_and_huge_ones_nearly_all() {
        let facts = |whole: u64, huge: u64| {
            let facts = [("text_whole_bytes", whole), ("text_huge_bytes", huge)];
            facts.map(|(name, bytes)| (name.to_owned(), json!(bytes))).into()
        };
        assert!(is_as_wanted(&facts(100, 0), false) && !is_as_wanted(&facts(100, 1), false));
        assert!(is_as_wanted(&facts(100, 90), true) && !is_as_wanted(&facts(100, 89), true));
        assert!(!is_as_wanted(&facts(0, 0), true), "a text without a whole page is on none");
        assert!(is_as_wanted(&BTreeMap::new(), false), "where nothing is told, nothing is huge");
    }

    #[test]
    fn a_figure_of_something_else_concludes_nothing() {
        let mut kept = Rung::without_pairs("a", RungVerdict::Keep, "pays".to_owned());
        open_again(&mut kept, "gone");
        assert_eq!(
            (kept.verdict, kept.reason.as_str()),
            (RungVerdict::Inconclusive, "gone; before that: pays")
        );
        let mut lacking = Rung::without_pairs("b", RungVerdict::Unavailable, "none".to_owned());
        open_again(&mut lacking, "gone");
        assert_eq!(lacking.verdict, RungVerdict::Unavailable);
    }
}
