//! What may stand on the command line.

use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::commands;

/// The whole command line, for the generated reference, man pages and completions, and to tell what was meant by a
/// wrong one. `Cli` parses by one that has the arguments of a command only as it meets it.
#[must_use]
pub fn command() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// The same for the text of an error: every command has the usage line of its help. Of its own accord clap puts the
/// options that were typed into the usage of an error, as if each were needed.
pub(crate) fn command_for_errors() -> clap::Command {
    fn with_usage_of_help(mut command: clap::Command) -> clap::Command {
        let usage = command.render_usage().ansi().to_string();
        // Its first word is the heading.
        let usage = usage.split_once(' ').map(|(_, usage)| usage.to_owned()).unwrap_or_default();
        command.override_usage(usage).mut_subcommands(with_usage_of_help)
    }
    with_usage_of_help(command())
}

/// The parser, with what each command is for: it lists them. Of its own accord it learns that of a command that it
/// meets.
pub(crate) fn parser() -> clap::Command {
    let whole = command();
    Cli::command().mut_subcommands(|below| {
        let about = whole.find_subcommand(below.get_name()).and_then(clap::Command::get_about);
        let about = about.cloned().unwrap_or_default();
        below.about(about)
    })
}

/// Tune a Linux host and the memory-bound service on it: measure every change, keep what pays, undo all of it
#[derive(Debug, Parser)]
#[command(name = "planish", version, propagate_version = false, arg_required_else_help = true)]
#[command(max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub globals: Globals,
    #[command(subcommand)]
    pub command: Command,
}

/// Kept beside `planish_model::Exit`, which fixes the numbers; a test compares the two.
const EXIT_CODES: &str = "\
Exit codes:
  0   done, or cannot exist here
  1   findings, drift, or a value that someone else changed was kept
  2   usage: the command line, or a file or name in it, is wrong
  3   refused, nothing was changed
  4   failed, the host was put back as it was
  5   failed, the host could NOT be put back: see `planish log`
  6   trial inconclusive: noise can explain what was seen
  7   done, and stdout could not take the answer (a full disk): nobody has it
  70  a bug in planish";

/// Options of every command; they may stand anywhere before `--`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Take the recorded host in DIR for this machine; what is set is set in its files
    #[arg(long, global = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs
    #[arg(long, global = true, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Use colour: on terminals, always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Print data and errors only
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print every place, source and calculation
    #[arg(long, short, global = true, action = ArgAction::SetTrue)]
    pub verbose: bool,
    /// Print each stage and how long it took, on stderr
    #[arg(long, global = true)]
    pub timings: bool,
    /// Take this as the present time, in seconds since 1970: for tests on recorded hosts
    #[arg(long, global = true, hide = true, requires = "root", value_name = "SECONDS")]
    pub clock: Option<u64>,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// Where the stream is a terminal.
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// The commands, in the order of a first session.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Doctor(commands::doctor::Args),
    Plan(commands::plan::Args),
    Apply(commands::apply::Args),
    Confirm(commands::confirm::Args),
    Check(commands::check::Args),
    Undo(commands::undo::Args),
    #[command(hide = true)]
    WatchConfirm(commands::watch::Args),
    #[command(hide = true)]
    Hold(commands::hold::Args),
    // Other programs have these words for it.
    #[command(alias = "history")]
    Log(commands::log::Args),
    #[command(alias = "explain")]
    Knobs(commands::knobs::Args),
    Profiles(commands::profiles::Args),
    Import(commands::import::Args),
    Export(commands::export::Args),
    Size(commands::size::Args),
    Map(commands::map::Args),
    Top(commands::top::Args),
    Move(commands::relocate::Args),
    Topo(commands::topo::Args),
    Latency(commands::latency::Args),
    Run(commands::run::Args),
    Host(commands::host::Args),
    Diff(commands::host::Diff),
    Install(commands::install::Args),
    Text(commands::text::Args),
    Trial(commands::trial::Args),
    Prove(commands::prove::Args),
    Workload(commands::workload::Args),
    Version(commands::version::Args),
}
