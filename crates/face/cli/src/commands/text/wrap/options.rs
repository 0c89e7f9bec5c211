//! What a build is pinned to: on the command line, or in a variable where that has no place.

use std::path::PathBuf;

use clap::{ArgAction, Parser};
use planish_order::command_line::split;
use planish_order::pinned;
use planish_workload::parse_bytes;

use crate::commands::read_file;
use crate::failure::Failure;
use crate::run::sentence;

/// Holds options as they would be typed.
const VARIABLE: &str = "PLANISH_TEXT";
/// Size of the huge pages of x86-64, and of aarch64 with base pages of 4 KiB. Not asked of this kernel: the machine
/// that links is seldom the one that runs, and builds of two machines are to be equal.
const HUGE_BYTES_USUAL: u64 = 2 << 20;

#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Options {
    /// Lay functions in the order of F: a symbol a line, as `planish text order` writes it
    #[arg(long, value_name = "F", conflicts_with = "profile")]
    pub order: Option<PathBuf>,
    /// Lay functions in an order made of this call profile (CDSort); `planish text order` picks the best of several
    #[arg(long, value_name = "F")]
    profile: Option<PathBuf>,
    /// Make text that can lie on huge pages of SIZE, or leave its alignment alone: no. Without it 2M with an order
    #[arg(long, value_name = "SIZE|no", value_parser = huge)]
    huge: Option<Huge>,
    /// Only where a file of this name is linked, or of this name with the hash of cargo; may be given several times
    #[arg(long, value_name = "NAME", action = ArgAction::Append)]
    only: Vec<String>,
    /// Leave compilations alone, which get -ffunction-sections otherwise
    #[arg(long)]
    link_only: bool,
    /// Fail where the order cannot be used, instead of linking without it
    #[arg(long)]
    pub strict: bool,
    /// Link twice, without and with the order, and tell the CPU time of both on stderr
    #[arg(long)]
    pub time: bool,
}

/// What `--huge` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Huge {
    Bytes(u64),
    No,
}

fn huge(text: &str) -> Result<Huge, String> {
    if text == "no" {
        return Ok(Huge::No);
    }
    let bytes = u64::try_from(parse_bytes(text).map_err(|error| error.to_string())?)
        .expect("an address is 64 bits at most");
    let is_size = bytes.is_power_of_two() && bytes >= 4096;
    if is_size { Ok(Huge::Bytes(bytes)) } else { Err("a size of pages: 2M, 512M, or no".to_owned()) }
}

/// The variable as a command line of its own.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct OfVariable {
    #[command(flatten)]
    options: Options,
}

impl Options {
    /// With what the variable adds.
    pub fn with_variable(self) -> Result<Self, Failure> {
        match std::env::var(VARIABLE) {
            Ok(text) => self.and(&text),
            Err(std::env::VarError::NotPresent) => Ok(self),
            Err(error) => Err(Failure::usage(format!("{VARIABLE}: {error}"))),
        }
    }

    fn and(self, text: &str) -> Result<Self, Failure> {
        let OfVariable { options: more } = OfVariable::try_parse_from(split(text)).map_err(|error| {
            Failure::usage(format!("{VARIABLE}: {}", sentence(&error))).hint("planish text cc --help")
        })?;
        // Typed, either of the two replaces both.
        let names_order = self.order.is_some() || self.profile.is_some();
        let (order, profile) =
            if names_order { (self.order, self.profile) } else { (more.order, more.profile) };
        Ok(Self {
            order,
            profile,
            huge: self.huge.or(more.huge),
            only: if self.only.is_empty() { more.only } else { self.only },
            link_only: self.link_only || more.link_only,
            strict: self.strict || more.strict,
            time: self.time || more.time,
        })
    }

    /// Whether there is anything to do.
    pub fn asks(&self) -> bool {
        self.wants_order() || matches!(self.huge, Some(Huge::Bytes(_)))
    }

