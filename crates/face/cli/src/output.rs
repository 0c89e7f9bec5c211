//! Where words go: data to stdout, talk to stderr, and under `--json` both into one envelope on stdout.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use planish_model::Exit;
use planish_report::{Envelope, Level, Message, styles, units};
use serde_json::Value;

use crate::answer::{Answer, Body};
use crate::args::Color;

/// Characters in a line where there is no terminal to ask: fixed, so that a pipe shows the same everywhere.
const WIDTH: usize = 100;

/// How to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub json: bool,
    pub quiet: bool,
}

impl Output {
    /// Prints a finished command, and gives the code that this process ends with.
    pub fn answer(self, answer: Answer) -> u8 {
        let Answer { command, body, exit, mut code, unprinted, messages } = answer;
        let exit = match body {
            Body::Json(result) => {
                // As with a failure: who redirected stdout is to see what went wrong.
                messages.iter().filter(|message| message.level == Level::Error).for_each(talk);
                envelope(command, exit, Some(result), messages)
            }
            Body::Text(text) => {
                let is_printed = printed(&text);
                // What is next goes by what was shown. A command that wrote says where that stands, all the same.
                let counts =
                    |message: &&Message| is_printed || is_writer(command) || message.level != Level::Next;
                messages.iter().filter(counts).for_each(|message| self.talk(message));
                if !is_printed {
                    code = unprinted.or(code);
                }
                ended(is_printed, exit)
            }
        };
        code.unwrap_or(exit.code())
    }

    /// Prints a failure. Under `--json` it is told on stderr too, for a person who redirected stdout.
    pub fn failure(self, command: &str, exit: Exit, message: Message) -> Exit {
        talk(&message);
        self.told(command, exit, message)
    }

    /// Ends with a failure that stands on stderr already.
    pub fn told(self, command: &str, exit: Exit, message: Message) -> Exit {
        if self.json { envelope(command, exit, None, vec![message]) } else { exit }
    }

    /// Prints one message on stderr, unless this output is quiet.
    pub fn talk(self, message: &Message) {
        if !self.quiet || message.level == Level::Error {
            talk(message);
        }
    }
}

/// Prints one message on stderr.
pub(crate) fn talk(message: &Message) {
    let style = match message.level {
        Level::Error => styles::BAD,
        Level::Warning => styles::WARNING,
        Level::Note => styles::DIM,
        Level::Next => styles::GOOD,
    };
    let said = units::harmless(&message.text);
    let mut text = format!("{style}{}:{style:#} {said}\n", message.level.word());
    for hint in message.hint.iter().flat_map(|hint| hint.lines()) {
        let good = styles::GOOD;
        text.push_str(&format!("{good}hint:{good:#} {}\n", units::harmless(hint)));
    }
    print_talk(&text);
}

/// Prints text on stderr. Nobody is left to tell when stderr itself is gone.
pub(crate) fn print_talk(text: &str) {
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Commands that write the host: what comes next goes by what they did, also where nobody could be shown that.
const WRITERS: [&str; 9] = [
    "apply",
    "confirm",
    "undo",
    "install-check",
    "prove",
    "trial-run",
    "trial-selfcheck",
    "trial-resume",
    "trial-stop",
];

/// How a command ends whose answer was printed or not. That nobody has it is no success, and says less than any other
/// code does of what became of the host.
fn ended(is_printed: bool, exit: Exit) -> Exit {
    if !is_printed && exit == Exit::Done { Exit::Unprinted } else { exit }
}

fn is_writer(command: &str) -> bool {
    WRITERS.contains(&command)
}

/// Prints text on stdout, and gives the exit code with that done.
pub(crate) fn print(text: &str, exit: Exit) -> Exit {
    ended(printed(text), exit)
}

/// Prints text on stdout, and tells whether it took it.
fn printed(text: &str) -> bool {
    written(AutoStream::auto(io::stdout()), text)
}

/// Writes text to stdout, and tells whether it took it. A reader that has seen enough (`| head`) is no error; a full
/// disk is one, of the place that stdout was pointed to.
fn written(mut stdout: impl Write, text: &str) -> bool {
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            talk(&Message::new(Level::Error, format!("cannot write to stdout: {error}")));
            false
        }
        _ => true,
    }
}

fn envelope(command: &str, exit: Exit, result: Option<Value>, messages: Vec<Message>) -> Exit {
    let envelope = Envelope::new(command, exit, result, messages);
    let mut json = serde_json::to_string_pretty(&envelope).expect("an envelope is plain data");
    json.push('\n');
    // It has no colours to look for: its control characters are escaped.
    ended(written(io::stdout(), &json), exit)
}

/// Characters in a line of stdout.
pub(crate) fn width() -> usize {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return WIDTH;
    }
    let asked = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_col));
    if asked == 0 { WIDTH } else { asked }
}

/// Makes every stream follow `--color`.
pub(crate) fn set_color(color: Color) {
    match color {
        Color::Auto => {}
        Color::Always => ColorChoice::Always.write_global(),
        Color::Never => ColorChoice::Never.write_global(),
    }
}
