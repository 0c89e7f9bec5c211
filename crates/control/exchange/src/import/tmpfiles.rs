//! `tmpfiles.d(5)`: the lines that write a value. Of several for one path the first counts.

use std::collections::BTreeMap;

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
    for (number, line) in lines.map(|(number, line)| (number, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let (kind, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let odd = match kind {
            kind if !kind.starts_with('w') => "makes or removes files: only lines of type w set a value",
            kind if kind.contains('+') => "appends to a file (w+): only lines of type w set a value",
            _ => "",
        };
        if !odd.is_empty() {
            collector.refuse(number, line, odd);
            continue;
        }
        let (path, value) = (path.trim_matches('"'), words.skip(4).collect::<Vec<_>>().join(" "));
        if let Some(first) = seen.get(path) {
            let reason = format!("line {first} has this path, and of two lines for one the first counts");
            collector.pass_over(number, line, *first, &reason);
            continue;
        }
        seen.insert(path.to_owned(), number);
        collector.path(number, path, &value.replace("%%", "%"));
    }
}
