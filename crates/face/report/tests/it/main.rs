//! The HTML page of a trial: as recorded, as parsed, and as a browser draws it; and its text.

#![expect(clippy::disallowed_methods, reason = "the browser reads a copy of the page from a file")]

mod browser;
mod fixed;
mod page;
mod text;
