//! From arguments to the exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use planish_model::Exit;
use planish_report::{Level, Message};
use tracing::info_span;

use crate::answer::Answer;
use crate::args::{Cli, command, command_for_errors, parser};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::{bug, commands, timings};

/// Runs `planish` with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    planish_sys::signals::heed_children();
    bug::say_panics_in_one_line();
    let mut words = std::env::args_os();
    // A link to planish may be named after the compiler that it wraps.
    let wrapped = words.next().and_then(|name| commands::text::called_as(&name));
    ExitCode::from(run(wrapped.into_iter().flatten().chain(words).collect()))
}

fn run(typed: Vec<OsString>) -> u8 {
    let cli = match parsed(&typed) {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error, typed),
    };
    // From here on the command line is sound.
    output::set_color(cli.globals.color);
    if cli.globals.timings {
        timings::print_stages();
    }
    let output = Output { json: cli.globals.json, quiet: cli.globals.quiet };
    let context = Context::new(cli.globals, typed);
    let name = cli.command.name();
    ended(output, name, &context, || info_span!("command").in_scope(|| cli.command.run(&context)))
}

/// Reads a command line. Help is told by a parser that knows what every command is for.
fn parsed(typed: &[OsString]) -> Result<Cli, clap::Error> {
    let line = || std::iter::once(OsString::from("planish")).chain(typed.iter().cloned());
    Cli::try_parse_from(line()).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            parser().try_get_matches_from(line()).err().unwrap_or(error)
        }
        _ => error,
    })
}

/// Runs a command, prints what it ended with, and gives its exit code.
fn ended(
    output: Output,
    name: &str,
    context: &Context,
    command: impl FnOnce() -> Result<Answer, Failure>,
) -> u8 {
    let ended = bug::caught(|| match command() {
        Ok(answer) => output.answer(context.with_left_out(answer).told_by(|text| context.here(text))),
        Err(failure) => {
            let message =
                failure.message(&context.again(""), &help_of(name)).told_by(|text| context.here(text));
            output.failure(name, failure.exit, message).code()
        }
    });
    // After a panic its line is on stderr already; only the envelope is missing.
    ended.unwrap_or_else(|bug| output.told(name, Exit::Bug, bug).code())
}

/// A command line that is not sound, or that asks for help or the version.
fn unparsed(error: &clap::Error, typed: Vec<OsString>) -> u8 {
    let json = typed.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    let output = Output { json, quiet: false };
    match error.kind() {
        ErrorKind::DisplayVersion if json => {
            let globals = Cli::parse_from(["planish", "version", "--json"]).globals;
            output.answer(commands::version::run(&Context::new(globals, typed)))
        }
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::print(&error.render().ansi().to_string(), Exit::Done).code()
        }
        _ => {
            let name = named_command(&typed);
            // Two may be the code of the program, and its stdout is not ours.
            let is_run = name == "run";
            if json && !is_run {
                let help = help_of(&name);
                let hint = if lacks_profile(error) { format!("{PROFILES}\n{help}") } else { help };
                let message = Message::new(Level::Error, sentence(error)).hint(hint);
                return output.failure(result_of(&name), Exit::Usage, message).code();
            }
            output::print_talk(&told(error, &typed));
            if is_run { commands::run::OWN_FAILURE } else { Exit::Usage.code() }
        }
    }
}

/// The text of a command line that is not sound.
fn told(error: &clap::Error, typed: &[OsString]) -> String {
    let again = match error.kind() {
        // Without a word it is the help.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => None,
        _ => {
            let program = std::iter::once(OsString::from("planish"));
            command_for_errors().try_get_matches_from(program.chain(typed.iter().cloned())).err()
        }
    };
    let Some(mut again) = again else { return bounds_in_words(error.render().ansi().to_string()) };
    if lacks_profile(&again) {
        let tip = format!("{PROFILES} lists the profiles that there are");
        again.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    if again.kind() == ErrorKind::UnknownArgument && again.get(ContextKind::SuggestedArg).is_none() {
        // Nobody who types an option that there is not means a word that begins with two dashes.
        again.remove(ContextKind::Suggested);
        let is_service = typed.iter().any(|word| word.to_string_lossy().starts_with("--service"));
        let is_word = matches!(again.get(ContextKind::InvalidArg),
            Some(ContextValue::String(word)) if !word.starts_with('-'));
        let tip = match named_command(typed).as_str() {
            "check" if is_service => "what was applied for a service is in the journal: planish check",
            "size" if is_service => "name the service itself: planish size NAME",
            "run" if is_word => "two dashes go before the program: planish run [OPTIONS] -- CMD...",
            _ => "",
        };
        if !tip.is_empty() {
            again.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.to_owned().into()]));
        }
    }
    bounds_in_words(again.render().ansi().to_string())
}

