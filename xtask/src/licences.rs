//! Licences and bans of everything we link.
//!
//! cargo-deny judges by `deny.toml` where it is installed. Where it is not, the licences are still
//! checked, here, against the same list: a licence must not slip in because a tool was missing.

use crate::tally::Tally;
use crate::{ground, shell};
use anyhow::{Context, Result, ensure};

/// Checks; skips aloud what only cargo-deny can tell, where it is not installed.
pub fn run() -> Result<Tally> {
    let allowed = allowed(&std::fs::read_to_string("deny.toml").context("read deny.toml")?)?;
    let mut findings = Vec::new();
    for package in ground::metadata()?.packages {
        let license = package.license.unwrap_or_default();
        if !permits(&license, &allowed) {
            findings.push(format!("{}: licence \"{license}\" is not in deny.toml", package.name));
        }
    }
    findings.iter().for_each(|finding| println!("{finding}"));
    ensure!(findings.is_empty(), "{} packages with a licence that is not allowed", findings.len());
    let mut tally = Tally::default();
    if shell::which("cargo-deny").is_some() {
        shell::run(ground::cargo().args(["deny", "check", "licenses", "bans", "sources"]))?;
    } else {
        tally.skips.push("SKIP licences.bans: no cargo-deny; licences were checked, bans were not".into());
    }
    Ok(tally)
}

/// The `allow` list of `[licenses]`: the one list in the file whose entries stand one on a line.
fn allowed(deny: &str) -> Result<Vec<String>> {
    let list = deny.split("[licenses]").nth(1).and_then(|rest| rest.split("allow = [").nth(1));
    let list =
        list.and_then(|rest| rest.split(']').next()).context("deny.toml has no [licenses] allow list")?;
    let entries = list.lines().filter_map(|line| line.split('"').nth(1));
    Ok(entries.map(str::to_owned).collect())
}

/// Whether an SPDX expression can be met by the allowed licences alone.
fn permits(expression: &str, allowed: &[String]) -> bool {
    // The old crates.io spelling "MIT/Apache-2.0" is an OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut position = 0;
    let permitted = any_of(&words, &mut position, allowed);
    permitted && position == words.len()
}

fn any_of(words: &[&str], position: &mut usize, allowed: &[String]) -> bool {
    let mut permitted = all_of(words, position, allowed);
    while words.get(*position) == Some(&"OR") {
        *position += 1;
        permitted |= all_of(words, position, allowed);
    }
    permitted
}

fn all_of(words: &[&str], position: &mut usize, allowed: &[String]) -> bool {
    let mut permitted = one(words, position, allowed);
    while words.get(*position) == Some(&"AND") {
        *position += 1;
        permitted &= one(words, position, allowed);
    }
    permitted
}

fn one(words: &[&str], position: &mut usize, allowed: &[String]) -> bool {
    let Some(word) = words.get(*position) else { return false };
    *position += 1;
    if *word == "(" {
        let permitted = any_of(words, position, allowed);
        *position += usize::from(words.get(*position) == Some(&")"));
        return permitted;
    }
    let mut name = (*word).to_owned();
    if words.get(*position) == Some(&"WITH") {
        let exception = words.get(*position + 1).copied().unwrap_or_default();
        name = format!("{name} WITH {exception}");
        *position += 2;
    }
    allowed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::{allowed, permits};

    #[test]
    fn expressions() {
        let list = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned);
        for good in ["MIT", "GPL-2.0 OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0", "MIT/Apache-2.0"] {
            assert!(permits(good, &list), "{good}");
        }
        for bad in ["", "GPL-2.0", "MIT AND GPL-2.0", "(MIT OR Apache-2.0) AND BSD-3-Clause"] {
            assert!(!permits(bad, &list), "{bad}");
        }
    }

    #[test]
    fn list_of_deny_toml() {
        let text = "[bans]\nallow = [\n]\n[licenses]\nallow = [\n    \"MIT\",\n    \"0BSD\", # a note\n]\n";
        assert_eq!(allowed(text).unwrap(), ["MIT", "0BSD"]);
    }
}
