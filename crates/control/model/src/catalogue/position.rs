//! Where in a file something is that is well-formed TOML and wrong all the same.
//!
//! Rows and profiles keep no positions: they are values, compared and hashed. Only an error needs them, and then
//! the text is read once more for its spans.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

/// The keys of a profile's `[want]`.
#[derive(Deserialize)]
struct WantKeys {
    want: HashMap<Spanned<String>, IgnoredAny>,
}

/// The parents of a profile.
#[derive(Deserialize)]
struct Parents {
    inherits: Vec<Spanned<String>>,
}

/// The name of a profile.
#[derive(Deserialize)]
struct Name {
    name: Spanned<String>,
}

/// The ids of a file's `[[knob]]` rows.
#[derive(Deserialize)]
struct RowIds {
    knob: Vec<RowId>,
}

#[derive(Deserialize)]
struct RowId {
    id: Spanned<String>,
}

/// The byte at which a profile names a knob.
pub(super) fn of_want(text: &str, id: &str) -> Option<usize> {
    let keys = toml::from_str::<WantKeys>(text).ok()?.want;
    keys.keys().find(|key| key.get_ref() == id).map(|key| key.span().start)
}

/// The byte at which a profile has its name.
pub(super) fn of_name(text: &str) -> Option<usize> {
    toml::from_str::<Name>(text).ok().map(|profile| profile.name.span().start)
}

/// The byte at which a profile names a parent.
pub(super) fn of_parent(text: &str, name: &str) -> Option<usize> {
    let parents = toml::from_str::<Parents>(text).ok()?.inherits;
    parents.iter().find(|parent| parent.get_ref() == name).map(|parent| parent.span().start)
}

/// The byte at which the last row of this name has its id: of two rows it is the second that is wrong.
pub(super) fn of_row(text: &str, id: &str) -> Option<usize> {
    let rows = toml::from_str::<RowIds>(text).ok()?.knob;
    rows.iter().rev().find(|row| row.id.get_ref() == id).map(|row| row.id.span().start)
}

/// `file:line:column`, or only the file where the byte is not known.
pub(super) fn located(file: &str, text: &str, at: Option<usize>) -> String {
    let Some(at) = at else { return file.to_owned() };
    let (line, column) = point(text, at);
    format!("{file}:{line}:{column}")
}

/// Line and column of a byte, both from 1.
pub(super) fn point(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
    (before.matches('\n').count() + 1, column)
}
