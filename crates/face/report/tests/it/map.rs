//! The page of a map: true to the report that it holds, in text and as a browser draws it.

use std::path::Path;

use planish_host::Host;
use planish_model::Catalogue;
use planish_report::{
    MapBacking, MapChange, MapJit, MapPart, MapQuery, MapReport, Page, PageOptions, Report, TopReport,
    TopSort, map_html,
};
use planish_residency::top::{Budget, Reader};
use planish_residency::{
    AreaPages, Backing, Denied, Kind, Map, Member, Object, ObjectPages, Part, SeenBy, Stat, Status, Who,
    parse_maps,
};
use serde_json::Value;

use crate::browser::draws_at_any_width;
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
    let part = |node: Option<u32>, backing, page_bytes, resident_bytes| {
        let estimated = node.is_none();
        MapPart { node, backing, page_bytes, resident_bytes, estimated }
    };
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
        huge_estimated: true,
    });
    let change = |what: &str, place: Option<(MapBacking, u64)>, buffers: Option<u64>| MapChange {
        what: what.to_owned(),
        backing: place.map(|(backing, _)| backing),
        page_bytes: place.map(|(_, page_bytes)| page_bytes),
        node: place.map(|_| 1),
        before_bytes: 8192,
        after_bytes: 32_768,
        estimated: place.is_none(),
        before_buffers: buffers,
        after_buffers: buffers.map(|buffers| buffers + 3),
    };
    let small = Some((MapBacking::Base, 4096));
    report.query = Some(MapQuery {
        pid: 2201,
        rows: 3,
        seconds: 0.25,
        memory: vec![change("shared", None, None)],
        relations: vec![change("</td><b>\"&'", small, Some(1)), change("hidden", None, Some(2))],
        process: Vec::new(),
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

fn part(node: u32, backing: Backing, bytes: u64, estimated: bool) -> Part {
    let page_bytes = if backing == Backing::Base { 4096 } else { 2 << 20 };
    Part { backing, node: Some(node), page_bytes, bytes, estimated }
}

/// A process with these private pages, with a segment, if it has one, that was looked at or not.
fn map_with(parts: &[Part], looked: Option<bool>, tells_large_pages: bool) -> Map {
    let area = parse_maps("1000-65000 rw-p 0 0:0 0\n").expect("a line of maps").remove(0);
    let areas = vec![AreaPages {
        area,
        parts: parts.to_vec(),
        own: parts.to_vec(),
        mapped_bytes: parts.iter().map(|part| part.bytes).sum(),
        file_bytes: 0,
        swapped_bytes: 4096,
        object: None,
        keeper: None,
        cells: Vec::new(),
    }];
    let (stat, status) = (Stat::default(), Status::default());
    let (threads, seen_by, memory_of) = (Vec::new(), SeenBy::PagemapScan, None);
    let member = Member { pid: 7, stat, status, areas, threads, seen_by, memory_of };
    let segment = |looked| Object {
        id: None,
        name: "/dev/zero (deleted)".to_owned(),
        kind: Kind::Shared,
        bytes: 1 << 20,
        pages: ObjectPages::default(),
        looked,
        mapped: Vec::new(),
    };
    let objects = looked.map(segment).into_iter().collect();
    let (members, denied) = (vec![member], Vec::new());
    Map { members, denied, objects, unseen: Vec::new(), tells_large_pages }
}

/// What a text says of pages where large ones may be among them.
const UNTOLD: &str = "base pages only, as far as is told";

/// Sums with a part that is an estimate or was not seen say so in every form, and no others do.
#[test]
fn a_sum_is_about_right_where_a_part_of_it_is_and_nowhere_else() {
    let small = |estimated| part(0, Backing::Base, 4096, estimated);
    let mixed = [part(0, Backing::Thp, 2 << 20, true), part(1, Backing::Base, 2 << 20, false)];
    let of_pool = [part(0, Backing::Hugetlb, 2 << 20, true), part(0, Backing::Base, 6 << 20, false)];
    let unseen = [
        "resident_bytes",
        "base_bytes",
        "mthp_bytes",
        "thp_bytes",
        "hugetlb_bytes",
        "swapped_bytes",
        "unwritten_bytes",
    ];
    type Case<'a> = (&'a str, Map, &'a [&'a str], &'a [&'a str]);
    // What it is, the map, the sums that are about right, words of the text.
    let cases: [Case<'_>; 7] = [
        ("exact", map_with(&[small(false)], None, true), &[], &["4 KiB: 100 % on node 0", "base pages only"]),
        (
            "pages in proportion",
            map_with(&[small(true)], None, true),
            &["resident_bytes", "base_bytes"],
            &["about 4 KiB: about 100 % on node 0", UNTOLD],
        ),
        (
            "one kind of them",
            map_with(&mixed, None, true),
            &["resident_bytes", "thp_bytes"],
            &[
                "about 4 MiB: about 50 % on node 0, 50 % on node 1",
                "about 50 % transparent huge pages, 50 % base",
            ],
        ),
        (
            "a pool",
            map_with(&of_pool, None, true),
            &["resident_bytes", "hugetlb_bytes"],
            &["about 8 MiB: about 100 % on node 0", "about 25 % of pools, 75 % base pages"],
        ),
        (
            "a segment that was looked at",
            map_with(&[small(false)], Some(true), true),
            &[],
            &["base pages only"],
        ),
        (
            "one that was not",
            map_with(&[small(false)], Some(false), true),
            &unseen,
            &["about 4 KiB: about 100 % on node 0", UNTOLD, "about 4 KiB in swap"],
        ),
        (
            "large pages that nobody tells",
            map_with(&[small(false)], None, false),
            &["base_bytes", "mthp_bytes"],
            &["4 KiB: 100 % on node 0", UNTOLD],
        ),
    ];
    for (case, map, sums, words) in &cases {
        is_told(case, map, sums, words);
    }
}

