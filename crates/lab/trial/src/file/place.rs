//! Where in a file something is wrong, and what was probably meant.

use std::ops::Range;

use planish_model::nearest_listed;

use crate::error::TrialError;

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
}
