//! Distances, and jitter, as one HTML page each: heat maps and histograms first, every figure with its interval below.
//!
//! A heat map has a square for each pair; its shade goes by the ratio to the nearest, and the number, or the title of
//! the square, says the same. The page holds the whole report, as the page of a trial holds its outcome (see
//! [`markup`](super::markup)).

use std::fmt::Write as _;

use askama::Template;
use serde::Serialize;

use super::figure::Figure;
use super::markup::{self, Html, Quote, escape, json_for_script};
use crate::commands::{
    JitterCpu, JitterQuantile, JitterReport, LatencyFigure, LatencyQuiet, LatencyReport, range, step,
};
use crate::units;

/// Shades that the page has.
const SHADES: usize = 6;
/// Squares of a heat map with numbers in them, and their side in pixels.
const NUMBERED: (usize, f64) = (24, 40.0);
/// Side of a square that has none.
const PLAIN_SIDE: f64 = 12.0;
/// Room for the names of rows and columns.
const MARGIN: f64 = 34.0;

#[derive(Template)]
#[template(path = "measured.html")]
struct MeasuredPage {
    title: String,
    is_jitter: bool,
    headline: Html,
    quiet: Html,
    sections: Vec<Section>,
    json: String,
}

#[derive(Default)]
struct Section {
    heading: String,
    lead: String,
    drawing: Option<Html>,
    caption: Vec<Html>,
    heads: Vec<&'static str>,
    rows: Vec<Vec<Html>>,
}

/// The page of `planish latency`.
#[must_use]
pub fn latency_html(report: &LatencyReport) -> String {
    let headline = Html::default().text(if report.quiet.quiet {
        "How far CPUs, nodes and pages are"
    } else {
        "How far CPUs, nodes and pages are, on a machine that was not quiet"
    });
    let sections = vec![pairs(report), clusters(report), nodes(report), pages(report)];
    render(report, "latency", false, headline, &report.quiet, sections)
}

/// The page of `planish latency --jitter`.
#[must_use]
pub fn jitter_html(report: &JitterReport) -> String {
    let worst = report.cpus.iter().enumerate().max_by_key(|(_, cpu)| cpu.gaps.max_ns);
    let headline = match worst {
        Some((index, cpu)) => Html::default()
            .text("The longest gap was ")
            .then(measured(&format!("/cpus/{index}/gaps/max_ns"), cpu.gaps.max_ns as f64, "ns"))
            .text(&format!(", on CPU {}", cpu.cpu)),
        None => Html::default().text("No CPU was measured"),
    };
    let mut sections = vec![gaps(report), wakes(report), sources(report)];
    sections.extend(report.cpus.iter().enumerate().map(histogram));
    render(report, "jitter", true, headline, &report.quiet, sections)
}

fn render(
    report: &impl Serialize,
    name: &str,
    is_jitter: bool,
    headline: Html,
    quiet: &LatencyQuiet,
    sections: Vec<Section>,
) -> String {
    let json = serde_json::to_string(report).expect("a report is plain data with text keys");
    let page = MeasuredPage {
        title: format!("{name}: planish latency"),
        is_jitter,
        headline,
        quiet: quiet_words(quiet),
        sections,
        json: json_for_script(&json),
    };
    markup::page(&page)
}

/// The verdict on the machine, and what is behind it.
fn quiet_words(quiet: &LatencyQuiet) -> Html {
    let mut html = Html::default();
    if quiet.quiet {
        html = html.text("The machine was quiet");
    } else {
        html = html.text("The machine was not quiet, and each interval is the whole range of its rounds");
        for (index, reason) in quiet.reasons.iter().enumerate() {
            let comma = if index == 0 { ": " } else { "; " };
            html = html.text(comma).then(Quote::new(format!("/quiet/reasons/{index}"), reason));
        }
    }
    let shares = [
        ("stolen", "steal_share", quiet.steal_share),
        ("used by others", "busy_share", quiet.busy_share),
        ("waited for", "pressure_share", quiet.pressure_share),
    ];
    for (words, member, share) in shares {
        if let Some(share) = share {
            html = html.text(&format!("; {words} ")).then(Figure::share(format!("/quiet/{member}"), share));
        }
    }
    html.text(".")
}

