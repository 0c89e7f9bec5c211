//! `./x prove`: the release binary, then `planish prove` with the words of the user.

use crate::{ground, setup, target};
use anyhow::Result;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Words for `planish prove`.
#[derive(clap::Args)]
pub struct Options {
    /// series (default) or postgres, and the options of `planish prove`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

/// Builds and becomes `planish prove`, so that Ctrl-C and the exit code are planish's own.
pub fn run(options: &Options) -> Result<ExitCode> {
    const POSTGRES: setup::Need = setup::POSTGRES.required();
    if options.args.iter().any(|arg| arg == "postgres") {
        setup::ensure(&[&POSTGRES], false)?;
    }
    let built = target::pick()?.build("release", &["--bin", "planish"])?;
    let mut planish = Command::new(built.join("planish"));
    planish.arg("prove").args(&options.args);
    if !options.args.iter().any(|arg| arg.as_encoded_bytes().starts_with(b"--out")) {
        planish.arg("--out").arg(ground::root()?.join("reports"));
    }
    crate::shell::say(&planish);
    let error = planish.exec();
    Err(anyhow::Error::from(error).context("start planish"))
}
