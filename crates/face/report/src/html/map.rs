//! A map as one HTML page: the address space by node and page size, then the figures behind it.
//!
//! Each area of the address space is a strip, in the order of addresses. A large area of one mapping is cut into equal
//! cells, left to right as its bytes lie, each filled as far as it has memory; of other areas only sums are known,
//! and their strip is as long as they are large. A colour is a node and a pattern is a page size; neither is told by
//! the drawing alone. The page holds the whole report, as the page of a trial holds its outcome (see [`markup`]).

use std::fmt::Write as _;

use askama::Template;

use super::figure::Figure;
use super::markup::{self, Html, Quote, escape, json_for_script};
use crate::commands::{MapArea, MapBacking, MapChange, MapPart, MapPiece, MapReport};
use crate::units;

/// Height of a strip in pixels.
const HEIGHT: f64 = 34.0;
/// Colours that the page has for nodes.
const COLOURS: u32 = 8;

#[derive(Template)]
#[template(path = "map.html")]
struct MapPage<'a> {
    title: String,
    headline: Html,
    report: &'a MapReport,
    subject: Quote,
    pages: Html,
    strips: Vec<Strip>,
    legend: Vec<Html>,
    left_out: Option<Html>,
    nodes: Vec<[Html; 4]>,
    rows: Vec<[Html; 5]>,
    processes: Vec<[Html; 6]>,
    jit: Vec<[Html; 4]>,
    pieces: Vec<(&'static str, Vec<[Html; 3]>)>,
    changes: Vec<(&'static str, Vec<[Html; 6]>)>,
    unseen: Vec<[Quote; 3]>,
    json: String,
}

/// One area of the address space.
struct Strip {
    kind: &'static str,
    name: Quote,
    place: Html,
    drawing: Html,
    told: Vec<Html>,
}

/// The page of a map.
#[must_use]
pub fn map_html(report: &MapReport) -> String {
    let json = serde_json::to_string(report).expect("a report is plain data with text keys");
    let largest = report.picture.areas.iter().map(MapArea::resident_bytes).max().unwrap_or(1);
    let areas = report.picture.areas.iter().enumerate();
    let page = MapPage {
        title: format!("{}: planish map", report.subject),
        headline: headline(report),
        subject: Quote::new("/subject", &report.subject),
        pages: pages(report),
        strips: areas.map(|(index, area)| strip(index, area, largest)).collect(),
        legend: legend(report),
        left_out: left_out(report),
        nodes: nodes(report),
        rows: rows(report),
        processes: processes(report),
        jit: jit(report),
        pieces: pieces(report),
        changes: changes(report),
        unseen: unseen(report),
        json: json_for_script(&json),
        report,
    };
    markup::page(&page)
}

fn headline(report: &MapReport) -> Html {
    let html = Html::default()
        .text(about(report.totals.is_estimated("resident_bytes")))
        .then(Figure::bytes("/totals/resident_bytes", report.totals.resident_bytes))
        .text(" resident");
    match report.local_share {
        Some(local) => html
            .text(", ")
            .text(about(report.local_share_estimated))
            .then(Figure::chosen_share("/local_share", local))
            .text(" of it local to the threads by where they ran last"),
        None => html,
    }
}

/// On which pages it lies.
fn pages(report: &MapReport) -> Html {
    let totals = &report.totals;
    let each = [
        ("hugetlb_bytes", totals.hugetlb_bytes, "on pages of pools"),
        ("thp_bytes", totals.thp_bytes, "on transparent huge pages"),
        ("mthp_bytes", totals.mthp_bytes, "on large pages that base-page entries map"),
        ("base_bytes", totals.base_bytes, "on base pages"),
        ("page_table_bytes", totals.page_table_bytes, "of page tables"),
        ("locked_bytes", totals.locked_bytes, "locked"),
        ("swapped_bytes", totals.swapped_bytes, "in swap"),
        ("unwritten_bytes", totals.unwritten_bytes, "allocated and not written yet"),
    ];
    let mut html = Html::default();
    for (number, (name, bytes, what)) in each.into_iter().filter(|(_, bytes, _)| *bytes > 0).enumerate() {
        let comma = if number > 0 { ", " } else { "" };
        html = html.text(comma).text(about(totals.is_estimated(name)));
        html = html.then(Figure::bytes(format!("/totals/{name}"), bytes)).text(&format!(" {what}"));
    }
    html
}

fn strip(index: usize, area: &MapArea, largest: u64) -> Strip {
    let at = format!("/picture/areas/{index}");
    let place = Html::default()
        .then(Quote::new(format!("{at}/start"), &area.start))
        .text("–")
        .then(Quote::new(format!("{at}/end"), &area.end))
        .text(", ")
        .then(Figure::bytes(format!("{at}/bytes"), area.bytes));
    let told = area.parts.iter().enumerate().map(|(number, part)| {
        let at = format!("{at}/parts/{number}");
        Html::default()
            .text(&format!("{}: {}", node_name(part.node), about(part.estimated)))
            .then(Figure::bytes(format!("{at}/resident_bytes"), part.resident_bytes))
            .text(&format!(" {} ", part.backing.word()))
            .then(Figure::bytes(format!("{at}/page_bytes"), part.page_bytes))
    });
    let drawing = if area.cells.is_empty() { bar(area, largest) } else { cells(area) };
    let name = Quote::new(format!("{at}/name"), &area.name);
    Strip { kind: area.kind.word(), name, place, drawing, told: told.collect() }
}

/// A bar as long as the area has memory, beside the largest one.
fn bar(area: &MapArea, largest: u64) -> Html {
    let (mut shapes, mut left) = (String::new(), 0.0);
    for part in &area.parts {
        // What is there is seen, however small beside the rest.
        let width = (100.0 * part.resident_bytes as f64 / largest.max(1) as f64).max(0.2);
        let width = width.min(100.0 - left);
        rect(&mut shapes, part, (left, width), (HEIGHT / 4.0, HEIGHT / 2.0));
        left += width;
    }
    drawing(&shapes, area)
}

/// Equal cells in the order of bytes, each filled from below by what it has.
fn cells(area: &MapArea) -> Html {
    let count = area.cells.len() as f64;
    let bytes = (area.bytes as f64 / count).max(1.0);
    let mut shapes = String::new();
    let whole = format!(r#"x="0" width="100%" y="0" height="{HEIGHT}""#);
    let _ = write!(shapes, r#"<rect class="hollow" {whole}/>"#);
    for (number, parts) in area.cells.iter().enumerate() {
        let (left, width) = (100.0 * number as f64 / count, 100.0 / count);
        let mut bottom = HEIGHT;
        for part in parts {
            let height = (HEIGHT * part.resident_bytes as f64 / bytes).clamp(0.5, bottom.max(0.5));
            rect(&mut shapes, part, (left, width), (bottom - height, height));
            bottom = (bottom - height).max(0.0);
        }
    }
    drawing(&shapes, area)
}

/// A filled piece: (left, width) in percent, (top, height) in pixels.
fn rect(shapes: &mut String, part: &MapPart, across: (f64, f64), down: (f64, f64)) {
    let (left, width) = across;
    let (top, height) = down;
    let class = class_of(part);
    let place = format!(r#"x="{left:.3}%" width="{width:.3}%" y="{top:.2}" height="{height:.2}""#);
    let title = format!(
        "{}, {} {}: {}{}",
        node_name(part.node),
        part.backing.word(),
        units::bytes(part.page_bytes),
        about(part.estimated),
        units::bytes(part.resident_bytes)
    );
    let _ = write!(shapes, r#"<rect class="{class}" {place}><title>{}</title></rect>"#, escape(&title));
}

fn drawing(shapes: &str, area: &MapArea) -> Html {
    let resident = format!("{}{}", about(area.is_estimated()), units::bytes(area.resident_bytes()));
    let label = format!("{} {} of {resident}", area.kind.word(), area.name);
    let label = escape(&label);
    let size = format!(r#"width="100%" height="{HEIGHT}""#);
    Html::own(format!(r#"<svg class="lane" {size} role="img" aria-label="{label}">{shapes}</svg>"#))
}

/// The classes that give a piece the colour of its node and the pattern of its pages.
fn class_of(part: &MapPart) -> String {
    let node = part.node.map_or("untold".to_owned(), |node| format!("n{}", node % COLOURS));
    format!("{node} {}", part.backing.word())
}

/// A swatch with words for each node and page size that there is.
fn legend(report: &MapReport) -> Vec<Html> {
    let mut kinds: Vec<(Option<u32>, MapBacking, u64)> =
        report.rows.iter().map(|row| (row.node, row.backing, row.page_bytes)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let swatch = |(node, backing, page_bytes)| {
        let class = class_of(&MapPart { backing, node, page_bytes, resident_bytes: 0, estimated: false });
        let shape = format!(r#"<rect class="{class}" width="100%" height="12"/>"#);
        Html::own(format!(r#"<svg class="lane" width="22" height="12" aria-hidden="true">{shape}</svg>"#))
            .text(&format!(" {}, {} {}", node_name(node), backing.word(), units::bytes(page_bytes)))
    };
    kinds.into_iter().map(swatch).collect()
}

fn left_out(report: &MapReport) -> Option<Html> {
    let picture = &report.picture;
    (picture.left_out > 0).then(|| {
        Html::default()
            .then(Figure::count("/picture/left_out", picture.left_out as u64))
            .text(&format!(" more areas have {}", about(picture.left_out_estimated)))
            .then(Figure::bytes("/picture/left_out_bytes", picture.left_out_bytes))
            .text(" together")
    })
}

fn nodes(report: &MapReport) -> Vec<[Html; 4]> {
    let row = |(index, node): (usize, &crate::commands::MapNode)| {
        let at = format!("/nodes/{index}");
        [
            Html::default().text(&node_name(node.node)),
            Html::default()
                .text(about(node.estimated))
                .then(Figure::bytes(format!("{at}/resident_bytes"), node.resident_bytes)),
            Html::default()
                .text(about(node.huge_estimated))
                .then(Figure::bytes(format!("{at}/huge_bytes"), node.huge_bytes)),
            Html::default().then(Figure::count(format!("{at}/threads"), node.threads as u64)),
        ]
    };
    report.nodes.iter().enumerate().map(row).collect()
}

fn rows(report: &MapReport) -> Vec<[Html; 5]> {
    let row = |(index, row): (usize, &crate::commands::MapRow)| {
        let at = format!("/rows/{index}");
        [
            Html::default().text(row.kind.word()),
            Html::default()
                .text(&format!("{} ", row.backing.word()))
                .then(Figure::bytes(format!("{at}/page_bytes"), row.page_bytes)),
            Html::default().text(&node_name(row.node)),
            Html::default()
                .text(about(row.estimated))
                .then(Figure::bytes(format!("{at}/resident_bytes"), row.resident_bytes)),
            Html::default().then(Quote::new(format!("{at}/name"), &row.name)),
        ]
    };
    report.rows.iter().enumerate().map(row).collect()
}

fn processes(report: &MapReport) -> Vec<[Html; 6]> {
    let row = |(index, process): (usize, &crate::commands::MapProcess)| {
        let at = format!("/processes/{index}");
        let mut private = Html::default();
        for (number, part) in process.private.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            let figure = Figure::bytes(format!("{at}/private/{number}/resident_bytes"), part.resident_bytes);
            private = private.text(comma).text(about(part.estimated)).then(figure);
            private = private.text(&format!(" {}", node_name(part.node)));
        }
        let mut cpus = Html::default();
        for (number, on) in process.ran_on.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            cpus = cpus.text(comma).then(Quote::new(format!("{at}/ran_on/{number}/cpus"), &on.cpus));
        }
        let shared = Figure::bytes(format!("{at}/shared_mapped_bytes"), process.shared_mapped_bytes);
        [
            Html::default().then(Figure::verbatim(format!("{at}/pid"), process.pid.into())),
            Html::default().then(Quote::new(format!("{at}/name"), &process.name)),
            private,
            Html::default().then(shared),
            Html::default().then(Figure::bytes(format!("{at}/page_table_bytes"), process.page_table_bytes)),
            cpus,
        ]
    };
    report.processes.iter().enumerate().map(row).collect()
}

fn jit(report: &MapReport) -> Vec<[Html; 4]> {
    let row = |(index, jit): (usize, &crate::commands::MapJit)| {
        let at = format!("/jit/{index}");
        [
            Html::default().then(Figure::verbatim(format!("{at}/pid"), jit.pid.into())),
            Html::default()
                .then(Quote::new(format!("{at}/start"), &jit.start))
                .text("–")
                .then(Quote::new(format!("{at}/end"), &jit.end)),
            Html::default().then(Figure::bytes(format!("{at}/resident_bytes"), jit.resident_bytes)),
            Html::default()
                .text(about(jit.huge_estimated))
                .then(Figure::bytes(format!("{at}/huge_bytes"), jit.huge_bytes)),
        ]
    };
    report.jit.iter().enumerate().map(row).collect()
}

/// What a PostgreSQL server says of its memory, in tables with their headings.
fn pieces(report: &MapReport) -> Vec<(&'static str, Vec<[Html; 3]>)> {
    let Some(postgres) = &report.postgres else { return Vec::new() };
    let tables = [
        ("Pieces of PostgreSQL's main segment", "allocations", &postgres.allocations),
        ("Other shared segments", "dynamic", &postgres.dynamic),
        ("Relations in the buffers", "relations", &postgres.relations),
    ];
    let rows = |member: &str, pieces: &[MapPiece]| {
        let row = |(index, piece): (usize, &MapPiece)| {
            let at = format!("/postgres/{member}/{index}");
            let mut parts = Html::default();
            for (number, part) in piece.parts.iter().enumerate() {
                let comma = if number > 0 { ", " } else { "" };
                let figure =
                    Figure::bytes(format!("{at}/parts/{number}/resident_bytes"), part.resident_bytes);
                parts = parts.text(comma).text(about(part.estimated || piece.seen_in_part)).then(figure);
                parts = parts.text(&format!(" {} on {}", part.backing.word(), node_name(part.node)));
            }
            if piece.seen_in_part && piece.parts.is_empty() {
                parts = parts.text("none that was seen");
            }
            [
                Html::default().then(Quote::new(format!("{at}/name"), &piece.name)),
                Html::default().then(Figure::bytes(format!("{at}/bytes"), piece.bytes)),
                parts,
            ]
        };
        pieces.iter().enumerate().map(row).collect::<Vec<_>>()
    };
    let some = tables.into_iter().filter(|(_, _, pieces)| !pieces.is_empty());
    some.map(|(heading, member, pieces)| (heading, rows(member, pieces))).collect()
}

/// What a query changed, in tables with their headings.
fn changes(report: &MapReport) -> Vec<(&'static str, Vec<[Html; 6]>)> {
    let Some(query) = &report.query else { return Vec::new() };
    let tables = [
        ("What the query changed in memory", "memory", &query.memory),
        ("What it changed of relations in the buffers", "relations", &query.relations),
        ("What it changed of the process that served it", "process", &query.process),
    ];
    let some = tables.into_iter().filter(|(_, _, changes)| !changes.is_empty());
    let rows = |member: &str, changes: &[MapChange]| {
        let changes = changes.iter().enumerate();
        let row = |(index, change): (usize, &MapChange)| changed(&format!("/query/{member}/{index}"), change);
        changes.map(row).collect::<Vec<_>>()
    };
    some.map(|(heading, member, changes)| (heading, rows(member, changes))).collect()
}

/// One change: what, on which pages of which node, bytes before and after, buffers.
fn changed(at: &str, change: &MapChange) -> [Html; 6] {
    let mut pages = Html::default();
    if let Some(backing) = change.backing {
        pages = pages.text(&format!("{} ", backing.word()));
    }
    if let Some(page_bytes) = change.page_bytes {
        pages = pages.then(Figure::bytes(format!("{at}/page_bytes"), page_bytes));
    }
    let node = if change.backing.is_some() { node_name(change.node) } else { String::new() };
    let bytes = |name: &str, bytes| {
        Html::default().text(about(change.estimated)).then(Figure::bytes(format!("{at}/{name}"), bytes))
    };
    let mut buffers = Html::default();
    if let (Some(before), Some(after)) = (change.before_buffers, change.after_buffers) {
        buffers = buffers.then(Figure::count(format!("{at}/before_buffers"), before)).text(" → ");
        buffers = buffers.then(Figure::count(format!("{at}/after_buffers"), after));
    }
    [
        Html::default().then(Quote::new(format!("{at}/what"), &change.what)),
        pages,
        Html::default().text(&node),
        bytes("before_bytes", change.before_bytes),
        bytes("after_bytes", change.after_bytes),
        buffers,
    ]
}

fn unseen(report: &MapReport) -> Vec<[Quote; 3]> {
    let quotes = |(index, unseen): (usize, &planish_residency::Unseen)| {
        let quote = |name: &str, text: &str| Quote::new(format!("/unseen/{index}/{name}"), text);
        [quote("what", &unseen.what), quote("why", &unseen.why), quote("cure", &unseen.cure)]
    };
    report.unseen.iter().enumerate().map(quotes).collect()
}

/// The mark of what has a part that is an estimate or was not seen.
fn about(estimated: bool) -> &'static str {
    if estimated { "about " } else { "" }
}

fn node_name(node: Option<u32>) -> String {
    node.map_or("node untold".to_owned(), |node| format!("node {node}"))
}
