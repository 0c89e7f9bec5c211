//! `planish doctor`: what this machine loses, why, and the cure.

use anstyle::Style;
use planish_model::{Finding, HostFacts, ServiceView, Severity, VerdictKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::service;
use crate::page::{Page, Report, class_word, styles};
use crate::units;

/// How many knobs got which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KnobCounts {
    /// Can be set here.
    pub settable: usize,
    /// Mean nothing here.
    pub moot: usize,
    /// Must be set by the hypervisor's host.
    pub host: usize,
    /// Must be set by the firmware.
    pub firmware: usize,
    /// Take effect at the next boot only.
    pub reboot: usize,
    /// Something forbids them.
    pub blocked: usize,
    /// Not in this kernel or machine.
    pub absent: usize,
    /// Not looked for by who recorded the machine.
    #[serde(default, skip_serializing_if = "is_none_of_them")]
    #[schemars(default)]
    pub not_recorded: usize,
}

/// No recording is older than the catalogue on the machine itself.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none_of_them(count: &usize) -> bool {
    *count == 0
}

impl KnobCounts {
    /// Counts verdicts.
    #[must_use]
    pub fn of(verdicts: impl IntoIterator<Item = VerdictKind>) -> Self {
        let mut counts = Self::default();
        for verdict in verdicts {
            *match verdict {
                VerdictKind::Settable => &mut counts.settable,
                VerdictKind::Moot => &mut counts.moot,
                VerdictKind::Host => &mut counts.host,
                VerdictKind::Firmware => &mut counts.firmware,
                VerdictKind::Reboot => &mut counts.reboot,
                VerdictKind::Blocked => &mut counts.blocked,
                VerdictKind::Absent => &mut counts.absent,
                VerdictKind::NotRecorded => &mut counts.not_recorded,
            } += 1;
        }
        counts
    }

    fn sentence(self) -> String {
        let all = [
            (self.settable, "settable"),
            (self.reboot, "after a reboot"),
            (self.moot, "moot here"),
            (self.host, "for the hypervisor's host"),
            (self.firmware, "for the firmware"),
            (self.blocked, "blocked"),
            (self.absent, "absent"),
            (self.not_recorded, "not recorded"),
        ];
        let told: Vec<String> = all
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        told.join(", ")
    }
}

/// What `doctor` found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DoctorReport {
    /// The machine.
    pub host: HostFacts,
    /// The profile that wanted values were taken from, where one was named.
    pub profile: Option<String>,
    /// What the machine loses, worst first.
    pub findings: Vec<Finding>,
    /// Knobs by verdict.
    pub knobs: KnobCounts,
    /// The service that was named, through its own eyes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceView>,
}

impl Report for DoctorReport {
    const COMMAND: &'static str = "doctor";

    fn text(&self, page: &mut Page<'_>) {
        host_facts(&self.host, page);
        page.fact("knobs", &self.knobs.sentence());
        if let Some(view) = &self.service {
            service::text(view, page);
        }
        self.findings.iter().for_each(|found| finding(found, page));
    }
}

fn finding(finding: &Finding, page: &mut Page<'_>) {
    page.gap();
    let (word, style) = severity(finding.severity);
    page.styled_line(style, word, &format!("  {}", finding.id));
    page.fact("  seen", &finding.evidence);
    page.fact("  why", &finding.why);
    if let Some(risk) = &finding.risk {
        page.fact("  risk", risk);
    }
    match (&finding.may_cost, &finding.costs) {
        (Some(cost), _) => {
            page.fact("  costs", &format!("up to {:.1} % of {} ({})", cost.percent, cost.of, cost.by))
        }
        (None, Some(costs)) => page.fact("  costs", costs),
        (None, None) if finding.risk.is_some() => page.fact("  costs", "a risk, not a speed"),
        (None, None) => page.fact("  costs", "not known: planish has not measured it"),
    }
    page.fact("  cure", &finding.cure);
    page.fact("  class", class_word(finding.class).0);
    page.fact("  source", &finding.source);
}

/// The lines that say which machine a report is about.
pub(crate) fn host_facts(host: &HostFacts, page: &mut Page<'_>) {
    let machine =
        host.guest.as_ref().map_or("bare metal".to_owned(), |evidence| format!("guest ({evidence})"));
    let container = host.container.as_ref().map(|evidence| format!(", in a container ({evidence})"));
    page.fact("host", &format!("{} {}, {machine}{}", host.arch, host.kernel, container.unwrap_or_default()));
    let nodes = units::count(host.nodes.len(), "node");
    page.fact("cpus", &format!("{} online, {nodes}, {}", host.cpus_online, host.cpu_model));
    page.fact(
        "memory",
        &format!("{}, {} available", units::bytes(host.memory_bytes), units::bytes(host.available_bytes)),
    );
    let sizes: Vec<String> = std::iter::once(host.page_bytes)
        .chain(host.huge_page_bytes.iter().copied())
        .map(units::bytes)
        .collect();
    page.fact("pages", &sizes.join(", "));
}

fn severity(severity: Severity) -> (&'static str, Style) {
    match severity {
        Severity::Note => ("note", Style::new()),
        Severity::Warning => ("warning", styles::WARNING),
        Severity::Danger => ("danger", styles::BAD),
    }
}
