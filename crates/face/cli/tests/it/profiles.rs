//! Which profiles there are, by what name each is found, and what a newcomer types in their place.

use serde_json::Value;

use crate::exits::{message, monitored, on, sandbox};
use crate::planish::command;

fn rows(run: &crate::planish::Run) -> Vec<Value> {
    assert_eq!(run.exit, 0, "{}", run.stdout);
    run.envelope()["result"]["profiles"].as_array().expect("rows").clone()
}

#[test]
fn profiles_lists_ours_and_yours_and_tells_what_one_wants_here() {
    let sandbox = sandbox();
    let child = "name = \"child\"\nsummary = \"s\"\ninherits = [\"two\"]\n[want]\n\"vm.swappiness\" = 7\n";
    std::fs::write(sandbox.path().join("child.toml"), child).expect("a profile");
    let all = on(sandbox.path(), &["profiles"]);
    assert!(message(&all, "next").ends_with(" profiles PROFILE"), "{}", all.stdout);
    let all = rows(&all);
    let found = |name: &str| all.iter().find(|row| row["name"] == name).expect("a row");
    assert!(found("series")["file"].is_null());
    assert!(found("two")["file"].as_str().is_some_and(|file| file.ends_with("/two.toml")));
    for (named, next) in [("./child.toml", "plan ./child.toml"), ("two", "plan two")] {
        let run = on(sandbox.path(), &["profiles", named]);
        assert!(message(&run, "next").ends_with(next), "{}", run.stdout);
        assert_eq!(rows(&run).len(), 1);
    }
    let one = &rows(&on(sandbox.path(), &["profiles", "./child.toml"]))[0];
    let want = |id: &str| {
        let rows = one["want"].as_array().expect("rows");
        rows.iter().find(|row| row["id"] == id).expect("a row").clone()
    };
    let (own, inherited) = (want("vm.swappiness"), want("vm.stat_interval"));
    assert_eq!((&own["wanted"], &own["from"]), (&7.into(), &"child".into()));
    assert_eq!((&inherited["wanted"], &inherited["from"]), (&10.into(), &"two".into()));
    assert_eq!(own["readings"][0]["value"], "60", "{own}");
    let globals = ["--root", "host", "--state", "state", "profiles", "./child.toml"];
    let page = command(sandbox.path(), globals).output().expect("it starts");
    let page = String::from_utf8(page.stdout).expect("text");
    assert!(page.contains("inherits") && page.contains("(two)"), "{page}");
    let none = on(sandbox.path(), &["profiles", "nothing"]);
    assert!(none.exit == 2 && message(&none, "error").contains("no profile `nothing`"), "{}", none.stdout);
}

#[test]
fn words_of_other_programs_are_taken_for_ours() {
    let sandbox = sandbox();
    for (word, schema) in [("history", "planish.log/1"), ("explain", "planish.knobs/1")] {
        let run = on(sandbox.path(), &[word]);
        assert_eq!((run.exit, run.envelope()["schema"].as_str()), (0, Some(schema)), "{}", run.stdout);
    }
}

#[test]
fn an_imported_profile_is_called_as_its_file() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("99-db.conf"), "\u{feff}vm.swappiness = 1\n").expect("a file");
    let own = sandbox.path().join("state/etc/profiles/db.toml").display().to_string();
    let run = on(sandbox.path(), &["import", "99-db.conf", "-o", &own]);
    assert_eq!(run.exit, 0, "{}", run.stdout);
    assert_eq!(on(sandbox.path(), &["plan", "db"]).exit, 0);
    let named = on(sandbox.path(), &["import", "99-db.conf", "--name", "other"]);
    assert_eq!(named.envelope()["result"]["profile"], "other");
}

