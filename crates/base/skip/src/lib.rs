//! What tests that meet the real machine share: a way to say that it cannot run them, and a turn at it.
//!
//! A test that needs a capability (a node, a pool, a right, a tool) and finds none must neither fail nor pass
//! in silence. It calls [`skip`] and returns; `./x test` counts and lists what was said. A test that takes
//! pages from a pool, or loads the machine, has it to itself as long as it holds a [`Turn`]. A test that needs a
//! real PostgreSQL starts one by [`postgres::Postgres`], and one that asks what a breakpoint does to a program arms a
//! [`uprobe::Uprobe`].
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "tests make files of their own and ask the machine itself")]

pub mod postgres;
mod turn;
pub mod uprobe;

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

pub use turn::Turn;

/// What the description (`meta.toml`) of a machine that a test makes up says besides its name.
pub const MACHINE: &str =
    "origin = \"hand-made\"\narch = \"x86_64\"\nkernel = \"6.12.0\"\npage_bytes = 4096\n";

/// Says `SKIP <test>: <reason>` on stderr and in the file that PLANISH_SKIPS names, if it does.
///
/// # Panics
/// When that file cannot be written: a skip that nobody hears of is what this function exists to prevent.
pub fn skip(test: &str, reason: impl Display) {
    let line = format!("SKIP {test}: {reason}\n");
    // Not by eprint!, which the test harness keeps to itself when the test passes, as one that skips does.
    // Where stderr is closed, the file is left to tell.
    let _ = std::io::stderr().write_all(line.as_bytes());
    let Some(path) = std::env::var_os("PLANISH_SKIPS") else { return };
    // One write of one line in append mode: tests of several processes do not tear each other's lines.
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("cannot note a skip in {}: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Not a test of its own: the child of the next one, which needs its own environment.
    #[test]
    fn child_that_skips() {
        if std::env::var_os("PLANISH_SKIP_CHILD").is_some() {
            super::skip("example", "no such device");
        }
    }

    #[test]
    fn a_skip_is_heard_and_appended_to_the_named_file() {
        let path = std::env::temp_dir().join(format!("planish-skip-{}", std::process::id()));
        for _ in 0..2 {
            let program = std::env::current_exe().expect("a test knows its own path");
            let outcome = Command::new(program)
                .args(["--exact", "tests::child_that_skips"])
                .env("PLANISH_SKIP_CHILD", "1")
                .env("PLANISH_SKIPS", &path)
                .output()
                .expect("the test program runs");
            assert!(outcome.status.success());
            assert!(String::from_utf8_lossy(&outcome.stderr).contains("SKIP example: no such device"));
        }
        let mut text = String::new();
        let mut file = std::fs::File::open(&path).expect("the file was made");
        std::io::Read::read_to_string(&mut file, &mut text).expect("it is text");
        std::fs::remove_file(&path).expect("it can be removed");
        assert_eq!(text, "SKIP example: no such device\nSKIP example: no such device\n");
    }
}
