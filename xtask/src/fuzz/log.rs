//! `docs/fuzz.md`: what the last long run of each target came to, written by `./x fuzz --log`.
//!
//! The page is its own memory: rows of targets that were not run this time stay as they are.

use super::session::Session;
use crate::shell;
use crate::tree::Tree;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The page.
const PAGE: &str = "docs/fuzz.md";
/// How much of a hash a row tells.
const HASH_DIGITS: usize = 7;
/// What a row says of a target that nobody has run.
const NOT_RUN: &str = "not yet run";
/// What a run ends with that found nothing.
const NOTHING: &str = "nothing found";

const HEAD: &str = "\
# Fuzzing

Written by `./x fuzz --log`; do not edit.

Each parser of bytes that are not ours (the kernel's, an administrator's, another tool's, what a disk gives back) has a
target in `fuzz/targets`: a program that holds the parser to what must be true of every input. libFuzzer makes up the
inputs, by what each reached in the code. How a long run is made:

    ./x fuzz --seconds 600 --log --keep [TARGET]...

- The seconds are CPU seconds of the target, so that ten minutes are ten minutes on a busy machine too. A run that was
  ended before goes on where it was, while neither the product nor the target has changed, and the row is their sum.
- Edges are those of the control flow of the whole program that some input went over.
- The corpus is the inputs that are worth keeping. `--keep` puts the few that go over most edges beside the seeds, cut
  to 512 bytes, and `./x ci` gives every target all that lies in `fuzz/seeds` for it.
- State: the newest commit that had changed the product (`crates/*/*/src`) when the target was built, with `+1` for one
  more that had not landed yet; then the hash of the target itself.
";
/// The names of the columns of a row.
const COLUMNS: &str =
    "| target | day | state | CPU s | wall s | executions | a CPU second | edges | corpus | result |";

/// The product and one target, as a row names them.
pub fn state(tree: &Tree, name: &str) -> Result<String> {
    Ok(format!("{} {}", tree.commit, hash(name)?))
}

fn hash(name: &str) -> Result<String> {
    let file = format!("fuzz/targets/{name}.rs");
    let hash = shell::output(Command::new("git").args(["hash-object", &file]))?;
    Ok(hash.get(..HASH_DIGITS).unwrap_or(&hash).to_owned())
}

/// What the page has of a target in this state, to go on from; `None` where there is nothing, or where something was
/// found.
pub fn so_far(name: &str, state: &str) -> Option<Session> {
    of_row(rows(&fs::read_to_string(PAGE).ok()?).get(name)?, state)
}

/// Puts a run into the page, in the place of an older one.
pub fn add(targets: &[String], name: &str, day: &str, state: &str, session: &Session) -> Result<()> {
    let mut rows = rows(&fs::read_to_string(PAGE).unwrap_or_default());
    rows.insert(name.to_owned(), row(name, day, state, session));
    fs::write(PAGE, page(targets, &rows)?).with_context(|| format!("write {PAGE}"))
}

/// Writes the page anew, with the rows that it has.
pub fn refresh(targets: &[String]) -> Result<()> {
    let rows = rows(&fs::read_to_string(PAGE).unwrap_or_default());
    fs::write(PAGE, page(targets, &rows)?).with_context(|| format!("write {PAGE}"))
}

/// That the page lists every target, run or not, and no other; the targets whose long run is still to be made, or was
/// one of another text of theirs.
pub fn check(targets: &[String]) -> Result<Vec<&str>> {
    let text = fs::read_to_string(PAGE).with_context(|| format!("read {PAGE}"))?;
    let rows = rows(&text);
    if text != page(targets, &rows)? {
        bail!("{PAGE} does not list the targets as they are; type: ./x docs");
    }
    let mut due = Vec::new();
    for name in targets {
        if !is_of(rows.get(name).map(String::as_str), &hash(name)?) {
            due.push(name.as_str());
        }
    }
    Ok(due)
}

/// Whether a row is of a target of this hash.
fn is_of(row: Option<&str>, hash: &str) -> bool {
    let state = row.and_then(|row| row.split('|').nth(3));
    state.is_some_and(|state| state.split_whitespace().nth(1) == Some(hash))
}

/// The rows of a page, by target.
fn rows(text: &str) -> BTreeMap<String, String> {
    let rows = text.lines().filter_map(|line| {
        let name = line.strip_prefix("| `")?.split_once('`')?.0;
        (!line.contains(NOT_RUN)).then(|| (name.to_owned(), line.to_owned()))
    });
    rows.collect()
}

fn row(name: &str, day: &str, state: &str, session: &Session) -> String {
    let Session { cpu_s, wall_s, executions, edges, corpus, found } = session;
    let found = found.as_deref().unwrap_or(NOTHING);
    let rate = if *cpu_s > 0.0 { *executions as f64 / cpu_s } else { 0.0 };
    let figures = format!("{cpu_s:.0} | {wall_s:.0} | {executions} | {rate:.0} | {edges} | {corpus}");
    format!("| `{name}` | {day} | {state} | {figures} | {found} |")
}

/// The run in a row, if it was one of this state that found nothing.
fn of_row(row: &str, state: &str) -> Option<Session> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [_, _, of, cpu_s, wall_s, executions, _, edges, corpus, NOTHING] = *cells else { return None };
    (of == state).then_some(())?;
    Some(Session {
        cpu_s: cpu_s.parse().ok()?,
        wall_s: wall_s.parse().ok()?,
        executions: executions.parse().ok()?,
        edges: edges.parse().ok()?,
        corpus: corpus.parse().ok()?,
        found: None,
    })
}

