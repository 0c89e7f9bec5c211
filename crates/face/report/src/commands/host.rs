//! `planish host`: what was recorded, and in what two machines differ.

use planish_model::KnobId;
use planish_sorted::SortSmall as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report};
use crate::table::Table;
use crate::units;

/// What `host record` copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostRecordReport {
    /// Where the copy is.
    pub folder: String,
    /// Files copied.
    pub files: usize,
    /// Files that exist and could not be read; the copy answers with the same error.
    pub unreadable: usize,
    /// Bytes of all files together.
    pub bytes: u64,
}

impl Report for HostRecordReport {
    const COMMAND: &'static str = "host-record";

    fn text(&self, page: &mut Page<'_>) {
        let files = units::count(self.files, "file");
        page.fact("folder", &self.folder);
        page.fact("copied", &format!("{files}, {}", units::bytes(self.bytes)));
        if self.unreadable > 0 {
            page.fact("unread", &format!("{}, noted as such", units::count(self.unreadable, "file")));
        }
    }
}

/// One thing in which two machines differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// A fact (`host.kernel`), the boot loader (`boot.loader`), an argument of the running kernel that no knob is
    /// (`argument.quiet`), a second writer (`writer.tuned`), a knob, what the next boot brings it
    /// (`persisted.vm.swappiness`), or what files give a unit that both have (`given.LimitNOFILE`).
    pub what: String,
    /// The place, for a knob and what the next boot brings; the unit, for what files give it.
    pub place: Option<String>,
    /// What the first machine shows; null where it has no such thing.
    pub left: Option<String>,
    /// What the second machine shows.
    pub right: Option<String>,
}

/// What `host diff` found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostDiffReport {
    /// The first machine.
    pub left: String,
    /// The second machine.
    pub right: String,
    /// By fact or knob, then by place.
    pub differences: Vec<Difference>,
}

/// What a setting of the next boot begins with, before the knob that it is of.
const PERSISTED: &str = "persisted.";

/// What a setting of a unit begins with, before its directive.
const GIVEN: &str = "given.";

impl HostDiffReport {
    /// What [`Difference::what`] says of a setting of the next boot.
    #[must_use]
    pub fn persisted(knob: &KnobId) -> String {
        format!("{PERSISTED}{knob}")
    }

    /// What [`Difference::what`] says of a setting of a unit.
    #[must_use]
    pub fn given(directive: &str) -> String {
        format!("{GIVEN}{directive}")
    }
}

impl Report for HostDiffReport {
    const COMMAND: &'static str = "host-diff";

    fn text(&self, page: &mut Page<'_>) {
        let mut table = Table::new(&["what", &self.left, &self.right]);
        for of_one in self.differences.chunk_by(|a, b| a.what == b.what) {
            for group in alike(of_one, page) {
                let first = group[0].1;
                let names: Vec<&str> = group.iter().map(|(name, _)| name.as_str()).collect();
                let what = match names.as_slice() {
                    [name] => format!("{} {name}", first.what).trim_end().to_owned(),
                    many => format!("{} {}", first.what, in_few_words(many)),
                };
                let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
                table.row([what.into(), shown(&first.left).into(), shown(&first.right).into()]);
            }
        }
        page.table(&table);
    }
}

/// The differences of one knob, those of one kind together, each with the name of its place in the order in which
/// people count: `cpu2` before `cpu10`.
fn alike<'a>(differences: &'a [Difference], page: &Page<'_>) -> Vec<Vec<(String, &'a Difference)>> {
    let name = |one: &Difference| match &one.place {
        Some(unit) if one.what.starts_with(GIVEN) => unit.clone(),
        Some(place) => {
            let knob = KnobId::new(one.what.strip_prefix(PERSISTED).unwrap_or(&one.what));
            page.place(&knob, place)
        }
        None => String::new(),
    };
    let mut named: Vec<(String, &Difference)> = differences.iter().map(|one| (name(one), one)).collect();
    named.sort_small_by_key(|(name, _)| counted(name));
    let mut groups: Vec<Vec<(String, &Difference)>> = Vec::new();
    for (name, one) in named {
        let is_alike = |group: &&mut Vec<(String, &Difference)>| {
            let known = group[0].1;
            !page.is_detailed() && (&known.left, &known.right) == (&one.left, &one.right)
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push((name, one)),
            None => groups.push(vec![(name, one)]),
        }
    }
    groups
}