/// The bounds of a number in words, which clap tells as Rust has them: `5 is not in 6..=1000`.
fn bounds_in_words(text: String) -> String {
    let Some((before, rest)) = text.split_once(" is not in ") else { return text };
    let (range, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
    let Some((low, high)) = range.split_once("..") else { return text };
    let told = match high.strip_prefix('=') {
        Some(high) => format!("is no whole number from {low} to {high}"),
        None if high.is_empty() => format!("is less than {low}"),
        None => format!("is no whole number below {high}"),
    };
    format!("{before} {told}{after}")
}

/// What lists what a profile may be called.
const PROFILES: &str = "planish profiles";

/// Whether a profile is missing on a command line: its usage alone names none.
fn lacks_profile(error: &clap::Error) -> bool {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return false };
    let is_one = |argument: &String| argument.trim_start_matches('<').starts_with("PROFILE");
    error.kind() == ErrorKind::MissingRequiredArgument && missing.iter().any(is_one)
}

/// The command line that explains a command of the envelope: `trial-run` is `planish trial run`, and `top-c2c` is
/// `planish top` with an option.
fn help_of(name: &str) -> String {
    let (whole, mut line) = (parser(), "planish".to_owned());
    let mut command = &whole;
    for word in name.split('-') {
        let Some(below) = command.find_subcommand(word) else { break };
        command = below;
        line = line + " " + word;
    }
    line + " --help"
}

/// The name of what a command answers with: `prove postgres` answers as `prove`, and `trial` alone does not answer.
fn result_of(name: &str) -> &str {
    let known = planish_report::schema_names();
    let mut names = std::iter::successors(Some(name), |name| Some(name.rsplit_once('-')?.0));
    names.find(|name| known.contains(name)).unwrap_or("usage")
}

/// What is wrong, in one line: the first line of clap's text, what it lists below it, and the nearest valid word.
pub(crate) fn sentence(error: &clap::Error) -> String {
    let text = bounds_in_words(error.render().to_string());
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    // The arguments that are missing or at odds, and the words that an option takes, stand indented below.
    let listed: Vec<&str> = lines
        .take_while(|line| line.starts_with("  "))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let first = if listed.is_empty() { first.to_owned() } else { format!("{first} {}", listed.join(", ")) };
    let suggested =
        [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand]
            .into_iter()
            .find_map(|kind| error.get(kind))
            .map(|nearest| format!("; did you mean `{nearest}`?"));
    first + &suggested.unwrap_or_default()
}

/// The command that was meant, as far as its words are valid: `trial-run`; `usage` where there is none.
fn named_command(typed: &[OsString]) -> String {
    let root = command();
    let mut at = &root;
    let mut words: Vec<String> = Vec::new();
    // The value of an option may be spelt as a command is: `--root host plan` is a plan.
    let mut is_value = false;
    for word in typed.iter().map(|word| word.to_string_lossy()).take_while(|word| word != "--") {
        if word.starts_with('-') {
            is_value = stands_before_its_value(&word, &root, at);
        } else if !std::mem::take(&mut is_value)
            && let Some(found) = at.find_subcommand(word.as_ref()).filter(|found| found.get_name() != "help")
        {
            words.push(found.get_name().to_owned());
            at = found;
        }
    }
    match words.as_slice() {
        [] => "usage".to_owned(),
        // The short form of `host diff`, which answers by its schema.
        [only] if only == "diff" => "host-diff".to_owned(),
        words => words.join("-"),
    }
}

