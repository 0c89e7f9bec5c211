//! The page of a call profile: true to the report and the picture that it holds, in text and as a browser draws it.

use planish_profile::{CallProfile, Format, HotPages, ImportOptions, Stacks, import};
use planish_report::{TextPicture, TextShowReport, text_show_html};

use crate::browser::draws_at_any_width;
use crate::map::check;
use crate::page::{embedded, shapes};

/// Namespaces, files, a linkage table, code without a symbol, a name that would break out, and one that is long.
const FOLDED: &str = "\
main;serve::Loop::run(int);sql::parse::tokens;sql::parse::word 310
main;serve::Loop::run(int);sql::parse::tokens 90
main;serve::Loop::run(int);scan/heap.c/1;[.plt] 40
main;serve::Loop::run(int);scan/heap.c/1 500
main;serve::Loop::run(int);scan/index.c/1 60
main;serve::Loop::run(int);</script><b>\"&'::f 25
main;log_a_line_with_a_name_that_has_no_room_in_any_box_of_its_own 7
main 1
";

fn read(format: Format, bytes: &[u8]) -> (CallProfile, Option<Stacks>) {
    let options = ImportOptions { format: Some(format), stacks: true, ..ImportOptions::default() };
    let read = import(bytes, &options).expect("samples");
    (read.profile, read.stacks)
}

fn page_of(profile: &CallProfile, stacks: Option<&Stacks>) -> String {
    let pages = HotPages { page_bytes: 4096, p90: 3, p99: 5, all: 6, of_functions_p99: 9 };
    text_show_html(&TextShowReport::new(profile, 20, &[pages]), &TextPicture::new(profile, stacks))
}

/// Everything that a page may have.
fn full() -> String {
    let (mut profile, stacks) = read(Format::Folded, FOLDED.as_bytes());
    profile.program = "/usr/bin/server".to_owned();
    profile.event = "cpu-clock:u".to_owned();
    profile.hosts = vec!["web-1".to_owned()];
    (profile.unnamed, profile.outside) = (33, 120);
    profile.total += 153;
    page_of(&profile, stacks.as_ref())
}

/// A call profile as it was written, which has no stacks.
fn kept() -> String {
    let (profile, _) = read(Format::Folded, FOLDED.as_bytes());
    let (kept, stacks) = read(Format::Planish, planish_profile::file::write(&profile).as_bytes());
    assert!(stacks.is_none());
    page_of(&kept, None)
}

#[test]
fn the_page_of_a_profile_is_as_recorded() {
    insta::assert_snapshot!("text-show.html", full());
}

#[test]
fn the_page_of_a_profile_tells_what_its_report_says() {
    for page in [full(), kept()] {
        let checked = check(&page).expect("true to its report");
        assert!(checked > 40, "{checked} figures");
        assert_eq!((page.matches("<script").count(), page.matches("</script>").count()), (1, 1));
        assert!(!page.contains("<b>\"&'"), "a name broke out of its place");
        for fetched in ["src=", "href=", "url(", "@import", "onload"] {
            assert!(!page.contains(fetched), "{fetched}");
        }
        let whole = embedded(&page);
        let drawn = shapes(&page);
        for (at, value) in &drawn {
            assert_eq!(whole.pointer(at).and_then(serde_json::Value::as_f64), Some(*value), "{at}");
        }
        assert!(drawn.len() >= 8, "{drawn:?}");
    }
    assert!(full().contains("class=\"flames\"") && !kept().contains("class=\"flames\""));
    assert!(kept().contains("this input has no stacks"));
}

/// The boxes of a drawing: the pointer of the weight; left, top, width and height, across in shares of the whole, down
/// in pixels; the weight.
fn boxes(page: &str, class: &str) -> Vec<(String, [f64; 4], f64)> {
    let (_, drawing) = page.split_once(&format!("<svg class=\"{class}\" ")).expect("it is drawn");
    let part = |text: &str, name: &str| -> Option<String> {
        let (_, rest) = text.split_once(&format!(" {name}=\""))?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let number = |text: &str, name: &str| -> Option<f64> {
        let told = part(text, name)?;
        match told.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().ok().map(|percent| percent / 100.0),
            None => told.parse().ok(),
        }
    };
    let mut found = Vec::new();
    for one in drawing.split("<svg x=").skip(1) {
        let one = format!(" x={one}");
        let place = ["x", "y", "width", "height"].map(|name| number(&one, name).expect("a number"));
        let at = part(&one, "data-at").expect("a pointer");
        found.push((at, place, number(&one, "data-value").expect("a weight")));
    }
    // The other drawing stands behind this one.
    found.retain(|(at, ..)| at.starts_with("/picture/objects/") == (class == "tree"));
    found
}

#[test]
fn areas_and_widths_are_as_the_weights() {
    let page = full();
    let tree = boxes(&page, "tree");
    let all = embedded(&page).pointer("/report/profile/total").and_then(serde_json::Value::as_f64);
    let all = all.expect("a number");
    assert_eq!(tree.iter().map(|(.., weight)| weight).sum::<f64>(), all, "every sample has its place");
    for (at, [_, _, width, height], weight) in &tree {
        let (found, wanted) = (width * height / 560.0, weight / all);
        assert!((found - wanted).abs() < 2e-5 + 1e-3 * wanted, "{at}: {found} for {wanted}");
    }
    let flames = boxes(&page, "flames");
    let (root, rest) = flames.split_first().expect("frames");
    assert_eq!((root.1[0], root.1[2], root.2), (0.0, 1.0, 1033.0), "{root:?}");
    for (at, [left, top, width, _], weight) in rest {
        assert!((width - weight / 1033.0).abs() < 1e-5 && *top < root.1[1], "{at}");
        assert!(left + width < 1.0 + 1e-5, "{at}");
    }
}

#[test]
fn a_browser_draws_the_profile_at_any_width() {
    draws_at_any_width("a_browser_draws_the_profile_at_any_width", &full());
}