/// Holds the report of a map against the sums that are about right, in JSON, text and HTML.
fn is_told(case: &str, map: &Map, sums: &[&str], words: &[&str]) {
    let report = MapReport::from(map);
    let json = serde_json::to_value(&report).expect("plain data");
    assert_eq!(json["totals"]["estimated"], serde_json::json!(sums), "{case}");
    let catalogue = Catalogue::default();
    let mut page = Page::new(PageOptions { width: 160, detailed: false }, &catalogue);
    report.text(&mut page);
    let text = anstream::adapter::strip_str(&page.into_text()).to_string();
    for word in words {
        assert!(text.contains(word), "{case}: {word}: {text}");
    }
    // No mark but where something is one.
    assert_eq!(text.contains("about "), sums.contains(&"resident_bytes"), "{case}: {text}");
    assert_eq!(text.contains(UNTOLD), words.contains(&UNTOLD), "{case}: {text}");
    let html = map_html(&report);
    check(&html).expect("true to its report");
    let is_marked = |at: &str| {
        let value = json.pointer(at).and_then(Value::as_u64).expect("a figure");
        html.contains(&format!("about <data value=\"{value}\" data-at=\"{at}\">"))
    };
    let totals = json["totals"].as_object().expect("sums");
    for (name, _) in totals.iter().filter(|(_, value)| value.as_u64() > Some(0)) {
        assert_eq!(is_marked(&format!("/totals/{name}")), sums.contains(&name.as_str()), "{case}: {name}");
    }
    for (index, node) in report.nodes.iter().enumerate() {
        let at = |name: &str| format!("/nodes/{index}/{name}");
        assert_eq!(is_marked(&at("resident_bytes")), node.estimated, "{case}: {node:?}");
        assert_eq!(is_marked(&at("huge_bytes")), node.huge_estimated, "{case}: {node:?}");
    }
    let own = map.members[0].areas[0].own.iter().any(|part| part.estimated);
    assert_eq!(report.processes[0].private.iter().any(|private| private.estimated), own, "{case}");
}

/// The report of a map as text.
fn text_of(map: &Map) -> String {
    let catalogue = Catalogue::default();
    let mut page = Page::new(PageOptions { width: 160, detailed: false }, &catalogue);
    MapReport::from(map).text(&mut page);
    anstream::adapter::strip_str(&page.into_text()).to_string()
}

