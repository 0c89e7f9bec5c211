//! The HTML pages of a trial, of a map and of a call profile: as recorded, as parsed, and as a browser draws them; the
//! text; and the proofs that are published.

#![expect(clippy::disallowed_methods, reason = "the browser reads a copy of the page from a file")]

mod browser;
mod fixed;
mod latency;
mod map;
mod page;
mod published;
#[path = "../../../../lab/trial/tests/it/recompute.rs"]
mod recompute;
mod text;
mod text_show;
