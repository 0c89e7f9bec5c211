//! What a script has run when it ends: `trap 'echo 1 > P' EXIT`.
//!
//! That is run behind everything else, and is not followed: old values stand in variables, and functions clean up. But
//! what it names it may set back, and of that no line is sure to count.

use std::collections::BTreeSet;

use planish_formats::shell::{Command, Kind, List, Word};
use planish_model::place;

use super::expand::{Value, Variables};
use crate::import::collect::Collector;

/// Whether a trap for these words of `trap` runs without a signal from outside: at the end, and of bash at each
/// failure, command or return.
pub(super) fn is_run_at_an_end(words: &[&str]) -> bool {
    let of_shell = |signal: &&str| {
        let signal = signal.to_ascii_uppercase();
        let known = ["0", "EXIT", "ERR", "DEBUG", "RETURN"].contains(&signal.trim_start_matches("SIG"));
        known || signal.contains(['$', '`'])
    };
    words.iter().skip(2).any(of_shell) && !["-", ""].contains(&words[1])
}

/// What runs when a script ends.
pub(super) struct Trap {
    pub(super) line: usize,
    /// The whole command.
    pub(super) raw: String,
    /// What it has run, with the variables that double quotes put in where it stands.
    pub(super) commands: String,
}

/// Refuses what the script set of all that its traps name, by themselves or by functions that they call, and by what
/// variables hold at the end.
pub(super) fn doubt(
    traps: &[Trap],
    functions: &[(&str, &Command<'_>)],
    variables: &Variables,
    collector: &mut Collector<'_>,
) {
    for Trap { line, raw, commands } in traps {
        let why = format!("line {line} has it written again when the script ends: {raw}");
        let (mut called, mut texts) = (BTreeSet::new(), vec![commands.as_str()]);
        // What only a shell can put into its words stands in the line itself.
        words(raw).for_each(|word| collector.doubt(&path_of(word), &why));
        while let Some(text) = texts.pop() {
            let text = with_values(text, variables);
            let is_function = |name: &str| functions.iter().any(|(own, _)| *own == name);
            if commands_of(&text).any(|command| !is_plain(command, &is_function)) {
                collector
                    .doubt_all(&format!("line {line} may have it written again when the script ends: {raw}"));
            }
            for word in words(&text) {
                collector.doubt(&path_of(word), &why);
                let own = functions.iter().filter(|(name, _)| *name == word);
                texts.extend(own.filter(|(name, _)| called.insert(*name)).map(|(_, body)| body.raw));
            }
        }
    }
}

/// What a word names: a path, or a key of sysctl.
fn path_of(word: &str) -> String {
    if word.starts_with('/') { word.to_owned() } else { place::of_sysctl(word) }
}

/// Programs that set nothing of the kernel, whatever they are told.
const HARMLESS: [&str; 23] = [
    ":", "[", "cat", "cleanup", "echo", "exit", "false", "grep", "kill", "local", "logger", "popd", "printf",
    "pushd", "return", "rm", "rmdir", "sleep", "sync", "test", "true", "umount", "wait",
];

/// The commands of a text, without the words that a shell puts around them.
fn commands_of(text: &str) -> impl Iterator<Item = &str> {
    const AROUND: [&str; 6] = ["then", "else", "do", "{", "}", "!"];
    let parts = text.split([';', '\n', '&', '|', '{', '}']).map(str::trim);
    parts.map(|part| {
        let (first, rest) = part.split_once(' ').unwrap_or((part, ""));
        if AROUND.contains(&first) { rest.trim() } else { part }
    })
}

/// Whether a command says what it writes by its words, or writes nothing of the kernel: a program of which it is known,
/// a line of sysctl with its key, a file that is named in full.
fn is_plain(command: &str, is_function: &dyn Fn(&str) -> bool) -> bool {
    let first = command.split_whitespace().next().unwrap_or_default();
    let targets = command.split('>').skip(1).map(|target| target.trim().trim_start_matches(['"', '\'']));
    let is_named = |target: &str| target.starts_with(['/', '&']) && !target.contains(['$', '`', '*', '?']);
    if !targets.into_iter().all(|target| is_named(target.split_whitespace().next().unwrap_or_default())) {
        return false;
    }
    let sets_key = |word: &str| word.split_once('=').is_some_and(|(key, _)| !key.contains('$'));
    let is_sysctl = ["sysctl", "/sbin/sysctl", "/usr/sbin/sysctl"].contains(&first);
    let options = || command.split_whitespace().skip(1).filter(|word| !word.starts_with('-'));
    // A file of lines for the next boot, taken away, is none of these.
    let is_removal = first == "rm" && command.contains("/etc/");
    let is_word =
        ["", "if", "fi", "done", "esac"].contains(&first) || first.ends_with("()") || first.starts_with('#');
    let is_known = HARMLESS.contains(&first) && !is_removal;
    is_known || is_word || is_function(first) || is_sysctl && options().all(sets_key)
}

/// A text with the values of variables that are known in their place; of names that begin alike the longest is meant.
fn with_values(text: &str, variables: &Variables) -> String {
    let mut whole = text.to_owned();
    for (name, value) in variables.iter().rev().filter(|_| text.contains('$')) {
        if let Value::Known { text: value, .. } = value {
            whole = whole.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
        }
    }
    whole
}

/// The words of a text, without what puts several of them together.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || "'\"`;&|<>(){}=".contains(c);
    text.split(ends).filter(|word| !word.is_empty())
}

/// Functions and aliases, in the order in which they stand there.
pub(super) fn definitions<'t>(
    list: &'t List<'t>,
    named: &mut BTreeSet<&'t str>,
    bodies: &mut Vec<(&'t str, &'t Command<'t>)>,
) {
    let pipelines = list
        .items
        .iter()
        .flat_map(|chain| std::iter::once(&chain.first).chain(chain.rest.iter().map(|(_, one)| one)));
    for command in pipelines.flat_map(|pipeline| &pipeline.commands) {
        let mut command = command;
        loop {
            match &command.kind {
                Kind::Function { name, body } => {
                    named.insert(name);
                    bodies.push((name, body));
                    command = body;
                    continue;
                }
                Kind::Simple { words, .. } => {
                    if words.first().and_then(Word::plain) == Some("alias") {
                        let names = words.iter().filter_map(|word| word.raw.split_once('='));
                        named.extend(names.map(|(name, _)| name));
                    }
                }
                Kind::Group(list) | Kind::Subshell(list) => definitions(list, named, bodies),
                Kind::If(branches) => {
                    for (condition, then) in branches {
                        condition.iter().for_each(|list| definitions(list, named, bodies));
                        definitions(then, named, bodies);
                    }
                }
                Kind::While { condition, body, .. } => {
                    definitions(condition, named, bodies);
                    definitions(body, named, bodies);
                }
                Kind::For { body, .. } => definitions(body, named, bodies),
                Kind::Case { arms, .. } => arms.iter().for_each(|(_, list)| definitions(list, named, bodies)),
                Kind::Test(_) | Kind::Sum(_) => {}
            }
            break;
        }
    }
}
