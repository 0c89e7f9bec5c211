//! The kernel arguments of a profile of tuned, and those that it takes out again.
//!
//! tuned puts the options `cmdline...` of its plugin `bootloader` together, in the order in which their names came up.
//! One that begins with `-` takes words out of what was put together so far, and none of the host's own
//! (`_get_effective_options` in `tuned/plugins/plugin_bootloader.py`). Variables are put in behind all that.

use super::collect::Collector;
use super::devices::Sections;
use planish_formats::tuned::{Line, Lines};

/// The plugin.
const KIND: &str = "bootloader";

/// Whether a line is one of the options that are put together.
pub(super) fn is_one(sections: &Sections<'_>, line: &Line) -> bool {
    let section = sections.section(&line.section);
    let is_read = section.kind == KIND && !section.is_off && !section.is_of_some;
    is_read && line.value.is_some() && line.key.starts_with("cmdline")
}

/// An option, with what is left of its words.
struct Given<'a> {
    line: &'a Line,
    words: Vec<&'a str>,
}

pub(super) fn read(all: &Lines, sections: &Sections<'_>, collector: &mut Collector<'_>) {
    let options = in_order(all.lines.iter().filter(|line| is_one(sections, line)));
    let why = refused(all, sections);
    let is_alone = options.len() == 1;
    let mut given: Vec<Given<'_>> = Vec::new();
    for line in options {
        let odd = why.clone().or_else(|| line.goes_on.map(|below| format!("goes on in line {below}")));
        let said = odd.map_or_else(|| of_value(line.value.as_deref().unwrap_or_default(), is_alone), Err);
        match said {
            Err(why) => collector.refuse(line.number, &line.told(), why),
            Ok(Said::Adds(words)) => given.push(Given { line, words: words.split_whitespace().collect() }),
            Ok(Said::TakesOut(words)) => {
                words.split_whitespace().for_each(|word| take_out(word, line, &mut given, collector));
            }
        }
    }
    let mut said = Vec::new();
    for Given { line, words } in &given {
        match all.expanded(&words.join(" ")) {
            Ok(text) => said.push((line, text)),
            Err(why) => collector.refuse(line.number, &line.told(), why),
        }
    }
    let said: Vec<(&str, usize, &str)> =
        said.iter().map(|(line, text)| (line.from.as_str(), line.number, text.as_str())).collect();
    collector.all_arguments(&said);
    collector.is_from("");
}

/// The options that count, each where its name came up first: a later value of it does not move it.
fn in_order<'a>(all: impl Iterator<Item = &'a Line>) -> Vec<&'a Line> {
    let mut found: Vec<&Line> = Vec::new();
    for line in all {
        let same = |other: &&mut &Line| (&other.section, &other.key) == (&line.section, &line.key);
        match found.iter_mut().find(|other| same(other)) {
            Some(place) => *place = line,
            None => found.push(line),
        }
    }
    found.retain(|line| line.replaced_by.is_none());
    found
}

/// Why none of them counts.
fn refused(all: &Lines, sections: &Sections<'_>) -> Option<String> {
    let is_skip = |line: &&Line| line.key == "skip_grub_config" && line.replaced_by.is_none();
    let skips = all.lines.iter().filter(|line| sections.section(&line.section).kind == KIND).find(is_skip);
    let word = skips.and_then(|line| line.value.as_deref()).map(str::to_ascii_lowercase);
    if word.is_some_and(|word| ["1", "t", "true", "y", "yes"].contains(&word.as_str())) {
        return Some("skip_grub_config has tuned leave the command line of the kernel as it is".to_owned());
    }
    let mut names = sections.of_kind(KIND);
    let (one, other) = (names.next()?, names.next()?);
    Some(format!(
        "[{one}] and [{other}] are of the plugin {KIND}, and tuned keeps the arguments of one of them"
    ))
}

/// What an option does to the command line.
enum Said<'a> {
    Adds(&'a str),
    TakesOut(&'a str),
}

fn of_value(value: &str, is_alone: bool) -> Result<Said<'_>, String> {
    if let Some(words) = value.strip_prefix('-') {
        return Ok(Said::TakesOut(words));
    }
    // Of the whole command line quotes around it fall away, and none within.
    if let Some(inner) = value.strip_prefix('"') {
        let inner = inner.strip_suffix('"').filter(|inner| is_alone && !inner.contains('"'));
        return inner
            .map(Said::Adds)
            .ok_or_else(|| "has quotes, which tuned leaves where they are".to_owned());
    }
    let escaped = value.strip_prefix('\\').filter(|rest| rest.starts_with(['\\', '+', '-']));
    Ok(Said::Adds(value.strip_prefix('+').or(escaped).unwrap_or(value)))
}

/// Takes a word out of what the options before give; it must be the same word, before variables are put in.
fn take_out(word: &str, by: &Line, given: &mut [Given<'_>], collector: &mut Collector<'_>) {
    let told = format!("{}[{}] {} = -{word}", by.from, by.section, by.key);
    let mut is_taken = false;
    for before in given.iter_mut() {
        let count = before.words.len();
        before.words.retain(|other| *other != word);
        if before.words.len() < count {
            is_taken = true;
            let line = before.line.number;
            let why = format!("line {} takes it out again", by.number);
            collector.pass_over(line, &format!("{}{word}", before.line.from), by.number, &why);
        }
    }
    let why = match is_taken {
        true => "takes out what a line before gives, and sets nothing",
        false => {
            "takes an argument out that no line before it gives: a profile gives arguments, and takes none of a host"
        }
    };
    collector.refuse(by.number, &told, why);
}
