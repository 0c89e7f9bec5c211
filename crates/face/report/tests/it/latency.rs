//! The pages of distances and of jitter: true to the report that they hold, in text and as a browser draws them.

use planish_report::{
    JitterBucket, JitterCpu, JitterGaps, JitterQuantile, JitterReport, JitterSource, JitterWake,
    LatencyBacking, LatencyClusters, LatencyFigure, LatencyInterleave, LatencyInterleaveVerdict, LatencyNode,
    LatencyPage, LatencyPair, LatencyPartition, LatencyQuiet, LatencyReport, Page, PageOptions, Report,
    jitter_html, latency_html,
};

use crate::browser::{Seen, browser_or_skip, list, look};
use crate::map::check;

fn figure(value: f64) -> LatencyFigure {
    LatencyFigure { value, low: value * 0.97, high: value * 1.04, level: 0.9648, rounds: 15 }
}

fn quiet(quiet: bool) -> LatencyQuiet {
    let reasons = if quiet { Vec::new() } else { vec!["others used 31.0 % of </script> <b>all".to_owned()] };
    LatencyQuiet {
        quiet,
        reasons,
        seconds: 1.0,
        steal_share: Some(0.001),
        busy_share: Some(if quiet { 0.01 } else { 0.31 }),
        pressure_share: Some(0.0),
        runnable: Some(0.1),
        load_1m: Some(0.4),
    }
}

fn text(report: &impl Report) -> String {
    let catalogue = planish_model::Catalogue::default();
    let mut page = Page::new(PageOptions { width: 100, detailed: false }, &catalogue);
    report.text(&mut page);
    anstream::adapter::strip_str(&page.into_text()).to_string()
}

/// A machine of two nodes with so many CPUs each, two of which share a core.
fn distances(cpus: u32, is_quiet: bool) -> LatencyReport {
    let node = |cpu: u32| cpu / (cpus / 2);
    let ns = |first: u32, second: u32| match (first / 2 == second / 2, node(first) == node(second)) {
        (true, _) => 20.0,
        (_, true) => 48.0,
        _ => 205.0,
    };
    let pair = |first: u32, second: u32| LatencyPair {
        first,
        second,
        round_trip_ns: (second != 3).then(|| figure(ns(first, second))),
        why: (second == 3).then(|| "something holds CPU 3".to_owned()),
    };
    let all = (0..cpus).flat_map(|first| (first + 1..cpus).map(move |second| (first, second)));
    let of_node = |cpu_node: u32, memory_node: u32| {
        let ns = if cpu_node == memory_node { 92.0 } else { 141.0 };
        LatencyNode {
            cpu_node,
            memory_node,
            cpu: cpu_node * (cpus / 2),
            threads: u64::from(cpus / 2),
            distance: Some(if cpu_node == memory_node { 10 } else { 21 }),
            load_ns: Some(figure(ns)),
            read_bytes_per_s: Some(figure(1e12 / ns)),
            why: None,
        }
    };
    let page = |backing: &str, page_bytes, ns: Option<f64>| LatencyPage {
        backing: backing.to_owned(),
        page_bytes,
        load_ns: ns.map(figure),
        of_base: ns.filter(|_| backing != "base").map(|ns| figure(ns / 140.0)),
        achieved_bytes: ns.map_or(0, |_| 256 << 20),
        why: ns.is_none().then(|| "0 of 1 pages are free in the pool".to_owned()),
        cure: ns.is_none().then(|| "planish size --bytes 1G".to_owned()),
    };
    LatencyReport {
        quiet: quiet(is_quiet),
        cpus: format!("0-{}", cpus - 1),
        rounds: 15,
        seed: 4711,
        seconds: 9.5,
        pairs: all.map(|(first, second)| pair(first, second)).collect(),
        clusters: vec![LatencyClusters {
            clusters: vec![format!("0-{}", cpus / 2 - 1), format!("{}-{}", cpus / 2, cpus - 1)],
            within_ns: figure(48.0),
            between_ns: figure(205.0),
            sysfs: vec!["package".to_owned()],
        }],
        sysfs: vec![LatencyPartition { name: "L3".to_owned(), parts: vec!["0-1".to_owned()], seen: false }],
        nodes: [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(cpus, memory)| of_node(cpus, memory)).to_vec(),
        node_backing: vec![LatencyBacking { node: 0, backing: "thp".to_owned(), bytes: 128 << 20 }],
        interleave: LatencyInterleave {
            verdict: LatencyInterleaveVerdict::None,
            evidence: "memory of other nodes takes 141 ns".to_owned(),
            near_ns: Some(figure(92.0)),
            far_ns: Some(figure(141.0)),
        },
        pages: vec![
            page("base", 4096, Some(140.0)),
            page("thp", 2 << 20, Some(98.0)),
            page("hugetlb-1g", 1 << 30, None),
        ],
    }
}

