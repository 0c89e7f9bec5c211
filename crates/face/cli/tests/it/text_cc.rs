//! `planish text cc` and `text ld` with real compilers and linkers: what is ordered, what goes by, what never breaks.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use planish_profile::{Allows, FileKind, Program};
use planish_skip::skip;

use crate::planish::{Run, asked_to_end, command, run_without_hangups};

const FUNCTIONS: usize = 60;
/// As no compiler would lay them.
const ORDER: [&str; 6] = ["f54", "f12", "f30", "f6", "f48", "f1"];
const HUGE_BYTES: u64 = 2 << 20;
const PLANISH: &str = env!("CARGO_BIN_EXE_planish");

/// A folder with a program in two files, and an order of some of its functions.
fn home(test: &str) -> Option<tempfile::TempDir> {
    let home = tempfile::tempdir().expect("a temporary folder");
    let mut text = String::from("volatile int sink;\n");
    for index in 0..FUNCTIONS {
        let _ = writeln!(
            text,
            "__attribute__((noinline, used)) int f{index}(int x) {{ sink += x * {index}; return sink; }}"
        );
    }
    let main = "int f54(int); int main(int c, char **v) { return f54(c) < 0; }\n";
    for (name, text) in [("f.c", text.as_str()), ("main.c", main), ("order.txt", &(ORDER.join("\n") + "\n"))]
    {
        fs::write(home.path().join(name), text).expect("the folder can be written");
    }
    if Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Some(home);
    }
    skip(test, "no C compiler");
    None
}

fn on(home: &Path, line: &str) -> Run {
    command(home, line.split(' ')).output().expect("the binary starts").into()
}

/// Flags for each linker that is there; lld is that of the Rust toolchain.
fn linkers(test: &str) -> Vec<(&'static str, String)> {
    let told = |args: &[&str]| {
        let output = Command::new("rustc").args(args).output().ok()?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    let folder = told(&["--print", "sysroot"]).zip(told(&["--print", "host-tuple"]));
    let folder =
        folder.map(|(root, host)| format!("{root}/lib/rustlib/{host}/bin/gcc-ld")).unwrap_or_default();
    let known = [
        ("bfd", "-fuse-ld=bfd".to_owned()),
        ("gold", "-fuse-ld=gold".to_owned()),
        ("lld", format!("-fuse-ld=lld -B{folder}")),
    ];
    let is_there = |(name, flags): &(&'static str, String)| {
        let asked = Command::new("cc").args(flags.split(' ')).arg("-Wl,--version").output();
        let there = asked.is_ok_and(|output| output.status.success());
        if !there {
            skip(test, format!("no {name}"));
        }
        there
    };
    known.into_iter().filter(is_there).collect()
}

/// The compilers that are there.
fn compilers(test: &str) -> Vec<&'static str> {
    let is_there = |compiler: &&str| {
        let asked = Command::new(compiler).arg("--version").env("PATH", "/usr/bin:/bin").output();
        let there = asked.is_ok_and(|output| output.status.success());
        if !there {
            skip(test, format!("no {compiler}"));
        }
        there
    };
    ["cc", "clang"].into_iter().filter(is_there).collect()
}

fn program(path: &Path) -> (Program, Allows) {
    let bytes = fs::read(path).expect("it was linked");
    let program = Program::parse("linked", &bytes).expect("an ELF file");
    (program, Allows::parse(&bytes, HUGE_BYTES).expect("an ELF file"))
}

fn address(program: &Program, name: &str) -> u64 {
    let index = program.by_name(name).unwrap_or_else(|| panic!("{name} is not there"));
    program.functions()[index as usize].address
}

/// Whether the wanted functions lie as they are ordered, with none of the others among them.
fn is_ordered(program: &Program) -> bool {
    let at: Vec<u64> = ORDER.iter().map(|name| address(program, name)).collect();
    let range = at[0]..*at.last().expect("six functions");
    let others =
        (0..FUNCTIONS).map(|index| format!("f{index}")).filter(|name| !ORDER.contains(&name.as_str()));
    at.is_sorted() && others.into_iter().all(|name| !range.contains(&address(program, &name)))
}

fn runs(path: &Path) -> bool {
    Command::new(path).output().is_ok_and(|output| output.status.success())
}

