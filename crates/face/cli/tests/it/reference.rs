//! The whole command line reference, as one golden text.

use std::fmt::Write as _;

/// The long help of a command and of everything below it.
fn help(command: &mut clap::Command, path: &str, text: &mut String) {
    let _ = writeln!(text, "# {path}\n\n{}", command.render_long_help());
    for below in command.get_subcommands_mut() {
        if below.get_name() != "help" && !below.is_hide_set() {
            let path = format!("{path} {}", below.get_name());
            help(below, &path, text);
        }
    }
}

#[test]
fn the_reference_is_as_recorded() {
    let mut root = planish_cli::command();
    let mut text = String::new();
    help(&mut root, "planish", &mut text);
    insta::assert_snapshot!(text);
}

#[test]
fn the_exit_codes_of_the_help_are_those_of_the_contract() {
    let text = planish_cli::command().render_long_help().to_string();
    for (code, word) in [
        (planish_model::Exit::Done, "done"),
        (planish_model::Exit::Findings, "findings"),
        (planish_model::Exit::Usage, "usage"),
        (planish_model::Exit::Refused, "refused"),
        (planish_model::Exit::FailedRestored, "failed, the host was put back"),
        (planish_model::Exit::FailedNotRestored, "failed, the host could NOT"),
        (planish_model::Exit::Inconclusive, "trial inconclusive"),
        (planish_model::Exit::Bug, "a bug"),
    ] {
        let line = format!("\n  {:<4}{word}", code.code());
        assert!(text.contains(&line), "no line {line:?} in {text}");
    }
}
