//! Runs the binary in an empty environment and a home of its own.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// How a run of the binary ended.
#[derive(Debug)]
pub struct Run {
    /// Exit code; -1 when a signal ended it.
    pub exit: i32,
    /// Data.
    pub stdout: String,
    /// Talk.
    pub stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            exit: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("stdout is text"),
            stderr: String::from_utf8(output.stderr).expect("stderr is text"),
        }
    }
}

impl Run {
    /// The envelope of a run with `--json`, held against the schema that it names.
    pub fn envelope(&self) -> serde_json::Value {
        let envelope: serde_json::Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr));
        let command = envelope["command"].as_str().expect("a command");
        let schemas = planish_report::schemas();
        let (_, schema) =
            schemas.iter().find(|(name, _)| *name == command).expect("every command has a schema");
        let validator = jsonschema::validator_for(schema.as_value()).expect("a sound schema");
        if let Err(error) = validator.validate(&envelope) {
            panic!("{command} breaks its schema at {}: {error}", error.instance_path());
        }
        envelope
    }
}

/// A process that sleeps until dropped.
pub struct Sleeper(Child);

impl Sleeper {
    /// Starts one.
    pub fn start() -> Self {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().expect("sleep is everywhere"))
    }

    /// Its number, as a word of a command line.
    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder of its own, whose dead-man timers end with it: nothing is left of it that one could take back.
pub struct Sandbox(tempfile::TempDir);

impl Sandbox {
    /// An empty one.
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        for pid in timers_of(self.path()) {
            let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).expect("a process");
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// The dead-man timers that were started from a folder, or for what lies in it.
pub fn timers_of(folder: &Path) -> Vec<u32> {
    let listed = std::fs::read_dir("/proc").expect("there are processes").flatten();
    let pids = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_timer = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0).map(OsStr::from_bytes);
        let is_here = |path: &Path| path.starts_with(folder);
        let here = std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|path| is_here(&path));
        words.clone().any(|word| word == "watch-confirm")
            && (here || words.any(|word| is_here(word.as_ref())))
    };
    pids.filter(is_timer).collect()
}

/// A timer that outlives its test would wait for nothing, for minutes.
#[test]
fn no_timer_outlives_the_folder_of_its_test() {
    let sandbox = crate::exits::sandbox();
    let applied = crate::exits::on(sandbox.path(), &["apply", "two", "--yes", "--confirm", "600"]);
    assert_eq!(applied.exit, 0, "{}", applied.stdout);
    let folder = sandbox.path().to_owned();
    assert_eq!(timers_of(&folder).len(), 1);
    drop(sandbox);
    let begun = std::time::Instant::now();
    while !timers_of(&folder).is_empty() {
        assert!(begun.elapsed().as_secs() < 60, "it is there still");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// A copy of the binary in a folder that is opened to everybody, for a run as another user: the target
/// folder may lie below a home that is closed to them.
pub fn for_anybody(folder: &Path) -> PathBuf {
    std::fs::set_permissions(folder, Permissions::from_mode(0o777)).expect("our own folder");
    let binary = folder.join("planish");
    copy_program(env!("CARGO_BIN_EXE_planish").as_ref(), &binary);
    binary
}

/// Copies a program that is to be run. Another process does it: a file that this one writes is inherited by what
/// another test starts at that moment, and the kernel runs none that is open for writing (`ETXTBSY`).
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().expect("cp is everywhere");
    assert!(copied.success(), "room for a copy of {}", from.display());
}

/// A command line that has not been started yet.
pub fn command<S: AsRef<OsStr>>(home: &Path, args: impl IntoIterator<Item = S>) -> Command {
    command_of(env!("CARGO_BIN_EXE_planish").as_ref(), home, args)
}

/// The same of a copy of the binary.
pub fn command_of<S: AsRef<OsStr>>(binary: &Path, home: &Path, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(binary);
    command.args(args).current_dir(home).stdin(Stdio::null()).env_clear();
    command.env("HOME", home).env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    command
}

/// Runs the binary to its end in a home that nothing else uses.
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    let home = tempfile::tempdir().expect("a temporary folder");
    command(home.path(), args).output().expect("the binary starts").into()
}

/// Starts what prints `ready` once it may be asked to end, asks it, and gives its exit code.
pub fn asked_to_end(mut command: Command) -> Option<i32> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("its output"));
    stdout.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    child.wait().expect("it ends").code()
}

/// Runs the binary as `nohup` does: it is started to ignore SIGHUP.
pub fn run_without_hangups(home: &Path, args: &str) -> Run {
    let line = format!("trap '' HUP; exec {} {args}", env!("CARGO_BIN_EXE_planish"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(home).stdin(Stdio::null()).env_clear();
    shell.env("HOME", home).env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").output().expect("a shell").into()
}
