//! What all tests of the screen look at, and the screen itself.

use planish_report::TopSort;
use planish_residency::Unseen;
use planish_residency::top::{
    Bandwidth, Loads, NodeBandwidthSample, NodeLoadsSample, NodeSample, Numastat, PlacesSample, PoolSample,
    ProcessSample, Reads, SAMPLE_SCHEMA, Sample, StatusSample, WalkSample,
};

use super::keys::Key;
use super::screen::{Line, painted, screen};
use super::view::View;

/// Three processes on two nodes, so many milliseconds after the first look.
pub(super) fn sample(at_ms: u64) -> Sample {
    let seconds = at_ms / 1000;
    let process = |pid: u32, name: &str, resident_bytes: u64| ProcessSample {
        pid,
        start_ticks: 100,
        name: name.to_owned(),
        threads: 4,
        cpu: Some(1),
        cpu_ticks: 50 * seconds * u64::from(pid) / 10,
        minor_faults: 1000 * seconds,
        major_faults: 3 * seconds,
        resident_bytes,
        status: Some(StatusSample {
            at_ms,
            user: Some(26),
            page_table_bytes: resident_bytes / 500,
            swapped_bytes: 0,
            hugetlb_bytes: 0,
        }),
        walk: Some(WalkSample { at_ms, resident_bytes, thp_bytes: resident_bytes / 4, hugetlb_bytes: 0 }),
        places: Some(PlacesSample { at_ms, local_share: 0.625 }),
    };
    let mut small = process(10, "sh", 1 << 20);
    (small.status, small.walk, small.places) = (None, None, None);
    let node = |node: u32| NodeSample {
        node: Some(node),
        memory_bytes: 128 << 30,
        free_bytes: 38 << 30,
        thp_bytes: 5 << 30,
        pools: vec![PoolSample { page_bytes: 2 << 20, pages: 512, free_pages: 100 }],
        numastat: Some(numastat(seconds)),
    };
    let loads =
        |node: u32| NodeLoadsSample { node, local: 2e7 * seconds as f64, remote: 5e6 * seconds as f64 };
    let counted = |node: u32, bytes: f64| {
        let (read_bytes, written_bytes) = (bytes * seconds as f64, bytes / 4.0 * seconds as f64);
        NodeBandwidthSample { node: Some(node), read_bytes, written_bytes }
    };
    Sample {
        schema: SAMPLE_SCHEMA.to_owned(),
        unix_seconds: Some(1_800_000_000 + seconds),
        at_ms,
        ticks_per_s: 100,
        memory_nodes: 2,
        processes: vec![small, process(20, "redis-server", 800 << 20), process(30, "postgres", 4 << 30)],
        kernel_threads: 120,
        nodes: vec![node(0), node(1)],
        loads: Loads { reason: None, line_bytes: 64, nodes: vec![loads(0), loads(1)] },
        bandwidth: Bandwidth { reason: None, nodes: vec![counted(0, 9e9), counted(1, 2e9)] },
        reads: Reads {
            stat: 123,
            status: 3,
            walks: 2,
            places: 2,
            waiting: 1,
            waiting_places: 0,
            longest_us: Some(812),
            took_us: Some(4210),
        },
        unseen: vec![Unseen {
            what: "huge-page coverage and nodes of 1 process".to_owned(),
            why: "it is another user's".to_owned(),
            cure: "run as root (CAP_SYS_PTRACE)".to_owned(),
        }],
    }
}

fn numastat(seconds: u64) -> Numastat {
    Numastat { hit: 12_000 * seconds, miss: 7 * seconds, foreign: 0, other: 40 * seconds }
}

fn view() -> View {
    let mut view = View::new(TopSort::Resident, "", &sample(0));
    view.update(&sample(2000), Some(&sample(0)));
    view
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{}\n", line.text.trim_end())).collect()
}

#[test]
fn the_screen_tells_nodes_and_processes() {
    insta::assert_snapshot!(text(&screen(&mut view(), 118, 16)));
}

#[test]
fn a_machine_with_one_node_and_no_counters_says_so() {
    let mut one = sample(2000);
    one.memory_nodes = 1;
    one.nodes.truncate(1);
    one.unseen.clear();
    one.loads = Loads { reason: Some("no PMU in this machine".to_owned()), ..Loads::default() };
    one.bandwidth = Bandwidth { reason: one.loads.reason.clone(), ..Bandwidth::default() };
    one.processes.iter_mut().for_each(|process| process.places = None);
    let mut view = view();
    view.update(&one, None);
    let text = text(&screen(&mut view, 118, 12));
    insta::assert_snapshot!(text);
}

#[test]
fn no_line_is_wider_than_the_window_and_none_is_lost() {
    for (width, height) in [(20, 4), (40, 8), (300, 50), (12, 3), (1, 1)] {
        for key in [Key::Escape, Key::Char('?')] {
            let mut view = view();
            view.press(key);
            let lines = screen(&mut view, width, height);
            assert_eq!(lines.len(), height);
            assert!(lines.iter().all(|line| line.text.chars().count() <= width), "{width} x {height}");
        }
    }
}

