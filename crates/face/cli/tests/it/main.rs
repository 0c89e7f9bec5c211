//! The `planish` binary from outside: what it prints and how it ends.
//!
//! `INSTA_UPDATE=always cargo test -p planish-cli` writes every golden anew: hosts, scripts and help.

mod machine;
mod planish;

mod reference;
mod surface;
