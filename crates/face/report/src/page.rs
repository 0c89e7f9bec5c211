//! The page that a report writes its text on, and the words that all reports share.

use anstyle::{AnsiColor, Style};
use planish_model::{Catalogue, Class, CpuForm, KnobId, NOT_GIVEN, ValueType, VerdictKind, When};
use schemars::JsonSchema;
use serde::Serialize;

use crate::table::{Cell, Table, wrap};
use crate::units;

/// Columns of the names in front of facts.
const NAMES: usize = 11;

/// The styles of text. They are written always; the caller's stream drops them where no terminal is.
pub mod styles {
    use super::{AnsiColor, Style};

    /// As it should be.
    pub const GOOD: Style = AnsiColor::Green.on_default();
    /// Worth a look.
    pub const WARNING: Style = AnsiColor::Yellow.on_default();
    /// Wrong, or dangerous.
    pub const BAD: Style = AnsiColor::Red.on_default().bold();
    /// Of less weight.
    pub const DIM: Style = Style::new().dimmed();
    /// Of more weight.
    pub const BOLD: Style = Style::new().bold();
}

/// How a page is laid out.
#[derive(Clone, Copy, Debug)]
pub struct PageOptions {
    /// Characters in a line.
    pub width: usize,
    /// Whether every place, source and calculation is told (`--verbose`).
    pub detailed: bool,
}

/// What a command found: serialised as it is, described by its schema, and written as text.
pub trait Report: Serialize + JsonSchema {
    /// The command, with a dash between words: names the schema.
    const COMMAND: &'static str;

    /// Writes the text. The data only: what to do next is talk and belongs to the caller.
    fn text(&self, page: &mut Page<'_>);
}

/// Text that grows from top to bottom.
pub struct Page<'a> {
    options: PageOptions,
    catalogue: &'a Catalogue,
    text: String,
}

impl<'a> Page<'a> {
    /// An empty page. The catalogue gives values their units.
    #[must_use]
    pub fn new(options: PageOptions, catalogue: &'a Catalogue) -> Self {
        Self { options, catalogue, text: String::new() }
    }

    /// What was written.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    /// Whether every detail is wanted.
    #[must_use]
    pub fn is_detailed(&self) -> bool {
        self.options.detailed
    }

