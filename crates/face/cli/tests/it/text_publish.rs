//! `planish text publish` and `planish text fetch`: what is pinned is what a build gets, and no build breaks by it.

#![expect(clippy::disallowed_methods, reason = "files of these tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::planish::{Run, command, copy_program};

const HOT: &str = "main;parse;scan 9000\nmain;parse 900\nmain;print 200\n";
const WARM: &str = "main;parse;scan 8000\nmain;parse 900\nmain;print 700\nmain;log 500\n";
const OTHER: &str = "main;draw 9000\nmain;paint 3000\n";

pub fn on(home: &Path, line: &str) -> Run {
    command(home, line.split(' ')).output().expect("the binary starts").into()
}

/// A folder with a store, and profiles of three workloads.
pub fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(home.path().join("store")).expect("room for a folder");
    for (name, stacks) in [("hot", HOT), ("warm", WARM), ("other", OTHER)] {
        import(home.path(), name, stacks, SystemTime::now());
    }
    home
}

/// A call profile `NAME.planish` of stacks that ended at this moment.
pub fn import(home: &Path, name: &str, stacks: &str, end: SystemTime) {
    let file = home.join(name);
    fs::write(&file, stacks).expect("room for a file");
    fs::File::options()
        .write(true)
        .open(&file)
        .and_then(|file| file.set_modified(end))
        .expect("our own file");
    let run = on(home, &format!("text import {name} -o {name}.planish --host web-1"));
    assert_eq!(run.exit, 0, "{}", run.stderr);
}

