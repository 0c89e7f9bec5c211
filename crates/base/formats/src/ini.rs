//! Files of sections and `key = value` lines, as tuned and saptune have them.

use std::collections::BTreeSet;

/// One line that says something.
pub struct Entry<'a> {
    /// Its number, from 1.
    pub line: usize,
    /// The section it stands in, without brackets.
    pub section: &'a str,
    /// The key; the whole line where it has no `=`.
    pub key: &'a str,
    /// The value; `None` without a `=`.
    pub value: Option<&'a str>,
    /// The first line below that belongs to the value.
    pub goes_on: Option<usize>,
    /// Blanks before it.
    indent: usize,
    /// Whether it is the first one below the name of its section.
    is_first: bool,
}

/// The lines of a note of saptune, comments left out, and values without quotes around them.
pub fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut all = read(text, |line| line);
    for entry in &mut all {
        (entry.value, entry.goes_on) = (entry.value.map(unquoted), None);
    }
    all
}

/// The lines of a file of tuned, as the parser of configurations reads them that it has
/// (`tuned/profiles/loader.py`): what follows a `#` behind a blank is a comment, quotes are part of the value, and a
/// line that is indented deeper than the option above goes on with its value. Of one option that a section says twice
/// the later one counts.
pub fn tuned_entries(text: &str) -> Vec<Entry<'_>> {
    let mut found: Vec<Entry<'_>> = Vec::new();
    for entry in read(text, uncommented) {
        let last = found.last_mut().filter(|last| !entry.is_first && entry.indent > last.indent);
        match last {
            Some(last) => last.goes_on = last.goes_on.or(Some(entry.line)),
            None => found.push(entry),
        }
    }
    found
}

/// The names of sections in a file of tuned that stand there alone, each with its line: no option is below any of them.
pub fn bare_sections(text: &str) -> Vec<(usize, &str)> {
    let named = text.lines().enumerate().filter_map(|(index, line)| {
        let name = uncommented(line.trim()).strip_prefix('[')?.split(']').next()?;
        Some((index + 1, name.trim()))
    });
    let said: BTreeSet<&str> = tuned_entries(text).iter().map(|entry| entry.section).collect();
    named.filter(|(_, name)| !said.contains(name)).collect()
}

/// A line without the comment at its end.
fn uncommented(line: &str) -> &str {
    let starts = line.match_indices('#').map(|(at, _)| at);
    let comment = starts.into_iter().find(|at| line[..*at].ends_with(char::is_whitespace));
    comment.map_or(line, |at| line[..at].trim_end())
}

fn read(text: &str, bare: fn(&str) -> &str) -> Vec<Entry<'_>> {
    let (mut section, mut is_first) = ("", true);
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let trimmed = bare(line.trim());
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            (section, is_first) = (name.trim(), true);
            continue;
        }
        let (key, value) = match trimmed.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim())),
            None => (trimmed, None),
        };
        let indent = line.len() - line.trim_start().len();
        let is_first = std::mem::take(&mut is_first);
        entries.push(Entry { line: index + 1, section, key, value, goes_on: None, indent, is_first });
    }
    entries
}

/// A value without the quotes around it.
pub fn unquoted(value: &str) -> &str {
    let stripped = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    stripped('"').or_else(|| stripped('\'')).unwrap_or(value)
}
