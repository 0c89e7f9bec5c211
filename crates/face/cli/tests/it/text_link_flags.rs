//! The lines that `planish text link-flags` prints, in the builds that they are for.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use planish_profile::Program;
use planish_skip::skip;

use crate::planish::{Run, command};

const ORDER: [&str; 4] = ["f31", "f7", "f22", "f3"];

fn on(home: &Path, line: &str) -> Run {
    command(home, line.split(' ')).output().expect("the binary starts").into()
}

/// The lines alone, as they go into a file.
fn lines(home: &Path, words: &str) -> String {
    let run = on(home, &format!("text link-flags --order order.txt --json {words}"));
    assert_eq!(run.exit, 0, "{words}: {}", run.stdout);
    run.envelope()["result"]["recipe"].as_str().expect("lines for a tool").to_owned()
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("order.txt"), ORDER.join("\n") + "\n").expect("a folder");
    home
}

fn is_ordered(path: &Path) -> bool {
    let bytes = fs::read(path).expect("it was linked");
    let program = Program::parse("linked", &bytes).expect("an ELF file");
    let address = |name: &str| {
        let index = program.by_name(name).unwrap_or_else(|| panic!("{name} is not there"));
        program.functions()[index as usize].address
    };
    let at = ORDER.map(address);
    at.is_sorted() && at[3] - at[0] < 1024
}

#[test]
fn the_lines_for_cargo_build_with_cargo() {
    const NAME: &str = "the_lines_for_cargo_build_with_cargo";
    // The toolchain itself: its proxies would look for their settings in a home that is not there.
    let Some(cargo) = std::env::var_os("CARGO").map(PathBuf::from).filter(|cargo| cargo.is_absolute()) else {
        return skip(NAME, "not run by cargo");
    };
    let toolchain = cargo.parent().expect("a folder").to_owned();
    if !toolchain.join("rustc").exists() {
        return skip(NAME, "no rustc beside cargo");
    }
    let home = home();
    let mut source = String::from("use std::hint::black_box;\n");
    for index in 0..40 {
        let _ = writeln!(
            source,
            "#[unsafe(no_mangle)]\n#[inline(never)]\n\
             extern \"C\" fn f{index}(x: u64) -> u64 {{ black_box(x) ^ {index} }}"
        );
    }
    let calls: String = (0..40).map(|index| format!(" ^ f{index}(x)")).collect();
    let _ = writeln!(source, "fn main() {{ let x = black_box(1); println!(\"{{}}\", x{calls}); }}");
    for folder in ["src", ".cargo"] {
        fs::create_dir(home.path().join(folder)).expect("a folder");
    }
    let manifest = "[package]\nname = \"prog\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    let settings = lines(home.path(), "--for cargo --huge");
    for (name, text) in
        [("src/main.rs", source.as_str()), ("Cargo.toml", manifest), (".cargo/config.toml", &settings)]
    {
        fs::write(home.path().join(name), text).expect("a folder");
    }
    let mut build = Command::new(&cargo);
    build.args(["build", "--offline"]).current_dir(home.path()).env_clear().stdin(Stdio::null());
    build.env("PATH", format!("{}:/usr/bin:/bin", toolchain.display()));
    let built = build.env("HOME", home.path()).env("CARGO_HOME", home.path().join("cargo")).output();
    let built = built.expect("cargo runs this test");
    let told = String::from_utf8_lossy(&built.stderr).into_owned();
    if told.contains("cannot find 'ld'") || told.contains("unable to find library") {
        return skip(NAME, "this compiler driver finds no lld");
    }
    assert!(built.status.success(), "{settings}{told}");
    assert!(is_ordered(&home.path().join("target/debug/prog")), "{settings}");
    let gcc = on(home.path(), "text link-flags --for cargo --compiler gcc");
    assert!(gcc.exit == 2 && gcc.stderr.contains("rustc"), "{}", gcc.stderr);
}

#[test]
fn the_lines_for_cmake_build_with_cmake() {
    const NAME: &str = "the_lines_for_cmake_build_with_cmake";
    let home = home();
    let there =
        |name: &str| Command::new(name).arg("--version").output().is_ok_and(|told| told.status.success());
    // Where the driver finds its linker: gold is beside GCC, and lld beside clang.
    let pairs =
        [("cc", "gcc", "gold", "/usr/bin/ld.gold"), ("clang-19", "clang", "lld", "/usr/bin/ld.lld-19")];
    let functions: String = (0..40)
        .map(|index| {
            format!("__attribute__((noinline, used)) int f{index}(int x) {{ return (x * {index}) ^ x; }}\n")
        })
        .collect();
    fs::write(home.path().join("f.c"), functions + "int main(int c, char **v) { return f31(c) < 0; }\n")
        .expect("a folder");
    for (program, compiler, linker, found_at) in pairs {
        if !there("cmake") || !there("make") || !there(program) || !Path::new(found_at).exists() {
            skip(NAME, format!("no cmake, make, {program} or {linker}"));
            continue;
        }
        if linker == "gold" {
            let sections: String = ORDER.iter().map(|name| format!(".text.{name}\n")).collect();
            fs::write(home.path().join("order.txt"), sections).expect("a folder");
        } else {
            fs::write(home.path().join("order.txt"), ORDER.join("\n") + "\n").expect("a folder");
        }
        let recipe = lines(home.path(), &format!("--for cmake --compiler {compiler} --linker {linker}"));
        let rules =
            format!("cmake_minimum_required(VERSION 3.13)\nproject(p C)\n{recipe}add_executable(prog f.c)\n");
        fs::write(home.path().join("CMakeLists.txt"), rules).expect("a folder");
        let build = format!("build-{compiler}");
        let asked = format!("-DCMAKE_C_COMPILER={program}");
        for args in [&["-S", ".", "-B", &build, &asked][..], &["--build", &build]] {
            let mut cmake = Command::new("cmake");
            cmake.args(args).current_dir(home.path()).env_clear().env("PATH", "/usr/bin:/bin");
            let ran = cmake.stdin(Stdio::null()).output().expect("it is there");
            let told = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(ran.status.success(), "{recipe}{told}");
        }
        assert!(is_ordered(&home.path().join(build).join("prog")), "{recipe}");
    }
}
