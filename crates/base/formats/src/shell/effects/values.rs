//! What words of a text may come to, with what a shell puts into them.

use super::{DEPTH_MAX, Finder, LOOKS_MAX, commands_of, lists_in};
use crate::shell::lex::{Lexer, Part, Token, Word, is_name};
use crate::shell::tree::{Kind, List};

/// What one word may come to: more is not followed.
pub(super) const VALUES_MAX: usize = 256;

/// How often a variable is put into itself.
const TURNS_MAX: usize = 1;

/// Bytes of a word with its variables put in.
const VALUE_MAX: usize = 4096;

/// What a variable was set to anywhere in a text.
#[derive(Clone, Default)]
pub(super) struct Variable {
    pub(super) values: Vec<Vec<Part>>,
    /// How many commands set it.
    pub(super) times: usize,
    /// One of them sets it to what only a shell can tell.
    pub(super) is_open: bool,
}

impl Variable {
    /// Adds what it may be. Loops of one text count by the same name to the same end. Whether that is all of it.
    pub(super) fn may_be(&mut self, parts: &[Part]) -> bool {
        if self.values.iter().any(|known| known == parts) {
            return true;
        }
        // Beyond, it may be anything.
        self.is_open |= self.values.len() >= VALUES_MAX;
        if !self.is_open {
            self.values.push(parts.to_vec());
        }
        !self.is_open
    }
}

/// A word with its variables put in.
pub(super) struct Filled {
    pub(super) values: Vec<String>,
    /// Whether these are all that it can be, and it is each of them.
    pub(super) is_sure: bool,
}

impl Filled {
    /// What only a shell can tell.
    pub(super) fn unknown() -> Self {
        Self { values: vec!["*".to_owned()], is_sure: true }
    }

    /// Whether it may be a key with one value or another: which key is told all the same.
    pub(super) fn is_one_key(&self) -> bool {
        let mut keys = self.values.iter().map(|value| value.split_once('=').map(|(key, _)| key));
        let first = keys.next().flatten();
        first.is_some() && keys.all(|key| key == first)
    }
}

/// The default of `${name:-default}`, by what follows the name; `None` for anything else.
fn default_of(rest: &str) -> Option<&str> {
    rest.strip_prefix(':').unwrap_or(rest).strip_prefix(['-', '='])
}

