//! The lock of the build folder, by which two checkouts that use `./x` at once keep out of each other's way.
//!
//! `./x` takes it, shared, before cargo builds this program, and hands it over as an open descriptor. Every program
//! that a task starts would inherit that descriptor, and a server that outlives the task would keep the lock. So the
//! task takes the lock once more by a descriptor that no child gets, and only then lets go of the inherited one.

use crate::ground;
use anyhow::{Context, Result};
use rustix::io::FdFlags;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// The descriptor on which `./x` holds the lock.
const INHERITED: &str = "9";

/// The lock of the build folder, held until this is dropped.
pub struct Held(File);

impl Held {
    /// Takes over the lock of the folder that `./x` has chosen; `None` where no `./x` has locked one.
    pub fn take() -> Result<Option<Self>> {
        ground::target_dir().map_or(Ok(None), |folder| Self::of(&folder))
    }

    fn of(folder: &Path) -> Result<Option<Self>> {
        let inherited = Path::new("/proc/self/fd").join(INHERITED);
        let Ok(file) = File::open(folder.join("lock")) else { return Ok(None) };
        let same = |one: &std::fs::Metadata| {
            file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (one.dev(), one.ino()))
        };
        // Not of `./x`: the descriptor belongs to whoever started this program without it, and so does its lock.
        if !inherited.metadata().is_ok_and(|inherited| same(&inherited)) {
            return Ok(None);
        }
        file.lock_shared().context("lock the build folder")?;
        // By a child that inherits the descriptor: the lock is one for all who have it, and no safe code closes a
        // descriptor by its number.
        let left = Command::new("flock").args(["-u", INHERITED]).status();
        // Without a flock, `./x` has locked nothing.
        if let Ok(status) = left {
            anyhow::ensure!(status.success(), "flock -u {INHERITED} left with {status}");
        }
        Ok(Some(Self(file)))
    }

    /// Lets the program that this one becomes keep the lock, and so whatever it starts.
    pub fn keep_over_exec(&self) -> Result<()> {
        rustix::io::fcntl_setfd(&self.0, FdFlags::empty()).context("hand on the lock of the build folder")
    }
}

