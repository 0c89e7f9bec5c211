//! A note of saptune (`saptune-note(5)`): the sections that set values of the kernel.

use std::collections::BTreeMap;

use super::collect::Collector;
use super::words::{AT_LEAST, OF_SOME, energy_perf_bias};
use planish_formats::ini::{Entry, entries};

/// Why arguments of the kernel are none that a note gives (`saptune-note(5)`).
const CHECKED: &str =
    "saptune checks such arguments, and gives the kernel none: to want it, import kernel arguments";

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    let otherwise = of_some(text);
    for entry in entries(text) {
        let section = entry.section.to_ascii_lowercase();
        if section == "version" || section == "reminder" {
            continue;
        }
        let told = format!("[{}] {} = {}", entry.section, entry.key, entry.value.unwrap_or_default());
        let Some(value) = entry.value else {
            collector.refuse(entry.line, &told, "sets nothing");
            continue;
        };
        if section.contains(':') {
            collector.refuse(entry.line, &told, OF_SOME);
        } else if entry.key.ends_with(['<', '>']) {
            collector.refuse(entry.line, &told, AT_LEAST);
        } else if value.is_empty() {
            collector.refuse(entry.line, &told, "sets nothing");
        } else {
            setting(&section, &entry, value, &told, collector);
            let others = otherwise.get(&(section, entry.key.to_ascii_lowercase()));
            if let Some((line, _)) = others.into_iter().flatten().find(|(_, other)| *other != value) {
                collector.remark(format!("line {line} says otherwise for some hosts"));
            }
        }
    }
}

/// What sections for some hosts say, by the section without its condition and by the key: two values at most, of which
/// one is another than a third.
fn of_some(text: &str) -> BTreeMap<(String, String), Vec<(usize, &str)>> {
    let mut found: BTreeMap<(String, String), Vec<(usize, &str)>> = BTreeMap::new();
    for entry in entries(text) {
        let (Some((section, _)), Some(value)) = (entry.section.split_once(':'), entry.value) else {
            continue;
        };
        let values = found.entry((section.to_ascii_lowercase(), entry.key.to_ascii_lowercase())).or_default();
        if values.len() < 2 && values.iter().all(|(_, other)| *other != value) {
            values.push((entry.line, value));
        }
    }
    found
}

fn setting(section: &str, entry: &Entry<'_>, value: &str, told: &str, collector: &mut Collector<'_>) {
    let (line, key) = (entry.line, entry.key);
    let words = value.to_ascii_lowercase();
    let id = match (section, key.to_ascii_lowercase().as_str()) {
        ("sysctl", _) => return collector.sysctl(line, key, value),
        ("sys", _) => {
            let path = if key.contains('/') { key.to_owned() } else { key.replace('.', "/") };
            return collector.path(line, &format!("/sys/{path}"), value);
        }
        ("grub", _) => return collector.refuse(line, told, CHECKED),
        ("vm", "thp") => "thp.enabled",
        ("vm", "ksm") => "mm.ksm_run",
        ("cpu", "governor") => "cpu.governor",
        ("cpu", "energy_perf_bias") => "cpu.energy_perf_bias",
        ("block", "io_scheduler") => "block.scheduler",
        ("block", "nrreq") => "block.nr_requests",
        ("block", "read_ahead_kb") => "block.read_ahead_kb",
        ("block", "max_sectors_kb") => "block.max_sectors_kb",
        ("cpu", "force_latency") => "cpu.dma_latency_us",
        ("mem", "shmfilesystemsizemb") => return shared_memory(line, value, told, collector),
        ("mem", "vsz_tmpfs_percent") => {
            let why =
                "a share of memory and swap, which a host has: want tmpfs.size with `only = \"/dev/shm\"`";
            return collector.refuse(line, told, why);
        }
        _ => return collector.refuse(line, told, "no setting of the kernel that planish has a knob for"),
    };
    // Alternatives in the order of preference: `none, noop`.
    let words = words.split(',').map(str::trim);
    let words: Vec<&str> =
        if id == "cpu.energy_perf_bias" { words.map(energy_perf_bias).collect() } else { words.collect() };
    collector.one_of(line, told, id, None, &words);
}

/// The size of /dev/shm in MiB; zero leaves it to a share of what the host has.
fn shared_memory(line: usize, value: &str, told: &str, collector: &mut Collector<'_>) {
    match value.parse::<u64>().ok().and_then(|mib| mib.checked_mul(1 << 20)) {
        Some(0) => collector.refuse(
            line,
            told,
            "leaves the size of /dev/shm to VSZ_TMPFS_PERCENT, a share of what a host has",
        ),
        Some(bytes) => collector.knob(line, told, "tmpfs.size", Some("/dev/shm"), &bytes.to_string()),
        None => collector.refuse(line, told, "no number of MiB"),
    }
}
