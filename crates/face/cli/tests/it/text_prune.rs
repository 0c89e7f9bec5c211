//! `planish text prune`: what no pin names goes when it is asked for, and nothing that a build may want goes with it.

#![expect(clippy::disallowed_methods, reason = "files of these tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::planish::{Run, command, copy_program};
use crate::text_publish::{home, on, published};

const DAY: Duration = Duration::from_secs(86_400);

/// The files of a folder of blobs.
fn blobs(folder: &Path) -> Vec<PathBuf> {
    let inner = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = inner.partition(|path| path.is_dir());
    let mut files: Vec<_> = folders.iter().flat_map(|folder| blobs(folder)).chain(files).collect();
    files.sort();
    files
}

/// Makes all that is stored older than what a publish may be about to pin.
fn aged(folder: &Path) {
    for blob in blobs(folder) {
        let file = fs::File::open(blob).expect("a blob");
        file.set_modified(SystemTime::now() - 40 * DAY).expect("our own file");
    }
}

fn pruned(home: &Path, line: &str) -> Value {
    let run = on(home, format!("text prune --json {line}").trim_end());
    assert_eq!(run.exit, 0, "{line}: {}{}", run.stdout, run.stderr);
    run.envelope()["result"].clone()
}

/// How many blobs have this fate.
fn count(result: &Value, fate: &str) -> usize {
    result["blobs"].as_array().expect("rows").iter().filter(|row| row["fate"] == fate).count()
}

/// A store with three profiles and their orders: the last is pinned, the one before was, the first is not.
fn three() -> tempfile::TempDir {
    let home = home();
    published(home.path(), "hot.planish --store store");
    published(home.path(), "warm.planish");
    published(home.path(), "other.planish --force");
    home
}

#[test]
fn what_nothing_keeps_goes_when_it_is_asked_for() {
    let home = three();
    let home = home.path();
    let store = home.join("store");
    let fresh = pruned(home, "--keep 0");
    assert_eq!((count(&fresh, "pinned"), count(&fresh, "young")), (4, 2), "{fresh}");
    aged(&store);
    let newest = pruned(home, "");
    assert_eq!((count(&newest, "pinned"), count(&newest, "newest")), (4, 2), "{newest}");
    let old = pruned(home, "--keep 0 --min-age 60");
    assert_eq!((count(&old, "young"), count(&old, "unkept")), (2, 0), "{old}");
    // Dry by default, and it says how it is done.
    let dry = on(home, "text prune --keep 0");
    assert_eq!((dry.exit, blobs(&store).len()), (0, 6), "{}", dry.stderr);
    assert!(dry.stdout.contains("by nothing"), "{}", dry.stdout);
    assert!(dry.stderr.contains("planish text prune --keep 0 --delete"), "{}", dry.stderr);
    // What is not ours stays, whatever its age.
    fs::write(store.join("sha256/notes"), "mine").expect("room for a file");
    aged(&store);
    let done = pruned(home, "--keep 0 --delete");
    assert_eq!((count(&done, "unkept"), &done["foreign"]), (2, &1.into()), "{done}");
    let is_gone = |row: &&Value| row["deleted"] == true;
    assert_eq!(done["blobs"].as_array().expect("rows").iter().filter(is_gone).count(), 2);
    assert_eq!(blobs(&store).len(), 5, "four blobs and the notes");
    let fetched = on(home, "text fetch --order o.txt --profile p.planish --strict --min-overlap 0");
    assert_eq!(fetched.exit, 0, "{}", fetched.stderr);
    assert_eq!(count(&pruned(home, "--keep 0 --delete"), "unkept"), 0);
}

#[test]
fn what_is_published_again_is_young_before_its_pin_is_merged() {
    let home = three();
    let home = home.path();
    aged(&home.join("store"));
    // On a branch that waits for its review, say: the pin of this folder does not name it.
    published(home, "hot.planish --store store --pin review.toml");
    let result = pruned(home, "--keep 0 --delete");
    assert_eq!((count(&result, "young"), count(&result, "unkept")), (2, 0), "{result}");
    assert_eq!(on(home, "text fetch --pin review.toml --order o.txt --strict").exit, 0);
    aged(&home.join("store"));
    assert_eq!(count(&pruned(home, "--keep 0"), "unkept"), 2, "without that pin");
    let both = pruned(home, "--keep 0 --delete --pin planish.text.toml --pin review.toml");
    assert_eq!((count(&both, "pinned"), count(&both, "unkept")), (6, 0), "{both}");
}

#[test]
fn nothing_goes_while_it_is_not_known_what_builds_follow() {
    let home = three();
    let home = home.path();
    let store = home.join("store");
    aged(&store);
    let refused = |line: &str, exit: i32, told: &str| {
        let run = on(home, format!("text prune {line}").trim_end());
        assert_eq!(run.exit, exit, "{line}: {}{}", run.stdout, run.stderr);
        assert!(run.stderr.contains(told), "{line}: {}", run.stderr);
        assert_eq!(blobs(&store).len(), 6, "{line}");
    };
    // Another store, with nothing that the pin names.
    fs::create_dir(home.join("empty")).expect("room for a folder");
    refused("--store empty --delete", 3, "is not in the store");
    assert_eq!(on(home, "text prune --store empty").exit, 0, "looking is no harm");
    refused("--store away --delete", 3, "mkdir -p");
    refused("--store https://127.0.0.1:1/p", 3, "cannot be listed");
    refused("--min-age 0", 2, "above 0");
    fs::rename(home.join("planish.text.toml"), home.join("pin.toml")).expect("our own file");
    refused("", 2, "--store STORE");
    refused("--store store --delete --keep 0", 3, "nothing is taken away without a pin");
    assert_eq!(count(&pruned(home, "--store store --keep 0"), "unkept"), 6, "told, and not done");
    fs::write(home.join("torn.toml"), "format = 1\nstore = ").expect("room for a file");
    refused("--pin pin.toml --pin torn.toml --delete --keep 0", 2, "no pin");
    refused("--pin pin.toml --pin none.toml --delete --keep 0", 2, "none.toml");
    let pin = fs::read_to_string(home.join("pin.toml")).expect("our own file");
    let (head, before) = pin.split_once("[previous]").expect("something was pinned before");
    let at = before.find("profile = \"").expect("a digest") + "profile = \"".len();
    let damaged = format!("{head}[previous]{}x{}", &before[..at], &before[at + 1..]);
    fs::write(home.join("damaged.toml"), damaged).expect("room for a file");
    refused("--pin damaged.toml --delete --keep 0", 2, "which is no sha256");
}

