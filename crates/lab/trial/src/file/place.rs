//! Where in a file something is wrong, and what was probably meant.

use std::ops::Range;

use planish_model::nearest;

use crate::error::TrialError;

/// An error of the TOML reader with its place; an unknown key names the nearest known one.
pub(super) fn malformed(file: &str, text: &str, error: &toml::de::Error) -> TrialError {
    let message = error.message();
    let hint = guess(message).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    at(file, text, error.span().unwrap_or_default(), format!("{message}{hint}"))
}

/// An error at a place of a file.
pub(super) fn at(file: &str, text: &str, span: Range<usize>, message: String) -> TrialError {
    let before = &text[..span.start.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
    TrialError::Malformed { file: file.to_owned(), line, column, message }
}

/// The nearest of the names that serde lists: ``unknown field `a`, expected one of `b`, `c` ``.
fn guess(message: &str) -> Option<String> {
    let (unknown, expected) = message.split_once(", expected ")?;
    let quoted =
        |text: &str| -> Vec<String> { text.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let wrong = quoted(unknown).pop()?;
    let names = quoted(expected);
    nearest(&wrong, names.iter().map(String::as_str)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_read_from_the_reader_s_list() {
        let message = "unknown field `sumary`, expected one of `name`, `summary`, `primary`";
        assert_eq!(guess(message).as_deref(), Some("summary"));
        assert_eq!(
            guess("unknown variant `pgbanch`, expected `pgbench` or `http`").as_deref(),
            Some("pgbench")
        );
        assert_eq!(guess("invalid type: string"), None);
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        let error = at("f.toml", "a = 1\nbc = 2\n", 9..10, "wrong".to_owned());
        assert_eq!(error.to_string(), "f.toml:2:4: wrong");
    }
}
