//! The command line: a reference, manual pages, shell completions.

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, Id};
use clap_complete::Shell;
use clap_mangen::Man;
use planish_model::Catalogue;
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
    section(&of_one_width(command.clone()), &mut Vec::new(), &mut text);
    text
}

fn of_one_width(command: Command) -> Command {
    command.term_width(WIDTH_COLUMNS).mut_subcommands(of_one_width)
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
    of_manual(&without_help(command.clone()), folder)
}

fn without_help(command: Command) -> Command {
    let is_shown = command.get_name() != "help" && !command.is_hide_set();
    command.hide(!is_shown).mut_subcommands(without_help)
}

fn of_manual(command: &Command, folder: &Path) -> Result<()> {
    for below in visible(command) {
        of_manual(below, folder)?;
    }
    let (name, text) = page(command)?;
    let file = folder.join(name);
    std::fs::write(&file, text).with_context(|| format!("write {}", file.display()))
}

/// One page, and the name of its file.
fn page(command: &Command) -> Result<(String, String)> {
    let page = Man::new(command.clone()).source("planish").manual("Commands of planish");
    let name = page.get_filename();
    let mut roff = Vec::new();
    page.render(&mut roff).with_context(|| format!("render {name}"))?;
    let mut text = String::from_utf8(roff).context("a page is text")?;
    // What stands behind the options: of the program itself its exit codes, of commands what else is to know.
    let is_program = command.get_name() == "planish";
    text = with_values(&text, command);
    text = text.replace(".SH EXTRA\n", if is_program { ".SH \"EXIT STATUS\"\n" } else { ".SH NOTES\n" });
    if !is_program {
        text.push_str(".SH \"SEE ALSO\"\nplanish(1), which tells the exit codes.\n");
    }
    Ok((name, text))
}

/// The page with the value of each option in its synopsis: the generator tells options there as if none took any.
fn with_values(page: &str, command: &Command) -> String {
    const HEADING: &str = ".SH SYNOPSIS\n";
    let Some((before, (synopsis, after))) =
        page.split_once(HEADING).and_then(|(before, rest)| Some((before, rest.split_once('\n')?)))
    else {
        return page.to_owned();
    };
    let mut synopsis = synopsis.to_owned();
    for option in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
        let (Some(long), Some(values)) = (option.get_long(), option.get_value_names()) else { continue };
        let roff = |text: &str| text.replace('-', "\\-");
        let name = format!("\\fB{}\\fR", roff(&format!("--{long}")));
        let values: Vec<String> = values.iter().map(|value| format!("\\fI{}\\fR", roff(value))).collect();
        // One that is needed has no brackets.
        if let Some(end) = ["]", " ", ">"].into_iter().find(|end| synopsis.contains(&format!("{name}{end}")))
        {
            let told = format!("{name} {}{end}", values.join(" "));
            synopsis = synopsis.replacen(&format!("{name}{end}"), &told, 1);
        }
    }
    format!("{before}{HEADING}{synopsis}\n{after}")
}

/// Words that are known when the completions are made. Own profiles and entries of the journal are not.
struct Words {
    profiles: Vec<&'static str>,
    knobs: Vec<&'static str>,
    writers: Vec<&'static str>,
}

/// A word for clap, which keeps what lives as long as this program does.
fn kept(word: &str) -> &'static str {
    word.to_owned().leak()
}

impl Words {
    fn read() -> Result<Self> {
        let catalogue = Catalogue::embedded()?;
        Ok(Self {
            profiles: catalogue.profile_names().map(kept).collect(),
            knobs: catalogue.knobs().map(|knob| kept(knob.id.as_str())).collect(),
            writers: catalogue.writers().iter().map(|writer| kept(&writer.id)).collect(),
        })
    }

    /// What an argument takes, by the name of its value in the help.
    fn of(&self, arg: &Arg) -> Vec<&'static str> {
        let name = arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
        match name {
            "PROFILE" | "PROFILE|F" => self.profiles.clone(),
            "KNOB" | "ID|WORD" => self.knobs.clone(),
            "KNOB|WRITER" => [self.knobs.as_slice(), &self.writers].concat(),
            "CLASS" => vec!["availability", "durability"],
            _ => Vec::new(),
        }
    }

    /// A command as its help shows it, with these words for its arguments.
    fn shown(&self, command: &Command) -> Command {
        self.shown_below(command, &[])
    }

    /// The same below a command with some options. What is inherited, and what clap adds to every command, the
    /// generator adds again.
    fn shown_below(&self, command: &Command, inherited: &[&Id]) -> Command {
        use ArgAction::{Help, HelpLong, HelpShort, Version};
        let arg = |arg: &Arg| match self.of(arg) {
            words if words.is_empty() => arg.clone(),
            words => arg.clone().value_parser(PossibleValuesParser::new(words)),
        };
        let is_own = |arg: &&Arg| {
            let is_added = matches!(arg.get_action(), Help | HelpLong | HelpShort | Version);
            !arg.is_hide_set() && !is_added && !inherited.contains(&arg.get_id())
        };
        let args = command.get_arguments().filter(is_own).map(arg);
        let shown = Command::new(kept(command.get_name())).args(args);
        let shown = shown.about(command.get_about().cloned().unwrap_or_default());
        let shown = match command.get_version() {
            Some(version) => shown.version(kept(version)),
            None => shown,
        };
        let options: Vec<&Id> =
            command.get_arguments().filter(|arg| arg.is_global_set()).map(Arg::get_id).collect();
        shown.subcommands(visible(command).map(|below| self.shown_below(below, &options)))
    }
}

