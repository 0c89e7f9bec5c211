//! The drop-in that `planish run --verbose` prints, given to a real systemd: what its process has is compared with what
//! the launcher's has, in the kernel's own files and never in the words of planish or of systemd.
//!
//! The machine is that of a placement: two nodes of two CPUs each ([`super::services`]).

use super::systemd::until;
use super::{reload_units, tool};
use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = "/opt/planish/place-glibc";
/// As the kernel calls its process.
const NAME: &str = "place-glibc";
const UNIT: &str = "planish-printed.service";
const UNIT_FILE: &str = "/etc/systemd/system/planish-printed.service";
const REPORT: &str = "/run/planish-printed.json";
const TALK: &str = "/run/planish-printed.txt";
/// The program's words: a shared segment of so many MiB.
const WORDS: [&str; 2] = ["anonymous", "48"];
/// Its pages of 4 KiB.
const SEGMENT_PAGES: u64 = 48 << 8;
/// Most that the share of a node may differ from what was wanted.
const TOLERANCE: f64 = 0.02;
/// What a start sets besides, by its name.
const VARIABLES: [&str; 3] = ["GLIBC_TUNABLES", "LD_PRELOAD", "PLANISH_SHM"];
/// Items of `PLANISH_SHM` that are of one start by the launcher, and of no unit.
const OF_START: [&str; 3] = ["answer=", "limit=", "group="];
/// Of the line that tells what a unit has by a launcher alone.
const ALONE: &str = "# so: ExecStart= alone, then ExecStart=";
/// The first systemd that has `MemoryTHP=`.
const MEMORY_THP: u32 = 260;

/// A start, and what the kernel is to say of its process.
struct Case {
    name: &'static str,
    options: &'static [&'static str],
    cpus: &'static str,
    /// The policy of its memory as the launcher sets it, and as systemd does.
    policy: [&'static str; 2],
    /// The policy of its segment; that of its memory where it has none of its own.
    segment: Option<&'static str>,
    /// The share of the segment on node 1; none where first use decides.
    on_node_1: Option<f64>,
    /// What it may lock; none where that is left alone.
    memlock: Option<&'static str>,
    /// Whether all of [`VARIABLES`] are set, or none.
    has_variables: bool,
    /// Whether it is started without transparent huge pages.
    without_thp: bool,
}

/// A start of which nothing is wanted.
const PLAIN: Case = Case {
    name: "",
    options: &[],
    cpus: "0-3",
    policy: ["default"; 2],
    segment: None,
    on_node_1: None,
    memlock: None,
    has_variables: false,
    without_thp: false,
};

const CASES: [Case; 5] = [
    Case {
        name: "all",
        options: &[
            "--cpus",
            "3",
            "--numa",
            "heap=bind:1,shm=interleave:0-1",
            "--huge",
            "heap",
            "--memlock",
            "64M",
        ],
        cpus: "3",
        policy: ["bind:1"; 2],
        segment: Some("interleave:0-1"),
        on_node_1: Some(0.5),
        memlock: Some("67108864"),
        has_variables: true,
        ..PLAIN
    },
    Case {
        name: "node",
        options: &["--node", "1", "--thp", "never", "--memlock", "unlimited"],
        cpus: "2-3",
        policy: ["bind:1"; 2],
        on_node_1: Some(1.0),
        memlock: Some("unlimited"),
        without_thp: true,
        ..PLAIN
    },
    Case {
        name: "interleave",
        options: &["--numa", "heap=interleave:0-1"],
        policy: ["interleave:0-1"; 2],
        on_node_1: Some(0.5),
        ..PLAIN
    },
    // systemd has the older call, of one node.
    Case {
        name: "prefer",
        options: &["--numa", "heap=prefer:1"],
        policy: ["prefer (many):1", "prefer:1"],
        on_node_1: Some(1.0),
        ..PLAIN
    },
    // What a start has by itself, and what a unit may have otherwise by another drop-in.
    Case { name: "local", options: &["--numa", "heap=local"], policy: ["default", "local"], ..PLAIN },
];

