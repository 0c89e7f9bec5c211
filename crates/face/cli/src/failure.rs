//! What a command ends with when it could not do what was asked.

use std::error::Error;

use planish_model::{CatalogueError, Exit};
use planish_pipeline::PipelineError;
use planish_report::{Level, Message};

/// An error, the exit code that it stands for, and its cures.
#[derive(Debug)]
pub(crate) struct Failure {
    pub exit: Exit,
    error: Box<dyn Error + Send + Sync>,
    hints: Vec<String>,
}

impl Failure {
    /// A failure with an exit code of the contract.
    pub fn new(exit: Exit, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit, error: error.into(), hints: Vec::new() }
    }

    /// The command line, or a file or name in it, is wrong.
    pub fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Usage, error)
    }

    /// planish refuses; nothing was changed.
    pub fn refused(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Refused, error)
    }

    /// Adds a cure: the next command to type, where there is one.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The failure as talk: the chain of causes once, and one line for each cure. `planish ...` in a cure stands
    /// for the command line that failed.
    /// An error that knows no cure is sent to the help of its command.
    pub fn message(&self, again: &str, help: &str) -> Message {
        let hints = self.hints.join("\n").replace("planish ...", again);
        let cure = if hints.is_empty() { help.to_owned() } else { hints };
        Message::new(Level::Error, chain(self.error.as_ref())).hint(cure)
    }
}

impl From<CatalogueError> for Failure {
    fn from(error: CatalogueError) -> Self {
        let cure = error.cure();
        Self::usage(error).hint(cure)
    }
}

impl From<PipelineError> for Failure {
    fn from(error: PipelineError) -> Self {
        let (exit, hints) = (error.exit(), error.hints());
        // A wrong name or row speaks for itself.
        let failure = match error {
            PipelineError::Catalogue(error) => Self::new(exit, Box::new(error) as Box<_>),
            PipelineError::Host(error) => return Self::from(error),
            other => Self::new(exit, other),
        };
        hints.into_iter().fold(failure, Self::hint)
    }
}

/// An error and its causes, each told once: `cannot read the journal: line 3: bad checksum`.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        // Errors of other crates often repeat their source; ours never do.
        if !told.iter().any(|earlier| earlier.contains(&text)) {
            told.push(text);
        }
        next = cause.source();
    }
    told.join(": ")
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|layer| layer as &dyn Error)
        }
    }

    #[test]
    fn causes_are_told_once_and_cures_follow() {
        let inner = Layer("line 3: bad checksum", None);
        let outer =
            Layer("cannot read the journal", Some(Box::new(Layer("bad checksum", Some(Box::new(inner))))));
        let failure = Failure::refused(outer).hint("planish log").hint("sudo planish ...");
        let message = failure.message("planish undo 3", "planish undo --help");
        assert_eq!(message.text, "cannot read the journal: bad checksum: line 3: bad checksum");
        assert_eq!(message.hint.as_deref(), Some("planish log\nsudo planish undo 3"));
        let bare = Failure::usage("odd").message("planish undo x", "planish undo --help");
        assert_eq!(bare.hint.as_deref(), Some("planish undo --help"), "nobody is left without a cure");
    }
}