/// Completions for bash, zsh and fish.
pub fn completions(command: &Command, folder: &Path) -> Result<()> {
    let mut command = Words::read()?.shown(command);
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let file = clap_complete::generate_to(shell, &mut command, "planish", folder)
            .with_context(|| format!("write {shell} completions to {}", folder.display()))?;
        if shell == Shell::Bash {
            let script = std::fs::read_to_string(&file).context("read what was written")?;
            std::fs::write(&file, by_position(&script, &command)).context("write it again")?;
        }
    }
    Ok(())
}

/// The completions for bash with the words of a first argument where that stands, and those of the next ones behind it:
/// the generator offers all of them at each place.
fn by_position(script: &str, command: &Command) -> String {
    let mut script = script.to_owned();
    for below in command.get_subcommands() {
        let words = below.get_positionals().map(|arg| {
            let values = arg.get_possible_values();
            values.iter().map(|value| value.get_name().to_owned()).collect::<Vec<_>>()
        });
        let [first, second] = words.collect::<Vec<_>>().try_into().unwrap_or_default();
        if first.is_empty() || second.is_empty() {
            continue;
        }
        let head = format!("        planish__subcmd__{})\n            opts=\"", below.get_name());
        let Some((before, (opts, after))) =
            script.split_once(&head).and_then(|(before, rest)| Some((before, rest.split_once("\"\n")?)))
        else {
            continue;
        };
        let of = |others: &[String]| {
            let kept = opts.split(' ').filter(|word| !others.iter().any(|other| other == word));
            kept.collect::<Vec<_>>().join(" ")
        };
        script = format!(
            "{before}{head}{}\"\n            [[ ${{prev}} != {} ]] || opts=\"{}\"\n{after}",
            of(&first),
            below.get_name(),
            of(&second)
        );
    }
    script
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    use super::{GLOBALS, WIDTH_COLUMNS, Words, by_position, own, page, reference};

    #[test]
    fn a_first_argument_is_not_completed_by_the_words_of_the_second() {
        let mut command = Words::read().expect("a catalogue").shown(&planish_cli::command());
        let mut script = Vec::new();
        clap_complete::generate(Shell::Bash, &mut command, "planish", &mut script);
        let script = by_position(&String::from_utf8(script).expect("text"), &command);
        let (_, of_export) = script.split_once("\n        planish__subcmd__export)\n").expect("a case");
        let lines: Vec<&str> = of_export.lines().take(2).collect();
        assert!(lines[0].contains(" throughput ") && !lines[0].contains(" tuned "), "{}", lines[0]);
        assert!(lines[1].contains("!= export") && lines[1].contains(" tuned "), "{}", lines[1]);
        assert!(!lines[1].contains(" throughput "), "{}", lines[1]);
    }

    #[test]
    fn completions_offer_what_the_help_shows_and_the_words_that_are_known() {
        let mut command = Words::read().expect("a catalogue").shown(&planish_cli::command());
        let mut script = Vec::new();
        clap_complete::generate(Shell::Bash, &mut command, "planish", &mut script);
        let script = String::from_utf8(script).expect("text");
        for word in
            ["--root", "zepto", "vm.swappiness", "irqbalance", "compgen -W \"availability durability\""]
        {
            assert!(script.contains(word), "{word}");
        }
        for word in ["--clock", "watch-confirm"] {
            assert!(!script.contains(word), "{word}");
        }
    }

    #[test]
    fn a_page_of_the_manual_has_a_header_and_names_its_sections() {
        let command = planish_cli::command();
        let (name, program) = page(&command).expect("a page");
        assert_eq!(name, "planish.1");
        assert!(program.contains(".SH \"EXIT STATUS\"") && !program.contains("EXTRA"), "{program}");
        let (name, plan) = page(command.find_subcommand("plan").expect("a command")).expect("a page");
        assert_eq!(name, "planish-plan.1");
        assert!(plan.contains("\n.TH planish-plan 1  planish \"Commands of planish\"\n"), "{plan}");
        assert!(plan.contains("[\\fB\\-\\-root\\fR \\fIDIR\\fR]"), "{plan}");
        assert!(plan.contains("[\\fB\\-o\\fR|\\fB\\-\\-output\\fR \\fIF\\fR]"), "{plan}");
        assert!(plan.ends_with(".SH \"SEE ALSO\"\nplanish(1), which tells the exit codes.\n"), "{plan}");
    }

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
