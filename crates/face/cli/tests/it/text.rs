//! `planish text` from outside: samples in, a profile out, and what a wrong file is told.

use std::path::Path;

use crate::planish::{Run, command};

const FOLDED: &str = "main;parse;scan 30\nmain;parse 10\nmain;print_[k] 2\n";

fn on(home: &Path, line: &str) -> Run {
    command(home, line.split(' ')).output().expect("the binary starts").into()
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(home.path().join("stacks"), FOLDED).expect("the folder can be written");
    home
}

#[test]
fn stacks_become_a_profile_that_can_be_shown() {
    let home = home();
    let imported = on(home.path(), "text import stacks -o a.planish --host web-1 --json");
    assert_eq!(imported.exit, 0, "{}", imported.stderr);
    let result = imported.envelope()["result"].clone();
    assert_eq!((&result["format"], &result["profile"]["total"]), (&"folded".into(), &42.into()));
    assert_eq!(result["profile"]["hosts"][0], "web-1");
    let shown = on(home.path(), "text show a.planish --json").envelope()["result"].clone();
    assert_eq!(shown["top"][0]["name"], "scan");
    assert_eq!(shown["top"][0]["callers"][0]["name"], "parse");
    let text = on(home.path(), "text show a.planish").stdout;
    assert!(text.contains("71.4 %") && text.contains("parse 100 %"), "{text}");
}

#[test]
fn a_page_shows_areas_and_stacks_where_there_are_some() {
    let home = home();
    let page = || std::fs::read_to_string(home.path().join("page.html")).expect("it was written");
    let drawn = on(home.path(), "text show stacks --html page.html");
    assert_eq!(drawn.exit, 0, "{}", drawn.stderr);
    assert!(page().contains("class=\"tree\"") && page().contains("class=\"flames\""), "{}", page());
    assert!(!drawn.stderr.contains("no flame graph"), "{}", drawn.stderr);
    assert_eq!(on(home.path(), "text import stacks -o a.planish").exit, 0);
    let kept = on(home.path(), "text show a.planish --html page.html");
    assert!(kept.exit == 0 && kept.stderr.contains("no flame graph"), "{}", kept.stderr);
    assert!(page().contains("class=\"tree\"") && !page().contains("class=\"flames\""), "{}", page());
    // Over a page, and over nothing else.
    let refused = on(home.path(), "text show stacks --html a.planish");
    assert!(refused.exit == 2 && refused.stderr.contains("is no page of HTML"), "{}", refused.stderr);
}

#[test]
fn a_profile_without_a_file_goes_to_stdout_and_reads_back() {
    let home = home();
    let printed = on(home.path(), "text import stacks");
    std::fs::write(home.path().join("b.planish"), &printed.stdout).expect("the folder can be written");
    assert_eq!(on(home.path(), "text show b.planish").exit, 0);
}

#[test]
fn profiles_merge_and_tell_how_alike_they_are() {
    let home = home();
    std::fs::write(home.path().join("others"), "main;draw 50\n").expect("the folder can be written");
    for (stacks, host) in [("stacks", "a"), ("others", "b")] {
        let line = format!("text import {stacks} -o {host}.planish --host {host}");
        assert_eq!(on(home.path(), &line).exit, 0);
    }
    let merged = on(home.path(), "text merge a.planish b.planish -o all.planish --json");
    let envelope = merged.envelope();
    assert_eq!(envelope["result"]["merged"], 2);
    assert_eq!(envelope["result"]["profile"]["hosts"].as_array().map(Vec::len), Some(2));
    assert_eq!(envelope["messages"][0]["level"], "warning", "they share half of their weight");
}

#[test]
fn wrong_files_are_usage_errors_with_their_cure() {
    let home = home();
    std::fs::write(home.path().join("prose"), "It was a dark night.\n").expect("the folder can be written");
    std::fs::write(home.path().join("perf.data"), b"PERFILE2").expect("the folder can be written");
    for (line, cure) in [
        ("text import prose --json", "--format"),
        ("text import missing --json", "missing"),
        ("text import perf.data --json", "perf.data"),
        ("text show stacks --program prose --json", "prose"),
    ] {
        let run = on(home.path(), line);
        assert_eq!(run.exit, 2, "{line}");
        assert!(run.stdout.contains(cure), "{line}: {}", run.stdout);
        run.envelope();
    }
    let torn = "planish text profile 1\nweights samples\nedges none\nend 00000000\n";
    std::fs::write(home.path().join("torn"), torn).expect("the folder can be written");
    let run = on(home.path(), "text show torn");
    assert!(run.exit == 2 && run.stderr.contains("checksum"), "{}", run.stderr);
}

