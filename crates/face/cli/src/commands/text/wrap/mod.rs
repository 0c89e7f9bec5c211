//! `planish text cc` and `planish text ld`: the user's own compiler or linker, whose links follow an order.
//!
//! Whatever is no link that an order is about is not even waited for: this process becomes the compiler. A link is
//! waited for, because one that fails by what was added is done again as the user asked for it.

mod link;
mod name;
mod options;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use planish_order::command_line::{
    FUNCTION_SECTIONS, Work, expand, is_for_bare_machine, is_known_compiler, launchers, work_of_compiler,
    work_of_linker,
};
use planish_report::{Level, Message};
use planish_sys::child::{ChildSetup, prepare};

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;
pub(super) use link::captured;
pub(crate) use name::called_as;
use options::Options;

// Without a doc comment: it would stand in the help of both commands in place of their own.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(flatten)]
    options: Options,
    /// The compiler or linker, with its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
Without --order, --profile or --huge the command is run as it is. The variable PLANISH_TEXT holds
more of these options, where a command line has no place for them; what is typed goes before it:
  PLANISH_TEXT='--order /src/order.txt --only server'
By a name of planish- and the name of a compiler or linker, planish is the wrapper of that one:
  ln -s \"$(command -v planish)\" ~/bin/planish-g++     planish-g++ = planish text cc -- g++
Exit codes: those of the command, 128 and the signal where one ended it; and
  2    the options are wrong; with --strict also an order that cannot be read
  3    --strict, and the order cannot be used: nothing was linked
  126  the command cannot be run
  127  there is no such command
Recipes for make, cmake, cargo, meson, Bazel, Buck2 and Docker: docs/text-cc.md";

/// What is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Compiler,
    Linker,
}

impl Tool {
    /// The name of the command.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compiler => "text-cc",
            Self::Linker => "text-ld",
        }
    }
}

/// The command line of the user.
struct Wrapped<'a> {
    tool: Tool,
    /// Launchers and the compiler, or the linker.
    program: &'a [OsString],
    arguments: &'a [OsString],
}

pub(super) fn run(tool: Tool, args: &Args, context: &Context) -> Result<Answer, Failure> {
    if context.globals.root.is_some() {
        return Err(Failure::usage("nothing runs on a recorded host").hint("leave --root out"));
    }
    if context.globals.json {
        let failed = Failure::usage("stdout belongs to the command, so the JSON object has no place there");
        return Err(failed.hint("leave --json out"));
    }
    let options = args.options.clone().with_variable()?;
    let words = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let count = if tool == Tool::Compiler { launchers(&words) } else { 1 };
    let (program, arguments) = args.command.split_at(count);
    let wrapped = Wrapped { tool, program, arguments };
    if !options.asks() {
        return Ok(wrapped.become_it(&[]));
    }
    // A pipe can be read once, and it is the compiler's.
    let read = |name: &str| {
        let path = Some(Path::new(name)).filter(|path| path.is_file())?;
        let bytes = planish_sys::file::read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let words = expand(words.into_iter().skip(count), &read);
    let work = if tool == Tool::Compiler { work_of_compiler(&words) } else { work_of_linker(&words) };
    let adds_sections = options.adds_sections() && wrapped.takes_sections();
    match work {
        Work::Compile if adds_sections => Ok(wrapped.become_it(&[FUNCTION_SECTIONS.to_owned()])),
        Work::Link(link) if options.means(&link.output) => {
            link::run(&wrapped, (&link, &words), &options, adds_sections, context)
        }
        _ => Ok(wrapped.become_it(&[])),
    }
}

impl Wrapped<'_> {
    /// Whether its options are known: what is added to a compilation is not tried first.
    fn is_known(&self) -> bool {
        self.program.last().is_some_and(|program| is_known_compiler(&program.to_string_lossy()))
    }

    /// Whether what it compiles may have sections of its functions.
    fn takes_sections(&self) -> bool {
        let is_bare = |program: &OsString| is_for_bare_machine(&program.to_string_lossy());
        self.is_known() && !self.program.last().is_some_and(is_bare)
    }

    /// The command with words before its own. Behind these they could become something else: the value of an option
    /// that lacks one, or an input behind `--`.
    fn with(&self, added: &[String]) -> Command {
        let mut command = self.asking(added);
        command.args(self.arguments);
        command
    }

    /// The program with other arguments.
    fn asking<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).args(arguments);
        // It is what we were started as: it heeds the signals that we were given to heed.
        prepare(&mut command, ChildSetup::default());
        command
    }

    /// Becomes the command; comes back only where that cannot be.
    fn become_it(&self, added: &[String]) -> Answer {
        let mut error = self.with(added).exec();
        if !added.is_empty() {
            // The user's own words may be all that the kernel takes.
            error = self.with(&[]).exec();
        }
        self.not_started(&error)
    }

    /// Nothing was started, told and coded as shells do.
    fn not_started(&self, error: &io::Error) -> Answer {
        let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
        let text = format!("cannot run {}: {error}", self.program[0].to_string_lossy());
        let message = Message::new(Level::Error, text).hint("name a compiler or linker that is installed");
        Answer::printed(self.tool.name()).code(code).message(message)
    }
}