#[test]
fn functions_come_in_the_wanted_order_on_text_that_fits_huge_pages() {
    const NAME: &str = "functions_come_in_the_wanted_order_on_text_that_fits_huge_pages";
    let Some(home) = home(NAME) else { return };
    let linked = home.path().join("prog");
    let linkers = linkers(NAME);
    for (compiler, linker, flags) in compilers(NAME)
        .iter()
        .flat_map(|compiler| linkers.iter().map(move |(linker, flags)| (compiler, linker, flags)))
    {
        // Compiled and linked apart, and at once.
        for steps in [
            &["-O1 -c f.c -o f.o", "-O1 -c main.c -o main.o", "LINKER f.o main.o -o prog"][..],
            &["LINKER -O1 -fPIE -pie f.c main.c -o prog"],
        ] {
            for step in steps {
                let step = step.replace("LINKER", flags);
                let run = on(home.path(), &format!("text cc --order order.txt -- {compiler} {step}"));
                let ended = (run.exit, run.stdout.as_str(), run.stderr.as_str());
                assert_eq!(ended, (0, "", ""), "{compiler} {linker}: {step}");
            }
            let (program, allows) = program(&linked);
            assert!(is_ordered(&program), "{compiler} {linker}: {steps:?}");
            assert!(allows.congruent && allows.aligned, "{compiler} {linker}: {allows:?}");
            assert!(runs(&linked), "{compiler} {linker}: {steps:?}");
        }
    }
}

#[test]
fn code_that_is_made_at_link_time_is_ordered() {
    const NAME: &str = "code_that_is_made_at_link_time_is_ordered";
    let Some(home) = home(NAME) else { return };
    let linked = home.path().join("prog");
    for (linker, flags) in linkers(NAME) {
        let mut plain = Command::new("cc");
        plain.args(flags.split(' ')).args(["-flto", "f.c", "main.c", "-o", "plain"]);
        let plain = plain.current_dir(home.path()).stderr(Stdio::null()).status();
        if !plain.is_ok_and(|status| status.success()) {
            skip(NAME, format!("{linker} makes no code of this compiler's here"));
            continue;
        }
        for step in ["-O1 -flto -c f.c main.c", "-O1 -flto f.o main.o -o prog"] {
            let run = on(home.path(), &format!("text cc --order order.txt -- cc {flags} {step}"));
            assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{linker}: {step}");
        }
        assert!(is_ordered(&program(&linked).0) && runs(&linked), "{linker}");
    }
}

#[test]
fn an_older_gnu_ld_marks_the_hot_range() {
    const NAME: &str = "an_older_gnu_ld_marks_the_hot_range";
    let Some(home) = home(NAME) else { return };
    let version = Command::new("cc").args(["-fuse-ld=bfd", "-Wl,--version"]).output();
    let version =
        version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let found = planish_order::command_line::LinkerFound::parse(&version);
    if found.is_none_or(|found| found.takes_section_order()) {
        return skip(NAME, "no GNU ld before 2.43");
    }
    fs::write(home.path().join("hot"), "main;f54 95\nmain;f12 3\nmain;f2 2\n")
        .expect("the folder can be written");
    let run = on(home.path(), "text cc --order order.txt -- cc -O1 -fuse-ld=bfd f.c main.c -o prog");
    assert_eq!((run.exit, run.stderr.as_str()), (0, ""));
    let verified = on(home.path(), "text verify prog --profile hot --json");
    let inside = verified.envelope()["result"]["inside"].as_f64().expect("the range is marked");
    assert!((inside - 0.98).abs() < 1e-9, "{inside}");
}

#[test]
fn every_linker_marks_the_hot_range() {
    const NAME: &str = "every_linker_marks_the_hot_range";
    let Some(home) = home(NAME) else { return };
    fs::write(home.path().join("hot"), "main;f54 95\nmain;f12 3\nmain;f2 2\n")
        .expect("the folder can be written");
    for (linker, flags) in linkers(NAME) {
        for more in ["", " -Wl,--gc-sections", " -Wl,--gc-sections -Wl,--icf=all", " -static", " -flto"] {
            let link = |wrapper: &str| {
                let line = format!("{wrapper}cc -O1 {flags}{more} f.c main.c -o prog");
                let (program, words) = line.split_once(' ').expect("words");
                let mut link = Command::new(program);
                link.args(words.split(' ')).current_dir(home.path()).output().map(Run::from)
            };
            if link("").is_ok_and(|plain| plain.exit != 0) {
                skip(NAME, format!("{linker} links nothing with{more} here"));
                continue;
            }
            let run = link(&format!("{PLANISH} text cc --order order.txt --strict -- ")).expect("it starts");
            assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{linker}{more}");
            let linked = home.path().join("prog");
            // Of what nothing calls, sections are dropped there.
            let is_whole = !more.contains("gc-sections");
            assert!(runs(&linked) && (!is_whole || is_ordered(&program(&linked).0)), "{linker}{more}");
            let verified = on(home.path(), "text verify prog --profile hot --json");
            assert_eq!(verified.exit, 0, "{linker}{more}: {}", verified.stdout);
            let result = verified.envelope()["result"].clone();
            let inside = result["inside"].as_f64().unwrap_or_else(|| panic!("{linker}{more}: no marks"));
            assert!((inside - if is_whole { 0.98 } else { 1.0 }).abs() < 1e-9, "{linker}{more}: {inside}");
            let bytes =
                result["hot_end"].as_u64().zip(result["hot_start"].as_u64()).map(|(end, start)| end - start);
            assert!(bytes.is_some_and(|bytes| bytes < 400), "six functions alone: {linker}{more}: {bytes:?}");
        }
    }
}

