//! Trials whose arms are one program, laid out differently: a small one of C, linked by the lld of the Rust toolchain,
//! since what `prove text` compiles takes minutes.

use std::path::{Path, PathBuf};
use std::process::Command;

use planish_skip::skip;
use serde_json::Value;

use crate::planish::{Run, command};

/// Three hundred functions of 16 KiB, of which every tenth runs: 4.7 MiB, and the hot part is spread over all of it.
const BUILD: &str = r#"
awk 'BEGIN {
    for (i = 0; i < 300; i++) {
        printf "void f%d(void); __asm__(\".section .text.f%d,\\\"ax\\\"\\n.globl f%d\\n", i, i, i
        printf ".type f%d,@function\\nf%d: mov $3000,%%ecx\\n1: dec %%ecx\\njnz 1b\\nret\\n", i, i
        printf ".skip 16384,0x90\\n.size f%d,.-f%d\\n.text\\n\");\n", i, i
    }
    print "int main(void) { for (int r = 0; r < 2500; r++) {"
    for (i = 0; i < 300; i += 10) printf "f%d();", i
    print "} return 0; }"
}' > engine.c
cc -O1 -c -ffunction-sections -fno-omit-frame-pointer engine.c -o engine.o
"#;

const TRIAL: &str = r#"
name = "engine"
summary = "What does the layout of a small program give?"
budget_seconds = BUDGET
guards = []
confirm = false
[workload]
adapter = "command"
command = ["sh", "-c", 'exec "$PLANISH_TEXT"']
[text]
folder = "FOLDER"
build = ["sh", "-ec", '''BUILD''']
link = ["sh", "-ec", '''
    case "$PLANISH_FLAGS" in *call-graph*) echo "no such order here" 1>&2; exit 1;; esac
    cc -BLINKERS engine.o $PLANISH_FLAGS -o "$PLANISH_OUT"
''']
[baseline]
name = "base"
[[rung]]
name = "order"
text = ["order"]
[[rung]]
name = "huge"
text = ["huge"]
[[rung]]
name = "lacking"
text = ["lld-cdsort"]
"#;

/// The folder of lld under the name that gcc asks for.
fn linkers() -> Option<String> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    let folder = sysroot.join("lib/rustlib/x86_64-unknown-linux-gnu/bin/gcc-ld");
    folder.join("ld.lld").is_file().then(|| folder.display().to_string())
}

fn trial(home: &Path, budget: &str, build: &str) -> Option<PathBuf> {
    let text = TRIAL.replace("BUDGET", budget).replace("BUILD", build).replace("LINKERS", &linkers()?);
    let text = text.replace("FOLDER", &home.join("programs").display().to_string());
    std::fs::write(home.join("t.toml"), text).expect("ours");
    Some(home.join("programs"))
}

fn run(home: &Path) -> Run {
    let words = ["--json", "--state", "state", "trial", "run", "t.toml", "--seed", "7"];
    command(home, words).output().expect("the binary starts").into()
}

fn facts<'r>(result: &'r Value, arm: &str) -> &'r Value {
    let rungs = result["rungs"].as_array().expect("rungs");
    &rungs.iter().find(|rung| rung["name"] == arm).expect("it is there")["achieved"]["facts"]
}

#[test]
fn arms_are_laid_out_looked_at_and_kept_for_the_next_run() {
    let test = "arms_are_laid_out_looked_at_and_kept_for_the_next_run";
    if !rustix::process::geteuid().is_root() || planish_sys::pages::thp_bytes() != Some(2 << 20) {
        return skip(test, "huge pages of files are root's to ask for here, and of 2 MiB");
    }
    let home = tempfile::tempdir().expect("a folder");
    let Some(programs) = trial(home.path(), "20", BUILD) else {
        return skip(test, "no lld in the Rust toolchain");
    };
    let told = run(home.path());
    assert!([0, 6].contains(&told.exit), "{} {}", told.stdout, told.stderr);
    let result = &told.envelope()["result"];
    let number =
        |facts: &Value, fact: &str| facts[fact].as_f64().unwrap_or_else(|| panic!("{fact}: {facts}"));
    let base = &result["baseline_achieved"]["facts"];
    let (apart, together) = (number(base, "pages_4k_99"), number(facts(result, "order"), "pages_4k_99"));
    assert!(apart >= 28.0 && together <= apart, "{apart} {together}");
    assert_ne!(base["program_sha256"], facts(result, "order")["program_sha256"]);
    let huge = facts(result, "huge");
    assert_eq!(number(base, "text_huge_bytes"), 0.0);
    assert!(number(huge, "text_huge_after_bytes") >= 0.9 * number(huge, "text_whole_bytes"), "{huge}");
    assert_eq!(base["program_sha256"], huge["program_sha256"], "the same bytes, on other pages");
    let rungs = result["rungs"].as_array().expect("rungs");
    let lacking = rungs.iter().find(|rung| rung["name"] == "lacking").expect("it is told");
    assert_eq!(lacking["verdict"], "unavailable");
    assert!(lacking["reason"].to_string().contains("no such order here"), "{}", lacking["reason"]);
    // What was compiled is used again; what is linked is linked anew.
    let object = programs.join("engine.o");
    let made = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).expect("it is there");
    let (first, linked) = (made(&object), made(&programs.join("base/program")));
    trial(home.path(), "0.1", BUILD).expect("lld was there");
    let again = run(home.path());
    assert_eq!(again.exit, 6, "{} {}", again.stdout, again.stderr);
    assert_eq!(made(&object), first);
    assert!(made(&programs.join("base/program")) > linked);
}

#[test]
fn a_build_that_fails_is_refused_with_its_words_and_tried_again() {
    let home = tempfile::tempdir().expect("a folder");
    let Some(programs) = trial(home.path(), "20", "echo no compiler here 1>&2; exit 4") else {
        return skip("a_build_that_fails_is_refused_with_its_words_and_tried_again", "no lld");
    };
    let told = run(home.path());
    assert_eq!(told.exit, 3, "{} {}", told.stdout, told.stderr);
    assert!(told.stderr.contains("no compiler here"), "{}", told.stderr);
    let error = crate::exits::message(&told, "error");
    assert!(error.starts_with("[text]: `build` fails"), "{error}");
    assert!(told.stdout.contains(&programs.display().to_string()), "where it can be tried: {}", told.stdout);
    assert!(!programs.join("built").exists());
    assert!(!home.path().join("state/var/proofs").exists(), "nothing was measured");
}
