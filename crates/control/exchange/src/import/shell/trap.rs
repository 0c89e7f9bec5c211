//! What a script has run when it ends: `trap 'echo 1 > P' EXIT`.
//!
//! That is run behind everything else, and is not followed: old values stand in variables, and functions clean up. But
//! what it names it may set back, and of that no line is sure to count.

use std::collections::BTreeSet;

use planish_formats::shell::{Command, Kind, List, Word};
use planish_model::place;

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

/// Refuses what the script set of all that its traps name, by themselves or by functions that they call.
pub(super) fn doubt(
    traps: &[(usize, String)],
    functions: &[(&str, &Command<'_>)],
    collector: &mut Collector<'_>,
) {
    for (line, raw) in traps {
        let (mut called, mut texts) = (BTreeSet::new(), vec![raw.as_str()]);
        while let Some(text) = texts.pop() {
            for word in words(text) {
                let path = if word.starts_with('/') { word.to_owned() } else { place::of_sysctl(word) };
                let why = format!("line {line} has it written again when the script ends: {raw}");
                collector.doubt(&path, &why);
                let own = functions.iter().filter(|(name, _)| *name == word);
                texts.extend(own.filter(|(name, _)| called.insert(*name)).map(|(_, body)| body.raw));
            }
        }
    }
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
