//! The pass over a host.

use std::collections::{BTreeMap, BTreeSet};

use planish_host::Host;
use planish_model::{BootLoader, BuddyRow, Catalogue, Knob, Observation, bootline, marked};
use planish_sys::beside;

use crate::persisted::ToCome;
use crate::{boot, demand, facts, knobs, machine, parts, persisted, pools, tables, writers};

/// Files that several readers want: read once.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) meminfo: String,
    pub(crate) cmdline: String,
    pub(crate) cpuinfo: String,
    /// The name of the running kernel.
    pub(crate) release: String,
    /// How the kernel reads its command line.
    pub(crate) kernel: bootline::Kernel,
}

impl Shared {
    fn read(host: &Host) -> Self {
        let text = |path| host.read(path).unwrap_or_default();
        let release = release(host);
        Self {
            kernel: kernel_called(host, &release),
            release,
            meminfo: text("/proc/meminfo"),
            cmdline: host.read_lossy("/proc/cmdline").unwrap_or_default(),
            // The kernel asks every CPU for its frequency to make it.
            cpuinfo: text("/proc/cpuinfo"),
        }
    }

    /// Bytes of the huge pages that `vm.nr_hugepages` counts.
    pub(crate) fn default_page(&self) -> Option<u64> {
        tables::meminfo(&self.meminfo).get("Hugepagesize").copied()
    }
}

/// How the kernel of a host reads its command line, as far as that differs.
#[must_use]
pub fn kernel(host: &Host) -> bootline::Kernel {
    kernel_called(host, &release(host))
}

fn kernel_called(host: &Host, release: &str) -> bootline::Kernel {
    let meminfo = host.read("/proc/meminfo").unwrap_or_default();
    bootline::Kernel::new(release, &host.arch(), tables::meminfo(&meminfo).get("Hugepagesize").copied())
}

fn release(host: &Host) -> String {
    host.read("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// Everything that decide and verify ask of a host, read in one pass.
#[must_use]
pub fn observe(host: &Host, catalogue: &Catalogue) -> Observation {
    let shared = Shared::read(host);
    with_next_boot(host, &shared, catalogue, || {
        let mut observation = places(host, &shared, catalogue, &|_| true);
        observation.facts = facts::compute(host, &shared, &observation);
        observation
    })
}

/// The same of some knobs, without the facts that finding rules alone compare: for a plan, which asks of no others. Who
/// names a knob names those that are coupled with it, too ([`Catalogue::with_coupled`]).
#[must_use]
pub fn observe_some(host: &Host, catalogue: &Catalogue, wanted: impl Fn(&Knob) -> bool) -> Observation {
    let shared = Shared::read(host);
    with_next_boot(host, &shared, catalogue, || places(host, &shared, catalogue, &wanted))
}

/// What `look` sees of this moment, with the other programs that set knobs, and with what the next boot brings. The
/// programs are looked for meanwhile: they are about as much work as what `look` reads for a plan.
fn with_next_boot(
    host: &Host,
    shared: &Shared,
    catalogue: &Catalogue,
    look: impl FnOnce() -> Observation,
) -> Observation {
    let of_others = || writers::read(host, catalogue, shared.default_page());
    let of_now = || {
        let observation = look();
        let boot = boot::look(host, &shared.cmdline, observation.host.container.as_deref());
        (observation, boot)
    };
    let (seen, (mut observation, boot)) = beside(of_others, of_now);
    (observation.writers, observation.unfollowed) = (seen.writers, seen.unfollowed);
    let ToCome { persisted, undecided, taken_back, by_boot_line } =
        persisted::read(host, shared, catalogue, &observation, &boot);
    observation.persisted = persisted;
    observation.undecided = undecided;
    observation.taken_back = taken_back;
    observation.by_boot_line = by_boot_line;
    observation.boot = boot.loader;
    parts::add_in_force(host, catalogue, &mut observation);
    observation
}

/// The machine, its pools and some of its knobs as they are at this moment, without the facts of finding rules and
/// without what the next boot brings: for who has decided already and looks once more before a write.
#[must_use]
pub fn glance(host: &Host, catalogue: &Catalogue, wanted: impl Fn(&Knob) -> bool) -> Observation {
    places(host, &Shared::read(host), catalogue, &wanted)
}

fn places(
    host: &Host,
    shared: &Shared,
    catalogue: &Catalogue,
    wanted: &dyn Fn(&Knob) -> bool,
) -> Observation {
    let machine = machine::facts(host, shared);
    let knobs = knobs::read(host, shared, catalogue, wanted, machine.root);
    Observation {
        ranges: knobs::ranges(host, catalogue, &knobs),
        demand: demand::read(host, shared),
        pools: pools::read(host, &machine),
        pages_claimed: pools::claimed(host, &machine),
        buddy: BuddyRow::parse_all(&host.read("/proc/buddyinfo").unwrap_or_default()),
        node_memory: machine::node_memory(host, &machine.nodes),
        host: machine,
        cpus_present: planish_topo::present_cpus(host).iter().collect(),
        not_recorded: knobs::nowhere(&knobs).filter(|id| !host.looked_for(id.as_str())).cloned().collect(),
        knobs,
        facts: BTreeMap::new(),
        persisted: BTreeMap::new(),
        undecided: BTreeMap::new(),
        taken_back: BTreeMap::new(),
        by_boot_line: BTreeMap::new(),
        boot: BootLoader::default(),
        trial_marks: marked(&shared.cmdline).map(str::to_owned).collect(),
        writers: Vec::new(),
        unfollowed: Vec::new(),
        units: BTreeMap::new(),
        services: BTreeSet::new(),
        machine: None,
        caches: None,
    }
}
