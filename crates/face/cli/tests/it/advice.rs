//! What planish tells people to type next can be typed, and does what was told.

use std::path::Path;

use crate::exits::{message, on, sandbox};
use crate::planish::{Run, command};

const HERE: &str = "planish --root host --state state";

/// A profile of one knob in a file beside the host.
fn own_profile(sandbox: &Path) {
    let own = "name = \"own\"\nsummary = \"s\"\n[want]\n\"vm.swappiness\" = 5\n";
    std::fs::write(sandbox.join("own.toml"), own).expect("a profile");
}

/// Types a line that planish proposed.
fn typed(sandbox: &Path, line: &str) -> Run {
    let words = line.strip_prefix(HERE).unwrap_or_else(|| panic!("of another host: {line}"));
    on(sandbox, &words.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn what_import_proposes_to_type_is_taken() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("mine.conf"), "vm.swappiness = 5\n").expect("settings");
    let shown = on(sandbox.path(), &["import", "mine.conf", "--from", "sysctl"]);
    let save = message(&shown, "next").replace(" --json", "");
    assert_eq!(save, format!("{HERE} import mine.conf --from sysctl --output ./mine.toml"));
    for output in ["mine.toml", "./mine.toml"] {
        let saved = on(sandbox.path(), &["import", "mine.conf", "-o", output]);
        let next = message(&saved, "next");
        assert_eq!(next, format!("{HERE} plan ./mine.toml"));
        assert_eq!(typed(sandbox.path(), &next).exit, 0);
    }
    let saved = on(sandbox.path(), &["import", "mine.conf", "-o", "mine"]);
    assert_eq!(message(&saved, "note"), "a file is taken for a profile where its name ends in .toml");
}

#[test]
fn the_name_of_a_file_in_the_place_of_a_profile_is_told_how_it_is_meant() {
    let sandbox = sandbox();
    own_profile(sandbox.path());
    for args in [
        &["plan", "own.toml"][..],
        &["apply", "own.toml", "--yes"],
        &["check", "own.toml"],
        &["doctor", "own.toml"],
        &["export", "script", "own.toml"],
        &["trial", "new", "--cmd", "true", "--profile", "own.toml"],
    ] {
        let run = on(sandbox.path(), args);
        let error = run.envelope()["messages"][0].clone();
        assert_eq!((run.exit, &error["text"]), (2, &"no profile `own.toml`, but a file of that name".into()));
        assert!(error.to_string().contains("with a slash it is that file: ./own.toml"), "{error}");
    }
}

#[test]
fn a_trial_takes_a_profile_in_a_file_as_plan_does() {
    let sandbox = sandbox();
    own_profile(sandbox.path());
    let new = |profile: &str| {
        let words = ["trial", "new", "--cmd", "true", "--profile", profile, "-o", "t.toml"];
        command(sandbox.path(), words).output().map(Run::from).expect("the binary starts")
    };
    let made = new("./own.toml");
    assert_eq!(made.exit, 0, "{}", made.stderr);
    assert!(made.stderr.ends_with("planish trial selfcheck t.toml\n"), "{}", made.stderr);
    let text = std::fs::read_to_string(sandbox.path().join("t.toml")).expect("a trial");
    assert!(text.ends_with("name = \"own\"\n\n[rung.want]\n\"vm.swappiness\" = 5\n"), "{text}");
    std::fs::write(sandbox.path().join("plan.json"), "{}").expect("a file");
    let refused = new("./plan.json");
    assert_eq!(refused.exit, 2);
    assert!(
        refused.stderr.contains("./plan.json is no profile: a file of one ends in .toml"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_doctor_takes_a_profile_in_a_file_as_plan_does() {
    let sandbox = sandbox();
    own_profile(sandbox.path());
    let found = on(sandbox.path(), &["doctor", "./own.toml"]);
    assert_eq!(message(&found, "next"), format!("{HERE} plan ./own.toml"));
    let planned = on(sandbox.path(), &["plan", "./own.toml", "-o", "plan.json"]);
    assert_eq!(planned.exit, 0, "{}", planned.stdout);
    let refused = on(sandbox.path(), &["doctor", "./plan.json"]);
    assert_eq!(message(&refused, "error"), "./plan.json is no profile: a file of one ends in .toml");
}

#[test]
fn a_plan_beside_other_programs_is_made_again_on_the_same_host() {
    let sandbox = sandbox();
    own_profile(sandbox.path());
    let lines = sandbox.path().join("host/etc/sysctl.d");
    std::fs::create_dir_all(&lines).expect("a folder");
    std::fs::write(lines.join("99-others.conf"), "vm.swappiness = 42\n").expect("a file");
    let left = |args: &[&str]| {
        let globals = ["--root", "host", "--state", "state"];
        let run: Run =
            command(sandbox.path(), [&globals, args].concat()).output().expect("the binary starts").into();
        let line = run.stdout.lines().find_map(|line| line.strip_prefix("leave it")).map(str::trim);
        line.unwrap_or_else(|| panic!("nobody to leave it to: {}", run.stdout)).to_owned()
    };
    let leave = format!("{HERE} plan ./own.toml --allow availability --exclude sysctl.d");
    assert_eq!(left(&["plan", "./own.toml", "--allow", "availability"]), leave);
    assert_eq!(left(&["apply", "./own.toml", "--allow", "availability"]), leave);
    assert_eq!(typed(sandbox.path(), &leave).exit, 0);
}
