//! Decoders from outside: what clients send, in pieces that end anywhere, and into durable tables.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a helper fails its test")]

mod arrow;
mod csv;
mod durable;
mod feed;
mod json;
mod line;
