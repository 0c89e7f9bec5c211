//! Why a placement is refused: before anything is written, and whole.

use planish_model::{Cpus, KnobId, NO_SERVICE, UnitLimit, units::bytes};
use thiserror::Error;

/// Why services and interrupts cannot be placed as asked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlacementError {
    /// Interrupts would be moved and no service pinned.
    #[error(
        "no service is placed: interrupts that are moved without their service make it slower, not faster"
    )]
    NoService,
    /// Too small a machine.
    #[error(
        "{} on {} cannot be shared out: one core keeps house, and a service needs another",
        counted(*cpus, "CPU"),
        counted(*cores, "core")
    )]
    TooSmall {
        /// CPUs online.
        cpus: usize,
        /// Cores online.
        cores: usize,
    },
    /// CPUs that the machine does not have.
    #[error("{who} names CPU {cpus}, which this host does not have")]
    NoCpu {
        /// A unit, or `housekeeping`.
        who: String,
        /// The CPUs.
        cpus: Cpus,
    },
    /// CPUs that are offline.
    #[error("{who} names CPU {cpus}, which is offline")]
    Offline {
        /// A unit, or `housekeeping`.
        who: String,
        /// The CPUs.
        cpus: Cpus,
    },
    /// A node that the machine does not have, or whose CPUs are offline.
    #[error("{unit} names node {node}; this host has node {nodes} with CPUs online")]
    NoNode {
        /// The unit.
        unit: String,
        /// The node.
        node: u32,
        /// Nodes with CPUs online, as a list.
        nodes: Cpus,
    },
    /// A node with memory alone.
    #[error("{unit} names node {node}, which has memory and no CPU online")]
    MemoryOnly {
        /// The unit.
        unit: String,
        /// The node.
        node: u32,
    },
    /// A service bound to nodes without memory.
    #[error("{unit} would be bound to node {node}, which has no memory")]
    NoMemory {
        /// The unit.
        unit: String,
        /// The node.
        node: u32,
    },
    /// The CPU that boots would be taken from the host.
    #[error(
        "CPU {cpu} keeps house: it takes what the kernel does at boot, and no service may have it; {who} says otherwise"
    )]
    BootCpu {
        /// A unit, or `housekeeping`.
        who: String,
        /// The CPU.
        cpu: u32,
    },
    /// A core that would be shared between two sets.
    #[error(
        "{who} takes CPU {cpus} and not {siblings}, the other half of the same core: each would slow the other down"
    )]
    SplitCore {
        /// A unit, or `housekeeping`.
        who: String,
        /// What it takes of the core.
        cpus: Cpus,
        /// The siblings that are left.
        siblings: Cpus,
    },
    /// CPUs that two sets want.
    #[error("CPU {cpus} is wanted by {a} and by {b}")]
    Overlap {
        /// One of them.
        a: String,
        /// The other.
        b: String,
        /// The CPUs.
        cpus: Cpus,
    },
    /// CPUs that somebody else has.
    #[error("{who} would have CPU {cpus}, which {what}")]
    Taken {
        /// A unit, or `housekeeping`.
        who: String,
        /// The CPUs.
        cpus: Cpus,
        /// Who has them, and what says so.
        what: String,
        /// What to do about it.
        cure: String,
    },
    /// A second placement with isolation, beside one of others.
    #[error(
        "{unit} would be isolated beside CPU {cpus}, which {what}: one slice and one isolcpus= have all isolated CPUs, \
         and would lose these"
    )]
    Second {
        /// The unit.
        unit: String,
        /// The CPUs of the other one.
        cpus: Cpus,
        /// Who has them, and what says so.
        what: String,
        /// What to do about it.
        cure: String,
    },
    /// A unit that may not use the CPUs or nodes that it would get.
    #[error(
        "{unit} would have {what}, and {} lets {} use {} alone ({})",
        limit.source,
        if limit.unit == *unit { "it" } else { limit.unit.as_str() },
        words(limit.is_memory, &limit.list),
        limit.directive
    )]
    Limited {
        /// The unit.
        unit: String,
        /// What it would get.
        what: String,
        /// What it, or a slice that it lies in, may use at most.
        limit: Box<UnitLimit>,
    },
    /// A unit that is another name of one.
    #[error("{unit} is another name of {real}, which one of its links gives: {real} has the settings")]
    Alias {
        /// The name.
        unit: String,
        /// The unit.
        real: String,
    },
    /// A unit that nobody can start.
    #[error("{unit} is masked by {by}: nothing would be pinned")]
    Masked {
        /// The unit.
        unit: String,
        /// The link.
        by: String,
    },
    /// A unit that stands for others, and runs nothing by itself.
    #[error("{unit} runs nothing that could be pinned: its command ends at once ({by})")]
    RunsNothing {
        /// The unit.
        unit: String,
        /// The file and line.
        by: String,
    },
    /// A unit whose command places itself.
    #[error("{unit} places itself by {program} ({by}), whatever a drop-in says")]
    PinsItself {
        /// The unit.
        unit: String,
        /// The program.
        program: String,
        /// The file and line.
        by: String,
    },
    /// Settings of ours that a file takes back which is read later.
    #[error("only half of it would count: {by} is read behind {place}, and makes `{left}` of its `{ours}`")]
    Overridden {
        /// The file of ours.
        place: String,
        /// What it gives.
        ours: String,
        /// What would be left of it.
        left: String,
        /// The file and line that wins.
        by: String,
    },
    /// More cores than a node has.
    #[error(
        "{unit} wants {}, and node {node} has {left} left beside those that keep house and those of others",
        asked.map_or_else(|| "a core".to_owned(), |asked| counted(asked, "core"))
    )]
    NoCores {
        /// The unit.
        unit: String,
        /// The node.
        node: u32,
        /// Cores wanted; `None` for all that are left.
        asked: Option<usize>,
        /// Cores left.
        left: usize,
    },
    /// Two services that both want the rest of a node.
    #[error("{a} and {b} both want what is left of node {node}: say how many cores each gets")]
    Ambiguous {
        /// One of them.
        a: String,
        /// The other.
        b: String,
        /// The node.
        node: u32,
    },
    /// A pool, or a memory policy of one node, for a service on several.
    #[error("{unit} has CPUs on several nodes, and {what} is of one node")]
    SeveralNodes {
        /// The unit.
        unit: String,
        /// What is of one node.
        what: &'static str,
    },
    /// Pools that are more than their node has.
    #[error("pools of {} on node {node} are more than its memory of {}", bytes(*asked), bytes(*memory))]
    Pool {
        /// The node.
        node: u32,
        /// Bytes wanted.
        asked: u64,
        /// Bytes that the node has.
        memory: u64,
    },
    /// A disk or network card that is not there.
    #[error(
        "{unit} names {device}, which is no disk and no network card of this host{}",
        nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
    )]
    NoDevice {
        /// The unit.
        unit: String,
        /// The device.
        device: String,
        /// The nearest name.
        nearest: Option<String>,
    },
    /// A device whose interrupts two services would take.
    #[error("{a} and {b} both take the interrupts of {device}")]
    SharedDevice {
        /// One of them.
        a: String,
        /// The other.
        b: String,
        /// The device.
        device: String,
    },
    /// Nobody here could pin the service.
    #[error("process 1 of this host is no systemd, so no unit can be pinned")]
    NoSystemd,
    /// CPUs that are to be isolated at once, on a host that cannot.
    #[error("CPU {cpus} cannot be isolated before the next boot: {reason}")]
    NoPartition {
        /// The CPUs.
        cpus: Cpus,
        /// Why not.
        reason: String,
    },
    /// Ways of a cache that nobody can give to the service alone.
    #[error("{unit} cannot have a share of the cache: {reason}")]
    NoCache {
        /// The unit.
        unit: String,
        /// Why not.
        reason: String,
        /// What to do about it.
        cure: String,
    },
    /// A unit that is not there.
    #[error("this host has no unit {unit}: its service would not be pinned")]
    NoUnit {
        /// The unit.
        unit: String,
        /// The one of this host that may be meant.
        nearest: Option<String>,
    },
    /// The machine was not looked at.
    #[error("nothing is known of the CPUs of this host")]
    Unseen,
    /// A value that a placement sets by itself, and that the profile wants too.
    #[error("the profile wants {knob} by itself, and the placement sets it too")]
    Twice {
        /// The knob.
        knob: KnobId,
    },
    /// A value of the profile takes away, or gives to others, what the placement gives a service.
    #[error("{knob} = {wanted} speaks against the placement of {unit}: it {what}")]
    Against {
        /// The knob.
        knob: KnobId,
        /// As it is wanted.
        wanted: String,
        /// The unit.
        unit: String,
        /// What it does to it.
        what: String,
    },
    /// A value of the profile takes CPUs away that the placement has keep house.
    #[error(
        "{knob} = {wanted} takes CPU {cpus} away, and the placement would have {} keep house, and name {} in masks",
        it(cpus),
        it(cpus)
    )]
    Away {
        /// The knob.
        knob: KnobId,
        /// As it is wanted.
        wanted: String,
        /// The CPUs.
        cpus: Cpus,
    },
    /// Interrupts are moved, and nobody says where the service is that they belong to.
    #[error("{knob} {NO_SERVICE}")]
    Unpinned {
        /// The knob.
        knob: KnobId,
    },
    /// A part that cannot be set, so that only half of the rest would be.
    #[error("only half of it could be done: {knob} at {place}: {reason}")]
    Half {
        /// The knob.
        knob: KnobId,
        /// The place.
        place: String,
        /// Why it cannot be set.
        reason: String,
    },
}

