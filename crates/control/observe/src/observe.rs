//! The pass over a host.

use std::collections::BTreeMap;

use planish_host::Host;
use planish_model::{BootLoader, BuddyRow, Catalogue, Observation};

use crate::{boot, facts, knobs, machine, persisted, pools};

/// Files that several readers want: read once.
pub(crate) struct Shared {
    pub(crate) meminfo: String,
    pub(crate) cmdline: String,
}

/// Everything that decide and verify ask of a host, read in one pass.
#[must_use]
pub fn observe(host: &Host, catalogue: &Catalogue) -> Observation {
    let text = |path| host.read(path).unwrap_or_default();
    let shared = Shared { meminfo: text("/proc/meminfo"), cmdline: text("/proc/cmdline") };
    let machine = machine::facts(host, &shared);
    let knobs = knobs::read(host, &shared, catalogue, machine.root);
    let mut observation = Observation {
        pools: pools::read(host, &machine),
        buddy: BuddyRow::parse_all(&text("/proc/buddyinfo")),
        host: machine,
        knobs,
        facts: BTreeMap::new(),
        persisted: BTreeMap::new(),
        boot: BootLoader::default(),
    };
    observation.facts = facts::compute(host, &shared, &observation);
    let boot = boot::look(host, &shared.cmdline, observation.host.container.as_deref());
    observation.persisted = persisted::read(host, &shared, catalogue, &observation, &boot);
    observation.boot = boot.loader;
    observation
}