#[test]
fn a_folder_is_refused_with_the_file_that_is_meant() {
    let sandbox = sandbox();
    std::fs::create_dir(sandbox.path().join("mine")).expect("a folder");
    let hint = |sandbox: &std::path::Path| {
        let run = on(sandbox, &["import", "mine"]);
        assert_eq!(run.exit, 2, "{}", run.stdout);
        run.envelope()["messages"].to_string()
    };
    assert!(hint(sandbox.path()).contains("name a file of it"));
    std::fs::write(sandbox.path().join("mine/tuned.conf"), "[sysctl]\nvm.swappiness=1\n").expect("a file");
    assert!(hint(sandbox.path()).contains("name the file in it: mine/tuned.conf"));
}

#[test]
fn a_folder_that_an_export_wrote_is_one_profile() {
    let sandbox = sandbox();
    let want = [
        "\"vm.swappiness\" = 7",
        "\"cpu.governor\" = \"performance\"",
        "\"unit.nofile\" = { value = \"65536\", only = \"redis-server\" }",
        "\"block.read_ahead_kb\" = [{ value = 64, only = \"nvme0n1\" }, { value = 512, only = \"nvme*\" }]",
        "\"mount.atime\" = { value = \"noatime\", only = \"/\" }",
    ];
    let want = want.join("\n");
    std::fs::write(
        sandbox.path().join("set.toml"),
        format!("name = \"set\"\nsummary = \"x\"\n[want]\n{want}\n"),
    )
    .expect("room");
    let run = |words: &[&str], exit: i32| {
        let run = on(sandbox.path(), words);
        assert_eq!(run.exit, exit, "{words:?}: {}", run.stdout);
        run.envelope()
    };
    run(&["export", "sysctl", "./set.toml", "-o", "out"], 0);
    let imported = run(&["import", "out", "-o", "back.toml"], 0);
    let rows = imported["result"]["lines"].as_array().expect("lines").clone();
    let refused: Vec<_> =
        rows.iter().filter(|row| row["knob"].is_null() && row["overridden_by"].is_null()).collect();
    assert!(refused.is_empty() && imported["result"]["format"] == "files", "{refused:?}");
    assert!(
        rows.iter().any(|row| row["text"] == "etc/sysctl.d/90-set.conf: /proc/sys/vm/swappiness = 7"),
        "{rows:?}"
    );
    let steps = |file: &str| run(&["plan", file], 0)["result"]["steps"].clone();
    let places = |steps: Value| -> Vec<(String, String)> {
        let text = |step: &Value, key: &str| step[key].as_str().unwrap_or_default().to_owned();
        let steps = steps.as_array().expect("steps").clone();
        steps.iter().map(|step| (text(step, "place"), text(step, "wanted"))).collect()
    };
    let planned = places(steps("./set.toml"));
    assert!(planned.len() > 4, "{planned:?}");
    assert_eq!(places(steps("./back.toml")), planned);
    // Of two of a kind the names decide, and what else the host has.
    std::fs::write(sandbox.path().join("out/etc/sysctl.d/95-x.conf"), "vm.swappiness = 8\n").expect("room");
    let two = run(&["import", "out"], 3)["messages"].to_string();
    assert!(two.contains("etc/sysctl.d/95-x.conf is a file of sysctl"), "{two}");
    std::fs::remove_file(sandbox.path().join("out/etc/sysctl.d/95-x.conf")).expect("it is there");
    std::fs::write(sandbox.path().join("out/passwd"), "root:x:0:0:root:/root:/bin/sh\n").expect("room");
    let other = run(&["import", "out"], 3)["messages"].to_string();
    assert!(other.contains("out/passwd is not imported"), "{other}");
}

#[test]
fn a_monitor_names_the_host_in_what_is_to_be_typed() {
    let sandbox = sandbox();
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    let journal = sandbox.path().join("state/var/journal.jsonl");
    let text = std::fs::read_to_string(&journal).expect("a journal");
    let intent: Vec<&str> = text.lines().take(1).collect();
    std::fs::write(&journal, intent.join("\n") + "\n").expect("a journal");
    let (code, line) = monitored(sandbox.path(), &[]);
    assert!(code == 1 && line.contains("planish --root host --state state undo 1"), "{line}");
}
