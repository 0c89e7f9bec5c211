//! `./x soak`: the same few things, over and over, in search of what is left behind.
//!
//! Property tests are asked many more cases than `./x test` has time for. A process that fills a table is killed two
//! hundred times, and so is one that corrects a table. Every profile is killed at every operation on every writable
//! recorded host, and refused every kind of write.
//!
//! Writable recorded hosts are applied to and undone, one time in two killed on the way; quick proofs
//! run on this machine. After each, everything must be as before: files of the host, huge pages,
//! processes.

use crate::{ground, shell, target};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long.
#[derive(clap::Args)]
pub struct Options {
    /// Minutes to go on
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
    /// Recorded hosts only: no proof on this machine
    #[arg(long)]
    no_prove: bool,
    /// Cases that each property test of a library and of the pipeline draws, before all else
    #[arg(long, value_name = "N", default_value_t = 2500)]
    cases: u32,
    /// How often a process that fills a durable table is killed, after them
    #[arg(long, value_name = "N", default_value_t = 200)]
    kills: u32,
    /// Without the kill at every operation of every profile, which takes the better part of an hour
    #[arg(long)]
    no_profiles: bool,
}

/// Profiles that are applied, in turn.
const PROFILES: &[&str] = &["series", "postgres", "low-latency"];
/// A proof costs about as much time as this many applies and undos.
const ROUNDS_PER_PROOF: u64 = 20;
/// Kills are spread over this much of an apply, which takes about as long on a disk.
const KILL_WITHIN: Duration = Duration::from_millis(120);
/// Prime, so that the moments of the kills do not repeat.
const KILL_STEP_MICROS: u64 = 7919;
/// `planish prove` may find nothing that noise cannot explain: that is an answer.
const EXIT_INCONCLUSIVE: i32 = 6;

/// Loops until the time is up; the first thing left behind ends it.
pub fn run(options: &Options) -> Result<ExitCode> {
    ask_properties(options.cases)?;
    kill_ingest(options.kills)?;
    if !options.no_profiles {
        stop_every_profile()?;
    }
    let planish = target::pick()?.planish()?;
    let hosts = writable_hosts()?;
    ensure!(!hosts.is_empty(), "no writable host under hosts/");
    let end = Instant::now() + Duration::from_secs(options.minutes * 60);
    let (mut rounds, mut half_way_count) = (0_u64, 0_u64);
    while Instant::now() < end {
        let host = &hosts[usize::try_from(rounds)? % hosts.len()];
        let profile = PROFILES[usize::try_from(rounds)? % PROFILES.len()];
        let micros = rounds * KILL_STEP_MICROS % u64::try_from(KILL_WITHIN.as_micros())?;
        let kill_after = (rounds % 2 == 1).then(|| Duration::from_micros(micros));
        half_way_count += u64::from(apply_and_undo(&planish, host, profile, kill_after)?);
        if !options.no_prove && rounds % ROUNDS_PER_PROOF == 0 {
            prove(&planish)?;
        }
        rounds += 1;
    }
    println!(
        "{rounds} rounds on {} hosts, {half_way_count} killed between two writes, nothing left behind",
        hosts.len()
    );
    Ok(ExitCode::SUCCESS)
}

/// Asks each property test this often, of cases that nobody has seen; the failed one prints its smallest case.
fn ask_properties(cases: u32) -> Result<()> {
    if cases == 0 {
        return Ok(());
    }
    let mut test = ground::cargo();
    test.args(["test", "--workspace", "--profile", "ci", "--lib", "--no-fail-fast", "--quiet"]);
    let cases = cases.to_string();
    // As many may be drawn in vain as are asked: the limit does not grow by itself.
    shell::run(test.env("PROPTEST_MAX_GLOBAL_REJECTS", &cases).env("PROPTEST_CASES", &cases))?;
    // Lives of whole hosts, which are no tests of a library.
    let mut lives = ground::cargo();
    lives.args([
        "test",
        "--profile",
        "ci",
        "--package",
        "planish-pipeline",
        "--test",
        "it",
        "--",
        "random::",
    ]);
    shell::run(lives.env("PROPTEST_MAX_GLOBAL_REJECTS", &cases).env("PROPTEST_CASES", &cases))
}

/// Kills ingest into a table, and corrections of one, at seeded moments: no acknowledged row is lost, none is there
/// twice, and none that was replaced or deleted is there again.
fn kill_ingest(kills: u32) -> Result<()> {
    if kills == 0 {
        return Ok(());
    }
    let mut test = ground::cargo();
    test.args(["test", "--profile", "ci", "--package", "planish-table", "--test", "it", "--"]);
    test.args(["kill::killed_", "--nocapture", "--test-threads=1"]);
    shell::run(test.env("PLANISH_TABLE_KILLS", kills.to_string()))
}

