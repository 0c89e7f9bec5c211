//! Where in a file something is wrong, and what was probably meant.

use std::ops::Range;

use planish_model::nearest_listed;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::TrialError;

/// A place in a file: what the reader of the file kept of it, or the way to it from the top.
pub(super) enum Place {
    /// Bytes of the text.
    Span(Range<usize>),
    /// Keys, and numbers of elements from zero: `workload.http.rate`, `rung.2.min_gain`.
    Key(String),
}

impl From<Range<usize>> for Place {
    fn from(span: Range<usize>) -> Self {
        Self::Span(span)
    }
}

impl From<&str> for Place {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<String> for Place {
    fn from(key: String) -> Self {
        Self::Key(key)
    }
}

impl Place {
    /// Where it is in the text. Of a way whose end the file does not have, the last thing that it has.
    pub(super) fn span(self, text: &str) -> Range<usize> {
        let key = match self {
            Self::Span(span) => return span,
            Self::Key(key) => key,
        };
        let Ok(table) = DeTable::parse(text) else { return 0..0 };
        let (mut span, mut value) = (0..0, DeValue::Table(table.into_inner()));
        for part in key.split('.') {
            match child(value, part) {
                Some(found) => (span, value) = (found.span(), found.into_inner()),
                None => break,
            }
        }
        span
    }
}

/// The value under a key of a table, or under a number of a list.
fn child<'t>(value: DeValue<'t>, part: &str) -> Option<Spanned<DeValue<'t>>> {
    match value {
        DeValue::Table(table) => {
            table.into_iter().find(|(key, _)| key.get_ref() == part).map(|(_, value)| value)
        }
        DeValue::Array(list) => list.into_iter().nth(part.parse().ok()?),
        _ => None,
    }
}

/// An error of the TOML reader with its place; an unknown key names the nearest known one.
pub(super) fn malformed(file: &str, text: &str, error: &toml::de::Error) -> TrialError {
    let message = error.message();
    let hint = nearest_listed(message).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    at(file, text, error.span().unwrap_or_default(), format!("{message}{hint}"))
}

/// An error at a place of a file.
pub(super) fn at(file: &str, text: &str, span: Range<usize>, message: String) -> TrialError {
    let before = &text[..span.start.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
    TrialError::Malformed { file: file.to_owned(), line, column, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one() {
        let error = at("f.toml", "a = 1\nbc = 2\n", 9..10, "wrong".to_owned());
        assert_eq!(error.to_string(), "f.toml:2:4: wrong");
    }

    #[test]
    fn a_way_leads_to_its_value_or_as_far_as_the_file_goes() {
        let text = "a = 1\n[b]\nc = { d = 22 }\n[[e]]\nf = 3\n[[e]]\nf = 4\n";
        let found = |key: &str| text[Place::from(key).span(text)].to_owned();
        assert_eq!(found("a"), "1");
        assert_eq!(found("b.c.d"), "22");
        assert_eq!(found("e.1.f"), "4");
        assert_eq!(found("b.c.none"), "{ d = 22 }");
        assert_eq!(found("none"), "");
        let second = Place::from("e.1").span(text);
        assert!(second.start > text.find("f = 3").expect("it is there"), "{second:?}");
    }
}
