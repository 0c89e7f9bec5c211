//! A call profile as one HTML page: a treemap of where the weight lies, the stacks as a flame graph, then the figures.
//!
//! In the treemap an area is own weight: object file, then namespace, module or source file, then function, each within
//! what it belongs to and without room between, so that areas can be compared across all of them. In the flame graph a
//! width is the weight of the stacks that go through a frame, and each frame stands on its caller. Both are static
//! drawings whose titles tell names and weights; a colour tells a group, and never alone. The page holds the report and
//! the picture, as the page of a trial holds its outcome (see [`markup`]).

use std::fmt::Write as _;

use askama::Template;
use serde::Serialize;

use super::figure::Figure;
use super::markup::{self, Html, Quote, escape, json_for_script};
use super::squares::{Rect, squarified};
use crate::commands::{TextFlames, TextGroup, TextObject, TextPicture, TextShowReport};
use crate::units;

/// The treemap in pixels. Across, all is drawn in percent of it.
const AREA: Rect = Rect { left: 0.0, top: 0.0, width: 1100.0, height: 560.0 };
/// Height of a frame of the flame graph.
const FRAME: f64 = 17.0;
/// Colours that the page has for groups, and shades for frames.
const COLOURS: usize = 8;
const SHADES: u32 = 4;
/// What a box must have to be written on, and the width of a letter.
const LABEL: (f64, f64) = (34.0, 14.0);
const LETTER: f64 = 6.2;

#[derive(Template)]
#[template(path = "text_show.html")]
struct TextShowPage {
    title: String,
    program: Quote,
    headline: Html,
    deck: Html,
    tree: Option<Html>,
    groups: Vec<[Html; 5]>,
    flames: Option<(Html, Html)>,
    functions: Vec<[Html; 4]>,
    pages: Vec<[Html; 5]>,
    json: String,
}

/// What the page holds.
#[derive(Serialize)]
struct Whole<'a> {
    report: &'a TextShowReport,
    picture: &'a TextPicture,
}

/// The page of `planish text show`.
#[must_use]
pub fn text_show_html(report: &TextShowReport, picture: &TextPicture) -> String {
    let whole = Whole { report, picture };
    let json = serde_json::to_string(&whole).expect("a report is plain data with text keys");
    let page = TextShowPage {
        title: format!("{}: planish text show", report.profile.program),
        program: Quote::new("/report/profile/program", &report.profile.program),
        headline: headline(report),
        deck: deck(report),
        tree: (!picture.objects.is_empty()).then(|| tree(picture)),
        groups: groups(picture),
        flames: picture.flames.as_ref().map(|flames| (drawn(flames), flames_words(flames))),
        functions: functions(report),
        pages: pages(report),
        json: json_for_script(&json),
    };
    markup::page(&page)
}

fn headline(report: &TextShowReport) -> Html {
    let profile = &report.profile;
    Html::default()
        .then(Figure::count("/report/profile/named", profile.named))
        .text(" of ")
        .then(Figure::count("/report/profile/total", profile.total))
        .text(&format!(" {} in ", profile.weights))
        .then(Figure::count("/report/profile/functions", profile.functions as u64))
        .text(" functions")
}

fn deck(report: &TextShowReport) -> Html {
    let profile = &report.profile;
    let mut html = Html::default().then(Quote::new("/report/profile/event", &profile.event));
    for (index, host) in profile.hosts.iter().enumerate() {
        html = html.text(", ").then(Quote::new(format!("/report/profile/hosts/{index}"), host));
    }
    if let Some((start, end)) = profile.window_start.zip(profile.window_end) {
        html = html.text(", ").then(Figure::moment("/report/profile/window_start", start));
        html = html.text(" to ").then(Figure::moment("/report/profile/window_end", end));
    }
    html
}

/// The classes that give a group its colour, by its place among the groups of its object file.
fn hue(group: &TextGroup, place: usize) -> String {
    if group.count == 0 { "untold".to_owned() } else { format!("n{}", place % COLOURS) }
}

