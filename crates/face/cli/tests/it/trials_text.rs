//! Trials whose arms are one program, laid out differently: a small one of C, linked by the lld of the Rust toolchain,
//! since what `prove text` compiles takes minutes.

use std::path::{Path, PathBuf};
use std::process::Command;

use planish_skip::skip;
use serde_json::Value;

use crate::planish::{Run, command};

/// A hundred small functions that run, each behind 48 KiB of code that does not: 4.7 MiB, and the hot part on more
/// pages than a TLB has entries. What it prints is a number, and DIFFERENT makes another one of it.
const BUILD: &str = r##"
awk 'BEGIN {
    for (i = 0; i < 100; i++) {
        printf "void cold%d(void); __asm__(\".section .text.cold%d,\\\"ax\\\"\\n.globl cold%d\\n", i, i, i
        printf ".type cold%d,@function\\ncold%d: ret\\n.skip 49152,0x90\\n", i, i
        printf ".size cold%d,.-cold%d\\n.text\\n\");\n", i, i
        printf "void hot%d(void); __asm__(\".section .text.hot%d,\\\"ax\\\"\\n.globl hot%d\\n", i, i, i
        printf ".type hot%d,@function\\nhot%d: mov $1000,%%ecx\\n1: dec %%ecx\\njnz 1b\\nret\\n", i, i
        printf ".size hot%d,.-hot%d\\n.text\\n\");\n", i, i
    }
    print "#include <stdio.h>\nint main(int count, char **words) { unsigned s = count; (void)words;"
    print "for (int r = 0; r < 1500; r++) {"
    for (i = 0; i < 100; i++) printf "hot%d(); s = s * 31 + r;", i
    print "}\n#ifdef DIFFERENT\ns++;\n#endif"
    print "printf(\"%u\\n\", s); return count == 99 ? (cold0(), 1) : 0; }"
}' > engine.c
cc -O1 -c -ffunction-sections -fno-omit-frame-pointer engine.c -o engine.o
cc -O1 -c -ffunction-sections -fno-omit-frame-pointer -DDIFFERENT engine.c -o other.o
"##;

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
    object=engine.o
    case "$PLANISH_FLAGS" in *call-graph*) object=other.o;; esac
    cc -BLINKERS $object $PLANISH_FLAGS -o "$PLANISH_OUT"
    echo "compiler: $(cc --version | head -1)"
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
name = "../../other"
text = ["order", "huge"]
[[rung]]
name = "different"
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
    assert!(apart >= 90.0 && together < 10.0, "{apart} {together}");
    assert_ne!(facts(result, "order")["order"], "keep");
    assert!(base["built_compiler"].as_str().is_some_and(|compiler| !compiler.is_empty()), "{base}");
    assert_ne!(base["program_sha256"], facts(result, "order")["program_sha256"]);
    let huge = facts(result, "huge");
    assert_eq!(number(base, "text_huge_bytes"), 0.0);
    assert!(number(huge, "text_huge_after_bytes") >= 0.9 * number(huge, "text_whole_bytes"), "{huge}");
    assert_eq!(base["program_sha256"], huge["program_sha256"], "the same bytes, on other pages");
    let rungs = result["rungs"].as_array().expect("rungs");
    let different = rungs.iter().find(|rung| rung["name"] == "different").expect("it is told");
    assert_eq!(different["verdict"], "unavailable");
    assert!(different["reason"].to_string().contains("prints something else"), "{}", different["reason"]);
    let placebo = facts(result, "placebo");
    assert_eq!(
        (&placebo["program_sha256"], placebo["program"] == base["program"]),
        (&base["program_sha256"], false)
    );
    assert!(!home.path().join("../other").exists(), "a name of an arm is no path");
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
fn programs_are_nobody_elses_while_they_are_measured_and_a_change_of_one_concludes_nothing() {
    let test = "programs_are_nobody_elses_while_they_are_measured_and_a_change_of_one_concludes_nothing";
    if !rustix::process::geteuid().is_root() || planish_sys::pages::thp_bytes() != Some(2 << 20) {
        return skip(test, "huge pages of files are root's to ask for here, and of 2 MiB");
    }
    let home = tempfile::tempdir().expect("a folder");
    let Some(programs) = trial(home.path(), "25", BUILD) else {
        return skip(test, "no lld in the Rust toolchain");
    };
    // So that it measures for as long as somebody needs to come in between.
    let file = home.path().join("t.toml");
    let text = std::fs::read_to_string(&file).expect("it was written");
    std::fs::write(&file, text.replace("'exec \"$PLANISH_TEXT\"'", "'sleep 1; exec \"$PLANISH_TEXT\"'"))
        .expect("ours");
    let words = ["--json", "--state", "state", "trial", "run", "t.toml", "--seed", "7"];
    let mut measuring = command(home.path(), words);
    let measuring = measuring.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let measuring = measuring.spawn().expect("the binary starts");
    let begun = std::time::Instant::now();
    // The last program that is made, and then a moment for the self-check to begin.
    while !programs.join("huge-3/program").exists() {
        assert!(begun.elapsed().as_secs() < 120, "it makes no programs");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    std::thread::sleep(std::time::Duration::from_secs(2));
    let second: Run = command(home.path(), ["--json", "--state", "other", "trial", "run", "t.toml"])
        .output()
        .expect("the binary starts")
        .into();
    assert_eq!(second.exit, 3, "{} {}", second.stdout, second.stderr);
    assert!(crate::exits::message(&second, "error").contains("another trial"), "{}", second.stdout);
    std::fs::write(programs.join("order/more"), "").expect("ours");
    let program = programs.join("order/program");
    let mut bytes = std::fs::read(&program).expect("it was made");
    bytes.push(0);
    std::fs::remove_file(&program).expect("it may be running");
    std::fs::write(&program, bytes).expect("ours");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    let told: Run = measuring.wait_with_output().expect("it ends").into();
    let result = &told.envelope()["result"];
    let rungs = result["rungs"].as_array().expect("rungs");
    let order = rungs.iter().find(|rung| rung["name"] == "order").expect("it is told");
    assert!(!["keep", "drop"].contains(&order["verdict"].as_str().expect("a verdict")), "{order}");
    assert_eq!(order["achieved"]["verified"], false);
    let notes = result["notes"].to_string();
    assert!(notes.contains("`order`: somebody has changed its program"), "{notes}");
}

#[test]
fn a_build_that_fails_is_refused_with_its_words_and_tried_again() {
    let home = tempfile::tempdir().expect("a folder");
    let Some(programs) = trial(home.path(), "20", "echo no compiler here 1>&2; exit 4") else {
        return skip("a_build_that_fails_is_refused_with_its_words_and_tried_again", "no lld");
    };
    let told = run(home.path());
    assert_eq!(told.exit, 3, "{} {}", told.stdout, told.stderr);
    let error = crate::exits::message(&told, "error");
    assert!(error.starts_with("[text]: `build` fails") && error.contains("no compiler here"), "{error}");
    assert!(told.stdout.contains(&programs.display().to_string()), "where it can be tried: {}", told.stdout);
    assert!(!programs.join("built").exists());
    assert!(!home.path().join("state/var/proofs").exists(), "nothing was measured");
}