/// A number with its unit; a dash for what is none.
fn measured(at: &str, value: f64, unit: &str) -> Html {
    match Figure::quantity(at, value, unit) {
        Some(figure) => Html::default().then(figure),
        None => Html::default().text("-"),
    }
}

/// A figure and its interval: `48.10 ns (47.62 ns to 49.00 ns)`.
fn with_ends(at: &str, figure: Option<LatencyFigure>, unit: &str) -> Html {
    let Some(figure) = figure else { return Html::default().text("-") };
    let part = |member: &str, value| measured(&format!("{at}/{member}"), value, unit);
    Html::own("<span class=\"gain\">")
        .then(part("value", figure.value))
        .then(Html::own("</span> <span class=\"ends\">("))
        .then(part("low", figure.low))
        .text(" to ")
        .then(part("high", figure.high))
        .then(Html::own(")</span>"))
}

fn quoted(at: String, text: Option<&str>) -> Html {
    text.map_or_else(Html::default, |text| Html::default().then(Quote::new(at, text)))
}

fn pairs(report: &LatencyReport) -> Section {
    let cpus = report.cpu_numbers();
    let lead = if cpus.is_empty() {
        format!("CPU {} alone was measured, and it has no other.", report.cpus)
    } else {
        "A cache line goes from one CPU to the other and back: two transfers.".to_owned()
    };
    let values = report.pairs.iter().filter_map(|pair| Some(pair.round_trip_ns?.value));
    let extent = range(values);
    let names: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    let cell = |row: usize, column: usize| {
        let (first, second) = (cpus[row].min(cpus[column]), cpus[row].max(cpus[column]));
        let pair = report.pairs.iter().find(|pair| pair.first == first && pair.second == second)?;
        Some((pair.round_trip_ns?.value, format!("CPU {first} and CPU {second}")))
    };
    let drawing = (!cpus.is_empty()).then(|| heat_map(&names, &names, extent, "CPU by CPU", &cell));
    let row = |(index, pair): (usize, &crate::commands::LatencyPair)| {
        let at = format!("/pairs/{index}");
        vec![
            Html::default().text(&format!("{} – {}", pair.first, pair.second)),
            with_ends(&format!("{at}/round_trip_ns"), pair.round_trip_ns, "ns"),
            quoted(format!("{at}/why"), pair.why.as_deref()),
        ]
    };
    Section {
        heading: "From CPU to CPU".to_owned(),
        lead,
        caption: if cpus.is_empty() { Vec::new() } else { scale(extent) },
        drawing,
        heads: vec!["CPUs", "round trip", ""],
        rows: report.pairs.iter().enumerate().map(row).collect(),
    }
}

fn clusters(report: &LatencyReport) -> Section {
    let row = |(index, level): (usize, &crate::commands::LatencyClusters)| {
        let at = format!("/clusters/{index}");
        let mut lists = Html::default();
        for (number, list) in level.clusters.iter().enumerate() {
            let gap = if number > 0 { "; " } else { "" };
            lists = lists.text(gap).then(Quote::new(format!("{at}/clusters/{number}"), list));
        }
        let sysfs = if level.sysfs.is_empty() { "does not tell".to_owned() } else { level.sysfs.join(", ") };
        vec![
            lists,
            with_ends(&format!("{at}/within_ns"), Some(level.within_ns), "ns"),
            with_ends(&format!("{at}/between_ns"), Some(level.between_ns), "ns"),
            Html::default().text(&sysfs),
        ]
    };
    let unseen: Vec<&str> =
        report.sysfs.iter().filter(|part| !part.seen).map(|part| part.name.as_str()).collect();
    let mut lead = match (report.pairs.len(), report.clusters.len()) {
        (0 | 1, _) => "Fewer than two pairs have no clusters.".to_owned(),
        (_, 0) => "None: every CPU is as near to one as to another.".to_owned(),
        _ => "CPUs that are nearer to each other than to the rest, by the round trips alone.".to_owned(),
    };
    if report.pairs.len() > 1 && !unseen.is_empty() {
        let _ = write!(lead, " Told by sysfs and not seen: {}.", unseen.join(", "));
    }
    Section {
        heading: "Clusters".to_owned(),
        lead,
        heads: vec!["clusters", "within", "between", "sysfs"],
        rows: report.clusters.iter().enumerate().map(row).collect(),
        ..Section::default()
    }
}