#[test]
fn shared_objects_and_static_programs_are_ordered_and_objects_are_not() {
    const NAME: &str = "shared_objects_and_static_programs_are_ordered_and_objects_are_not";
    let Some(home) = home(NAME) else { return };
    for (linker, flags) in linkers(NAME) {
        let wrapped =
            |step: &str| on(home.path(), &format!("text cc --order order.txt -- cc {flags} {step}"));
        let library = wrapped("-O1 -shared -fPIC f.c -o libf.so");
        assert_eq!((library.exit, library.stderr.as_str()), (0, ""), "{linker}");
        let (found, allows) = program(&home.path().join("libf.so"));
        assert!(is_ordered(&found) && allows.kind == FileKind::Library, "{linker}: {allows:?}");
        for kind in ["-static", "-static-pie"] {
            let mut plain = Command::new("cc");
            plain.args(flags.split(' ')).args([kind, "-fPIE", "f.c", "main.c", "-o", "plain"]);
            let plain = plain.current_dir(home.path()).stderr(Stdio::null()).status();
            if !plain.is_ok_and(|status| status.success()) {
                skip(NAME, format!("{linker} links no {kind} here"));
                continue;
            }
            let run = wrapped(&format!("-O1 {kind} -fPIE f.c main.c -o prog"));
            assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{linker} {kind}");
            let linked = home.path().join("prog");
            assert!(is_ordered(&program(&linked).0) && runs(&linked), "{linker} {kind}");
        }
        let joined = wrapped("-O1 -r f.c main.c -o all.o");
        assert_eq!((joined.exit, joined.stderr.as_str()), (0, ""), "{linker}");
        assert_eq!(program(&home.path().join("all.o")).1.kind, FileKind::Object, "{linker}");
    }
}

/// What is no link by itself, or fails.
const QUESTIONS_AND_FAILURES: [&str; 19] = [
    "--version",
    "-dumpmachine",
    "-v",
    "-print-search-dirs",
    "-Wl,--version",
    "-E main.c",
    "-M main.c",
    "-fsyntax-only bad.c",
    "-c bad.c",
    "-c main.c -o",
    "-x c /dev/stdin -o piped",
    "main.c @missing.rsp",
    "-bogus-option -c main.c",
    "conftest.c -o conftest",
    "",
    // Links: of an order that is missing a warning tells before they fail.
    "bad.c -o bad",
    "main.c no-such-file.c",
    "-bogus-option main.c",
    "undefined.c",
];

/// Every question and failure, with and without the wrapper: its streams and its code are the compiler's.
#[test]
fn questions_and_failures_are_the_compilers_own() {
    const NAME: &str = "questions_and_failures_are_the_compilers_own";
    let Some(home) = home(NAME) else { return };
    for (name, text) in [
        ("bad.c", "int f( {\n"),
        ("conftest.c", "int main(void) { return 0; }\n"),
        ("undefined.c", "int g(void); int main(void) { return g(); }\n"),
    ] {
        fs::write(home.path().join(name), text).expect("the folder can be written");
    }
    let ended = |mut started: Command| -> Run {
        let mut run: Run = started.env("LC_ALL", "C").output().expect("it starts").into();
        run.stderr = run.stderr.lines().map(without_names).collect::<Vec<_>>().join("\n");
        run
    };
    for compiler in compilers(NAME) {
        for (index, line) in QUESTIONS_AND_FAILURES.into_iter().enumerate() {
            let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
            let mut alone = Command::new(compiler);
            alone.args(&words).current_dir(home.path()).stdin(Stdio::null()).env_clear();
            alone.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
            let alone = ended(alone);
            for order in ["missing.txt", "order.txt"] {
                let wrapper = ["text", "cc", "--order", order, "--", compiler];
                let wrapped = ended(command(home.path(), [&wrapper[..], &words].concat()));
                let told = wrapped.stderr.clone();
                assert_eq!(
                    (wrapped.exit, wrapped.stdout),
                    (alone.exit, alone.stdout.clone()),
                    "{line}: {told}"
                );
                let is_link = index >= QUESTIONS_AND_FAILURES.len() - 4;
                if is_link && order == "missing.txt" {
                    assert!(
                        told.starts_with("warning: linked without the order: ")
                            && told.ends_with(&alone.stderr)
                    );
                } else if is_link {
                    let (first, rest) = told.split_at(told.len().min(alone.stderr.len()));
                    assert!(first == alone.stderr && rest.contains(&alone.stderr), "{line}: {told}");
                    assert!(rest.contains("note: ") && !told.contains("warning: linked"), "{line}: {told}");
                } else {
                    assert_eq!(told, alone.stderr, "{line}");
                }
            }
        }
    }
    assert_eq!(on(home.path(), "text cc --order order.txt -- no-such-compiler -c f.c").exit, 127);
    assert_eq!(on(home.path(), "text cc --order order.txt -- ./order.txt -c f.c").exit, 126);
}

