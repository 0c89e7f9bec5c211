//! What the reader of TOML says, in words that are not those of the program: types as people write them, and a key that
//! stands twice by its name.

use std::ops::Range;

use super::position::point;

/// Types of the program, and what is written for them. Longer ones first: a name may begin with another one.
const TYPES: [(&str, &str); 16] = [
    ("struct Case", "{ value = WORD, only = PATTERN, needs = { ... } }"),
    ("struct Conditions", "a table of conditions, { kernel_min = \"6.1\" }"),
    ("struct Profile", "a profile: name, summary, [want]"),
    ("internally tagged enum ", "a table for "),
    ("struct ", "a table for "),
    ("nonzero u32", "a whole number above 0"),
    ("nonzero u64", "a whole number above 0"),
    ("usize", "a whole number from 0"),
    ("u64", "a whole number from 0"),
    ("u32", "a whole number from 0"),
    ("u16", "a whole number from 0"),
    ("u8", "a whole number from 0"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("a string", "a word in quotes"),
    ("a sequence", "a list"),
];

/// A message of the reader, for people.
pub(super) fn of(message: &str, text: &str, span: Option<Range<usize>>) -> String {
    if message == "duplicate key" {
        return twice(text, span);
    }
    let Some((wrong, expected)) = message.split_once(", expected ") else { return message.to_owned() };
    let known = TYPES.iter().find_map(|(ours, theirs)| Some((theirs, expected.strip_prefix(ours)?)));
    match known {
        Some((theirs, rest)) => format!("{wrong}, expected {theirs}{rest}"),
        None => message.to_owned(),
    }
}

/// What is wrong with a knob of `[want]` whose name has no quotes: to TOML its dots are tables within tables.
pub(super) fn without_quotes(text: &str) -> Option<String> {
    let table: toml::Table = toml::from_str(text).ok()?;
    let (first, mut value) = table.get("want")?.as_table()?.iter().find(|(key, value)| {
        // A name in quotes has its dots, and is no table of tables.
        !key.contains('.') && value.is_table()
    })?;
    let mut name = first.clone();
    while let Some((key, inner)) = value.as_table().and_then(|table| table.iter().next()) {
        if OF_WANT.contains(&key.as_str()) {
            break;
        }
        (name, value) = (format!("{name}.{key}"), inner);
    }
    let is_bare = text.contains(&name) || text.contains(&format!("[want.{first}"));
    (is_bare && name.contains('.')).then(|| {
        let said = if value.is_table() { "{ ... }".to_owned() } else { value.to_string() };
        format!("a knob's name stands in quotes, as its dots are part of it: \"{name}\" = {said}")
    })
}

/// Keys of a wanted value that is a table.
const OF_WANT: [&str; 7] = ["value", "only", "needs", "need_bytes", "total_bytes", "nodes", "from"];

/// A key that stands twice, with the line where it stands first.
fn twice(text: &str, span: Option<Range<usize>>) -> String {
    let Some((key, at)) = span.and_then(|span| Some((text.get(span.clone())?.trim(), span.start))) else {
        return "a key stands twice".to_owned();
    };
    let (line, _) = point(text, at);
    let is_key = |other: &str| {
        let rest = other.trim_start().trim_start_matches('[').trim_start().strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start().starts_with(['=', ']', '.']))
    };
    let first = text.lines().take(line.saturating_sub(1)).position(is_key);
    let first = first.map(|index| format!(": first in line {}", index + 1)).unwrap_or_default();
    format!("{key} stands twice{first}")
}
