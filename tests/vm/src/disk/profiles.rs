//! The profiles of this guest, and where the kernel shows what each of their lines came to.

use crate::settings;
use anyhow::{Context, Result};
use std::fs;

const FOLDER: &str = "/etc/planish/profiles";
const GIANT_POOL: &str = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";

/// Boot parameters, a line for `sysctl.d` and one for `tmpfiles.d`.
pub const REBOOT: &str = "reboot";
/// Values that run at once, and differ from those of [`REBOOT`].
pub const LIVE: &str = "live";
/// Places that tuned and irqbalance set, too.
pub const SHARED: &str = "shared";

/// One line of [`REBOOT`].
pub struct Line {
    pub knob: &'static str,
    wanted: &'static str,
    /// On the command line of the kernel; none for what files of the running system bring.
    pub arguments: Option<&'static str>,
    /// Where the kernel shows it, and what it shows then.
    pub shown: Option<(&'static str, &'static str)>,
}

const fn line(
    knob: &'static str,
    wanted: &'static str,
    arguments: Option<&'static str>,
    shown: Option<(&'static str, &'static str)>,
) -> Line {
    Line { knob, wanted, arguments, shown }
}

const LINES: &[Line] = &[
    line("boot.isolcpus", "\"2\"", Some("isolcpus=2"), Some(("/sys/devices/system/cpu/isolated", "2"))),
    line("boot.nohz_full", "\"2\"", Some("nohz_full=2"), Some(("/sys/devices/system/cpu/nohz_full", "2"))),
    line("boot.rcu_nocbs", "\"2\"", Some("rcu_nocbs=2"), None),
    line("boot.hugepages.1g", "1", Some("hugepagesz=1G hugepages=1"), Some((GIANT_POOL, "1"))),
    line(
        "boot.hugepages.2m",
        "24",
        Some("hugepagesz=2M hugepages=24"),
        Some(("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "24")),
    ),
    // The default size is what this file counts in: 1 page of 1 GiB.
    line(
        "boot.default_hugepagesz",
        "\"1G\"",
        Some("default_hugepagesz=1G"),
        Some(("/proc/sys/vm/nr_hugepages", "1")),
    ),
    line(
        "boot.transparent_hugepage",
        "\"never\"",
        Some("transparent_hugepage=never"),
        Some(("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]")),
    ),
    line("vm.swappiness", "7", None, Some(("/proc/sys/vm/swappiness", "7"))),
    line(
        "thp.khugepaged.defrag",
        "0",
        None,
        Some(("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", "0")),
    ),
];

/// The lines that this CPU can have: pages of 1 GiB need `pdpe1gb`.
pub fn lines() -> impl Iterator<Item = &'static Line> {
    let giant = has_giant_pages();
    let needs_giant = |line: &&Line| line.arguments.is_some_and(|arguments| arguments.contains("sz=1G"));
    LINES.iter().filter(move |line| giant || !needs_giant(line))
}

/// Whether the CPU knows pages of 1 GiB.
pub fn has_giant_pages() -> bool {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.split_whitespace().any(|word| word == "pdpe1gb")
}

/// Writes all profiles.
pub fn write() -> Result<()> {
    let wants: Vec<String> = lines().map(|line| format!("\"{}\" = {}", line.knob, line.wanted)).collect();
    put(REBOOT, &wants.join("\n"))?;
    put(LIVE, "\"vm.swappiness\" = 11\n\"thp.khugepaged.defrag\" = 0")?;
    // All CPUs: fewer are half a plan, which is refused.
    let all = settings::read("/proc/irq/default_smp_affinity")?;
    put(SHARED, &format!("\"vm.swappiness\" = 11\n\"irq.default_affinity\" = \"{all}\""))
}

fn put(name: &str, wants: &str) -> Result<()> {
    fs::create_dir_all(FOLDER).with_context(|| format!("make {FOLDER}"))?;
    let text = format!("name = \"{name}\"\nsummary = \"Of a test guest.\"\n\n[want]\n{wants}\n");
    let file = format!("{FOLDER}/{name}.toml");
    fs::write(&file, text).with_context(|| format!("write {file}"))
}

/// What the kernel shows for every line, in one text.
pub fn shown() -> Result<String> {
    let shown = lines().filter_map(|line| line.shown);
    let shown = shown.map(|(path, _)| Ok(format!("{path}: {}\n", settings::read(path)?)));
    shown.collect()
}

/// The arguments of the running kernel.
pub fn command_line() -> Result<String> {
    settings::read("/proc/cmdline")
}

/// Whether a line of arguments holds these, in one run.
pub fn gives(command_line: &str, arguments: &str) -> bool {
    format!(" {command_line} ").contains(&format!(" {arguments} "))
}
