//! `./x bench NAME`: the release binary, then the benchmark that starts it; or the kernels alone.

use crate::setup::{self, Refused};
use crate::tree::Tree;
use crate::{builds, ground, shell, target};
use anyhow::{Context, Result, bail};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

/// Which benchmark.
#[derive(clap::Args)]
pub struct Options {
    /// Name: spine, host, memory, series, text, builds
    name: String,
    /// Write the figures as JSON too
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
    /// Write the table as a page of Markdown too, for docs/
    #[arg(long, value_name = "F")]
    page: Option<PathBuf>,
    /// For text: only rows whose name has this in it
    #[arg(long, value_name = "WORDS", conflicts_with = "page")]
    only: Option<String>,
    /// For text: a PostgreSQL that lld has linked, for the row of its pages that are brought back, instead of the one
    /// that `prove text` builds
    #[arg(long, value_name = "FILE")]
    postgres: Option<PathBuf>,
    /// For series: a folder with hand-tuned kernels.c to be measured against
    #[arg(long, value_name = "FOLDER")]
    reference: Option<PathBuf>,
    /// For series: instructions to use (avx512, avx2, neon, scalar) instead of the widest
    #[arg(long, value_name = "NAME")]
    isa: Option<String>,
}

impl Options {
    /// An option that the benchmark has nothing to do with, and the one that has; it would be passed over in silence.
    fn stray(&self) -> Option<(&'static str, &'static str)> {
        let given = [
            ("--reference", "series", self.reference.is_some()),
            ("--isa", "series", self.isa.is_some()),
            ("--only", "text", self.only.is_some()),
            ("--postgres", "text", self.postgres.is_some()),
        ];
        let stray = given.into_iter().find(|(_, of, is_given)| *is_given && self.name != *of);
        stray.map(|(option, of, _)| (option, of))
    }
}

/// How a page came to be: the command, and the state of the product that it measured.
fn written(name: &str, file: &Path) -> Result<String> {
    // The script says by this that it is at work.
    let beside =
        if env::var_os("PLANISH_BESIDE_TUNED").is_some() { "sudo benches/beside-tuned.sh " } else { "" };
    let commit = Tree::committed(&["benches"])?.commit;
    Ok(format!(
        "Written by `{beside}./x bench {name} --page {}`, of the product of {commit}.",
        file.display()
    ))
}

/// Builds, runs, and leaves with the code of the benchmark.
pub fn run(options: &Options) -> Result<ExitCode> {
    if let Some((option, of)) = options.stray() {
        bail!(Refused(format!("{option} is for `./x bench {of}`, and not for `{}`", options.name)));
    }
    if options.name == "text" && setup::ensure(setup::TEXT_PROOF, setup::Without::Run).is_err() {
        eprintln!("x: rows that need what is missing will say so");
    }
    let mut bench = ground::cargo();
    bench.args(["run", "--quiet", "--release", "--package", "planish-bench", "--", &options.name]);
    if ["spine", "host", "memory", "text"].contains(&options.name.as_str()) {
        let planish = target::pick()?.planish()?;
        bench.arg("--planish").arg(planish);
    }
    if options.name == "builds" {
        bench.args(builds::words()?);
    }
    if let Some(file) = &options.json {
        bench.arg("--json").arg(file);
    }
    if let Some(file) = &options.page {
        bench.arg("--page").arg(file).arg("--written").arg(written(&options.name, file)?);
    }
    if let Some(words) = &options.only {
        bench.arg("--only").arg(words);
    }
    if let Some(file) = &options.postgres {
        bench.arg("--postgres").arg(file);
    }
    if let Some(folder) = &options.reference {
        bench.arg("--reference").arg(folder);
    }
    if let Some(isa) = &options.isa {
        bench.args(["--isa", isa]);
    }
    shell::say(&bench);
    let status = bench.stdin(Stdio::null()).status().context("start the benchmark")?;
    Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn options_of_another_benchmark_are_refused() {
        let options = |name: &str, isa: Option<&str>| Options {
            name: name.into(),
            json: None,
            page: None,
            only: None,
            postgres: None,
            reference: None,
            isa: isa.map(str::to_owned),
        };
        assert_eq!(options("spine", Some("avx2")).stray(), Some(("--isa", "series")));
        assert_eq!(options("spine", None).stray(), None);
        assert_eq!(options("series", Some("avx2")).stray(), None);
        let with_folder = Options { reference: Some("c".into()), ..options("text", None) };
        assert_eq!(with_folder.stray(), Some(("--reference", "series")));
        let only = |name: &str| Options { only: Some("node".into()), ..options(name, None) };
        assert_eq!((only("text").stray(), only("host").stray()), (None, Some(("--only", "text"))));
    }
}
