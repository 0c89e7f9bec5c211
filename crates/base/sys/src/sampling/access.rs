//! Events whose samples are accesses to memory: their address, what answered them and how long that took.
//!
//! | CPU | event | found as |
//! |---|---|---|
//! | Intel (PEBS) | loads of 30 cycles or more, and stores; some want an auxiliary event | `events/mem-loads`, ... |
//! | AMD (IBS) | every so many operations, loads and stores among them | the PMU `ibs_op` |
//!
//! Where sysfs names neither there is none. Source: Documentation/ABI/testing/sysfs-bus-event_source-devices-events and
//! -format; arch/x86/events/intel/core.c, arch/x86/events/amd/ibs.c.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::pmu;

pub(super) const DEVICES: &str = "/sys/bus/event_source/devices";

/// PMUs that name events of accesses: the second is that of the fast cores of a hybrid.
const NAMING: [&str; 2] = ["cpu", "cpu_core"];

/// One event, as its PMU numbers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AccessEvent {
    pub kind: u32,
    pub config: u64,
    /// Of loads: the cycles from which on they are sampled.
    pub config1: u64,
    /// How far behind the instruction a sample may be: 0 where the PMU is exact by itself.
    pub precise: u64,
    /// Whether it takes the wish to leave the kernel out.
    pub can_exclude: bool,
}

/// What is opened on each CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AccessEvents {
    /// Loads; where the PMU tells them together, loads and stores.
    pub loads: AccessEvent,
    pub stores: Option<AccessEvent>,
    /// Counts nothing for us: the loads must be in its group.
    pub leader: Option<AccessEvent>,
}

/// The events of this machine, by a folder like [`DEVICES`].
pub(super) fn find(devices: &Path) -> Option<AccessEvents> {
    let named = NAMING.iter().find_map(|name| named(&devices.join(name)));
    named.or_else(|| {
        let kind = read(&devices.join("ibs_op/type"))?.parse().ok()?;
        let loads = AccessEvent { kind, ..AccessEvent::default() };
        Some(AccessEvents { loads, stores: None, leader: None })
    })
}

fn named(pmu: &Path) -> Option<AccessEvents> {
    let kind = read(&pmu.join("type"))?.parse().ok()?;
    let event = |name: &str| {
        let text = read(&pmu.join("events").join(name))?;
        let (config, config1) = encode(&text, &|term| read(&pmu.join("format").join(term)))?;
        Some(AccessEvent { kind, config, config1, precise: 2, can_exclude: true })
    };
    let leader = event("mem-loads-aux").map(|leader| AccessEvent { precise: 0, ..leader });
    Some(AccessEvents { loads: event("mem-loads")?, stores: event("mem-stores"), leader })
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned())
}

/// `event=0xcd,umask=0x1,ldlat=3` by the formats of its terms: both configurations.
fn encode(event: &str, format: &dyn Fn(&str) -> Option<String>) -> Option<(u64, u64)> {
    /// What perf asks for, too: below it caches answer.
    const LOADS_FROM: &str = "ldlat=30";
    let terms = event.split(',').map(|term| if term.starts_with("ldlat=") { LOADS_FROM } else { term });
    let terms: Vec<&str> = terms.collect();
    let [config, config1, config2] = pmu::encode(&terms.join(","), format)?;
    (config2 == 0).then_some((config, config1))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn devices(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            File::create(&path)
                .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
                .expect("written");
        }
        folder
    }

    const INTEL: [(&str, &str); 6] = [
        ("cpu/type", "4\n"),
        ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"),
        ("cpu/events/mem-stores", "event=0xd0,umask=0x82\n"),
        ("cpu/format/event", "config:0-7\n"),
        ("cpu/format/umask", "config:8-15\n"),
        ("cpu/format/ldlat", "config1:0-15\n"),
    ];

    #[test]
    fn intel_names_its_events() {
        let found = find(devices(&INTEL).path()).expect("it has them");
        let loads = AccessEvent { kind: 4, config: 0x1cd, config1: 30, precise: 2, can_exclude: true };
        assert_eq!((found.loads, found.leader), (loads, None));
        assert_eq!(found.stores.map(|stores| (stores.config, stores.config1)), Some((0x82d0, 0)));
        let aux = ("cpu/events/mem-loads-aux", "event=0x03,umask=0x82");
        let found = find(devices(&[&INTEL[..], &[aux]].concat()).path()).expect("it has them");
        assert_eq!(found.leader.map(|leader| (leader.config, leader.precise)), Some((0x8203, 0)));
    }

    #[test]
    fn amd_has_one_event_for_both() {
        let found = find(devices(&[("ibs_op/type", "11\n"), ("cpu/type", "4\n")]).path()).expect("it has it");
        assert_eq!((found.loads.kind, found.loads.can_exclude, found.stores), (11, false, None));
    }

    #[test]
    fn without_names_there_is_none_and_half_known_ones_are_none_either() {
        assert_eq!(find(devices(&[("software/type", "1")]).path()), None);
        let without_format = [INTEL[0], INTEL[1], INTEL[3], INTEL[4]];
        assert_eq!(find(devices(&without_format).path()), None, "ldlat would be left out");
    }
}
