//! `--persist`: what is shown before the question is what is written, to the line.

use std::collections::BTreeMap;
use std::path::Path;

use planish_model::PersistFile;

use crate::exits::{message, on, sandbox};
use crate::planish::{Run, command};
use crate::recorded::{copy_tree, hosts, repository, texts};

const OWN: &str = "/etc/sysctl.d/90-planish.conf";

/// The same without `--json`.
fn told(sandbox: &Path, args: &[&str]) -> Run {
    let globals = ["--root", "host", "--state", "state"];
    command(sandbox, [&globals, args].concat()).output().expect("the binary starts").into()
}

/// The files that a command tells of.
fn persist_files(files: &serde_json::Value) -> Vec<PersistFile> {
    serde_json::from_value(files.clone()).unwrap_or_else(|error| panic!("{error}: {files}"))
}

/// A file of the host that is read later takes vm.swappiness back, and whoever persists was told to leave it to that.
#[test]
fn what_is_left_to_a_file_is_no_finding_though_an_older_entry_holds_it() {
    let sandbox = sandbox();
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    let left = on(sandbox.path(), &["apply", "two", "--exclude", "sysctl.d", "--persist", "--yes"]);
    assert_eq!(left.exit, 0, "{}", left.stdout);
}

#[test]
fn files_alone_are_shown_and_asked_for_too() {
    let sandbox = sandbox();
    let path = sandbox.path().join("host").join(OWN.trim_start_matches('/'));
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    let refused = on(sandbox.path(), &["apply", "two", "--persist"]);
    assert_eq!(
        (refused.exit, message(&refused, "error").as_str()),
        (3, "1 file to write, and nobody to ask")
    );
    let shown = told(sandbox.path(), &["apply", "two", "--persist"]);
    assert_eq!(shown.exit, 3);
    for line in [
        &format!("{OWN}: new\n"),
        "  + vm.stat_interval = 10\n",
        "  + vm.swappiness = 5\n",
        "1 to write, 2 held beside another entry, 1 of them files that the next boot reads\n",
    ] {
        assert!(shown.stdout.contains(line), "{line}: {}", shown.stdout);
    }
    assert!(!path.exists(), "nobody said yes");

    let planned = on(sandbox.path(), &["plan", "two", "--persist"]);
    assert_eq!(message(&planned, "next"), "planish --root host --state state apply two --persist");
    let previewed = persist_files(&planned.envelope()["result"]["persist"]["files"]);
    let applied = on(sandbox.path(), &["apply", "two", "--persist", "--yes"]);
    // A file of this host that is read later takes vm.swappiness back, each time that it is asked.
    assert_eq!(applied.exit, 1, "{}", applied.stdout);
    assert_eq!(persist_files(&applied.envelope()["result"]["files"]), previewed);
    let text = std::fs::read_to_string(&path).expect("it was written");
    assert_eq!(previewed, [PersistFile::between(OWN, None, &text)]);
    // Nothing is due any more, so that nobody is asked.
    let again = on(sandbox.path(), &["apply", "two", "--persist"]);
    assert_eq!((again.exit, &again.envelope()["result"]["entry"]), (1, &serde_json::Value::Null));
}

