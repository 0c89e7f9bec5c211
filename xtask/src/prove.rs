//! `./x prove`: the release binary, then `planish prove` with the words of the user.

use crate::lock::Held;
use crate::{ground, setup, shell, target};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Words for `planish prove`.
#[derive(clap::Args)]
pub struct Options {
    /// series (default), postgres, numa or text, and the options of `planish prove`; --out DIR for the page (reports)
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

/// Builds and becomes `planish prove`, so that Ctrl-C and the exit code are planish's own. The lock goes along: what is
/// measured starts from the build folder, again and again.
pub fn run(options: &Options, held: Option<&Held>) -> Result<ExitCode> {
    const POSTGRES: setup::Need = setup::POSTGRES.required();
    let words = Words::split(&options.args)?;
    if words.says("postgres") {
        setup::ensure(&[&POSTGRES], setup::Without::Refused)?;
    }
    if words.says("text") {
        setup::ensure(setup::TEXT_PROOF, setup::Without::Run)?;
    }
    let mut planish = Command::new(target::pick()?.planish()?);
    // By this name it knows what can be typed next: no `planish` is on the path.
    planish.arg0("./x").arg("prove").args(&words.rest);
    // A page that the user asks for by name is the only one; help is no proof at all.
    if !["--html", "--help", "-h"].iter().any(|word| words.says(word)) {
        let folder = words.out.clone().unwrap_or(ground::root()?.join("reports"));
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        planish.arg("--html").arg(folder.join(words.page()));
    }
    held.map_or(Ok(()), Held::keep_over_exec)?;
    shell::say(&planish);
    let error = planish.exec();
    Err(anyhow::Error::from(error).context("start planish"))
}

/// What the user typed, without the one option that is ours.
struct Words {
    out: Option<PathBuf>,
    rest: Vec<OsString>,
}

impl Words {
    fn split(typed: &[OsString]) -> Result<Self> {
        let mut words = Self { out: None, rest: Vec::new() };
        let mut typed = typed.iter();
        while let Some(word) = typed.next() {
            match word.to_str() {
                Some("--out") => words.out = Some(typed.next().context("--out wants a folder")?.into()),
                Some(word) if word.starts_with("--out=") => words.out = Some(word["--out=".len()..].into()),
                _ => words.rest.push(word.clone()),
            }
        }
        Ok(words)
    }

    fn says(&self, wanted: &str) -> bool {
        // With its value in the same word, too.
        let is_it = |word: &str| {
            word.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        self.rest.iter().any(|word| word.to_str().is_some_and(is_it))
    }

    /// File name of the page: a quick look must not overwrite the long proof.
    fn page(&self) -> String {
        let what = ["postgres", "numa", "text"].into_iter().find(|what| self.says(what)).unwrap_or("series");
        let load = if what == "text" && self.says("--load") { "-load" } else { "" };
        let quick = if self.says("--quick") { "-quick" } else { "" };
        format!("prove-{what}{load}{quick}.html")
    }
}

#[cfg(test)]
mod tests {
    use super::Words;
    use std::ffi::OsString;

    #[test]
    fn only_the_folder_is_taken_out() {
        let typed = ["postgres", "--out", "/x", "--quick", "--scale", "10"].map(OsString::from);
        let words = Words::split(&typed).unwrap();
        assert_eq!(words.out.as_deref(), Some("/x".as_ref()));
        assert_eq!(words.rest, ["postgres", "--quick", "--scale", "10"].map(OsString::from));
        assert_eq!(words.page(), "prove-postgres-quick.html");
        assert!(Words::split(&["--out".into()]).is_err());
        assert_eq!(Words::split(&["numa".into()]).unwrap().page(), "prove-numa.html");
        let load = Words::split(&["text".into(), "--load".into()]).unwrap();
        assert_eq!(load.page(), "prove-text-load.html");
        let words = Words::split(&["--html=/x/a.html".into()]).unwrap();
        assert!(words.says("--html") && !words.says("--htm"));
    }
}
