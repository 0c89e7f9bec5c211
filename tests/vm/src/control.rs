//! Plan, apply, check and undo on a real kernel: every safe knob is really written, and planish is
//! killed in the middle of an apply.
//!
//! planish is judged by the kernel's own files, read here, before and after.

use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

const PROFILES: &str = "/etc/planish/profiles";
/// The pools that have room in a small guest.
const POOL_SUFFIX: &str = "hugepages-2048kB/nr_hugepages";
const POOL_PAGES: u64 = 4;
const PAGE_BYTES: u64 = 2 << 20;
/// Moments among the writes of an apply at which planish is killed.
const KILL_COUNT: usize = 12;

/// A wanted value that differs from what runs, as a line of a profile, and how to know that it is there.
#[derive(Clone)]
struct Flip {
    knob: String,
    line: String,
    places: Vec<Place>,
}

/// One place of a knob, before and after the apply.
#[derive(Clone)]
struct Place {
    path: String,
    before: String,
    wanted: String,
}

impl Place {
    /// Fails when the kernel shows something else.
    fn shows(&self, expected: &str) -> Result<()> {
        let now = settings::read(&self.path)?;
        ensure!(chosen(&now) == chosen(expected), "{} shows {now}, not {expected}", self.path);
        Ok(())
    }
}

/// Flips each safe knob alone, then all together under `kill -9`.
pub fn run_all(report: &mut Report) {
    if !["knobs", "plan", "apply", "check", "undo"].iter().all(|command| planish::knows(command)) {
        return;
    }
    let flips = match flips() {
        Ok(flips) => flips,
        Err(error) => return report.fail("planish.knobs", &format!("{error:#}")),
    };
    let before = settings::read_all();
    for flip in &flips {
        report.check(&format!("knob.{}", flip.knob), || alone(flip));
    }
    report.check("knobs.all_back", || {
        ensure!(flips.len() >= 5, "only {} safe knobs could be flipped here", flips.len());
        settings::ensure_same(&before, &settings::read_all())?;
        Ok(Outcome::Ok(format!("{} settings as at the start", before.len())))
    });
    report.check("apply.killed", || killed(&flips));
}

/// plan, apply, look, check, undo, look: for one knob.
fn alone(flip: &Flip) -> Result<Outcome> {
    write_profile("guest", std::slice::from_ref(flip))?;
    let applied = planish::json(&["apply", "guest", "--yes", "--reason", "flip in a guest"], &[0]);
    let seen = applied.and_then(|applied| {
        let told = || format!("planish told {}", applied["result"]);
        flip.places.iter().try_for_each(|place| place.shows(&place.wanted)).with_context(told)?;
        planish::json(&["check", "guest"], &[0]).map(drop)
    });
    // Also after a failure, so that the next knob starts from a clean host.
    let undone = planish::json(&["undo"], &[0]);
    seen?;
    let undone = undone?;
    let told = || format!("after undo; planish told {}", undone["result"]);
    flip.places.iter().try_for_each(|place| place.shows(&place.before)).with_context(told)?;
    let first = flip.places.first().context("a knob without places")?;
    Ok(Outcome::Ok(format!("{} places, {} -> {} and back", flip.places.len(), first.before, first.wanted)))
}

