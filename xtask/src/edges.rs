//! The arrows between crates, checked against the table in ARCHITECTURE.md, and the crates against its tree.
//!
//! Both are read from the document itself, so that what people read is what is enforced. Only what a
//! crate links counts; its tests may look anywhere. No room is empty: what the table names is there.

use crate::ground::{self, Package};
use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const DOCUMENT: &str = "ARCHITECTURE.md";
const TABLE_HEAD: &str = "| crate | may link |";
const TREE_HEAD: &str = "## The tree";

/// One row: crates that a pattern names, and patterns of what they may link.
struct Rule {
    crates: String,
    may_link: Vec<String>,
}

/// Lists every arrow that the table does not allow.
pub fn run() -> Result<()> {
    let text = fs::read_to_string(DOCUMENT).with_context(|| format!("read {DOCUMENT}"))?;
    let rules = rules(&text)?;
    let packages = ground::metadata()?.packages;
    let mut findings = findings(&rules, &packages)?;
    findings.extend(missing_in_tree(&text, &packages)?);
    findings.iter().for_each(|finding| println!("{finding}"));
    ensure!(findings.is_empty(), "{} things that {DOCUMENT} says otherwise", findings.len());
    Ok(())
}

/// Reads the rows below [`TABLE_HEAD`]; the first row that names a crate is its rule.
fn rules(document: &str) -> Result<Vec<Rule>> {
    let table = document.lines().skip_while(|line| *line != TABLE_HEAD).skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    let rules: Vec<Rule> = rows
        .flat_map(|row| {
            let cells: Vec<Vec<String>> = row.trim_matches('|').split('|').map(quoted).collect();
            let may_link = cells.get(1).cloned().unwrap_or_default();
            let crates = cells.into_iter().next().unwrap_or_default();
            crates.into_iter().map(move |crates| Rule { crates, may_link: may_link.clone() })
        })
        .collect();
    if rules.is_empty() {
        bail!("{DOCUMENT} has no table that starts with \"{TABLE_HEAD}\"");
    }
    Ok(rules)
}

/// The words between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn findings(rules: &[Rule], packages: &[Package]) -> Result<Vec<String>> {
    let places: BTreeMap<&str, String> = packages.iter().filter_map(place).collect();
    let mut findings = Vec::new();
    for package in packages {
        let Some(from) = places.get(package.name.as_str()) else { continue };
        let Some(rule) = rules.iter().find(|rule| names(&rule.crates, from)) else {
            findings.push(format!("{from}: no row of {DOCUMENT} names it"));
            continue;
        };
        for to in package.links.iter().filter_map(|link| places.get(link.as_str())) {
            if !rule.may_link.iter().any(|pattern| names(pattern, to)) {
                findings.push(format!("{from} links {to}: the row of `{}` does not allow it", rule.crates));
            }
        }
    }
    let there = |pattern: &String| places.values().any(|place| names(pattern, place));
    let patterns = rules.iter().flat_map(|rule| std::iter::once(&rule.crates).chain(&rule.may_link));
    let empty: BTreeSet<&String> = patterns.filter(|pattern| !there(pattern)).collect();
    findings.extend(empty.iter().map(|pattern| format!("{DOCUMENT} names `{pattern}`, which no crate is")));
    Ok(findings)
}

/// Our packages that the tree of the document does not show: `crates/GROUP/NAME` as the word NAME in the lines of
/// `GROUP/`, others by their folder.
fn missing_in_tree(document: &str, packages: &[Package]) -> Result<Vec<String>> {
    let (_, tree) =
        document.split_once(TREE_HEAD).with_context(|| format!("{DOCUMENT} has no {TREE_HEAD}"))?;
    let tree =
        tree.split("```").nth(1).with_context(|| format!("no tree below {TREE_HEAD} of {DOCUMENT}"))?;
    let mut shown = BTreeSet::new();
    let mut group = None;
    for line in tree.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        match line.len() - line.trim_start().len() {
            0 => {
                group = None;
                shown.insert(name.trim_end_matches('/').to_owned());
            }
            2 => group = name.strip_suffix('/'),
            _ => {}
        }
        let Some(group) = group else { continue };
        let words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '-');
        shown.extend(words.map(|word| format!("crates/{group}/{word}")));
    }
    let folders = packages.iter().filter_map(|package| package.folder.as_ref());
    let missing = folders.map(|folder| folder.display().to_string()).filter(|folder| !shown.contains(folder));
    Ok(missing.map(|folder| format!("{folder}: the tree of {DOCUMENT} does not show it")).collect())
}

/// `group/crate` of one of our libraries; others, and what lies beside `crates/`, have none.
fn place(package: &Package) -> Option<(&str, String)> {
    let place = package.folder.as_ref()?.strip_prefix("crates").ok()?;
    Some((&package.name, place.display().to_string()))
}

/// Whether a pattern (`base/sys`, `base/*`, `*`) names a place.
fn names(pattern: &str, place: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => place.starts_with(prefix),
        None => pattern == place,
    }
}

#[cfg(test)]
mod tests {
    use super::{findings, missing_in_tree, rules};
    use crate::ground::Package;

    const TABLE: &str = "text\n\n| crate | may link |\n|---|---|\n| `base/*` | `base/*` |\n\
        | `control/decide`, `control/verify` | `control/model` |\n| `control/model` | nothing |\n\nmore\n";

    fn package(name: &str, place: &str, links: &[&str]) -> Package {
        Package {
            version: String::new(),
            name: name.into(),
            folder: Some(format!("crates/{place}").into()),
            license: None,
            source: None,
            links: links.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn an_arrow_must_be_in_the_table() {
        let rules = rules(TABLE).unwrap();
        let packages = [
            package("planish-sys", "base/sys", &["rustix"]),
            package("planish-host", "base/host", &["planish-sys", "planish-model"]),
            package("planish-model", "control/model", &[]),
            package("planish-verify", "control/verify", &["planish-model", "planish-host"]),
            package("planish-act", "control/act", &[]),
            package("planish-decide", "control/decide", &["planish-model"]),
        ];
        let found = findings(&rules, &packages).unwrap();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("base/host links control/model"), "{found:?}");
        assert!(found[1].contains("control/verify links base/host"), "{found:?}");
        assert!(found[2].contains("control/act: no row"), "{found:?}");
    }

    #[test]
    fn a_row_names_only_crates_that_are_there() {
        let rules = rules(TABLE).unwrap();
        let packages =
            [package("planish-model", "control/model", &[]), package("planish-sys", "base/sys", &[])];
        let found = findings(&rules, &packages).unwrap();
        let wanted = ["control/decide", "control/verify"]
            .map(|name| format!("ARCHITECTURE.md names `{name}`, which no crate is"));
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_tree_shows_every_package() {
        let document = "## The tree\n\n```\ntrials/*.toml  shipped\ncrates/\n  base/    sys (calls), host,\n           \
            boot\n  face/    cli\nbenches/   what is measured\nxtask/docgen  text\n```\n";
        let mut packages = ["base/sys", "base/boot", "face/cli", "face/host", "base/skip"]
            .map(|place| package("p", place, &[]));
        packages[4].folder = Some("xtask".into());
        let found = missing_in_tree(document, &packages).unwrap();
        let wanted = ["crates/face/host", "xtask"]
            .map(|folder| format!("{folder}: the tree of ARCHITECTURE.md does not show it"));
        assert_eq!(found, wanted);
        assert!(missing_in_tree("no tree", &packages).is_err());
    }

    #[test]
    fn a_document_without_the_table_is_refused() {
        assert!(rules("| crate |\n").is_err());
    }
}
