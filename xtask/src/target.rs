//! What is built for which machines: binaries that must start on any are static, so musl where it can be had; libraries
//! for programs of this machine are of its own C library.

use crate::ordered::{self, Ordered};
use crate::{ground, shell};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How something is built here.
pub struct Target {
    /// Target triple.
    pub triple: String,
    /// Extra flags for rustc.
    pub flags: Vec<OsString>,
    /// Where it is built, where that is not beside all others.
    folder: Option<PathBuf>,
    /// Variables for cargo.
    variables: Vec<(String, String)>,
}

/// musl is static by itself. A program that starts at any address has a word to mend for each pointer in its data: 24
/// bytes of the file for each, or a bit in the packed form, which musl reads since 1.2.4. An older linker leaves it.
const OF_MUSL: &str = "-Clink-arg=-Wl,-z,pack-relative-relocs";

/// Picks musl, adding it by rustup when missing; else static glibc of this machine, said aloud.
pub fn pick() -> Result<Target> {
    let musl = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let can_be_added = || shell::which("rustup").is_some();
    let add = || shell::run(Command::new("rustup").args(["target", "add", &musl])).is_ok();
    if installed(&musl)? || (can_be_added() && add()) {
        return Ok(Target::new(musl, vec![OF_MUSL.into()]));
    }
    let host = host()?;
    eprintln!("x: no target {musl} and no rustup that could add it: a static {host} binary instead");
    Ok(Target::new(host, vec!["-Ctarget-feature=+crt-static".into()]))
}

fn host() -> Result<String> {
    Ok(shell::output(Command::new("rustc").arg("--print=host-tuple"))?.trim().to_owned())
}

/// The folder with the tools of the toolchain itself: its linker, and what its components add.
pub fn tools() -> Result<PathBuf> {
    let sysroot = shell::output(Command::new("rustc").arg("--print=sysroot"))?;
    Ok(Path::new(sysroot.trim()).join("lib/rustlib").join(host()?).join("bin"))
}

/// A flag that ends with a path, which need not be text.
pub fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(path);
    flag
}

fn installed(triple: &str) -> Result<bool> {
    let folder = shell::output(Command::new("rustc").args(["--print=target-libdir", "--target", triple]))?;
    Ok(PathBuf::from(folder.trim()).is_dir())
}

/// The profiles of what is shipped.
const SHIPPED: [&str; 2] = ["release", "engine"];
/// Between two words of `CARGO_ENCODED_RUSTFLAGS`, so that a folder may have a space in its name.
const SEPARATOR: &str = "\u{1f}";

/// Flags by which the folders of other people's sources, and the one that build scripts write to, have the same names
/// on every machine. Our own sources are named from the checkout by cargo.
fn renamed(sources: &BTreeSet<PathBuf>, target: &Path) -> Vec<OsString> {
    let names = sources.iter().map(|folder| (folder.as_path(), "/cargo")).chain([(target, "/target")]);
    let renamed = |(folder, name): (&Path, &str)| {
        let mut flag = flag("--remap-path-prefix=", folder);
        flag.push("=");
        flag.push(name);
        flag
    };
    names.map(renamed).collect()
}

impl Target {
    fn new(triple: String, flags: Vec<OsString>) -> Self {
        Self { triple, flags, folder: None, variables: Vec::new() }
    }

    /// The one of this machine's own programs.
    pub fn of_this_machine() -> Result<Self> {
        Ok(Self::new(host()?, Vec::new()))
    }

    /// The same with a flag for all crates, built in a folder of its own: beside each other the two would replace each
    /// other's results.
    pub fn apart(&self, folder: PathBuf, flag: OsString) -> Self {
        let flags = self.flags.iter().cloned().chain([flag]).collect();
        Self { folder: Some(folder), ..Self::new(self.triple.clone(), flags) }
    }

    /// The same without optimisation across crates.
    pub fn by_crate(mut self, profile: &str) -> Self {
        for (setting, value) in [("LTO", "off"), ("CODEGEN_UNITS", "16")] {
            let name = format!("CARGO_PROFILE_{}_{setting}", profile.to_uppercase());
            self.variables.push((name, value.to_owned()));
        }
        self
    }

    /// The program as it is shipped.
    pub fn planish(&self) -> Result<PathBuf> {
        self.shipped(ordered::PLANISH)
    }

    /// A program as it is shipped, in its own order. Of its package alone: what the others ask of a crate is not in it.
    pub fn shipped(&self, what: Ordered) -> Result<PathBuf> {
        self.program(what, &what.flags()?)
    }

    /// A program of the profile that it is shipped in, linked with these words for rustc.
    pub fn program(&self, what: Ordered, flags: &[OsString]) -> Result<PathBuf> {
        let named = ["--package", what.package, "--bin", what.program, "--"].map(OsString::from);
        let args: Vec<OsString> = named.into_iter().chain(flags.iter().cloned()).collect();
        Ok(self.compile("rustc", what.profile, &args)?.join(what.program))
    }

    /// Builds binaries of one profile and returns the folder that holds them.
    pub fn build(&self, profile: &str, args: &[&str]) -> Result<PathBuf> {
        self.compile("build", profile, args)
    }

    /// The same by another command of cargo's. What is shipped names no folder of this machine: the messages of a panic
    /// hold the place of a source file.
    pub fn compile(&self, command: &str, profile: &str, args: &[impl AsRef<OsStr>]) -> Result<PathBuf> {
        let mut cargo = ground::cargo();
        cargo.args([command, "--profile", profile, "--target", &self.triple]).args(args);
        cargo.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let folder = self.folder.clone().map_or_else(ground::target_dir, Ok)?;
        cargo.env("CARGO_TARGET_DIR", &folder);
        let mut flags = self.flags.clone();
        if SHIPPED.contains(&profile) {
            flags.extend(renamed(&ground::foreign_sources()?, &folder));
        }
        if !flags.is_empty() {
            let given = std::env::var_os("RUSTFLAGS").unwrap_or_default();
            let given = given.to_str().context("RUSTFLAGS is not text")?;
            let all: Vec<OsString> = given.split_whitespace().map(OsString::from).chain(flags).collect();
            cargo.env("CARGO_ENCODED_RUSTFLAGS", all.join(OsStr::new(SEPARATOR)));
        }
        shell::run(&mut cargo).context("build")?;
        Ok(folder.join(&self.triple).join(profile))
    }
}

#[cfg(test)]
mod tests {
    use super::renamed;
    use std::process::Command;

    #[test]
    fn a_panic_names_no_folder_of_the_machine_that_built_it() {
        let folder = tempfile::tempdir().unwrap();
        // As cargo keeps them, and with a space.
        let sources = folder.path().join("a home/registry/src/index-0123");
        std::fs::create_dir_all(&sources).unwrap();
        let program = "fn main() { println!(\"{}\", file!()); panic!(\"at\") }";
        std::fs::write(sources.join("main.rs"), program).unwrap();
        let built = folder.path().join("built");
        let mut rustc = Command::new("rustc");
        rustc.args(renamed(&[sources.clone()].into(), &folder.path().join("target")));
        let status = rustc.arg(sources.join("main.rs")).arg("-o").arg(&built).status().unwrap();
        assert!(status.success());
        let run = Command::new(&built).output().unwrap();
        assert_eq!(String::from_utf8(run.stdout).unwrap(), "/cargo/main.rs\n");
        assert!(String::from_utf8(run.stderr).unwrap().contains("/cargo/main.rs:1"), "where it panicked");
    }
}
