//! `sysctl.d(5)`.

use super::collect::Collector;

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    read_lines(text.lines().enumerate().map(|(index, line)| (index + 1, line)), collector);
}

/// Reads lines with their numbers.
pub(super) fn read_lines<'l>(lines: impl Iterator<Item = (usize, &'l str)>, collector: &mut Collector<'_>) {
    for (number, line) in lines.map(|(number, line)| (number, line.trim())) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // A leading dash only says that failure is ignored.
        let bare = line.strip_prefix('-').unwrap_or(line);
        match bare.split_once('=') {
            Some((key, value)) => collector.sysctl(number, key.trim(), value.trim()),
            None => collector.refuse(number, line, "sets nothing"),
        }
    }
}
