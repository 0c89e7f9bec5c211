//! Every read-only command on every recorded machine, told short: two goldens a machine. `commands.snap` has a line for
//! each command with how it ended and what its output comes to; `plans.snap` what each shipped profile comes to there,
//! a line a knob. What [`crate::hosts`] keeps in full is not repeated.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::Hasher as _;

use serde_json::Value;

use crate::planish::{self, Run};
use crate::recorded::{hosts, repository};

/// Read-only command lines for every machine. `@` is the machine's folder.
const COMMANDS: &[&[&str]] = &[
    &["check"],
    &["check", "--monitor", "postgres"],
    &["check", "--monitor", "low-latency"],
    &["log"],
    &["top"],
    &["top", "--sort", "remote", "--verbose"],
    &["knobs", "vm.swappiness"],
    &["profiles"],
    &["profiles", "low-latency"],
    &["size", "--bytes", "8G"],
    &["plan", "low-latency", "--persist"],
    &["plan", "realtime", "--persist", "--allow", "availability"],
    &["doctor", "low-latency"],
    &["doctor", "postgres"],
    &["export", "script", "throughput"],
    &["export", "sysctl", "throughput"],
    &["export", "tuned", "throughput"],
    &["export", "ansible", "throughput"],
    &["export", "kernel-args", "realtime", "--allow", "availability"],
    &["export", "node-tuning", "realtime"],
    &["import", "hosts/metal-2s/etc/sysctl.d/99-local.conf"],
    &["host", "diff", "hosts/metal-2s", "@"],
];

/// The same for machines with a service that was recorded, and its process.
const OF_SERVICES: &[(&str, &str)] = &[("metal-2s", "2201"), ("metal-1s-amd", "3301")];

/// What is asked of such a service: `@` is its process.
const SERVICE_COMMANDS: &[&[&str]] = &[
    &["map", "@"],
    &["map", "@", "--tree"],
    &["size", "@"],
    &["doctor", "--service", "@"],
    &["plan", "postgres", "--service", "@"],
];

/// Commands that are asked of no recorded machine, and why not.
const ELSEWHERE: &[(&str, &str)] = &[
    ("apply", "writes"),
    ("confirm", "writes"),
    ("undo", "writes"),
    ("move", "moves memory of the machine that it runs on: relocate"),
    ("install check", "writes"),
    ("install warm", "writes"),
    ("install publish", "writes"),
    ("host record", "writes a folder: a_recording_is_complete"),
    ("diff", "host diff by a shorter name"),
    ("topo", "kept in full"),
    ("version", "tells of the program, which differs by processor and by how it was linked: surface"),
    ("latency", "measures the machine that it runs on"),
    ("run", "starts a program"),
    ("workload series", "measures the machine that it runs on"),
    ("workload scan", "measures the machine that it runs on"),
    ("trial new", "asks no machine"),
    ("trial run", "measures the machine that it runs on"),
    ("trial status", "asks the machine that it runs on"),
    ("trial stop", "writes"),
    ("trial resume", "writes"),
    ("trial selfcheck", "measures the machine that it runs on"),
    ("trial honesty", "asks no machine"),
    ("prove series", "measures the machine that it runs on"),
    ("prove postgres", "measures the machine that it runs on"),
    ("prove numa", "measures the machine that it runs on"),
    ("prove text", "compiles and measures on the machine that it runs on"),
    ("text record", "measures the machine that it runs on"),
    ("text import", "reads files, not a machine"),
    ("text merge", "reads files, not a machine"),
    ("text show", "reads files, not a machine"),
    ("text order", "reads files, not a machine"),
    ("text link-flags", "reads files, not a machine"),
    ("text cc", "starts a compiler"),
    ("text ld", "starts a linker"),
    ("text check", "reads files, not a machine"),
    ("text bolt", "starts llvm-bolt"),
    ("text huge", "the page cache is that of this machine"),
    ("text verify", "reads files, not a machine"),
    ("text publish", "writes a store and a repository"),
    ("text fetch", "reads a store, not a machine"),
    ("text prune", "reads a store, not a machine"),
];

fn run_on(root: &str, args: &[String]) -> Run {
    let home = tempfile::tempdir().expect("a temporary folder");
    let before = ["--root", root, "--clock", "1800000000"].map(str::to_owned);
    let args: Vec<String> = before.into_iter().chain(args.iter().cloned()).collect();
    let mut command = planish::command(home.path(), args);
    command.current_dir(repository()).output().expect("the binary starts").into()
}

/// A text as a number, the same on every machine: what changed is seen by running the line.
fn fingerprint(text: &str) -> String {
    let text = text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    hasher.write(text.as_bytes());
    format!("{:016x}", hasher.finish())
}

/// FNV-1a: no choice of the standard library's, which may change it.
struct Fnv(u64);