/// Kills planish at moments spread over the writes of an apply; undo must find the way back from each. The moments are
/// told by the journal: most of the time of an apply goes into looking, and kills by the clock missed the writes.
fn killed(flips: &[Flip]) -> Result<Outcome> {
    // Of two twins only one can be wanted: setting it clears the other.
    let single = flips.iter().filter(|flip| !flip.knob.ends_with("_ratio"));
    write_profile("guest", &single.cloned().collect::<Vec<_>>())?;
    let before = settings::read_all();
    let applied = planish::json(&["apply", "guest", "--yes"], &[0])?;
    let step_count = applied["result"]["outcomes"].as_array().map_or(0, Vec::len);
    planish::json(&["undo", "--all"], &[0])?;
    settings::ensure_same(&before, &settings::read_all()).context("undone after an apply in peace")?;

    let (mut half_way_count, mut named_count) = (0, 0);
    for moment in 1..=KILL_COUNT {
        let lines = journal_lines() + step_count * moment / (KILL_COUNT + 1);
        let mut child = planish::command(&["apply", "guest", "--yes"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start planish apply")?;
        // The intent is one line, and each step has another at least.
        while journal_lines() <= lines && child.try_wait().context("look at planish")?.is_none() {
            sleep(Duration::from_micros(200));
        }
        child.kill().context("kill planish")?;
        let was_killed = child.wait().context("wait for planish")?.code().is_none();
        let is_changed = settings::ensure_same(&before, &settings::read_all()).is_err();
        half_way_count += usize::from(was_killed && is_changed);
        named_count += usize::from(way_back().with_context(|| format!("undo after kill {moment}"))?);
        settings::ensure_same(&before, &settings::read_all())
            .with_context(|| format!("killed at moment {moment}"))?;
    }
    ensure!(half_way_count > 0, "no kill hit the writes: nothing was proven");
    Ok(Outcome::Ok(format!(
        "{KILL_COUNT} kills over {step_count} writes, {half_way_count} left something to undo, {named_count} of these \
         a difference that undo named and --force took back"
    )))
}

/// Whole lines of the journal.
fn journal_lines() -> usize {
    let bytes = fs::read("/var/lib/planish/journal.jsonl").unwrap_or_default();
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

/// Undoes everything; true when something had to be forced.
///
/// A kill inside the kernel's own work on one write (a pool that is half grown, a value that the kernel derived from a
/// write whose outcome was never recorded) leaves what no journal can tell from a stranger's change. Undo must then
/// leave it, name it, and say with 1 that it did; it must never pass over it with 0.
fn way_back() -> Result<bool> {
    let undone = planish::json(&["undo", "--all"], &[0, 1])?;
    if undone["exit"] == 0 {
        return Ok(false);
    }
    for entry in undone["result"]["entries"].as_array().context("undo: no result.entries")? {
        let theirs = |outcome: &&Value| outcome["outcome"] == "theirs";
        let outcomes = entry["outcomes"].as_array().context("undo: no outcomes")?;
        let named: Vec<&Value> = outcomes.iter().filter(theirs).collect();
        ensure!(!named.is_empty(), "undo left with 1 and named no place: {entry}");
        ensure!(named.iter().all(|outcome| outcome["detail"].is_string()), "no reason: {named:?}");
        planish::json(&["undo", &entry["entry"].to_string(), "--force"], &[0])?;
    }
    Ok(true)
}

/// Another value for every safe knob that can be set here.
fn flips() -> Result<Vec<Flip>> {
    let envelope = planish::json(&["knobs"], &[0])?;
    let knobs = envelope["result"]["knobs"].as_array().context("knobs: no result.knobs")?;
    let mut flips = Vec::new();
    for knob in knobs.iter().filter(|knob| knob["class"] == "safe" && knob["verdict"] == "settable") {
        flips.extend(flip(knob)?);
    }
    Ok(flips)
}

fn flip(knob: &Value) -> Result<Option<Flip>> {
    let text = |key: &str| knob[key].as_str().with_context(|| format!("a knob without {key}: {knob}"));
    let (id, pattern) = (text("id")?, text("place")?);
    let paths = settings::expand(pattern);
    if pattern.ends_with(POOL_SUFFIX) && pattern.contains("/node{") {
        return pool_flip(id, &paths).map(Some);
    }
    let befores = paths.iter().map(|path| settings::read(path)).collect::<Result<Vec<_>>>()?;
    let Some(first) = befores.first() else { return Ok(None) };
    for wanted in other_values(first) {
        let value = if wanted.parse::<i64>().is_ok() { wanted.clone() } else { format!("\"{wanted}\"") };
        let places = paths.iter().zip(&befores).map(|(path, before)| Place {
            path: path.clone(),
            before: before.clone(),
            wanted: wanted.clone(),
        });
        let flip =
            Flip { knob: id.to_owned(), line: format!("\"{id}\" = {value}"), places: places.collect() };
        if is_planned(&flip)? {
            return Ok(Some(flip));
        }
    }
    Ok(None)
}

/// Whether planish takes the value and has something to write: ranges are the catalogue's business.
fn is_planned(flip: &Flip) -> Result<bool> {
    write_profile("guest", std::slice::from_ref(flip))?;
    let plan = planish::run(&["plan", "guest", "--json"])?;
    let envelope: Value = serde_json::from_str(&plan.stdout).context("JSON of planish plan")?;
    Ok(plan.exit == 0 && envelope["result"]["steps"].as_array().is_some_and(|steps| !steps.is_empty()))
}

/// A few pages more on every node, the one without CPUs included.
fn pool_flip(id: &str, paths: &[String]) -> Result<Flip> {
    let mut nodes = Vec::new();
    let mut places = Vec::new();
    for path in paths {
        let node = path.split("/node").nth(2).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        nodes.push(node.parse::<u32>().with_context(|| format!("{path} is on no node"))?);
        let before = settings::read(path)?;
        let pages: u64 = before.parse().with_context(|| format!("{path}: {before}"))?;
        places.push(Place { path: path.clone(), wanted: (pages + POOL_PAGES).to_string(), before });
    }
    let need_bytes = POOL_PAGES * PAGE_BYTES;
    Ok(Flip {
        knob: id.to_owned(),
        line: format!("\"{id}\" = {{ need_bytes = {need_bytes}, nodes = {nodes:?} }}"),
        places,
    })
}

/// Values other than the one shown, the likeliest to be legal first.
fn other_values(shown: &str) -> Vec<String> {
    /// Legal for a byte limit, and far above every mode.
    const LARGE: i64 = 64 << 20;
    /// Above percentages.
    const SIZE_MIN: i64 = 101;
    if shown.contains('[') {
        let others = shown.split_whitespace().rev().filter(|word| !word.starts_with('['));
        return others.map(str::to_owned).collect();
    }
    match shown.parse::<i64>() {
        Ok(0) => vec!["1".to_owned(), LARGE.to_string()],
        Ok(1) => vec!["0".to_owned(), "2".to_owned()],
        // Half of a size is still a multiple of whatever the kernel rounds to, and so is twice as much.
        Ok(number @ SIZE_MIN..) => vec![(number / 2).to_string(), number.saturating_mul(2).to_string()],
        // Downwards first: upper limits are common, and lower ones are seldom what runs.
        Ok(number) => vec![(number - 1).to_string(), (number + 1).to_string()],
        Err(_) => Vec::new(),
    }
}

/// The value in the text of a file: the word in brackets where there is one. The kernel may list the others in
/// another order after a write.
fn chosen(shown: &str) -> &str {
    let bracketed = shown.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    bracketed.unwrap_or(shown)
}

fn write_profile(name: &str, flips: &[Flip]) -> Result<()> {
    fs::create_dir_all(PROFILES).with_context(|| format!("make {PROFILES}"))?;
    let lines: Vec<&str> = flips.iter().map(|flip| flip.line.as_str()).collect();
    if lines.is_empty() {
        bail!("no knob to flip");
    }
    let text = format!(
        "name = \"{name}\"\nsummary = \"Another value for each knob.\"\n\n[want]\n{}\n",
        lines.join("\n")
    );
    let file = format!("{PROFILES}/{name}.toml");
    fs::write(&file, text).with_context(|| format!("write {file}"))
}