impl Finder<'_> {
    /// What variables and functions a text has, wherever they stand.
    pub(super) fn gather(&mut self, list: &List<'_>) {
        let mut is_all = true;
        for command in commands_of(list) {
            match &command.kind {
                Kind::Simple { assigned, words } => {
                    let name = words.first().map(|word| word.raw).unwrap_or_default();
                    let declares = ["export", "local", "readonly", "declare", "typeset"].contains(&name);
                    let reads = ["read", "mapfile", "readarray", "getopts"].contains(&name);
                    let more = words.iter().filter(|_| declares);
                    for (name, value) in assigned.iter().chain(more).filter_map(Word::assigned) {
                        self.changes += 1;
                        let variable = self.variables.entry(name.to_owned()).or_default();
                        variable.times += 1;
                        is_all &= variable.may_be(&value.parts);
                    }
                    // `: ${name:=default}`.
                    for part in words.iter().flat_map(|word| &word.parts) {
                        let Part::Variable { name, rest, .. } = part else { continue };
                        if default_of(rest).is_some() && rest.trim_start_matches(':').starts_with('=') {
                            self.changes += 1;
                            let variable = self.variables.entry(name.clone()).or_default();
                            variable.times += 1;
                            is_all &= variable.may_be(std::slice::from_ref(part));
                        }
                    }
                    for word in words.iter().filter(|_| reads).skip(1) {
                        self.changes += 1;
                        self.variables.entry(word.raw.to_owned()).or_default().is_open = true;
                    }
                }
                Kind::For { name, words, body } => {
                    self.changes += 1;
                    let variable = self.variables.entry((*name).to_owned()).or_default();
                    variable.times += 1;
                    match words {
                        Some((words, _)) => {
                            for word in words {
                                is_all &= variable.may_be(&here(&word.parts));
                            }
                        }
                        None => variable.is_open = true,
                    }
                    self.gather(body);
                }
                Kind::Function { name, body } => {
                    self.changes += 1;
                    self.functions.insert((*name).to_owned());
                    lists_in(body).into_iter().for_each(|list| self.gather(list));
                }
                _ => lists_in(command).into_iter().for_each(|list| self.gather(list)),
            }
        }
        if !is_all {
            self.left_out();
        }
    }

    /// A word with what a shell puts in; of what cannot be told a `*`.
    pub(super) fn filled(&self, parts: &[Part], depth: usize) -> Filled {
        let mut all = Filled { values: vec![String::new()], is_sure: true };
        let mut splits = false;
        for part in parts {
            let mut more = match part {
                Part::Text { text, .. } => Filled { values: vec![text.clone()], is_sure: true },
                Part::Variable { name, rest, quoted } if rest.is_empty() => {
                    splits |= !quoted;
                    self.value(name, depth)
                }
                Part::Variable { name, rest, quoted } if let Some(default) = default_of(rest) => {
                    splits |= !quoted;
                    self.value_or(name, default, depth)
                }
                // A file that nobody had before.
                Part::Output { commands } if commands.trim_start().starts_with("mktemp") => {
                    Filled { values: vec!["/tmp/*".to_owned()], is_sure: true }
                }
                Part::Output { commands } => self.listed(commands, depth).unwrap_or_else(Filled::unknown),
                _ => Filled::unknown(),
            };
            let is_too_much = all.values.len() * more.values.len() > VALUES_MAX
                || all.values.iter().chain(&more.values).any(|value| value.len() > VALUE_MAX);
            if is_too_much {
                (more, all.is_sure) = (Filled::unknown(), false);
            }
            all.is_sure &= more.is_sure;
            all.values = joined(all.values, more.values);
        }
        if splits {
            all.values =
                all.values.iter().flat_map(|value| value.split_whitespace()).map(str::to_owned).collect();
        }
        if all.values.iter().any(|value| value.contains('{')) {
            all.values = all.values.iter().flat_map(|value| in_braces(value)).take(VALUES_MAX).collect();
        }
        all
    }

    /// What a variable may be. One that several commands set is one of them.
    fn value(&self, name: &str, depth: usize) -> Filled {
        let looks = self.looks.get();
        self.looks.set(looks + 1);
        let known = self.variables.get(name).or_else(|| self.environment.get(name));
        let is_looked_into = depth < DEPTH_MAX && looks < LOOKS_MAX && !self.is_turning(name);
        let Some(variable) = known.filter(|_| is_looked_into) else {
            let own = [("HOME", "/root"), ("TMPDIR", "/tmp")].into_iter().find(|(own, _)| *own == name);
            return own.map_or_else(Filled::unknown, |(_, folder)| Filled {
                values: vec![folder.to_owned()],
                is_sure: true,
            });
        };
        self.filling.borrow_mut().push(name.to_owned());
        let mut all = Filled { values: Vec::new(), is_sure: variable.times == 1 && !variable.is_open };
        for parts in variable.values.iter().take(VALUES_MAX) {
            let filled = self.filled(parts, depth + 1);
            all.is_sure &= filled.is_sure;
            all.values.extend(filled.values);
        }
        self.filling.borrow_mut().pop();
        if variable.is_open {
            all.values.push("*".to_owned());
        }
        if all.values.is_empty() { Filled::unknown() } else { all }
    }

    /// Whether a variable is being put into itself (`all="$all $one"`) once more: what it is after one turn it is after
    /// all of them, but longer, and lists that are made of each other would be followed thousands of times.
    fn is_turning(&self, name: &str) -> bool {
        self.filling.borrow().iter().filter(|other| *other == name).count() > TURNS_MAX
    }

    /// `${name:-default}`: the default of what the text sets nowhere else. What a script is given by its caller (`$1`)
    /// nobody here knows.
    fn value_or(&self, name: &str, default: &str, depth: usize) -> Filled {
        let looks = self.looks.get();
        self.looks.set(looks + 1);
        if !is_name(name) || depth >= DEPTH_MAX || looks >= LOOKS_MAX {
            return Filled::unknown();
        }
        let Some(parts) = one_word(default) else { return Filled::unknown() };
        let mut all = self.filled(&parts, depth + 1);
        let is_own = |part: &Part| match part {
            Part::Variable { name: own, rest, .. } => own == name && default_of(rest) == Some(default),
            _ => false,
        };
        let known = [self.variables.get(name), self.environment.get(name)];
        for variable in known.into_iter().flatten() {
            let others: Vec<_> = variable.values.iter().filter(|parts| !parts.iter().any(is_own)).collect();
            // Of two values for a place that is told, nobody knows which: the place is set all the same.
            if !default.contains('/') && (variable.is_open || !others.is_empty()) {
                return Filled::unknown();
            }
            for parts in others {
                all.values.extend(self.filled(parts, depth + 1).values);
                all.is_sure = false;
            }
            if variable.is_open {
                all.values.push("*".to_owned());
                all.is_sure = false;
            }
        }
        all
    }
}

/// The pieces of a default, where that is one word.
fn one_word(text: &str) -> Option<Vec<Part>> {
    let mut words = Lexer::new(text);
    match (words.token().ok()?, words.token().ok()?) {
        (Token::Word(word), Token::End) => Some(word.parts),
        _ => None,
    }
}

/// Each of some beginnings with each of some ends.
fn joined(begins: Vec<String>, ends: Vec<String>) -> Vec<String> {
    match (begins.as_slice(), ends.as_slice()) {
        ([begin], _) if begin.is_empty() => ends,
        (_, [end]) => {
            let mut all = begins;
            all.iter_mut().for_each(|one| one.push_str(end));
            all
        }
        _ => {
            let each =
                begins.iter().flat_map(|begin| ends.iter().map(move |end| [begin.as_str(), end].concat()));
            each.take(VALUES_MAX).collect()
        }
    }
}

/// A pattern of names in the folder that a text is in, as one that says so: a `*` alone stands for anything.
pub(super) fn here(parts: &[Part]) -> Vec<Part> {
    let mut parts = parts.to_vec();
    if let Some(Part::Text { text, quoted: false }) = parts.first_mut()
        && text.starts_with('*')
    {
        text.insert_str(0, "./");
    }
    parts
}

/// `a{b,c}` as bash has it: `ab` and `ac`. Numbers are not counted.
fn in_braces(word: &str) -> Vec<String> {
    let Some((before, rest)) = word.split_once('{') else { return vec![word.to_owned()] };
    let Some((inner, after)) =
        rest.split_once('}').filter(|(inner, _)| !before.ends_with('$') && !inner.contains('{'))
    else {
        return vec![word.to_owned()];
    };
    let words: Vec<&str> = match (inner.contains(','), inner.contains("..")) {
        (true, _) => inner.split(',').collect(),
        (false, true) => vec!["*"],
        _ => return vec![word.to_owned()],
    };
    let after = in_braces(after);
    words.iter().flat_map(|one| after.iter().map(move |after| format!("{before}{one}{after}"))).collect()
}
