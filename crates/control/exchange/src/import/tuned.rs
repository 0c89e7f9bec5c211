//! A profile of tuned: the plugins whose options are settings of the kernel (`tuned/plugins/` of the project).

use super::collect::Collector;
use super::devices::Sections;
use super::tuned_boot;
use super::words::{AT_LEAST, OF_SOME, energy_perf_bias};
use crate::threads;
use planish_formats::ini::unquoted;
use planish_formats::tuned::{Files, Line, Lines, is_pattern};
use planish_model::cards;

/// Why a section is refused that stands there alone.
const BARE: &str =
    "a section without options: tuned starts its plugin, and what that does by itself is in no file";

/// Why the MTU and the queue of all cards, or of some by a pattern, are refused (`_init_devices` of `plugin_net.py`).
const VIRTUAL: &str = "tuned sets it of no virtual card (a bridge, the end of a container), and a pattern of a profile \
                       means those, too: name the cards by devices=";

/// Why the CPUs of systemd itself are refused: the knob is a file that follows from another table.
const OF_SYSTEMD: &str = "the CPUs of all that systemd starts: a profile has them by its table [placement] with \
                          others = \"housekeeping\", and for the boot by boot.systemd_cpu_affinity";

/// Why a line of what is included does not count.
const DROPPED: &str = "the profile takes it out of its section, by replace= or drop=";

/// Why an option is refused that no plugin here has.
const NOT_READ: &str = "an option of tuned that is not read";

