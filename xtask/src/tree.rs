//! Which state of the product a figure is of.

use crate::shell;
use anyhow::{Result, ensure};
use std::process::Command;

/// The code of the product, for git.
const CODE: &str = ":(glob)crates/*/*/src/**";

/// The product as this checkout has it.
pub struct Tree {
    /// Today.
    pub day: String,
    /// The newest landed commit that changed the product, with `+1` for one more that has not landed.
    pub commit: String,
}

impl Tree {
    /// Of the checkout; an error when the product, or a file of `beside`, has changes that no commit has.
    pub fn committed(beside: &[&str]) -> Result<Self> {
        let git = |arguments: &[&str]| shell::output(Command::new("git").args(arguments));
        let status = [&["status", "--porcelain", "--", CODE, "catalogue"], beside].concat();
        let changed = git(&status)?;
        ensure!(
            changed.is_empty(),
            "figures for a page want code that is committed; these are not:\n{changed}"
        );
        // What has not landed may land under another name.
        let landed = git(&["merge-base", "HEAD", "origin/HEAD"]).unwrap_or_else(|_| "HEAD".to_owned());
        let landed = landed.trim();
        let newest = git(&["log", "-1", "--format=%h", landed, "--", CODE])?;
        let since = git(&["rev-list", "--count", &format!("{landed}..HEAD"), "--", CODE])?;
        let commit = match since.trim() {
            "0" => newest.trim().to_owned(),
            count => format!("{}+{count}", newest.trim()),
        };
        let day = shell::output(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned();
        Ok(Self { day, commit })
    }
}
