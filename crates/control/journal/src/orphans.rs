//! Of a damaged journal: the lines of an entry whose beginning is lost, and with it every original. They tell all the
//! same what it has left on the host. Pure.

use std::collections::BTreeMap;

use planish_model::{EntryId, Outcome, OutcomeKind};

use crate::Event;

/// What its lines tell of one entry.
#[derive(Debug, Default)]
struct Orphan {
    /// The numbers of its lines.
    lines: Vec<usize>,
    /// What it has written and not taken back, by place: the value that was read back.
    left: BTreeMap<String, Option<String>>,
    is_closed: bool,
}

/// All such entries.
#[derive(Debug, Default)]
pub(crate) struct Orphans(BTreeMap<EntryId, Orphan>);

impl Orphans {
    /// Takes a line of an entry that was never begun; `false` where it begins something itself.
    pub fn take(&mut self, number: usize, event: &Event) -> bool {
        if matches!(event, Event::Continued { .. } | Event::Carried { .. } | Event::Intent { .. }) {
            return false;
        }
        let orphan = self.0.entry(event.entry()).or_default();
        orphan.lines.push(number);
        match event {
            Event::Outcome { outcome, .. } if is_written(outcome) => {
                orphan.left.insert(outcome.place.clone(), outcome.read_back.clone());
            }
            Event::Undone { outcome, .. } if is_back(outcome) => {
                orphan.left.remove(&outcome.place);
            }
            Event::Closed { .. } => orphan.is_closed = true,
            _ => {}
        }
        true
    }

    /// What is lost with them, a sentence an entry.
    pub fn told(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(id, orphan)| orphan.told(*id))
    }
}

impl Orphan {
    fn told(&self, id: EntryId) -> String {
        let lines = match self.lines.as_slice() {
            [one] => format!("line {one}"),
            [first, .., last] if last - first + 1 == self.lines.len() => format!("lines {first} to {last}"),
            some => format!("{} lines from {}", some.len(), some.first().unwrap_or(&0)),
        };
        let told = format!("{lines}: they speak of entry {id}, which was never begun as far as can be read");
        if self.is_closed {
            return format!("{told}, and say that it was closed");
        }
        if self.left.is_empty() {
            return format!("{told}, and tell of no place that it has set and not taken back");
        }
        let shown = |(place, value): (&String, &Option<String>)| match value.as_deref().map(str::trim) {
            // The text of a file is no value.
            Some(value) if !value.is_empty() && !value.contains('\n') => format!("{place} ({value})"),
            _ => place.clone(),
        };
        let left: Vec<String> = self.left.iter().map(shown).collect();
        format!(
            "{told}; what stood there before it is lost with its beginning, so that no undo takes back what it has \
             set: {}",
            left.join(", ")
        )
    }
}

fn is_written(outcome: &Outcome) -> bool {
    use OutcomeKind::{Done, Lowered, ReadsBack, Short, TakenOver};
    matches!(outcome.outcome, Done | Short | Lowered | ReadsBack | TakenOver)
}

fn is_back(outcome: &Outcome) -> bool {
    use OutcomeKind::{Done, GoneWithReboot, HandedOver, Satisfied};
    matches!(outcome.outcome, Done | Satisfied | HandedOver | GoneWithReboot)
}
