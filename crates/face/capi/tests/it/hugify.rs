//! A program that puts its own text on huge pages: by each route, beside cold text, and under perf.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use planish_hugify::{Image, Probe, Segment};
use planish_skip::skip;

use crate::install::{Prefix, checkout, is_here, run};

const HUGE: usize = 2 << 20;

/// The program, built with these flags, where this machine has what it takes; a word why not.
pub fn build(test: &str, prefix: &Prefix, flags: &[&str]) -> Option<PathBuf> {
    if let Some(tool) = ["pkg-config", "cc"].iter().find(|tool| !is_here(tool)) {
        skip(test, format!("no {tool}"));
        return None;
    }
    if planish_sys::pages::thp_bytes() != Some(HUGE) {
        skip(test, "no transparent huge pages of 2 MiB");
        return None;
    }
    let program = prefix.path().join("hugify");
    let mut cc = compile("cc", flags, &program);
    // Of GCC's run-time library a static program has another part, by the compiler's own doing.
    let is_static = flags.iter().any(|flag| flag.starts_with("-static"));
    let libraries = prefix.flags(&["--static"]).into_iter();
    run(cc.args(libraries.filter(|flag| !(is_static && flag == "-lgcc_s"))));
    Some(program)
}

/// A compiler about to make the program, which has to be told of the library.
pub fn compile(compiler: &str, flags: &[&str], program: &Path) -> Command {
    let source = checkout().join("crates/face/capi/tests/it/hugify.c");
    let mut cc = Command::new(compiler);
    cc.args(["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-g", "-pthread"]);
    cc.arg("-Wl,-z,max-page-size=2097152").args(flags).arg(source).arg("-o").arg(program);
    cc
}

pub fn told(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).unwrap()
}

