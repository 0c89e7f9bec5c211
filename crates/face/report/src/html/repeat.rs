//! How to run a trial again: the line that was typed, and what it ran.

use planish_trial::{PostgresSetup, Setup, TrialOutcome};

use super::figure::Figure;
use super::markup::{Html, Quote};

/// What the page tells of it.
pub(super) struct Repeat {
    /// The command line; none in outcomes of versions that did not store it.
    pub(super) line: Option<Quote>,
    pub(super) seed: Figure,
    /// Sizes that were chosen where none were given.
    pub(super) sizes: Option<Html>,
    /// What the text below is.
    pub(super) title: &'static str,
    /// The trial file, or the script of a workload.
    pub(super) text: Option<Quote>,
}

impl Repeat {
    pub(super) fn of(outcome: &TrialOutcome) -> Self {
        let line = Some(&outcome.command).filter(|line| !line.is_empty());
        let (title, text) = match &outcome.setup {
            Some(Setup::File(text)) => {
                ("The trial file as it was run", Some(Quote::new("/setup/file", text)))
            }
            Some(Setup::Postgres(PostgresSetup { script: Some(script), .. })) => {
                ("The script", Some(Quote::new("/setup/postgres/script", script)))
            }
            _ => ("", None),
        };
        let sizes = match &outcome.setup {
            Some(Setup::Postgres(setup)) => Some(sizes(setup)),
            _ => None,
        };
        Self {
            line: line.map(|line| Quote::new("/command", line)),
            seed: Figure::verbatim("/seed", outcome.seed),
            sizes,
            title,
            text,
        }
    }
}

/// The options of size, given or chosen, as they are typed.
fn sizes(setup: &PostgresSetup) -> Html {
    let number = |part: &str, value: u64| Figure::verbatim(format!("/setup/postgres/{part}"), value);
    Html::default()
        .text("PostgreSQL ")
        .then(Quote::new("/setup/postgres/version", &setup.version))
        .text(" at --scale ")
        .then(number("scale", setup.scale))
        .text(" --shared-buffers ")
        .then(number("shared_buffers_bytes", setup.shared_buffers_bytes))
        .text(" --clients ")
        .then(number("clients", setup.clients as u64))
        .text(" --bin ")
        .then(Quote::new("/setup/postgres/bin_folder", &setup.bin_folder.to_string_lossy()))
}
