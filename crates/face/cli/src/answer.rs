//! What a command ends with when it could do what was asked.

use planish_model::Exit;
use planish_report::{Level, Message};
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
    /// The exit code of a program that was run for the user: it goes before `exit`, which is ours.
    pub code: Option<u8>,
    /// The exit code where stdout took nothing of it; as for all commands that only look without it.
    pub unprinted: Option<u8>,
    pub messages: Vec<Message>,
}

impl Answer {
    /// A command that owned stdout and printed all of its data there.
    pub fn printed(command: &'static str) -> Self {
        Self {
            command,
            body: Body::Text(String::new()),
            exit: Exit::Done,
            code: None,
            unprinted: None,
            messages: Vec::new(),
        }
    }

    /// Its text is in a file that was asked for: printed too, it would push what there is to say of it off the screen.
    pub fn saved(mut self) -> Self {
        if let Body::Text(text) = &mut self.body {
            text.clear();
        }
        self
    }

    /// Ends with another code than 0.
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Ends with the code of the program that was run.
    pub fn code(mut self, code: u8) -> Self {
        self.code = Some(code);
        self
    }

    /// Ends with this code where its one line could not be printed: nobody was told what it found.
    pub fn unprinted(mut self, code: u8) -> Self {
        self.unprinted = Some(code);
        self
    }

    /// Adds something good to know.
    pub fn note(self, text: impl Into<String>) -> Self {
        self.message(Message::new(Level::Note, text))
    }

    /// Adds something to look at.
    pub fn warning(self, text: impl Into<String>) -> Self {
        self.message(Message::new(Level::Warning, text))
    }

    /// Says what to type next. The last line of talk, so the last call.
    pub fn next(self, command: impl Into<String>) -> Self {
        self.message(Message::new(Level::Next, command))
    }

    /// Adds a message.
    pub fn message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// The same, with the sentences of its talk put through `tell`.
    pub fn told_by(mut self, tell: impl Fn(&str) -> String) -> Self {
        self.messages = self.messages.into_iter().map(|message| message.told_by(&tell)).collect();
        self
    }
}