#[test]
fn what_the_next_boot_gets_is_shown_as_it_is_written_under_every_loader() {
    // A core of one of them refuses its hint.
    let words = ["realtime", "--allow", "availability", "--persist", "--exclude", "cpu.epp"];
    for host in ["metal-2s", "metal-1s-amd"] {
        let sandbox = tempfile::tempdir().expect("a temporary folder");
        copy_tree(&repository().join("hosts").join(host), &sandbox.path().join("host"));
        let look = || {
            let folders = ["etc", "boot"].map(|folder| texts(&sandbox.path().join("host"), folder));
            folders.into_iter().flatten().collect::<BTreeMap<_, _>>()
        };
        let page = told(sandbox.path(), &[&["plan"][..], &words].concat()).stdout;
        let (written, left) = page.split_once("\nnot written").unwrap_or((&page, ""));
        let boot = written.split_once("\nat the next reboot\n").expect("a heading").1;
        assert!(boot.contains("boot.skew_tick") && boot.contains("skew_tick=1"), "{host}: {page}");
        assert!(!left.contains("boot.skew_tick"), "{host}: {page}");
        let planned = on(sandbox.path(), &[&["plan"][..], &words].concat());
        let result = planned.envelope()["result"].clone();
        let mut previewed = persist_files(&result["persist"]["files"]);
        let refused = on(sandbox.path(), &[&["apply"][..], &words].concat());
        let steps = result["steps"].as_array().expect("steps").len();
        let asked = format!("{steps} steps and {} files to write, and nobody to ask", previewed.len());
        assert_eq!((refused.exit, message(&refused, "error")), (3, asked), "{host}");

        let before = look();
        let applied = on(sandbox.path(), &[&["apply"][..], &words, &["--yes"]].concat());
        assert!(applied.exit <= 1, "{host}: {}", applied.stdout);
        let after = look();
        let changed = after.iter().filter(|(place, text)| before.get(*place) != Some(*text));
        let mut changed: Vec<PersistFile> = changed
            .map(|(place, text)| PersistFile::between(place, before.get(place).map(String::as_str), text))
            .collect();
        assert!(before.keys().all(|place| after.contains_key(place)), "{host}: nothing was removed");
        for file in previewed.iter_mut().chain(&mut changed) {
            file.then = None;
            // Which number the entry gets is known when it is written.
            for line in &mut file.added {
                *line = line.replace("planish entry 1:", "planish entry N:").replace("entry=1", "entry=N");
            }
            file.removed.retain(|line| !line.starts_with("##"));
            file.added.retain(|line| !line.starts_with("##"));
        }
        previewed.sort_by(|a, b| a.path.cmp(&b.path));
        assert_eq!(previewed, changed, "{host}");
        assert!(changed.len() >= 3, "{host}: {changed:?}");
    }
}

#[test]
fn a_file_that_would_become_another_than_the_plan_showed_is_not_written() {
    let sandbox = sandbox();
    let other = "name = \"other\"\nsummary = \"s\"\n[want]\n\"kernel.numa_balancing\" = 0\n";
    std::fs::write(sandbox.path().join("state/etc/profiles/other.toml"), other).expect("a profile");
    let saved = on(sandbox.path(), &["plan", "two", "--persist", "-o", "two.json"]);
    assert_eq!(message(&saved, "next"), "planish --root host --state state apply two.json --persist");
    assert_eq!(on(sandbox.path(), &["apply", "other", "--persist", "--yes"]).exit, 0);
    let apply = ["apply", "two.json", "--persist", "--yes"];
    let refused = on(sandbox.path(), &apply);
    let why =
        format!("the host has moved since the plan was made: {OWN} would become another file than was shown");
    assert_eq!((refused.exit, message(&refused, "error")), (3, why));
    let hint = refused.envelope()["messages"][0]["hint"].clone();
    let again = "look at it, and write the plan with it: planish --root host --state state plan FILE --persist -o FILE";
    assert_eq!(hint, again);
    // A look tells what it would become now, and says that it is not what was shown.
    let looked = on(sandbox.path(), &["plan", "two.json", "--persist"]);
    assert_eq!(looked.exit, 3, "its apply is refused: {}", looked.stdout);
    let now = persist_files(&looked.envelope()["result"]["persist"]["files"]);
    assert_eq!((now.len(), now[0].new), (1, false), "{now:?}");
    assert!(message(&looked, "note").starts_with(&format!("{OWN} is told as it would become now")));
    let again = "planish --root host --state state plan two.json --persist -o two.json";
    assert_eq!(message(&looked, "next"), again);
    let swappiness = sandbox.path().join("host/proc/sys/vm/swappiness");
    assert_eq!(std::fs::read_to_string(&swappiness).expect("a file"), "60\n", "a plan is applied whole");
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
    // It is as it was shown again; without the option its files wait, and that is said.
    let steps = on(sandbox.path(), &["apply", "two.json", "--yes"]);
    assert_eq!(steps.exit, 0, "{}", steps.stdout);
    assert!(
        steps.stdout.contains("the plan has 1 file for the next boot: apply --persist"),
        "{}",
        steps.stdout
    );
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
    assert_eq!(on(sandbox.path(), &apply).exit, 1, "all of it: a later file takes vm.swappiness back");
}

