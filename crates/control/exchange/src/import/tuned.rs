//! A profile of tuned: the plugins whose options are settings of the kernel (`tuned/plugins/` of the project).

use super::collect::Collector;
use super::ini::{AT_LEAST, OF_SOME, energy_perf_bias};
use super::tuned_files::{Files, Line, Lines};
use crate::threads;
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
        let section = Section::of(&all.lines, &line.section);
        match section.cards() {
            _ if section.is_off => collector.refuse(line.number, &told, "a section that is turned off"),
            _ if section.is_of_some => collector.refuse(line.number, &told, OF_SOME),
            Some(_) if ["type", "devices"].contains(&line.key.as_str()) => {}
            Some(cards) if cards::is_key(&line.key) => net(line, &value, &told, &cards, collector),
            _ => plugin(section.kind, line, &value, &told, collector),
        }
    }
}

fn plugin(kind: &str, entry: &Line, value: &str, told: &str, collector: &mut Collector<'_>) {
    let line = entry.number;
    match (kind, entry.key.as_str()) {
        ("main", "summary") if entry.from.is_empty() => collector.sums_up(value),
        ("main", "summary") => {}
        ("main", "include") => collector.refuse(line, told, "includes another profile: import that one too"),
        (_, "drop") if value.contains(['*', '[', '(', '\\', '+', '?', '^', '$', '|']) => {
            collector.refuse(line, told, "a pattern of options to leave out: they are not")
        }
        ("sysctl" | "sysfs" | "vm" | "cpu" | "disk" | "bootloader", "type") => {}
        (_, "type" | "replace" | "drop" | "priority" | "enabled") => {
            collector.refuse(line, told, "steers tuned itself")
        }
        ("sysctl", key) if value.starts_with(['>', '<']) => {
            collector.refuse(line, &format!("{key} = {value}"), AT_LEAST);
        }
        ("sysctl", key) => collector.sysctl(line, key, value),
        ("sysfs", path) => collector.path(line, path, value),
        ("vm", "transparent_hugepages" | "transparent_hugepage") => {
            collector.knob(line, told, "thp.enabled", None, value);
        }
        ("vm", "transparent_hugepage.defrag") => collector.knob(line, told, "thp.defrag", None, value),
        // Of memory, where the value has a percent sign: then the twin is meant.
        ("vm", key @ ("dirty_bytes" | "dirty_background_bytes")) if value.ends_with('%') => {
            let twin = key.replace("bytes", "ratio");
            collector.sysctl(line, &format!("vm.{twin}"), value.trim_end_matches('%').trim());
        }
        (
            "vm",
            key @ ("dirty_bytes" | "dirty_ratio" | "dirty_background_bytes" | "dirty_background_ratio"),
        ) => collector.sysctl(line, &format!("vm.{key}"), value),
        ("cpu", key) => cpu(line, key, value, told, collector),
        ("disk", key) => disk(line, key, value, told, collector),
        ("bootloader", key) if key.starts_with("cmdline") => {
            collector.arguments(line, value.trim_start_matches(['+', '-']));
        }
        ("scheduler" | "kthread", key) if key.starts_with("group.") => match threads::of_group(value) {
            Ok((id, only, value)) => collector.knob(line, told, id, only.as_deref(), &value),
            Err(why) => collector.refuse(line, told, why),
        },
        ("script", _) => collector.refuse(line, told, "runs a program: what it sets is not in this file"),
        _ => collector.refuse(line, told, "an option of tuned that is no setting of the kernel"),
    }
}

/// What a section says of itself.
struct Section<'a> {
    /// The plugin that reads it: its name, where it names none.
    kind: &'a str,
    /// Network cards that it is for, by names or patterns.
    devices: &'a str,
    /// It is for machines alone whose kernel or CPU matches something.
    is_of_some: bool,
    /// tuned passes it over.
    is_off: bool,
}

impl<'a> Section<'a> {
    fn of(all: &'a [Line], name: &'a str) -> Self {
        let said = |key: &str| {
            let mut said = all.iter().rev().filter(|entry| entry.section == name && entry.key == key);
            said.next()?.value.as_deref()
        };
        Self {
            kind: said("type").unwrap_or(name),
            devices: said("devices").unwrap_or("*"),
            is_of_some: said("uname_regex").or_else(|| said("cpuinfo_regex")).is_some(),
            is_off: said("enabled")
                .is_some_and(|word| ["0", "false", "n", "no"].contains(&word.to_lowercase().as_str())),
        }
    }

    /// The cards of a section for network cards, all of them where it names none; `None` for one of another kind.
    fn cards(&self) -> Option<Vec<String>> {
        let names = self.devices.split(',').map(|name| name.trim().to_owned());
        (self.kind == "net").then(|| names.filter(|name| !name.is_empty()).collect())
    }
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
    // `performance|powersave`: tuned takes the first one that the host offers.
    let words = value.split('|').map(str::trim);
    let id = match key {
        "governor" => "cpu.governor",
        "energy_perf_bias" => "cpu.energy_perf_bias",
        "energy_performance_preference" => "cpu.epp",
        "min_perf_pct" => "cpu.min_perf_pct",
        "max_perf_pct" => "cpu.max_perf_pct",
        "no_turbo" => "cpu.no_turbo",
        "boost" => "cpu.boost",
        "pm_qos_resume_latency_us" => "cpu.resume_latency_us",
        // `cstate.id:1|3`: a sleep state of the host by its number, else microseconds.
        "force_latency" => "cpu.dma_latency_us",
        _ => return collector.refuse(line, told, "an option of tuned that is no setting of the kernel"),
    };
    let words: Vec<&str> = match key {
        "energy_perf_bias" => words.map(energy_perf_bias).collect(),
        _ => words.collect(),
    };
    if key == "force_latency" && words.iter().all(|word| word.parse::<u32>().is_err()) {
        return collector.refuse(line, told, "a sleep state, whose microseconds only a host knows");
    }
    collector.one_of(line, told, id, &words);
}

fn disk(line: usize, key: &str, value: &str, told: &str, collector: &mut Collector<'_>) {
    if value.starts_with('>') {
        return collector.refuse(line, told, AT_LEAST);
    }
    match key {
        "elevator" => collector.knob(line, told, "block.scheduler", None, value),
        "readahead" => collector.knob(line, told, "block.read_ahead_kb", None, value),
        _ => collector.refuse(line, told, "an option of tuned that is no setting of the kernel"),
    }
}
