//! The command line: a reference, manual pages, shell completions.

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use std::fmt::Write as _;
use std::path::Path;

/// Columns of the help text; the terminal of whoever runs this must not matter.
const WIDTH_COLUMNS: usize = 100;

/// Every command with the help text that it prints itself.
pub fn reference(command: &Command) -> String {
    let mut text =
        String::from("# Command line\n\nWritten by `./x docs` from the command line itself; do not edit.\n");
    section(&command.clone().term_width(WIDTH_COLUMNS), &mut Vec::new(), &mut text);
    text
}

fn section(command: &Command, parents: &mut Vec<String>, text: &mut String) {
    parents.push(command.get_name().to_owned());
    let name = parents.join(" ");
    let help = command.clone().bin_name(&name).render_long_help().to_string();
    let lines: Vec<&str> = help.trim().lines().map(str::trim_end).collect();
    writeln!(text, "\n## {name}\n\n```text\n{}\n```", lines.join("\n")).expect("a String takes every text");
    for below in visible(command) {
        section(&below.clone().term_width(WIDTH_COLUMNS), parents, text);
    }
    parents.pop();
}

/// Commands that the help lists; `help` itself is said once, by clap.
fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

/// `planish.1`, and `planish-<command>.1` for each command.
pub fn man_pages(command: &Command, folder: &Path) -> Result<()> {
    clap_mangen::generate_to(command.clone().disable_help_subcommand(true), folder)
        .with_context(|| format!("write manual pages to {}", folder.display()))
}

/// Completions for bash, zsh and fish.
pub fn completions(mut command: Command, folder: &Path) -> Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "planish", folder)
            .with_context(|| format!("write {shell} completions to {}", folder.display()))?;
    }
    Ok(())
}
