//! Files that a text starts or reads.

use super::paths::{below, plain};
use super::{CALLS_MAX, Finder, LOOKS_MAX};
use crate::shell::programs::{FOLDERS, Program, Way, of_shell};

/// Files of which each is started or read by the one before: no script of settings goes deeper.
const FILES_MAX: usize = 8;

/// A line of a file.
#[derive(Clone, Default)]
pub(super) struct Spot {
    /// None for the text itself.
    pub(super) file: String,
    pub(super) line: usize,
    /// What is added to the lines of a part of it; none where a part has no lines of the file.
    pub(super) offset: Option<usize>,
}

/// What a function does, as text, and where that stands.
pub(super) struct Body {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) at: Spot,
}

/// Whether a text is one for a shell; `None` where it does not say what it is for.
fn is_for_shell(text: &str) -> Option<bool> {
    let first = text.lines().next()?.strip_prefix("#!")?;
    let is_shell = |word: &str| ["sh", "bash", "dash", "ash", "ksh", "zsh", "busybox"].contains(&word);
    Some(first.split_whitespace().filter_map(|word| word.rsplit('/').next()).any(is_shell))
}

/// Whether a script has its shell run nothing, as `#!/bin/sh -n` does.
fn only_reads(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let options = first.split_whitespace().skip_while(|word| !word.starts_with('-') || *word == "-S");
    let mut words: Vec<String> = options.map(str::to_owned).collect();
    words.retain(|word| word.starts_with('-'));
    matches!(of_shell(&words), Program::Reads)
}

impl Finder<'_> {
    /// Does what a whole text does, by whatever reads it.
    pub(super) fn whole(&mut self, text: &str) {
        match is_for_shell(text) {
            Some(false) => self.lines_of_others(text),
            Some(true) if only_reads(text) => {}
            _ => self.text(text),
        }
    }

    /// Does what a file does that is started or read, unless it is in the middle of it: whether it is a text at all.
    pub(super) fn follow(&mut self, name: &str, way: Way) -> bool {
        let Some((path, text)) = self.found(name, way) else { return false };
        // What is no script at all is started by a shell alone.
        let is_none = way == Way::Run && self.depth == self.ground && is_for_shell(&text).is_none();
        if is_none {
            return false;
        }
        if self.files.contains(&path) {
            self.unsettles();
            return true;
        }
        if self.files.len() >= FILES_MAX || self.calls >= CALLS_MAX {
            self.left_out();
            return true;
        }
        self.calls += 1;
        let was_doubtful = self.is_doubtful;
        self.is_doubtful |= way == Way::Part && is_for_shell(&text).is_none();
        let at = Spot { file: path.clone(), line: 1, offset: Some(0) };
        self.files.push(path.clone());
        if way == Way::Source {
            let at = std::mem::replace(&mut self.at, at);
            // A `return` leaves it.
            self.running.push(path);
            self.text(&text);
            self.running.pop();
            self.at = at;
        } else {
            self.start(&text, way, at);
        }
        self.files.pop();
        self.is_doubtful = was_doubtful;
        true
    }

    /// Does what the scripts do that a program is given by their paths: one that nobody here knows may start them.
    pub(super) fn perhaps_start(&mut self, words: &[String]) {
        let was_doubtful = std::mem::replace(&mut self.is_doubtful, true);
        for word in words.iter().skip(1).filter(|word| word.starts_with('/')) {
            self.follow(word, Way::Part);
        }
        self.is_doubtful = was_doubtful;
    }

    /// Runs the files of a folder one after another, as `run-parts` does: those with a name of letters, digits, `_` and
    /// `-`, and by that of Red Hat others, too.
    pub(super) fn parts(&mut self, folder: &str, is_sure: bool) {
        let folder = plain(&below(self.folder.as_deref(), folder)).0;
        let Some(ask) = self.ask.filter(|_| folder.starts_with('/') && !self.is_blind) else { return };
        let was = self.is_doubtful;
        for name in ask.names(&format!("{}{folder}", self.root)) {
            let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
            self.is_doubtful = was || !is_sure || !is_plain;
            self.follow(&format!("{folder}/{name}"), Way::Part);
        }
        self.is_doubtful = was;
    }

    /// Has a shell of its own do what a text says. It is given our variables and our folder.
    fn start(&mut self, text: &str, way: Way, at: Spot) {
        let mut environment = self.environment.clone();
        environment.extend(self.variables.clone());
        let mut other = Finder {
            ask: self.ask,
            files: std::mem::take(&mut self.files),
            at,
            environment,
            folder: self.folder.clone(),
            effects: std::mem::take(&mut self.effects),
            begin: self.begin,
            is_conditional: self.is_conditional,
            is_doubtful: self.is_doubtful,
            has_other_network: self.has_other_network,
            root: self.root.clone(),
            depth: self.depth,
            ground: self.depth,
            looks: self.looks.clone(),
            calls: self.calls,
            is_guess: self.is_guess,
            is_spent: self.is_spent,
            unsettled: self.unsettled.clone(),
            ..Finder::default()
        };
        if matches!(way, Way::Run | Way::Part) {
            other.whole(text)
        } else {
            other.text(text)
        }
        self.effects = other.finish();
        (self.files, self.begin, self.looks, self.calls, self.unsettled) =
            (other.files, other.begin, other.looks, other.calls, other.unsettled);
        self.is_spent |= other.is_spent;
    }

    /// The path and the text of a file. A name without a folder is looked for where programs lie.
    fn found(&self, name: &str, way: Way) -> Option<(String, String)> {
        let ask = self.ask.filter(|_| !self.is_blind)?;
        let looks = self.looks.get();
        self.looks.set(looks + 1);
        if looks == LOOKS_MAX {
            self.left_out();
        }
        let is_bare = !name.contains('/') && way != Way::Shell;
        let paths: Vec<String> = match is_bare {
            true => FOLDERS.iter().map(|folder| format!("{folder}{name}")).collect(),
            false => vec![plain(&below(self.folder.as_deref(), name)).0],
        };
        let is_one = |path: &String| path.starts_with('/') && !path.contains(['*', '?', '[']);
        let mut paths = paths.into_iter().filter(|path| looks < LOOKS_MAX && is_one(path));
        paths.find_map(|path| {
            let path = format!("{}{path}", self.root);
            let text = ask.text(&path, matches!(way, Way::Run | Way::Part))?;
            Some((path, text))
        })
    }
}
