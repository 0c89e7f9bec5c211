//! What stands for names that a text does not have itself: the words that another command tells a shell or `xargs`, and
//! places of which no more is told than how they end.

use std::collections::BTreeSet;

use super::values::{Filled, VALUES_MAX, here};
use super::{DEPTH_MAX, Finder, LOOKS_MAX, What, is_aside};
use crate::shell::lex::Word;
use crate::shell::programs::bare;
use crate::shell::tree::{Command, Kind, parse};
use crate::shell::wrappers::started;

/// Programs that let some of the lines through that they read, each as it is.
const FILTERS: [&str; 8] = ["egrep", "fgrep", "grep", "head", "sort", "tac", "tail", "uniq"];

/// Bytes of commands that may tell words: those that do are short.
const COMMANDS_MAX: usize = 4096;

/// Effects whose texts are looked through for folders, that count as a word.
const EFFECTS_OF_A_WORD: usize = 32;

/// The name of a program and what it is given, of a command whose output goes nowhere else.
fn program_of<'c, 't>(command: &'c Command<'t>) -> Option<(&'c str, &'c [Word<'t>])> {
    let Kind::Simple { assigned, words } = &command.kind else { return None };
    let (first, rest) = words.split_first().filter(|_| assigned.is_empty())?;
    let is_heard =
        command.redirects.iter().all(|redirect| !redirect.operator.contains('>') || is_aside(redirect));
    is_heard.then_some((bare(first.plain()?), rest))
}

/// Whether a command lets lines through as they are: what it tells is what was told to it.
pub(super) fn is_filter(command: &Command<'_>) -> bool {
    let Some((name, words)) = program_of(command) else { return false };
    // A part of a line, how many there are, or nothing.
    let is_other = |word: &Word<'_>| {
        let letters = word.raw.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        letters.is_some_and(|letters| letters.contains(['o', 'c', 'q', 'l', 'L']))
    };
    FILTERS.contains(&name) && !(name != "sort" && words.iter().any(is_other))
}

