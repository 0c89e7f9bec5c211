//! A program on huge pages and what others know of its file: the package manager that brought it, and debuggers that
//! look for what was stripped of it. Packages and their database are made here, below a temporary folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use planish_skip::skip;

use crate::text_huge::{Here, content};

/// A package of one program, in a root of its own.
struct Package<'a> {
    here: &'a Here,
    root: PathBuf,
}

impl<'a> Package<'a> {
    fn new(here: &'a Here) -> Self {
        let root = here.at("root");
        for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "srv"] {
            std::fs::create_dir_all(root.join(folder)).expect("ours");
        }
        for file in ["status", "available"] {
            std::fs::write(root.join("var/lib/dpkg").join(file), "").expect("ours");
        }
        Self { here, root }
    }

    fn program(&self) -> PathBuf {
        self.root.join("srv/engine")
    }

    /// Makes and installs a version whose program has these bytes.
    fn install(&self, version: &str, program: &Path) {
        let folder = self.here.at(&format!("package-{version}"));
        std::fs::create_dir_all(folder.join("DEBIAN")).expect("ours");
        std::fs::create_dir_all(folder.join("srv")).expect("ours");
        let control = format!(
            "Package: engine\nVersion: {version}\nArchitecture: all\nMaintainer: nobody <a@b.invalid>\n\
             Description: an engine\n"
        );
        std::fs::write(folder.join("DEBIAN/control"), control).expect("ours");
        std::fs::copy(program, folder.join("srv/engine")).expect("ours");
        let package = self.here.at(&format!("engine-{version}.deb"));
        let mut build = Command::new("dpkg-deb");
        build.args(["--root-owner-group", "-Zgzip", "--build"]).arg(&folder).arg(&package);
        let built = build.output().expect("it starts");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        self.dpkg(&["--install", package.to_str().expect("text")]);
    }

    /// What dpkg prints.
    fn dpkg(&self, words: &[&str]) -> String {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", self.root.display())).args(["--force-not-root", "--force-bad-path"]);
        let output = dpkg.args(words).env("LC_ALL", "C").output().expect("it starts");
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() || words[0] == "--verify", "{words:?}: {stdout}{stderr}");
        stdout.into_owned()
    }

    fn verify(&self) -> String {
        self.dpkg(&["--verify", "engine"])
    }

    fn planish(&self, words: &str) -> (i32, serde_json::Value) {
        let run = self.here.planish(&words.replace('@', self.program().to_str().expect("text")));
        (run.exit, run.envelope())
    }
}

#[test]
fn a_package_is_verified_upgraded_and_removed_while_its_program_is_on_huge_pages() {
    let test = "a_package_is_verified_upgraded_and_removed_while_its_program_is_on_huge_pages";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        return skip(test, "no dpkg");
    }
    let package = Package::new(&here);
    package.install("1", &here.program());
    let first = content(&package.program());
    assert_eq!(package.verify(), "");
    let path = package.program().to_str().expect("text").to_owned();
    if here.put_on_huge_pages(test, &path).is_none() {
        return;
    }
    // The copy has another p_align: that is what a sum tells, and mode and owner are as they were.
    let told = package.verify();
    assert_eq!(told.split_whitespace().collect::<Vec<_>>(), ["??5??????", "/srv/engine"], "{told}");
    assert_eq!(package.planish("undo").0, 0);
    assert_eq!((package.verify(), content(&package.program())), (String::new(), first.clone()));

    // An upgrade while it is replaced: the new file wins, and nothing of either is lost.
    let Some(entry) = here.put_on_huge_pages(test, &path) else { return };
    let source = std::fs::read_to_string(here.at("engine.c")).expect("ours");
    std::fs::write(here.at("engine.c"), source.replace("return 0;\n}", "return 5;\n}")).expect("ours");
    let next = here.at("next");
    let built = Command::new("cc").arg("-O1").arg(here.at("engine.c")).arg("-o").arg(&next).status();
    assert!(built.expect("it starts").success());
    package.install("2", &next);
    let second = content(&next);
    assert_eq!((package.verify(), content(&package.program())), (String::new(), second.clone()));
    assert_eq!(Command::new(package.program()).status().expect("it starts").code(), Some(5));
    let (exit, checked) = package.planish("check");
    let row = &checked["result"]["texts"][0];
    assert_eq!((exit, &row["file"], &row["entry"]), (1, &"overtaken".into(), &entry), "{checked}");
    let (exit, again) = package.planish("text huge @ --route copy");
    let why = again["result"]["routes"][0]["why"].as_str().expect("a reason").to_owned();
    assert!(exit == 1 && why.contains("somebody has replaced that since"), "{again}");
    let (exit, undone) = package.planish("undo");
    assert_eq!((exit, content(&package.program())), (1, second.clone()), "theirs stays: {undone}");
    assert_eq!(content(&package.root.join("srv/.engine.planish")), first, "and so does the first");
    assert_eq!(package.verify(), "");

    // The new version is put there in its turn, and goes with its package.
    if here.put_on_huge_pages(test, &path).is_none() {
        return;
    }
    assert_ne!(package.verify(), "");
    package.dpkg(&["--remove", "engine"]);
    assert!(!package.program().exists());
    assert_eq!(package.planish("check").1["result"]["texts"][0]["file"], "removed");
    assert_eq!(package.planish("undo").0, 1);
    assert!(!package.program().exists(), "an undo brings back no program that was removed");
    assert_eq!(content(&package.root.join("srv/.engine.planish")), second);
}

