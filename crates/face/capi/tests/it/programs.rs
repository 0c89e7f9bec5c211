//! The examples as their readers build them: compiled, linked with each library, and run; also under what finds misuse
//! of memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use planish_arena::Arena;
use planish_skip::skip;

use crate::install::{Prefix, checkout, example, is_here, run};

#[path = "../../../../../examples/arena.rs"]
mod arena;
#[path = "../../../../../examples/hugify.rs"]
mod hugify;

struct Language {
    compiler: &'static str,
    source: &'static str,
    flags: &'static [&'static str],
    says: &'static str,
}

const C: Language = Language {
    compiler: "cc",
    source: "examples/arena.c",
    flags: &["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-g"],
    says: "sum 4999950000\n",
};

const CPP: Language = Language {
    compiler: "c++",
    source: "examples/arena.cpp",
    flags: &["-std=c++17", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-g", "-pthread"],
    says: "\nsum ",
};

const C_HUGIFY: Language = Language { source: "examples/hugify.c", says: "bytes of text on huge pages", ..C };

const CPP_HUGIFY: Language =
    Language { source: "examples/hugify.cpp", says: "bytes of text on huge pages", ..CPP };

const SANITIZERS: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Whether the tools are here, or a word why not.
fn has_or_skips(test: &str, tools: &[&str]) -> bool {
    let missing = tools.iter().find(|tool| !is_here(tool));
    missing.inspect(|tool| skip(test, format!("no {tool}"))).is_none()
}

impl Language {
    /// The example as a program, linked by what pkg-config says.
    fn build(&self, prefix: &Prefix, options: &[&str], flags: &[&str]) -> PathBuf {
        let program = prefix.path().join("arena");
        let mut command = Command::new(self.compiler);
        command.args(self.flags).args(flags).arg(checkout().join(self.source)).arg("-o").arg(&program);
        run(command.args(prefix.flags(options)));
        program
    }

    fn check(&self, command: &mut Command) {
        check(command, self.says);
    }
}

fn check(command: &mut Command, says: &str) {
    let output = run(command);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(says), "{text}");
}

/// Has valgrind end with [`MISUSED`] where a program misuses memory, or leaves some that nothing points to.
fn memcheck(valgrind: &mut Command) -> &mut Command {
    valgrind.args(["--quiet", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect"]);
    valgrind.arg(format!("--error-exitcode={MISUSED}"))
}

const MISUSED: i32 = 9;

/// Whether valgrind knows the instructions of programs in Rust that are built as this one is, or a word why not.
fn knows_rust(test: &str) -> bool {
    if cfg!(target_feature = "avx512f") {
        skip(test, "built with AVX-512 (target-cpu), which valgrind does not know");
    }
    !cfg!(target_feature = "avx512f")
}

/// Whether programs of this compiler run with the sanitizers, or a word why not.
fn sanitizes(test: &str, compiler: &str, folder: &Path) -> bool {
    let source = folder.join("empty.c");
    let program = folder.join("empty");
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let mut command = Command::new(compiler);
    let built = command.args(SANITIZERS).arg(&source).arg("-o").arg(&program).output().unwrap();
    let works =
        built.status.success() && Command::new(&program).output().is_ok_and(|run| run.status.success());
    if !works {
        skip(test, format!("{compiler} has no address sanitizer that works here"));
    }
    works
}

/// A compiler of Rust that may be told of sanitizers: the flag is behind a door that a stable one opens by this word.
fn sanitizing(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", RUST_SANITIZER)
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    command
}

const RUST_SANITIZER: &str = "-Zsanitizer=address";

/// Whether programs in Rust run with the address sanitizer, or a word why not.
fn sanitizes_rust(test: &str, folder: &Path) -> bool {
    if !has_or_skips(test, &["rustc", "cargo"]) {
        return false;
    }
    let (source, program) = (folder.join("empty.rs"), folder.join("empty-rust"));
    fs::write(&source, "fn main() {}\n").unwrap();
    let mut rustc = sanitizing("rustc");
    let built = rustc.arg(RUST_SANITIZER).arg(&source).arg("-o").arg(&program).output().unwrap();
    let works =
        built.status.success() && Command::new(&program).output().is_ok_and(|run| run.status.success());
    if !works {
        skip(test, "rustc has no address sanitizer that works here");
    }
    works
}

/// The examples in Rust and the library, built with the address sanitizer; the folder that they lie in.
fn sanitized_examples() -> PathBuf {
    let host = run(Command::new("rustc").arg("--print=host-tuple")).stdout;
    let host = String::from_utf8(host).unwrap().trim().to_owned();
    // Kept, so that the next run builds what has changed. Without a target cargo gives the flags to build scripts, too.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sanitized");
    let mut cargo = sanitizing("cargo");
    cargo.args([
        "build",
        "--locked",
        "--offline",
        "--package=planish-capi",
        "--lib",
        "--examples",
        "--target",
        &host,
    ]);
    run(cargo.env("CARGO_TARGET_DIR", &folder).current_dir(checkout()));
    folder.join(host).join("debug")
}

/// A program in Rust that hands the library an arena which it has freed.
fn using_what_is_freed(built: &Path, folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("freed.rs"), folder.join("freed"));
    let text = "use planish as _;
        unsafe extern \"C\" {
            fn planish_arena_new(options: *const u8, out: *mut *mut u8) -> i32;
            fn planish_arena_used_bytes(arena: *const u8, out: *mut usize) -> i32;
            fn planish_arena_free(arena: *mut u8);
        }
        fn main() {
            let (mut arena, mut bytes) = (std::ptr::null_mut(), 0);
            unsafe {
                assert_eq!(planish_arena_new(std::ptr::null(), &mut arena), 0);
                assert_eq!(planish_arena_used_bytes(arena, &mut bytes), 0);
                if std::env::args().count() > 1 {
                    planish_arena_free(arena);
                    planish_arena_used_bytes(arena, &mut bytes);
                } else {
                    planish_arena_free(arena);
                }
            }
        }\n";
    fs::write(&source, text).unwrap();
    let mut rustc = sanitizing("rustc");
    rustc.args([RUST_SANITIZER, "--edition=2024"]).arg(&source).arg("-o").arg(&program);
    rustc.arg("--extern").arg(format!("planish={}", built.join("libplanish.rlib").display()));
    // Its own crates, and the macros that they were built with, which are of the host.
    for deps in [built.join("deps"), built.join("../../debug/deps")] {
        rustc.arg("-L").arg(format!("dependency={}", deps.display()));
    }
    run(&mut rustc);
    program
}