/// Whether a word is a global option, or one of this command, whose value is the next word. No command that has
/// commands below it has a value behind a short option.
fn stands_before_its_value(word: &str, root: &clap::Command, at: &clap::Command) -> bool {
    let Some(long) = word.strip_prefix("--") else { return false };
    let of_root = root.get_arguments().filter(|option| option.is_global_set());
    of_root
        .chain(at.get_arguments())
        .any(|option| option.get_long() == Some(long) && option.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_was_meant_is_found_behind_global_options() {
        let name = |line: &str| named_command(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(name("--json --root hosts/x version --bogus"), "version");
        assert_eq!(name("--json dotcor"), "usage");
        assert_eq!((name("history --bogus"), name("explain -x")), ("log".to_owned(), "knobs".to_owned()));
        assert_eq!((name("help run bogus"), name("help help")), ("run".to_owned(), "usage".to_owned()));
    }

    #[test]
    fn the_value_of_an_option_is_not_the_command_that_was_meant() {
        let name = |line: &str| named_command(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        // Of `run` the code of a wrong command line would be another one.
        for line in ["--root host plan --bogus", "--state run plan", "--root run --json --color text plan"] {
            assert_eq!(name(line), "plan", "{line}");
        }
        assert_eq!(name("--root host --bogus"), "usage");
        assert_eq!(name("trial --state run selfcheck"), "trial-selfcheck");
        assert_eq!(name("prove --html postgres postgres"), "prove-postgres");
        // An option is no value of the one before it.
        assert_eq!(name("--root --json host record"), "host-record");
        assert_eq!(name("--root=hosts/x host record --quiet d"), "host-record");
    }

    #[test]
    fn no_command_with_commands_below_it_has_a_value_behind_a_short_option() {
        fn look(command: &clap::Command) {
            for option in command.get_arguments().filter(|_| command.has_subcommands()) {
                let has_value = option.get_action().takes_values();
                assert!(!has_value || option.get_short().is_none(), "{}: {option}", command.get_name());
            }
            command.get_subcommands().for_each(look);
        }
        look(&command());
    }

    #[test]
    fn an_error_of_usage_answers_by_a_schema_that_there_is() {
        for (command, result) in
            [("prove-postgres", "prove"), ("trial-run", "trial-run"), ("trial", "usage"), ("usage", "usage")]
        {
            assert_eq!(result_of(command), result);
        }
    }

    #[test]
    fn exit_70_is_a_bug_and_a_refusal_keeps_its_code() {
        let _turn = bug::TURN.lock().expect("no test panics while it holds this");
        let globals = Cli::parse_from(["planish", "version"]).globals;
        let (output, context) = (Output { json: false, quiet: true }, Context::new(globals, Vec::new()));
        let exit = ended(output, "version", &context, || panic!("a step without a knob"));
        assert_eq!(exit, 70);
        let exit = ended(output, "version", &context, || Err(Failure::refused("no")));
        assert_eq!(exit, 3);
    }

    #[test]
    fn help_tells_what_each_command_is_for_and_takes_the_name_of_one() {
        let help = |line: &str| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let error = parsed(&words).expect_err("help ends the parsing");
            anstream::adapter::strip_str(&error.render().ansi().to_string()).to_string()
        };
        for line in ["", "--help", "-h", "help", "--json --help"] {
            let text = help(line);
            for row in ["\n  doctor    Tell what this machine loses", "\n  help      Print this"] {
                assert!(text.contains(row), "{line}: {row}: {text}");
            }
        }
        assert_eq!(help("help plan"), help("plan --help"));
        assert_eq!(help("help trial run"), help("trial run --help"));
        assert!(help("help help").contains("Usage: planish help [COMMAND]...\n"), "{}", help("help help"));
        assert!(help("text").contains("\n  record  "), "{}", help("text"));
    }

    #[test]
    fn the_usage_of_an_error_is_that_of_the_help() {
        let usage = |line: &str| {
            let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = parsed(&typed).expect_err("not sound");
            let text = told(&error, &typed);
            assert_eq!(text.lines().next(), error.render().ansi().to_string().lines().next());
            let plain = anstream::adapter::strip_str(&text).to_string();
            plain.lines().find_map(|line| line.strip_prefix("Usage: ").map(str::to_owned)).expect("a usage")
        };
        assert_eq!(usage("plan --root hosts/x --state s"), "planish plan [OPTIONS] <PROFILE>");
        assert_eq!(usage("--root hosts/x plan --bogus x"), "planish plan [OPTIONS] <PROFILE>");
        assert_eq!(usage("trial --quiet run"), "planish trial run [OPTIONS] <F>");
        assert_eq!(usage("--state s doctr"), "planish [OPTIONS] <COMMAND>");
    }

    #[test]
    fn who_names_no_profile_is_told_what_lists_them() {
        let told = |line: &str| {
            let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = parsed(&typed).expect_err("not sound");
            anstream::adapter::strip_str(&told(&error, &typed)).to_string()
        };
        for line in ["plan", "apply --yes", "export script", "export"] {
            assert!(told(line).contains("planish profiles lists the profiles"), "{}", told(line));
        }
        for line in ["import", "plan series --bogus"] {
            assert!(!told(line).contains("planish profiles"), "{}", told(line));
        }
    }

    #[test]
    fn a_usage_error_is_told_in_one_line() {
        let error = parsed(&["version", "--jsn"].map(OsString::from)).expect_err("no such option");
        assert_eq!(sentence(&error), "unexpected argument '--jsn' found; did you mean `--json`?");
    }

    #[test]
    fn bounds_of_a_number_are_told_in_words() {
        let typed = ["move", "1", "--to", "0", "--rate", "0"].map(OsString::from);
        let error = parsed(&typed).expect_err("out of bounds");
        for text in [sentence(&error), told(&error, &typed)] {
            assert!(text.contains("0 is no whole number from 1 to 1000000"), "{text}");
        }
    }

    #[test]
    fn a_usage_error_in_one_line_keeps_the_names_that_it_is_about() {
        let told = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            sentence(&parsed(&words).expect_err("not sound"))
        };
        assert_eq!(told("plan"), "the following required arguments were not provided: <PROFILE>");
        let missing = told("trial run");
        assert!(missing.ends_with("were not provided: <F>"), "{missing}");
        let conflict = told("doctor --quiet --verbose");
        assert!(conflict.contains("--quiet") && conflict.contains("--verbose"), "{conflict}");
        let values = told("doctor --color sometimes");
        assert!(values.ends_with("[possible values: auto, always, never]"), "{values}");
    }
}
