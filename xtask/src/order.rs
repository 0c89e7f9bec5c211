//! `./x order`: the order of a program's own functions anew, of samples of its commands.
//!
//! What is committed is the order and not the samples ([`crate::ordered`]). It is due again after a new compiler,
//! whose names have other hashes, and whenever what the commands run has moved: an old one costs nothing but what it no
//! longer gains.

use crate::ordered::{Ordered, PLANISH, SERIES};
use crate::target::{self, Target};
use crate::{ground, shell};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Of which program.
#[derive(clap::Args)]
pub struct Options {
    /// planish or planish-series
    #[arg(value_enum, default_value = "planish", value_name = "PROGRAM")]
    program: Program,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Program {
    Planish,
    PlanishSeries,
}

/// Commands over each recorded host: what users wait for, and what timers start.
const RECORDED: &[&str] = &["doctor", "check", "plan postgres", "plan low-latency", "plan redis", "topo"];
/// Commands that need no recorded host.
const ANYWHERE: &[&str] =
    &["doctor", "knobs", "profiles", "knobs vm.swappiness", "--help", "version", "map $$"];
/// How often all of them run: a command takes milliseconds, and a sample is taken every twentieth of one.
const ROUNDS: usize = 12;

/// What the engine is asked: of each kind of query one or two, which it plans, runs and prints.
const QUERIES: &[&str] = &[
    "SELECT xbar(ts, INTERVAL '5 minutes') AS bar, first_value(price ORDER BY ts), max(price), min(price), \
     last_value(price ORDER BY ts), sum(size), count(*), vwap(price, size) FROM trades GROUP BY bar ORDER BY bar \
     LIMIT 5",
    "SELECT sym, vwap(price, size), count(*) FROM trades GROUP BY sym ORDER BY sym LIMIT 5",
    "SELECT sym, date_bin(INTERVAL '1 hour', ts) AS hour, avg(price) FROM trades WHERE size > 10 GROUP BY sym, hour \
     HAVING count(*) > 1 ORDER BY 1, 2 LIMIT 5",
    "SELECT ts, ema(price, 20) OVER (PARTITION BY sym ORDER BY ts) FROM trades ORDER BY ts LIMIT 5",
    "SELECT count(*), sum(bid) FROM trades ASOF JOIN quotes MATCH_CONDITION (trades.ts >= quotes.ts) \
     ON trades.sym = quotes.sym",
    "SELECT t.sym, avg(q.ask) FROM trades t JOIN quotes q ON t.sym = q.sym AND q.ts BETWEEN \
     t.ts - INTERVAL '10 milliseconds' AND t.ts GROUP BY t.sym ORDER BY 1 LIMIT 5",
    "SELECT upper(sym), rank() OVER (PARTITION BY sym ORDER BY price DESC) AS place, price FROM trades \
     WHERE sym LIKE '%A%' ORDER BY 2, 1, 3 LIMIT 5",
    "EXPLAIN SELECT sym, max(price) FROM trades WHERE ts > 0 GROUP BY sym",
];

/// Builds the program with its symbols, records it, and writes the order.
pub fn run(options: &Options) -> Result<ExitCode> {
    let planish = with_symbols(&target::pick()?, PLANISH)?;
    let (ordered, subject) = match options.program {
        Program::Planish => (PLANISH, planish.clone()),
        Program::PlanishSeries => (SERIES, with_symbols(&Target::of_this_machine()?, SERIES)?),
    };
    let work = ground::target_dir()?.join("order").join(ordered.program);
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).with_context(|| format!("make {}", work.display()))?;
    let script = work.join("commands.sh");
    let commands = match options.program {
        Program::Planish => commands(&subject, &ground::root()?)?,
        Program::PlanishSeries => series_commands(&subject, &work.join("data")),
    };
    fs::write(&script, commands).context("write the commands")?;
    let profile = work.join("profile");
    let mut record = Command::new(&planish);
    record.args(["text", "record", "--rate", "19997", "--program"]).arg(&subject);
    record.arg("--output").arg(&profile).args(["--", "sh"]).arg(&script);
    shell::run(&mut record)?;
    let order_file = ordered.path()?;
    let mut order = Command::new(&planish);
    order.args(["text", "order"]).arg(&subject).arg("--profile").arg(&profile);
    shell::run(order.arg("--output").arg(&order_file))?;
    println!("{}", order_file.display());
    Ok(ExitCode::SUCCESS)
}

fn with_symbols(target: &Target, program: Ordered) -> Result<PathBuf> {
    let mut flags = program.flags()?;
    flags.push(OsString::from("-Cstrip=none"));
    target.program(program, &flags)
}

/// All commands, a line each. What they print and how they end is nobody's business here.
fn commands(planish: &Path, root: &Path) -> Result<String> {
    let mut hosts = Vec::new();
    for entry in fs::read_dir(root.join("hosts")).context("list the recorded hosts")? {
        let path = entry.context("list the recorded hosts")?.path();
        hosts.extend(path.join("meta.toml").is_file().then_some(path));
    }
    hosts.sort();
    let line = |words: &str| format!("'{}' {words} > /dev/null 2>&1\n", planish.display());
    let of_host = |host: &PathBuf| {
        RECORDED.iter().map(|words| line(&format!("--root '{}' {words}", host.display()))).collect::<String>()
    };
    let once = hosts.iter().map(of_host).chain(ANYWHERE.iter().map(|words| line(words))).collect::<String>();
    Ok(format!("{}exit 0\n", once.repeat(ROUNDS)))
}

/// The same of the engine: tables are made, queries planned and run by processes of their own, and a server is asked
/// and written to. What goes wrong ends it, since these are few: an order of refusals would be of no use.
pub fn series_commands(series: &Path, data: &Path) -> String {
    let line = |words: &str| format!("'{}' {words} > /dev/null\n", series.display());
    let load = line(&format!("load --demo=200000 --into '{}'", data.display()));
    let ask = |sql: &&str| {
        // Within quotes of the shell those of SQL are the text between two of these.
        line(&format!("query --data '{}' --format csv '{}'", data.display(), sql.replace('\'', "'\\''")))
    };
    let queries = QUERIES.iter().map(ask).collect::<String>();
    let serve = line("bench --rounds 2 --seconds 1 --rows 300000");
    format!("set -e\n{load}{}{serve}", queries.repeat(ROUNDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorded_host_is_asked_every_command() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let script = commands(Path::new("/a b/planish"), root).unwrap();
        let hosts = fs::read_dir(root.join("hosts")).unwrap().flatten();
        let hosts = hosts.filter(|entry| entry.path().join("meta.toml").is_file()).count();
        assert!(hosts > 5);
        let lines = ROUNDS * (hosts * RECORDED.len() + ANYWHERE.len());
        assert_eq!(script.lines().count(), lines + 1);
        assert!(script.starts_with("'/a b/planish' --root '"), "{script}");
    }

    #[test]
    fn the_shell_hands_on_each_query_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let echo = folder.path().join("echo");
        fs::write(&echo, "#!/bin/sh\nfor word; do :; done; echo \"$word\" >> \"$0.said\"\n").unwrap();
        let script = series_commands(Path::new("ECHO"), folder.path());
        let script = script.replace("'ECHO'", &format!("sh '{}'", echo.display()));
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
        let said = fs::read_to_string(folder.path().join("echo.said")).unwrap();
        let said: Vec<&str> = said.lines().collect();
        assert_eq!(said.len(), 2 + ROUNDS * QUERIES.len());
        assert_eq!(said[1..=QUERIES.len()], *QUERIES);
    }
}
