//! Words of a command line that somebody is told to type.

/// A word as a POSIX shell reads it back: names of programs, profiles and folders are chosen by others, and what is
/// told as a cure is typed by root.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        for (word, shell) in [
            ("apply", "apply"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's", r"'it'\''s'"),
            ("x;id>/tmp/q", "'x;id>/tmp/q'"),
            ("$(id)`id`", "'$(id)`id`'"),
            ("~root", "'~root'"),
        ] {
            assert_eq!(quoted(word), shell);
        }
    }
}
