//! `tmpfiles.d(5)`: the lines that write a value. Of several for one path the first counts.

use std::collections::BTreeMap;

use planish_formats::tmpfiles::Line;
use planish_model::place;

use super::collect::Collector;

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    read_lines(lines, &mut BTreeMap::new(), collector);
}

/// Reads lines with their numbers; `seen` are paths of the lines before them, with the numbers of those.
pub(super) fn read_lines<'l>(
    lines: impl Iterator<Item = (usize, &'l str)>,
    seen: &mut BTreeMap<String, usize>,
    collector: &mut Collector<'_>,
) {
    for (number, text) in lines.map(|(number, line)| (number, line.trim())) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let kind = text.split_whitespace().next().unwrap_or_default();
        let odd = match kind {
            kind if !kind.starts_with('w') => "makes or removes files: only lines of type w set a value",
            kind if kind.contains('+') => "appends to a file (w+): only lines of type w set a value",
            _ => "",
        };
        if !odd.is_empty() {
            collector.refuse(number, text, odd);
            continue;
        }
        let Some(line) = Line::of(text) else {
            collector.refuse(number, text, "is no line of tmpfiles.d: TYPE PATH MODE USER GROUP AGE VALUE");
            continue;
        };
        // One that systemd passes over, or may, leaves the path to those behind it.
        let value = match line.value() {
            Ok(value) => value,
            Err(why) => {
                collector.refuse(number, text, why);
                continue;
            }
        };
        for path in place::in_braces(&line.path) {
            if let Some(first) = seen.get(&path).filter(|first| **first != number) {
                let reason = format!("line {first} has this path, and of two lines for one the first counts");
                collector.pass_over(number, text, *first, &reason);
                continue;
            }
            collector.path(number, &path, &value);
            seen.insert(path, number);
        }
    }
}
