//! `planish run --malloc`: that the heap is the allocator's, beside what else is wanted, and on which pages it lies.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::planish::{Run, command, copy_program, run};
use crate::run::{python_or_skip, reported};

/// Each allocator, and a program of Python that prints its version, by functions that it alone has, and whether it is
/// what Python allocated `block` by.
const MALLOCS: [(&str, &str); 3] = [
    (
        "jemalloc",
        "def told(name, kind):
    value, size = kind(), ctypes.c_size_t(ctypes.sizeof(kind))
    failed = own.mallctl(name, ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0))
    return failed or value.value
before = told(b'thread.allocated', ctypes.c_uint64)
block = bytearray(2 << 20)
print(told(b'version', ctypes.c_char_p).decode())
print(told(b'thread.allocated', ctypes.c_uint64) - before >= 1 << 20)",
    ),
    (
        "tcmalloc",
        "def allocated():
    value = ctypes.c_size_t()
    is_known = own.MallocExtension_GetNumericProperty(b'generic.current_allocated_bytes', ctypes.byref(value))
    return value.value if is_known else None
own.tc_version.restype = ctypes.c_char_p
before = allocated()
block = bytearray(2 << 20)
print(own.tc_version(None, None, None).decode())
print(allocated() - before >= 1 << 20)",
    ),
    (
        "mimalloc",
        "own.mi_is_in_heap_region.restype = ctypes.c_bool
block = bytearray(2 << 20)
at = ctypes.addressof(ctypes.c_char.from_buffer(block))
other = ctypes.addressof(ctypes.c_char.in_dll(own, 'environ'))
print(own.mi_version())
print(own.mi_is_in_heap_region(ctypes.c_void_p(at)) and not own.mi_is_in_heap_region(ctypes.c_void_p(other)))",
    ),
];

/// A program of Python that maps a segment, and prints of which library its functions of a heap are.
const ASKS: &str = "import ctypes, mmap, time
own = ctypes.CDLL(None)
kept = mmap.mmap(-1, 4 << 20)
def library(name):
    at = ctypes.cast(getattr(own, name), ctypes.c_void_p).value
    for line in open('/proc/self/maps'):
        begin, end = (int(word, 16) for word in line.split()[0].split('-'))
        if begin <= at < end:
            return line.split(None, 5)[5].strip().rsplit('/', 1)[1]
print(*(library(name) for name in ('malloc', 'calloc', 'realloc', 'free', 'posix_memalign')))
";

/// What `LD_PRELOAD` is to be for a program.
fn preloads(report: &Value) -> &str {
    let variables = report["result"]["instances"][0]["variables"].as_array().expect("variables");
    let preload = variables.iter().find(|variable| variable["name"] == "LD_PRELOAD");
    preload.and_then(|variable| variable["value"].as_str()).expect("something is preloaded")
}

/// The library of an allocator; where it is not installed, that is told. No other refusal counts as that.
fn library_or_skip(test: &str, malloc: &str) -> Option<PathBuf> {
    let (ended, report) = reported(&["--malloc", malloc], &["true"]);
    if ended.exit == 0 {
        return Some(preloads(&report).into());
    }
    let is_absent = ended.exit == 125 && ended.stderr.contains("is installed for the libc of the program");
    assert!(is_absent, "{malloc}: {}: {}", ended.exit, ended.stderr);
    planish_skip::skip(test, format!("no {malloc}: {}", ended.stderr.trim()));
    None
}

