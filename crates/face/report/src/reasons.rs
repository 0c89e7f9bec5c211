//! Reasons that several rows share: a table that says each of them in every row hides what is different.

use std::collections::BTreeSet;

use crate::page::Page;

/// What is shorter is told wherever it holds: to look it up costs more than to read it.
const LENGTH_MIN: usize = 48;

/// The parts of a reason.
fn parts(reason: &str) -> impl Iterator<Item = &str> {
    reason.split("; ")
}

/// Long parts of reasons that several rows of a table have, in the order in which they come up.
pub(crate) struct Shared<'a>(Vec<&'a str>);

impl<'a> Shared<'a> {
    /// Of the reasons of all rows.
    pub(crate) fn of(rows: impl Iterator<Item = &'a str>) -> Self {
        let (mut seen, mut shared) = (BTreeSet::new(), Vec::new());
        for row in rows {
            let mut own: Vec<&str> = parts(row).filter(|part| part.len() >= LENGTH_MIN).collect();
            own.dedup();
            for part in own {
                let is_known = !seen.insert(part);
                if is_known && !shared.contains(&part) {
                    shared.push(part);
                }
            }
        }
        Self(shared)
    }

    /// The reason of a row, with the number of the note for each part that others have, too.
    pub(crate) fn told(&self, reason: &str) -> String {
        let part = |part: &str| match self.0.iter().position(|shared| *shared == part) {
            Some(index) => format!("see note {}", index + 1),
            None => part.to_owned(),
        };
        parts(reason).map(part).collect::<Vec<_>>().join("; ")
    }

    /// Says each of them once, below the table.
    pub(crate) fn notes(&self, page: &mut Page<'_>) {
        if self.0.is_empty() {
            return;
        }
        page.gap();
        for (index, part) in self.0.iter().enumerate() {
            page.fact(&format!("note {}", index + 1), part);
        }
    }
}

/// Reasons in one line: what was said before is not said again.
#[derive(Default)]
pub struct SaidOnce(Vec<String>);

impl SaidOnce {
    /// A reason as it is said behind those before.
    pub fn told(&mut self, reason: &str) -> String {
        let part = |part: &str| {
            if self.0.iter().any(|said| said == part) {
                return "the same".to_owned();
            }
            if part.len() >= LENGTH_MIN {
                self.0.push(part.to_owned());
            }
            part.to_owned()
        };
        parts(reason).map(part).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::{SaidOnce, Shared};

    const LONG: &str = "tuned may set it at the next boot, after the files of the host: who knows";

    #[test]
    fn a_long_reason_of_several_rows_is_told_once() {
        let rows = [format!("/etc/x.conf:1 will set 60; {LONG}"), LONG.to_owned(), "short; alone".to_owned()];
        let shared = Shared::of(rows.iter().map(String::as_str));
        let told: Vec<String> = rows.iter().map(|row| shared.told(row)).collect();
        assert_eq!(told, ["/etc/x.conf:1 will set 60; see note 1", "see note 1", "short; alone"]);
        let alone = Shared::of([LONG, "short", "short"].into_iter());
        assert_eq!((alone.told(LONG).as_str(), alone.told("short").as_str()), (LONG, "short"));
    }

    #[test]
    fn in_one_line_it_is_said_where_it_comes_up_first() {
        let mut said = SaidOnce::default();
        assert_eq!(said.told(LONG), LONG);
        assert_eq!(said.told(&format!("a:1; {LONG}")), "a:1; the same");
        assert_eq!((said.told("short"), said.told("short")), ("short".to_owned(), "short".to_owned()));
    }
}
