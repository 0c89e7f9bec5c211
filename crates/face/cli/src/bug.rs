//! Panics: a broken invariant of planish itself ends in one line and exit code 70, whatever thread it is on.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Mutex;

use planish_report::{Level, Message};

use crate::{commands, output};

/// The last panic, kept for the envelope.
static LAST: Mutex<Option<Message>> = Mutex::new(None);

/// Tests that panic on purpose hold this: the last panic is one for the whole process.
#[cfg(test)]
pub(crate) static TURN: Mutex<()> = Mutex::new(());

/// Replaces the report of the standard library, which names threads and asks for environment variables.
pub(crate) fn say_panics_in_one_line() {
    panic::set_hook(Box::new(|info| {
        let message = message(info);
        commands::top::restore_terminal();
        output::talk(&message);
        // A poisoned lock still holds a message that is worth telling.
        *LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(message);
    }));
}

/// Runs a command; a panic in it comes back as the message that was printed.
pub(crate) fn caught<T>(command: impl FnOnce() -> T) -> Result<T, Message> {
    panic::catch_unwind(AssertUnwindSafe(command)).map_err(|_| {
        let mut last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        last.take().unwrap_or_else(|| Message::new(Level::Error, "bug in planish"))
    })
}

fn message(info: &PanicHookInfo<'_>) -> Message {
    let what = info.payload_as_str().unwrap_or("a panic without words");
    let place = info.location().map(|at| format!(" ({}:{})", at.file(), at.line())).unwrap_or_default();
    let text = format!("bug in planish {}: {what}{place}", env!("CARGO_PKG_VERSION"));
    // A panic between two writes leaves an interrupted entry, which undo takes like any other.
    Message::new(Level::Error, text)
        .hint("planish log tells whether something was being written; planish undo takes it back")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_message_with_its_place() {
        let _turn = TURN.lock().expect("no test panics while it holds this");
        say_panics_in_one_line();
        let message = caught(|| panic!("the plan lost a step")).expect_err("it panics");
        let _ = panic::take_hook();
        assert!(
            message.text.contains("the plan lost a step (crates/face/cli/src/bug.rs:"),
            "{}",
            message.text
        );
        assert_eq!(caught(|| 7).expect("no panic"), 7);
    }
}
