//! What a command found, as one value that is rendered three ways: text for people, JSON for programs, and a
//! schema that says what the JSON may be.
//!
//! A command of `planish` ends with one [`Report`]. Text and JSON come from the same value, so that they cannot
//! disagree; every JSON goes out in one [`Envelope`]. Nothing here reads or writes a host or a file.

#![forbid(unsafe_code)]

mod commands;
mod envelope;
mod html;
mod page;
mod reasons;
mod schema;
mod table;
pub mod units;

pub use commands::*;
pub use envelope::{Envelope, Level, Message};
pub use html::{jitter_html, latency_html, map_html, text_show_html, trial_html};
pub use page::{Page, PageOptions, Report, counted, styles};
pub use reasons::SaidOnce;
pub use schema::{schema_names, schemas};
pub use table::{Cell, Table};
