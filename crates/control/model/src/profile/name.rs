//! What a profile may be called.

use thiserror::Error;

use super::Profile;

/// Characters that a name has at most: it stands in tables, journals and paths.
const NAME_MAX: usize = 64;

/// Why a word is no name of a profile. Files of other tools are called by it, below folders of root, and it is typed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{word}` cannot name a profile and its files: letters, digits, dots, dashes and underscores can, {max} at most, \
     the first no dot and no dash",
    max = NAME_MAX
)]
pub struct NameError {
    /// As it was given, or its beginning.
    word: String,
}

impl NameError {
    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> String {
        "name it otherwise, such as my-host".to_owned()
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

impl Profile {
    /// Refuses a name that could not name a file as it stands, or a word of a command line.
    ///
    /// # Errors
    /// Characters other than letters, digits, dots, dashes and underscores; more than 64, or none; a dot or a dash in
    /// front.
    pub fn check_name(name: &str) -> Result<(), NameError> {
        if Self::name_from(name).as_deref() == Some(name) {
            return Ok(());
        }
        let mut word: String = name.chars().take(NAME_MAX).collect();
        if name.chars().nth(NAME_MAX).is_some() {
            word += "...";
        }
        Err(NameError { word })
    }

    /// The name that is nearest to a text, such as that of a file; `None` where nothing of it can be in a name.
    #[must_use]
    pub fn name_from(text: &str) -> Option<String> {
        let plain = text.chars().map(|c| if is_of_name(c) { c } else { '-' });
        let name: String = plain.skip_while(|c| ".-".contains(*c)).take(NAME_MAX).collect();
        (!name.is_empty()).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_plain_words() {
        for name in ["mine", "a", "_", "0", "oracle-19c", "my.host_2", &"x".repeat(64)] {
            assert_eq!(Profile::check_name(name), Ok(()));
        }
        for name in ["", "../x", "a/b", "a b", ".x", "-x", "-", "x\n", "gr\u{f6}sse", &"x".repeat(65)] {
            assert!(Profile::check_name(name).is_err(), "{name}");
        }
        let told = Profile::check_name(&"x".repeat(100_000)).expect_err("too long").to_string();
        assert!(told.starts_with(&format!("`{}...` cannot", "x".repeat(64))) && told.len() < 250, "{told}");
    }

    #[test]
    fn the_name_of_a_file_becomes_one() {
        for (text, name) in [
            ("99-local", Some("99-local")),
            ("my host", Some("my-host")),
            (".hidden", Some("hidden")),
            ("--x", Some("x")),
            ("../x", Some("x")),
            ("del\u{7f}", Some("del-")),
            ("...", None),
            ("", None),
        ] {
            assert_eq!(Profile::name_from(text).as_deref(), name, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_becomes_a_name_is_one(text in any::<String>(), long in "[a.\\-/ ]{0,200}") {
            for text in [text, long] {
                if let Some(name) = Profile::name_from(&text) {
                    prop_assert_eq!(Profile::check_name(&name), Ok(()));
                }
            }
        }
    }
}
