//! The arrows between crates, checked against the table in ARCHITECTURE.md.
//!
//! The table is read from the document itself, so that what people read is what is enforced. Only
//! what a crate links counts; its tests may look anywhere.

use crate::ground::{self, Package};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs;

const DOCUMENT: &str = "ARCHITECTURE.md";
const TABLE_HEAD: &str = "| crate | may link |";

/// One row: crates that a pattern names, and patterns of what they may link.
struct Rule {
    crates: String,
    may_link: Vec<String>,
}

/// Lists every arrow that the table does not allow.
pub fn run() -> Result<()> {
    let text = fs::read_to_string(DOCUMENT).with_context(|| format!("read {DOCUMENT}"))?;
    let rules = rules(&text)?;
    let findings = findings(&rules, &ground::metadata()?.packages)?;
    findings.iter().for_each(|finding| println!("{finding}"));
    ensure!(findings.is_empty(), "{} arrows that {DOCUMENT} does not allow", findings.len());
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
    Ok(findings)
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
    use super::{findings, rules};
    use crate::ground::Package;

    const TABLE: &str = "text\n\n| crate | may link |\n|---|---|\n| `base/*` | `base/*` |\n\
        | `control/decide`, `control/verify` | `control/model` |\n| `control/model` | nothing |\n\nmore\n";

    fn package(name: &str, place: &str, links: &[&str]) -> Package {
        Package {
            name: name.into(),
            folder: Some(format!("crates/{place}").into()),
            license: None,
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
        ];
        let found = findings(&rules, &packages).unwrap();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("base/host links control/model"), "{found:?}");
        assert!(found[1].contains("control/verify links base/host"), "{found:?}");
        assert!(found[2].contains("control/act: no row"), "{found:?}");
    }

    #[test]
    fn a_document_without_the_table_is_refused() {
        assert!(rules("| crate |\n").is_err());
    }
}
