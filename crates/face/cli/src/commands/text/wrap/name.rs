//! The one word that some build systems take for a compiler: a link to planish whose name says what it wraps.

use std::ffi::{OsStr, OsString};

use planish_order::command_line::{is_known_compiler, tool_word};

/// What stands before the name of the wrapped program.
const PREFIX: &str = "planish-";
/// Linkers by their whole names, without the target before and the version behind them.
const LINKERS: [&str; 5] = ["ld", "ld.bfd", "ld.gold", "ld.lld", "mold"];

/// The words that stand for a name that we were called by: `planish-g++-12` is `text cc -- g++-12`. `None` for
/// planish itself, and whatever else begins with that word.
pub(crate) fn called_as(name: &OsStr) -> Option<Vec<OsString>> {
    let tool = std::path::Path::new(name).file_name()?.to_str()?.strip_prefix(PREFIX)?;
    let command = if is_known_compiler(tool) {
        "cc"
    } else if LINKERS.contains(&tool_word(tool)) {
        "ld"
    } else {
        return None;
    };
    Some(["text", command, "--", tool].map(OsString::from).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_is_wrapped() {
        let told = |name: &str| {
            let words = called_as(OsStr::new(name))?;
            Some(words.iter().map(|word| word.to_str().expect("text")).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(told("/a b/planish-g++").as_deref(), Some("text cc -- g++"));
        assert_eq!(told("planish-cc").as_deref(), Some("text cc -- cc"));
        assert_eq!(
            told("planish-aarch64-linux-gnu-gcc-13").as_deref(),
            Some("text cc -- aarch64-linux-gnu-gcc-13")
        );
        assert_eq!(told("./planish-ld.lld-19").as_deref(), Some("text ld -- ld.lld-19"));
        assert_eq!(told("planish-x86_64-linux-gnu-ld").as_deref(), Some("text ld -- x86_64-linux-gnu-ld"));
        for name in ["planish", "planish-series", "planish-", "gcc", "/usr/bin/planish-1.0"] {
            assert_eq!(told(name), None, "{name}");
        }
    }
}
