//! A note of saptune (`saptune-note(5)`): the sections that set values of the kernel.

use super::collect::Collector;
use super::ini::{Entry, entries};

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
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
            let reason = "a section for some hosts only: make a profile of your own with `needs`";
            collector.refuse(entry.line, &told, reason);
        } else if entry.key.ends_with(['<', '>']) {
            collector.refuse(entry.line, &told, "at least or at most so much: a profile wants one value");
        } else if value.is_empty() {
            collector.refuse(entry.line, &told, "sets nothing");
        } else {
            setting(&section, &entry, value, &told, collector);
        }
    }
}

fn setting(section: &str, entry: &Entry<'_>, value: &str, told: &str, collector: &mut Collector<'_>) {
    let (line, key) = (entry.line, entry.key);
    // Alternatives in the order of preference: `none, noop`.
    let first = value.split(',').next().unwrap_or_default().trim().to_ascii_lowercase();
    let bias = match first.as_str() {
        "performance" => "0",
        "normal" => "6",
        "powersave" => "15",
        other => other,
    };
    let (id, value) = match (section, key.to_ascii_lowercase().as_str()) {
        ("sysctl", _) => return collector.sysctl(line, key, value),
        ("sys", _) => {
            let path = if key.contains('/') { key.to_owned() } else { key.replace('.', "/") };
            return collector.path(line, &format!("/sys/{path}"), value);
        }
        ("grub", _) => return collector.arguments(line, &format!("{key}={value}")),
        ("vm", "thp") => ("thp.enabled", first.as_str()),
        ("vm", "ksm") => ("mm.ksm_run", first.as_str()),
        ("cpu", "governor") => ("cpu.governor", first.as_str()),
        ("cpu", "energy_perf_bias") => ("cpu.energy_perf_bias", bias),
        ("block", "io_scheduler") => ("block.scheduler", first.as_str()),
        ("block", "nrreq") => ("block.nr_requests", first.as_str()),
        ("block", "read_ahead_kb") => ("block.read_ahead_kb", first.as_str()),
        ("block", "max_sectors_kb") => ("block.max_sectors_kb", first.as_str()),
        ("cpu", "force_latency") => ("cpu.dma_latency_us", first.as_str()),
        _ => return collector.refuse(line, told, "no setting of the kernel that planish has a knob for"),
    };
    collector.knob(line, told, id, None, value);
}
