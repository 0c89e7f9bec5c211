//! Files of sections and `key = value` lines, as tuned and saptune have them.

/// Why a line with `>2048` is no setting: what is more already stays.
pub(super) const AT_LEAST: &str = "at least or at most so much: a profile wants one value";
/// Why the lines of a section that asks what host it is on are none.
pub(super) const OF_SOME: &str = "a section for some hosts only: make a profile of your own with `needs`";

/// One line that says something.
pub(super) struct Entry<'a> {
    /// Its number, from 1.
    pub(super) line: usize,
    /// The section it stands in, without brackets.
    pub(super) section: &'a str,
    /// The key; the whole line where it has no `=`.
    pub(super) key: &'a str,
    /// The value, without quotes around it; `None` without a `=`.
    pub(super) value: Option<&'a str>,
}

/// The lines of a file, comments left out.
pub(super) fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut section = "";
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = name.trim();
            continue;
        }
        let (key, value) = match trimmed.split_once('=') {
            Some((key, value)) => (key.trim(), Some(unquoted(value.trim()))),
            None => (trimmed, None),
        };
        entries.push(Entry { line: index + 1, section, key, value });
    }
    entries
}

/// The number of a bias of the CPU, where both have a word for it.
pub(super) fn energy_perf_bias(word: &str) -> &str {
    match word {
        "performance" => "0",
        "normal" => "6",
        "powersave" | "power" => "15",
        other => other,
    }
}

fn unquoted(value: &str) -> &str {
    let stripped = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    stripped('"').or_else(|| stripped('\'')).unwrap_or(value)
}
