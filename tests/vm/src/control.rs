//! Plan, apply, check and undo on a real kernel: every safe knob is really written, and planish is
//! killed in the middle of an apply.
//!
//! planish is judged by the kernel's own files, read here, before and after.

use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;

const PROFILES: &str = "/etc/planish/profiles";
/// The pools that have room in a small guest.
const POOL_SUFFIX: &str = "hugepages-2048kB/nr_hugepages";
const POOL_PAGES: u64 = 4;
const PAGE_BYTES: u64 = 2 << 20;
/// Moments among the writes of an apply at which planish is killed.
const KILL_COUNT: usize = 12;

/// Safe knobs that can be set and are not flipped: a part of what was found out, and why that is right.
const LEFT_ALONE: &[(&str, &str, &str)] = &[
    (
        "block.max_sectors_kb",
        "it is lowered from",
        "its disks have their largest, and to lower it is not safe",
    ),
    ("block.scheduler", "no other value than [none]", "this disk has no other"),
    ("cpu.idle_governor", "no other value than", "its file does not name the others"),
    ("fs.file-max", "it is lowered from", "systemd has it at its largest, and to lower it is not safe"),
    ("hugepages.1g", "is a pool", "this guest has too little memory for it"),
    ("hugepages.1g.total", "is a pool", "this guest has too little memory for it"),
    ("hugepages.2m.total", "is a pool", "hugepages.2m raises the same pages node by node"),
    ("kernel.pid_max", "it is lowered from", "systemd has it at its largest, and to lower it is not safe"),
];
/// Other values of knobs whose file shows one word and not which others there are: these need no module. And higher
/// ones of limits that are near their largest, where to lower them is not safe.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("kernel.msgmni", "32768"),
    ("kernel.sem", "32000 1024000000 501 32000"),
    ("kernel.shmall", "18446744073692774400"),
    ("kernel.shmmax", "18446744073692774400"),
    ("net.core.default_qdisc", "pfifo"),
    // Two ticks is the least, and what they come to no file says.
    ("net.core.netdev_budget_usecs", "16000"),
    ("net.ipv4.ip_local_port_range", "32768 61001"),
    ("net.ipv4.ip_local_reserved_ports", "8080"),
    ("net.ipv4.tcp_congestion_control", "reno"),
];
/// Begin of a kernel's release, and how many knobs are flipped on it at least: rows that lose their place or their type
/// drop out of the list without a word. The usual guest has 107 and 111; with fewer nodes there are a few less.
const FLOORS: &[(&str, usize)] = &[("6.1.", 95), ("6.12.", 98)];

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
    let knobs = match safe_knobs() {
        Ok(knobs) => knobs,
        Err(error) => return report.fail("planish.knobs", &format!("{error:#}")),
    };
    let before = settings::read_all();
    let mut flips = Vec::new();
    for (id, pattern) in &knobs {
        report.check(&format!("knob.{id}"), || match flip(id, pattern)? {
            Ok(flip) => {
                let outcome = alone(&flip);
                flips.push(flip);
                outcome
            }
            Err(reason) => left_alone(id, &reason),
        });
    }
    report.check("knobs.all_back", || {
        let floor = floor()?;
        ensure!(flips.len() >= floor, "only {} safe knobs were flipped, not {floor}", flips.len());
        settings::ensure_same(&before, &settings::read_all())?;
        Ok(Outcome::Ok(format!("{} knobs flipped, {} settings as at the start", flips.len(), before.len())))
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
        // The intent is one line, and each step has another at least.
        let was_killed = planish::killed_when(&["apply", "guest", "--yes"], || Ok(journal_lines() > lines))?;
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

/// Identifier and pattern of every safe knob that can be set here.
fn safe_knobs() -> Result<Vec<(String, String)>> {
    let envelope = planish::json(&["knobs"], &[0])?;
    let knobs = envelope["result"]["knobs"].as_array().context("knobs: no result.knobs")?;
    // Those of cards are no files, and have a judge of their own: see [`crate::cards`].
    let is_file = |knob: &Value| !knob["place"].as_str().is_some_and(|place| place.starts_with("/planish/"));
    let is_asked = |knob: &&Value| knob["class"] == "safe" && knob["verdict"] == "settable" && is_file(knob);
    let text = |knob: &Value, key: &str| {
        knob[key].as_str().map(str::to_owned).with_context(|| format!("a knob without {key}: {knob}"))
    };
    knobs.iter().filter(is_asked).map(|knob| Ok((text(knob, "id")?, text(knob, "place")?))).collect()
}

/// Another value for a knob that planish takes and has something to write for, or why there is none.
fn flip(id: &str, pattern: &str) -> Result<Result<Flip, String>> {
    let paths = settings::expand(pattern);
    if pattern.ends_with(POOL_SUFFIX) && pattern.contains("/node{") {
        return pool_flip(id, &paths).map(Ok);
    }
    let befores = paths.iter().map(|path| settings::read(path)).collect::<Result<Vec<_>>>()?;
    let Some(first) = befores.first() else { return Ok(Err(format!("{pattern} is not there"))) };
    let mut reasons = Vec::new();
    for wanted in other_values(id, first) {
        let value = if wanted.parse::<i64>().is_ok() { wanted.clone() } else { format!("\"{wanted}\"") };
        let places = paths.iter().zip(&befores).map(|(path, before)| Place {
            path: path.clone(),
            before: before.clone(),
            wanted: wanted.clone(),
        });
        let flip =
            Flip { knob: id.to_owned(), line: format!("\"{id}\" = {value}"), places: places.collect() };
        match unplanned(&flip)? {
            None => return Ok(Ok(flip)),
            Some(reason) => reasons.push(format!("{wanted}: {reason}")),
        }
    }
    Ok(Err(if reasons.is_empty() { format!("no other value than {first}") } else { reasons.join("; ") }))
}

/// Why planish does not take a value, or has nothing to write for it; `None` when it plans a write. Ranges are the
/// catalogue's business, so that a value may be refused; whoever asks tries the next.
fn unplanned(flip: &Flip) -> Result<Option<String>> {
    write_profile("guest", std::slice::from_ref(flip))?;
    let plan = planish::run(&["plan", "guest", "--json"])?;
    if plan.exit != 0 {
        let first = plan.stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        return Ok(Some(format!("plan left with {}: {first}", plan.exit)));
    }
    let envelope: Value = serde_json::from_str(&plan.stdout).context("JSON of planish plan")?;
    let steps = envelope["result"]["steps"].as_array().context("plan: no result.steps")?;
    Ok(steps.is_empty().then(|| format!("nothing to write: {}", envelope["result"]["skipped"])))
}

/// The known reasons to leave a safe knob alone are no failure, and are told; another one is.
fn left_alone(id: &str, reason: &str) -> Result<Outcome> {
    let known = LEFT_ALONE.iter().find(|(knob, part, _)| *knob == id && reason.contains(part));
    let Some((_, _, why)) = known else { bail!("was not flipped: {reason}") };
    Ok(Outcome::Skip(format!("{why} ({reason})")))
}

/// How many knobs are flipped on this kernel at least.
fn floor() -> Result<usize> {
    let release = settings::read("/proc/sys/kernel/osrelease")?;
    let of_kernel = FLOORS.iter().find(|(kernel, _)| release.starts_with(kernel));
    Ok(of_kernel.with_context(|| format!("no floor is known for Linux {release}"))?.1)
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
fn other_values(id: &str, shown: &str) -> Vec<String> {
    /// Legal for a byte limit, and far above every mode.
    const LARGE: i128 = 64 << 20;
    /// Above percentages.
    const SIZE_MIN: i128 = 101;
    if shown.contains('[') {
        let others = shown.split_whitespace().rev().filter(|word| !word.starts_with('['));
        return others.map(str::to_owned).collect();
    }
    let named = OTHER_WORDS.iter().find(|(knob, _)| *knob == id).map_or("", |(_, word)| *word);
    if !named.is_empty() {
        return vec![named.to_owned()];
    }
    let numbers: Vec<i128> = shown.split_whitespace().flat_map(str::parse).collect();
    if let [first @ .., _, last] = numbers.as_slice()
        && numbers.len() == shown.split_whitespace().count()
    {
        // The last of several is the upper end: one less of it is legal, but of a limit that nothing may lower.
        let begin: Vec<String> = numbers[..=first.len()].iter().map(i128::to_string).collect();
        return [last - 1, last + 1].map(|last| format!("{} {last}", begin.join(" "))).to_vec();
    }
    match shown.parse::<i128>() {
        Ok(0) => vec!["1".to_owned(), LARGE.to_string()],
        Ok(1) => vec!["0".to_owned(), "2".to_owned()],
        // Half of a size is still a multiple of whatever the kernel rounds to, and so is twice as much.
        Ok(number @ SIZE_MIN..) => vec![(number / 2).to_string(), number.saturating_mul(2).to_string()],
        // Downwards first: upper limits are common, and lower ones are seldom what runs.
        Ok(number) => vec![(number - 1).to_string(), (number + 1).to_string()],
        Err(_) => match shown {
            "false" => vec!["true".to_owned()],
            "true" => vec!["false".to_owned()],
            "0x0000" => vec!["0x0001".to_owned()],
            bits if bits.starts_with("0x") => vec!["0x0000".to_owned()],
            _ => Vec::new(),
        },
    }
}

/// The value in the text of a file: the word in brackets where there is one. The kernel may list the others in
/// another order after a write, and separates several numbers by tabs.
fn chosen(shown: &str) -> String {
    let bracketed = shown.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    bracketed.map_or_else(|| shown.split_whitespace().collect::<Vec<_>>().join(" "), str::to_owned)
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

#[cfg(test)]
mod tests {
    use super::{FLOORS, LEFT_ALONE, chosen, left_alone, other_values};
    use crate::check::Outcome;

    #[test]
    fn a_knob_is_left_alone_for_a_known_reason_only() {
        for (knob, part, why) in LEFT_ALONE {
            let Ok(Outcome::Skip(told)) = left_alone(knob, &format!("5: {part} here")) else {
                panic!("{knob} is not skipped");
            };
            assert!(told.contains(why) && told.contains(part), "{told}");
            let error = left_alone(knob, "1: plan left with 2: error: no such knob").err();
            assert!(error.is_some_and(|error| error.to_string().contains("plan left with 2")), "{knob}");
            assert!(left_alone("no.such", &format!("5: {part} here")).is_err());
        }
        assert!(FLOORS.iter().all(|(_, floor)| *floor > 50), "{FLOORS:?}");
    }

    #[test]
    fn another_value_is_of_the_kind_that_is_shown() {
        assert_eq!(other_values("kernel.printk", "4\t4\t1\t7"), ["4 4 1 6", "4 4 1 8"]);
        assert_eq!(chosen("4\t4\t1\t7"), chosen("4 4 1 7"));
        assert_eq!(other_values("thp.enabled", "always [madvise] never"), ["never", "always"]);
        assert_eq!(other_values("vm.swappiness", "60"), ["59", "61"]);
        assert_eq!(other_values("net.ipv4.tcp_congestion_control", "cubic"), ["reno"]);
        assert_eq!(other_values("x.limit", "18446744073692774399")[0], "9223372036846387199");
        assert_eq!(other_values("mm.lru_gen", "0x0007"), ["0x0000"]);
        assert_eq!(other_values("mm.numa_demotion", "false"), ["true"]);
        assert!(other_values("x.y", "haltpoll").is_empty() && other_values("x.y", "").is_empty());
    }
}
