//! The rows of second writers: what each must say, and which knobs it means.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Catalogue, CatalogueError, parse};
use crate::{KnobId, Says, SeenWriter, Writer, WriterScope, nearest, place};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WriterFile {
    pub(super) writer: Vec<Writer>,
}

impl Catalogue {
    /// Adds the rows of a file of second writers.
    ///
    /// # Errors
    /// Malformed text, a name that is taken, a row by which nothing can be recognised.
    pub fn add_writers(&mut self, file: &str, text: &str) -> Result<(), CatalogueError> {
        for writer in parse::<WriterFile>(file, text)?.writer {
            if self.writers.iter().any(|other| other.id == writer.id) {
                return Err(CatalogueError::Twice { file: file.to_owned(), id: writer.id });
            }
            if let Some(rule) = broken_rule(&writer) {
                return Err(CatalogueError::Rule { file: file.to_owned(), id: writer.id, rule });
            }
            self.writers.push(writer);
        }
        Ok(())
    }

    /// All second writers, in the order of the files.
    #[must_use]
    pub fn writers(&self) -> &[Writer] {
        &self.writers
    }

    /// The row of a second writer.
    #[must_use]
    pub fn writer(&self, id: &str) -> Option<&Writer> {
        self.writers.iter().find(|writer| writer.id == id)
    }

    /// Whether a second writer that was seen sets a place of a knob on its host, or the same state through another one:
    /// whoever sets a twin clears ours. Without a place, whether it does so to any of the knob's.
    #[must_use]
    pub fn writes(&self, seen: &SeenWriter, knob: &KnobId, at: Option<&str>) -> bool {
        self.of_same_state(knob, at).any(|(id, at)| match &seen.knobs {
            Some(knobs) => knobs.contains(id) && seen.says_of(id, at.as_deref()),
            None => self.writer(&seen.id).is_some_and(|writer| writer.may_write(id)),
        })
    }

    /// Whether it may set it for all that can be told, and is not known to: see [`SeenWriter::maybe`].
    #[must_use]
    pub fn only_may_write(&self, seen: &SeenWriter, knob: &KnobId, at: Option<&str>) -> bool {
        let has = |says: &Says| self.said(says, knob, at).next().is_some();
        seen.knobs.is_some() && has(&seen.maybe) && !has(&seen.sources)
    }

    /// What texts say of a place of a knob, or of the same state through another one.
    pub fn said<'s>(
        &'s self,
        says: &'s Says,
        knob: &'s KnobId,
        at: Option<&'s str>,
    ) -> impl Iterator<Item = &'s str> {
        self.of_same_state(knob, at).flat_map(|(id, at)| {
            let said = says.get(id).into_iter().flatten();
            said.filter(move |said| said.is_of(at.as_deref())).map(|said| said.text.as_str())
        })
    }

    /// A place of a knob, and those of the knobs that show the same state: of a pool of all nodes, each.
    fn of_same_state<'s>(
        &'s self,
        knob: &'s KnobId,
        at: Option<&'s str>,
    ) -> impl Iterator<Item = (&'s KnobId, Option<Cow<'s, str>>)> {
        let row = self.knobs.get(knob);
        let others = row.into_iter().flat_map(move |row| {
            let filled = at.map(|at| place::captures(&row.path, at).unwrap_or_default());
            row.twin.iter().chain(&row.alias).filter_map(move |id| {
                let other = self.knobs.get(id)?;
                // What only follows this one sets nothing of it: a hint of power that a governor pins.
                let is_mutual = other.twin.iter().chain(&other.alias).any(|own| own == knob);
                let place = filled.as_ref().map(|filled| Cow::Owned(place::fill(&other.path, filled)));
                is_mutual.then_some((id, place))
            })
        });
        std::iter::once((knob, at.map(Cow::Borrowed))).chain(others)
    }

    /// A name that is a knob or a second writer, for options that take both.
    ///
    /// # Errors
    /// Names the nearest valid one.
    pub fn knob_or_writer(&self, name: &str) -> Result<(), CatalogueError> {
        if self.writer(name).is_some() {
            return Ok(());
        }
        if self.knobs.contains_key(&KnobId::new(name)) {
            return Ok(());
        }
        let writers = self.writers.iter().map(|writer| writer.id.as_str());
        Err(CatalogueError::UnknownExclude {
            name: name.to_owned(),
            nearest: nearest(name, writers.clone()).or_else(|| self.meant(name)).map(str::to_owned),
            writers: writers.map(str::to_owned).collect(),
        })
    }

    /// Every knob that a row names must exist: a pattern that means nothing is a typing error.
    pub(super) fn check_writers(&self) -> Result<(), CatalogueError> {
        for writer in &self.writers {
            let options = match &writer.scope {
                Some(WriterScope::Profile { options, .. } | WriterScope::Names { options, .. }) => {
                    options.values().flatten().collect()
                }
                _ => Vec::new(),
            };
            for pattern in writer.writes.iter().chain(options) {
                if !self.knobs.keys().any(|id| place::matches(pattern, id.as_str())) {
                    self.knob_in(&format!("writer {}", writer.id), &KnobId::new(pattern.as_str()))?;
                }
            }
        }
        Ok(())
    }
}

/// The rule of rows that one breaks.
fn broken_rule(writer: &Writer) -> Option<&'static str> {
    let signs = [&writer.programs, &writer.files, &writer.lines_of];
    let has_sign = signs.iter().any(|signs| !signs.is_empty()) || writer.unit.is_some();
    if !has_sign && !writer.is_told_by_texts() {
        return Some(
            "nothing tells that it is there: name a program, a file, a unit, its lines or its texts",
        );
    }
    let lines = &writer.lines_of;
    if [&writer.files, lines].into_iter().flatten().any(|path| !path.starts_with('/')) {
        return Some("files are named by absolute paths");
    }
    if !lines.is_empty() && (!writer.programs.is_empty() || writer.scope.is_some()) {
        return Some("what is seen line by line needs no program and no scope");
    }
    if writer.writes.is_empty() || writer.hand_over.is_empty() {
        return Some("it says what it writes, and what to type");
    }
    if [&writer.why, &writer.source].into_iter().any(|text| text.trim().is_empty()) {
        return Some("why and source are said");
    }
    None
}