/// Each profile on each writable host, and every other life of a host, killed at every operation before, in and after
/// it, and refused its writes with each error; and profiles over each other, undone in any order: the suite of every
/// day leaves most of that out.
fn stop_every_profile() -> Result<()> {
    let mut test = ground::cargo();
    test.args(["test", "--profile", "ci", "--package", "planish-pipeline", "--test", "it"]);
    test.args(["--", "--nocapture"]);
    shell::run(test.env("PLANISH_EVERY_OPERATION", "1"))
}

/// Recorded hosts that answer writes.
fn writable_hosts() -> Result<Vec<PathBuf>> {
    let mut hosts = Vec::new();
    for entry in fs::read_dir("hosts").context("list hosts")?.flatten() {
        let meta = entry.path().join("meta.toml");
        let text = fs::read_to_string(&meta).unwrap_or_default();
        if text.lines().any(|line| line.split_whitespace().collect::<String>() == "writable=true") {
            hosts.push(entry.path());
        }
    }
    hosts.sort();
    Ok(hosts)
}

/// One round on a copy of a host; says whether planish was killed with some of its writes done.
fn apply_and_undo(planish: &Path, host: &Path, profile: &str, kill_after: Option<Duration>) -> Result<bool> {
    let work = ground::target_dir()?.join("soak");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).with_context(|| format!("make {}", work.display()))?;
    let (root, state) = (work.join("host"), work.join("state"));
    shell::output(Command::new("cp").arg("-a").arg(host).arg(&root))?;
    let before = contents(&root)?;

    let command = |args: &[&str]| {
        let mut command = Command::new(planish);
        command.arg("--root").arg(&root).arg("--state").arg(&state).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut apply = command(&["apply", profile, "--yes"]).spawn().context("start planish apply")?;
    if let Some(time) = kill_after {
        sleep(time);
        apply.kill().context("kill planish apply")?;
    }
    let was_killed = apply.wait().context("wait for planish apply")?.code().is_none();
    let half_way = was_killed && contents(&root)? != before;
    let undo = command(&["undo", "--all"]).status().context("start planish undo")?;
    let name = host.display();
    ensure!(undo.success(), "{name}: undo of {profile} left with {undo}; look at {}", work.display());

    let after = contents(&root)?;
    let differ = before.iter().find(|(path, bytes)| after.get(*path) != Some(*bytes));
    if let Some((path, _)) = differ {
        anyhow::bail!("{name}: {profile}: {} is not as before; look at {}", path.display(), work.display());
    }
    Ok(half_way)
}

/// One quick proof on this machine; pages and processes must be as before it.
fn prove(planish: &Path) -> Result<()> {
    let before = left_behind()?;
    // A state of its own: these proofs must not count in the machine's `planish trial honesty`.
    let state = ground::target_dir()?.join("soak-state");
    let status = Command::new(planish)
        .args(["prove", "series", "--quick", "--state"])
        .arg(&state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("start planish prove")?;
    let legal = status.success() || status.code() == Some(EXIT_INCONCLUSIVE);
    // It is kept where something is left behind: the way back lies in it.
    let cure = format!("type: {} --state {} undo --all", planish.display(), state.display());
    ensure!(legal, "planish prove series --quick left with {status}; {cure}");
    let after = left_behind()?;
    ensure!(before == after, "after planish prove: {after:?}, before: {before:?}; {cure}");
    fs::remove_dir_all(&state).with_context(|| format!("remove {}", state.display()))
}

/// What a proof could leave behind: pages in pools, and processes of ours.
fn left_behind() -> Result<(Vec<String>, usize)> {
    let memory = fs::read_to_string("/proc/meminfo").context("read /proc/meminfo")?;
    let pools =
        memory.lines().filter(|line| line.starts_with("HugePages_Total")).map(str::to_owned).collect();
    let mut process_count = 0;
    for entry in fs::read_dir("/proc").context("list /proc")?.flatten() {
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        process_count += usize::from(name.trim() == "planish");
    }
    Ok((pools, process_count))
}

/// Every file of a host but its description, with its content.
fn contents(root: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() && entry.file_name() != "meta.toml" {
                let bytes =
                    fs::read(entry.path()).with_context(|| format!("read {}", entry.path().display()))?;
                files.insert(entry.path(), bytes);
            }
        }
    }
    Ok(files)
}