fn read(home: &Path, name: &str) -> String {
    fs::read_to_string(home.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub fn published(home: &Path, line: &str) -> Value {
    let run = on(home, &format!("text publish {line} --json"));
    assert_eq!(run.exit, 0, "{line}: {}{}", run.stdout, run.stderr);
    run.envelope()["result"].clone()
}

/// Where each file that was fetched is from, and all that was warned of.
fn fetched(home: &Path, line: &str) -> (Vec<String>, String) {
    let run = on(home, &format!("text fetch {line} --json"));
    assert_eq!(run.exit, 0, "a build goes on: {line}: {}{}", run.stdout, run.stderr);
    let envelope = run.envelope();
    let files = envelope["result"]["files"].as_array().expect("files").iter();
    let from = files.map(|file| file["from"].as_str().expect("a word").to_owned()).collect();
    let warnings = envelope["messages"].as_array().expect("messages").iter();
    let warnings =
        warnings.filter(|message| message["level"] == "warning").map(|message| message["text"].to_string());
    (from, warnings.collect::<Vec<_>>().join("\n"))
}

#[test]
fn what_is_published_is_what_a_build_gets() {
    let home = home();
    let home = home.path();
    let result = published(home, "hot.planish --store store");
    assert_eq!((&result["changed"], &result["functions"]), (&true.into(), &4.into()));
    assert_eq!((&result["order_by"], &result["pin"]["overlap"]), (&"cdsort".into(), &Value::Null));
    assert_eq!(result["pin"]["hosts"][0], "web-1");
    let (from, warnings) = fetched(home, "--order o.txt --profile p.planish");
    assert_eq!((from, warnings.as_str()), (vec!["store".to_owned(), "store".to_owned()], ""));
    assert_eq!(read(home, "p.planish"), read(home, "hot.planish"));
    let order = read(home, "o.txt");
    assert_eq!(order.lines().count(), 4, "{order}");
    assert_eq!(fetched(home, "--order o.txt").0, ["there"]);
    // A store that cannot be reached: the same pin is in the cache of this user.
    fs::rename(home.join("store"), home.join("away")).expect("our own folder");
    fs::remove_file(home.join("o.txt")).expect("it is there");
    assert_eq!(fetched(home, "--order o.txt").0, ["cache"]);
    assert_eq!(read(home, "o.txt"), order);
    let twice = on(home, "text publish hot.planish --store store --json");
    assert_eq!(twice.exit, 3, "a folder that is not there is never made");
    assert!(twice.stdout.contains("mkdir -p"), "{}", twice.stdout);
    fs::rename(home.join("away"), home.join("store")).expect("our own folder");
    let pin = read(home, "planish.text.toml");
    assert_eq!(published(home, "hot.planish")["changed"], false, "the same again is nothing new");
    assert_eq!(read(home, "planish.text.toml"), pin);
}

#[test]
fn an_order_that_was_given_is_pinned_as_it_is() {
    let home = home();
    fs::write(home.path().join("given"), "# mine\nscan\nmain\n").expect("room for a file");
    published(home.path(), "hot.planish --store store --order given --copy");
    assert_eq!(read(home.path(), "planish.text.order"), "scan\nmain\n");
    fs::remove_dir_all(home.path().join("store")).expect("our own folder");
    assert_eq!(fetched(home.path(), "--order o.txt").0, ["beside"]);
    assert_eq!(read(home.path(), "o.txt"), "scan\nmain\n");
    fs::write(home.path().join("given"), "SECTIONS {\n").expect("room for a file");
    let run = on(home.path(), "text publish hot.planish --store store --order given");
    assert!(run.exit == 2 && run.stderr.contains("given: line 1"), "{}", run.stderr);
}

#[test]
fn a_build_with_a_store_out_of_reach_has_the_last_good_copy_or_none() {
    let home = home();
    let home = home.path();
    published(home, "hot.planish --store store");
    assert_eq!(fetched(home, "--order o.txt").0, ["store"]);
    let first = read(home, "o.txt");
    published(home, "warm.planish");
    fs::remove_dir_all(home.join("store")).expect("our own folder");
    // The file of the last build.
    let (from, warnings) = fetched(home, "--order o.txt");
    assert_eq!(from, ["earlier"]);
    assert!(warnings.contains("stays as it is, the last good copy: there is no folder"), "{warnings}");
    assert_eq!(read(home, "o.txt"), first);
    // A new folder of builds: the cache has the order that was pinned before.
    assert_eq!(fetched(home, "--order new.txt").0, ["earlier"]);
    assert_eq!(read(home, "new.txt"), first);
    // Another machine.
    fs::remove_dir_all(home.join(".cache")).expect("the cache is there");
    let (from, warnings) = fetched(home, "--order none.txt");
    assert_eq!((from.as_slice(), home.join("none.txt").exists()), (&["none".to_owned()][..], false));
    assert!(warnings.contains("the build goes on without"), "{warnings}");
    fs::write(home.join("torn"), "half a {").expect("room for a file");
    assert_eq!(fetched(home, "--order torn").0, ["none"]);
    let strict = on(home, "text fetch --order none.txt --strict --json");
    assert_eq!(strict.exit, 3);
    assert!(strict.envelope()["messages"][0]["text"].to_string().contains("no folder"), "{}", strict.stdout);
    for broken in ["", "format = 9\n", "\0"] {
        fs::write(home.join("planish.text.toml"), broken).expect("room for a file");
        assert_eq!(fetched(home, "--order o.txt").0, ["earlier"]);
        assert_eq!(on(home, "text fetch --order o.txt --strict").exit, 2);
    }
    assert_eq!(on(home, "text fetch").exit, 2, "the command line itself is wrong");
    links_without(home);
}

/// The two commands of a build, with no store and no order.
fn links_without(home: &Path) {
    fs::write(home.join("p.c"), "int main(void) { return 0; }\n").expect("room for a file");
    let planish = env!("CARGO_BIN_EXE_planish");
    let line =
        format!("{planish} text fetch --order no.txt && {planish} text cc --order no.txt -- cc -o p p.c");
    let mut build = Command::new("sh");
    build.args(["-c", &line]).current_dir(home).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home);
    let run: Run = build.output().expect("a shell").into();
    if run.exit == 127 {
        return planish_skip::skip("a_build_with_a_store_out_of_reach", "no compiler");
    }
    assert_eq!((run.exit, home.join("p").exists()), (0, true), "{}", run.stderr);
    assert!(run.stderr.contains("linked without the order"), "{}", run.stderr);
}

#[test]
fn what_was_changed_in_the_store_reaches_no_build() {
    let home = home();
    let home = home.path();
    let result = published(home, "hot.planish --store store");
    let blob = home.join("store").join(result["pin"]["order"]["handle"].as_str().expect("a handle"));
    fs::remove_file(&blob).expect("it is there");
    fs::write(&blob, "print\nmain\n").expect("room for a file");
    let (from, warnings) = fetched(home, "--order o.txt");
    assert_eq!(from, ["none"]);
    assert!(warnings.contains("is not what was stored: its sha256 is"), "{warnings}");
    assert!(!home.join("o.txt").exists());
    assert_eq!(published(home, "hot.planish")["changed"], false, "and a publish mends it");
    assert_eq!(fetched(home, "--order o.txt").0, ["store"]);
    // What cannot be written is nothing to build by.
    let run = on(home, "text fetch --order /proc/nothing-can-be-made-here");
    assert!(run.exit == 0 && !run.stderr.contains("text cc"), "{}", run.stderr);
    // The length is pinned as well as the checksum.
    let bytes = read(home, "o.txt").len();
    let pin = read(home, "planish.text.toml");
    let other = pin.replace(&format!("bytes = {bytes}\n"), &format!("bytes = {}\n", bytes + 1));
    assert_ne!(pin, other);
    fs::write(home.join("planish.text.toml"), other).expect("room for a file");
    let strict = on(home, "text fetch --order o.txt --strict");
    assert!(strict.exit == 3 && strict.stderr.contains("are pinned"), "{}", strict.stderr);
}

#[test]
fn gates_are_of_age_and_of_likeness() {
    let home = home();
    let home = home.path();
    published(home, "hot.planish --store store");
    let alike = published(home, "warm.planish")["pin"]["overlap"].as_f64().expect("a share");
    assert!(alike > 0.8 && alike < 1.0, "{alike}");
    let pin = read(home, "planish.text.toml");
    let refused = on(home, "text publish other.planish --json");
    assert_eq!(refused.exit, 3);
    assert!(
        refused.stdout.contains("another workload?") && refused.stdout.contains("--force"),
        "{}",
        refused.stdout
    );
    assert_eq!(read(home, "planish.text.toml"), pin, "and nothing was changed");
    assert_eq!(published(home, "other.planish --force")["doubts"].as_array().map(Vec::len), Some(1));
    let (from, warnings) = fetched(home, "--order o.txt");
    assert_eq!(from, ["store"], "what is pinned is followed, aloud");
    assert!(warnings.contains("another workload?"), "{warnings}");
    assert_eq!(on(home, "text fetch --order o.txt --strict").exit, 3);
    assert_eq!(on(home, "text fetch --order o.txt --strict --min-overlap 0").exit, 0);

    let month = Duration::from_secs(31 * 86_400);
    import(home, "old", HOT, SystemTime::now() - month);
    let refused = on(home, "text publish old.planish --pin old.toml --store store");
    assert!(
        refused.exit == 3 && refused.stderr.contains("31.0 days old, more than 28"),
        "{}",
        refused.stderr
    );
    published(home, "old.planish --pin old.toml --store store --max-age 40");
    let (from, warnings) = fetched(home, "--pin old.toml --order old.txt");
    assert!(from == ["store"] && warnings.contains("31.0 days old"), "{warnings}");
    assert_eq!(on(home, "text fetch --pin old.toml --order old.txt --strict").exit, 3);
    assert_eq!(on(home, "text fetch --pin old.toml --order old.txt --strict --max-age 40").exit, 0);
}

#[test]
fn a_store_is_named_and_not_guessed() {
    let home = home();
    let home = home.path();
    for (line, exit, told) in [
        ("text publish hot.planish", 2, "no store is named"),
        ("text publish hot.planish --store https://127.0.0.1:1/x", 3, "can be read, not written"),
        ("text publish hot.planish --store https://me:secret@host/x", 2, "belong into the environment"),
        ("text publish hot.planish --store nosuch://x", 3, "planish-store-nosuch"),
        ("text publish hot.planish --store store --proof x", 2, "hexadecimal"),
        ("text publish missing --store store", 2, "missing"),
        ("text publish hot --store store --push origin", 2, "--branch"),
    ] {
        let run = on(home, line);
        assert_eq!(run.exit, exit, "{line}: {}", run.stderr);
        assert!(run.stderr.contains(told) && !run.stderr.contains("secret"), "{line}: {}", run.stderr);
    }
    assert!(!home.join("planish.text.toml").exists());
}

/// A helper for a scheme of its own: the contract as a script.
const HELPER: &str = "#!/bin/sh
file=\"$HOME/beyond/${2#own://}\"
case $1 in
get) [ -e \"$file\" ] || exit 4; exec cat \"$file\" ;;
put) mkdir -p \"${file%/*}\" && cat >\"$file.part\" && mv \"$file.part\" \"$file\" ;;
*) exit 2 ;;
esac
";

