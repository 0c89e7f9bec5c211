//! Scripts of a shell: their words, their commands, and what those write.

mod effects;
mod lex;
mod programs;
mod tree;
mod wrappers;

pub use effects::{Ask, Effect, Files, Ran, Run, What, effects, effects_of};
pub use lex::{Broken, Document, Lexer, Part, Token, Word, is_name};
pub use tree::{Chain, Command, Kind, List, Pipeline, Redirect, Script, parse};