pub fn number(text: &str, name: &str) -> usize {
    let rest = text.split(name).nth(1).unwrap_or_else(|| panic!("{name} in {text}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// Text of 7 MiB, aligned to huge pages, while threads run it; the same with a byte that somebody has changed.
#[test]
fn text_goes_to_huge_pages_while_threads_run_it() {
    let test = "text_goes_to_huge_pages_while_threads_run_it";
    let archive = Prefix::with(false, true);
    let Some(program) = build(test, &archive, &[]) else { return };
    let text = told(&mut Command::new(&program));
    if text.starts_with("PLANISH_ERROR_NOT_BACKED") {
        return skip(test, format!("no huge pages to be had: {text}"));
    }
    // By the file, which the child has as well, or by the first copy of the order: one that perf has names for.
    let by_file = ["1", "2"].iter().any(|route| text.starts_with(&format!("PLANISH_OK route {route} ")));
    let rest = if by_file { "named 0\nchild 7\n" } else { "named 1\nchild 8\n" };
    assert!(
        by_file || text.starts_with("PLANISH_OK route 3 ") || text.starts_with("PLANISH_OK route 5 "),
        "{text}"
    );
    assert!(text.contains(&format!("\n{rest}again PLANISH_OK\n")), "{text}");
    let (huge, whole) = (number(&text, "huge"), number(&text, " of"));
    assert!(whole >= 4 << 20 && huge * 10 >= whole * 9, "{text}");

    let patched = told(Command::new(&program).arg("patched"));
    if patched.starts_with("not patched") {
        return skip(test, "code cannot be patched here");
    }
    // A kernel that makes huge pages of the file's own needs no copy, and is not refused.
    assert!(
        patched.starts_with("PLANISH_OK route 2") || patched.contains("memory is not what the file says"),
        "{patched}"
    );
    each_route_by_its_name(test, &program);

    let off = told(Command::new(&program).env("PLANISH_HUGIFY", "off"));
    assert!(off.contains("PLANISH_HUGIFY=off") || off.starts_with("PLANISH_OK route 1"), "{off}");
}

/// Of a pool there may be no page, and none of another route is taken for it.
fn each_route_by_its_name(test: &str, program: &Path) {
    let copies = [
        ("anonymous", 3, "named 1\nchild 8\n"),
        ("anonymous,nomap", 3, "named 0\nchild 7\n"),
        ("memfd", 4, "named 0\nchild 7\n"),
        ("hugetlb", 5, "named 1\nchild 8\n"),
    ];
    for (words, number, rest) in copies {
        let text = told(Command::new(program).env("PLANISH_HUGIFY", words));
        if text.starts_with("PLANISH_OK route 1 ") {
            return skip(test, "the page cache has it in huge pieces");
        }
        if text.starts_with("PLANISH_ERROR_NOT_BACKED") {
            let route = words.split(',').next().unwrap_or_default();
            assert!(text.contains(&format!("{route}: ")), "{text}");
            skip(test, format!("{words}: {text}"));
            continue;
        }
        assert!(text.starts_with(&format!("PLANISH_OK route {number} ")), "{text}");
        assert!(text.contains(&format!("\n{rest}again PLANISH_OK\n")), "{words}: {text}");
    }
}

/// Copies a program so that these bytes of it come into the page cache by base pages, and all others by huge ones. By
/// dd: a file that is open for writing here would be inherited by what another test starts, and cannot be executed.
fn write_in_pieces(from: &Path, to: &Path, small: std::ops::Range<usize>) {
    let dd = |piece: usize, start: usize, count: Option<usize>| {
        let mut dd = Command::new("dd");
        dd.arg(format!("if={}", from.display())).arg(format!("of={}", to.display()));
        dd.args([
            &format!("bs={piece}"),
            &format!("skip={}", start / piece),
            &format!("seek={}", start / piece),
        ]);
        dd.args(count.map(|count| format!("count={}", count / piece))).args(["conv=notrunc", "status=none"]);
        run(&mut dd);
    };
    dd(HUGE, 0, Some(small.start));
    dd(4096, small.start, Some(small.end - small.start));
    dd(HUGE, small.end, None);
    run(Command::new("chmod").arg("755").arg(to));
}

/// Huge pages of cold text made "already" of a hot range that lay on base pages, and nothing was done for it.
#[test]
fn cold_text_on_huge_pages_is_none_for_the_hot_range() {
    let test = "cold_text_on_huge_pages_is_none_for_the_hot_range";
    let archive = Prefix::with(false, true);
    let marks = ["-DCOLD", "-Wl,--defsym=__hot_start=big+0x200000", "-Wl,--defsym=__hot_end=big+0x400000"];
    let Some(linked) = build(test, &archive, &marks) else { return };
    let bytes = fs::read(&linked).unwrap();
    let image = Image::parse(&bytes).unwrap();
    let whole = |segment: &Segment| Some((*segment, segment.whole(HUGE as u64)?));
    let (segment, text) = image.text().find_map(whole).expect("it has some");
    if !segment.is_congruent(HUGE as u64) {
        return skip(test, "the linker lays text at offsets that do not fit addresses");
    }
    // From the end of the cold text on, which begins with a whole huge page.
    let hot = usize::try_from(segment.offset_of(text.start)).unwrap() + (22 << 20);
    let program = archive.path().join("mixed");
    write_in_pieces(&linked, &program, hot..bytes.len().next_multiple_of(HUGE));
    let cached = Probe::open(&program, image, HUGE as u64).unwrap().cached().unwrap();
    if cached.huge_bytes < 20 << 20 {
        return skip(test, format!("this file system caches no file in huge pieces: {cached:?}"));
    }
    assert!(cached.huge_bytes < cached.whole_bytes, "the hot range is on base pages: {cached:?}");
    let text = told(&mut Command::new(&program));
    if text.starts_with("PLANISH_ERROR_NOT_BACKED") {
        return skip(test, format!("no huge pages to be had: {text}"));
    }
    assert!(text.starts_with("PLANISH_OK route ") && !text.starts_with("PLANISH_OK route 1 "), "{text}");
    let (huge, whole, before) = (number(&text, "huge"), number(&text, " of"), number(&text, "before"));
    assert!(before == 0 && huge == whole && (2 << 20..=6 << 20).contains(&whole), "{text}");
}

/// A program that stays until it is let go of.
struct Staying {
    child: Child,
    input: Option<ChildStdin>,
    said: String,
}

impl Staying {
    fn start(program: &Path, switch: Option<&str>) -> Self {
        let mut command = Command::new(program);
        command.arg("stays").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env_remove("PLANISH_HUGIFY").envs(switch.map(|switch| ("PLANISH_HUGIFY", switch)));
        let mut child = command.spawn().unwrap();
        let (mut said, input) = (String::new(), child.stdin.take());
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        Self { child, input, said }
    }
}

impl Drop for Staying {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Which share of the samples of a process perf gives the name `big`, attached when the copy is there; `None` where
/// perf takes none.
fn named_share(pid: u32, folder: &Path) -> Option<f64> {
    let data = folder.join("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "--quiet", "-e", "cpu-clock:u", "-F", "499", "-p", &pid.to_string(), "-o"])
        .arg(&data);
    let recorded = perf.args(["--", "sleep", "1"]).output().unwrap();
    if !recorded.status.success() {
        return None;
    }
    let mut perf = Command::new("perf");
    let script = perf.args(["script", "-F", "ip,sym", "-i"]).arg(&data).output().unwrap();
    let script = String::from_utf8_lossy(&script.stdout).into_owned();
    let samples = script.lines().filter(|line| !line.trim().is_empty()).count();
    let named = script.lines().filter(|line| line.trim_end().ends_with(" big")).count();
    (samples >= 20).then(|| named as f64 / samples as f64)
}

/// By a memfd they have none: perf takes its name for that of a file. It was the first copy of the order.
#[test]
fn perf_that_attaches_afterwards_names_the_functions_of_a_copy() {
    let test = "perf_that_attaches_afterwards_names_the_functions_of_a_copy";
    let archive = Prefix::with(false, true);
    let Some(program) = build(test, &archive, &[]) else { return };
    if !is_here("perf") {
        return skip(test, "no perf");
    }
    for switch in [None, Some("anonymous"), Some("hugetlb"), Some("file")] {
        let staying = Staying::start(&program, switch);
        if !staying.said.starts_with("PLANISH_OK") && switch.is_some_and(|switch| switch != "file") {
            skip(test, format!("{switch:?}: {}", staying.said));
            continue;
        }
        let Some(share) = named_share(staying.child.id(), archive.path()) else {
            return skip(test, "perf takes no samples here");
        };
        assert!(share >= 0.9, "{switch:?}: {share} of the samples have a name, {}", staying.said);
    }
}