    /// A line, or several, without what would steer a terminal.
    pub fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(&units::harmless(line.as_ref()));
        self.text.push('\n');
    }

    /// A line whose first word is in a style.
    pub fn styled_line(&mut self, style: Style, word: &str, rest: &str) {
        let (word, rest) = (units::harmless(word), units::harmless(rest));
        self.text.push_str(&format!("{style}{word}{style:#}{rest}\n"));
    }

    /// An empty line, unless the page is empty.
    pub fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// A heading, set apart from what stands above.
    pub fn heading(&mut self, heading: &str) {
        self.gap();
        self.styled_line(styles::BOLD, heading, "");
    }

    /// `name   text`, with the text wrapped under itself; nothing for an empty text.
    pub fn fact(&mut self, name: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let width = self.options.width.saturating_sub(NAMES).max(24);
        for (number, part) in wrap(text, width).iter().enumerate() {
            let name = if number == 0 { name } else { "" };
            self.styled_line(styles::DIM, &format!("{name:<NAMES$}"), part);
        }
    }

    /// The same of a line to type, which is not wrapped: broken in two, a shell runs the first half.
    pub fn command(&mut self, name: &str, line: &str) {
        if !line.is_empty() {
            self.styled_line(styles::DIM, &format!("{name:<NAMES$}"), line);
        }
    }

    /// A table; nothing for one without rows.
    pub fn table(&mut self, table: &Table) {
        if !table.is_empty() {
            let text = table.render(self.options.width);
            self.text.push_str(&text);
        }
    }

    /// A value of a knob in normal form and with its unit: `60 %`, `16 MiB`, `madvise`.
    #[must_use]
    pub fn value(&self, knob: &KnobId, raw: &str) -> String {
        match self.catalogue.knob(knob) {
            Ok(row) => row.r#type.with_unit(raw),
            Err(_) => raw.trim().to_owned(),
        }
    }

    /// Whether a value of a knob is that nothing is given: a switch of the kernel command line is there or not.
    #[must_use]
    pub fn is_nothing(&self, knob: &KnobId, raw: &str) -> bool {
        let row = self.catalogue.knob(knob).ok().filter(|row| row.boot_parameter().is_some());
        let is_switch = row.is_some_and(|row| matches!(row.r#type, ValueType::Flag { .. }));
        raw == NOT_GIVEN || is_switch && raw == "0"
    }

    /// The values that a knob may have, in few words.
    #[must_use]
    pub fn legal(&self, knob: &KnobId) -> String {
        self.catalogue.knob(knob).map(|row| legal(&row.r#type)).unwrap_or_default()
    }

    /// The risk of a knob that is in the catalogue.
    #[must_use]
    pub fn class(&self, knob: &KnobId) -> Option<Class> {
        self.catalogue.knob(knob).ok().map(|row| row.class)
    }

    /// Where among its places a knob was meant: `node0`, `cpu3/state2`; nothing for a knob of one place.
    #[must_use]
    pub fn place(&self, knob: &KnobId, place: &str) -> String {
        self.catalogue.knob(knob).map(|row| filled_holes(&row.path, place)).unwrap_or_default()
    }

    /// The cell that names a knob, with its place or the number of its places.
    #[must_use]
    pub fn knob(&self, knob: &KnobId, places: &[&str]) -> Cell {
        match places {
            [one] => format!("{knob} {}", self.place(knob, one)).trim_end().into(),
            many => format!("{knob} x{}", many.len()).into(),
        }
    }
}

/// What values are legal, in few words: `0..200`, `always|madvise|never`.
fn legal(kind: &ValueType) -> String {
    let end = |end: &Option<i64>| end.map(|number| number.to_string()).unwrap_or_default();
    match kind {
        ValueType::Int { min, max, words, .. } => {
            let words: String = words.iter().map(|word| format!("|{word}")).collect();
            format!("{}..{}{words}", end(min), end(max))
        }
        ValueType::Unsigned { .. } => "0..".to_owned(),
        ValueType::Choice { choice } => choice.join("|"),
        ValueType::Flag { .. } => "0|1".to_owned(),
        ValueType::Ints { count, .. } => format!("{count} numbers"),
        ValueType::Cpus { cpus: CpuForm::List, .. } => "CPU list".to_owned(),
        ValueType::Cpus { cpus: CpuForm::Mask, .. } => "CPU mask".to_owned(),
        ValueType::BootCpus { .. } => "CPUs at boot".to_owned(),
        ValueType::Directives { directives } => directives.join("= ") + "=",
        ValueType::Setting { directive, .. } if kind.is_cpus_of_a_unit() => format!("{directive}=CPU list"),
        ValueType::Setting { directive, min: None, max: None, words, .. } => {
            format!("{directive}={}", words.join("|"))
        }
        ValueType::Setting { directive, min, max, words, .. } => {
            let words: String = words.iter().map(|word| format!("|{word}")).collect();
            format!("{directive}={}..{}{words}", end(min), end(max))
        }
        ValueType::Share { .. } => "ways of caches".to_owned(),
        ValueType::Form { .. } => "of a form of its own".to_owned(),
        ValueType::Text { .. } => "text".to_owned(),
    }
}

/// Knobs by their names, each once with the number of its places, and no more than a few.
#[must_use]
pub fn counted(knobs: &[&KnobId], named_max: usize) -> String {
    let mut sorted = knobs.to_vec();
    sorted.sort_unstable();
    let name = |same: &[&KnobId]| match same.len() {
        1 => same[0].to_string(),
        places => format!("{} x{places}", same[0]),
    };
    let groups: Vec<String> = sorted.chunk_by(|a, b| a == b).map(name).collect();
    let mut told: Vec<String> = groups.iter().take(named_max).cloned().collect();
    if groups.len() > named_max {
        told.push(format!("and {} more", units::count(groups.len() - named_max, "knob")));
    }
    told.join(", ")
}

/// The components of `place` that fill holes of `pattern`, joined by a slash; nothing for the pattern itself.
fn filled_holes(pattern: &str, place: &str) -> String {
    if pattern == place {
        return String::new();
    }
    let holes = pattern.split('/').zip(place.split('/'));
    let filled: Vec<&str> = holes.filter(|(hole, _)| hole.contains('{')).map(|(_, filled)| filled).collect();
    planish_model::place::shown(place, &filled.join("/")).to_owned()
}

/// The cell of a class: what may be lost, and when the value takes effect if that is not at once.
#[must_use]
pub(crate) fn risk(class: Class, when: When) -> Cell {
    let (word, style) = class_word(class);
    let text = match when {
        When::Now => word.to_owned(),
        When::Boot => format!("{word}, at boot"),
        When::Process => format!("{word}, new processes"),
        When::Reload => format!("{word}, at reload"),
    };
    Cell::styled(text, style)
}

pub(crate) fn class_word(class: Class) -> (&'static str, Style) {
    match class {
        Class::Safe => ("safe", Style::new()),
        Class::Availability => ("availability", styles::WARNING),
        Class::Durability => ("durability", styles::BAD),
        Class::Security => ("security", styles::BAD),
        Class::Oneway => ("oneway", styles::BAD),
        Class::Action => ("action", styles::WARNING),
    }
}

/// A verdict in a word for people.
#[must_use]
pub(crate) fn verdict_word(verdict: VerdictKind) -> &'static str {
    match verdict {
        VerdictKind::Settable => "settable",
        VerdictKind::Moot => "moot here",
        VerdictKind::Host => "the host must",
        VerdictKind::Firmware => "firmware must",
        VerdictKind::Reboot => "reboot needed",
        VerdictKind::Blocked => "blocked",
        VerdictKind::Absent => "absent",
        VerdictKind::NotRecorded => "not recorded",
    }
}

/// A verdict with its evidence: `blocked: read-only mount`.
#[must_use]
pub(crate) fn verdict_text(verdict: &planish_model::Verdict) -> String {
    let word = verdict_word(verdict.verdict);
    if verdict.reason.is_empty() { word.to_owned() } else { format!("{word}: {}", verdict.reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_by_what_fills_its_holes() {
        let pattern = "/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}/disable";
        let place = "/sys/devices/system/cpu/cpu3/cpuidle/state2/disable";
        assert_eq!(filled_holes(pattern, place), "cpu3/state2");
        assert_eq!(filled_holes("/proc/sys/vm/swappiness", "/proc/sys/vm/swappiness"), "");
        let atime = |mount: &str| {
            filled_holes("/planish/mounts/{mount}/atime", &format!("/planish/mounts/{mount}/atime"))
        };
        assert_eq!([atime("-"), atime("dev-shm")], ["/", "dev-shm"]);
    }
}