#[cfg(test)]
mod tests {
    use super::Held;
    use std::fs::{self, File};
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Output, Stdio};

    /// Two checkouts of nothing but `./x`, and a cargo that says where it would build and then waits for the end of its
    /// input.
    struct Two(tempfile::TempDir);

    impl Two {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let x = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("x");
            for checkout in ["one", "two"] {
                fs::create_dir(folder.path().join(checkout)).unwrap();
                fs::copy(&x, folder.path().join(checkout).join("x")).unwrap();
            }
            let programs = folder.path().join("bin");
            fs::create_dir(&programs).unwrap();
            let cargo = "mkdir -p $CARGO_TARGET_DIR/ci/.fingerprint/planish-$(basename $PWD)\n\
                         echo $CARGO_TARGET_DIR\n\
                         exec cat";
            for (name, text) in [("cargo", cargo), ("cc", "")] {
                let file = folder.path().join(name);
                fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
                // By another program: what this one has open for writing, a child of another test may have for a
                // moment too, and such a file cannot be started.
                let mut install = Command::new("install");
                install.args(["-m", "755"]).arg(&file).arg(&programs);
                assert!(install.status().unwrap().success());
            }
            for name in ["sh", "dirname", "basename", "mkdir", "cat", "find", "rm", "cksum", "flock"] {
                let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
                    .map(|folder| folder.join(name))
                    .find(|file| file.exists());
                std::os::unix::fs::symlink(real.unwrap(), programs.join(name)).unwrap();
            }
            Self(folder)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn start(&self, checkout: &str) -> Child {
            let mut x = Command::new("/bin/sh");
            x.arg(self.path(checkout).join("x")).env_clear().env("PATH", self.path("bin"));
            x.env("CARGO_TARGET_DIR", self.path("target"));
            x.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        }

        /// Starts it, and returns when its cargo runs, with the folder where that builds.
        fn begin(&self, checkout: &str) -> (Child, PathBuf) {
            let mut child = self.start(checkout);
            let mut line = Vec::new();
            let mut byte = [0];
            while child.stdout.as_mut().unwrap().read(&mut byte).unwrap() == 1 && byte != *b"\n" {
                line.extend(byte);
            }
            (child, String::from_utf8(line).unwrap().into())
        }

        fn whole(&self, checkout: &str) -> (PathBuf, String) {
            let done: Output = self.start(checkout).wait_with_output().unwrap();
            let talk = String::from_utf8(done.stderr).unwrap();
            assert!(done.status.success(), "{talk}");
            (String::from_utf8(done.stdout).unwrap().trim_end().into(), talk)
        }

        fn fingerprint(&self, name: &str) -> PathBuf {
            self.path("target/ci/.fingerprint").join(name)
        }
    }

    #[test]
    fn a_checkout_at_work_keeps_its_build_folder() {
        let two = Two::new();
        let (first, folder) = two.begin("one");
        assert_eq!(folder, two.path("target"));
        fs::create_dir(two.fingerprint("serde-of-all")).unwrap();
        let (beside, talk) = two.whole("two");
        assert_ne!(beside, folder, "{talk}");
        assert!(
            beside.to_str().unwrap().starts_with(folder.to_str().unwrap()),
            "beside: {}",
            beside.display()
        );
        assert!(talk.lines().count() == 1 && talk.contains("another checkout is at work"), "{talk}");
        assert!(talk.contains(beside.to_str().unwrap()), "{talk}");
        // The same checkout is not kept out: cargo itself keeps two of its builds apart.
        assert_eq!(two.whole("one"), (folder.clone(), String::new()));
        assert!(two.fingerprint("planish-one").exists(), "nobody takes away what is being built");
        assert!(first.wait_with_output().unwrap().status.success());

        assert_eq!(two.whole("two"), (folder, String::new()));
        assert!(!two.fingerprint("planish-one").exists(), "the other's crates are built anew");
        assert!(two.fingerprint("serde-of-all").exists(), "what others wrote is kept");
    }

    #[test]
    fn without_flock_no_folder_is_shared() {
        let two = Two::new();
        fs::remove_file(two.path("bin/flock")).unwrap();
        let (one, talk) = two.whole("one");
        assert!(talk.contains("no flock here"), "{talk}");
        assert_ne!(one, two.whole("two").0);
        assert_eq!(one, two.whole("one").0, "the same one at the next time");
        assert!(!two.path("target").exists());
    }

    /// What the next tests start in place of a task, with the lock on descriptor 9.
    #[test]
    fn a_task() {
        let Some(folder) = std::env::var_os("PLANISH_TEST_LOCKED").map(PathBuf::from) else { return };
        let held = Held::of(&folder).unwrap().expect("descriptor 9 is the lock");
        if std::env::var_os("PLANISH_TEST_EXEC").is_some() {
            held.keep_over_exec().unwrap();
            panic!("{}", Command::new("cat").arg(folder.join("go-on")).exec());
        }
        // A daemon: its parent has ended. It lives until its standard input ends, which is that of this process.
        let start = Command::new("sh").args(["-c", "exec 3<&0; cat <&3 >/dev/null &"]).status().unwrap();
        assert!(start.success());
        File::open(folder.join("go-on")).unwrap().read_to_end(&mut Vec::new()).unwrap();
    }

    /// A task at work in a locked folder, until its gate is opened for writing and closed.
    fn task(folder: &Path, with: &[(&str, &str)]) -> Child {
        let made = Command::new("mkfifo").arg(folder.join("go-on")).status().unwrap();
        assert!(made.success());
        let mut task = Command::new("sh");
        task.args(["-c", "exec 9>>\"$0\"; flock -s 9; exec \"$@\""]).arg(folder.join("lock"));
        task.arg(std::env::current_exe().unwrap()).args(["--exact", "lock::tests::a_task", "--nocapture"]);
        task.env("PLANISH_TEST_LOCKED", folder).envs(with.iter().copied());
        task.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    fn nobody_holds(folder: &Path) -> bool {
        File::open(folder.join("lock")).unwrap().try_lock().is_ok()
    }

    #[test]
    fn a_daemon_of_a_task_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let mut task = task(folder.path(), &[]);
        // Opens when the task has opened it too: its daemon runs by then.
        let gate = File::options().write(true).open(folder.path().join("go-on")).unwrap();
        assert!(!nobody_holds(folder.path()), "held while the task runs");
        let daemon_input = task.stdin.take();
        drop(gate);
        assert!(task.wait().unwrap().success());
        assert!(nobody_holds(folder.path()), "its daemon, which still runs, does not hold it");
        drop(daemon_input);
    }

    #[test]
    fn what_a_task_becomes_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let mut task = task(folder.path(), &[("PLANISH_TEST_EXEC", "1")]);
        // Opens when the program that the task has become opens it.
        let gate = File::options().write(true).open(folder.path().join("go-on")).unwrap();
        assert!(!nobody_holds(folder.path()), "held by the program that goes on");
        drop(gate);
        assert!(task.wait().unwrap().success());
        assert!(nobody_holds(folder.path()));
    }
}