/// All starts; each leaves the guest as it was.
pub fn run_all(report: &mut Report) {
    if !Path::new(PROGRAM).exists() {
        return report
            .check("drop_in.any", || Ok(Outcome::Skip(format!("no {PROGRAM} was packed: no C compiler"))));
    }
    for case in &CASES {
        report.check(&format!("drop_in.{}", case.name), || compare(case));
    }
}

fn compare(case: &Case) -> Result<Outcome> {
    let (by_run, drop_in) = by_launcher(case)?;
    case.ensure(0, &by_run).context("by planish run")?;
    let thp = if case.without_thp { "0" } else { "1" };
    ensure!(by_run.thp == thp, "by planish run: {by_run:?}");
    let unit = format!(
        "[Unit]\nDescription=What planish run starts\n\n[Service]\nType=exec\nStandardOutput=null\n\
         ExecStart={PROGRAM} {}\n",
        WORDS.join(" ")
    );
    fs::write(UNIT_FILE, unit).with_context(|| format!("write {UNIT_FILE}"))?;
    let outcome = compare_unit(case, &by_run, &drop_in);
    fs::remove_file(UNIT_FILE).with_context(|| format!("remove {UNIT_FILE}"))?;
    reload_units()?;
    outcome
}

fn compare_unit(case: &Case, by_run: &Facts, drop_in: &str) -> Result<Outcome> {
    let version = systemd_version()?;
    let (by_unit, told) = under_systemd(drop_in, "")?;
    case.ensure(1, &by_unit).with_context(|| format!("by the drop-in {drop_in}"))?;
    by_unit.ensure_as(by_run)?;
    let mut detail = format!("systemd {version}: {by_unit:?}");
    if case.without_thp && version < MEMORY_THP {
        // It is told that this systemd passes the line over, and so it does: that very look finds what is wrong.
        let is_told = !told.is_empty() && told.iter().all(|line| line.contains("MemoryTHP"));
        ensure!(is_told, "systemd-analyze tells {told:?} of {drop_in}");
        ensure!(by_unit.thp == "1", "systemd {version} has MemoryTHP=: {by_unit:?}");
        detail += &format!("; {}", told.join("; "));
    } else {
        ensure!(told.is_empty(), "systemd-analyze tells {told:?} of {drop_in}");
        ensure!(by_unit.thp == by_run.thp, "{by_unit:?}, by planish run {by_run:?}");
    }
    if case.without_thp {
        let line = drop_in.lines().find_map(|line| line.strip_prefix(ALONE));
        let line = line.with_context(|| format!("no line with a launcher: {drop_in}"))?;
        let command = line.strip_suffix("...").with_context(|| format!("no end: {line}"))?;
        let start = format!("ExecStart=\nExecStart={command}{PROGRAM} {}\n", WORDS.join(" "));
        let (by_both, _) = under_systemd(drop_in, &start)?;
        case.ensure(1, &by_both).with_context(|| format!("by the drop-in with {start}"))?;
        by_both.ensure_as(by_run)?;
        ensure!(by_both.thp == by_run.thp, "by the launcher of the line {by_both:?}, without it {by_run:?}");
        detail += &format!("; with {}THP_enabled {}", command.trim_end_matches("-- "), by_both.thp);
    }
    Ok(Outcome::Ok(detail))
}

