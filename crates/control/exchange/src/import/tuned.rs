//! A profile of tuned: the plugins whose options are settings of the kernel (`tuned/plugins/` of the project).

use super::collect::Collector;
use super::tuned_files::{Files, Line, Lines};
use planish_model::cards;

pub(super) fn read(text: &str, files: Option<&Files<'_>>, collector: &mut Collector<'_>) {
    let all = Lines::read(text, files);
    for (line, told, why) in &all.refused {
        collector.refuse(*line, told, why.as_str());
    }
    for line in &all.lines {
        let told = line.told();
        if let Some(by) = line.replaced_by {
            collector.pass_over(line.number, &told, by, "a later file of the profile says it anew");
            continue;
        }
        let Some(value) = &line.value else {
            collector.refuse(line.number, &told, "sets nothing");
            continue;
        };
        // Its value is told where it was followed: [`Lines::include`].
        let value = match all.expanded(value) {
            _ if files.is_some() && (line.section.as_str(), line.key.as_str()) == ("main", "include") => {
                continue;
            }
            Ok(value) => value,
            Err(why) => {
                collector.refuse(line.number, &told, why);
                continue;
            }
        };
        match cards_of(&all.lines, &line.section) {
            Some(_) if ["type", "devices"].contains(&line.key.as_str()) => {}
            Some(cards) if cards::is_key(&line.key) => net(line, &value, &told, &cards, collector),
            _ => plugin(line, &value, &told, collector),
        }
    }
}

fn plugin(entry: &Line, value: &str, told: &str, collector: &mut Collector<'_>) {
    let line = entry.number;
    match (entry.section.as_str(), entry.key.as_str()) {
        ("main", "summary") if entry.from.is_empty() => collector.sums_up(value),
        ("main", "summary") => {}
        ("main", "include") => collector.refuse(line, told, "includes another profile: import that one too"),
        (_, "drop") if value.contains(['*', '[', '(', '\\', '+', '?', '^', '$', '|']) => {
            collector.refuse(line, told, "a pattern of options to leave out: they are not")
        }
        (_, "type" | "replace" | "drop" | "priority" | "enabled") => {
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
fn cards_of(all: &[Line], section: &str) -> Option<Vec<String>> {
    let said = |key: &str| {
        let mut said = all.iter().rev().filter(|entry| entry.section == section && entry.key == key);
        said.next()?.value.as_deref()
    };
    if said("type").map_or(section != "net", |kind| kind != "net") {
        return None;
    }
    let devices = said("devices").unwrap_or("*");
    Some(devices.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect())
}

/// `ring = rx 4096 tx 4096` of the plugin for network cards.
fn net(entry: &Line, value: &str, told: &str, cards: &[String], collector: &mut Collector<'_>) {
    if cards.iter().any(|card| card.starts_with('!')) {
        return collector.refuse(
            entry.number,
            told,
            "all cards but some: a profile names those that it means",
        );
    }
    let words: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
    let told = format!("{}[{}] {} =", entry.from, entry.section, entry.key);
    collector.cards(entry.number, &told, &entry.key, cards, &words);
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
