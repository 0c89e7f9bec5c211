//! `tmpfiles.d(5)`: the lines that write a value.

use super::collect::Collector;

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let (kind, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if !kind.starts_with('w') || kind.contains('+') {
            collector.refuse(number, line, "makes or removes files: only lines of type w set a value");
            continue;
        }
        let value: Vec<&str> = words.skip(4).collect();
        collector.path(number, path.trim_matches('"'), &value.join(" ").replace("%%", "%"));
    }
}