/// A process of another user among those below one is in no sum, so that none of them is exact.
#[test]
fn without_a_process_that_may_not_be_seen_no_sum_is_exact() {
    let mut map = map_with(&[part(0, Backing::Base, 4096, false)], None, true);
    let denied = |pid, is_first| Denied { pid, is_first, status: Status::default() };
    map.denied = vec![denied(9, false)];
    let report = MapReport::from(&map);
    let json = serde_json::to_value(&report).expect("plain data");
    let sums = json["totals"].as_object().expect("sums");
    assert_eq!(report.totals.estimated.len(), sums.len() - 1, "all but the list itself");
    assert_eq!(json["denied"], serde_json::json!([9]));
    assert!(report.local_share_estimated && report.nodes.iter().all(|node| node.estimated));
    assert!(report.subject.ends_with("(pid 7) and the process below it, 1 of which may not be seen"));
    assert!(text_of(&map).contains("about 4 KiB: about 100 % on node 0"), "{}", text_of(&map));
    // The one that was meant may be it.
    map.denied = vec![denied(6, true), denied(9, false)];
    let subject = MapReport::from(&map).subject;
    assert!(subject.ends_with("(pid 6) and 2 processes below it, 2 of which may not be seen"), "{subject}");
}

/// As of a program that `vfork(2)` has made a process for.
#[test]
fn page_tables_and_locked_memory_of_one_address_space_are_told_once() {
    let mut map = map_with(&[part(0, Backing::Base, 4096, false)], None, true);
    let first = &mut map.members[0];
    first.status = Status { page_table_bytes: 8192, locked_bytes: 4096, ..Status::default() };
    let mut second = first.clone();
    (second.pid, second.memory_of) = (8, Some(7));
    second.areas.clear();
    map.members.push(second);
    let report = MapReport::from(&map);
    assert_eq!((report.totals.page_table_bytes, report.totals.locked_bytes), (8192, 4096));
    assert_eq!(report.processes[1].page_table_bytes, 8192, "what the kernel says of the process");
    assert_eq!(report.processes[1].memory_of, Some(7));
    assert!(text_of(&map).contains("the memory of process 7"), "{}", text_of(&map));
}

/// Two processes that name the largest figures that are read, in every field.
fn boundless(root: &Path) -> Host {
    let write = |path: String, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("our own");
        std::fs::write(path, text).expect("our own");
    };
    write("sys/devices/system/node/has_memory".to_owned(), "0-1\n");
    for node in 0..2 {
        write(format!("sys/devices/system/node/node{node}/cpulist"), &format!("{node}\n"));
    }
    const MOST: u64 = u64::MAX;
    let most = MOST >> 10;
    // Two fields that are added while they are read have half of it each.
    let (half, quarter) = (most / 2, most / 4);
    let region = |line: &str, rss: u64, pool: u64, thp: u64| {
        format!(
            "{line}\nKernelPageSize: 4 kB\nRss: {rss} kB\nPss: {most} kB\nAnonymous: {rss} kB\n\
             AnonHugePages: {thp} kB\nShared_Hugetlb: {pool} kB\nSwap: {most} kB\n"
        )
    };
    let smaps = [
        region("1000-9000 rwxp 00000000 00:00 0 ", most, 0, 0),
        region("9000-a000 rwxp 00000000 00:00 0 ", most, 0, most),
        region("20000-30000 rw-p 00000000 00:00 0 [heap]", half, half, quarter),
        region("30000-40000 rw-s 00000000 00:01 5 /dev/zero (deleted)", most, 0, half),
        region("50000-ffffffffff000 rw-s 00000000 00:0f 6 /anon_hugepage (deleted)", half, half, 0),
        region("ffffffffff000-fffffffffff000 r-xp 00000000 fe:00 7 /usr/bin/x", most, 0, 0),
    ];
    let places: Vec<String> = ["1000", "9000", "20000", "30000", "50000", "ffffffffff000"]
        .iter()
        .map(|start| format!("{start} default N0={0} N1={0} kernelpagesize_kB=4\n", most / 4))
        .collect();
    for (pid, parent) in [(7, 1), (8, 7)] {
        let status = format!(
            "Name:\tx\nUid:\t1\t1\t1\t1\nThreads:\t{}\nVmRSS:\t{most} kB\nVmPTE:\t{most} kB\n\
             VmLck:\t{most} kB\nVmSwap:\t{most} kB\nHugetlbPages:\t{most} kB\n",
            u32::MAX
        );
        write(format!("proc/{pid}/status"), &status);
        write(format!("proc/{pid}/smaps"), &smaps.concat());
        write(format!("proc/{pid}/numa_maps"), &places.concat());
        let stat = |cpu: u32| {
            format!(
                "{pid} (x) S {parent} 7 7 0 -1 64 {MOST} 0 {MOST} 0 {MOST} {MOST} 0 0 20 0 {} 0 9 {MOST} {MOST} {MOST} \
                 111 4 222 0 0 0 0 0 0 0 0 0 17 {cpu}\n",
                u32::MAX
            )
        };
        write(format!("proc/{pid}/stat"), &stat(0));
        for (tid, cpu) in [(pid, 0), (pid + 10, 1)] {
            write(format!("proc/{pid}/task/{tid}/stat"), &stat(cpu));
        }
    }
    Host::open(root).expect("a recorded host")
}

