//! `./x test`: every test of the workspace and one boot of each kernel, summed up on the last line.

use crate::tally::Tally;
use crate::{ground, setup, shell, vm};
use anyhow::{Context, Result};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};

/// How the suite runs.
#[derive(clap::Args)]
pub struct SuiteOptions {
    /// Go on without programs that are missing: their tests skip, aloud
    #[arg(long)]
    pub skip_missing: bool,
    /// Boot no guests
    #[arg(long)]
    pub no_vm: bool,
}

/// Runs everything and says how it went.
pub fn test(options: &SuiteOptions) -> Result<ExitCode> {
    setup::ensure(setup::TESTS, setup::Without::asked(options.skip_missing))?;
    let mut tally = workspace(None, &[])?;
    if !options.no_vm {
        tally.add(vm::run(&vm::Options::default())?);
    }
    tally.print();
    Ok(code(&tally))
}

/// Crates that take longer to build than the time of `./x ci` allows: it tests and lints all others, and says so.
pub const SLOW_TO_BUILD: &[&str] = &["planish-sql", "planish-serve"];

/// The tests of all crates but those `without`, which are told as skips; failures are counted, not an error: all of
/// them are to be seen. Property tests draw their cases from `seed`, and other ones each time without it.
pub fn workspace(seed: Option<u64>, without: &[&str]) -> Result<Tally> {
    let skips = ground::target_dir()?.join("planish-skips.txt");
    let _ = fs::remove_file(&skips);
    let mut command = ground::cargo();
    command.args(["test", "--workspace", "--profile", "ci", "--no-fail-fast"]);
    command.args(without.iter().flat_map(|name| ["--exclude", name]));
    command.env("PLANISH_SKIPS", &skips);
    if let Some(seed) = seed {
        command.env("PROPTEST_RNG_SEED", seed.to_string());
    }
    let mut tally = Tally::default();
    let success = stream(&mut command, &mut std::io::stdout(), |line| tally.add_libtest_line(line))?;
    tally.add_skip_file(&skips)?;
    let told = without
        .iter()
        .map(|name| format!("SKIP {name}: what it is built on takes too long for ci: ./x test"));
    tally.skips.extend(told);
    if !success && tally.failed_count == 0 {
        tally.fail("cargo test: a crate did not compile, or a test binary died before its summary");
    }
    Ok(tally)
}

/// Exit code of a tally: 1 when something failed, or when nothing at all was asked.
pub fn code(tally: &Tally) -> ExitCode {
    ExitCode::from(u8::from(tally.failed_count > 0 || tally.passed_count == 0))
}

/// Passes a command's output on to `out` and shows each line to `see`; returns whether it succeeded. Where nobody reads
/// on (`./x test | head`), the command is ended too.
fn stream(command: &mut Command, out: &mut impl Write, mut see: impl FnMut(&str)) -> Result<bool> {
    shell::say(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {}", shell::line(command)))?;
    let stdout = child.stdout.take().expect("stdout was asked for as a pipe");
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("read the output of the tests")?;
        let line = String::from_utf8_lossy(&line);
        see(&line);
        if let Err(error) = writeln!(out, "{line}") {
            // What it has started ends by itself: its output, too, has nobody left who reads it.
            let _ = child.kill();
            let _ = child.wait();
            return Err(error).context("pass on the output of the tests");
        }
    }
    Ok(child.wait().context("wait for the tests")?.success())
}

#[cfg(test)]
mod tests {
    use super::stream;
    use std::io::{Error, ErrorKind, Write};
    use std::path::Path;
    use std::process::Command;

    /// A pipe whose reader has seen enough.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(Error::from(ErrorKind::BrokenPipe))
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_seen_enough_leaves_nothing_running() {
        let mut pid = String::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$; exec sleep 1000"]);
        let ended = stream(&mut command, &mut Closed, |line| pid = line.to_owned());
        assert!(ended.is_err());
        assert!(!pid.is_empty() && !Path::new("/proc").join(&pid).exists(), "{pid} lives on");
    }

    #[test]
    fn output_is_passed_on_line_by_line() {
        let (mut out, mut seen) = (Vec::new(), 0);
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two; exit 1"]);
        assert!(!stream(&mut command, &mut out, |_| seen += 1).unwrap());
        assert_eq!((out.as_slice(), seen), (&b"one\ntwo\n"[..], 2));
    }
}