/// What gdb finds for a program, and what it tells of its main.
fn asked_of_gdb(program: &Path, folder: &Path) -> String {
    let mut gdb = Command::new("gdb");
    let found = format!("set debug-file-directory {}", folder.display());
    gdb.args([
        "-batch",
        "-nx",
        "-iex",
        &found,
        "-iex",
        "set debuginfod enabled off",
        "-ex",
        "info line main",
    ]);
    let output = gdb.arg(program).env_remove("DEBUGINFOD_URLS").output().expect("it starts");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn build_id(program: &Path) -> Option<String> {
    let output = Command::new("readelf").arg("-n").arg(program).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.trim().strip_prefix("Build ID: ").map(str::to_owned))
}

fn tool(words: &[&dyn AsRef<std::ffi::OsStr>]) {
    let status = Command::new(words[0].as_ref()).args(words[1..].iter().map(AsRef::as_ref)).status();
    assert!(status.expect("it starts").success());
}

#[test]
fn what_was_stripped_of_a_program_is_found_by_build_id_and_by_its_link() {
    let test = "what_was_stripped_of_a_program_is_found_by_build_id_and_by_its_link";
    // lld lays text where it has to be moved inside the file; that of the Rust toolchain serves as well.
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().map(|output| output.stdout);
    let sysroot = String::from_utf8(sysroot.unwrap_or_default()).expect("a path");
    let folder = Path::new(sysroot.trim()).join("lib/rustlib/x86_64-unknown-linux-gnu/bin/gcc-ld");
    let linker = format!("-B{}", folder.display());
    for flags in
        [&["-O1", "-g", "-Wl,--build-id"][..], &["-O1", "-g", "-Wl,--build-id", "-fuse-ld=lld", &linker]]
    {
        let Some(here) = Here::new(test, flags) else { continue };
        if ["gdb", "objcopy", "readelf"]
            .iter()
            .any(|tool| Command::new(tool).arg("--version").output().is_err())
        {
            return skip(test, "no gdb, or no binutils");
        }
        let (program, debug) = (here.program(), here.at("engine.debug"));
        tool(&[&"objcopy", &"--only-keep-debug", &program, &debug]);
        let link = format!("--add-gnu-debuglink={}", debug.display());
        tool(&[&"objcopy", &"--strip-all", &link, &program]);
        let id = build_id(&program).expect("it was asked for");
        let store = here.at("store");
        let by_id = store.join(".build-id").join(&id[..2]);
        std::fs::create_dir_all(&by_id).expect("ours");
        std::fs::copy(&debug, by_id.join(format!("{}.debug", &id[2..]))).expect("ours");
        std::fs::remove_file(&debug).expect("ours");
        std::fs::create_dir_all(here.at(".debug")).expect("ours");
        let (nowhere, linked) = (here.at("nowhere"), here.at(".debug/engine.debug"));
        let found = |told: &str| told.contains("engine.c\" starts at address");
        let look = || {
            let by_id_told = asked_of_gdb(&program, &store);
            let without = asked_of_gdb(&program, &nowhere);
            std::fs::copy(by_id.join(format!("{}.debug", &id[2..])), &linked).expect("ours");
            let by_link = asked_of_gdb(&program, &nowhere);
            std::fs::remove_file(&linked).expect("ours");
            [found(&by_id_told), found(&without), found(&by_link)]
        };
        assert_eq!(look(), [true, false, true], "as it is linked, with {flags:?}");
        if here.put_on_huge_pages(test, "engine").is_none() {
            return;
        }
        assert_eq!(build_id(&program), Some(id.clone()));
        assert_eq!(look(), [true, false, true], "with {flags:?}");
        assert_eq!(here.planish("undo").exit, 0);
        assert_eq!(look(), [true, false, true], "and after undo");
    }
}