impl Finder<'_> {
    /// The words that commands tell, whichever of them a filter behind lets through: of `ls -d PATTERN` and `echo
    /// PATTERN` those of the pattern. Names in a folder, which `ls FOLDER` tells, are anything.
    pub(super) fn listed(&self, commands: &str, depth: usize) -> Option<Filled> {
        let first = bare(commands.split_whitespace().next()?);
        let looks = self.looks.get();
        if !["echo", "ls", "printf"].contains(&first) || commands.len() > COMMANDS_MAX {
            return None;
        }
        self.looks.set(looks + 1);
        if depth >= DEPTH_MAX || looks >= LOOKS_MAX || self.functions.contains(first) {
            return None;
        }
        let script = parse(commands);
        let [chain] = script.list.items.as_slice() else { return None };
        let (teller, filters) = chain.first.commands.split_first()?;
        if script.broken.is_some() || !chain.rest.is_empty() || !filters.iter().all(is_filter) {
            return None;
        }
        let (name, words) = program_of(teller)?;
        let (options, words): (Vec<&Word<'_>>, Vec<&Word<'_>>) =
            words.iter().partition(|word| word.raw.starts_with('-'));
        let is_of_folders = |word: &&Word<'_>| {
            word.raw == "--directory" || !word.raw.starts_with("--") && word.raw.contains('d')
        };
        let is_whole = name != "ls" || options.iter().any(is_of_folders);
        let mut words = words.into_iter();
        if name == "printf" {
            // Another one puts more around each word.
            words
                .next()
                .filter(|format| ["'%s\\n'", "\"%s\\n\"", "'%s '", "\"%s \""].contains(&format.raw))?;
        }
        let mut all = Filled { values: Vec::new(), is_sure: true };
        for word in words {
            let filled = self.filled(&here(&word.parts), depth + 1);
            all.is_sure &= filled.is_sure;
            // A pattern is taken to be one of files, which `ls` tells as they are.
            let told = |word: &str| match is_whole || word.contains(['*', '?', '[']) {
                true => word.to_owned(),
                false => "*".to_owned(),
            };
            all.values.extend(filled.values.iter().flat_map(|value| value.split_whitespace()).map(told));
        }
        let is_odd = |value: &String| value.contains('\\');
        let is_told = (1..=VALUES_MAX).contains(&all.values.len()) && !all.values.iter().any(is_odd);
        is_told.then_some(all)
    }

    /// Runs what `xargs -I MARK` does with each word that it is told; whether it has a mark at all.
    pub(super) fn with_mark(&mut self, fields: &[String], says: &str, before: &str) -> bool {
        let Some(mark) = mark_of(fields) else { return false };
        self.named(format!("{} {before}", fields.join(" ")));
        let told = self.listed(before, 0).unwrap_or_else(Filled::unknown);
        let was = self.is_doubtful;
        self.is_doubtful |= !told.is_sure;
        for value in told.values {
            let fields: Vec<String> = fields.iter().map(|field| field.replace(mark, &value)).collect();
            let Some(started) = started(&fields).filter(|started| self.spend(started.looked_at)) else {
                break;
            };
            self.program(started.program, &fields, says, before);
        }
        self.is_doubtful = was;
        true
    }

    /// What `find` runs on what it finds, it may run on anything.
    pub(super) fn on_found(&mut self, runs: &[String]) {
        let fields: Vec<String> = runs.iter().map(|word| word.replace("{}", "*")).collect();
        let was = std::mem::replace(&mut self.is_doubtful, true);
        self.apart(|finder| finder.command(&fields, &fields.join(" "), ""));
        self.is_doubtful = was;
    }

    /// Takes note of how a place ends of which only a shell can tell where it begins.
    pub(super) fn ends_in(&mut self, path: &str) {
        let Some((_, tail)) = path.strip_prefix('*').and_then(|rest| rest.split_once('/')) else { return };
        match self.tails.len() < VALUES_MAX {
            true => _ = self.tails.insert(tail.to_owned()),
            false => self.left_out(),
        }
    }

    /// A place of which only the end is told may be below each folder of settings that the text names.
    pub(super) fn below_folders(&mut self) {
        let tails = std::mem::take(&mut self.tails);
        if tails.is_empty() || !self.spend(self.effects.len() / EFFECTS_OF_A_WORD) {
            return;
        }
        let named = self.effects.iter().filter_map(|effect| match &effect.what {
            What::Named(text) => Some(text.as_str()),
            _ => None,
        });
        let folders: BTreeSet<String> = named.flat_map(folders).collect();
        if folders.len() * tails.len() > VALUES_MAX {
            self.left_out();
        }
        let pairs = folders.iter().flat_map(|folder| tails.iter().map(move |tail| (folder, tail)));
        for (folder, tail) in pairs.take(VALUES_MAX) {
            self.maybe_below(folder.clone(), tail.clone());
        }
    }
}

/// What `xargs` puts its words in place of, where a word behind has it.
fn mark_of(fields: &[String]) -> Option<&str> {
    let at = fields.iter().position(|field| bare(field) == "xargs")?;
    let mut rest = fields[at + 1..].iter();
    let mark = rest.find_map(|word| match word.strip_prefix("-I") {
        Some("") => Some(None),
        Some(mark) => Some(Some(mark)),
        None => (word == "-i").then_some(Some("{}")),
    })?;
    let mark = mark.or_else(|| rest.next().map(String::as_str)).filter(|mark| !mark.is_empty())?;
    rest.any(|word| word.contains(mark)).then_some(mark)
}

/// The folders of settings that a text names, or their patterns: of one that a variable goes on in, the folder above.
fn folders(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| c.is_whitespace() || "'\";&|<>()=`:,".contains(c));
    words.filter_map(|word| {
        let word = word.trim_start_matches('-');
        let is_of_kernel = ["/sys", "/proc/sys"].iter().any(|root| {
            word.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '}']))
        });
        let cut = word.split(['$', '{', '}']).next().filter(|_| is_of_kernel)?;
        let goes_on = word[cut.len()..].starts_with(['$', '{']);
        let folder = if goes_on { cut.rsplit_once('/').map_or(cut, |(above, _)| above) } else { cut };
        Some(folder.trim_end_matches('/').to_owned())
    })
}