#[test]
fn the_heap_of_a_program_is_that_of_each_allocator() {
    const TEST: &str = "the_heap_of_a_program_is_that_of_each_allocator";
    if !python_or_skip(TEST) {
        return;
    }
    for (malloc, answers) in MALLOCS {
        let Some(library) = library_or_skip(TEST, malloc) else { continue };
        let program = format!("{ASKS}{answers}\ntime.sleep(4)");
        // The preload of planish stands in front of the allocator, and both do what they are for.
        let placed = ["--prefault-threads", "1", "--min", "1M", "--verify-after", "2"];
        for besides in [&placed[..0], &placed[..]] {
            let options = [&["--malloc", malloc][..], besides].concat();
            let (ended, report) = reported(&options, &["python3", "-c", &program]);
            assert_eq!(ended.exit, 0, "{options:?}: {}", ended.stderr);
            let lines: Vec<&str> = ended.stdout.lines().collect();
            let [libraries, version, is_its] = lines[..] else { panic!("{options:?}: {}", ended.stdout) };
            let begin = format!("lib{malloc}");
            // A program that takes the address of a function has an entry of its own for it, as an interpreter may.
            let (of_it, others): (Vec<&str>, Vec<&str>) =
                libraries.split(' ').partition(|name| name.starts_with(&begin));
            assert!(
                of_it.len() >= 3 && others.iter().all(|name| name.starts_with("python")),
                "{options:?}: malloc, calloc, realloc, free and posix_memalign are of {libraries}"
            );
            assert!(version.contains(|letter: char| letter.is_ascii_digit()), "{options:?}: {version}");
            assert_eq!(is_its, "True", "{options:?}: who gave Python its memory");
            let segments = &report["result"]["instances"][0]["segments"];
            let (count, preloads) = (segments.as_array().expect("segments").len(), preloads(&report));
            let (is_first, last) = (preloads.contains("/planish-preload-"), library.to_str().expect("text"));
            assert_eq!((count, is_first), (besides.len().min(1), !besides.is_empty()), "{}", ended.stderr);
            assert!(preloads.ends_with(last), "{options:?}: {preloads}");
        }
    }
}

/// What a refusal tells to do when the library lies in a folder of its own.
#[test]
fn an_allocator_in_a_folder_of_its_own_is_taken_from_there() {
    const TEST: &str = "an_allocator_in_a_folder_of_its_own_is_taken_from_there";
    for (malloc, _) in MALLOCS {
        let Some(library) = library_or_skip(TEST, malloc) else { continue };
        let home = tempfile::tempdir().expect("a temporary folder");
        let own = home.path().join(library.file_name().expect("a file"));
        copy_program(&library, &own);
        let words = ["run", "--malloc", malloc, "--", "grep", "-F", own.to_str().expect("text")];
        let mut maps = command(home.path(), [&words[..], &["/proc/self/maps"]].concat());
        let ran = Run::from(maps.env("LD_LIBRARY_PATH", home.path()).output().expect("it starts"));
        assert_eq!(ran.exit, 0, "grep has it mapped: {}{}", ran.stdout, ran.stderr);
    }
}

/// A library of glibc would end a program of musl at its start, so that to such a one none is installed.
#[test]
fn an_allocator_that_is_not_there_is_refused_with_the_cure() {
    const TEST: &str = "an_allocator_that_is_not_there_is_refused_with_the_cure";
    let home = tempfile::tempdir().expect("a temporary folder");
    let [source, program] = ["musl.c", "musl"].map(|name| home.path().join(name));
    std::fs::write(&source, "int puts(const char *); int main(void) { puts(\"started\"); }").expect("room");
    let loader = format!("-Wl,--dynamic-linker=/lib/ld-musl-{}.so.1", std::env::consts::ARCH);
    let mut cc = Command::new("cc");
    let built = cc.arg("-o").arg(&program).arg(&source).arg(&loader).output();
    if !built.is_ok_and(|output| output.status.success()) {
        return planish_skip::skip(TEST, "no C compiler");
    }
    let program = program.to_str().expect("text");
    for (malloc, _) in MALLOCS {
        let (ended, report) = reported(&["--malloc", malloc], &[program]);
        assert_eq!((ended.exit, ended.stdout.as_str()), (125, ""), "{malloc}: {}", ended.stderr);
        let why = report["messages"][0]["text"].as_str().expect("text");
        assert!(why.contains(&format!("lib{malloc}")), "{why}");
        assert!(why.ends_with("is installed for the libc of the program"), "{why}");
        let cure = report["messages"][0]["hint"].as_str().expect("text");
        assert!(cure.starts_with(&format!("find its package by {malloc} (apt search")), "{cure}");
        assert!(cure.ends_with("LD_LIBRARY_PATH=FOLDER"), "{cure}");
        assert!(ended.stderr.contains(why) && ended.stderr.contains(cure), "{}", ended.stderr);
    }
}

