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
            if commands_of(&text).any(|command| !is_plain(&command, &is_function)) {
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
const HARMLESS: [&str; 21] = [
    ":", "[", "cat", "echo", "exit", "false", "grep", "kill", "local", "logger", "popd", "printf", "return",
    "rm", "rmdir", "sleep", "sync", "test", "true", "umount", "wait",
];

/// Options of sysctl that change nothing of what it sets by the words behind them.
const OF_SYSCTL: [&str; 7] = ["-w", "-q", "-e", "-qw", "-wq", "-ew", "-we"];

/// The commands of a text, without the words that a shell puts around them.
fn commands_of(text: &str) -> impl Iterator<Item = String> {
    const AROUND: [&str; 7] = ["if", "then", "else", "do", "{", "}", "!"];
    // One stream into another names no file.
    let text = ["2>&1", ">&2", "1>&2"].iter().fold(text.to_owned(), |text, sign| text.replace(sign, " "));
    let parts: Vec<String> = text.split([';', '\n', '&', '|']).map(|part| part.trim().to_owned()).collect();
    parts.into_iter().map(|part| {
        let mut rest = part.as_str();
        while let Some(behind) = AROUND.iter().find_map(|word| rest.strip_prefix(word)?.strip_prefix(' ')) {
            rest = behind.trim_start();
        }
        rest.to_owned()
    })
}

/// Whether a command says what it writes by its words, or writes nothing of the kernel: a program of which it is known,
/// a line of sysctl with its keys, a file that is named in full.
fn is_plain(command: &str, is_function: &dyn Fn(&str) -> bool) -> bool {
    if command.contains("$(") || command.contains('`') {
        return false;
    }
    let command = command.replace(">>", ">");
    let first = command.split_whitespace().next().unwrap_or_default();
    let targets =
        command.split('>').skip(1).map(|target| target.split_whitespace().next().unwrap_or_default());
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let is_named = |target: &str| {
        let target = target.trim_matches(['"', '\'']);
        target.starts_with('/') && !target.contains("..") && target.chars().all(is_of_path)
    };
    if !targets.into_iter().all(is_named) {
        return false;
    }
    let is_key = |key: &str| key.chars().all(is_of_path);
    let sets_key = |word: &str| word.split_once('=').is_some_and(|(key, _)| is_key(key));
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let is_sysctl = ["sysctl", "/sbin/sysctl", "/usr/sbin/sysctl"].contains(&first)
        && words.iter().any(|word| sets_key(word))
        && words.iter().all(|word| sets_key(word) || OF_SYSCTL.contains(word));
    // A file of lines for the next boot, taken away, is none of these.
    let is_removal = first == "rm" && command.contains("/etc/");
    let is_word = ["", "fi", "done", "esac", "}"].contains(&first) || first.starts_with('#');
    is_word || is_function(first) || is_sysctl || HARMLESS.contains(&first) && !is_removal
}

/// A text with the values of variables that are known in their place.
fn with_values(text: &str, variables: &Variables) -> String {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('$') {
        whole += before;
        let inner = behind.strip_prefix('{');
        let from = inner.unwrap_or(behind);
        let length = from.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(from.len());
        let (name, after) = from.split_at(length);
        let after = if inner.is_some() { after.strip_prefix('}') } else { Some(after) };
        match (variables.get(name), after) {
            (Some(Value::Known { text, .. }), Some(after)) => {
                whole += text;
                rest = after;
            }
            _ => {
                whole.push('$');
                rest = behind;
            }
        }
    }
    whole + rest
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