/// The page with these rows, one a target.
fn page(targets: &[String], rows: &BTreeMap<String, String>) -> Result<String> {
    let mut page = HEAD.to_owned();
    page.push_str("\n| target | what it reads |\n|---|---|\n");
    for name in targets {
        page.push_str(&format!("| [{name}](../fuzz/targets/{name}.rs) | {} |\n", subject(name)?));
    }
    page.push_str(&format!("\n{COLUMNS}\n"));
    page.push_str("|---|---|---|--:|--:|--:|--:|--:|--:|---|\n");
    for name in targets {
        let none = || format!("| `{name}` | | | | | | | | | {NOT_RUN} |");
        page.push_str(&format!("{}\n", rows.get(name).cloned().unwrap_or_else(none)));
    }
    Ok(page)
}

/// What a target reads: the first paragraph of its head.
fn subject(name: &str) -> Result<String> {
    let file = Path::new("fuzz/targets").join(name).with_extension("rs");
    let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let head = text.lines().map_while(|line| line.strip_prefix("//! "));
    Ok(head.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, NOT_RUN, Session, is_of, of_row, row, rows};

    fn session() -> Session {
        let (cpu_s, wall_s) = (600.0, 1200.0);
        Session { cpu_s, wall_s, executions: 60_000, edges: 7, corpus: 8, found: None }
    }

    #[test]
    fn a_row_is_found_again_and_an_unrun_target_is_none() {
        let row = row("boot", "2026-11-23", "9a26e3d 1234567", &session());
        let told =
            "| `boot` | 2026-11-23 | 9a26e3d 1234567 | 600 | 1200 | 60000 | 100 | 7 | 8 | nothing found |";
        assert_eq!(row, told);
        assert_eq!(row.matches('|').count(), COLUMNS.matches('|').count());
        let page = format!("head\n\n| [boot](x) | files |\n{row}\n| `elf` | | | | | | | | | {NOT_RUN} |\n");
        assert_eq!(rows(&page).into_iter().collect::<Vec<_>>(), [("boot".to_owned(), row)]);
    }

    #[test]
    fn a_run_goes_on_in_its_own_state_only_and_not_behind_a_find() {
        let made = row("boot", "2026-11-23", "9a26e3d 1234567", &session());
        assert_eq!(of_row(&made, "9a26e3d 1234567"), Some(session()));
        assert_eq!(of_row(&made, "9a26e3d+1 1234567"), None);
        assert!(is_of(Some(&made), "1234567") && !is_of(Some(&made), "9a26e3d") && !is_of(None, "1234567"));
        let found = Session { found: Some("libFuzzer: timeout".into()), ..session() };
        assert_eq!(of_row(&row("boot", "2026-11-23", "9a26e3d 1234567", &found), "9a26e3d 1234567"), None);
    }
}
