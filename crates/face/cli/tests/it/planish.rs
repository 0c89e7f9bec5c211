//! Runs the binary in an empty environment and a home of its own.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

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

/// A command line that has not been started yet.
pub fn command<S: AsRef<OsStr>>(home: &Path, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planish"));
    command.args(args).current_dir(home).stdin(Stdio::null()).env_clear();
    command.env("HOME", home).env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    command
}

/// Runs the binary to its end in a home that nothing else uses.
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    let home = tempfile::tempdir().expect("a temporary folder");
    command(home.path(), args).output().expect("the binary starts").into()
}
