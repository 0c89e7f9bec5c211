//! A program that puts its own text on huge pages where it is hard: under probes, and for programs of every kind of
//! link.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use planish_skip::skip;
use planish_skip::uprobe::Uprobe;

use crate::hugify::{build, compile, number, told};
use crate::install::{Prefix, checkout, is_here, run};

/// A program that does what it is told.
struct Obeying {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Obeying {
    fn start(program: &Path, route: &str) -> Self {
        let mut command = Command::new(program);
        command.arg("obeys").env("PLANISH_HUGIFY", route).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// The line that it answers a word with.
    fn told(&mut self, word: &str) -> String {
        let mut input = self.input.as_ref().unwrap();
        writeln!(input, "{word}").unwrap_or_else(|error| panic!("{word}: {error}, {:?}", self.child.wait()));
        self.line()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What came of the call, and why it came to no more.
    fn huge(&mut self) -> (String, String) {
        (self.told("huge"), self.line())
    }

    /// Has it run its code in all ways: twice itself, once in a child, and in a child that executes the program.
    fn run_in_all_ways(&mut self, case: &str) {
        let words = ["run", "run", "fork", "exec"];
        let answers = words.map(|word| self.told(word));
        assert_eq!(answers, ["ran", "ran", "left 7", "left 7"], "{case}");
    }

    /// Lets it go.
    fn code(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().unwrap().code()
    }
}

impl Drop for Obeying {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// On an instruction in the middle of the code, on a huge page that the text fills: each run meets it once.
fn arm(test: &str, program: &Path) -> Option<Uprobe> {
    Uprobe::arm(test, program, "big", 4 << 20)
}

/// Whether text lies on huge pages as that of its file: by the page cache, or made so by the kernel.
fn is_of_file(said: &str) -> bool {
    ["1", "2"].iter().any(|route| said.starts_with(&format!("PLANISH_OK route {route} ")))
}

/// In a copy of memory its breakpoint would have no owner, and be the end of the program.
#[test]
fn a_probe_that_is_armed_before_refuses_each_copy_and_counts_on() {
    let test = "a_probe_that_is_armed_before_refuses_each_copy_and_counts_on";
    let archive = Prefix::with(false, true);
    let Some(program) = build(test, &archive, &[]) else { return };
    for route in ["", "file", "anonymous", "memfd", "hugetlb"] {
        let mut obeying = Obeying::start(&program, route);
        let Some(probe) = arm(test, &program) else { return };
        assert_eq!(obeying.told("run"), "ran", "{route}");
        let (said, why) = obeying.huge();
        if !is_of_file(&said) {
            assert!(said.starts_with("PLANISH_ERROR_NOT_BACKED route 0 "), "{route}: {said}");
            let is_seen = why.contains("memory is not what the file says: a uprobe");
            match route {
                "file" => assert!(why.contains("file: "), "{why}"),
                _ if is_seen => {}
                // No memory for a copy, with which memory would have been compared.
                _ => skip(test, format!("{route}: {why}")),
            }
        }
        obeying.run_in_all_ways(route);
        assert_eq!(obeying.code(), Some(7), "{route}");
        // One before, two behind, one of a child, and two of the child that executes the program.
        assert_eq!(probe.hits(), 6, "{route}: {said}");
    }
    // One that has gone is no hindrance.
    let mut obeying = Obeying::start(&program, "anonymous");
    let Some(probe) = arm(test, &program) else { return };
    assert_eq!(obeying.told("run"), "ran");
    assert_eq!(probe.hits(), 1);
    let (said, why) = obeying.huge();
    assert!(!why.contains("memory is not"), "{said}: {why}");
    obeying.run_in_all_ways("without a probe");
    assert_eq!(obeying.code(), Some(7));
}

/// A copy is no page of the file, which a uprobe is set in: it misses whoever has one, and nobody dies of it.
#[test]
fn a_probe_that_is_armed_afterwards_misses_a_copy_and_the_program_lives() {
    let test = "a_probe_that_is_armed_afterwards_misses_a_copy_and_the_program_lives";
    let archive = Prefix::with(false, true);
    let Some(program) = build(test, &archive, &[]) else { return };
    for route in ["file", "anonymous", "memfd", "hugetlb"] {
        let mut obeying = Obeying::start(&program, route);
        let (said, why) = obeying.huge();
        let is_copy = said.starts_with("PLANISH_OK") && !is_of_file(&said);
        if !is_copy && route != "file" {
            skip(test, format!("{route}: {said} {why}"));
            continue;
        }
        let Some(probe) = arm(test, &program) else { return };
        obeying.run_in_all_ways(route);
        assert_eq!(obeying.code(), Some(7), "{route}");
        // Of a copy the program that a child executes is the only one that has the file's own pages.
        assert_eq!(probe.hits(), if is_copy { 1 } else { 5 }, "{route}: {said}");
    }
}

#[test]
fn programs_of_every_kind_of_link_go_on_and_have_huge_pages_or_are_told() {
    let test = "programs_of_every_kind_of_link_go_on_and_have_huge_pages_or_are_told";
    let archive = Prefix::with(false, true);
    let kinds: [&[&str]; 6] = [
        &["-pie", "-fPIE"],
        &["-no-pie"],
        &["-s"],
        &["-static"],
        &["-static-pie", "-fPIE"],
        &["-static", "-s"],
    ];
    for flags in kinds {
        let Some(program) = build(test, &archive, flags) else { return };
        goes_on(test, &program, flags.contains(&"-s"), &flags.join(" "));
    }
    // As linkers align a PIE by themselves, the loader puts one in 512 of them at a boundary.
    let Some(program) = build(test, &archive, &["-pie", "-fPIE", "-Wl,-z,max-page-size=4096"]) else {
        return;
    };
    let mut obeying = Obeying::start(&program, "anonymous");
    let (said, why) = obeying.huge();
    let is_told =
        said.starts_with("PLANISH_ERROR_NOT_BACKED ") && why.contains("link it with -z max-page-size");
    assert!(is_told || said.starts_with("PLANISH_OK "), "{said}: {why}");
    obeying.run_in_all_ways("a PIE aligned to base pages");
    assert_eq!(obeying.code(), Some(7));
}

#[test]
fn a_static_program_by_musl_goes_on_and_has_huge_pages() {
    let test = "a_static_program_by_musl_goes_on_and_has_huge_pages";
    let archive = Prefix::with(false, true);
    // What the other programs want as well: huge pages.
    if build(test, &archive, &[]).is_none() {
        return;
    }
    let Some(program) = built_by_musl(test, &archive) else { return };
    goes_on(test, &program, false, "musl-gcc -static");
}

/// While two threads run its code, and without: huge pages are had, and it does what it did.
fn goes_on(test: &str, program: &Path, is_stripped: bool, kind: &str) {
    for (route, number_of_route) in [("anonymous", 3), ("memfd", 4)] {
        let text = told(Command::new(program).env("PLANISH_HUGIFY", route));
        if text.starts_with("PLANISH_ERROR_NOT_BACKED") {
            // It was had by no other program, or it is this kind's fault.
            assert!(
                text.contains("the kernel has huge pages for") || text.contains("memory"),
                "{kind}: {text}"
            );
            skip(test, format!("{kind}, {route}: {text}"));
            continue;
        }
        let is_copy = text.starts_with(&format!("PLANISH_OK route {number_of_route} "));
        assert!(is_copy || is_of_file(&text), "{kind}: {text}");
        let rest = match is_copy && route == "anonymous" && !is_stripped {
            true => "named 1\nchild 8\n",
            false => "named 0\nchild 7\n",
        };
        assert!(text.contains(&format!("\n{rest}again PLANISH_OK\n")), "{kind}, {route}: {text}");
        let (huge, whole) = (number(&text, "huge"), number(&text, " of"));
        assert!(whole >= 4 << 20 && huge * 10 >= whole * 9, "{kind}, {route}: {text}");

        let mut obeying = Obeying::start(program, route);
        let (said, why) = obeying.huge();
        obeying.run_in_all_ways(&format!("{kind}, {route}: {said} {why}"));
        assert_eq!(obeying.code(), Some(7), "{kind}, {route}: {said} {why}");
    }
}

/// The program by musl, static, with a library that is built for it; `None`, and a word why, where a tool is missing.
fn built_by_musl(test: &str, archive: &Prefix) -> Option<PathBuf> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    if !["musl-gcc", "cargo", "rustc"].iter().all(|tool| is_here(tool)) {
        skip(test, "no musl-gcc (apt-get install musl-tools), or no cargo");
        return None;
    }
    let libraries = run(Command::new("rustc").args(["--print", "target-libdir", "--target", &target])).stdout;
    // Libraries for musl leave out the unwinder, of which GCC has the one that wants a glibc.
    let unwinder = Path::new(String::from_utf8(libraries).unwrap().trim()).join("self-contained/libunwind.a");
    if !unwinder.is_file() {
        skip(test, format!("no {target}: rustup target add {target}"));
        return None;
    }
    // Kept, so that the next run builds what has changed.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("musl");
    let mut cargo = Command::new("cargo");
    cargo.args(["rustc", "--locked", "--offline", "--profile=ci", "--package=planish-capi", "--lib"]);
    cargo.args(["--crate-type=staticlib", "--target", &target]);
    run(cargo.env("CARGO_TARGET_DIR", &folder).current_dir(checkout()));
    let program = archive.path().join("hugify-musl");
    let mut cc = compile("musl-gcc", &["-static"], &program);
    cc.arg("-I").arg(checkout().join("include"));
    run(cc.arg(folder.join(target).join("ci/libplanish.a")).arg(unwinder));
    Some(program)
}