/// A record is a folder of texts that anybody may have written.
#[test]
fn no_figure_of_a_record_is_a_bug() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let host = boundless(folder.path());
    let catalogue = Catalogue::default();
    for tree in [false, true] {
        let map = Map::read(&host, &Who::Pid(7), tree).expect("it is recorded");
        assert_eq!(map.members.len(), if tree { 2 } else { 1 });
        let report = MapReport::from(&map);
        assert_eq!((report.totals.resident_bytes, report.totals.swapped_bytes), (u64::MAX, u64::MAX));
        assert!(report.local_share.is_some_and(f64::is_finite) && report.jit.len() == report.processes.len());
        for detailed in [false, true] {
            let mut page = Page::new(PageOptions { width: 160, detailed }, &catalogue);
            report.text(&mut page);
            report.threads_text(&mut page);
            assert!(page.into_text().contains("16777216.0 TiB"), "the most there is");
        }
        check(&map_html(&report)).expect("true to its report");
    }
    let sample = Reader::default().step(&host, &[7, 8], Budget::ONCE);
    let report = TopReport::of(&sample, None, TopSort::Remote, "");
    let mut page = Page::new(PageOptions { width: 160, detailed: true }, &catalogue);
    report.text(&mut page);
    assert!(page.into_text().contains(" x\n"), "told all the same");
}

#[test]
fn a_reason_of_a_record_makes_no_line_of_its_own() {
    let mut report = recorded();
    report.unseen[0].why = "x\nNothing else".to_owned();
    let catalogue = Catalogue::default();
    let mut page = Page::new(PageOptions { width: 160, detailed: false }, &catalogue);
    report.text(&mut page);
    let text = page.into_text();
    assert!(text.contains(": x Nothing else") && !text.contains("\nNothing else"), "{text}");
}

/// Where it may run is told by the kernel for all; where its threads ran last is the other half of what is local.
#[test]
fn the_text_of_a_map_tells_the_cpus_that_threads_ran_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let map = Map::read(&boundless(folder.path()), &Who::Pid(7), false).expect("it is recorded");
    let (report, catalogue) = (MapReport::from(&map), Catalogue::default());
    let text = |detailed| {
        let mut page = Page::new(PageOptions { width: 160, detailed }, &catalogue);
        report.text(&mut page);
        page.into_text()
    };
    let told = "where they ran last: 1 on node 0 (CPUs 0), 1 on node 1 (CPUs 1)";
    assert!(text(false).contains(told) && !text(false).contains("their CPU time"), "{}", text(false));
    assert!(text(true).contains(told) && text(true).contains("their CPU time"), "{}", text(true));
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
    draws_at_any_width("a_browser_draws_the_map_at_any_width", &map_html(&full()));
}