/// Starts the program by `planish run`: what the kernel says of its process, and the drop-in that was printed.
fn by_launcher(case: &Case) -> Result<(Facts, String)> {
    let _ = fs::remove_file(REPORT);
    let talk = File::create(TALK).with_context(|| format!("make {TALK}"))?;
    let begin = ["run", "--verbose", "--report", REPORT];
    let words = [&begin[..], case.options, &["--", PROGRAM], &WORDS].concat();
    let mut command = planish::command(&words);
    let mut child = command.stdout(Stdio::null()).stderr(talk).spawn().context("start planish")?;
    let looked = look(&mut child);
    if child.try_wait().context("look at planish")?.is_none() {
        // It is passed on, and planish ends as its program does.
        kill_process(Pid::from_child(&child), Signal::TERM).context("end the program")?;
    }
    let status = child.wait().context("wait for planish")?;
    let looked = looked?;
    ensure!(status.code() == Some(143), "planish left with {status}");
    Ok(looked)
}

fn look(child: &mut Child) -> Result<(Facts, String)> {
    let talk = || fs::read_to_string(TALK).unwrap_or_default();
    let mut report = Value::Null;
    until("planish has looked at its memory", || {
        if let Some(status) = child.try_wait().context("look at planish")? {
            anyhow::bail!("planish left with {status}: {}", talk());
        }
        report = serde_json::from_str(&fs::read_to_string(REPORT).unwrap_or_default()).unwrap_or_default();
        Ok(report["result"]["instances"][0]["seen"] == true)
    })?;
    let instance = &report["result"]["instances"][0];
    let pid = instance["pid"].as_u64().with_context(|| format!("no pid: {report}"))?;
    let drop_in = instance["drop_in"].as_str().with_context(|| format!("no drop_in: {report}"))?;
    // What people copy from their terminal is the same.
    ensure!(talk().contains(drop_in), "it is not printed: {drop_in} {}", talk());
    Ok((Facts::of(u32::try_from(pid)?)?, drop_in.to_owned()))
}

/// Gives the unit its drop-in, with more lines behind it, and starts it: what the kernel says of its process, and
/// systemd-analyze of its files.
fn under_systemd(drop_in: &str, more: &str) -> Result<(Facts, Vec<String>)> {
    // By the name that its first line tells.
    let path = drop_in.strip_prefix("# ").and_then(|text| text.split_once(".service.d/"));
    let (folder, name) = path.with_context(|| format!("it does not tell where it goes: {drop_in}"))?;
    let folder = format!("{}.d", folder.replace("UNIT", UNIT));
    let name = name.split(';').next().unwrap_or_default();
    fs::create_dir_all(&folder).with_context(|| format!("make {folder}"))?;
    let file = format!("{folder}/{name}");
    fs::write(&file, format!("{drop_in}{more}")).with_context(|| format!("write {file}"))?;
    let started = (|| {
        reload_units()?;
        tool("systemctl", &["restart", UNIT])?;
        Ok((Facts::of(program()?)?, verified()?))
    })();
    let _ = tool("systemctl", &["stop", UNIT]);
    // A launcher leaves with 143, which is a failure to systemd.
    let _ = tool("systemctl", &["reset-failed", UNIT]);
    fs::remove_dir_all(&folder).with_context(|| format!("remove {folder}"))?;
    started
}

/// The program's process in the control group of the unit: the main one, or below a launcher.
fn program() -> Result<u32> {
    let group = tool("systemctl", &["show", "--property=ControlGroup", "--value", UNIT])?;
    let file = format!("/sys/fs/cgroup{}/cgroup.procs", group.trim());
    let mut found = None;
    until("the program runs", || {
        let pids = settings::read(&file)?;
        let is_it = |pid: &&str| settings::read(&format!("/proc/{pid}/comm")).is_ok_and(|name| name == NAME);
        found = pids.lines().find(is_it).map(str::parse::<u32>).transpose().context("a process id")?;
        Ok(found.is_some())
    })?;
    found.context("it was there")
}