/// Names of temporary files, addresses and the variables of GCC differ from run to run; sections have the names of
/// their functions where each has its own.
fn without_names(line: &str) -> String {
    let is_name =
        |word: &str| word.contains("/tmp/") || word.contains("(.text") || word.contains("COLLECT_GCC");
    line.split(' ').filter(|word| !is_name(word)).collect::<Vec<_>>().join(" ")
}

#[test]
fn words_in_response_files_are_seen() {
    const NAME: &str = "words_in_response_files_are_seen";
    let Some(home) = home(NAME) else { return };
    fs::write(home.path().join("all.rsp"), "-O1 \"f.c\" 'main.c' @out.rsp\n").expect("a folder");
    fs::write(home.path().join("out.rsp"), "-o prog -fuse-ld=bfd\n").expect("a folder");
    fs::write(home.path().join("half.rsp"), "-c f.c -o f.o").expect("a folder");
    assert_eq!(on(home.path(), "text cc --order order.txt --only prog -- cc @all.rsp").stderr, "");
    assert!(is_ordered(&program(&home.path().join("prog")).0));
    assert_eq!(on(home.path(), "text cc --order order.txt -- cc @half.rsp").exit, 0);
    let sections = program(&home.path().join("f.o")).1.function_sections;
    assert_eq!(sections, Some(true));
    // Of another name it is not meant.
    assert_eq!(on(home.path(), "text cc --order order.txt --only server -- cc @all.rsp").exit, 0);
    assert!(!is_ordered(&program(&home.path().join("prog")).0));
}

#[test]
fn an_order_that_cannot_be_used_never_breaks_a_build() {
    const NAME: &str = "an_order_that_cannot_be_used_never_breaks_a_build";
    let Some(home) = home(NAME) else { return };
    let (linked, link) = (home.path().join("prog"), "cc -fuse-ld=bfd f.c main.c -o prog");
    fs::write(home.path().join("calls"), "f1 f2 100\n").expect("a folder");
    fs::write(home.path().join("own.ld"), "SECTIONS { .own : { *(.own) } } INSERT AFTER .data;\n")
        .expect("a folder");
    for (options, more, strict) in [
        ("--order missing.txt", "", 2),
        ("--order calls", "", 2),
        ("--profile order.txt", "", 2),
        ("--order order.txt", " -Wl,-T,own.ld", 3),
        ("--order order.txt", " -Wl,--section-ordering-file=order.txt", 3),
    ] {
        let _ = fs::remove_file(&linked);
        let refused = on(home.path(), &format!("text cc {options} --strict -- {link}{more}"));
        assert_eq!(refused.exit, strict, "{options}{more}: {}", refused.stderr);
        assert!(!linked.exists(), "{options}{more}: nothing is linked");
        if more.contains("section-ordering-file") {
            // This linker may not know the option: then the link fails by itself.
            continue;
        }
        let run = on(home.path(), &format!("text cc {options} -- {link}{more}"));
        assert_eq!(run.exit, 0, "{options}{more}: {}", run.stderr);
        let warnings =
            run.stderr.lines().filter(|line| line.starts_with("warning: linked without the order: "));
        assert_eq!(warnings.count(), 1, "{}", run.stderr);
        assert!(runs(&linked) && !is_ordered(&program(&linked).0), "{options}{more}");
    }
    for wrong in
        ["text cc --order a --profile b -- cc", "text cc --json --order a -- cc", "text cc --huge 3M -- cc"]
    {
        assert_eq!(on(home.path(), wrong).exit, 2, "{wrong}");
    }
    let json = on(home.path(), "--json text ld --order order.txt -- ld");
    assert_eq!((json.exit, &json.envelope()["exit"]), (2, &2.into()));
}