pub(super) fn read(text: &str, files: Option<&Files<'_>>, collector: &mut Collector<'_>) {
    let all = Lines::read(text, files);
    for (line, told, why) in &all.refused {
        collector.refuse(*line, told, why.as_str());
    }
    for bare in &all.bare {
        collector.refuse(bare.number, &format!("{}[{}]", bare.from, bare.section), BARE);
    }
    let sections = Sections::of(&all);
    // First, since they say of which size pages are.
    tuned_boot::read(&all, &sections, collector);
    for line in sections.in_order(&all.lines) {
        let told = line.told();
        collector.is_from(&line.from);
        if let Some(by) = line.replaced_by {
            collector.pass_over(line.number, &told, by, "a later line of the profile says it anew");
            continue;
        }
        if tuned_boot::is_one(&sections, line) {
            continue;
        }
        if let Some(below) = line.goes_on {
            let why =
                format!("goes on in line {below}, which is indented deeper, and means one value to tuned");
            collector.refuse(line.number, &told, why);
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
        match setting(&sections, line, &value, &told, collector) {
            Ok(()) => {}
            Err(why) => collector.refuse(line.number, &told, why),
        }
    }
    for (line, by) in all.dropped.iter().filter(|(line, _)| sets(line)) {
        collector.is_from(&line.from);
        collector.pass_over(line.number, &line.told(), *by, DROPPED);
    }
    collector.is_from("");
}

/// Whether a line says more than which devices its section is for, and how tuned takes it.
fn sets(line: &Line) -> bool {
    let steers = ["type", "devices", "devices_udev_regex", "enabled", "priority", "replace", "drop"];
    line.section != "main" && !steers.contains(&line.key.as_str())
}

/// One line by the plugin of its section.
fn setting(
    sections: &Sections<'_>,
    line: &Line,
    value: &str,
    told: &str,
    collector: &mut Collector<'_>,
) -> Result<(), String> {
    let section = sections.section(&line.section);
    let key = line.key.as_str();
    if section.is_off {
        return Err("a section that is turned off".to_owned());
    }
    if section.is_of_some {
        return Err(OF_SOME.to_owned());
    }
    let value = match section.kind {
        "main" | "sysctl" => unquoted(value),
        // It takes them for a part of the value.
        _ if value.starts_with(['"', '\'']) => {
            return Err("has quotes, which tuned leaves where they are".to_owned());
        }
        _ => value,
    };
    match section.kind {
        "disk" | "cpu" | "net" | "uncore" if ["type", "devices", "devices_udev_regex"].contains(&key) => {}
        "net" if key == "nf_conntrack_hashsize" => {
            collector.knob(line.number, told, "net.conntrack_hashsize", None, value);
        }
        "net" if cards::is_key(key) => net(line, value, &sections.devices(line)?, collector),
        "net" if ["mtu", "txqueuelen"].contains(&key) => {
            link(line, value, told, &sections.devices(line)?, collector)?;
        }
        "uncore" if ["max_freq_khz", "min_freq_khz"].contains(&key) => {
            uncore(line, value, told, &sections.devices(line)?, collector)?;
        }
        "systemd" if key == "cpu_affinity" => return Err(OF_SYSTEMD.to_owned()),
        "disk" => disk(line.number, key, value, told, &sections.devices(line)?, collector)?,
        "cpu" if is_of_cpu(key) => {
            let cpus = sections.devices(line)?;
            let numbers = cpus.iter().map(|cpu| of_cpu(cpu)).collect::<Result<Vec<_>, _>>()?;
            cpu(line.number, key, value, told, &numbers, collector)?;
        }
        "cpu" if !is_of_tuned(key) => cpu(line.number, key, value, told, &["*"], collector)?,
        kind => plugin(kind, line, value, told, collector),
    }
    Ok(())
}

/// Words of a section that steer tuned itself, whatever its plugin is.
fn is_of_tuned(key: &str) -> bool {
    ["type", "replace", "drop", "priority", "enabled"].contains(&key)
}

fn plugin(kind: &str, entry: &Line, value: &str, told: &str, collector: &mut Collector<'_>) {
    let line = entry.number;
    match (kind, entry.key.as_str()) {
        ("main", "summary") if entry.from.is_empty() => collector.sums_up(value),
        ("main", "summary") => {}
        ("main", "include") => collector.refuse(line, told, "includes another profile: import that one too"),
        (_, "drop") if is_pattern(value) => {
            collector.refuse(line, told, "a pattern of options to leave out: they are not")
        }
        ("sysctl" | "sysfs" | "vm" | "bootloader", "type") => {}
        (_, key) if is_of_tuned(key) => collector.refuse(line, told, "steers tuned itself"),
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
        ("bootloader", "skip_grub_config") => {
            collector.refuse(line, told, "sets nothing: whether arguments are taken is told at theirs");
        }
        ("acpi", "platform_profile") => {
            let words: Vec<&str> = value.split('|').map(str::trim).collect();
            collector.one_of(line, told, "cpu.platform_profile", None, &words);
        }
        ("selinux", "avc_cache_threshold") => {
            collector.knob(line, told, "selinux.avc_cache_threshold", None, value);
        }
        ("scheduler" | "kthread", key) if key.starts_with("group.") => match threads::of_group(value) {
            Ok((id, only, value)) => collector.knob(line, told, id, only.as_deref(), &value),
            Err(why) => collector.refuse(line, told, why),
        },
        // A sysctl before Linux 5.13, and below debugfs since: tuned writes the one that is there.
        ("scheduler", key) if key.starts_with("sched_") => {
            let ids = [format!("kernel.{key}"), key.replacen('_', ".", 1)];
            let ids: Vec<String> = ids.into_iter().filter(|id| collector.has(id)).collect();
            if ids.is_empty() {
                return collector.refuse(line, told, NOT_READ);
            }
            ids.iter().for_each(|id| collector.knob(line, told, id, None, value));
        }
        ("script", _) => collector.refuse(line, told, "runs a program: what it sets is not in this file"),
        _ => collector.refuse(line, told, NOT_READ),
    }
}

/// `ring = rx 4096 tx 4096` of the plugin for network cards.
fn net(entry: &Line, value: &str, cards: &[String], collector: &mut Collector<'_>) {
    let words: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
    let told = format!("{}[{}] {} =", entry.from, entry.section, entry.key);
    collector.cards(entry.number, &told, &entry.key, cards, &words);
}

/// What the plugin for network cards has `ip link` set.
fn link(
    entry: &Line,
    value: &str,
    told: &str,
    cards: &[String],
    collector: &mut Collector<'_>,
) -> Result<(), String> {
    if cards.iter().any(|card| card.contains(['*', '?', '['])) {
        return Err(VIRTUAL.to_owned());
    }
    let id = if entry.key == "mtu" { "net.mtu" } else { "net.tx_queue_len" };
    cards.iter().for_each(|card| collector.knob(entry.number, told, id, Some(card), value));
    Ok(())
}

/// Bounds of the mesh of a package. Where the kernel has its clusters one by one, tuned calls those by other names.
fn uncore(
    entry: &Line,
    value: &str,
    told: &str,
    devices: &[String],
    collector: &mut Collector<'_>,
) -> Result<(), String> {
    if let Some(other) = devices.iter().find(|name| *name != "*" && !name.starts_with("package_")) {
        return Err(format!("`{other}` is no package of the CPU by its name, such as package_00_die_00"));
    }
    let id = if entry.key == "max_freq_khz" { "cpu.uncore_max_khz" } else { "cpu.uncore_min_khz" };
    for device in devices {
        collector.knob(entry.number, told, id, (device != "*").then_some(device), value);
    }
    Ok(())
}

/// Options that the plugin sets of each CPU that its section is for; the others are of the whole machine.
fn is_of_cpu(key: &str) -> bool {
    ["governor", "energy_perf_bias", "energy_performance_preference", "pm_qos_resume_latency_us"]
        .contains(&key)
}

/// The number of a CPU by its name, or a pattern of numbers.
fn of_cpu(name: &str) -> Result<&str, String> {
    let of_all = (name == "*").then_some(name);
    let number = name.strip_prefix("cpu").filter(|number| !number.is_empty()).or(of_all);
    number.ok_or_else(|| format!("`{name}` is no CPU by its name, such as cpu4"))
}

fn cpu(
    line: usize,
    key: &str,
    value: &str,
    told: &str,
    cpus: &[&str],
    collector: &mut Collector<'_>,
) -> Result<(), String> {
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
        _ => return Err(NOT_READ.to_owned()),
    };
    let words: Vec<&str> = match key {
        "energy_perf_bias" => words.map(energy_perf_bias).collect(),
        _ => words.collect(),
    };
    if key == "force_latency" && words.iter().all(|word| word.parse::<u32>().is_err()) {
        return Err("a sleep state, whose microseconds only a host knows".to_owned());
    }
    for cpu in cpus {
        collector.one_of(line, told, id, (*cpu != "*").then_some(cpu), &words);
    }
    Ok(())
}

fn disk(
    line: usize,
    key: &str,
    value: &str,
    told: &str,
    disks: &[String],
    collector: &mut Collector<'_>,
) -> Result<(), String> {
    let id = match key {
        _ if value.starts_with('>') => return Err(AT_LEAST.to_owned()),
        "elevator" => "block.scheduler",
        "readahead" => "block.read_ahead_kb",
        key if is_of_tuned(key) => return Err("steers tuned itself".to_owned()),
        _ => return Err(NOT_READ.to_owned()),
    };
    for disk in disks {
        collector.knob(line, told, id, (disk != "*").then_some(disk), value);
    }
    Ok(())
}