/// CPUs or nodes.
pub(super) fn words(is_memory: bool, list: &Cpus) -> String {
    format!("{} {list}", if is_memory { "node" } else { "CPU" })
}

/// One or several CPUs, named before.
fn it(cpus: &Cpus) -> &'static str {
    if cpus.count() == 1 { "it" } else { "them" }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

impl PlacementError {
    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> String {
        let profile =
            |what: &str| format!("{what} in the table [placement] of the profile (docs/placement.md)");
        match self {
            Self::NoService => profile("name the unit of each service in [[placement.service]]"),
            Self::TooSmall { .. } => "leave the CPUs of this host to the scheduler".to_owned(),
            Self::NoCpu { .. }
            | Self::Offline { .. }
            | Self::NoNode { .. }
            | Self::MemoryOnly { .. }
            | Self::NoDevice { .. } => "see what this host has: planish topo".to_owned(),
            Self::NoMemory { .. } => profile("set memory = \"any\" for it, or choose another node"),
            Self::BootCpu { cpu, .. } => profile(&format!("leave CPU {cpu} to housekeeping")),
            Self::SplitCore { siblings, .. } => profile(&format!("give CPU {siblings} to the same set")),
            Self::Overlap { .. } => profile("give each CPU to one set"),
            Self::NoCores { .. } | Self::Ambiguous { .. } => {
                profile("change cores = N of the services, or housekeeping_cores = N,")
            }
            Self::Taken { cure, .. } | Self::Second { cure, .. } | Self::NoCache { cure, .. } => cure.clone(),
            Self::Limited { what, limit, .. } => {
                let UnitLimit { directive, source, .. } = limit.as_ref();
                format!(
                    "place it within that, or take {directive} out of {source} (or have it name {what}, too)"
                )
            }
            Self::Alias { real, .. } => profile(&format!("name {real}")),
            Self::Masked { unit, .. } => format!("systemctl unmask {unit}, or name the unit that runs"),
            Self::RunsNothing { unit, .. } => {
                format!("name the unit that it starts: systemctl list-units '{}*'", stem(unit))
            }
            Self::PinsItself { unit, program, .. } => {
                format!("take {program} out of its command (systemctl edit --full {unit}), and plan again")
            }
            Self::Overridden { place, by, .. } => unpin(place, by),
            Self::SeveralNodes { .. } => profile("place it on one node, or leave that out"),
            Self::Pool { .. } => profile("ask for smaller pools"),
            Self::SharedDevice { .. } => {
                profile("name the device once, or set interrupts = \"housekeeping\"")
            }
            Self::NoSystemd => {
                "pin the service where it is started: planish run --cpus LIST -- CMD".to_owned()
            }
            Self::NoPartition { .. } => profile("set isolation = \"boot\""),
            Self::NoUnit { nearest: Some(nearest), .. } => {
                profile(&format!("did you mean {nearest}? name it so"))
            }
            Self::NoUnit { unit, nearest: None } => {
                format!("see what it is called: systemctl list-units '*{}*'", stem(unit))
            }
            Self::Unseen => "see what is told of them: planish topo".to_owned(),
            Self::Twice { knob } => format!("take {knob} out of [want], or the table [placement] out"),
            Self::Against { knob, .. } => {
                format!(
                    "place the service elsewhere, or take {knob} out of [want]: --exclude {knob} leaves it"
                )
            }
            Self::Away { knob, .. } => format!(
                "apply {knob} first, by a profile without the table [placement], with a reboot where it needs one: \
                 what is offline then is in no set; or leave it: --exclude {knob}"
            ),
            Self::Unpinned { knob } => format!(
                "say where services are in a table [placement], which moves interrupts too (docs/placement.md); or \
                 leave them: --exclude {knob}"
            ),
            Self::Half { .. } => {
                "make that possible, or leave the placement out: it is done whole or not at all".to_owned()
            }
        }
    }
}

/// How a line goes that takes back what our file says.
fn unpin(place: &str, by: &str) -> String {
    let file = by.rsplit_once(':').map_or(by, |(file, _)| file);
    let name = place.rsplit('/').next().unwrap_or(place);
    let is_drop_in = place.contains(".d/");
    let earlier = is_drop_in.then(|| format!(", or give it a name that sorts before {name}"));
    format!("take that line out of {file}{}; then plan again", earlier.unwrap_or_default())
}

/// The name of a unit without its kind and its instance.
fn stem(unit: &str) -> &str {
    unit.split(['.', '@']).next().unwrap_or(unit)
}