#[test]
fn a_program_on_the_path_is_a_store_of_its_own_kind() {
    let home = home();
    let home = home.path();
    let helper = home.join("bin/planish-store-own");
    fs::create_dir(home.join("bin")).expect("room for a folder");
    let install = |text: &str| {
        fs::write(home.join("helper"), text).expect("room for a file");
        fs::set_permissions(home.join("helper"), fs::Permissions::from_mode(0o755)).expect("our own file");
        copy_program(&home.join("helper"), &helper);
    };
    install(HELPER);
    let path = format!("{}:/usr/bin:/bin", home.join("bin").display());
    let run = |line: &str| -> Run {
        command(home, line.split(' ')).env("PATH", &path).output().expect("the binary starts").into()
    };
    let publish = run("text publish hot.planish --store own://bucket/p --json");
    assert_eq!(publish.exit, 0, "{}", publish.stdout);
    assert!(home.join("beyond/bucket/p/sha256").is_dir());
    let get = "text fetch --order o.txt --json";
    assert_eq!(run(get).envelope()["result"]["files"][0]["from"], "store");
    fs::remove_dir_all(home.join(".cache")).expect("the cache is there");
    fs::remove_file(home.join("o.txt")).expect("it is there");
    for (script, told) in [
        ("#!/bin/sh\necho no route >&2\nexit 1\n", "planish-store-own: no route"),
        ("#!/bin/sh\nkill -9 $$\n", "a signal ended it"),
        ("#!/bin/sh\nexit 4\n", "has no sha256/"),
        ("#!/bin/sh\necho half\n", "is not what was stored"),
    ] {
        install(script);
        let run = run(get);
        assert_eq!(
            (run.exit, &run.envelope()["result"]["files"][0]["from"]),
            (0, &"none".into()),
            "{script}"
        );
        assert!(run.stdout.contains(told), "{told}: {}", run.stdout);
    }
}
