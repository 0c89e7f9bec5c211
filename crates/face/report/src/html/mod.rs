//! A trial as one HTML page that needs nothing else: no other file, no network, no script.
//!
//! The page answers first and proves after: the verdict in a sentence, the ladder of intervals, the table,
//! the single pairs, the noise of the machine, every metric, what was not done and its cure, the machine,
//! the method, and the command that repeats it. It holds the whole [`TrialOutcome`] as JSON; each figure
//! names its place in there (see [`markup`]), so that a test in a browser, or a reader, can hold one against
//! the other.
//!
//! A verdict is never told by colour alone, but by a word and the shape of its mark. The page is a function
//! of the outcome: the same value gives the same bytes.

mod details;
mod figure;
mod latency;
mod machine;
mod map;
mod markup;
mod noise;
mod repeat;
mod rungs;
mod squares;
mod svg;
mod text_show;
mod words;

pub use self::latency::{jitter_html, latency_html};
pub use self::map::map_html;
pub use self::text_show::text_show_html;

use askama::Template;
use planish_trial::{LadderMode, TrialOutcome};

use self::details::Details;
use self::figure::Figure;
use self::machine::Line;
use self::markup::{Html, Quote, json_for_script};
use self::noise::Noise;
use self::repeat::Repeat;
use self::rungs::Ladder;
use self::words::Headline;

/// What the template fills in.
#[derive(Template)]
#[template(path = "trial.html")]
struct TrialPage<'a> {
    title: String,
    /// The command that made it.
    made_by: &'static str,
    headline: Headline,
    summary: Quote,
    compared: Html,
    caution: Option<Html>,
    min_gain: Figure,
    /// Rungs were put on top of each other.
    is_step: bool,
    ladder: Ladder,
    noise: Option<Noise>,
    discarded: Vec<Discarded>,
    details: Vec<Details>,
    machine: Vec<Line>,
    run: Vec<Line>,
    refused: Vec<Refused>,
    notes: Vec<Quote>,
    method: [Html; 5],
    repeat: Repeat,
    json: String,
    outcome: &'a TrialOutcome,
}

/// Something that was not done.
struct Refused {
    what: Quote,
    why: Quote,
    cure: Quote,
}

/// A block that was run again.
struct Discarded {
    block: Figure,
    reason: Quote,
}

/// The page of a trial.
#[must_use]
pub fn trial_html(outcome: &TrialOutcome) -> String {
    let notes = outcome.notes.iter().enumerate();
    let json = serde_json::to_string(outcome).expect("an outcome is plain data with text keys");
    let page = TrialPage {
        title: format!("{} on {}: {}", outcome.trial, outcome.host.cpu_model, made_by(outcome)),
        made_by: made_by(outcome),
        headline: words::headline(outcome),
        summary: Quote::new("/summary", &outcome.summary),
        compared: words::compared(outcome),
        caution: words::caution(outcome),
        min_gain: Figure::plain_gain("/min_gain", outcome.min_gain),
        is_step: outcome.mode == LadderMode::Step,
        ladder: Ladder::of(outcome),
        noise: Noise::of(outcome),
        discarded: discarded(outcome),
        details: details::details(outcome),
        machine: machine::machine(&outcome.host),
        run: machine::run(outcome),
        refused: refused(outcome),
        notes: notes.map(|(index, note)| Quote::new(format!("/notes/{index}"), note)).collect(),
        method: words::method(outcome),
        repeat: Repeat::of(outcome),
        json: json_for_script(&json),
        outcome,
    };
    markup::page(&page)
}

/// The command that made an outcome; `planish trial` for those of versions that did not tell.
fn made_by(outcome: &TrialOutcome) -> &'static str {
    let mut words = outcome.command.split_whitespace();
    match words.find(|word| ["prove", "trial"].contains(word)) {
        Some("prove") => "planish prove",
        _ => "planish trial",
    }
}

fn refused(outcome: &TrialOutcome) -> Vec<Refused> {
    let quote = |index: usize, part: &str, text: &str| Quote::new(format!("/refused/{index}/{part}"), text);
    let refused = outcome.refused.iter().enumerate();
    refused
        .map(|(index, refusal)| Refused {
            what: quote(index, "what", &refusal.what),
            why: quote(index, "why", &refusal.why),
            cure: quote(index, "cure", &refusal.cure),
        })
        .collect()
}

fn discarded(outcome: &TrialOutcome) -> Vec<Discarded> {
    let discards = outcome.discarded.iter().enumerate();
    discards
        .map(|(index, discard)| {
            let at = format!("/discarded/{index}");
            Discarded {
                block: Figure::count(format!("{at}/block"), discard.block as u64),
                reason: Quote::new(format!("{at}/reason"), &discard.reason),
            }
        })
        .collect()
}
