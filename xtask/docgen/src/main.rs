//! Writes every generated reference below one folder: `docgen DIR`.
//!
//! The command line, the catalogue, the result types and the published outcomes are the only sources,
//! so that a reference cannot say what the product does not do. `./x docs` runs this over `docs/`, `./x ci` beside it,
//! and compares. Apart from xtask, because it links the whole product and xtask must not.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "it writes documents of the checkout, never a host")]

mod cli;
mod field;
mod knobs;
mod profiles;
mod proofs;
mod writers;

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<()> {
    let out = PathBuf::from(std::env::args_os().nth(1).context("usage: docgen DIR")?);
    let command = planish_cli::command();
    write(&out.join("cli.md"), &cli::reference(&command))?;
    write(&out.join("knobs.md"), &knobs::reference()?)?;
    write(&out.join("profiles.md"), &profiles::reference()?)?;
    write(&out.join("writers.md"), &writers::reference()?)?;
    write(&out.join("field.md"), &field::reference()?)?;
    cli::man_pages(&command, &folder(&out, "man")?)?;
    cli::completions(&command, &folder(&out, "completions")?)?;
    for (name, page) in proofs::pages(Path::new("docs/proofs"))? {
        write(&folder(&out, "proofs")?.join(format!("{name}.html")), &page)?;
    }
    let printed = planish_report::schemas();
    // The one that people write, and the many that planish prints.
    let written = ("trial-file", schemars::schema_for!(planish_trial::TrialFile));
    for (name, schema) in printed.into_iter().chain([written]) {
        let mut text = serde_json::to_string_pretty(&schema).context("a schema is plain data")?;
        text.push('\n');
        write(&folder(&out, "schema")?.join(format!("{name}.json")), &text)?;
    }
    Ok(())
}

fn folder(out: &Path, name: &str) -> Result<PathBuf> {
    let folder = out.join(name);
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    Ok(folder)
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("write {}", file.display()))
}