#[test]
fn the_examples_run_with_the_shared_and_the_static_library() {
    let test = "the_examples_run_with_the_shared_and_the_static_library";
    for language in [C, CPP, C_HUGIFY, CPP_HUGIFY] {
        if !has_or_skips(test, &["pkg-config", language.compiler]) {
            continue;
        }
        let shared = Prefix::with(true, false);
        let program = language.build(&shared, &[], &[]);
        language.check(&mut shared.command(&program));
        let without = Command::new(&program).output().unwrap();
        assert!(!without.status.success(), "it is bound to the shared library: {without:?}");
        let rpath = format!("-Wl,-rpath,{}", shared.libdir());
        language.check(&mut Command::new(language.build(&shared, &[], &[&rpath])));

        let archive = Prefix::with(false, true);
        let program = language.build(&archive, &["--static"], &[]);
        language.check(&mut Command::new(&program));
    }
}

/// The line of `docs/c.md` as it stands there, with the archive that these tests have.
#[test]
fn the_line_for_a_checkout_links_without_pkg_config() {
    if !has_or_skips("the_line_for_a_checkout_links_without_pkg_config", &["cc"]) {
        return;
    }
    let page = fs::read_to_string(checkout().join("docs/c.md")).unwrap();
    let archive = "target/release/libplanish.a";
    let line =
        page.lines().find(|line| line.starts_with("cc ") && line.contains(archive)).expect("it is told");
    let folder = tempfile::tempdir().unwrap();
    let (built, program) = (crate::install::built("libplanish.a"), folder.path().join("arena"));
    let words = line.split(' ').skip(1).map(|word| match word {
        "arena" => program.as_path(),
        word if word == archive => built.as_path(),
        word => Path::new(word),
    });
    run(Command::new("cc").args(words).current_dir(checkout()));
    C.check(&mut Command::new(&program));
}

