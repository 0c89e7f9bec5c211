//! `planish latency` of the live machine: the answer and its schema, and what is refused with which code.

use crate::planish::{command, run};

#[test]
fn distances_of_this_machine_are_told_with_their_intervals() {
    let answer = run(["--json", "latency", "--rounds", "6"]);
    assert_eq!(answer.exit, 0, "{}", answer.stderr);
    let envelope = answer.envelope();
    let result = &envelope["result"];
    // Whatever the others do, it is told, and a warning goes with it.
    let is_quiet = result["quiet"]["quiet"].as_bool().expect("a verdict");
    let messages = envelope["messages"].as_array().expect("messages");
    assert_eq!(messages.iter().any(|message| message["level"] == "warning"), !is_quiet, "{messages:?}");
    assert_eq!(result["quiet"]["reasons"].as_array().expect("reasons").is_empty(), is_quiet);

    let pairs = result["pairs"].as_array().expect("pairs");
    let cpus = planish_sys::affinity::get(None).expect("we run somewhere").count();
    assert_eq!(pairs.len(), cpus * (cpus - 1) / 2);
    let nodes = result["nodes"].as_array().expect("nodes");
    assert!(!nodes.is_empty());
    let pages = result["pages"].as_array().expect("kinds of pages");
    assert_eq!(pages[0]["backing"], "base");
    let of_pairs = pairs.iter().map(|pair| (&pair["round_trip_ns"], &pair["why"]));
    let of_nodes = nodes.iter().map(|node| (&node["load_ns"], &node["why"]));
    let of_pages = pages.iter().map(|page| (&page["load_ns"], &page["why"]));
    for (figure, why) in of_pairs.chain(of_nodes).chain(of_pages) {
        assert_ne!(
            figure.is_null(),
            why.is_null(),
            "a figure or the reason why there is none: {figure} {why}"
        );
        let Some(value) = figure["value"].as_f64() else { continue };
        let (low, high) = (figure["low"].as_f64().expect("low"), figure["high"].as_f64().expect("high"));
        assert!(0.0 < low && low <= value && value <= high, "{figure}");
        assert_eq!(figure["rounds"], 6);
    }
    assert!(!result["interleave"]["evidence"].as_str().expect("text").is_empty());
}

#[test]
fn one_cpu_has_no_other_and_says_so() {
    let cpu = planish_sys::affinity::get(None).expect("we run somewhere").first().expect("a CPU").to_string();
    let answer = run(["latency", "--rounds", "6", "--cpus", &cpu]);
    assert_eq!(answer.exit, 0, "{}", answer.stderr);
    assert!(
        answer.stdout.contains(&format!("CPU {cpu} alone: there is nothing to measure")),
        "{}",
        answer.stdout
    );
    assert!(answer.stdout.starts_with("quiet "), "the verdict comes first: {}", answer.stdout);
}

#[test]
fn the_page_is_written_and_a_place_that_has_none_is_known_before() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let args = ["latency", "--jitter", "--seconds", "1", "--rounds", "6", "--html", "jitter.html"];
    let output = command(home.path(), args).output().expect("the binary starts");
    assert!(output.status.success(), "{output:?}");
    let page = std::fs::read_to_string(home.path().join("jitter.html")).expect("it was written");
    assert!(page.contains("Late wake-ups of a timer") && page.contains("data-at=\"/cpus/0/gaps/max_ns\""));
    let nowhere = command(home.path(), ["latency", "--html", "no/such/folder.html"]).output();
    assert_eq!(nowhere.expect("the binary starts").status.code(), Some(2));
}

#[test]
fn what_cannot_be_measured_has_its_code_and_cure() {
    let recorded = run(["--json", "--root", ".", "latency"]);
    assert_eq!(recorded.exit, 2);
    assert_eq!(recorded.envelope()["messages"][0]["hint"], "leave --root out");
    let missing = run(["--json", "latency", "--cpus", "4000"]);
    assert_eq!(missing.exit, 2);
    let message = &missing.envelope()["messages"][0];
    assert_eq!(message["text"], "this machine has no CPU 4000");
    assert!(message["hint"].as_str().expect("a cure").contains("--cpus"), "{message}");
    for odd in [&["--cpus", "x"][..], &["--cpus", ""], &["--rounds", "5"]] {
        assert_eq!(run(["latency"].iter().chain(odd)).exit, 2, "{odd:?}");
    }
}

#[test]
fn the_jitter_of_this_machine_is_told_with_its_sources() {
    let answer = run(["--json", "latency", "--jitter", "--seconds", "1", "--rounds", "6"]);
    assert_eq!(answer.exit, 0, "{}", answer.stderr);
    let envelope = answer.envelope();
    assert_eq!(envelope["schema"], "planish.latency-jitter/1");
    let cpus = envelope["result"]["cpus"].as_array().expect("CPUs").clone();
    assert_eq!(cpus.len(), planish_sys::affinity::get(None).expect("we run somewhere").count());
    for cpu in cpus {
        let gaps = &cpu["gaps"];
        let counted: u64 = gaps["buckets"]
            .as_array()
            .expect("buckets")
            .iter()
            .map(|it| it["count"].as_u64().expect("a count"))
            .sum();
        assert_eq!(gaps["count"], counted, "{gaps}");
        assert!(gaps["seconds"].as_f64().expect("time") >= 0.49, "half of the time is spun: {gaps}");
        let by_time = gaps["by_time"].as_array().expect("quantiles");
        assert_eq!(by_time.len(), 4);
        assert!(cpu["wake"]["count"].as_u64().expect("a count") > 0);
        for quantile in cpu["wake"]["late"].as_array().expect("quantiles") {
            assert_ne!(quantile["ns"].is_null(), quantile["needed"].is_null(), "{quantile}");
        }
    }
}

#[test]
fn what_belongs_to_jitter_alone_is_refused_without_it() {
    for args in [&["latency", "--seconds", "3"][..], &["latency", "--jitter", "--seconds", "0"]] {
        assert_eq!(run(args).exit, 2, "{args:?}");
    }
    let missing = run(["--json", "latency", "--jitter", "--cpus", "4000"]);
    assert_eq!((missing.exit, missing.envelope()["schema"].as_str()), (2, Some("planish.latency-jitter/1")));
    assert_eq!(run(["--root", ".", "latency", "--jitter"]).exit, 2);
}

/// The bounds of an option were learnt from its error alone.
#[test]
fn the_bounds_of_rounds_are_told_before_the_error() {
    let help = run(["latency", "--help"]).stdout;
    let page = include_str!("../../../../../docs/latency.md");
    assert!(help.contains("from 6 to 1000"), "{help}");
    assert!(page.contains("from 6,") && page.contains("to 1000"), "docs/latency.md");
    for (rounds, exit) in [("5", 2), ("1001", 2)] {
        assert_eq!(run(["latency", "--rounds", rounds]).exit, exit, "{rounds}");
    }
}
