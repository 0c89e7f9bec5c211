//! The `planish` binary from outside: what it prints and how it ends.
//!
//! `INSTA_UPDATE=always cargo test -p planish-cli` writes every golden anew: hosts, scripts and help.

#![expect(clippy::disallowed_methods, reason = "tests make and change copies of recorded hosts")]

mod advice;
mod apart;
mod denied;
mod every_host;
mod exits;
mod held;
mod hosts;
mod killed;
mod latency;
mod machine;
mod map;
mod mounts;
mod nobody;
mod persist;
mod planish;
mod profiles;
mod prove;
mod readonly;
mod record;
mod recorded;
mod reference;
mod relocate;
mod run;
mod run_malloc;
mod run_runtime;
mod scripts;
mod surface;
mod text;
mod text_bolt;
mod text_cc;
mod text_huge;
mod text_huge_hard;
mod text_link_flags;
mod text_package;
mod text_prune;
mod text_publish;
mod text_publish_git;
mod text_recipes;
mod told;
mod top;
mod trials;
mod trials_text;
mod versions;
