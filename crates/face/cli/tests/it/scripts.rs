//! `tests/scripts/*.txt`: sessions on copies of recorded hosts; what each line printed is in `*.snap` beside it.
//!
//! ```text
//! # a remark
//! host metal-2s                    copies hosts/metal-2s to the folder `host`
//! $ planish apply series --yes     runs with --root host --state state and a clock that ticks a minute a line
//! write PATH TEXT                  what someone else does to a file
//! append PATH TEXT                 a line more at its end
//! remove PATH                      a file that goes away
//! show PATH                        prints a file
//! ```

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::planish::{self, Run};
use crate::recorded::{copy_tree, repository};

const CLOCK: u64 = 1_800_000_000;

/// Runs one script and tells what happened.
fn transcript(script: &str) -> String {
    let sandbox = planish::Sandbox::new();
    let mut told = String::new();
    for (number, line) in script.lines().enumerate() {
        let _ = writeln!(told, "{line}");
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "" | "#" => {}
            "host" => copy_tree(&repository().join("hosts").join(rest), &sandbox.path().join("host")),
            "write" => {
                let (path, text) = rest.split_once(' ').expect("write PATH TEXT");
                let path = sandbox.path().join(path);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(path, text.replace("\\n", "\n") + "\n").expect("the sandbox can be written");
            }
            "append" => {
                let (path, text) = rest.split_once(' ').expect("append PATH TEXT");
                let path = sandbox.path().join(path);
                let before = fs::read_to_string(&path).expect("there is such a file");
                fs::write(path, before + &text.replace("\\n", "\n") + "\n")
                    .expect("the sandbox can be written");
            }
            "remove" => fs::remove_file(sandbox.path().join(rest)).expect("there is such a file"),
            "show" => told += &fs::read_to_string(sandbox.path().join(rest)).expect("there is such a file"),
            "$" => tell(&mut told, &run(sandbox.path(), rest, CLOCK + 60 * number as u64)),
            _ => panic!("line {}: no such verb: {line}", number + 1),
        }
    }
    told.replace(&format!("  {}\n", user()), "  [USER]\n")
        .replace(sandbox.path().to_str().expect("a path"), "[TMP]")
        .replace(&format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION")), "\"version\": \"[VERSION]\"")
}

/// Who runs the tests: the journal notes it.
fn user() -> String {
    let output = std::process::Command::new("id").arg("-un").output().expect("id is everywhere");
    String::from_utf8(output.stdout).expect("a name").trim().to_owned()
}

fn run(sandbox: &Path, line: &str, clock: u64) -> Run {
    let words = line.strip_prefix("planish ").expect("scripts run planish only");
    let clock = clock.to_string();
    let mut args = vec!["--root", "host", "--state", "state", "--clock", &clock];
    args.extend(words.split(' '));
    planish::command(sandbox, args).output().expect("the binary starts").into()
}

/// Data, then talk marked with `|`, then the exit code unless it is 0.
fn tell(told: &mut String, run: &Run) {
    *told += &run.stdout;
    for line in run.stderr.lines() {
        let _ = writeln!(told, "| {line}");
    }
    if run.exit != 0 {
        let _ = writeln!(told, "exit {}", run.exit);
    }
}

#[test]
fn every_script_plays_as_recorded() {
    let folder = repository().join("tests/scripts");
    let mut scripts: Vec<_> = fs::read_dir(&folder)
        .expect("tests/scripts can be listed")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let _bound = settings.bind_to_scope();
    for script in scripts {
        let name = script.file_stem().expect("a name").to_string_lossy().into_owned();
        insta::assert_snapshot!(name, transcript(&fs::read_to_string(&script).expect("a script")));
    }
}
