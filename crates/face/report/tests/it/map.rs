//! The page of a map: true to the report that it holds, in text and as a browser draws it.

use std::path::Path;

use planish_host::Host;
use planish_report::{MapBacking, MapJit, MapPart, MapReport, map_html};
use planish_residency::{Map, Who};
use serde_json::Value;

use crate::browser::{Seen, browser_or_skip, list, look};
use crate::page::{data, embedded, quotes};

/// The map of a recorded process of two nodes.
fn recorded() -> MapReport {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../hosts/metal-2s");
    let host = Host::open(&folder).expect("the repository has this machine");
    MapReport::from(&Map::read(&host, &Who::Pid(2201), false).expect("the server is recorded"))
}

/// A map with everything that a page may have: cells, code of a JIT compiler, hostile names.
fn full() -> MapReport {
    let mut report = recorded();
    let segment = report.picture.areas.iter_mut().max_by_key(|area| area.bytes).expect("it has areas");
    let cell_bytes = segment.bytes / 64;
    let part =
        |node, backing, page_bytes, resident_bytes| MapPart { node, backing, page_bytes, resident_bytes };
    segment.cells = (0..64)
        .map(|cell| match cell % 4 {
            0 => vec![],
            1 => vec![part(Some(0), MapBacking::Base, 4096, cell_bytes / 3)],
            2 => vec![part(Some(1), MapBacking::Hugetlb, 2 << 20, cell_bytes)],
            _ => vec![
                part(Some(0), MapBacking::Thp, 2 << 20, cell_bytes / 2),
                part(None, MapBacking::Mthp, 64 << 10, cell_bytes / 2),
            ],
        })
        .collect();
    segment.name = "/dev/shm/</script><b>\"&'".to_owned() + &"long".repeat(40);
    report.jit.push(MapJit {
        pid: 2201,
        start: "7f0000000000".to_owned(),
        end: "7f0000010000".to_owned(),
        name: String::new(),
        resident_bytes: 65_536,
        huge_bytes: 0,
    });
    report.local_share = Some(0.623);
    report
}

/// Holds every figure and quote of a page against the report inside it; how many there were.
pub fn check(page: &str) -> Result<usize, String> {
    let report: Value = embedded(page);
    assert_eq!(crate::page::typed_out(page), report);
    for found in data(page) {
        let told = report.pointer(&found.at).and_then(Value::as_f64).ok_or(found.at.clone())?;
        if (told - found.value).abs() > 1e-9 {
            return Err(format!("{}: {} is not {told} ({})", found.at, found.value, found.text));
        }
    }
    for (at, text) in quotes(page) {
        if report.pointer(&at).and_then(Value::as_str) != Some(text.as_str()) {
            return Err(format!("{at}: {text}"));
        }
    }
    Ok(data(page).len() + quotes(page).len())
}

#[test]
fn the_page_of_a_map_tells_what_its_report_says() {
    for report in [recorded(), full()] {
        let page = map_html(&report);
        let checked = check(&page).expect("true to its report");
        assert!(checked > report.rows.len() * 3, "{checked} figures");
        assert!(!page.contains("<b>\"&'"), "a name broke out of its place");
        for fetched in ["src=", "href=\"http", "url(", "@import"] {
            assert!(!page.contains(fetched), "{fetched}");
        }
        let resident =
            format!("<data value=\"{}\" data-at=\"/totals/resident_bytes\">", report.totals.resident_bytes);
        let wrong = page.replace(&resident, "<data value=\"1\" data-at=\"/totals/resident_bytes\">");
        assert_ne!(wrong, page);
        assert!(check(&wrong).is_err(), "a wrong figure was not found");
    }
}

/// Whoever named a file or a memfd is not who reads the source of the page, on a terminal perhaps.
#[test]
fn no_name_steers_the_terminal_of_who_reads_the_page() {
    let mut report = full();
    let name = "a\nb\u{1b}[31mred\u{9b}2J\u{202e}";
    report.subject = name.to_owned();
    report.picture.areas.iter_mut().for_each(|area| area.name = name.to_owned());
    report.rows.iter_mut().for_each(|row| row.name = name.to_owned());
    let page = map_html(&report);
    for steering in ['\u{1b}', '\u{9b}', '\u{202e}'] {
        assert!(!page.contains(steering), "{steering:?}");
    }
    assert!(page.contains("\u{fffd}[31mred") && page.contains("\\u202e"), "shown, and whole in its JSON");
}

#[test]
fn a_cell_is_filled_as_far_as_it_has_memory() {
    let page = map_html(&full());
    let heights = |class: &str| -> Vec<f64> {
        let opening = format!("<rect class=\"{class}\" x=");
        let marks = page.split(&opening).skip(1);
        let height = |mark: &str| mark.split_once("height=\"")?.1.split_once('"')?.0.parse().ok();
        marks.filter_map(height).collect()
    };
    let full = heights("n1 hugetlb");
    assert_eq!(full.len(), 16);
    assert!(full.iter().all(|height| (height - 34.0).abs() < 0.1), "{full:?}");
    assert!(heights("n0 thp").iter().all(|height| (height - 17.0).abs() < 0.1));
    assert_eq!(heights("untold mthp").len(), 16);
}

#[test]
fn a_browser_draws_the_map_at_any_width() {
    let test = "a_browser_draws_the_map_at_any_width";
    let Some(browser) = browser_or_skip(test) else { return };
    let page = map_html(&full());
    for (width, dark) in [(400, false), (400, true), (1400, false), (1400, true)] {
        let Seen { found, console } = look(&browser, &page, width, dark);
        let case = format!("{width} px, dark {dark}");
        assert!(console.is_empty(), "{case}: {console:?}");
        if found["width"] != width {
            planish_skip::skip(test, format!("{} makes no window of {width} pixels", browser.display()));
            continue;
        }
        assert_eq!(found["dark"], dark, "{case}");
        assert!(list(&found, "overflowing").is_empty(), "{case}: {:#}", found["overflowing"]);
        assert!(list(&found, "wrong").is_empty(), "{case}: {:#}", found["wrong"]);
        assert!(found["checked"]["figures"].as_u64().expect("a count") > 20, "{case}");
    }
}