/// The contract as a script. Its first delete works, and no other. Where there is a file `again`, somebody publishes
/// what has its name between the list and the first delete.
const HELPER: &str = "#!/bin/sh
file=\"$HOME/beyond/${2#own://}\"
case $1 in
get) [ -e \"$file\" ] || exit 4; exec cat \"$file\" ;;
put) mkdir -p \"${file%/*}\" && cat >\"$file.part\" && mv \"$file.part\" \"$file\" ;;
list) cd \"$file\" && find . -type f -printf '%s %T@ %P\\n' | sed 's/\\.[0-9]* / /'
    [ ! -e \"$HOME/again\" ] || touch $(cat \"$HOME/again\") ;;
delete-if) [ \"$(stat -c %Y \"$file\")\" = \"$3\" ] || exit 5
    [ ! -e \"$HOME/locked\" ] || { echo 'it is locked' >&2; exit 1; }; rm \"$file\" && touch \"$HOME/locked\" ;;
*) exit 2 ;;
esac
";

/// Makes this script the helper of `own://`.
fn install(home: &Path, text: &str) {
    fs::create_dir_all(home.join("bin")).expect("room for a folder");
    fs::write(home.join("helper"), text).expect("room for a file");
    fs::set_permissions(home.join("helper"), fs::Permissions::from_mode(0o755)).expect("our own file");
    copy_program(&home.join("helper"), &home.join("bin/planish-store-own"));
}

fn beyond(home: &Path, line: &str) -> Run {
    let path = format!("{}:/usr/bin:/bin", home.join("bin").display());
    command(home, line.split(' ')).env("PATH", &path).output().expect("the binary starts").into()
}

/// The same as [`three`] in a store that only a helper reaches, and long ago.
fn three_beyond() -> tempfile::TempDir {
    let home = home();
    install(home.path(), HELPER);
    for line in ["hot.planish --store own://bucket/p", "warm.planish", "other.planish --force"] {
        assert_eq!(beyond(home.path(), &format!("text publish {line}")).exit, 0, "{line}");
    }
    aged(&home.path().join("beyond"));
    home
}

#[test]
fn what_is_published_again_while_a_store_beyond_is_pruned_stays() {
    let home = three_beyond();
    let home = home.path();
    let dry = beyond(home, "text prune --keep 0 --json").envelope()["result"].clone();
    assert_eq!(count(&dry, "unkept"), 2, "{dry}");
    let unkept = dry["blobs"].as_array().expect("rows").iter().find(|row| row["fate"] == "unkept");
    let handle = unkept.expect("there are two")["handle"].as_str().expect("a name").to_owned();
    let file = home.join("beyond/bucket/p").join(&handle);
    fs::write(home.join("again"), file.to_str().expect("text")).expect("room for a file");
    let run = beyond(home, "text prune --keep 0 --delete --json");
    let result = &run.envelope()["result"];
    assert_eq!((run.exit, count(result, "young"), count(result, "unkept")), (0, 1, 1), "{result}");
    let rows = result["blobs"].as_array().expect("rows").iter();
    let told: Vec<_> = rows.filter(|row| row["fate"] == "young").map(|row| &row["handle"]).collect();
    assert_eq!(told, [&Value::from(handle.as_str())]);
    assert!(file.exists() && blobs(&home.join("beyond")).len() == 5, "{result}");
}

#[test]
fn a_helper_that_fails_half_way_is_told_with_what_was_done() {
    let home = three_beyond();
    let home = home.path();
    let run = |line: &str| beyond(home, line);
    let half = run("text prune --keep 0 --delete --json");
    let result = &half.envelope()["result"];
    let gone = result["blobs"].as_array().expect("rows").iter().filter(|row| row["deleted"] == true).count();
    assert_eq!((half.exit, gone, count(result, "unkept")), (1, 1, 2), "{}", half.stdout);
    assert!(half.stdout.contains("it is locked"), "{}", half.stdout);
    let none = run("text prune --keep 0 --delete");
    assert!(none.exit == 3 && none.stderr.contains("it is locked"), "{}", none.stderr);
    fs::remove_file(home.join("locked")).expect("it is there");
    assert_eq!(run("text prune --keep 0 --delete").exit, 0);
    assert_eq!(blobs(&home.join("beyond")).len(), 4);
    // One that knows get and put alone.
    install(home, "#!/bin/sh\necho 'unknown verb' >&2\nexit 2\n");
    let old = run("text prune");
    assert!(old.exit == 3 && old.stderr.contains("unknown verb"), "{}", old.stderr);
}