/// It names the sections that it knows, as those of kernels and ROMs do.
const KERNEL_SCRIPT: &str = "ENTRY(_start)\nSECTIONS {\n  . = 0x100000;\n  .text : { *(.text) }\n  \
    .rodata : { *(.rodata) }\n  .data : { *(.data) }\n  .bss : { *(.bss) *(COMMON) }\n  \
    .symtab 0 : { *(.symtab) }\n  .strtab 0 : { *(.strtab) }\n  .shstrtab 0 : { *(.shstrtab) }\n  \
    /DISCARD/ : { *(.comment) *(.note .note.*) *(.eh_frame) *(.got .got.*) *(.plt .iplt) *(.rela.*) \
    *(.igot.*) *(.gnu.*) }\n}\n";

/// Whatever linker: their layout rests on the names of the sections and on what stands first.
#[test]
fn what_runs_without_an_operating_system_is_built_as_it_is() {
    const NAME: &str = "what_runs_without_an_operating_system_is_built_as_it_is";
    let Some(home) = home(NAME) else { return };
    fs::write(home.path().join("kernel.ld"), KERNEL_SCRIPT).expect("a folder");
    let start = "int f54(int); void _start(void) { for (;;) f54(1); }\n";
    fs::write(home.path().join("start.c"), start).expect("a folder");
    let compile = "-O1 -ffreestanding -fno-pic -fno-stack-protector -fno-asynchronous-unwind-tables";
    let image = home.path().join("image");
    for (linker, flags) in linkers(NAME) {
        let link = format!(
            "{flags} -nostdlib -static -no-pie -Wl,--build-id=none -Wl,--orphan-handling=error -T kernel.ld -o image"
        );
        let apart =
            [format!("{compile} -c f.c"), format!("{compile} -c start.c"), format!("{link} start.o f.o")];
        for steps in [&apart[..], &[format!("{compile} {link} start.c f.c")]] {
            let build = |wrapper: &[&str]| {
                let _ = fs::remove_file(&image);
                let runs = steps.iter().map(|step| {
                    let words = wrapper.iter().copied().chain(step.split(' '));
                    let (program, line) = if wrapper.is_empty() { ("cc", words) } else { (PLANISH, words) };
                    Command::new(program).args(line).current_dir(home.path()).output().expect("it starts")
                });
                runs.map(Run::from).collect::<Vec<_>>()
            };
            if build(&[]).iter().any(|run| run.exit != 0) {
                skip(NAME, format!("{linker} links no such script here"));
                continue;
            }
            let plain = fs::read(&image).expect("it was linked");
            let runs = build(&["text", "cc", "--order", "order.txt", "--", "cc"]);
            assert!(runs.iter().all(|run| run.exit == 0), "{linker}: {runs:?}");
            let told = &runs.last().expect("a link").stderr;
            assert!(told.contains("lays sections out by itself") && told.contains("--link-only"), "{told}");
            assert!(plain == fs::read(&image).expect("it was linked"), "{linker}: it is another image");
        }
    }
}

