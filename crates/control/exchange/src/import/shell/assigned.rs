//! Which variables a part of a script may change, whether it is run or not.

use std::collections::BTreeSet;

use super::expand::names;
use planish_formats::shell::{Command, Kind, List, Part, Pipeline, Word};

/// The names, and whether there may be others.
#[derive(Debug, Default)]
pub(super) struct Assigned {
    pub(super) names: BTreeSet<String>,
    /// Those of them that may not be set any more.
    pub(super) removed: BTreeSet<String>,
    pub(super) others: bool,
}

/// Commands of the shell that change those variables that they name.
const CHANGE: [&str; 10] =
    ["declare", "export", "getopts", "local", "mapfile", "read", "readarray", "readonly", "typeset", "unset"];

/// Commands of the shell that may change any.
const CHANGE_ANY: [&str; 6] = [".", "builtin", "command", "eval", "let", "source"];

impl Assigned {
    /// Of a list, where these functions may be called.
    pub(super) fn of(list: &List<'_>, functions: &BTreeSet<&str>) -> Self {
        let mut found = Self::default();
        found.list(list, functions);
        found
    }

    pub(super) fn of_command(command: &Command<'_>, functions: &BTreeSet<&str>) -> Self {
        let mut found = Self::default();
        found.command(command, functions);
        found
    }

    fn list(&mut self, list: &List<'_>, functions: &BTreeSet<&str>) {
        for chain in &list.items {
            self.pipeline(&chain.first, functions);
            chain.rest.iter().for_each(|(_, pipeline)| self.pipeline(pipeline, functions));
        }
    }

    pub(super) fn pipeline(&mut self, pipeline: &Pipeline<'_>, functions: &BTreeSet<&str>) {
        pipeline.commands.iter().for_each(|command| self.command(command, functions));
    }

    fn simple(&mut self, assigned: &[Word<'_>], words: &[Word<'_>], functions: &BTreeSet<&str>) {
        assigned.iter().chain(words).for_each(|word| self.word(word));
        self.names.extend(assigned.iter().filter_map(|word| Some(word.assigned()?.0.to_owned())));
        let Some(first) = words.first() else { return };
        let program = first.plain().unwrap_or("eval");
        let is_to_variable =
            program == "printf" && words.get(1).is_some_and(|word| word.raw.starts_with("-v"));
        self.others |= CHANGE_ANY.contains(&program) || functions.contains(program) || is_to_variable;
        let is_argument = |word: &Word<'_>| {
            word.plain().is_none_or(|text| ["-", "--"].contains(&text) || !text.starts_with(['-', '+']))
        };
        if program == "shift" || program == "set" && words[1..].iter().any(is_argument) {
            let arguments = (1..10).map(|number: u8| number.to_string());
            self.names.extend(arguments.clone());
            self.removed.extend(arguments);
        }
        if program == "unset" {
            self.removed.extend(words[1..].iter().filter_map(|word| word.plain()).map(str::to_owned));
        }
        if CHANGE.contains(&program) {
            for word in &words[1..] {
                match word.assigned().map(|(name, _)| name).or_else(|| word.plain()) {
                    Some(name) => self.names.extend([name.to_owned()]),
                    None => self.others = true,
                }
            }
        }
    }

    /// `$((name = 1))` and `${name:=1}`.
    fn word(&mut self, word: &Word<'_>) {
        for part in &word.parts {
            match part {
                Part::Variable { name, rest, .. } if rest.contains('=') => self.names.extend([name.clone()]),
                Part::Sum { text, .. }
                    if text.contains('=') || text.contains("++") || text.contains("--") =>
                {
                    self.text(text);
                }
                _ => {}
            }
        }
    }

    fn command(&mut self, command: &Command<'_>, functions: &BTreeSet<&str>) {
        match &command.kind {
            Kind::Simple { assigned, words } => self.simple(assigned, words, functions),
            Kind::Group(list) | Kind::Subshell(list) => self.list(list, functions),
            Kind::If(branches) => {
                for (condition, then) in branches {
                    condition.iter().for_each(|condition| self.list(condition, functions));
                    self.list(then, functions);
                }
            }
            Kind::While { condition, body, .. } => {
                self.list(condition, functions);
                self.list(body, functions);
            }
            Kind::For { name, body, .. } => {
                self.names.insert((*name).to_owned());
                self.others |= name.is_empty();
                self.list(body, functions);
            }
            Kind::Case { arms, .. } => arms.iter().for_each(|(_, list)| self.list(list, functions)),
            Kind::Function { .. } => {}
            Kind::Test(words) => words.iter().for_each(|word| self.word(word)),
            Kind::Sum(text) => self.text(text),
        }
    }

    fn text(&mut self, text: &str) {
        self.names.extend(names(text).map(str::to_owned));
    }
}
