//! What every command is given: the global options.

use planish_model::{Catalogue, Exit};
use planish_report::{Page, PageOptions, Report};

use crate::answer::{Answer, Body};
use crate::args::Globals;
use crate::output;

/// The surroundings of a running command.
#[derive(Debug)]
pub(crate) struct Context {
    pub globals: Globals,
}

impl Context {
    pub fn new(globals: Globals) -> Self {
        Self { globals }
    }

    /// An answer that succeeded, in the form that was asked for.
    pub fn answer<R: Report>(&self, report: &R, catalogue: &Catalogue) -> Answer {
        let body = if self.globals.json {
            Body::Json(serde_json::to_value(report).expect("reports are plain data with text keys"))
        } else {
            Body::Text(self.text(report, catalogue))
        };
        Answer { command: R::COMMAND, body, exit: Exit::Done, messages: Vec::new() }
    }

    /// A report as text for stdout.
    pub fn text<R: Report>(&self, report: &R, catalogue: &Catalogue) -> String {
        let options = PageOptions { width: output::width(), detailed: self.globals.verbose };
        let mut page = Page::new(options, catalogue);
        report.text(&mut page);
        page.into_text()
    }
}