/// A compiler that does what the script says and is `gcc` by its name.
fn compiler(home: &Path, script: &str) -> PathBuf {
    let path = home.join("gcc");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("the folder can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    path
}

/// It says what it links with, and nothing of a machine.
const ANSWERS: &str = "case \"$*\" in *--version*) echo 'LLD 19.1.7 (compatible with GNU linkers)'; exit 0;;\n\
                       *-dumpmachine*) exit 0;; esac";

#[test]
fn a_link_that_fails_by_the_order_is_done_without() {
    let home = tempfile::tempdir().expect("a temporary folder");
    fs::write(home.path().join("order.txt"), "f\n").expect("a folder");
    let refuses = "case \"$*\" in *symbol-ordering*) echo odd option >&2; exit 7;; esac";
    compiler(home.path(), &format!("{ANSWERS}\n{refuses}\necho \"$@\" > linked; echo plain; exit 0"));
    let link = "-- ./gcc x.o -o prog";
    let run = on(home.path(), &format!("text cc --order order.txt {link}"));
    assert_eq!((run.exit, run.stdout.as_str()), (0, "plain\n"), "{}", run.stderr);
    assert!(
        run.stderr.starts_with("odd option\nwarning: prog is linked without the order"),
        "{}",
        run.stderr
    );
    assert_eq!(fs::read_to_string(home.path().join("linked")).expect("it was linked"), "x.o -o prog\n");
    let strict = on(home.path(), &format!("text cc --order order.txt --strict {link}"));
    assert_eq!((strict.exit, strict.stderr.as_str()), (7, "odd option\n"), "the linker's own code");
    // What fails either way fails by itself: its own reason is told last, with its own code.
    compiler(home.path(), &format!("{ANSWERS}\n{refuses}\necho undefined >&2; exit 9"));
    let run = on(home.path(), &format!("text cc --order order.txt {link}"));
    let told = "odd option\nundefined\nnote: prog is linked neither with the order nor without: ";
    assert!(run.exit == 9 && run.stderr.starts_with(told), "{}", run.stderr);
}

#[test]
fn signals_reach_the_linker_and_end_the_link() {
    let home = tempfile::tempdir().expect("a temporary folder");
    fs::write(home.path().join("order.txt"), "f\n").expect("a folder");
    let waits = "trap 'exit 41' TERM; echo started >> starts; echo ready; while :; do sleep 0.05; done";
    compiler(home.path(), &format!("{ANSWERS}\n{waits}"));
    let linking = command(home.path(), "text cc --order order.txt -- ./gcc x.o".split(' '));
    assert_eq!(asked_to_end(linking), Some(41));
    let starts = fs::read_to_string(home.path().join("starts")).expect("it was started");
    assert_eq!(starts, "started\n", "who asks for an end does not ask for another link");
}

#[test]
fn a_signal_that_make_ignores_ends_no_link() {
    let home = tempfile::tempdir().expect("a temporary folder");
    fs::write(home.path().join("order.txt"), "f\n").expect("a folder");
    compiler(home.path(), &format!("{ANSWERS}\nkill -HUP $PPID; kill -HUP $$; echo linked"));
    let run = run_without_hangups(home.path(), "text cc --order order.txt -- ./gcc x.o");
    assert_eq!((run.exit, run.stdout.as_str(), run.stderr.as_str()), (0, "linked\n", ""));
}

/// A command line that fills what the kernel takes, and other machines than Linux, go by.
#[test]
fn what_has_no_place_for_an_order_is_linked_without() {
    let home = tempfile::tempdir().expect("a temporary folder");
    fs::write(home.path().join("order.txt"), "f\n").expect("a folder");
    let answers = ANSWERS.replace("exit 0;; esac", "echo x86_64-w64-mingw32; exit 0;; esac");
    compiler(home.path(), &format!("{answers}\necho \"$@\""));
    let run = on(home.path(), "text cc --order order.txt -- ./gcc x.o -o prog.exe");
    assert_eq!((run.exit, run.stdout.as_str()), (0, "x.o -o prog.exe\n"));
    assert!(
        run.stderr.starts_with("warning: linked without the order: it links for x86_64-w64-mingw32"),
        "{}",
        run.stderr
    );
    assert_eq!(on(home.path(), "text cc --order order.txt --strict -- ./gcc x.o -o prog.exe").exit, 3);
    compiler(
        home.path(),
        &format!("{ANSWERS}\ncase \"$*\" in *symbol-ordering*) echo ordered;; *) echo plain;; esac"),
    );
    // What the kernel takes is found by trying: a little less has no place for more words.
    let linked = |bytes: usize| {
        let library_paths = |bytes: usize| format!("-L{}", "x".repeat(bytes));
        let mut line: Vec<String> =
            "text cc --order order.txt -- ./gcc x.o".split(' ').map(str::to_owned).collect();
        line.extend((0..bytes / 100_000).map(|_| library_paths(100_000)));
        line.push(library_paths(bytes % 100_000));
        Some(Run::from(command(home.path(), line).output().ok()?))
    };
    let (mut most, mut too_many) = (0, 8 << 20);
    while too_many - most > 8 {
        let middle = (most + too_many) / 2;
        *(if linked(middle).is_some() { &mut most } else { &mut too_many }) = middle;
    }
    let told = |bytes: usize| {
        let run = linked(bytes).expect("it was started before");
        assert_eq!(run.exit, 0, "{}", run.stderr);
        (run.stdout, run.stderr.lines().next().unwrap_or_default().to_owned())
    };
    assert_eq!(told(0), ("ordered\n".to_owned(), String::new()));
    let (stdout, warning) = told(most);
    assert_eq!(stdout, "plain\n");
    assert!(warning.starts_with("warning: linked without the order: Argument list too long"), "{warning}");
}

#[test]
fn the_cost_of_an_order_is_told_when_asked() {
    const NAME: &str = "the_cost_of_an_order_is_told_when_asked";
    let Some(home) = home(NAME) else { return };
    let run = on(home.path(), "text cc --order order.txt --time -- cc -fuse-ld=bfd -O1 f.c main.c -o prog");
    assert_eq!((run.exit, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    let told = run.stderr.strip_prefix("note: prog: ").expect("a note");
    let percent = told.split(" %").next().and_then(|number| number.parse::<f64>().ok());
    assert!(percent.is_some() && told.contains(" s without; each linked once)"), "{told}");
    assert!(is_ordered(&program(&home.path().join("prog")).0), "the second of the two is the one that stays");
}

#[test]
fn a_profile_alone_gives_an_order() {
    const NAME: &str = "a_profile_alone_gives_an_order";
    let Some(home) = home(NAME) else { return };
    fs::write(home.path().join("stacks"), "main;f54;f12 900\nmain;f54 500\nmain;f30 9\n").expect("a folder");
    assert_eq!(on(home.path(), "text import stacks -o hot.planish").exit, 0);
    let run = on(home.path(), "text cc --profile hot.planish -- cc -fuse-ld=bfd -O1 f.c main.c -o prog");
    assert_eq!((run.exit, run.stderr.as_str()), (0, ""));
    let (program, _) = program(&home.path().join("prog"));
    let [caller, callee, cold] = ["f54", "f12", "f13"].map(|name| address(&program, name));
    assert!(caller.abs_diff(callee) < 256 && callee < cold, "{caller:x} {callee:x} {cold:x}");
}

#[test]
fn a_linker_is_wrapped_as_a_compiler_is() {
    const NAME: &str = "a_linker_is_wrapped_as_a_compiler_is";
    let Some(home) = home(NAME) else { return };
    let flags = ["-O1", "-fPIC", "-ffunction-sections", "-c", "f.c"];
    let compiled = Command::new("cc").current_dir(home.path()).args(flags).status();
    assert!(compiled.is_ok_and(|status| status.success()));
    for linker in ["ld.bfd", "ld.gold"] {
        if !Path::new("/usr/bin").join(linker).exists() {
            skip(NAME, format!("no {linker}"));
            continue;
        }
        let run = on(
            home.path(),
            &format!("text ld --order order.txt --huge 2M -- {linker} -shared f.o -o libf.so"),
        );
        assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{linker}");
        let (found, allows) = program(&home.path().join("libf.so"));
        assert!(is_ordered(&found) && allows.congruent && allows.aligned, "{linker}: {allows:?}");
        let told = on(home.path(), &format!("text ld --order missing.txt -- {linker} --version"));
        assert!(told.exit == 0 && told.stdout.contains("GNU") && told.stderr.is_empty(), "{}", told.stderr);
    }
}

/// A folder for the path in which `planish-NAME` is planish.
fn named(home: &Path, names: &[&str]) -> PathBuf {
    let tools = home.join("tools");
    fs::create_dir(&tools).expect("the folder can be written");
    names.iter().for_each(|name| symlink(env!("CARGO_BIN_EXE_planish"), tools.join(name)).expect("a link"));
    tools
}

#[test]
fn one_word_and_a_variable_are_enough_for_make() {
    const NAME: &str = "one_word_and_a_variable_are_enough_for_make";
    let Some(home) = home(NAME) else { return };
    let tools = named(home.path(), &["planish-cc"]);
    let rules = "prog: f.o main.o\n\t$(CC) -fuse-ld=bfd -o $@ $^\n%.o: %.c\n\t$(CC) -O1 -c -o $@ $<\n";
    fs::write(home.path().join("Makefile"), rules).expect("a folder");
    let make = |options: Option<&str>| {
        let mut make = Command::new("make");
        make.args(["-B", "-j2", "CC=planish-cc"]).current_dir(home.path()).env_clear().stdin(Stdio::null());
        make.env("PATH", format!("{}:/usr/bin:/bin", tools.display()));
        if let Some(options) = options {
            make.env("PLANISH_TEXT", options);
        }
        make.output()
    };
    let made = match make(Some("--order order.txt --only 'prog'")) {
        Err(_) => return skip(NAME, "no make"),
        Ok(made) => made,
    };
    assert!(made.status.success() && made.stderr.is_empty(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(is_ordered(&program(&home.path().join("prog")).0));
    // The same build without the variable is that of the compiler alone.
    assert!(make(None).is_ok_and(|made| made.status.success()));
    assert!(!is_ordered(&program(&home.path().join("prog")).0));
    let wrong = make(Some("--odrer x")).expect("make was there");
    let told = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        !wrong.status.success() && told.contains("PLANISH_TEXT: unexpected argument '--odrer'"),
        "{told}"
    );
}

#[test]
fn the_recipe_for_cmake_builds_by_the_order() {
    const NAME: &str = "the_recipe_for_cmake_builds_by_the_order";
    let Some(home) = home(NAME) else { return };
    let rules = "cmake_minimum_required(VERSION 3.21)\nproject(p C)\nset(CMAKE_C_FLAGS -O1)\n\
                 add_executable(prog f.c main.c)\n";
    fs::write(home.path().join("CMakeLists.txt"), rules).expect("a folder");
    let order = home.path().join("order.txt");
    let launcher = format!("{};text;cc;--order;{};--", env!("CARGO_BIN_EXE_planish"), order.display());
    let cmake = |args: &[&str]| {
        let mut cmake = Command::new("cmake");
        cmake
            .args(args)
            .current_dir(home.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null());
        cmake.output()
    };
    let (compile, link) =
        (format!("-DCMAKE_C_COMPILER_LAUNCHER={launcher}"), format!("-DCMAKE_C_LINKER_LAUNCHER={launcher}"));
    let configured = match cmake(&["-S", ".", "-B", "build", &compile, &link]) {
        Err(_) => return skip(NAME, "no cmake"),
        Ok(configured) => configured,
    };
    let told = String::from_utf8_lossy(&configured.stderr).into_owned();
    if told.contains("or higher is required") || told.contains("Unix Makefiles") {
        return skip(NAME, "no cmake of 3.21 or later, or no make");
    }
    assert!(configured.status.success(), "{told}");
    let built = cmake(&["--build", "build"]).expect("cmake was there");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert!(is_ordered(&program(&home.path().join("build/prog")).0));
}

#[test]
fn the_recipe_for_cargo_builds_by_the_order() {
    const NAME: &str = "the_recipe_for_cargo_builds_by_the_order";
    let Some(home) = home(NAME) else { return };
    // The toolchain itself: its proxies would look for their settings in a home that is not there.
    let Some(cargo) = std::env::var_os("CARGO").map(PathBuf::from).filter(|cargo| cargo.is_absolute()) else {
        return skip(NAME, "not run by cargo");
    };
    let toolchain = cargo.parent().expect("a folder").to_owned();
    if !toolchain.join("rustc").exists() {
        return skip(NAME, "no rustc beside cargo");
    }
    let mut source = String::from("use std::hint::black_box;\n");
    for index in 0..FUNCTIONS {
        let _ = writeln!(
            source,
            "#[unsafe(no_mangle)]\n#[inline(never)]\n\
             extern \"C\" fn f{index}(x: u64) -> u64 {{ black_box(x) ^ {index} }}"
        );
    }
    let calls: String = (0..FUNCTIONS).map(|index| format!(" ^ f{index}(x)")).collect();
    let _ = writeln!(source, "fn main() {{ let x = black_box(1); println!(\"{{}}\", x{calls}); }}");
    fs::create_dir(home.path().join("src")).expect("a folder");
    fs::write(home.path().join("src/main.rs"), source).expect("a folder");
    let manifest = "[package]\nname = \"prog\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(home.path().join("Cargo.toml"), manifest).expect("a folder");
    let order = home.path().join("order.txt");
    let settings = format!(
        "[env]\nPLANISH_TEXT = \"--order {} --only prog\"\n[build]\nrustflags = [\"-Clinker=planish-cc\"]\n",
        order.display()
    );
    fs::create_dir(home.path().join(".cargo")).expect("a folder");
    fs::write(home.path().join(".cargo/config.toml"), settings).expect("a folder");
    let tools = named(home.path(), &["planish-cc"]);
    let mut build = Command::new(&cargo);
    build.args(["build", "--offline"]).current_dir(home.path()).env_clear().stdin(Stdio::null());
    build.env("PATH", format!("{}:{}:/usr/bin:/bin", tools.display(), toolchain.display()));
    let built = build.env("HOME", home.path()).env("CARGO_HOME", home.path().join("cargo")).output();
    let built = built.expect("cargo runs this test");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let folder = home.path().join("target/debug");
    // Cargo links `deps/prog-HASH` and gives it its name afterwards.
    let linked = folder.join("prog");
    assert!(runs(&linked));
    assert!(is_ordered(&program(&linked).0));
}
