//! What is looked at before the new program gets its name.

use std::ops::Range;
use std::process::{Command, ExitStatus};

use planish_hugify::{HugifyError, Image, try_program};
use planish_model::{Exit, quoted};
use planish_profile::{Program, marked_range, same_outside};
use planish_report::{TextBoltCheckRow, TextBoltFile};
use planish_sys::child::{ChildSetup, prepare};
use planish_sys::{Error, pages};

use super::Args;
use super::draft::Draft;
use super::subject::{Subject, file};
use crate::commands::read_file;
use crate::commands::text::wrap::captured;
use crate::failure::{Failure, chain};
use crate::signals::{Forward, code};

/// What was seen.
pub(super) struct Looked {
    pub rows: Vec<TextBoltCheckRow>,
    pub file: TextBoltFile,
    pub hot: Option<Range<u64>>,
    /// Whether all of its text can lie on huge pages as it is: also what BOLT has left where it was.
    pub is_ready: bool,
}

pub(super) fn look(
    args: &Args,
    subject: &Subject,
    draft: &Draft,
    signals: &Forward,
) -> Result<Looked, Failure> {
    let bytes = read_file(&draft.path())?;
    let mut rows = Vec::new();
    let mut row = |what: &str, good: Option<bool>, found: String| {
        rows.push(TextBoltCheckRow { what: what.to_owned(), good, found });
    };
    same_outside(&subject.bytes, &bytes).map_err(|error| bad(&chain(&error)))?;
    row(
        "outside",
        Some(true),
        "loader, libraries, dynamic symbols and entry are those of the program".to_owned(),
    );
    let (good, found) = loaded(subject, draft, &bytes)?;
    row("loaded", good, found);
    if let Some(command) = &args.r#try {
        row("--try", Some(true), tried(command, args.same_output, subject, draft, signals)?);
    }
    let program = Program::parse("", &bytes).map_err(|error| bad(&chain(&error)))?;
    let hot = marked_range(&program, &bytes).ok().flatten();
    let is_ready = Image::parse(&bytes).is_ok_and(|image| image.is_ready(huge_bytes()));
    Ok(Looked { rows, file: file(&bytes, &program), hot, is_ready })
}

fn bad(why: &str) -> Failure {
    Failure::new(Exit::FailedRestored, format!("what llvm-bolt has made is not used: {why}"))
        .hint("leave functions alone: --skip-funcs NAME,...; or try another version: --llvm-bolt PATH")
}

fn huge_bytes() -> u64 {
    pages::thp_bytes().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(1 << 21)
}

/// Whether the kernel loads it; not one instruction of it runs.
fn loaded(subject: &Subject, draft: &Draft, bytes: &[u8]) -> Result<(Option<bool>, String), Failure> {
    if !subject.found.runs_here() {
        return Ok((None, "it is for another CPU".to_owned()));
    }
    let image = Image::parse(bytes).map_err(|error| bad(&chain(&error)))?;
    match try_program(&draft.path(), &image, huge_bytes()) {
        Ok(None) => Ok((None, "a library is loaded by programs".to_owned())),
        Ok(Some(_)) => Ok((Some(true), "the kernel maps it as its headers say".to_owned())),
        Err(HugifyError::System(Error::Forbidden { call: "ptrace", .. })) => {
            Ok((None, "nobody may trace here".to_owned()))
        }
        Err(error) => Err(bad(&format!("the kernel does not load it: {}", chain(&error)))),
    }
}

/// Runs the user's command with each program, and compares.
fn tried(
    command: &str,
    same_output: bool,
    subject: &Subject,
    draft: &Draft,
    signals: &Forward,
) -> Result<String, Failure> {
    let run = |path: &std::path::Path| {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command.replace("{}", &quoted(&path.to_string_lossy())));
        prepare(&mut shell, ChildSetup::default());
        captured(shell, signals).map_err(|error| bad(&format!("cannot run /bin/sh: {error}")))
    };
    let lent = draft.lend();
    let new = lent.as_ref().map_or_else(|| draft.path(), |lent| lent.path.clone());
    let (before, after) = (run(&subject.path)?, run(&new)?);
    let ended = |status: ExitStatus| code(status);
    let (code_before, code_after) = (ended(before.status), ended(after.status));
    if code_before != code_after {
        return Err(bad(&format!("--try ends with {code_after}, and with {code_before} for the program")));
    }
    // A shell's own codes: the command was not found, or cannot be run.
    if matches!(code_before, 126 | 127) {
        let failed = Failure::usage(format!("--try ends with {code_before} for the program too"));
        return Err(failed.hint("write {} where the program is meant: --try '{} --version'"));
    }
    if !same_output {
        return Ok(format!("both end with {code_before}"));
    }
    if before.stdout != after.stdout {
        return Err(bad(&format!("--try prints otherwise than for the program ({code_before} for both)")));
    }
    Ok(format!("both end with {code_before}, and print the same {} bytes", before.stdout.len()))
}
