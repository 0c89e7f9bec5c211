//! The `planish` command: it reads arguments, calls one command, prints what that found, and ends with its exit
//! code.
//!
//! ```text
//! arguments -> Cli -> commands::* -> Answer  -> stdout: text, or one JSON envelope
//!                                 -> Failure -> stderr: the chain of causes once, then the cure
//! ```
//!
//! Data goes to stdout and talk to stderr; colour and progress go to terminals only. Nothing here decides about a
//! host: every command asks the crate that does.

#![forbid(unsafe_code)]

mod answer;
mod args;
mod bug;
mod commands;
mod context;
mod failure;
mod output;
mod run;
mod running;
mod signals;
mod timings;
mod user_file;

pub use args::command;
pub use run::main;
