//! Functions that BOLT is told to leave alone.

use std::collections::BTreeMap;

use planish_profile::{Program, Rewritable};

use super::Version;

/// Why a function is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The user said so.
    Asked,
    /// This version is known to fail on what it holds.
    Known(&'static str),
    /// BOLT failed, and named it.
    Named(String),
}

impl std::fmt::Display for Skipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Asked => f.write_str("--skip-funcs"),
            Self::Known(why) => f.write_str(why),
            Self::Named(error) => write!(f, "llvm-bolt: {error}"),
        }
    }
}

/// Functions of one program, each with the first reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkipList(BTreeMap<u32, Skipped>);

impl SkipList {
    /// Adds a function; tells whether it is new.
    pub fn add(&mut self, function: u32, why: Skipped) -> bool {
        let is_new = !self.0.contains_key(&function);
        self.0.entry(function).or_insert(why);
        is_new
    }

    /// Whether a function is left alone.
    #[must_use]
    pub fn holds(&self, function: u32) -> bool {
        self.0.contains_key(&function)
    }

    /// Whether every function may be touched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the functions with the reasons.
    pub fn rows<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = (&'a str, &'a Skipped)> {
        self.0.iter().map(|(index, why)| (program.functions()[*index as usize].name.as_str(), why))
    }

    /// The file for `--skip-funcs-file`: a pattern a line, which must match a name as a whole. BOLT numbers the names
    /// of local functions, and takes patterns for POSIX's extended ones.
    #[must_use]
    pub fn patterns(&self, program: &Program) -> String {
        let pattern = |index: &u32| {
            let function = &program.functions()[*index as usize];
            let numbered = if function.global || function.name.contains('/') { "" } else { "(/.*)?" };
            format!("{}{numbered}\n", escaped(&function.name))
        };
        self.0.keys().map(pattern).collect()
    }
}

fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        if "\\^$.[]|()?*+{}".contains(letter) {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// Functions that a version is known to fail on, with the reason.
#[must_use]
pub fn known_failures(version: Version, program: &Rewritable) -> Vec<(u32, Skipped)> {
    /// LLVM issues 89681 and 120267: an error since 19, mended in 21.1.
    const LABELS_FAIL: std::ops::Range<Version> =
        Version { major: 19, minor: 0 }..Version { major: 21, minor: 1 };
    let why = "computed goto in position-independent code, which llvm-bolt 19 and 20 cannot move";
    let fails = LABELS_FAIL.contains(&version) && program.is_position_independent();
    let functions = program.label_tables.iter().filter(|_| fails);
    functions.map(|function| (*function, Skipped::Known(why))).collect()
}

#[cfg(test)]
mod tests {
    use planish_profile::FileKind;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_are_left_alone_by_the_versions_that_fail_on_them_and_no_other() {
        let failing = |kind, major, minor| {
            let program = Rewritable { label_tables: vec![3, 5], ..Rewritable::of_kind(kind) };
            known_failures(Version { major, minor }, &program).len()
        };
        for (kind, major, minor, count) in [
            (FileKind::Pie, 16, 0, 0),
            (FileKind::Pie, 18, 9, 0),
            (FileKind::Pie, 19, 1, 2),
            (FileKind::Library, 20, 1, 2),
            (FileKind::Library, 21, 0, 2),
            (FileKind::Pie, 21, 1, 0),
            (FileKind::Pie, 22, 1, 0),
            (FileKind::Executable, 19, 1, 0),
        ] {
            assert_eq!(failing(kind, major, minor), count, "{kind:?} {major}.{minor}");
        }
    }

    proptest! {
        #[test]
        fn patterns_mean_the_name_and_nothing_else(name in "[A-Za-z0-9_$.+*?()<>/-]{1,40}") {
            let escaped = escaped(&name);
            let mut plain = String::new();
            let mut letters = escaped.chars();
            while let Some(letter) = letters.next() {
                let is_special = "^$.[]|()?*+{}".contains(letter);
                prop_assert!(!is_special, "{escaped}");
                plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
            }
            prop_assert_eq!(plain, name);
        }
    }
}