/// A name as its words and numbers, so that numbers compare as such.
fn counted(name: &str) -> Vec<(String, u64)> {
    let mut parts = vec![(String::new(), 0_u64)];
    let mut was_digit = false;
    for c in name.chars() {
        if was_digit && !c.is_ascii_digit() {
            parts.push((String::new(), 0));
        }
        was_digit = c.is_ascii_digit();
        let (text, number) = parts.last_mut().expect("there is always one");
        match c.to_digit(10) {
            Some(digit) => *number = number.saturating_mul(10).saturating_add(u64::from(digit)),
            None => text.push(c),
        }
    }
    parts
}

/// Names of places that are told before the others are only counted.
const NAMED_MAX: usize = 4;

/// Names of one kind with their numbers as ranges: `cpu0-1,6-7`; others one after the other.
fn in_few_words(names: &[&str]) -> String {
    let parts: Vec<Vec<(String, u64)>> = names.iter().map(|name| counted(name)).collect();
    let word = &parts[0][0].0;
    let is_numbered = |name: &&str, parts: &Vec<(String, u64)>| {
        parts.len() == 1 && parts[0].0 == *word && format!("{word}{}", parts[0].1) == **name
    };
    if names.iter().zip(&parts).all(|(name, parts)| is_numbered(name, parts)) {
        let numbers: Vec<u64> = parts.iter().map(|parts| parts[0].1).collect();
        let range = |numbers: &[u64]| match numbers {
            [one] => one.to_string(),
            several => format!("{}-{}", several[0], several[several.len() - 1]),
        };
        let ranges: Vec<String> = numbers.chunk_by(|a, b| a + 1 == *b).map(range).collect();
        return format!("{word}{}", ranges.join(","));
    }
    let mut told: Vec<String> = names.iter().take(NAMED_MAX).map(|name| (*name).to_owned()).collect();
    if names.len() > NAMED_MAX {
        told.push(format!("and {} more", names.len() - NAMED_MAX));
    }
    told.join(", ")
}

#[cfg(test)]
mod tests {
    use planish_model::Catalogue;

    use super::*;
    use crate::page::PageOptions;

    #[test]
    fn rows_of_one_knob_that_differ_in_their_values_name_their_places() {
        let row = |cpu: u32, right: &str| Difference {
            what: "cpu.max_freq_khz".to_owned(),
            place: Some(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq")),
            left: Some("3400000".to_owned()),
            right: Some(right.to_owned()),
        };
        // In the order of their paths, as they are compared.
        let differences: Vec<Difference> = [0, 1, 10, 11, 2, 3, 9]
            .map(|cpu| row(cpu, if cpu == 2 { "5" } else { "4" }))
            .into_iter()
            .collect();
        let shown = |differences: Vec<Difference>| {
            let catalogue = Catalogue::embedded().expect("sound");
            let mut page = Page::new(PageOptions { width: 200, detailed: false }, &catalogue);
            HostDiffReport { left: "a".to_owned(), right: "b".to_owned(), differences }.text(&mut page);
            page.into_text()
        };
        let text = shown(differences);
        assert!(text.contains("cpu.max_freq_khz cpu0-1,3,9-11  3400000  4\n"), "{text}");
        assert!(text.contains("cpu.max_freq_khz cpu2           3400000  5\n"), "{text}");
        let text = shown(vec![row(0, "4"), row(1, "4")]);
        assert!(text.contains("cpu.max_freq_khz cpu0-1  3400000  4\n"), "{text}");
        assert_eq!(in_few_words(&["nvme0n1", "nvme1n1", "sda"]), "nvme0n1, nvme1n1, sda");
        assert_eq!(in_few_words(&["a", "b", "c", "d", "e", "f"]), "a, b, c, d, and 2 more");
    }
}