#[test]
fn the_examples_are_clean_under_sanitizers() {
    let test = "the_examples_are_clean_under_sanitizers";
    for language in [C, CPP, C_HUGIFY, CPP_HUGIFY] {
        if !has_or_skips(test, &["pkg-config", language.compiler]) {
            continue;
        }
        let archive = Prefix::with(false, true);
        if !sanitizes(test, language.compiler, archive.path()) {
            continue;
        }
        let program = language.build(&archive, &["--static"], SANITIZERS);
        language.check(&mut Command::new(&program));
    }
    let folder = tempfile::tempdir().unwrap();
    if !sanitizes_rust(test, folder.path()) {
        return;
    }
    let built = sanitized_examples();
    check(&mut Command::new(built.join("examples/arena")), C.says);
    if planish_sys::pages::thp_bytes().is_some() {
        check(&mut Command::new(built.join("examples/hugify")), C_HUGIFY.says);
    } else {
        skip(test, "hugify: no transparent huge pages");
    }
    // What is freed is read by the library's own code alone: its accesses are looked at.
    let freed = using_what_is_freed(&built, folder.path());
    run(&mut Command::new(&freed));
    let output = Command::new(&freed).arg("freed").output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && talk.contains("AddressSanitizer: heap-use-after-free"), "{talk}");
}

#[test]
fn the_examples_are_clean_under_valgrind() {
    let test = "the_examples_are_clean_under_valgrind";
    for language in [C, CPP, C_HUGIFY, CPP_HUGIFY] {
        if !has_or_skips(test, &["pkg-config", language.compiler, "valgrind"]) {
            continue;
        }
        let shared = Prefix::with(true, false);
        let program = language.build(&shared, &[], &[]);
        language.check(memcheck(&mut shared.command("valgrind")).arg(&program));
    }
}

#[test]
fn the_examples_in_rust_are_clean_under_valgrind() {
    let test = "the_examples_in_rust_are_clean_under_valgrind";
    if !has_or_skips(test, &["valgrind"]) || !knows_rust(test) {
        return;
    }
    check(memcheck(&mut Command::new("valgrind")).arg(example("arena")), C.says);
    if planish_sys::pages::thp_bytes().is_none() {
        return skip(test, "hugify: no transparent huge pages");
    }
    check(memcheck(&mut Command::new("valgrind")).arg(example("hugify")), C_HUGIFY.says);
}

#[test]
fn a_child_forgets_what_it_inherits_and_touches_nothing_of_it() {
    let test = "a_child_forgets_what_it_inherits_and_touches_nothing_of_it";
    if !has_or_skips(test, &["pkg-config", "cc"]) {
        return;
    }
    let archive = Prefix::with(false, true);
    let program = archive.path().join("fork");
    let source = checkout().join("crates/face/capi/tests/it/fork.c");
    let mut cc = Command::new("cc");
    cc.args(C.flags).arg(source).arg("-o").arg(&program).args(archive.flags(&["--static"]));
    run(&mut cc);
    let output = run(&mut Command::new(&program));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "child is done\nparent is done\n");
}

/// A program of C that frees none of its arenas. Eight of them: a stale word on the stack may still point to the last.
fn leaking(archive: &Prefix, flags: &[&str]) -> PathBuf {
    let source = archive.path().join("leak.c");
    let text = "#include <planish.h>\nint main(void) { planish_arena *arena = 0; int index; \
                for (index = 0; index < 8; index++) planish_arena_new(0, &arena); return arena == 0; }\n";
    fs::write(&source, text).unwrap();
    let program = archive.path().join("leak");
    let mut command = Command::new("cc");
    command.args(flags).arg(&source).arg("-o").arg(&program).args(archive.flags(&["--static"]));
    run(&mut command);
    program
}

/// What the tests before would see: an arena that nobody frees.
#[test]
fn a_leak_is_seen() {
    let test = "a_leak_is_seen";
    if !has_or_skips(test, &["pkg-config", "cc"]) {
        return;
    }
    let archive = Prefix::with(false, true);
    if !sanitizes(test, "cc", archive.path()) {
        return;
    }
    let program = leaking(&archive, SANITIZERS);
    let output = Command::new(&program).env("ASAN_OPTIONS", "detect_leaks=1").output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    if talk.contains("LeakSanitizer has encountered a fatal error") {
        return skip(test, "no leak sanitizer here");
    }
    assert!(!output.status.success() && talk.contains("detected memory leaks"), "{talk}");
}

#[test]
fn valgrind_sees_a_leak() {
    let test = "valgrind_sees_a_leak";
    if !has_or_skips(test, &["pkg-config", "cc", "valgrind"]) {
        return;
    }
    let archive = Prefix::with(false, true);
    let program = leaking(&archive, &["-g"]);
    is_seen(memcheck(&mut Command::new("valgrind")).arg(program));
}

