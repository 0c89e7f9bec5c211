//! The nouns of the control plane, and the catalogue that most of them come from.
//!
//! Control data flows one way: observe -> decide -> act -> verify -> record. The stages know this crate and not
//! each other; only `planish-pipeline` knows them all. Everything here is plain data: it can be printed, saved,
//! compared and hashed, and nothing here touches a host.
//!
//! | noun | made by | read by |
//! |---|---|---|
//! | [`Knob`], [`Profile`], [`FindingRule`], [`Writer`] | the catalogue | every stage |
//! | [`Observation`], [`Machine`] | observe | decide, verify |
//! | [`Plan`], [`Step`], [`Finding`] | decide | act, verify, report |
//! | [`Outcome`] | act | journal, report |
//! | [`Drift`] | verify | report |
//! | [`Entry`] | journal | decide (undo), report |
//! | [`Sizing`], [`Placement`] | decide | report |

#![forbid(unsafe_code)]

mod boot;
pub mod bootline;
mod bound;
mod cache;
pub mod cards;
mod catalogue;
mod cpus;
mod device;
mod drift;
mod entry;
mod exit;
mod finding;
mod granted;
mod in_boot;
mod knob;
mod machine;
pub mod mounts;
mod nearest;
mod observation;
mod once;
pub mod page_pool;
mod persist;
pub mod place;
mod placement;
mod plan;
mod profile;
mod service;
mod shell;
mod sizing;
pub mod threads;
pub mod units;
mod unpersisted;
mod value;
mod writer;

pub use boot::{Astray, BootFile, BootFiles, BootFormat, BootLoader, Generator};
pub use bound::{Bound, Demand, FileLimits};
pub use cache::{CacheControl, CacheResource, OtherGroup};
pub use catalogue::{Catalogue, CatalogueError, Conflict, PinnedOtherwise};
pub use cpus::Cpus;
pub use device::DeviceId;
pub use drift::{BootValue, Drift, DriftState, KnobCheck, Overwriter};
pub use entry::{
    Caused, Closure, Entry, EntryId, EntryState, EntryStep, Holder, LineClaim, Original, OthersBefore,
    Outcome, OutcomeKind, PoolLine, PoolWrite, RuleLine, ShortGrant, WaitEnd,
};
pub use exit::Exit;
pub use finding::{
    Comparison, CuredBy, Finding, FindingRule, Limit, MayCost, Measured, RuleCost, RuleCosts, RuleFigure,
    Severity,
};
pub use granted::pages_at_boot;
pub use in_boot::{in_boot, pages_in_file, pages_of_nobody, size_beside, size_of_line};
pub use knob::{
    Class, Conditions, Enforces, Knob, KnobId, NOT_GIVEN, Pin, Several, Undo, Vendor, When, given_in_vain,
    is_by_size, not_taken,
};
pub use machine::{
    Machine, MachineCpu, MachineDevice, MachineIrq, MachineNode, PARTS, PartitionCpus, Partitions,
    PinnedService, Session, UnitFiles, UnitLimit, UnitLine, part_at,
};
pub use nearest::{edits, nearest, nearest_listed};
pub use observation::{
    Access, BuddyRow, FactValue, HostFacts, NodeMemory, Observation, Persisted, PoolReading, Reading,
    UnitSetting, Verdict, VerdictKind, fitting,
};
pub use once::{
    CarriedOver, DefaultEntry, OnceBoot, OnceFormat, OnceRefusal, OnceWrite, TrialBoot, TrialBootState,
    marked, marker,
};
pub use persist::{Persist, PersistFile};
pub use placement::{
    FarDevice, Interrupts, Isolation, MOVED_WITH_A_SERVICE, MemoryPolicy, NO_SERVICE, Others, PlacedCache,
    PlacedIrq, PlacedPartition, PlacedService, Placement, PlacementRequest, ServiceRequest,
};
pub use plan::{
    Allowed, Coupled, Coupling, Instead, Overlay, Part, Plan, PlanHash, PoolGoing, PoolUse, Skipped, Step,
    Theirs,
};
pub use profile::{
    Answer, Case, Computation, GuideLine, NameError, Nodes, Profile, Want, toml_value, version_numbers,
};
pub use service::{
    DeviceKind, GroupLimit, NodeBytes, ProgramVersion, SeenService, ServiceCpus, ServiceDevice,
    ServiceFaults, ServiceLimit, ServiceMemory, ServiceView,
};
pub use shell::quoted;
pub use sizing::{SizeRow, Sizing};
pub use unpersisted::{Unpersisted, gone_at_boot};
pub use value::{
    BootCpus, CacheGroup, CpuForm, Form, LimitPair, NO_GROUP, Schemata, ShareOf, ValueError, ValueType,
    assigned, assignments, is_cache, leaves_guards_out, listed, node_bytes, node_numbers, overridden,
    page_sizes, parts_lost, said, tmpfs_bytes, variable,
};
pub use writer::{
    Again, Said, Says, SecondWriter, SeenWriter, Writer, WriterAgain, WriterArguments, WriterSays,
    WriterScope,
};
