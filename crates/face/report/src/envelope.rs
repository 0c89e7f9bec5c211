//! The one JSON object that every command prints under `--json`, on failure too.

use planish_model::Exit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of talk a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Good to know.
    Note,
    /// Done, but look at it.
    Warning,
    /// Why the command did not do what was asked.
    Error,
    /// The command line to type next.
    Next,
}

impl Level {
    /// The word in front of the message.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Next => "next",
        }
    }
}

/// Talk: what a person should know besides the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// What kind of talk.
    pub level: Level,
    /// One sentence or one command line.
    pub text: String,
    /// The cure, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Message {
    /// The same, with its sentences put through `tell`.
    #[must_use]
    pub fn told_by(self, tell: impl Fn(&str) -> String) -> Self {
        Self { level: self.level, text: tell(&self.text), hint: self.hint.as_deref().map(tell) }
    }

    /// A message without a cure.
    pub fn new(level: Level, text: impl Into<String>) -> Self {
        Self { level, text: text.into(), hint: None }
    }

    /// The same message with its cure.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The object around every result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope<T> {
    /// `planish.<command>/N`: names the file of `docs/schema/` that describes this object; N rises if a field changes.
    pub schema: String,
    /// Version of planish.
    pub version: String,
    /// The command, with a dash between words: `host-record`.
    pub command: String,
    /// The exit code of the process.
    pub exit: u8,
    /// What the command found; null when it failed before it could say.
    pub result: Option<T>,
    /// Talk, in the order in which it came up.
    pub messages: Vec<Message>,
}

impl<T> Envelope<T> {
    /// Wraps the result of a command.
    #[must_use]
    pub fn new(command: &str, exit: Exit, result: Option<T>, messages: Vec<Message>) -> Self {
        Self {
            schema: schema_name(command),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command.to_owned(),
            exit: exit.code(),
            result,
            messages,
        }
    }
}

/// The schema's name for a command. The number rises when a field changes its meaning, goes away, or may be null where
/// it never was: whoever reads the object by the older schema would fail on it.
pub(crate) fn schema_name(command: &str) -> String {
    let number = match command {
        // `rate`, `low` and `high` are null where no trial could have kept its placebo.
        "trial-honesty" => 2,
        // `hours_needed` was that of one rung, and is that of the whole trial.
        "prove" | "trial-run" | "trial-selfcheck" => 2,
        _ => 1,
    };
    format!("planish.{command}/{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_has_changed_has_a_schema_of_another_number() {
        let schema = |command| Envelope::<()>::new(command, Exit::Done, None, Vec::new()).schema;
        assert_eq!(schema("trial-honesty"), "planish.trial-honesty/2");
        assert_eq!(schema("trial-run"), "planish.trial-run/2");
        assert_eq!(schema("doctor"), "planish.doctor/1");
    }
}
