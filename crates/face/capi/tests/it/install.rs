//! The libraries that cargo built for these tests, installed into folders as `./x dist` packs them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// A library: cargo builds all kinds of it for the tests, beside them.
pub fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let file = test.parent().unwrap().join(name);
    assert!(file.exists(), "{} is not there", file.display());
    file
}

/// An example in Rust as a program: cargo builds them for the tests, unless it is told which targets to build.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let file = test.parent().unwrap().with_file_name("examples").join(name);
    assert!(file.exists(), "{} is not there: cargo build --examples", file.display());
    file
}

/// An installed libplanish.
pub struct Prefix(tempfile::TempDir);

impl Prefix {
    /// With the shared library, the static one, or both.
    pub fn with(shared: bool, is_static: bool) -> Self {
        let prefix = Self(tempfile::tempdir().unwrap());
        let list = fs::read_to_string(checkout().join("crates/face/capi/package/files")).unwrap();
        for line in list.lines() {
            let (from, to) = line.split_once(' ').expect("a line is a file and where it goes");
            let to = prefix.path().join(to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(checkout().join(from), to).unwrap_or_else(|error| panic!("{from}: {error}"));
        }
        let folder = prefix.path().join("lib");
        if is_static {
            fs::copy(built("libplanish.a"), folder.join("libplanish.a")).unwrap();
        }
        if shared {
            let [major, minor] = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")];
            let soname = format!("libplanish.so.{major}.{minor}");
            fs::copy(built("libplanish.so"), folder.join(&soname)).unwrap();
            symlink(soname, folder.join("libplanish.so")).unwrap();
        }
        prefix
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// What pkg-config says.
    pub fn flags(&self, options: &[&str]) -> Vec<String> {
        let flags = self.pkg_config(&[&["--cflags", "--libs"], options].concat());
        flags.split_whitespace().map(str::to_owned).collect()
    }

    /// Where pkg-config says the libraries are.
    pub fn libdir(&self) -> String {
        self.pkg_config(&["--variable=libdir"]).trim().to_owned()
    }

    fn pkg_config(&self, options: &[&str]) -> String {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", self.path().join("lib/pkgconfig"));
        String::from_utf8(run(command.args(options).arg("planish")).stdout).unwrap()
    }

    /// A command whose program finds the shared library here.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.path().join("lib"));
        command
    }
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let talk = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{command:?}: {}\n{}\n{}", output.status, talk[0], talk[1]);
    output
}

/// Whether a program can be started.
pub fn is_here(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