#[test]
fn the_line_that_plans_the_files_again_keeps_the_steps() {
    let sandbox = sandbox();
    let other = "name = \"other\"\nsummary = \"s\"\n[want]\n\"kernel.numa_balancing\" = 0\n";
    std::fs::write(sandbox.path().join("state/etc/profiles/other.toml"), other).expect("a profile");
    let save = ["plan", "two", "--exclude", "vm.swappiness", "--persist", "-o", "some.json"];
    assert_eq!(on(sandbox.path(), &save).exit, 0);
    let steps = || {
        let text = std::fs::read_to_string(sandbox.path().join("some.json")).expect("it was saved");
        serde_json::from_str::<serde_json::Value>(&text).expect("a plan")["steps"].clone()
    };
    let shown = steps();
    assert_eq!(on(sandbox.path(), &["apply", "other", "--persist", "--yes"]).exit, 0);
    let looked = on(sandbox.path(), &["plan", "some.json", "--persist"]);
    let line = message(&looked, "next");
    let words = line.strip_prefix("planish --root host --state state ").expect("a line of this host");
    let again = on(sandbox.path(), &words.split(' ').collect::<Vec<_>>());
    assert_eq!((again.exit, steps()), (0, shown), "{}", again.stdout);
    let applied = on(sandbox.path(), &["apply", "some.json", "--persist", "--yes"]);
    assert_eq!(applied.exit, 0, "{}", applied.stdout);
    let swappiness = sandbox.path().join("host/proc/sys/vm/swappiness");
    assert_eq!(std::fs::read_to_string(swappiness).expect("a file"), "60\n", "it was excluded");
}

#[test]
fn a_plan_that_is_refused_with_files_or_without_is_not_proposed() {
    let sandbox = sandbox();
    let wait = ["apply", "two", "--confirm", "600", "--yes"];
    assert_eq!(on(sandbox.path(), &wait).exit, 0);
    let looked = on(sandbox.path(), &["plan", "two", "--persist"]);
    assert!(message(&looked, "error").contains("apply --persist refuses this plan"), "{}", looked.stdout);
    assert_eq!(looked.exit, 3, "{}", looked.stdout);
    let save = ["plan", "two", "--persist", "-o", "waits.json"];
    assert_eq!(on(sandbox.path(), &save).exit, 3);
    assert!(!sandbox.path().join("waits.json").exists(), "what is refused is saved nowhere");
    let messages = looked.envelope()["messages"].to_string();
    assert!(messages.contains("planish --root host --state state confirm"), "{messages}");
    assert!(!messages.contains("state apply two"), "{messages}");
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
}