impl std::hash::Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// A command line's end and output in a line, and the first and the last line of what it printed.
fn told(root: &str, args: &[&str], stands_for: &str) -> String {
    let args: Vec<String> = args.iter().map(|arg| arg.replace('@', stands_for)).collect();
    let text = run_on(root, &args);
    let json = run_on(root, &[&args[..], &["--json".to_owned()]].concat());
    let envelope = json.envelope();
    assert_eq!(envelope["exit"], json.exit, "{root} {args:?}: {}", json.stdout);
    let (lines, talk) = (text.stdout.lines().count(), text.stderr.lines().count());
    let mut told = format!(
        "planish {}: exit {}, {lines} lines {}, {talk} of talk {}, JSON exit {} {}\n",
        args.join(" "),
        text.exit,
        fingerprint(&text.stdout),
        fingerprint(&text.stderr),
        json.exit,
        fingerprint(&json.stdout),
    );
    let ends = text.stdout.lines().chain(text.stderr.lines()).filter(|line| !line.trim().is_empty());
    let ends: Vec<&str> = ends.collect();
    for line in ends.first().into_iter().chain(ends.get(1..).and_then(<[&str]>::last)) {
        let line = line.replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
        let _ = writeln!(told, "    {}", line.trim_end());
    }
    told
}

/// What a profile comes to on a machine: a line for each knob and all its places that fare alike.
fn plan_of(root: &str, profile: &str) -> String {
    let allowed = ["--allow", "availability", "--allow", "durability"];
    let args = [&["plan", profile, "--json"][..], &allowed[..]].concat();
    let run = run_on(root, &args.iter().map(ToString::to_string).collect::<Vec<_>>());
    let result = &run.envelope()["result"];
    let mut rows: BTreeMap<String, usize> = BTreeMap::new();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    for step in result["steps"].as_array().into_iter().flatten() {
        let (now, wanted) = (text(&step["now"]), text(&step["wanted"]));
        *rows.entry(format!("{}: {now} -> {wanted}", text(&step["knob"]))).or_default() += 1;
    }
    for skip in result["skipped"].as_array().into_iter().flatten() {
        let (knob, wanted) = (text(&skip["knob"]), text(&skip["wanted"]));
        let so = if skip["satisfied"] == true { "already so" } else { "not written" };
        let (verdict, reason) = (text(&skip["verdict"]), text(&skip["reason"]));
        *rows.entry(format!("{knob}: {wanted} {so} ({verdict}: {reason})")).or_default() += 1;
    }
    let rows: String = rows.iter().map(|(row, places)| format!("  {row} x{places}\n")).collect();
    format!("{profile}: exit {}\n{rows}", run.exit)
}

/// Compares with the golden of a machine.
fn keep(host: &str, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(repository().join("tests/golden").join(host));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn every_command_ends_on_every_host_as_recorded() {
    for (name, _) in hosts() {
        let root = format!("hosts/{name}");
        let mut text: String = COMMANDS.iter().map(|args| told(&root, args, &root)).collect();
        for (_, pid) in OF_SERVICES.iter().filter(|(host, _)| *host == name) {
            text.extend(SERVICE_COMMANDS.iter().map(|args| told(&root, args, pid)));
        }
        keep(&name, "commands", &text);
    }
}

#[test]
fn every_profile_comes_to_what_was_recorded_on_every_host() {
    let catalogue = planish_model::Catalogue::embedded().expect("sound");
    for (name, _) in hosts() {
        let root = format!("hosts/{name}");
        let text: String = catalogue.profile_names().map(|profile| plan_of(&root, profile)).collect();
        keep(&name, "plans", &text);
    }
}

/// The names of all commands that have none below them.
fn leaves(command: &clap::Command, path: &str, names: &mut Vec<String>) {
    let shown = |below: &&clap::Command| below.get_name() != "help" && !below.is_hide_set();
    let below: Vec<&clap::Command> = command.get_subcommands().filter(shown).collect();
    if below.is_empty() {
        names.push(path.trim().to_owned());
    }
    for command in below {
        leaves(command, &format!("{path} {}", command.get_name()), names);
    }
}

#[test]
fn no_command_is_forgotten() {
    let mut names = Vec::new();
    leaves(&planish_cli::command(), "", &mut names);
    let is_asked = |name: &str| {
        let words: Vec<&str> = name.split(' ').collect();
        COMMANDS.iter().chain(SERVICE_COMMANDS).any(|args| args.starts_with(&words))
    };
    let is_elsewhere = |name: &str| ELSEWHERE.iter().any(|(other, _)| *other == name);
    let forgotten: Vec<&String> =
        names.iter().filter(|name| !is_asked(name) && !is_elsewhere(name)).collect();
    assert_eq!(forgotten, [""; 0], "put it into a table: asked of every machine, or why not");
    let gone: Vec<&str> = ELSEWHERE
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !names.iter().any(|known| known == name))
        .collect();
    assert_eq!(gone, [""; 0], "no such command");
}
