//! What a command ends with when it could do what was asked.

use planish_model::Exit;
use planish_report::Message;
use serde_json::Value;

/// The data of an answer in the form that was asked for.
#[derive(Debug)]
pub(crate) enum Body {
    /// Text for stdout.
    Text(String),
    /// The `result` of the envelope.
    Json(Value),
}

/// A finished command: data, talk and the exit code.
#[derive(Debug)]
pub(crate) struct Answer {
    pub command: &'static str,
    pub body: Body,
    pub exit: Exit,
    pub messages: Vec<Message>,
}
