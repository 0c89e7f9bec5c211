//! What the firmware has set, as far as a running system shows it: nodes within a package, threads of a core, sleep
//! states, frequency, interrupt controller. On bare metal alone; below a guest the firmware is somebody else's.
//!
//! What only the menus of the firmware tell (determinism, APBDIS, sleep states of the fabric) is no fact here, and
//! no rule guesses it.

use std::collections::BTreeSet;

use planish_host::Host;
use planish_model::{Observation, Vendor};
use planish_sys::CpuSet;

use super::Facts;
use crate::observe::Shared;

const CPU: &str = "/sys/devices/system/cpu";
/// The row that every driver of frequencies has.
const GOVERNOR: &str = "cpu.governor";

/// Everything of this module; nothing in a guest.
pub(super) fn compute(facts: &mut Facts, host: &Host, shared: &Shared, observation: &Observation) {
    if observation.host.guest.is_some() || observation.host.container.is_some() {
        return;
    }
    facts.text("firmware.name", name(host));
    nodes(facts, host, &shared.cpuinfo, observation);
    threads(facts, host, shared, observation);
    sleep_states(facts, host, &shared.cmdline);
    frequency(facts, host, shared, observation);
    interrupts(facts, shared, observation);
}

fn text(host: &Host, path: &str) -> Option<String> {
    let text = host.read(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The maker and the version of the firmware and the product, as the tables of the firmware (DMI) tell them.
fn name(host: &Host) -> Option<String> {
    let of = |file: &str| text(host, &format!("/sys/class/dmi/id/{file}"));
    let firmware: Vec<String> = ["bios_vendor", "bios_version"].into_iter().filter_map(of).collect();
    let product: Vec<String> = ["sys_vendor", "product_name"].into_iter().filter_map(of).collect();
    let told = match (firmware.is_empty(), product.is_empty()) {
        (true, true) => return None,
        (true, false) => product.join(" "),
        (false, true) => format!("firmware {}", firmware.join(" ")),
        (false, false) => format!("{}, firmware {}", product.join(" "), firmware.join(" ")),
    };
    Some(told)
}

/// How a package is cut into nodes, beside what its kind offers. Packages are counted from `/proc/cpuinfo`, and caches
/// from the first CPU of each node: the files of some hundred CPUs would cost more than all other facts together.
fn nodes(facts: &mut Facts, host: &Host, cpuinfo: &str, observation: &Observation) {
    let packages: BTreeSet<&str> = cpuinfo
        .lines()
        .filter(|line| line.starts_with("physical id"))
        .filter_map(|line| line.split(':').nth(1))
        .collect();
    let (packages, nodes) = (packages.len(), observation.host.cpu_nodes.len());
    if packages == 0 || nodes == 0 {
        return;
    }
    facts.number("firmware.package_nodes_count", Some(nodes as f64 / packages as f64));
    facts.text("firmware.nodes_offered", offered(observation).map(str::to_owned));
    let caches = observation.host.cpu_nodes.iter().map(|node| l3_count(host, *node));
    let Some(caches) = caches.collect::<Option<Vec<usize>>>() else { return };
    let all: usize = caches.iter().sum();
    facts.number("firmware.package_l3_count", Some(all as f64 / packages as f64));
    // NPS makes 2 or 4 nodes of a package at most: more, and one for each cache, is each cache as a node.
    let is_by_cache = all == nodes && nodes > 4 * packages;
    facts.number("firmware.l3_as_node", Some(f64::from(u8::from(is_by_cache))));
}

/// Caches of the third level on a node: its CPUs by those that share the cache of its first one.
fn l3_count(host: &Host, node: u32) -> Option<usize> {
    let list = |path: &str| CpuSet::parse_list(text(host, path)?.as_str()).ok();
    let cpus = list(&format!("/sys/devices/system/node/node{node}/cpulist"))?;
    let first = cpus.iter().next()?;
    let sharing = list(&format!("{CPU}/cpu{first}/cache/index3/shared_cpu_list"))?;
    let here = sharing.intersection(&cpus).count();
    (here > 0).then(|| cpus.count().div_ceil(here))
}

/// What a kind of CPU lets the firmware choose, by its name. Of others nothing is known.
fn offered(observation: &Observation) -> Option<&'static str> {
    let model = &observation.host.cpu_model;
    match observation.host.vendor? {
        Vendor::Amd if model.contains("EPYC") => Some("NPS1, NPS2 or NPS4"),
        Vendor::Intel if ["Platinum", "Gold", "Max"].iter().any(|word| model.contains(word)) => {
            Some("SNC off or on")
        }
        _ => None,
    }
}

/// Second threads of the cores. `notsupported` is said of cores that have none and of some firmware that hides them:
/// only where the kernel counts two and none is there, it is the firmware's doing for certain (`kernel/cpu.c`). CPUs
/// that are there and offline may be the second threads, taken by hand, and boot parameters keep others from being
/// there: then nothing is told.
fn threads(facts: &mut Facts, host: &Host, shared: &Shared, observation: &Observation) {
    const FEWER: [&str; 3] = ["maxcpus=", "nr_cpus=", "possible_cpus="];
    let control = text(host, &format!("{CPU}/smt/control"));
    let active = text(host, &format!("{CPU}/smt/active"));
    let online = text(host, &format!("{CPU}/online")).and_then(|list| CpuSet::parse_list(&list).ok());
    let is_fewer = |argument: &str| FEWER.iter().any(|fewer| argument.starts_with(fewer));
    let are_all_online = online.is_some_and(|online| online.iter().eq(observation.cpus_present.iter()))
        && !shared.cmdline.split_whitespace().any(is_fewer);
    let off = match (control.as_deref(), active.as_deref()) {
        (Some("on"), Some("0")) => are_all_online.then_some(1.0),
        (Some(_), Some(_)) => Some(0.0),
        _ => None,
    };
    facts.number("firmware.smt_off", off);
}

/// Sleep states that the kernel may use, where nobody took them away by a boot parameter.
fn sleep_states(facts: &mut Facts, host: &Host, cmdline: &str) {
    const LIMITS: [&str; 4] = ["idle=", "cpuidle.off=", "processor.max_cstate=", "intel_idle.max_cstate="];
    if cmdline.split_whitespace().any(|argument| LIMITS.iter().any(|limit| argument.starts_with(limit))) {
        return;
    }
    let Some(driver) = text(host, &format!("{CPU}/cpuidle/current_driver")) else { return };
    // The halt that every CPU has is the first state, on x86 behind a loop of the kernel's own
    // (`drivers/cpuidle/poll_state.c`).
    let first = text(host, &format!("{CPU}/cpu0/cpuidle/state0/name"));
    let shallow = if first.as_deref() == Some("POLL") { 2 } else { 1 };
    let deep = host.list(&format!("{CPU}/cpu0/cpuidle")).len().saturating_sub(shallow);
    facts.number("firmware.sleep_states_count", Some(deep as f64));
    facts.text("firmware.sleep_driver", Some(driver));
}

/// Who holds the frequency, where no boot parameter took the kernel's driver away, and below which one the firmware
/// keeps it.
fn frequency(facts: &mut Facts, host: &Host, shared: &Shared, observation: &Observation) {
    const DRIVER_OFF: [&str; 3] = ["intel_pstate=disable", "amd_pstate=disable", "cpufreq.off=1"];
    let driver = text(host, &format!("{CPU}/cpu0/cpufreq/scaling_driver"));
    let is_known = matches!(observation.host.vendor, Some(Vendor::Intel | Vendor::Amd));
    let is_off = shared.cmdline.split_whitespace().any(|argument| DRIVER_OFF.contains(&argument));
    // A recording may be without what the kernel has: then nobody looked.
    let is_looked_for = !observation.not_recorded.iter().any(|id| id.as_str() == GOVERNOR);
    // Without a driver nobody but the firmware sets it; `pcc-cpufreq` asks the firmware for each change.
    let held = match driver.as_deref() {
        Some("pcc-cpufreq") => Some(1.0),
        Some(_) => Some(0.0),
        // A folder without the name of its driver is of a recording that has it not.
        None if is_known && is_looked_for && !is_off && !host.exists(&format!("{CPU}/cpu0/cpufreq")) => {
            Some(1.0)
        }
        None => None,
    };
    // A tree without any CPU folder shows no drivers either.
    facts.number("firmware.holds_frequency", held.filter(|_| host.exists(&format!("{CPU}/cpu0"))));
    // The limit is the frequency of a P-state, and so is the first of this list. `cpuinfo_max_freq` is no measure for
    // it: acpi-cpufreq counts the boost into that one (`drivers/cpufreq/acpi-cpufreq.c`).
    let khz = |file: &str| {
        let text = text(host, &format!("{CPU}/cpu0/cpufreq/{file}"))?;
        text.split_whitespace().filter_map(|word| word.parse::<f64>().ok()).reduce(f64::max)
    };
    let limited = khz("bios_limit").zip(khz("scaling_available_frequencies")).filter(|(_, most)| *most > 0.0);
    let allowed = limited.map(|(limit, most)| 100.0 * limit / most);
    facts.number("firmware.frequency_percent", allowed);
    facts.number("firmware.frequency_lost_percent", allowed.map(|percent| (100.0 - percent).max(0.0)));
    // 0 is for speed and 15 for saving (`Documentation/admin-guide/pm/intel_epb.rst`).
    let bias = text(host, &format!("{CPU}/cpu0/power/energy_perf_bias"));
    facts.number("firmware.energy_bias", bias.and_then(|bias| bias.parse().ok()));
    facts.text("firmware.power_profile", text(host, "/sys/firmware/acpi/platform_profile"));
}

/// Whether the firmware left the CPUs their x2APIC, by the flag that the kernel shows. Whether it is in use only the
/// kernel's messages tell.
fn interrupts(facts: &mut Facts, shared: &Shared, observation: &Observation) {
    if observation.host.arch != "x86_64" || shared.cmdline.split_whitespace().any(|word| word == "nox2apic") {
        return;
    }
    let Some(flags) = shared.cpuinfo.lines().find_map(|line| line.strip_prefix("flags")) else { return };
    let has = flags.split_whitespace().any(|flag| flag == "x2apic");
    facts.number("firmware.x2apic", Some(f64::from(u8::from(has))));
}

#[cfg(test)]
mod tests {
    use planish_model::{FactValue, HostFacts};

    use super::*;

    const CPUINFO: &str =
        "processor : 0\nphysical id : 0\nflags : ht x2apic\n\nprocessor : 4\nphysical id : 1\n";

    /// Two packages of 4 CPUs with two nodes each, and two caches of the third level on each node.
    fn facts(model: &str, guest: bool, files: &[(&str, &str)]) -> Facts {
        booted("quiet", &[], model, guest, files)
    }

    /// The same booted with parameters, and of a recording that is without some rows.
    fn booted(
        cmdline: &str,
        not_recorded: &[&str],
        model: &str,
        guest: bool,
        files: &[(&str, &str)],
    ) -> Facts {
        let (folder, host) = crate::testing::host(files);
        let write = |path: &str, text: &str| crate::testing::write(folder.path(), path, text);
        for node in 0..4 {
            let (first, last) = (2 * node, 2 * node + 1);
            write(&format!("/sys/devices/system/node/node{node}/cpulist"), &format!("{first}-{last}\n"));
            write(&format!("{CPU}/cpu{first}/cache/index3/shared_cpu_list"), &format!("{first}\n"));
        }
        let observation = Observation {
            host: HostFacts {
                cpu_model: model.to_owned(),
                vendor: Some(Vendor::Amd),
                arch: "x86_64".to_owned(),
                guest: guest.then(|| "a flag".to_owned()),
                cpu_nodes: vec![0, 1, 2, 3],
                ..HostFacts::default()
            },
            cpus_present: (0..8).collect(),
            not_recorded: not_recorded.iter().map(|id| planish_model::KnobId::new(*id)).collect(),
            ..Observation::default()
        };
        let shared = Shared { cmdline: cmdline.to_owned(), cpuinfo: CPUINFO.to_owned(), ..Shared::default() };
        let mut facts = Facts::default();
        compute(&mut facts, &host, &shared, &observation);
        facts
    }

    fn number(facts: &Facts, name: &str) -> Option<f64> {
        match facts.0.get(name)? {
            FactValue::Number(number) => Some(*number),
            FactValue::Text(_) => None,
        }
    }

    #[test]
    fn a_package_is_cut_into_nodes_and_a_guest_tells_nothing_of_firmware() {
        let seen = facts("AMD EPYC 9354P", false, &[]);
        assert_eq!(number(&seen, "firmware.package_nodes_count"), Some(2.0));
        assert_eq!(number(&seen, "firmware.package_l3_count"), Some(4.0));
        assert_eq!(number(&seen, "firmware.l3_as_node"), Some(0.0), "as many as NPS2 gives");
        assert!(seen.0.contains_key("firmware.nodes_offered"));
        assert!(
            !facts("AMD Ryzen 9", false, &[]).0.contains_key("firmware.nodes_offered"),
            "nothing is known of it"
        );
        assert!(facts("AMD EPYC 9354P", true, &[]).0.is_empty());
    }

    #[test]
    fn threads_states_and_frequency_are_told_as_far_as_files_show_them() {
        let driver = format!("{CPU}/cpuidle/current_driver");
        let (control, active) = (format!("{CPU}/smt/control"), format!("{CPU}/smt/active"));
        let online = format!("{CPU}/online");
        let [scaling, limit, boosted, most] =
            ["scaling_driver", "bios_limit", "cpuinfo_max_freq", "scaling_available_frequencies"]
                .map(|file| format!("{CPU}/cpu0/cpufreq/{file}"));
        let seen = facts(
            "AMD EPYC 9354P",
            false,
            &[
                (&driver, "acpi_idle\n"),
                (&control, "on\n"),
                (&active, "0\n"),
                (&online, "0-7\n"),
                (&scaling, "acpi-cpufreq\n"),
                (&limit, "1500000\n"),
                (&boosted, "3799072\n"),
                (&most, "3000000 2400000 1500000 \n"),
            ],
        );
        for (name, value) in [
            ("firmware.smt_off", 1.0),
            ("firmware.sleep_states_count", 0.0),
            ("firmware.holds_frequency", 0.0),
            ("firmware.frequency_percent", 50.0),
            ("firmware.frequency_lost_percent", 50.0),
            ("firmware.x2apic", 1.0),
        ] {
            assert_eq!(number(&seen, name), Some(value), "{name}");
        }
        let off = facts("AMD EPYC 9354P", false, &[(&control, "notsupported\n"), (&active, "0\n")]);
        assert_eq!(
            number(&off, "firmware.smt_off"),
            Some(0.0),
            "which cannot be told from a core without them"
        );
        assert_eq!(number(&off, "firmware.sleep_states_count"), None);
        assert_eq!(number(&off, "firmware.holds_frequency"), Some(1.0), "no driver at all");
        let unnamed = facts("AMD EPYC 9354P", false, &[(&most, "3000000\n")]);
        assert_eq!(number(&unnamed, "firmware.holds_frequency"), None, "a driver that is not told");
    }

    #[test]
    fn what_the_kernel_or_the_recording_lacks_is_not_laid_to_the_firmware() {
        let epyc = |files: &[(&str, &str)]| facts("AMD EPYC 9354P", false, files);
        let (control, active) = (format!("{CPU}/smt/control"), format!("{CPU}/smt/active"));
        let (online, driver) = (format!("{CPU}/online"), format!("{CPU}/cpuidle/current_driver"));
        let threads = [(control.as_str(), "on\n"), (active.as_str(), "0\n")];
        let taken = epyc(&[threads[0], threads[1], (online.as_str(), "0-3\n")]);
        assert_eq!(number(&taken, "firmware.smt_off"), None, "siblings that somebody took offline");
        let files = [threads[0], threads[1], (online.as_str(), "0-7\n")];
        let fewer = booted("nr_cpus=8", &[], "AMD EPYC 9354P", false, &files);
        assert_eq!(number(&fewer, "firmware.smt_off"), None, "CPUs that a parameter left out");
        // State 0 of Arm is the halt itself; that of x86 is the loop before it.
        let [zero, one] = [0, 1].map(|state| format!("{CPU}/cpu0/cpuidle/state{state}/name"));
        for (first, second, deep) in [("LPI-0\n", "LPI-1\n", 1.0), ("POLL\n", "C1\n", 0.0)] {
            let seen = epyc(&[(&driver, "acpi_idle\n"), (&zero, first), (&one, second)]);
            assert_eq!(number(&seen, "firmware.sleep_states_count"), Some(deep), "{first}");
        }
        let core = format!("{CPU}/cpu0/topology/core_id");
        let there = [(core.as_str(), "0\n")];
        let held = |cmdline: &str, not_recorded: &[&str]| {
            let seen = booted(cmdline, not_recorded, "AMD EPYC 9354P", false, &there);
            number(&seen, "firmware.holds_frequency")
        };
        assert_eq!(held("quiet", &[]), Some(1.0));
        for off in ["intel_pstate=disable", "amd_pstate=disable", "cpufreq.off=1"] {
            assert_eq!(held(&format!("quiet {off}"), &[]), None, "{off}");
        }
        assert_eq!(held("quiet", &["cpu.governor"]), None, "a recording without it");
        let frequencies = |limit: &str, list: Option<&str>| {
            let [named, boosted, listed] =
                ["bios_limit", "cpuinfo_max_freq", "scaling_available_frequencies"]
                    .map(|file| format!("{CPU}/cpu0/cpufreq/{file}"));
            let mut files = vec![(named.as_str(), limit), (boosted.as_str(), "3799072\n")];
            files.extend(list.map(|list| (listed.as_str(), list)));
            number(&epyc(&files), "firmware.frequency_percent")
        };
        assert_eq!(frequencies("3250000\n", Some("3250000 2500000 1500000 \n")), Some(100.0));
        assert_eq!(frequencies("3250000\n", None), None, "the boosted frequency is no measure");
    }
}
