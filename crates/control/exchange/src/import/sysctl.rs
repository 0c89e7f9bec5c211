//! `sysctl.d(5)`.

use super::collect::Collector;

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
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