#[test]
fn every_recorded_host_tells_what_persist_would_write_there() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let (mut told, mut refused) = (BTreeMap::new(), Vec::new());
    for (name, path) in hosts() {
        let root = path.to_str().expect("a path");
        let on = |args: &[&str]| -> Run {
            let globals = ["--json", "--root", root];
            command(home.path(), [&globals, args].concat()).output().expect("the binary starts").into()
        };
        for profile in ["series", "postgres", "low-latency", "realtime"] {
            let when = format!("{name}: {profile}");
            let plain = on(&["plan", profile, "--allow", "availability,durability"]);
            let run = on(&["plan", profile, "--allow", "availability,durability", "--persist"]);
            let is_refused = run.stdout.contains("apply --persist refuses this plan: ");
            assert_eq!((run.exit, plain.exit), (if is_refused { 3 } else { 0 }, 0), "{when}: {}", run.stdout);
            let (plan, plain) = (run.envelope()["result"].clone(), plain.envelope()["result"].clone());
            assert_eq!(plan["steps"], plain["steps"], "{when}");
            let files = persist_files(&plan["persist"]["files"]);
            *told.entry(name.clone()).or_insert(0) += files.len();
            // A file has lines that come; what no file gives is left out with a reason and a cure.
            assert!(files.iter().all(|file| !file.added.is_empty()), "{when}: {files:?}");
            let left = plan["persist"]["left_out"].as_array().expect("rows").clone();
            let is_told = |row: &serde_json::Value| row["reason"] != "" && row["cure"] != "";
            assert!(left.iter().all(is_told), "{when}: {left:?}");
            let messages = run.envelope()["messages"].clone();
            for message in messages.as_array().expect("messages") {
                let text = message["text"].as_str().expect("a text");
                if text.starts_with("apply --persist refuses this plan: ") {
                    assert!(
                        message["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
                        "{when}: {message}"
                    );
                    assert!(!left.is_empty() || text.contains("mounted read-only"), "{when}: {text}");
                    refused.push(name.clone());
                }
            }
        }
    }
    assert!(told.len() >= 14 && told.values().filter(|files| **files > 0).count() >= 10, "{told:?}");
    refused.dedup();
    // Nothing can be written in the container, with files or without. Of the next two GRUB left its sign on the command
    // line, and no menu that was recorded; that of the last is one that planish does not change.
    assert_eq!(refused, ["al2023-lockdown", "container-ro", "metal-2s-cxl", "tiny-2c"]);
}

#[test]
fn a_confirm_ends_in_findings_where_the_next_boot_brings_something_else() {
    let sandbox = sandbox();
    let applied = on(sandbox.path(), &["apply", "two", "--persist", "--yes", "--confirm", "600"]);
    assert_eq!(applied.exit, 0, "its files wait: {}", applied.stdout);
    let confirmed = on(sandbox.path(), &["confirm"]);
    assert_eq!(confirmed.envelope()["result"]["entries"][0], 1);
    assert_eq!(confirmed.exit, 1, "a later file takes vm.swappiness back: {}", confirmed.stdout);
    let note = message(&confirmed, "note");
    assert!(note.starts_with("vm.swappiness: /etc/sysctl.d/") && note.contains(" will set "), "{note}");
    let why = "exit code 1: 1 place that the next boot brings otherwise than asked for: vm.swappiness";
    assert!(confirmed.stdout.contains(why), "{}", confirmed.stdout);
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
}

#[test]
fn a_plan_of_another_boot_is_shown_as_one_and_asked_about_by_nobody() {
    let sandbox = sandbox();
    assert_eq!(on(sandbox.path(), &["plan", "two", "-o", "two.json"]).exit, 0);
    let boot_id = sandbox.path().join("host/proc/sys/kernel/random/boot_id");
    std::fs::write(boot_id, "00000000-1111-2222-3333-444444444444\n").expect("ours");
    let looked = on(sandbox.path(), &["plan", "two.json"]);
    let why = "the plan is for another boot of this host";
    assert_eq!(message(&looked, "warning"), format!("apply refuses this plan: {why}"));
    let messages = looked.envelope()["messages"].to_string();
    assert!(messages.contains("make the plan again") && !messages.contains("apply two.json"), "{messages}");
    for words in [&["apply", "two.json"][..], &["plan", "two.json", "-o", "new.json"]] {
        let run = on(sandbox.path(), words);
        assert_eq!((run.exit, message(&run, "error")), (3, why.to_owned()), "{words:?}");
    }
    assert!(!sandbox.path().join("new.json").exists());
}
