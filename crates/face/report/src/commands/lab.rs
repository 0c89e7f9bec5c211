//! `planish trial new` and `honesty`, and `planish prove postgres --conn`.

use planish_trial::Honesty;
use planish_trial::postgres::Existing;
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report};
use crate::table::Table;
use crate::units;

/// What `trial new` wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrialNewReport {
    /// Where it was written; null for stdout.
    pub file: Option<String>,
    /// The trial file, in TOML.
    pub text: String,
}

impl Report for TrialNewReport {
    const COMMAND: &'static str = "trial-new";

    fn text(&self, page: &mut Page<'_>) {
        match &self.file {
            Some(file) => page.fact("written", file),
            None => page.line(self.text.trim_end()),
        }
    }
}

/// What `trial honesty` found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct HonestyReport(pub Honesty);

impl Report for HonestyReport {
    const COMMAND: &'static str = "trial-honesty";

    fn text(&self, page: &mut Page<'_>) {
        let honesty = &self.0;
        let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
        page.fact("placebos", &format!("{} so far, of which {} were kept", honesty.placebos, honesty.kept));
        if let (Some(rate), Some(low), Some(high)) = (honesty.rate, honesty.low, honesty.high) {
            let (rate, low, high) = (percent(rate), percent(low), percent(high));
            page.fact("false", &format!("keeps {rate} (95 % interval {low} .. {high})"));
        }
        if honesty.left_out > 0 {
            let left_out = units::counted(honesty.left_out, "trial");
            page.fact("left out", &format!("{left_out}: nothing could have kept the placebo"));
        }
        for path in &honesty.damaged {
            page.fact("damaged", &path.display().to_string());
        }
    }
}

/// What an existing cluster has, and what would change it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ProveConnReport(pub Existing);

impl Report for ProveConnReport {
    const COMMAND: &'static str = "prove-conn";

    fn text(&self, page: &mut Page<'_>) {
        let found = &self.0;
        page.fact("server", &format!("PostgreSQL {}", found.version));
        page.fact("buffers", &units::bytes(found.shared_buffers_bytes));
        let status = found.huge_pages_status.as_ref().map(|status| format!(", status {status}"));
        page.fact("huge_pages", &format!("{}{}", found.huge_pages, status.unwrap_or_default()));
        if let Some((pages, bytes)) = found.pages_needed.zip(found.page_bytes) {
            page.fact(
                "needs",
                &format!("{} of {} at its next start", units::counted(pages, "page"), units::bytes(bytes)),
            );
        }
        let backing = found.achieved.as_ref().and_then(|achieved| achieved.backing.as_deref());
        page.fact("lies on", backing.unwrap_or_default());
        let mut table = Table::new(&["line for postgresql.conf", "why"]);
        for line in &found.conf {
            table.row([line.line.as_str().into(), line.why.as_str().into()]);
        }
        page.gap();
        page.table(&table);
        if !found.remarks.is_empty() {
            page.gap();
            found.remarks.iter().for_each(|remark| page.fact("note", remark));
        }
    }
}