    fn wants_order(&self) -> bool {
        self.order.is_some() || self.profile.is_some()
    }

    /// Whether compilations are to give functions sections of their own.
    pub fn adds_sections(&self) -> bool {
        self.wants_order() && !self.link_only
    }

    /// Whether the link of this file is meant.
    pub fn means(&self, output: &str) -> bool {
        let name = output.rsplit('/').next().unwrap_or(output);
        // Cargo links `deps/server-0123456789abcdef` and gives it its name afterwards.
        let is_hash = |rest: &str| rest.len() == 17 && rest[1..].bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_it = |only: &String| {
            name.strip_prefix(only.as_str())
                .is_some_and(|rest| rest.is_empty() || (rest.starts_with('-') && is_hash(rest)))
        };
        self.only.is_empty() || self.only.iter().any(is_it)
    }

    /// Size of the huge pages that text is to fit.
    pub fn huge_bytes(&self) -> Option<u64> {
        match self.huge {
            Some(Huge::No) => None,
            Some(Huge::Bytes(bytes)) => Some(bytes),
            None => Some(HUGE_BYTES_USUAL),
        }
    }

    /// The symbols to lay, the first one first.
    ///
    /// # Errors
    /// The file cannot be read, or is no order and no profile.
    pub fn symbols(&self) -> Result<Option<Vec<String>>, Failure> {
        let no_order = |path: &PathBuf, error: pinned::NoOrder| {
            let hint = "planish text order BIN --profile F -o order.txt";
            Failure::usage(format!("{}: {error}", path.display())).hint(hint)
        };
        if let Some(path) = &self.profile {
            let profile = super::super::profile(path, None)?;
            return pinned::of_profile(&profile).map(Some).map_err(|error| no_order(path, error));
        }
        let Some(path) = &self.order else { return Ok(None) };
        let bytes = read_file(path)?;
        let symbols = pinned::symbols(&String::from_utf8_lossy(&bytes));
        symbols.map(Some).map_err(|error| no_order(path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Options {
        OfVariable::try_parse_from(split(line)).expect("a sound line").options
    }

    #[test]
    fn what_is_typed_goes_before_the_variable() {
        let both = |line: &str, variable: &str| typed(line).and(variable).expect("a sound variable");
        let options = both("--profile p --only a", "--order o --only b --huge 512M --strict");
        assert_eq!((options.order, options.profile), (None, Some("p".into())));
        assert_eq!((options.only, options.huge), (vec!["a".to_owned()], Some(Huge::Bytes(512 << 20))));
        assert!(options.strict && !options.time);
        let options = both("--huge no", "--order '/a b/o'");
        assert_eq!((options.order.clone(), options.huge_bytes()), (Some("/a b/o".into()), None));
        assert!(options.asks() && options.adds_sections());
        assert_eq!(both("--order o", "").huge_bytes(), Some(2 << 20));
        assert!(!both("", "").asks() && !both("--huge no", "").asks() && both("--huge 2M", "").asks());
    }

    #[test]
    fn a_wrong_variable_is_told_by_its_name() {
        for wrong in ["--bogus", "order.txt", "--huge 3M", "--order a --profile b", "--help"] {
            let failure = Options::default().and(wrong).expect_err(wrong);
            assert_eq!(failure.exit, planish_model::Exit::Usage);
            let told = failure.message("", "").text;
            assert!(told.starts_with("PLANISH_TEXT: "), "{told}");
        }
    }

    #[test]
    fn a_link_is_meant_by_the_name_of_its_file() {
        let options = typed("--order o --only server --only libx.so");
        assert!(options.means("/b/bin/server") && options.means("libx.so"));
        assert!(options.means("target/release/deps/server-0123456789abcdef"));
        for other in
            ["server-test", "server2", "server-0123456789abcdeg", "server-0123456789abcdef0", "serve"]
        {
            assert!(!options.means(other), "{other}");
        }
        assert!(typed("").means("anything"));
    }
}