#[test]
fn half_a_recording_is_no_profile_unless_that_is_asked_for() {
    const WHOLE: &[u8] = include_bytes!("../../../../text/profile/tests/faults.perf.data");
    let home = home();
    let put = |name: &str, bytes: &[u8]| {
        std::fs::write(home.path().join(name), bytes).expect("the folder can be written");
    };
    put("half", &WHOLE[..WHOLE.len() / 2]);
    let mut killed = WHOLE.to_vec();
    killed[48..56].fill(0);
    put("killed", &killed);
    let program = std::env::current_exe().expect("this test has a file");
    let import = |line: &str| on(home.path(), &format!("text import {line} --program {}", program.display()));
    let refused = import("half");
    assert_eq!(refused.exit, 2, "{}", refused.stderr);
    let told = format!("only {} of ", WHOLE.len() / 2);
    assert!(refused.stderr.contains(&told) && refused.stderr.contains("--cut"), "{}", refused.stderr);
    // It is of another program, which is told once it is read.
    for taken in ["half --cut", "killed"] {
        let run = import(taken);
        assert!(run.exit == 2 && run.stderr.contains("no sample of"), "{taken}: {}", run.stderr);
    }
    // A stream of accesses: of the killed one what is there is told, with a warning.
    let cut = on(home.path(), "top --c2c --replay half");
    assert!(cut.exit == 2 && cut.stderr.contains(&told), "{}", cut.stderr);
}

/// A program of many functions, of which some are hot; `None`, said aloud, without an assembler.
fn program(home: &Path, name: &str) -> Option<Vec<String>> {
    let known: Vec<String> = (0..900).map(|index| format!("f{index}")).collect();
    let function = |name: &String| {
        format!(".globl {name}\n.type {name},@function\n{name}: .zero 200,1\n.size {name},200\n")
    };
    let source: String = std::iter::once(".text\n".to_owned()).chain(known.iter().map(function)).collect();
    std::fs::write(home.join("p.s"), source).expect("the folder can be written");
    let args = ["-nostdlib", "-static", "-Wl,-e,f0", "-o", "prog", "p.s"];
    let linked = std::process::Command::new("cc").current_dir(home).args(args).output();
    if !linked.is_ok_and(|output| output.status.success()) {
        planish_skip::skip(name, "no assembler");
        return None;
    }
    Some(known.into_iter().step_by(3).collect())
}

#[test]
fn an_order_names_what_it_saves_and_is_refused_for_another_program() {
    let home = home();
    let name = "an_order_names_what_it_saves_and_is_refused_for_another_program";
    let Some(known) = program(home.path(), name) else { return };
    let program = "prog";
    assert_eq!(
        on(home.path(), "text show stacks --program prog --json").exit,
        2,
        "main;parse;scan are not in it"
    );
    let stacks: String = known.windows(2).map(|pair| format!("main;{};{} 40\n", pair[0], pair[1])).collect();
    std::fs::write(home.path().join("hot"), stacks).expect("the folder can be written");
    let line = format!("text order {program} --profile hot -o order.txt --json");
    let ordered = on(home.path(), &line);
    assert_eq!(ordered.exit, 0, "{}", ordered.stderr);
    let result = ordered.envelope()["result"].clone();
    assert_eq!(result["orders"][0]["name"], "keep");
    assert_eq!(result["orders"].as_array().map(Vec::len), Some(6));
    assert!(result["chosen"] != "keep", "scattered functions are worth an order: {result}");
    let order = std::fs::read_to_string(home.path().join("order.txt")).expect("an order");
    assert!(order.lines().count() >= 290, "{order}");
    let again = on(home.path(), &format!("{line} --previous order.txt")).envelope()["result"].clone();
    assert_eq!((&again["chosen"], &again["orders"][0]["name"]), (&"previous".into(), &"previous".into()));
    let other: String = (0..400).map(|index| format!("main;nothing{index} 90\n")).collect();
    std::fs::write(home.path().join("other"), format!("{other}main;{} 3\n", known[0])).expect("a folder");
    let imported = on(home.path(), "text import other -o other.planish");
    assert_eq!(imported.exit, 0);
    assert_eq!(on(home.path(), &format!("text order {program} --profile other.planish --json")).exit, 3);
}