#[test]
fn an_allocator_without_huge_pages_names_those_that_have_them() {
    const TEST: &str = "an_allocator_without_huge_pages_names_those_that_have_them";
    if library_or_skip(TEST, "tcmalloc").is_none() {
        return;
    }
    let ran = run(["run", "--malloc", "tcmalloc", "--huge", "heap", "--", "echo", "started"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (125, ""), "{}", ran.stderr);
    if ran.stderr.contains("switched off") {
        return planish_skip::skip(TEST, ran.stderr);
    }
    assert!(ran.stderr.contains("tcmalloc cannot put a heap on transparent huge pages"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--malloc jemalloc or --malloc mimalloc"), "{}", ran.stderr);
}

/// Bytes of private memory on pages of each backing, of the largest process.
fn private_on(report: &Value, backing: &str) -> u64 {
    let processes = report["result"]["instances"][0]["private"].as_array().expect("processes");
    let bytes = |process: &Value| -> u64 {
        let shares = process["shares"].as_array().expect("shares").iter();
        let on_it = shares.filter(|share| backing.is_empty() || share["backing"] == backing);
        on_it.filter_map(|share| share["resident_bytes"].as_u64()).sum()
    };
    processes.iter().map(bytes).max().unwrap_or(0)
}

/// A program whose heap grows to some 100 MB, in pieces that malloc takes from it; it prints how many KiB of its memory
/// the kernel says lie on huge pages, transparent ones or of a pool, which mimalloc tries first.
const GROWS: &str = "import time
kept = [bytearray(b'x' * 100000) for _ in range(1000)]
time.sleep(7)
words = open('/proc/self/smaps_rollup').read().split()
print(sum(int(words[words.index(name) + 1]) for name in ('AnonHugePages:', 'Private_Hugetlb:')))";

#[test]
fn a_heap_has_huge_pages_by_each_allocator_that_can() {
    const TEST: &str = "a_heap_has_huge_pages_by_each_allocator_that_can";
    if !python_or_skip(TEST) {
        return;
    }
    for malloc in ["", "jemalloc", "mimalloc"] {
        let mut options = vec!["--huge", "heap"];
        if !malloc.is_empty() {
            if library_or_skip(TEST, malloc).is_none() {
                continue;
            }
            options.extend(["--malloc", malloc]);
        }
        let (ended, report) = reported(&options, &["python3", "-c", GROWS]);
        if ended.exit == 125 {
            // A malloc before glibc 2.35; switched off.
            let is_known = ["cannot put a heap on", "switched off"].map(|why| ended.stderr.contains(why));
            assert!(is_known.contains(&true), "{malloc}: {}", ended.stderr);
            planish_skip::skip(TEST, format!("{malloc}: {}", ended.stderr));
            continue;
        }
        assert_eq!(ended.exit, 0, "{}", ended.stderr);
        let all = private_on(&report, "");
        let huge = private_on(&report, "thp") + private_on(&report, "hugetlb");
        assert!(all > 90_000_000 && huge > all / 2, "{malloc}: {huge} of {all}: {}", ended.stderr);
        assert!(!ended.stderr.contains("private memory:"), "{malloc}: {}", ended.stderr);
        let by_kernel: u64 = ended.stdout.trim().parse().expect("a number");
        assert!(by_kernel * 1024 > all / 2, "{malloc}: {by_kernel} KiB of {all} bytes, by the kernel");
    }
}
