//! The rows of second writers: what each must say, and which knobs it means.

use serde::Deserialize;

use super::{Catalogue, CatalogueError, parse};
use crate::{KnobId, SeenWriter, Writer, WriterScope, nearest, place};

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

    /// Whether a second writer that was seen sets a knob on its host, or the same state through another one: whoever
    /// sets a twin clears ours.
    #[must_use]
    pub fn writes(&self, seen: &SeenWriter, knob: &KnobId) -> bool {
        let own = |id: &KnobId| match &seen.knobs {
            Some(knobs) => knobs.contains(id),
            None => self.writer(&seen.id).is_some_and(|writer| writer.may_write(id)),
        };
        let row = self.knobs.get(knob);
        own(knob) || row.is_some_and(|row| row.twin.iter().chain(&row.alias).any(own))
    }

    /// Whether it may set a knob for all that can be told, and is not known to: see [`SeenWriter::maybe`].
    #[must_use]
    pub fn only_may_write(&self, seen: &SeenWriter, knob: &KnobId) -> bool {
        let row = self.knobs.get(knob);
        let same_state = row.into_iter().flat_map(|row| row.twin.iter().chain(&row.alias));
        let mut named = std::iter::once(knob)
            .chain(same_state)
            .filter(|id| seen.knobs.as_ref().is_some_and(|knobs| knobs.contains(id)))
            .peekable();
        named.peek().is_some() && named.all(|id| seen.only_may_set(id))
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
