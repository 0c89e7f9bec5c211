//! The machine and the run: what the figures are worth elsewhere depends on these.

use planish_model::HostFacts;
use planish_trial::TrialOutcome;

use super::figure::Figure;
use super::markup::{Html, Quote};
use crate::units;

/// A line of a list of facts.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) value: Html,
}

fn line(name: &'static str, value: Html) -> Line {
    Line { name, value }
}

/// The machine.
pub(super) fn machine(host: &HostFacts) -> Vec<Line> {
    let quote = |part: &str, text: &str| Quote::new(format!("/host/{part}"), text);
    let bytes = |part: &str, bytes: u64| Figure::bytes(format!("/host/{part}"), bytes);
    let kernel =
        Html::default().then(quote("kernel", &host.kernel)).text(" on ").then(quote("arch", &host.arch));
    let cpus = Html::default().then(Figure::count("/host/cpus_online", host.cpus_online.into()));
    let memory = Html::default()
        .then(bytes("memory_bytes", host.memory_bytes))
        .text(", ")
        .then(bytes("available_bytes", host.available_bytes))
        .text(" available at the start");
    let mut pages = Html::default().then(bytes("page_bytes", host.page_bytes));
    for (index, size) in host.huge_page_bytes.iter().enumerate() {
        pages = pages.text(", ").then(bytes(&format!("huge_page_bytes/{index}"), *size));
    }
    let kind = match &host.guest {
        Some(evidence) => Html::default().text("guest: ").then(quote("guest", evidence)),
        None => Html::default().text("bare metal"),
    };
    let kind = match &host.container {
        Some(evidence) => kind.text(", in a container: ").then(quote("container", evidence)),
        None => kind,
    };
    let rights = if host.root { "root" } else { "an ordinary user" };
    vec![
        line("processor", cpus.text(" x ").then(quote("cpu_model", &host.cpu_model))),
        line("memory", memory),
        line("nodes", Html::default().text(&units::count(host.nodes.len(), "node"))),
        line("page sizes", pages),
        line("kernel", kernel),
        line("kind", kind),
        line("run as", Html::default().text(rights)),
    ]
}

/// The run.
pub(super) fn run(outcome: &TrialOutcome) -> Vec<Line> {
    let blocks = units::count(outcome.blocks.len(), "block");
    let discarded = units::count(outcome.discarded.len(), "block");
    let took = Html::default()
        .then(Figure::seconds("/seconds", outcome.seconds))
        .text(", of which ")
        .then(Figure::share("/overhead", outcome.overhead))
        .text(" went into our own bookkeeping");
    let mut lines = vec![
        line("started", Html::default().then(Figure::moment("/started_at", outcome.started_at))),
        line("took", took),
        line("form", Html::default().text(if outcome.quick { "quick" } else { "full" })),
        line(
            "order",
            Html::default().text(&format!(
                "{blocks} in random order, {discarded} redone; a rung has left with its verdict"
            )),
        ),
        line("seed", Html::default().then(Figure::verbatim("/seed", outcome.seed))),
    ];
    if let Some(proof) = &outcome.proof_id {
        let id = Html::default().then(Html::own("<code>")).then(Quote::new("/proof_id", proof));
        lines.push(line("proof", id.then(Html::own("</code>"))));
    }
    lines
}
