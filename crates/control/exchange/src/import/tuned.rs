//! A profile of tuned: the plugins whose options are settings of the kernel (`tuned/plugins/` of the project).

use super::collect::Collector;
use super::ini::{Entry, entries};
use planish_model::cards;

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    let all = entries(text);
    for entry in &all {
        let told = format!("[{}] {} = {}", entry.section, entry.key, entry.value.unwrap_or_default());
        let Some(value) = entry.value else {
            collector.refuse(entry.line, &told, "sets nothing");
            continue;
        };
        if value.contains("${") {
            collector.refuse(entry.line, &told, "a variable of tuned: its value is not in this file");
            continue;
        }
        match cards_of(&all, entry.section) {
            Some(_) if ["type", "devices"].contains(&entry.key) => {}
            Some(cards) if cards::is_key(entry.key) => net(entry, value, &told, &cards, collector),
            _ => plugin(entry, value, &told, collector),
        }
    }
}

fn plugin(entry: &Entry<'_>, value: &str, told: &str, collector: &mut Collector<'_>) {
    let line = entry.line;
    match (entry.section, entry.key) {
        ("main", "summary") => collector.sums_up(value),
        ("main", "include") => collector.refuse(line, told, "includes another profile: import that one too"),
        (_, "type" | "replace" | "priority" | "enabled") => {
            collector.refuse(line, told, "steers tuned itself")
        }
        ("sysctl", key) => collector.sysctl(line, key, value),
        ("sysfs", path) => collector.path(line, path, value),
        ("vm", "transparent_hugepages" | "transparent_hugepage") => {
            collector.knob(line, told, "thp.enabled", None, value);
        }
        ("vm", "transparent_hugepage.defrag") => collector.knob(line, told, "thp.defrag", None, value),
        ("cpu", key) => cpu(line, key, value, told, collector),
        ("disk", key) => disk(line, key, value, told, collector),
        ("bootloader", key) if key.starts_with("cmdline") => {
            collector.arguments(line, value.trim_start_matches(['+', '-']));
        }
        ("script", _) => collector.refuse(line, told, "runs a program: what it sets is not in this file"),
        _ => collector.refuse(line, told, "an option of tuned that is no setting of the kernel"),
    }
}

/// The cards of a section for network cards, by their names or patterns: all of them where it names none. `None` for
/// a section of another kind.
fn cards_of(all: &[Entry<'_>], section: &str) -> Option<Vec<String>> {
    let said = |key: &str| all.iter().find(|entry| entry.section == section && entry.key == key)?.value;
    if said("type").map_or(section != "net", |kind| kind != "net") {
        return None;
    }
    let devices = said("devices").unwrap_or("*");
    Some(devices.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect())
}

/// `ring = rx 4096 tx 4096` of the plugin for network cards.
fn net(entry: &Entry<'_>, value: &str, told: &str, cards: &[String], collector: &mut Collector<'_>) {
    if cards.iter().any(|card| card.starts_with('!')) {
        return collector.refuse(entry.line, told, "all cards but some: a profile names those that it means");
    }
    let words: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
    collector.cards(entry.line, &format!("[{}] {} =", entry.section, entry.key), entry.key, cards, &words);
}

fn cpu(line: usize, key: &str, value: &str, told: &str, collector: &mut Collector<'_>) {
    // `performance|powersave`: the first one that the host offers.
    let first = value.split('|').next().unwrap_or_default().trim();
    let bias = match first {
        "performance" => "0",
        "normal" => "6",
        "powersave" | "power" => "15",
        other => other,
    };
    let (id, value) = match key {
        "governor" => ("cpu.governor", first),
        "energy_perf_bias" => ("cpu.energy_perf_bias", bias),
        "energy_performance_preference" => ("cpu.epp", first),
        "min_perf_pct" => ("cpu.min_perf_pct", first),
        "max_perf_pct" => ("cpu.max_perf_pct", first),
        "no_turbo" => ("cpu.no_turbo", first),
        "boost" => ("cpu.boost", first),
        "pm_qos_resume_latency_us" => ("cpu.resume_latency_us", first),
        // `cstate.id:1|3`: a sleep state of the host by its number, else microseconds.
        "force_latency" => match value.split('|').map(str::trim).find(|part| part.parse::<u32>().is_ok()) {
            Some(limit) => ("cpu.dma_latency_us", limit),
            None => {
                return collector.refuse(line, told, "a sleep state, whose microseconds only a host knows");
            }
        },
        _ => return collector.refuse(line, told, "an option of tuned that is no setting of the kernel"),
    };
    collector.knob(line, told, id, None, value);
}

fn disk(line: usize, key: &str, value: &str, told: &str, collector: &mut Collector<'_>) {
    if value.starts_with('>') {
        return collector.refuse(line, told, "at least so much: a profile wants one value");
    }
    match key {
        "elevator" => collector.knob(line, told, "block.scheduler", None, value),
        "readahead" => collector.knob(line, told, "block.read_ahead_kb", None, value),
        _ => collector.refuse(line, told, "an option of tuned that is no setting of the kernel"),
    }
}