fn nodes(report: &LatencyReport) -> Section {
    let mut of_cpus: Vec<u32> = report.nodes.iter().map(|node| node.cpu_node).collect();
    let mut of_memory: Vec<u32> = report.nodes.iter().map(|node| node.memory_node).collect();
    for nodes in [&mut of_cpus, &mut of_memory] {
        nodes.sort_unstable();
        nodes.dedup();
    }
    let extent = range(report.nodes.iter().filter_map(|node| Some(node.load_ns?.value)));
    let cell = |row: usize, column: usize| {
        let (cpus, memory) = (of_cpus[row], of_memory[column]);
        let node = report.nodes.iter().find(|it| it.cpu_node == cpus && it.memory_node == memory)?;
        Some((node.load_ns?.value, format!("CPUs of node {cpus}, memory of node {memory}")))
    };
    let names = |nodes: &[u32]| nodes.iter().map(|node| format!("n{node}")).collect::<Vec<_>>();
    let row = |(index, node): (usize, &crate::commands::LatencyNode)| {
        let at = format!("/nodes/{index}");
        let distance = node.distance.map(u64::from);
        vec![
            Html::default().text(&format!("node {}", node.cpu_node)),
            Html::default().text(&format!("node {}", node.memory_node)),
            distance.map_or_else(Html::default, |it| {
                Html::default().then(Figure::verbatim(format!("{at}/distance"), it))
            }),
            with_ends(&format!("{at}/load_ns"), node.load_ns, "ns"),
            with_ends(&format!("{at}/read_bytes_per_s"), node.read_bytes_per_s, "B"),
            quoted(format!("{at}/why"), node.why.as_deref()),
        ]
    };
    let mut caption = scale(extent);
    caption.push(
        Html::default()
            .text("Hidden interleave: ")
            .then(Quote::new("/interleave/evidence", &report.interleave.evidence)),
    );
    Section {
        heading: "From node to memory".to_owned(),
        lead: "Rows are CPUs, columns are memory: a load that waits for memory; and what all CPUs of a node read in a \
               second."
            .to_owned(),
        drawing: Some(heat_map(&names(&of_cpus), &names(&of_memory), extent, "node by node", &cell)),
        caption,
        heads: vec!["CPUs of", "memory of", "told", "load", "read in a second", ""],
        rows: report.nodes.iter().enumerate().map(row).collect(),
    }
}

fn pages(report: &LatencyReport) -> Section {
    let row = |(index, page): (usize, &crate::commands::LatencyPage)| {
        let at = format!("/pages/{index}");
        let why = quoted(format!("{at}/why"), page.why.as_deref());
        let cure = page.cure.as_deref();
        let why = match cure {
            Some(cure) => why.text(" ").then(Quote::new(format!("{at}/cure"), cure)),
            None => why,
        };
        vec![
            Html::default().then(Quote::new(format!("{at}/backing"), &page.backing)),
            with_ends(&format!("{at}/load_ns"), page.load_ns, "ns"),
            with_ends(&format!("{at}/of_base"), page.of_base, "share"),
            Html::default().then(Figure::bytes(format!("{at}/achieved_bytes"), page.achieved_bytes)),
            why,
        ]
    };
    Section {
        heading: "By page size".to_owned(),
        lead: "Random loads that wait for each other, over the same bytes; what they lie on was read back."
            .to_owned(),
        heads: vec!["pages", "load", "of base pages", "measured on", ""],
        rows: report.pages.iter().enumerate().map(row).collect(),
        ..Section::default()
    }
}

/// What the shades mean.
fn scale((least, greatest): (f64, f64)) -> Vec<Html> {
    if greatest <= 0.0 {
        return Vec::new();
    }
    let told = format!("{} (palest) to {}", units::quantity(least, "ns"), units::quantity(greatest, "ns"));
    vec![Html::default().text(&told)]
}

