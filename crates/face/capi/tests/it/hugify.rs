//! A program that puts its own text on huge pages: by each route, and beside cold text.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use planish_hugify::{Image, Probe, Segment};
use planish_skip::skip;

use crate::install::{Prefix, checkout, is_here, run};

const HUGE: usize = 2 << 20;

/// The program, built with these flags, where this machine has what it takes; a word why not.
fn build(test: &str, prefix: &Prefix, flags: &[&str]) -> Option<PathBuf> {
    if let Some(tool) = ["pkg-config", "cc"].iter().find(|tool| !is_here(tool)) {
        skip(test, format!("no {tool}"));
        return None;
    }
    if planish_sys::pages::thp_bytes() != Some(HUGE) {
        skip(test, "no transparent huge pages of 2 MiB");
        return None;
    }
    let program = prefix.path().join("hugify");
    let source = checkout().join("crates/face/capi/tests/it/hugify.c");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-g", "-pthread"]);
    cc.arg("-Wl,-z,max-page-size=2097152").args(flags).arg(source).arg("-o").arg(&program);
    run(cc.args(prefix.flags(&["--static"])));
    Some(program)
}

fn told(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).unwrap()
}

fn number(text: &str, name: &str) -> usize {
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
    assert!(
        text.starts_with("PLANISH_OK route ") && text.contains("\nchild 7\nagain PLANISH_OK\n"),
        "{text}"
    );
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
    for (word, number) in [("memfd", 4), ("anonymous", 3), ("hugetlb", 5)] {
        let text = told(Command::new(program).env("PLANISH_HUGIFY", format!("{word},map")));
        if text.starts_with("PLANISH_OK route 1 ") {
            return skip(test, "the page cache has it in huge pieces");
        }
        if text.starts_with("PLANISH_ERROR_NOT_BACKED") {
            assert!(text.contains(&format!("{word}: ")), "{text}");
            skip(test, format!("{word}: {text}"));
            continue;
        }
        let is_named = text.contains("\nnamed 1\n");
        assert!(
            text.starts_with(&format!("PLANISH_OK route {number} ")) && is_named == (word != "memfd"),
            "{text}"
        );
        assert!(text.contains("\nchild 7\nagain PLANISH_OK\n"), "{text}");
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
