//! `sysctl.d(5)`, as systemd reads it at the next boot.

use planish_formats::sysctl::{Line, in_order};
use planish_model::place;

use super::collect::Collector;

/// A line that sets a value, or takes back what was said of its place: by an empty one, and by `-key` alone.
struct Said<'l> {
    number: usize,
    text: &'l str,
    path: String,
    value: &'l str,
}

impl Line for Said<'_> {
    fn place(&self) -> &str {
        &self.path
    }

    fn value(&self) -> &str {
        self.value
    }
}

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    read_lines(text.lines().enumerate().map(|(index, line)| (index + 1, line)), collector);
}

/// Lines with a line for each row that one with a pattern means (`net.core.[rw]mem_max`), but for those that a line
/// names in full, be it to be left out (`-key`): those count, wherever they stand (`sysctl.d(5)`). Where the pattern is
/// of one row with places of its own, the row takes it as it is.
fn with_patterns_spelled_out<'l>(said: Vec<Said<'l>>, collector: &Collector<'_>) -> Vec<Said<'l>> {
    let is_pattern = |path: &str| path.contains(['*', '?', '[']);
    let named: Vec<String> =
        said.iter().map(|line| line.path.clone()).filter(|path| !is_pattern(path)).collect();
    let mut all = Vec::new();
    for line in said {
        let meant = |path: &&str| {
            let mut parts = line.path.split('/').zip(path.split('/'));
            let as_many = line.path.split('/').count() == path.split('/').count();
            as_many
                && !path.contains(['{', '*'])
                && parts.all(|(pattern, part)| place::may_mean(pattern, part))
        };
        let rows: Vec<String> = match is_pattern(&line.path) {
            true => {
                collector.knobs().map(|knob| knob.path.as_str()).filter(meant).map(str::to_owned).collect()
            }
            false => Vec::new(),
        };
        if rows.is_empty() {
            all.push(line);
            continue;
        }
        let rows = rows.into_iter().filter(|row| !named.contains(row));
        all.extend(rows.map(|path| Said { number: line.number, text: line.text, path, value: line.value }));
    }
    all
}

/// Reads lines with their numbers, of all files together in the order in which systemd reads these.
pub(super) fn read_lines<'l>(lines: impl Iterator<Item = (usize, &'l str)>, collector: &mut Collector<'_>) {
    let mut said = Vec::new();
    for (number, text) in lines.map(|(number, line)| (number, line.trim())) {
        if text.is_empty() || text.starts_with(['#', ';']) {
            continue;
        }
        // A leading dash before `=` only says that failure is ignored.
        let bare = text.strip_prefix('-');
        let assigned = bare.unwrap_or(text).split_once('=');
        let Some((key, value)) = assigned.or_else(|| Some((bare?, ""))) else {
            collector.refuse(number, text, "sets nothing");
            continue;
        };
        said.push(Said { number, text, path: place::of_sysctl(key.trim()), value: value.trim() });
    }
    let said = in_order(with_patterns_spelled_out(said, collector).into_iter());
    for line in &said {
        match line.value {
            "" => collector.take_back_path(line.number, line.text, &line.path),
            value => collector.path(line.number, &line.path, value),
        }
    }
    let repeats =
        |(first, line): &(&Said<'_>, &Said<'_>)| (&first.path, first.value) == (&line.path, line.value);
    for (first, line) in said.iter().zip(said.iter().skip(1)).filter(repeats) {
        collector.has_turn_of(line.number, first.number);
    }
}