/// A square for each row and column, shaded by its value.
fn heat_map(
    rows: &[String],
    columns: &[String],
    (least, greatest): (f64, f64),
    label: &str,
    cell: &dyn Fn(usize, usize) -> Option<(f64, String)>,
) -> Html {
    let is_numbered = rows.len().max(columns.len()) <= NUMBERED.0;
    let side = if is_numbered { NUMBERED.1 } else { PLAIN_SIDE };
    let mut shapes = String::new();
    let at = |index: usize| MARGIN + side * index as f64;
    // Names of many CPUs would lie on each other: every eighth is enough.
    let named = |index: &usize| is_numbered || index.is_multiple_of(8);
    for index in (0..columns.len()).filter(named) {
        let (x, name) = (at(index) + side / 2.0, escape(&columns[index]));
        let _ = write!(shapes, r#"<text class="side" x="{x}" y="{}">{name}</text>"#, MARGIN / 2.0);
    }
    for (row, name) in rows.iter().enumerate() {
        let (top, middle) = (at(row), at(row) + side / 2.0);
        if named(&row) {
            let name = escape(name);
            let _ = write!(shapes, r#"<text class="side" x="{}" y="{middle}">{name}</text>"#, MARGIN / 2.0);
        }
        for column in 0..columns.len() {
            let (left, found) = (at(column), cell(row, column));
            let place = format!(r#"x="{left}" y="{top}" width="{side}" height="{side}""#);
            let Some((value, words)) = found else {
                let _ = write!(shapes, r#"<rect class="untold" {place}/>"#);
                continue;
            };
            let shade = step(value, least, greatest, SHADES);
            let title = escape(&format!("{words}: {}", units::quantity(value, "ns")));
            let _ = write!(shapes, r#"<rect class="h{shade}" {place}><title>{title}</title></rect>"#);
            if is_numbered {
                let x = left + side / 2.0;
                let _ = write!(shapes, r#"<text x="{x}" y="{middle}">{value:.0}</text>"#);
            }
        }
    }
    svg(at(columns.len()) + 1.0, at(rows.len()) + 1.0, label, &shapes)
}

fn svg(width: f64, height: f64, label: &str, shapes: &str) -> Html {
    let label = escape(label);
    Html::own(format!(
        r#"<svg width="{width}" height="{height}" role="img" aria-label="{label}">{shapes}</svg>"#
    ))
}

fn quantiles(at: &str, quantiles: &[JitterQuantile]) -> Vec<Html> {
    let cell = |(index, it): (usize, &JitterQuantile)| match it.needed {
        Some(needed) => {
            Html::default().text("takes ").then(Figure::count(format!("{at}/{index}/needed"), needed))
        }
        None => with_ends(&format!("{at}/{index}/ns"), it.ns, "ns"),
    };
    quantiles.iter().enumerate().map(cell).collect()
}

fn gaps(report: &JitterReport) -> Section {
    let row = |(index, cpu): (usize, &JitterCpu)| {
        let at = format!("/cpus/{index}/gaps");
        let mut cells = vec![
            Html::default().text(&cpu.cpu.to_string()),
            with_ends(&format!("{at}/lost_share"), Some(cpu.gaps.lost_share), "share"),
            with_ends(&format!("{at}/per_s"), Some(cpu.gaps.per_s), ""),
        ];
        cells.extend(quantiles(&format!("{at}/by_time"), &cpu.gaps.by_time));
        cells.push(measured(&format!("{at}/max_ns"), cpu.gaps.max_ns as f64, "ns"));
        cells
    };
    Section {
        heading: "Time that a spinning thread did not get".to_owned(),
        lead: "Quantiles are by time: the length of the gap in which a random moment of a round falls, and of all \
               rounds the median. The longest gap is that of all rounds."
            .to_owned(),
        heads: vec!["CPU", "lost", "gaps in a second", "p50", "p99", "p99.9", "p99.99", "longest"],
        rows: report.cpus.iter().enumerate().map(row).collect(),
        ..Section::default()
    }
}

fn wakes(report: &JitterReport) -> Section {
    let row = |(index, cpu): (usize, &JitterCpu)| {
        let at = format!("/cpus/{index}/wake");
        let mut cells = vec![
            Html::default().text(&cpu.cpu.to_string()),
            Html::default().then(Figure::count(format!("{at}/count"), cpu.wake.count)),
        ];
        cells.extend(quantiles(&format!("{at}/late"), &cpu.wake.late));
        cells.push(measured(&format!("{at}/max_ns"), cpu.wake.max_ns as f64, "ns"));
        cells
    };
    Section {
        heading: "Late wake-ups of a timer".to_owned(),
        lead: "A thread sleeps until a moment; by how much it was missed.".to_owned(),
        heads: vec!["CPU", "wake-ups", "p50", "p99", "p99.9", "p99.99", "latest"],
        rows: report.cpus.iter().enumerate().map(row).collect(),
        ..Section::default()
    }
}

/// Rows of counters that the page shows of each CPU.
const SOURCES_MAX: usize = 8;

fn sources(report: &JitterReport) -> Section {
    let row = |(index, cpu): (usize, &JitterCpu)| {
        let at = format!("/cpus/{index}");
        let mut most = Html::default();
        for (number, source) in cpu.sources.iter().take(SOURCES_MAX).enumerate() {
            let at = format!("{at}/sources/{number}");
            let comma = if number > 0 { ", " } else { "" };
            most = most.text(comma).then(Quote::new(format!("{at}/name"), &source.name)).text(" ");
            most = most.then(measured(&format!("{at}/per_s"), source.per_s, ""));
        }
        vec![
            Html::default().text(&cpu.cpu.to_string()),
            with_ends(&format!("{at}/ticks_per_s"), cpu.ticks_per_s, ""),
            with_ends(&format!("{at}/irqs_per_s"), cpu.irqs_per_s, ""),
            with_ends(&format!("{at}/softirqs_per_s"), cpu.softirqs_per_s, ""),
            with_ends(&format!("{at}/steal_share"), cpu.steal_share, "share"),
            most,
        ]
    };
    Section {
        heading: "Who interrupted, in a second".to_owned(),
        lead: "The kernel's own counters, while the threads were spinning.".to_owned(),
        heads: vec!["CPU", "local timer", "other interrupts", "softirqs", "stolen", "most of it"],
        rows: report.cpus.iter().enumerate().map(row).collect(),
        ..Section::default()
    }
}

/// Width and height of a bar of a histogram.
const BAR: (f64, f64) = (34.0, 120.0);

/// Gaps of one CPU by length; a bar grows with the logarithm of their number.
fn histogram((index, cpu): (usize, &JitterCpu)) -> Section {
    let buckets = &cpu.gaps.buckets;
    let height = |count: u64| (count as f64 + 1.0).log2();
    let most = buckets.iter().map(|bucket| height(bucket.count)).fold(1.0, f64::max);
    let mut shapes = String::new();
    for (place, bucket) in buckets.iter().enumerate() {
        let (left, tall) = (BAR.0 * place as f64, BAR.1 * height(bucket.count) / most);
        let top = BAR.1 - tall + 2.0;
        let ends =
            (units::quantity(bucket.from_ns as f64, "ns"), units::quantity(bucket.below_ns as f64, "ns"));
        let title = escape(&format!("{} to {}: {} gaps", ends.0, ends.1, bucket.count));
        let size = format!(r#"x="{left}" y="{top:.1}" width="{}" height="{tall:.1}""#, BAR.0 - 3.0);
        let _ = write!(shapes, r#"<rect class="bar" {size}><title>{title}</title></rect>"#);
    }
    let row = |(number, bucket): (usize, &crate::commands::JitterBucket)| {
        let at = format!("/cpus/{index}/gaps/buckets/{number}");
        vec![
            measured(&format!("{at}/from_ns"), bucket.from_ns as f64, "ns"),
            measured(&format!("{at}/below_ns"), bucket.below_ns as f64, "ns"),
            Html::default().then(Figure::count(format!("{at}/count"), bucket.count)),
        ]
    };
    let drawing =
        svg(BAR.0 * buckets.len() as f64, BAR.1 + 4.0, &format!("gaps of CPU {}", cpu.cpu), &shapes);
    Section {
        heading: format!("Gaps of CPU {} by length", cpu.cpu),
        lead: if buckets.is_empty() {
            "None was as long as the threshold.".to_owned()
        } else {
            "By powers of two; the height of a bar goes by the logarithm of the number.".to_owned()
        },
        drawing: (!buckets.is_empty()).then_some(drawing),
        caption: Vec::new(),
        heads: vec!["from", "below", "gaps"],
        rows: buckets.iter().enumerate().map(row).collect(),
    }
}
