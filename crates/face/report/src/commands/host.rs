//! `planish host`: what was recorded, and in what two machines differ.

use planish_model::KnobId;
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
    /// (`argument.quiet`), a second writer (`writer.tuned`), a knob, or what the
    /// next boot brings it (`persisted.vm.swappiness`).
    pub what: String,
    /// The place, for a knob and what the next boot brings.
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

impl HostDiffReport {
    /// What [`Difference::what`] says of a setting of the next boot.
    #[must_use]
    pub fn persisted(knob: &KnobId) -> String {
        format!("{PERSISTED}{knob}")
    }
}

impl Report for HostDiffReport {
    const COMMAND: &'static str = "host-diff";

    fn text(&self, page: &mut Page<'_>) {
        let mut table = Table::new(&["what", &self.left, &self.right]);
        let detailed = page.is_detailed();
        let same = |a: &Difference, b: &Difference| {
            !detailed && (&a.what, &a.left, &a.right) == (&b.what, &b.left, &b.right)
        };
        for group in self.differences.chunk_by(same) {
            let first = &group[0];
            let what = match (&first.place, group.len()) {
                (None, _) => first.what.clone(),
                (Some(place), 1) => {
                    let knob = KnobId::new(first.what.strip_prefix(PERSISTED).unwrap_or(&first.what));
                    format!("{} {}", first.what, page.place(&knob, place)).trim_end().to_owned()
                }
                (Some(_), places) => format!("{} x{places}", first.what),
            };
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
            table.row([what.into(), shown(&first.left).into(), shown(&first.right).into()]);
        }
        page.table(&table);
    }
}