/// Lines of `systemd-analyze verify` about the unit. Warnings are on stderr, and it leaves with 0 all the same.
fn verified() -> Result<Vec<String>> {
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", UNIT_FILE]).stdin(Stdio::null());
    command.env("SYSTEMD_LOG_TARGET", "console").env("SYSTEMD_LOG_COLOR", "0");
    let output = command.output().context("start systemd-analyze")?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "systemd-analyze left with {}: {text}", output.status);
    Ok(text.lines().filter(|line| line.contains("planish-printed")).map(str::to_owned).collect())
}

/// `systemd 252 (252.39-1~deb12u1)`, and a line of what it was built with.
fn systemd_version() -> Result<u32> {
    let text = tool("systemctl", &["--version"])?;
    let word = text.split_whitespace().nth(1).unwrap_or_default();
    let number = word.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
    number.parse().with_context(|| format!("no version of systemd: {text}"))
}

/// What the kernel says of a process.
#[derive(Debug)]
struct Facts {
    cpus: String,
    nodes: String,
    /// The soft and the hard limit.
    memlock: String,
    /// 1 where it may have transparent huge pages.
    thp: String,
    placed: Placed,
    /// Of [`VARIABLES`] those that it has, without what is of one start.
    variables: BTreeMap<String, String>,
    /// Whether anything of one start was among them.
    is_of_start: bool,
}

impl Facts {
    /// Waits until the program has filled its segment.
    fn of(pid: u32) -> Result<Self> {
        let read = |file: &str| settings::read(&format!("/proc/{pid}/{file}"));
        let mut placed = Placed::default();
        until("its segment is filled", || {
            placed = Placed::read(&read("numa_maps")?)?;
            Ok(placed.pages.iter().sum::<u64>() == SEGMENT_PAGES)
        })?;
        let status = read("status")?;
        let of = |key: &str| -> Result<String> {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            Ok(line.with_context(|| format!("no {key} {status}"))?.trim().to_owned())
        };
        let limits = read("limits")?;
        let memlock = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
        let memlock: Vec<&str> =
            memlock.context("no limit of locked memory")?.split_whitespace().take(2).collect();
        let (variables, is_of_start) = variables(&read("environ")?);
        Ok(Self {
            cpus: of("Cpus_allowed_list:")?,
            nodes: of("Mems_allowed_list:")?,
            memlock: memlock.join(" "),
            thp: of("THP_enabled:")?,
            placed,
            variables,
            is_of_start,
        })
    }

    /// Fails where another start of the same has anything else, but for what a [`Case`] tells apart.
    fn ensure_as(&self, by_run: &Self) -> Result<()> {
        let facts = |of: &Self| (of.cpus.clone(), of.nodes.clone(), of.memlock.clone(), of.variables.clone());
        ensure!(facts(self) == facts(by_run), "{self:?}, by planish run {by_run:?}");
        ensure!(!self.is_of_start, "something of one start is in the unit: {self:?}");
        Ok(())
    }
}

impl Case {
    /// Fails unless a process is as it is wanted; `by` is 0 for the launcher and 1 for systemd.
    fn ensure(&self, by: usize, seen: &Facts) -> Result<()> {
        let policy = self.policy[by];
        ensure!(seen.cpus == self.cpus, "CPUs: {seen:?}");
        let placed = &seen.placed;
        ensure!(placed.policies.iter().eq([policy]), "not {policy} everywhere: {seen:?}");
        let wanted = self.segment.unwrap_or(policy);
        ensure!(placed.segment == wanted, "the segment is not {wanted}: {seen:?}");
        if let Some(share) = self.on_node_1 {
            let on_node_1 = placed.pages[1] as f64 / SEGMENT_PAGES as f64;
            ensure!((on_node_1 - share).abs() <= TOLERANCE, "{on_node_1:.3} of it on node 1: {seen:?}");
        }
        if let Some(limit) = self.memlock {
            ensure!(seen.memlock == format!("{limit} {limit}"), "it may lock: {seen:?}");
        }
        let names: Vec<&str> = seen.variables.keys().map(String::as_str).collect();
        let wanted: &[&str] = if self.has_variables { &VARIABLES } else { &[] };
        ensure!(names == wanted, "variables: {seen:?}");
        Ok(())
    }
}

