//! The command line: a reference, manual pages, shell completions.

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use std::fmt::Write as _;
use std::path::Path;

/// Columns of the help text; the terminal of whoever runs this must not matter.
const WIDTH_COLUMNS: usize = 100;

/// What stands above the options that every command takes.
const GLOBALS: &str = "Global options:";

/// Every command with the help text that it prints itself; the options that all of them take are listed once.
pub fn reference(command: &Command) -> String {
    let mut text =
        String::from("# Command line\n\nWritten by `./x docs` from the command line itself; do not edit.\n");
    text.push_str(
        "The global options of `planish` may stand behind every command; its own `--help` lists them too.\n",
    );
    section(&built(command), &mut Vec::new(), &mut text);
    text
}

/// The command as it is once it has parsed a line: only then has each command the options that it inherits.
fn built(command: &Command) -> Command {
    let mut command = command.clone().term_width(WIDTH_COLUMNS);
    command.build();
    command
}

fn section(command: &Command, parents: &mut Vec<String>, text: &mut String) {
    parents.push(command.get_name().to_owned());
    let name = parents.join(" ");
    let help = command.clone().bin_name(&name).render_long_help().to_string();
    let shown = if parents.len() == 1 { help } else { own(&help) };
    let lines: Vec<&str> = shown.trim().lines().map(str::trim_end).collect();
    writeln!(text, "\n## {name}\n\n```text\n{}\n```", lines.join("\n")).expect("a String takes every text");
    for below in visible(command) {
        section(below, parents, text);
    }
    parents.pop();
}

/// A help text without the options that every command takes: their lines are indented, what follows is not.
fn own(help: &str) -> String {
    let mut is_global = false;
    let kept = help.lines().filter(|line| {
        is_global = *line == GLOBALS || is_global && (line.is_empty() || line.starts_with(' '));
        !is_global
    });
    kept.collect::<Vec<_>>().join("\n")
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

#[cfg(test)]
mod tests {
    use super::{GLOBALS, WIDTH_COLUMNS, own, reference};

    #[test]
    fn a_section_is_the_help_that_its_command_prints() {
        let command = planish_cli::command();
        let text = reference(&command);
        for words in [&["prove", "series"][..], &["trial", "run"], &["apply"], &["text", "record"], &["run"]]
        {
            let line = [&["planish"], words, &["--help"]].concat();
            let help = command.clone().term_width(WIDTH_COLUMNS).try_get_matches_from(line);
            let help = help.expect_err("help ends the parsing").render().to_string();
            let help = own(&help);
            let lines: Vec<&str> = help.trim().lines().map(str::trim_end).collect();
            let section = format!("\n## planish {}\n\n```text\n{}\n```\n", words.join(" "), lines.join("\n"));
            assert!(text.contains(&section), "{section}");
        }
        assert_eq!(
            own("Usage\n\nGlobal options:\n  -q\n\n      --json\n\nExit codes"),
            "Usage\n\nExit codes"
        );
        assert_eq!(text.matches(GLOBALS).count(), 1, "they are listed once");
        let (_, series) = text.split_once("\n## planish prove series\n").expect("a section");
        let (series, _) = series.split_once("\n## ").expect("one more");
        assert!(["--quick", "--seed", "--budget", "--html"].iter().all(|option| series.contains(option)));
    }
}