#[test]
fn an_order_comes_with_a_profile_for_autofdo_where_lines_are_known() {
    const NAME: &str = "an_order_comes_with_a_profile_for_autofdo_where_lines_are_known";
    let home = home();
    let source = "__attribute__((noinline)) int hot(int x) {\n    return x * 3;\n}\nint main(int n, char **w) {\n    \
                  (void)w;\n    return hot(n);\n}\n";
    std::fs::write(home.path().join("hot.c"), source).expect("the folder can be written");
    std::fs::write(home.path().join("hot.fdata"), "no_lbr cycles:\n1 hot 0 90\n1 main 0 10\n")
        .expect("a folder");
    let linked = |lines: &str| {
        let args = ["-O1", lines, "-o", "prog", "hot.c"];
        let output = std::process::Command::new("cc").current_dir(home.path()).args(args).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !linked("-g0") {
        return planish_skip::skip(NAME, "no C compiler");
    }
    let line = "text order prog --profile hot.fdata -o order.txt --autofdo prog.afdo --json";
    let refused = on(home.path(), line);
    assert_eq!(refused.exit, 3, "{}", refused.stdout);
    assert!(refused.stdout.contains("-fdebug-info-for-profiling"), "{}", refused.stdout);
    assert!(!home.path().join("prog.afdo").exists() && !home.path().join("order.txt").exists());
    assert!(linked("-g"));
    let ordered = on(home.path(), line);
    assert_eq!(ordered.exit, 0, "{}", ordered.stderr);
    let told = ordered.envelope()["result"]["autofdo"].clone();
    assert_eq!((&told["functions"], &told["placed"]), (&2.into(), &1.0.into()), "{told}");
    let written = std::fs::read_to_string(home.path().join("prog.afdo")).expect("it was written");
    assert!(written.starts_with("hot:90:0\n 1: 90\n") && written.contains("main:10:0\n"), "{written}");
    let imported = on(home.path(), "text import prog.afdo --json").envelope()["result"].clone();
    assert_eq!((&imported["format"], &imported["profile"]["total"]), (&"autofdo".into(), &100.into()));
    // Stacks have names and no addresses.
    std::fs::write(home.path().join("names"), "main;hot 90\nmain 10\n").expect("the folder can be written");
    let named = on(home.path(), "text order prog --profile names --autofdo other.afdo --json");
    assert!(named.exit == 3 && named.stdout.contains("no addresses"), "{}", named.stdout);
}

#[test]
fn a_layout_is_verified_by_its_marks_and_its_samples() {
    let home = home();
    if program(home.path(), "a_layout_is_verified_by_its_marks_and_its_samples").is_none() {
        return;
    }
    std::fs::write(home.path().join("hot"), "f3;f4 95\nf3;f700 5\n").expect("the folder can be written");
    let unmarked = on(home.path(), "text verify prog --profile hot --json");
    let told = unmarked.envelope()["messages"][0].clone();
    assert_eq!(
        (unmarked.exit, &told["level"]),
        (0, &"note".into()),
        "an order may have left no marks: {told}"
    );
    assert!(told["text"].as_str().is_some_and(|text| text.contains("__hot_start")), "{told}");
    let asked = on(home.path(), "text verify prog --profile hot --inside 50");
    assert!(asked.exit == 1 && asked.stderr.contains("planish text cc"), "{}", asked.stderr);
    for odd in [
        "verify prog --huge nan",
        "verify prog --inside=-1",
        "huge prog --least 500",
        "huge prog --least nan",
    ] {
        let run = on(home.path(), &format!("text {odd}"));
        assert!(run.exit == 2 && run.stderr.contains("from 0 to 100"), "{odd}: {}", run.stderr);
    }
    let page = on(home.path(), "text check prog --page 3");
    assert!(page.exit == 2 && page.stderr.contains("power of two"), "{}", page.stderr);
    let marks = ["-Wl,--defsym=__hot_start=f0", "-Wl,--defsym=__hot_end=f9"];
    let args = [&["-nostdlib", "-static", "-Wl,-e,f0", "-o", "prog", "p.s"][..], &marks].concat();
    let linked = std::process::Command::new("cc").current_dir(home.path()).args(args).status();
    assert!(linked.is_ok_and(|status| status.success()));
    let marked = on(home.path(), "text verify prog --profile hot --json");
    assert_eq!(marked.exit, 0, "{}", marked.stdout);
    let inside = marked.envelope()["result"]["inside"].as_f64().expect("a share");
    assert!((inside - 0.95).abs() < 1e-9, "{inside}");
    assert_eq!(on(home.path(), "text verify prog --profile hot --inside 99").exit, 1);
}

#[test]
fn a_process_tells_what_of_its_text_is_on_huge_pages() {
    let run = on(
        tempfile::tempdir().expect("a folder").path(),
        &format!("text verify {} --json", std::process::id()),
    );
    // Marks are missing in this test's binary; where its code lies is told even so.
    assert!([0, 1, 3].contains(&run.exit), "{}", run.stdout);
    if run.exit == 3 {
        return planish_skip::skip("a_process_tells_what_of_its_text_is_on_huge_pages", run.stderr.trim());
    }
    let process = run.envelope()["result"]["process"].clone();
    assert!(process["text_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{process}");
    assert!(process["huge_bytes"].as_u64() <= process["text_bytes"].as_u64());
}

#[test]
fn a_check_names_the_flag_that_mends() {
    let home = home();
    if program(home.path(), "a_check_names_the_flag_that_mends").is_none() {
        return;
    }
    let checked = on(home.path(), "text check prog --page 2M --json");
    assert_eq!(checked.exit, 1, "900 small functions fill no huge page");
    let rows = checked.envelope()["result"]["rows"].clone();
    let rows = rows.as_array().expect("rows");
    let row = |what: &str| rows.iter().find(|row| row["what"] == what).expect("a row");
    assert_eq!(row("whole huge pages")["good"], false);
    assert_eq!(row("symbols")["good"], true);
    assert!(row("relocations for BOLT")["cure"].as_str().is_some_and(|cure| cure.contains("--emit-relocs")));
    let flags = on(home.path(), "text link-flags --linker lld --order o.txt --huge --bolt --for cmake");
    assert_eq!(flags.exit, 0);
    assert!(flags.stdout.contains("/o.txt") && flags.stdout.contains("max-page-size=2097152"));
}