/// What numa_maps says of the program.
#[derive(Debug, Default)]
struct Placed {
    /// Policies of all but the segment.
    policies: BTreeSet<String>,
    /// That of the segment, and its pages on both nodes.
    segment: String,
    pages: [u64; 2],
}

impl Placed {
    /// `ADDRESS POLICY [file=NAME] [heap] ... N0=PAGES N1=PAGES ...`; the name of a policy may have a blank in it.
    fn read(maps: &str) -> Result<Self> {
        let mut placed = Self::default();
        for line in maps.lines() {
            let mut words = line.split(' ').skip(1);
            let mut policy = words.next().unwrap_or_default().to_owned();
            let rest: Vec<&str> = words.collect();
            if let Some(more) = rest.first().filter(|word| word.starts_with('(')) {
                policy = format!("{policy} {more}");
            }
            if !line.contains(" file=/dev/zero") {
                placed.policies.insert(policy);
                continue;
            }
            placed.segment = policy;
            for (node, pages) in [("N0=", 0), ("N1=", 1)] {
                let count = rest.iter().find_map(|word| word.strip_prefix(node));
                placed.pages[pages] = count.map_or(Ok(0), str::parse::<u64>)?;
            }
        }
        Ok(placed)
    }
}

/// Of an environment the variables that a start sets, without what is of that start alone; and whether there was any.
fn variables(environment: &str) -> (BTreeMap<String, String>, bool) {
    let mut is_of_start = false;
    let pairs = environment.split('\0').filter_map(|pair| pair.split_once('='));
    let ours = pairs.filter(|(name, _)| VARIABLES.contains(name));
    let kept = ours.map(|(name, value)| {
        let (start, rest): (Vec<&str>, Vec<&str>) =
            value.split(':').partition(|item| OF_START.iter().any(|begin| item.starts_with(begin)));
        is_of_start |= !start.is_empty();
        (name.to_owned(), rest.join(":"))
    });
    (kept.collect(), is_of_start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_segment_is_told_from_other_memory() {
        let maps = "5581 bind:1 file=/opt/planish/place-glibc mapped=1 N0=1 kernelpagesize_kB=4\n\
                    5582 bind:1 heap anon=9 dirty=9 N1=9 kernelpagesize_kB=4\n\
                    7f01 interleave:0-1 file=/dev/zero\\040(deleted) dirty=7 N0=4 N1=3 kernelpagesize_kB=4\n\
                    7ffc bind:1 stack anon=2 dirty=2 N1=2 kernelpagesize_kB=4\n";
        let placed = Placed::read(maps).unwrap();
        assert!(placed.policies.iter().eq(["bind:1"]), "{placed:?}");
        assert_eq!((placed.segment.as_str(), placed.pages), ("interleave:0-1", [4, 3]));
        let placed = Placed::read("1000 prefer (many):1 heap N1=2\n2000 local\n").unwrap();
        assert!(placed.policies.iter().eq(["local", "prefer (many):1"]), "{placed:?}");
        assert!(Placed::read("1000 default file=/dev/zero N0=x\n").is_err());
    }

    #[test]
    fn what_is_of_one_start_is_left_out() {
        let environment =
            "HOME=/tmp\0PLANISH_SHM=bytes=1:limit=9:threads=1:answer=planish-run-7\0LD_PRELOAD=/x.so\0";
        let (kept, is_of_start) = variables(environment);
        let kept: Vec<(&str, &str)> = kept.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        assert_eq!(kept, [("LD_PRELOAD", "/x.so"), ("PLANISH_SHM", "bytes=1:threads=1")]);
        assert!(is_of_start);
        assert!(!variables("GLIBC_TUNABLES=glibc.malloc.hugetlb=1\0").1);
    }
}