fn tree(picture: &TextPicture) -> Html {
    let mut shapes = String::new();
    let objects = squarified(&weights(picture.objects.iter().map(|object| object.weight)), AREA);
    for ((place, object), area) in picture.objects.iter().enumerate().zip(objects) {
        let groups = squarified(&weights(object.groups.iter().map(|group| group.weight)), area);
        for (index, area) in groups.into_iter().enumerate() {
            let at = format!("/picture/objects/{place}/groups/{index}");
            group(&mut shapes, &at, object, index, area);
        }
    }
    let label = format!(
        "Treemap: {} by own weight; the tables below tell the same",
        picture.objects.iter().map(|object| object.name.as_str()).collect::<Vec<_>>().join(", ")
    );
    let size = format!(r#"width="100%" height="{}""#, AREA.height);
    Html::own(format!(
        r#"<svg class="tree" {size} role="img" aria-label="{}">{shapes}</svg>"#,
        escape(&label)
    ))
}

/// The functions of a group within its area, the rest as one box, and its outline.
fn group(shapes: &mut String, at: &str, object: &TextObject, index: usize, area: Rect) {
    let group = &object.groups[index];
    let class = hue(group, index);
    let inside =
        squarified(&weights(group.functions.iter().map(|one| one.weight).chain([group.rest_weight])), area);
    let of = format!("{} of {}", group.name, object.name);
    for ((number, function), area) in group.functions.iter().enumerate().zip(&inside) {
        let name = &function.readable;
        let at = format!("{at}/functions/{number}/weight");
        let title = format!("{name}, {of}: {}", told(function.weight, group));
        shape(shapes, *area, &class, (&at, function.weight), &title, own_name(name));
    }
    if let Some(area) = inside.last().filter(|_| group.rest_weight > 0) {
        let name = match group.rest_count {
            0 => group.name.clone(),
            count => format!("{} more", units::count(count, "function")),
        };
        let title = format!("{name}, {of}: {}", told(group.rest_weight, group));
        shape(shapes, *area, &class, (&format!("{at}/rest_weight"), group.rest_weight), &title, &name);
    }
    let _ = write!(shapes, r#"<rect class="group" {}/>"#, place(area));
}

fn weights(weights: impl Iterator<Item = u64>) -> Vec<f64> {
    weights.map(|weight| weight as f64).collect()
}

/// A weight of a group, and its share of the whole.
fn told(weight: u64, group: &TextGroup) -> String {
    let all = group.weight.max(1) as f64 / group.share.max(f64::MIN_POSITIVE);
    format!("{} ({:.2} %)", units::grouped(&weight.to_string()), 100.0 * weight as f64 / all)
}

fn place(area: Rect) -> String {
    let (left, width) = (100.0 * area.left / AREA.width, 100.0 * area.width / AREA.width);
    format!(r#"x="{left:.4}%" y="{:.3}" width="{width:.4}%" height="{:.3}""#, area.top, area.height)
}

/// A box with its title, and with its name where there is room; letters beyond its edge are cut off.
fn shape(shapes: &mut String, area: Rect, class: &str, value: (&str, u64), title: &str, label: &str) {
    let (at, value) = (escape(value.0), value.1);
    let (place, title) = (place(area), escape(title));
    let _ = write!(shapes, r#"<svg {place}><rect class="{class}" width="100%" height="100%" "#);
    let _ = write!(shapes, r#"data-at="{at}" data-value="{value}"><title>{title}</title></rect>"#);
    if area.width >= LABEL.0 && area.height >= LABEL.1 {
        let letters = ((area.width - 6.0) / LETTER) as usize;
        let label: String = label.chars().take(letters).collect();
        let _ = write!(shapes, r#"<text x="3" y="12">{}</text>"#, escape(&label));
    }
    shapes.push_str("</svg>");
}

/// A function's name without the path before it, which its group tells.
fn own_name(readable: &str) -> &str {
    let readable = readable.strip_prefix("(anonymous namespace)::").unwrap_or(readable);
    let end = readable.find(['(', '<']).filter(|end| *end > 0).unwrap_or(readable.len());
    let start = readable[..end].rfind("::").map_or(0, |at| at + 2);
    Some(&readable[start..]).filter(|name| !name.is_empty()).unwrap_or(readable)
}

/// The flame graph: roots at the bottom.
fn drawn(flames: &TextFlames) -> Html {
    let mut shapes = String::new();
    let all = flames.weight.max(1) as f64;
    for (index, flame) in flames.frames.iter().enumerate() {
        let area = Rect {
            left: AREA.width * flame.start as f64 / all,
            top: FRAME * f64::from(flames.depth - 1 - flame.depth),
            width: AREA.width * flame.weight as f64 / all,
            height: FRAME,
        };
        let weight = units::grouped(&flame.weight.to_string());
        let share = 100.0 * flame.weight as f64 / all;
        let title = format!("{}: {weight} ({share:.2} %)", flame.readable);
        let at = format!("/picture/flames/frames/{index}/weight");
        let class = format!("h{}", shade(&flame.readable));
        shape(&mut shapes, area, &class, (&at, flame.weight), &title, own_name(&flame.readable));
    }
    let size = format!(r#"width="100%" height="{}""#, FRAME * f64::from(flames.depth));
    let label = "Flame graph: each frame stands on its caller, as wide as the stacks that go through it";
    Html::own(format!(r#"<svg class="flames" {size} role="img" aria-label="{label}">{shapes}</svg>"#))
}

/// A shade by the name, so that a function has the same one wherever it stands.
fn shade(name: &str) -> u32 {
    name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % SHADES + 1
}

fn flames_words(flames: &TextFlames) -> Html {
    let html = Html::default()
        .text("Stacks of ")
        .then(Figure::count("/picture/flames/weight", flames.weight))
        .text(", by name from left to right");
    if flames.left_out == 0 {
        return html;
    }
    html.text("; ")
        .then(Figure::count("/picture/flames/left_out", flames.left_out as u64))
        .text(" more frames are too narrow, too deep or too many to be drawn")
}

fn groups(picture: &TextPicture) -> Vec<[Html; 5]> {
    let rows = picture.objects.iter().enumerate().flat_map(|(place, object)| {
        object.groups.iter().enumerate().map(move |(index, group)| {
            let at = format!("/picture/objects/{place}/groups/{index}");
            let swatch = format!(r#"<span class="swatch {}" aria-hidden="true"></span> "#, hue(group, index));
            let count = match group.count {
                0 => Html::default().text("-"),
                count => Html::default().then(Figure::count(format!("{at}/count"), count as u64)),
            };
            [
                Html::default().then(Figure::share(format!("{at}/share"), group.share)),
                Html::default().then(Figure::count(format!("{at}/weight"), group.weight)),
                count,
                Html::own(swatch).then(Quote::new(format!("{at}/name"), &group.name)),
                Html::default().then(Quote::new(format!("/picture/objects/{place}/name"), &object.name)),
            ]
        })
    });
    rows.collect()
}

fn functions(report: &TextShowReport) -> Vec<[Html; 4]> {
    let rows = report.top.iter().enumerate().map(|(index, row)| {
        let at = format!("/report/top/{index}");
        let mut callers = Html::default();
        for (number, caller) in row.callers.iter().enumerate() {
            let at = format!("{at}/callers/{number}");
            let comma = if number > 0 { ", " } else { "" };
            callers = callers.text(comma).then(Quote::new(format!("{at}/name"), &caller.name));
            callers = callers.text(" ").then(Figure::share(format!("{at}/share"), caller.share));
        }
        let bytes = match row.bytes {
            0 => Html::default().text("-"),
            bytes => Html::default().then(Figure::count(format!("{at}/bytes"), bytes)),
        };
        [
            Html::default().then(Figure::share(format!("{at}/share"), row.share)),
            bytes,
            Html::default().then(Quote::new(format!("{at}/readable"), &row.readable)),
            callers,
        ]
    });
    rows.collect()
}

fn pages(report: &TextShowReport) -> Vec<[Html; 5]> {
    let rows = report.pages.iter().enumerate().map(|(index, row)| {
        let at = format!("/report/pages/{index}");
        let count = |name: &str, count: usize| {
            Html::default().then(Figure::count(format!("{at}/{name}"), count as u64))
        };
        [
            Html::default().then(Figure::bytes(format!("{at}/page_bytes"), row.page_bytes)),
            count("p90", row.p90),
            count("p99", row.p99),
            count("all", row.all),
            count("of_functions_p99", row.of_functions_p99),
        ]
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_the_name_without_its_path() {
        for (readable, label) in [
            ("main", "main"),
            ("one::two(int)", "two(int)"),
            ("core::fmt::write", "write"),
            ("a::b<c::d>::e", "b<c::d>::e"),
            ("<a::B as c::D>::e", "e"),
            ("(anonymous namespace)::A::f(b::C)", "f(b::C)"),
            ("<", "<"),
            ("a::", "a::"),
        ] {
            assert_eq!(own_name(readable), label, "{readable}");
        }
    }

    #[test]
    fn a_group_tells_its_share_of_the_whole() {
        let group = TextGroup {
            name: "a".to_owned(),
            weight: 1000,
            share: 0.25,
            count: 2,
            functions: Vec::new(),
            rest_weight: 1000,
            rest_count: 2,
        };
        assert_eq!(told(1000, &group), "1,000 (25.00 %)");
        assert_eq!(told(10, &group), "10 (0.25 %)");
    }
}