#[test]
fn a_name_steers_no_terminal_and_the_selected_row_is_seen_without_colour() {
    let mut evil = sample(2000);
    evil.processes[2].name = "x\x1b[2J\r".to_owned();
    let mut view = view();
    view.update(&evil, None);
    view.press(Key::Home);
    let lines = screen(&mut view, 118, 16);
    let plain = painted(&lines, false);
    assert!(!plain.contains("x\x1b[2J"), "{plain:?}");
    let selected = lines.iter().find(|line| line.text.contains(" 4G ")).expect("the largest");
    assert!(selected.style.get_effects().contains(anstyle::Effects::INVERT));
    assert_eq!(plain.matches("\x1b[7m").count(), 1, "{plain:?}");
    assert_eq!(plain.matches("\x1b[1m").count(), 0, "no other style");
    assert!(painted(&lines, true).contains("\x1b[1m"));
}

/// A recording is a file that anybody may have written.
#[test]
fn no_figure_of_a_recording_is_a_bug() {
    const MOST: u64 = u64::MAX;
    for (unix_seconds, ticks_per_s) in [(MOST, MOST), (253_402_300_800, 0)] {
        let mut odd = sample(2000);
        (odd.unix_seconds, odd.at_ms, odd.ticks_per_s) = (Some(unix_seconds), MOST, ticks_per_s);
        (odd.kernel_threads, odd.memory_nodes) = (MOST, u32::MAX);
        for process in &mut odd.processes {
            (process.cpu_ticks, process.minor_faults, process.major_faults) = (MOST, MOST, MOST);
            (process.resident_bytes, process.threads, process.cpu) = (MOST, u32::MAX, Some(u32::MAX));
            process.status = Some(StatusSample {
                at_ms: MOST,
                user: Some(u32::MAX),
                page_table_bytes: MOST,
                swapped_bytes: MOST,
                hugetlb_bytes: MOST,
            });
            process.walk =
                Some(WalkSample { at_ms: MOST, resident_bytes: 1, thp_bytes: MOST, hugetlb_bytes: MOST });
            process.places = Some(PlacesSample { at_ms: 0, local_share: -1e308 });
        }
        for node in &mut odd.nodes {
            (node.memory_bytes, node.free_bytes, node.thp_bytes) = (0, MOST, MOST);
            node.pools = vec![PoolSample { page_bytes: MOST, pages: 0, free_pages: MOST }];
            node.numastat = Some(Numastat { hit: MOST, miss: MOST, foreign: MOST, other: MOST });
        }
        odd.loads.line_bytes = MOST;
        odd.loads.nodes.iter_mut().for_each(|loads| (loads.local, loads.remote) = (1e308, -1e308));
        odd.bandwidth.nodes.iter_mut().for_each(|told| told.read_bytes = 1e308);
        odd.reads = Reads { longest_us: Some(MOST), took_us: Some(MOST), waiting: MOST, ..odd.reads };
        for (now, before) in [(&odd, None), (&odd, Some(&sample(0))), (&sample(2000), Some(&odd))] {
            let mut view = view();
            view.place = "sample 1 of 2, 1x".to_owned();
            view.update(now, before);
            let told = text(&screen(&mut view, 200, 40));
            assert!(told.contains("redis-server"), "{told}");
            let is_odd = std::ptr::eq(now, &raw const odd);
            assert_eq!(told.contains("after the year 9999"), is_odd, "{told}");
        }
    }
}

/// Runs a command line of the shell on a terminal of its own, with these keys; gives what the terminal was sent.
fn on_terminal(line: &str, keys: &[u8]) -> Option<String> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut script = Command::new("script")
        .args(["-qec", line, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    script.stdin.take().expect("it is piped").write_all(keys).expect("it takes keys");
    Some(String::from_utf8_lossy(&script.wait_with_output().expect("it ends").stdout).into_owned())
}

#[test]
fn a_panic_puts_the_terminal_back_before_it_is_told() {
    let test = "a_panic_puts_the_terminal_back_before_it_is_told";
    let this = std::env::current_exe().expect("we run");
    let panics = "commands::top::tests::panics_with_a_screen";
    let line = format!(
        "before=$(stty -g); {} --exact {panics} --ignored --nocapture --test-threads 1; \
         test \"$before\" = \"$(stty -g)\" && echo as-before",
        planish_model::quoted(&this.to_string_lossy())
    );
    let Some(shown) = on_terminal(&line, b"") else { return planish_skip::skip(test, "no script(1)") };
    if shown.contains("no-terminal") {
        return planish_skip::skip(test, "script(1) gave no terminal");
    }
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("no {text:?} in {shown:?}"));
    assert!(at("\u{1b}[?1049h") < at("\u{1b}[?1049l"), "{shown:?}");
    assert!(at("\u{1b}[?1049l") < at("bug in planish"), "{shown:?}");
    at("as-before");
}

/// No test by itself: on a terminal of its own it panics while a screen is on it.
#[test]
#[ignore = "a_panic_puts_the_terminal_back_before_it_is_told runs it, on a terminal"]
fn panics_with_a_screen() {
    if !super::terminal::is_one() {
        println!("no-terminal");
        return;
    }
    crate::bug::say_panics_in_one_line();
    let told = crate::bug::caught(|| {
        let _terminal = super::terminal::Terminal::enter().expect("it is one");
        panic!("a lost row");
    });
    assert!(told.is_err());
}
