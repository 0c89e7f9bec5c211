//! The proofs in `docs/proofs`: files as they were stored, of today's shape, whose every gain can be computed again,
//! and from which the README's tables and the costs of findings are copied.
//!
//! To publish one: `planish prove NAME --seed N --html docs/proofs/NAME.html`, copy the proof that it names from the
//! folder `proofs` of the state to `docs/proofs/NAME.json`, and put the lines that this test asks for into the README.

use std::path::{Path, PathBuf};

use planish_model::{Catalogue, FactValue, FindingRule, RuleCost, RuleCosts, units};
use planish_trial::{Gain, Rung, Setup, TrialFile, TrialOutcome};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::page;
use crate::recompute::recompute;

const NAMES: [&str; 2] = ["series", "postgres"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn json_of(path: &str) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn proof(name: &str) -> TrialOutcome {
    let path = format!("docs/proofs/{name}.json");
    let stored = json_of(&path);
    assert!(
        stored.get("schema").is_none(),
        "{path}: what `--json` printed, and not the file that was stored"
    );
    serde_json::from_value(stored).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The README as one line, whatever its line breaks.
fn readme() -> String {
    read("README.md").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Panics with everything that the README does not say.
fn readme_says(lines: &[String]) {
    let readme = readme();
    let missing: Vec<&String> = lines.iter().filter(|line| !readme.contains(line.as_str())).collect();
    assert!(missing.is_empty(), "README.md does not say:\n{missing:#?}");
}

fn percent(fraction: f64) -> String {
    format!("{:+.1} %", 100.0 * fraction)
}

fn verdict(rung: &Rung) -> String {
    let word = serde_json::to_value(rung.verdict).expect("plain data");
    word.as_str().expect("a word").to_owned()
}

/// Gain, interval, pairs and the fresh run of a rung, as the README's tables have them.
fn cells(rung: &Rung) -> String {
    let interval = |Gain { low, high, .. }: Gain| format!("{} to {}", percent(low), percent(high));
    let own = rung.effect.zip(rung.low.zip(rung.high));
    let own = own.map(|(effect, (low, high))| Gain { effect, low, high });
    let own =
        own.map_or("| |".to_owned(), |gain| format!("| {} | {} |", percent(gain.effect), interval(gain)));
    let fresh = rung.confirmed.as_ref().map(|fresh| fresh.gain);
    let fresh = fresh.map(|gain| format!(" {} [{}]", percent(gain.effect), interval(gain)));
    format!("{own} {} |{} |", rung.pairs, fresh.unwrap_or_default())
}

fn titled(rung: &Rung) -> &str {
    match rung.name.as_str() {
        "thp" => "transparent huge pages",
        "2m" => "2 MB pages",
        "1g" => "1 GB pages",
        "pinned" => "pinned to one CPU",
        TrialOutcome::PLACEBO => "*placebo, hidden until the end*",
        other => other,
    }
}

/// `98.5 %`, and `98 %` where nothing stands behind the point.
fn level(level: f64) -> String {
    format!("{} %", format!("{:.1}", 100.0 * level).trim_end_matches(".0"))
}

/// The levels of all intervals of the ladder: `99.5 %`, `99.3 % to 99.5 %`.
fn levels(outcome: &TrialOutcome) -> String {
    let mut levels: Vec<f64> = outcome.rungs.iter().filter_map(|rung| rung.level).collect();
    levels.sort_by(f64::total_cmp);
    let (low, high) = (level(levels[0]), level(levels[levels.len() - 1]));
    if low == high { low } else { format!("{low} to {high}") }
}

/// What the text around a table tells of the run: its line, how long it took, the level of its fresh runs, its hash.
fn told(name: &str, outcome: &TrialOutcome) -> Vec<String> {
    let fresh = outcome.rungs.iter().filter_map(|rung| rung.confirmed.as_ref()?.level);
    let least = fresh.reduce(f64::min).expect("something was confirmed");
    vec![
        format!("confirmed intervals at {} % or more", (1000.0 * least).floor() / 10.0),
        // Where the page went is nobody's business.
        format!("`{}`", outcome.command.split(" --html").next().expect("the first part")),
        format!("{:.1} minutes", outcome.seconds / 60.0),
        sha256(&read(&format!("docs/proofs/{name}.json"))),
    ]
}

#[test]
fn published_proofs_are_what_was_stored_and_their_pages_show_them() {
    for name in NAMES {
        let text = read(&format!("docs/proofs/{name}.json"));
        let page = read(&format!("docs/proofs/{name}.html"));
        page::check(&page).expect("page and outcome agree");
        let mut shown = page::embedded(&page);
        assert_eq!(shown["proof_id"], sha256(&text), "{name}: the page is of another proof");
        shown["proof_id"] = Value::Null;
        assert_eq!(shown, json_of(&format!("docs/proofs/{name}.json")), "{name}");
    }
}

#[test]
fn published_proofs_have_the_shape_of_today() {
    let schema = json_of("docs/schema/prove.json");
    let validator = jsonschema::validator_for(&schema).expect("a sound schema");
    for name in NAMES {
        let outcome = json_of(&format!("docs/proofs/{name}.json"));
        let envelope = json!({
            "schema": "planish.prove/2",
            "version": outcome["version"],
            "command": "prove",
            "exit": outcome["exit"],
            "result": outcome,
            "messages": [],
        });
        let errors: Vec<String> = validator
            .iter_errors(&envelope)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

#[test]
fn published_proofs_say_what_was_run_and_can_be_computed_again() {
    for name in NAMES {
        let outcome = proof(name);
        recompute(&outcome);
        assert!(!outcome.quick && outcome.trial == name, "{name}");
        let line = format!("planish prove {name}");
        assert!(outcome.command.starts_with(&line), "{name}: {}", outcome.command);
        assert!(outcome.command.contains(&format!("--seed {}", outcome.seed)), "{name}: {}", outcome.command);
        match (name, &outcome.setup) {
            ("series", Some(Setup::File(text))) => {
                TrialFile::parse("stored", text).expect("what was run can be run");
            }
            ("postgres", Some(Setup::Postgres(setup))) => assert!(setup.scale > 0),
            (_, setup) => panic!("{name}: {setup:?}"),
        }
        // What excuses a block today.
        let check = outcome.selfcheck.as_ref().expect("it was made");
        let excuses = check.limits.keys().chain(outcome.discarded.iter().map(|discard| &discard.covariate));
        for excuse in excuses {
            assert!(
                ["clock", "steal", "thermal"].contains(&excuse.as_str()),
                "{name}: {excuse} excuses nothing"
            );
        }
        let placebo = outcome.rungs.last().expect("the placebo");
        assert_eq!((placebo.name.as_str(), placebo.tested), (TrialOutcome::PLACEBO, Some(true)), "{name}");
    }
}

#[test]
fn the_readme_tells_of_series_what_its_proof_says() {
    let outcome = proof("series");
    let mut lines: Vec<String> = outcome
        .rungs
        .iter()
        .map(|rung| format!("| {} {} {} |", titled(rung), cells(rung), verdict(rung)))
        .collect();
    lines.extend(told("series", &outcome));
    lines.push(levels(&outcome));
    // As `doctor` says it on the same host.
    lines.push(format!(", {}, a guest of", units::bytes(outcome.host.memory_bytes)));
    readme_says(&lines);
}

#[test]
fn the_readme_tells_of_postgres_what_its_proof_says() {
    let outcome = proof("postgres");
    let row = |rung: &Rung| {
        let tables = rung.collectors.get("vmpte_kb").and_then(|row| row.baseline.zip(row.value));
        let tables = tables.map(|(baseline, value)| format!(" {baseline:.0} -> {value:.0} KiB"));
        format!("| {} {}{} | {} |", titled(rung), cells(rung), tables.unwrap_or_default(), verdict(rung))
    };
    let mut lines: Vec<String> = outcome.rungs.iter().map(row).collect();
    lines.extend(told("postgres", &outcome));
    lines.push(levels(&outcome));
    let Some(Setup::Postgres(setup)) = &outcome.setup else { panic!("{:?}", outcome.setup) };
    lines.push(format!("PostgreSQL {}", setup.version));
    lines.push(format!("{} MiB of `shared_buffers`", setup.shared_buffers_bytes >> 20));
    let rate = |rung: &Rung| {
        let gain = rung.metrics.get("select_ops_per_s")?.gain?;
        let (effect, low, high) = (percent(gain.effect), percent(gain.low), percent(gain.high));
        Some(format!("{effect} [{low}, {high}] on {}", titled(rung)))
    };
    // All of them: the best of three is no figure of any.
    lines.extend(outcome.real_rungs().filter_map(rate));
    readme_says(&lines);
}

/// `docs/proofs/series.json: 4 KiB pages against transparent huge pages, confirmed`: at most the upper end of that.
#[test]
fn findings_cost_at_most_what_the_proof_that_they_name_allows() {
    let catalogue = Catalogue::embedded().expect("the embedded catalogue is tested");
    fn of_proof(rule: &FindingRule) -> Option<(&FindingRule, &RuleCost)> {
        match &rule.costs {
            Some(RuleCosts::Measured(costs)) if costs.by.starts_with("docs/proofs/") => Some((rule, costs)),
            _ => None,
        }
    }
    let mut seen = 0;
    for (rule, costs) in catalogue.findings().iter().filter_map(of_proof) {
        let (path, what) = costs.by.split_once(": ").expect("a file and what of it");
        let name = path.strip_prefix("docs/proofs/").and_then(|file| file.strip_suffix(".json"));
        let outcome = proof(name.expect("a proof"));
        let named = |rung: &&Rung| what.contains(&format!("against {}", titled(rung)));
        let rung = outcome.real_rungs().find(named).unwrap_or_else(|| panic!("{}: {what}", rule.id));
        let fresh = rung.confirmed.as_ref().unwrap_or_else(|| panic!("{}: not confirmed", rule.id));
        let most = format!("{:.1}", 100.0 * fresh.gain.high);
        let told = match &costs.share {
            FactValue::Number(share) => format!("{share:.1}"),
            FactValue::Text(fact) => panic!("{}: {fact} is no figure of a proof", rule.id),
        };
        assert_eq!(told, most, "{}: `costs` is the upper end of the confirmed gain", rule.id);
        seen += 1;
    }
    assert!(seen >= 2, "{seen} findings name a proof");
}
