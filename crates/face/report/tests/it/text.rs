//! The text of a trial: what stands on the terminal is what the outcome says, level and page tables among it.

use planish_model::Catalogue;
use planish_report::{Page, PageOptions, ProveReport, Report, units};
use planish_trial::{Achieved, InPart, LadderMode, MetricRow, Refusal, TrialOutcome};

use crate::fixed;

fn text(outcome: TrialOutcome) -> String {
    let catalogue = Catalogue::default();
    let mut page = Page::new(PageOptions { width: 160, detailed: false }, &catalogue);
    ProveReport(outcome).text(&mut page);
    anstream::adapter::strip_str(&page.into_text()).to_string()
}

/// The words of the first line that begins with this word, after a line that begins with another.
fn row<'t>(text: &'t str, table: &str, name: &str) -> Vec<&'t str> {
    let rows = text.lines().skip_while(|line| !line.starts_with(table));
    let row = rows.skip(1).find(|line| line.split_whitespace().next() == Some(name));
    row.unwrap_or_else(|| panic!("no row {name} under {table} in\n{text}")).split_whitespace().collect()
}

#[test]
fn an_interval_stands_with_its_level() {
    let text = text(fixed::series());
    assert!(row(&text, "rung", "2m").join(" ").contains("98.0 %"), "{text}");
}

#[test]
fn a_ladder_that_was_climbed_rung_by_rung_says_over_what() {
    let mut outcome = fixed::series();
    let plain = text(outcome.clone());
    assert!(!row(&plain, "trial", "rung").contains(&"against"), "{plain}");
    assert!(row(&plain, "rung", "2m").join(" ").contains(" 1.0 % "), "what it needs: {plain}");
    outcome.mode = LadderMode::Step;
    outcome.rungs[1].against = vec!["thp".to_owned(), "pinned".to_owned()];
    let step = text(outcome);
    assert!(row(&step, "rung", "2m").join(" ").starts_with("2m thp + pinned keep"), "{step}");
    assert!(row(&step, "trial", "mode").join(" ").starts_with("mode step: each rung over"), "{step}");
}

#[test]
fn the_advice_of_a_refused_ladder_stands_on_its_page_once() {
    let mut outcome = fixed::series();
    let check = outcome.selfcheck.as_mut().expect("it was made");
    check.advice = "wait for a quieter hour".to_owned();
    let refusal = |cure: &str| Refusal {
        what: "the ladder".to_owned(),
        why: "noise".to_owned(),
        cure: cure.to_owned(),
    };
    outcome.refused = vec![refusal("wait for a quieter hour"), refusal("another one")];
    let text = text(outcome);
    assert_eq!(text.matches("wait for a quieter hour").count(), 1, "{text}");
    assert!(text.contains("another one"), "{text}");
}

#[test]
fn arms_stand_beside_each_other_with_throughput_and_page_tables() {
    let outcome = fixed::series();
    let tables = |outcome: &TrialOutcome| {
        let row = &outcome.rungs[1].collectors["vmpte_kb"];
        (row.baseline.expect("told"), row.value.expect("told"))
    };
    let (before, after) = tables(&outcome);
    let text = text(outcome);
    let (baseline, two) = (row(&text, "arm", "4k"), row(&text, "arm", "2m"));
    assert_eq!((baseline[1], two[1]), ("base", "hugetlb-2m"), "{text}");
    let size = |words: &[&str]| words[words.len() - 2..].join(" ");
    assert_eq!(
        (size(&baseline), size(&two)),
        (units::quantity(before, "kB"), units::quantity(after, "kB")),
        "{text}"
    );
    // The interval of the throughput is its own, beside the decisive metric's.
    let ends = fixed::series().rungs[1].metrics["ops_per_s"].gain.expect("a ratio");
    assert!(
        two.join(" ").contains(&format!("{:+.1} % .. {:+.1} %", 100.0 * ends.low, 100.0 * ends.high)),
        "{text}"
    );
    assert!(!baseline.join(" ").contains('%'), "the baseline gains nothing over itself");
}

#[test]
fn a_trial_without_a_pair_has_no_table_of_arms() {
    assert!(!text(fixed::stopped()).lines().any(|line| line.starts_with("arm ")));
}

#[test]
fn what_was_set_in_part_or_not_read_back_is_never_called_as_asked() {
    let mut outcome = fixed::series();
    let got = |rung: &mut planish_trial::Rung, verified, in_part| {
        rung.achieved = Some(Achieved { verified, in_part, ..Achieved::default() });
    };
    got(&mut outcome.rungs[0], Some(false), Some(InPart { set: 6, of: 11 }));
    got(&mut outcome.rungs[1], None, None);
    got(&mut outcome.rungs[3], Some(true), None);
    let told = text(outcome.clone());
    let row = |name: &str| row(&told, "arm", name).join(" ");
    assert!(row("thp").contains(" in part: 6 of 11 (!)"), "{told}");
    assert!(row("2m").contains(" not read back"), "{told}");
    assert!(row("pinned").contains(" as asked"), "{told}");
    let page = planish_report::trial_html(&outcome);
    crate::page::check(&page).expect("page and outcome agree");
    let shown: String = page.split('<').filter_map(|tag| Some(tag.split_once('>')?.1)).collect();
    assert!(shown.contains("in part: 6 of 11") && shown.contains("not read back"));
}

#[test]
fn a_trial_of_means_shows_their_deviation_and_where_memory_lies() {
    let mut outcome = fixed::series();
    outcome.primary.name = "mean_ns".to_owned();
    let template = outcome.rungs[0].metrics["ops_per_s"].clone();
    let values = [("mean_ns", 382.7, 352.6), ("sd_ns", 68.6, 7.3), ("parallel_mean_ns", 1679.2, 1597.2)];
    for (name, baseline, value) in values.into_iter().chain([("parallel_sd_ns", 9.0, 8.0)]) {
        let row = MetricRow {
            unit: "ns".to_owned(),
            baseline: Some(1e6 * baseline),
            value: Some(1e6 * value),
            ..template.clone()
        };
        outcome.rungs[0].metrics.insert(name.to_owned(), row);
    }
    let facts = serde_json::json!({
        "table_bytes": {"0": 6, "1": 6}, "heap_bytes": {"0": 3, "1": 1}, "heap_local_share": 1.0
    });
    let facts = facts.as_object().expect("an object").clone().into_iter().collect();
    outcome.rungs[0].achieved = Some(Achieved { facts, ..Achieved::default() });
    let name = outcome.rungs[0].name.clone();
    let told = text(outcome);
    let lines: Vec<&str> = told.lines().filter(|line| line.starts_with(&name)).collect();
    let holds = |words: &[&str]| lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(
        holds(&["independent", &units::quantity(352.6e6, "ns"), &units::quantity(7.3e6, "ns")]),
        "{told}"
    );
    assert!(holds(&["parallel", &units::quantity(1597.2e6, "ns"), &units::quantity(8e6, "ns")]), "{told}");
    assert!(holds(&["0: 50.0 %, 1: 50.0 %", "0: 75.0 %, 1: 25.0 %", "100.0 %"]), "{told}");
    let baseline: Vec<&str> = told.lines().filter(|line| line.starts_with("4k ")).collect();
    let deviation = units::quantity(68.6e6, "ns");
    assert!(baseline.iter().any(|line| line.contains("independent") && line.contains(&deviation)), "{told}");
}