fn is_seen(command: &mut Command) {
    let output = command.output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(MISUSED) && talk.contains("definitely lost"), "{talk}");
}

/// Has the next one forget its arenas.
const FORGETS: &str = "PLANISH_FORGETS";

/// Not a test of its own: the program in Rust of the one after it, which needs a process to itself.
#[test]
fn child_that_makes_arenas() {
    for _ in 0..8 {
        let arena = Box::new(Arena::builder().build().unwrap());
        if std::env::var_os(FORGETS).is_some() {
            std::mem::forget(arena);
        }
    }
}

#[test]
fn valgrind_sees_what_rust_forgets_and_nothing_else() {
    let test = "valgrind_sees_what_rust_forgets_and_nothing_else";
    if !has_or_skips(test, &["valgrind"]) || !knows_rust(test) {
        return;
    }
    let child = || {
        let mut valgrind = Command::new("valgrind");
        memcheck(&mut valgrind).arg(std::env::current_exe().unwrap());
        valgrind.args(["--exact", "programs::child_that_makes_arenas", "--test-threads=1"]);
        valgrind
    };
    check(&mut child(), "1 passed");
    is_seen(child().env(FORGETS, "1"));
}

/// Old compilers read the header too, and nothing else needs to be included before it.
#[test]
fn the_header_stands_alone_in_each_standard() {
    let test = "the_header_stands_alone_in_each_standard";
    let folder = tempfile::tempdir().unwrap();
    for (compiler, name, standards) in
        [("cc", "header.c", ["-std=c99", "-std=c17"]), ("c++", "header.cc", ["-std=c++11", "-std=c++20"])]
    {
        if !has_or_skips(test, &[compiler]) {
            continue;
        }
        let source = folder.path().join(name);
        fs::write(
            &source,
            "#include <planish.h>\n#include <planish.h>\nint main(void) { return PLANISH_OK; }\n",
        )
        .unwrap();
        for standard in standards {
            let mut command = Command::new(compiler);
            command.args([standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]);
            run(command.arg("-I").arg(checkout().join("include")).arg(&source));
        }
    }
}

#[test]
fn cmake_finds_both_libraries_wherever_they_lie() {
    let test = "cmake_finds_both_libraries_wherever_they_lie";
    if !has_or_skips(test, &["cmake", "cc", "c++"]) {
        return;
    }
    let prefix = Prefix::with(true, true);
    let source = prefix.path().join("project");
    let build = source.join("build");
    fs::create_dir_all(&build).unwrap();
    let examples = prefix.path().join("share/doc/planish/examples");
    let text = format!(
        "cmake_minimum_required(VERSION 3.13)\nproject(engine C CXX)\nset(CMAKE_CXX_STANDARD 17)\n\
         find_package(planish 0.1 REQUIRED)\nfind_package(Threads REQUIRED)\n\
         add_executable(one {0}/arena.c)\ntarget_link_libraries(one planish::planish)\n\
         add_executable(two {0}/arena.cpp)\ntarget_link_libraries(two planish::static Threads::Threads)\n",
        examples.display()
    );
    fs::write(source.join("CMakeLists.txt"), text).unwrap();
    let configure = |version: &str| {
        let text = fs::read_to_string(source.join("CMakeLists.txt")).unwrap();
        fs::write(
            source.join("CMakeLists.txt"),
            text.replace("planish 0.1 ", &format!("planish {version} ")),
        )
        .unwrap();
        let mut command = Command::new("cmake");
        command.arg("-S").arg(&source).arg("-B").arg(&build);
        command.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.path().display())).output().unwrap()
    };
    let configured = configure("0.1");
    assert!(configured.status.success(), "{}", String::from_utf8_lossy(&configured.stderr));
    run(Command::new("cmake").arg("--build").arg(&build));
    C.check(&mut Command::new(build.join("one")));
    CPP.check(&mut Command::new(build.join("two")));
    // Another minor version is another interface, before 1.0.
    assert!(!configure("0.2").status.success());
}

/// The Rust example is compiled here as it stands, and the test is its `cargo run`.
#[test]
fn the_rust_example_runs() {
    // On a thread of its own: the example changes the affinity of the thread that it runs on.
    std::thread::spawn(|| arena::main().unwrap()).join().unwrap();
}

#[test]
fn the_rust_example_of_text_runs() {
    hugify::main().unwrap();
    // Names for perf, where a copy was made.
    let _ = fs::remove_file(format!("/tmp/perf-{}.map", std::process::id()));
}
