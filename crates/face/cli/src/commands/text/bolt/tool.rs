//! The `llvm-bolt` of this machine.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use planish_order::bolt::Version;
use planish_sys::child::{ChildSetup, prepare};

use super::Args;
use crate::commands::text::wrap::captured;
use crate::failure::Failure;
use crate::signals::Forward;

/// Packages have the first number of the version in the name.
const MAJOR_MAX: u32 = 99;
const PROGRAM: &str = "llvm-bolt";

/// A program that says that it is one, and of a version that is known.
pub(super) struct Tool {
    pub path: PathBuf,
    pub version: Version,
    /// Whether programs that it instruments write by time alone: static ones.
    by_time: bool,
}

impl Tool {
    /// The one that was named, else that of PATH, else the newest one with its version in the name or the folder.
    pub fn find(named: Option<&Path>) -> Result<Self, Failure> {
        const INSTALL: &str = "install it: apt-get install bolt-19 (Debian 12), or LLVM's own packages; or name it: \
                               planish ... --llvm-bolt PATH";
        if let Some(path) = named {
            let asked = asked(path).ok_or_else(|| {
                Failure::usage(format!("{} does not say that it is an llvm-bolt", path.display()))
                    .hint(INSTALL)
            })?;
            return asked.new_enough().map_err(|failure| failure.hint(INSTALL));
        }
        let mut too_old = None;
        for path in candidates() {
            match asked(&path).map(Self::new_enough) {
                Some(Ok(tool)) => return Ok(tool),
                Some(Err(failure)) => too_old = too_old.or(Some(failure)),
                None => {}
            }
        }
        let failure = too_old.unwrap_or_else(|| Failure::refused("there is no llvm-bolt on this machine"));
        Err(failure.hint(INSTALL))
    }

    fn new_enough(self) -> Result<Self, Failure> {
        if self.version >= Version::OLDEST {
            return Ok(self);
        }
        let (path, version, oldest) = (self.path.display(), self.version, Version::OLDEST);
        Err(Failure::refused(format!(
            "{path} is version {version}, and its options are known from {oldest} on"
        )))
    }

    /// Says what the program is that it works on.
    pub fn for_static(mut self, is_static: bool) -> Self {
        self.by_time = is_static;
        self
    }

    pub fn writes_by_time(&self, args: &Args) -> bool {
        args.instrument && self.by_time
    }

    /// Runs it to its end; what it prints is ours.
    pub fn run(&self, words: &[String], signals: &Forward) -> Result<Output, Failure> {
        let mut command = Command::new(&self.path);
        command.args(words);
        // It may take gigabytes and minutes: it must not outlive us.
        prepare(&mut command, ChildSetup { die_with_parent: true, ..ChildSetup::default() });
        captured(command, signals)
            .map_err(|error| Failure::refused(format!("cannot run {}: {error}", self.path.display())))
    }
}

/// Where one may lie, the best first. By another name than its own it may be another tool, or look for its libraries
/// in another folder (Debian's /usr/bin/llvm-bolt-19), so that links are followed.
fn candidates() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    let of_path = |name: &str| folders.iter().map(|folder| folder.join(name)).collect::<Vec<_>>();
    let mut all = of_path(PROGRAM);
    for major in (Version::OLDEST.major..=MAJOR_MAX).rev() {
        all.extend(of_path(&format!("{PROGRAM}-{major}")));
        all.extend(
            ["/usr/lib", "/usr/local/lib", "/opt"]
                .map(|folder| Path::new(folder).join(format!("llvm-{major}/bin/{PROGRAM}"))),
        );
    }
    let mut found: Vec<PathBuf> = Vec::new();
    for path in all.iter().filter_map(|path| std::fs::canonicalize(path).ok()).filter(|path| path.is_file()) {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

fn asked(path: &Path) -> Option<Tool> {
    let path = std::fs::canonicalize(path).ok()?;
    let mut command = Command::new(&path);
    let told = command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    // Every tool of LLVM tells the version; BOLT tells its revision as well.
    let version = Version::parse(&told).filter(|_| told.contains("BOLT"))?;
    Some(Tool { path, version, by_time: false })
}