fn jitter(is_quiet: bool) -> JitterReport {
    let quantile = |name: &str, ns: Option<f64>| JitterQuantile {
        name: name.to_owned(),
        ns: ns.map(figure),
        needed: ns.is_none().then_some(100_000),
    };
    let quantiles = |last: Option<f64>| {
        vec![
            quantile("p50", Some(26.0)),
            quantile("p99", Some(30.0)),
            quantile("p99_9", Some(2100.0)),
            quantile("p99_99", last),
        ]
    };
    let bucket = |power: u32, count| JitterBucket { from_ns: 1 << power, below_ns: 2 << power, count };
    let cpu = |cpu: u32| JitterCpu {
        cpu,
        gaps: JitterGaps {
            seconds: 5.0,
            look_ns: 26,
            count: 1263,
            per_s: figure(252.6),
            lost_share: figure(0.0012),
            by_time: quantiles(Some(9000.0)),
            longest_ns: figure(61_000.0),
            max_ns: 91_234,
            buckets: vec![bucket(10, 1250), bucket(11, 0), bucket(12, 12), bucket(16, 1)],
        },
        wake: JitterWake {
            count: 9800,
            late: quantiles(None),
            latest_ns: Some(figure(70_000.0)),
            max_ns: 112_000,
        },
        ticks_per_s: Some(figure(250.0)),
        irqs_per_s: Some(figure(12.0)),
        softirqs_per_s: Some(figure(140.0)),
        steal_share: None,
        sources: vec![JitterSource {
            kind: "irq".to_owned(),
            name: "LOC".to_owned(),
            told: "Local timer interrupts".to_owned(),
            count: 1250,
            per_s: 250.0,
        }],
    };
    JitterReport {
        quiet: quiet(is_quiet),
        rounds: 15,
        seed: 4711,
        seconds: 11.0,
        threshold_ns: 1000,
        cpus: vec![cpu(2), cpu(3)],
    }
}

#[test]
fn the_pages_tell_what_their_reports_say() {
    for page in [
        latency_html(&distances(8, true)),
        latency_html(&distances(64, false)),
        jitter_html(&jitter(true)),
        jitter_html(&jitter(false)),
    ] {
        let checked = check(&page).expect("true to its report");
        assert!(checked > 40, "{checked} figures");
        assert!(!page.contains("<b>all"), "a reason broke out of its place");
        for fetched in ["src=", "href=\"http", "url(", "@import"] {
            assert!(!page.contains(fetched), "{fetched}");
        }
        let wrong = page.replacen("<data value=\"", "<data value=\"7", 1);
        assert!(check(&wrong).is_err(), "a wrong figure was not found");
    }
}

#[test]
fn a_square_is_as_dark_as_its_pair_is_far() {
    let page = latency_html(&distances(8, true));
    let squares = |class: &str| page.matches(&format!("<rect class=\"{class}\"")).count();
    // Of 28 pairs 4 share a core, 12 a node and 16 neither; each is drawn twice. CPU 3 answers none of 0, 1 and 2.
    assert_eq!(squares("h0"), 2 * 3 + 2, "near pairs, and memory of the own node");
    assert_eq!(squares("h5"), 2 * 16 + 2, "pairs of two nodes, and memory of the other");
    assert_eq!(squares("untold"), 8 + 2 * 3, "a CPU and itself, and pairs without a figure");
}

#[test]
fn a_text_has_numbers_for_a_few_cpus_and_shades_for_many() {
    let few = text(&distances(8, true));
    assert!(few.starts_with("quiet      yes"), "{few}");
    assert!(few.contains("█ 205") && few.contains("205 ns") && few.contains("198.8 ns to 213.2 ns"), "{few}");
    assert!(few.contains("something holds CPU 3") && few.contains("not seen   L3"), "{few}");
    assert!(few.contains("intervals of 96.5 %") && few.contains("planish size --bytes 1G"), "{few}");
    let many = text(&distances(64, false));
    assert!(many.starts_with("quiet      NO: others used 31.0 %"), "{many}");
    assert!(many.contains("each interval is the whole range of its rounds"), "{many}");
    let row = many.lines().find(|line| line.starts_with("63 ")).expect("a row of the last CPU");
    assert_eq!(row.chars().filter(|&shade| shade == '█').count(), 32, "{row}");
    assert!(!many.contains("96.5"), "no level where there is none: {many}");
}

#[test]
fn a_text_of_jitter_has_every_quantile_or_what_it_takes() {
    let told = text(&jitter(true));
    assert!(told.contains("takes 100,000 wake-ups") && told.contains("91.23 µs"), "{told}");
    assert!(told.contains("LOC 250") && told.contains("Gaps of CPU 3 by length"), "{told}");
    let bars: Vec<usize> =
        told.lines().map(|line| line.matches('█').count()).filter(|&count| count > 0).collect();
    assert_eq!(bars.iter().max(), Some(&40), "{told}");
}

#[test]
fn a_browser_draws_both_pages_at_any_width() {
    let test = "a_browser_draws_both_pages_at_any_width";
    let Some(browser) = browser_or_skip(test) else { return };
    for page in [latency_html(&distances(16, false)), jitter_html(&jitter(true))] {
        for (width, dark) in [(400, false), (1400, true)] {
            let Seen { found, console } = look(&browser, &page, width, dark);
            let case = format!("{width} px, dark {dark}");
            assert!(console.is_empty(), "{case}: {console:?}");
            if found["width"] != width {
                planish_skip::skip(test, format!("{} makes no window of {width} pixels", browser.display()));
                continue;
            }
            assert!(list(&found, "overflowing").is_empty(), "{case}: {:#}", found["overflowing"]);
            assert!(list(&found, "wrong").is_empty(), "{case}: {:#}", found["wrong"]);
            assert!(found["checked"]["figures"].as_u64().expect("a count") > 40, "{case}");
        }
    }
}
