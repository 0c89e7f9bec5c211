//! What every command is given: the global options, and the command line as it was typed.

use std::ffi::OsString;

use planish_host::Host;
use planish_model::{Catalogue, Exit};
use planish_pipeline::{Session, SessionOptions};
use planish_report::{Page, PageOptions, Report};

use crate::answer::{Answer, Body};
use crate::args::Globals;
use crate::failure::Failure;
use crate::output;

/// The surroundings of a running command.
#[derive(Debug)]
pub(crate) struct Context {
    pub globals: Globals,
    /// Arguments as they were typed, without the name of the program.
    typed: Vec<OsString>,
}

impl Context {
    pub fn new(globals: Globals, typed: Vec<OsString>) -> Self {
        Self { globals, typed }
    }

    /// The machine that `--root` names, or this one.
    pub fn host(&self) -> Result<Host, Failure> {
        match &self.globals.root {
            Some(folder) => Ok(Host::open(folder)?),
            None => Ok(Host::live()),
        }
    }

    /// The host, the journal and the catalogue that the global options name.
    pub fn session(&self) -> Result<Session, Failure> {
        let Globals { root, state, clock, .. } = self.globals.clone();
        Ok(Session::open(SessionOptions { root, state, clock, command: self.again("") })?)
    }

    /// An answer that succeeded, in the form that was asked for.
    pub fn answer<R: Report>(&self, report: &R, catalogue: &Catalogue) -> Answer {
        let body = if self.globals.json {
            Body::Json(serde_json::to_value(report).expect("reports are plain data with text keys"))
        } else {
            Body::Text(self.text(report, catalogue))
        };
        Answer { command: R::COMMAND, body, exit: Exit::Done, code: None, messages: Vec::new() }
    }

    /// A report as text for stdout.
    pub fn text<R: Report>(&self, report: &R, catalogue: &Catalogue) -> String {
        let options = PageOptions { width: output::width(), detailed: self.globals.verbose };
        let mut page = Page::new(options, catalogue);
        report.text(&mut page);
        page.into_text()
    }

    /// A command line for the same host and state: `planish --root hosts/x check`.
    pub fn line(&self, command: &str) -> String {
        let mut line = "planish".to_owned();
        for (option, folder) in [("--root", &self.globals.root), ("--state", &self.globals.state)] {
            if let Some(folder) = folder {
                line.push_str(&format!(" {option} {}", quoted(&folder.to_string_lossy())));
            }
        }
        format!("{line} {command}")
    }

    /// The same for a command that writes the host: only root may do that on a live one.
    pub fn root_line(&self, command: &str) -> String {
        self.as_root(self.line(command))
    }

    fn as_root(&self, line: String) -> String {
        let allowed = self.globals.root.is_some() || rustix::process::geteuid().is_root();
        if allowed { line } else { format!("sudo {line}") }
    }

    /// The command line as it was typed, to be typed again with something added: `planish apply x --yes`.
    pub fn again(&self, added: &str) -> String {
        // A fixed clock is for tests and no part of what a person types.
        let mut typed = self.typed.as_slice();
        let mut words = Vec::new();
        while let [word, rest @ ..] = typed {
            typed = if word == "--clock" { rest.get(1..).unwrap_or_default() } else { rest };
            if word != "--clock" {
                words.push(quoted(&word.to_string_lossy()));
            }
        }
        let mut line = "planish".to_owned();
        for word in words.into_iter().chain((!added.is_empty()).then(|| added.to_owned())) {
            line.push(' ');
            line.push_str(&word);
        }
        line
    }

    /// The same for a command that writes the host.
    pub fn again_as_root(&self, added: &str) -> String {
        self.as_root(self.again(added))
    }
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_survive_a_shell() {
        for (word, shell) in [
            ("apply", "apply"),
            ("two words", "'two words'"),
            ("", "''"),
            ("it's", r"'it'\''s'"),
            ("$x", "'$x'"),
        ] {
            assert_eq!(quoted(word), shell);
        }
    }
}
