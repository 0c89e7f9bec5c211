//! The program as its clients see it: over real connections, through kills, and from a shell.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a helper fails its test")]
#![expect(clippy::disallowed_methods, reason = "files of these tests")]

mod ask;
mod bounds;
mod clients;
mod demo;
mod durable;
mod files;
mod follow;
mod insert;
mod install;
mod lines;
mod placing;
mod server;
mod shell;
mod tls;
mod tokens;
mod views;
