//! A plan: a value that leaves no choice to act.
//!
//! It can be printed, saved, reviewed, hashed and compared. `apply` does exactly its steps, or refuses when the
//! host has moved in any place that the plan names. A dry run is the plan, printed.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::entry::is_zero;
use crate::{
    Class, EntryId, Knob, KnobId, Persist, Placement, SecondWriter, Undo, Verdict, VerdictKind, When,
};

/// How another place depends on the one that a step writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Coupling {
    /// Setting one clears the other.
    Twin,
    /// The same state through another place.
    Alias,
    /// The kernel recomputes it.
    Derived,
}

/// A place whose original must be kept before a step is written, because the step changes it too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coupled {
    /// The other knob.
    pub knob: KnobId,
    /// Its place.
    pub place: String,
    /// Its value when the plan was made.
    pub now: String,
    /// How it depends.
    pub coupling: Coupling,
}

/// What a step is beside the entry that its plan takes the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// That entry set the place, and this plan wants nothing of it: it goes back to what it was before that entry.
    Back,
    /// That entry, or another open one, set the place as this plan wants it: nothing is written, and what becomes of
    /// this plan holds it.
    TakenOver,
}

/// A value that an entry had set and somebody else has changed since: it is kept, as an undo keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Theirs {
    /// The knob.
    pub knob: KnobId,
    /// The place.
    pub place: String,
    /// What is there now.
    pub now: String,
    /// What the entry had left there.
    pub ours: String,
    /// What was there before the entry.
    pub original: String,
}

/// The open entry whose place a plan takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Instead {
    /// The entry.
    pub entry: EntryId,
    /// The profile that it came from.
    pub profile: String,
    /// What somebody else has set since, at places that the plan wants nothing of: it stays so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub theirs: Vec<Theirs>,
    /// Files for the next boot, and drop-ins, that the entry has lines in: those are taken out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Pools that the entry was granted pages of, and how many of them can go back to the host now. It tells, and is no
    /// part of the hash: what is taken over is, with its step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolGoing>,
}

/// Pages that an entry asked for and was granted of one pool, and whether anybody uses them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolUse {
    /// The entry.
    pub entry: EntryId,
    /// The knob.
    pub knob: KnobId,
    /// The pool.
    pub place: String,
    /// Pages that it asked for.
    pub asked: u64,
    /// Pages that it holds.
    pub granted: u64,
    /// Those of them that a program uses or has reserved; null where the host does not tell. A page of a pool has no
    /// owner: what is idle counts as the newest entry's, as far as that holds pages there.
    pub used: Option<u64>,
    /// Those that nobody uses, and nobody else can have.
    pub idle: Option<u64>,
}

/// What becomes of the pages of one pool when a plan takes the place of the entry that holds them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolGoing {
    /// The pages of the entry.
    pub pool: PoolUse,
    /// Those that the plan takes over.
    pub taken_over: u64,
    /// Those that go back to the host. In a plan they are those of the rest that nobody uses now, and the whole rest
    /// where the host does not tell; of an apply they are those that went.
    pub handed_back: u64,
    /// Those of the rest that a program uses or has reserved: they stay with the entry, which is open until they are
    /// free and taken back. Not there where the host does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_use: Option<u64>,
    /// Those of the rest that a line of others for all nodes gives: they stay with the entry, which is open until that
    /// line is gone, or force takes them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub claimed: u64,
}

/// One write: this knob, this place, from this value to that one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The knob.
    pub knob: KnobId,
    /// The concrete path.
    pub place: String,
    /// The kernel's text when the plan was made.
    pub now: String,
    /// The text that will be written.
    pub wanted: String,
    /// What may be lost.
    pub class: Class,
    /// When it takes effect.
    pub when: When,
    /// How it is taken back.
    pub undo: Undo,
    /// What it gains.
    pub why: String,
    /// What it costs.
    pub cost: String,
    /// Where the kernel documents it.
    pub source: String,
    /// Whether it can be set here.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// For pools: how many pages the step adds. `wanted` is `now` plus this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise_pages: Option<u64>,
    /// For pools: pages of the entry that the plan takes the place of, which become this step's. They are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_pages: Option<u64>,
    /// For pools: the size that is wanted in all, where the pages of others count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_all: Option<u64>,
    /// What the step is beside the entry that the plan takes the place of; `None` for what only the plan wants, or
    /// wants otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The open entry that has set the place as wanted, where that one stays: both hold it then, and it goes back with
    /// the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<EntryId>,
    /// For pools: the service that the pages are for, by the name of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Places that this write changes too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coupled: Vec<Coupled>,
    /// The arithmetic or the condition behind `wanted`, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

impl Step {
    /// Whether it writes anything: what is taken over, or held beside an entry, is there.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.part != Some(Part::TakenOver)
    }

    /// A step with what the row of its knob says, and nothing coupled.
    #[must_use]
    pub fn of(knob: &Knob, place: &str, now: String, wanted: String, verdict: Verdict) -> Self {
        Self {
            knob: knob.id.clone(),
            place: place.to_owned(),
            now,
            wanted,
            class: knob.class,
            when: knob.when,
            undo: knob.undo,
            why: knob.why.clone(),
            cost: knob.cost.clone(),
            source: knob.source.clone(),
            verdict,
            raise_pages: None,
            takes_pages: None,
            in_all: None,
            part: None,
            beside: None,
            service: None,
            coupled: Vec::new(),
            because: None,
        }
    }

    /// The service whose next start takes the value up, where the step tells: the unit of its drop-in, or the service
    /// that a pool is for. `None` for what takes effect at the write or at a boot, and for what every program takes up.
    #[must_use]
    pub fn restart(&self) -> Option<&str> {
        let unit = || {
            let (unit, _) = self.place.strip_prefix("/etc/systemd/system/")?.split_once(".d/")?;
            unit.ends_with(".service").then_some(unit)
        };
        let waits = self.when == When::Process;
        if waits { unit().or(self.service.as_deref()) } else { None }
    }
}

/// A wanted value that is not a step, and why: absent, moot, already so, not allowed by class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// The knob.
    pub knob: KnobId,
    /// The place, or the pattern where no place exists.
    pub place: String,
    /// The wanted value, where it could be computed.
    pub wanted: Option<String>,
    /// The verdict with its reason; `settable` when the value is already as wanted.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// When the knob takes effect: at the next reboot for a boot parameter, which `boot` holds as a step too.
    #[serde(default)]
    pub when: When,
    /// Whether the value is as wanted already.
    pub satisfied: bool,
    /// A pool that the memory of this moment cannot give: an apply of the plan is refused, since half of what was asked
    /// for is not what was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub short_of_memory: bool,
    /// What no apply can bring this host to without ruining it, or at all: pools larger than its memory, a list that
    /// leaves it no CPU, a limit below what runs. The whole plan is refused: whoever asks for that means another host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub impossible: bool,
    /// The place is here, the value is allowed and means something, and this host keeps it from being set: it is
    /// mounted read-only, or the kernel made another value of it. `check` calls it drift. What nobody allowed, and what
    /// was left to somebody else, is not hindered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hindered: bool,
    /// Why `--persist` leaves it out although it is as wanted now: the machine is reached through this card, the value
    /// may take its link down, and nobody named the knob. A rule would set it again at every boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_to_keep: Option<String>,
    /// The open entry of this boot that asked for it, and to which the host gave less, or another value. It is not
    /// written again, and `--persist` has the next boot give what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<EntryId>,
    /// It is left as it is since nobody allowed its class, or named its knob: the reason says what to type.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_allowed: bool,
    /// The host has the like of it, and nothing that the profile names: no such service or device, no such word. That
    /// may be the profile of another host, and may be a typing error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing_named: bool,
    /// It is left as it is since whoever asked left it out, by the name of its knob or of the program that writes it:
    /// whatever it shows is no drift of this plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
}

/// An open entry whose values a plan covers with others, or leaves as they are: an undo of what the plan becomes brings
/// back what it covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overlay {
    /// The entry.
    pub entry: EntryId,
    /// The profile that it came from.
    pub profile: String,
    /// The knobs of the plan that it has set too.
    pub knobs: Vec<KnobId>,
    /// Knobs that it has set, at places that the plan wants nothing of: they stay as it set them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<KnobId>,
    /// Pools, and what the kernel derives, that it has brought to what the plan wants. The plan holds them not, so
    /// that an undo of the entry takes them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<KnobId>,
}

/// sha256 of the canonical JSON of a plan's steps, host id and boot id, in hexadecimal. Who asks does not count:
/// the words of a verdict are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PlanHash(String);

impl fmt::Display for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What whoever made a plan allowed besides what is safe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Allowed {
    /// Classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
    /// Knobs, whatever their class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knobs: Vec<KnobId>,
}

impl Allowed {
    /// Whether nothing was.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.classes.is_empty() && self.knobs.is_empty()
    }
}

/// Everything that will be written, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Of the steps, the host and the boot.
    pub hash: PlanHash,
    /// The profile that it was made from.
    pub profile: String,
    /// The host it is for.
    pub host_id: String,
    /// The boot it is for.
    pub boot_id: String,
    /// The writes, in the order of their dependencies.
    pub steps: Vec<Step>,
    /// What the profile wants and the plan does not write.
    pub skipped: Vec<Skipped>,
    /// Boot parameters among those: `apply --persist` has the boot loader give them to the next kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boot: Vec<Step>,
    /// Other programs that write places of the plan too. They tell what to do besides, and are no part of the hash:
    /// whoever starts or stops one does not change what the plan writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub second_writers: Vec<SecondWriter>,
    /// Open entries of this boot that the steps lay other values over. They tell, and are no part of the hash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlays: Vec<Overlay>,
    /// The open entry whose place it takes. The hash covers its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<Instead>,
    /// Why the profile is for other programs than the service that was named, or for another version than this host
    /// has, where that can be told. It tells, and is no part of the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsuited: Option<String>,
    /// What is to be known before such a plan is applied: what of a placement stays as it is, what gives way. It tells,
    /// and is no part of the hash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What was allowed besides what is safe: a check asks for no more, and for no less. It tells, and is no part of
    /// the hash.
    #[serde(default, skip_serializing_if = "Allowed::is_nothing")]
    pub allowed: Allowed,
    /// Where services and interrupts are to be, which the steps carry out; it tells, and is no part of the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// What `--persist` writes besides the steps, where that was asked for. It is computed from the host and the
    /// journal and no part of the hash: an apply computes it anew, and refuses a file that would become another than
    /// this tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<Persist>,
}

impl Skipped {
    /// Whether this host does not have it, whatever is allowed.
    #[must_use]
    pub fn is_not_here(&self) -> bool {
        use VerdictKind::{Absent, Firmware, Host, NotRecorded};
        matches!(self.verdict.verdict, Absent | Firmware | Host | NotRecorded)
    }

    /// A wanted value that is as wanted already.
    #[must_use]
    pub fn satisfied(knob: KnobId, place: String, wanted: String, verdict: Verdict) -> Self {
        Self { satisfied: true, ..Self::left(knob, place, Some(wanted), verdict) }
    }

    /// A wanted value that is left as it is, and why.
    #[must_use]
    pub fn left(knob: KnobId, place: String, wanted: Option<String>, verdict: Verdict) -> Self {
        let (satisfied, short_of_memory, impossible, hindered) = (false, false, false, false);
        let (not_allowed, nothing_named, left_out) = (false, false, false);
        let (when, not_to_keep, asked_by) = (When::default(), None, None);
        Self {
            knob,
            place,
            wanted,
            verdict,
            when,
            satisfied,
            short_of_memory,
            impossible,
            hindered,
            not_to_keep,
            asked_by,
            not_allowed,
            nothing_named,
            left_out,
        }
    }

    /// A wanted value of what this host has nothing of by that name.
    #[must_use]
    pub fn nothing_named(knob: KnobId, place: String, wanted: Option<String>, verdict: Verdict) -> Self {
        Self { nothing_named: true, ..Self::left(knob, place, wanted, verdict) }
    }

    /// A wanted value that this host cannot have, and why not.
    #[must_use]
    pub fn impossible(knob: KnobId, place: String, wanted: String, reason: impl Into<String>) -> Self {
        let verdict = Verdict::new(VerdictKind::Blocked, reason);
        Self { impossible: true, ..Self::left(knob, place, Some(wanted), verdict) }
    }
}

impl Plan {
    /// A plan with its hash.
    #[must_use]
    pub fn new(
        profile: String,
        host_id: String,
        boot_id: String,
        steps: Vec<Step>,
        skipped: Vec<Skipped>,
    ) -> Self {
        let hash = hash(&steps, &[], &host_id, &boot_id, None);
        let (boot, second_writers) = (Vec::new(), Vec::new());
        let (overlays, remarks, allowed) = (Vec::new(), Vec::new(), Allowed::default());
        let (instead_of, unsuited, placement, persist) = (None, None, None, None);
        Self {
            hash,
            profile,
            host_id,
            boot_id,
            steps,
            skipped,
            boot,
            second_writers,
            overlays,
            instead_of,
            unsuited,
            remarks,
            allowed,
            placement,
            persist,
        }
    }

    /// The plan with boot parameters for `apply --persist`: its hash covers them too.
    #[must_use]
    pub fn with_boot(self, boot: Vec<Step>) -> Self {
        if boot.is_empty() && self.boot.is_empty() {
            return self;
        }
        let instead = self.instead_of.as_ref().map(|instead| instead.entry);
        let hash = hash(&self.steps, &boot, &self.host_id, &self.boot_id, instead);
        Self { hash, boot, ..self }
    }

    /// The plan, as it is with these steps and in the place of an entry.
    #[must_use]
    pub fn in_place_of(self, instead: Instead, steps: Vec<Step>) -> Self {
        let hash = hash(&steps, &self.boot, &self.host_id, &self.boot_id, Some(instead.entry));
        Self { hash, steps, instead_of: Some(instead), ..self }
    }

    /// Whether the hash is that of the steps: false for a plan file that was edited.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        let (host_id, boot_id) = (&self.host_id, &self.boot_id);
        let instead = self.instead_of.as_ref().map(|instead| instead.entry);
        let now = hash(&self.steps, &self.boot, host_id, boot_id, instead);
        let is_old = || self.boot.is_empty() && instead.is_none();
        self.hash == now || (is_old() && self.hash == worded(&self.steps, &[], host_id, boot_id, None))
    }

    /// A place that two rows of the plan set, or find as wanted, and the knobs of both: each of them is reviewed, and
    /// looked at, as if the other were not there.
    #[must_use]
    pub fn named_twice(&self) -> Option<(&str, [&KnobId; 2])> {
        let satisfied = self.skipped.iter().filter(|row| row.satisfied).map(|row| (&row.place, &row.knob));
        let written = self.steps.iter().chain(&self.boot).map(|step| (&step.place, &step.knob));
        let mut seen = BTreeMap::new();
        written.chain(satisfied).find_map(|(place, knob)| {
            let first = seen.insert(place, knob)?;
            Some((place.as_str(), [first, knob]))
        })
    }

    /// Whether any step waits for a reboot.
    #[must_use]
    pub fn needs_reboot(&self) -> bool {
        self.steps.iter().any(|step| step.when == When::Boot)
    }
}

/// Objects of `serde_json` without `preserve_order` are sorted by key, so that its plain output is canonical.
fn hash(steps: &[Step], boot: &[Step], host_id: &str, boot_id: &str, instead: Option<EntryId>) -> PlanHash {
    let bare = |step: &Step| {
        let mut step = step.clone();
        step.verdict.reason.clear();
        step
    };
    let bare = |steps: &[Step]| steps.iter().map(bare).collect::<Vec<_>>();
    worded(&bare(steps), &bare(boot), host_id, boot_id, instead)
}

/// The hash with the words of the verdicts, as older plan files have it.
fn worded(steps: &[Step], boot: &[Step], host_id: &str, boot_id: &str, instead: Option<EntryId>) -> PlanHash {
    let mut covered = serde_json::json!({ "steps": steps, "host": host_id, "boot": boot_id });
    // Plans without boot parameters keep the hash that they had before there were any.
    if !boot.is_empty() {
        covered["parameters"] = serde_json::json!(boot);
    }
    if let Some(entry) = instead {
        covered["instead_of"] = serde_json::json!(entry);
    }
    let canonical = covered.to_string();
    PlanHash(Sha256::digest(canonical.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_for(reason: &str) -> Plan {
        let step = Step {
            knob: KnobId::new("vm.swappiness"),
            place: "/proc/sys/vm/swappiness".to_owned(),
            now: "60".to_owned(),
            wanted: "10".to_owned(),
            class: Class::Safe,
            when: When::Now,
            undo: Undo::Restore,
            why: String::new(),
            cost: String::new(),
            source: String::new(),
            verdict: Verdict::new(VerdictKind::Settable, reason),
            raise_pages: None,
            takes_pages: None,
            in_all: None,
            part: None,
            beside: None,
            service: None,
            coupled: Vec::new(),
            because: None,
        };
        Plan::new("series".to_owned(), "host".to_owned(), "boot".to_owned(), vec![step], Vec::new())
    }

    #[test]
    fn a_step_names_the_service_whose_start_takes_it_up() {
        let mut step = plan_for("").steps.remove(0);
        step.service = Some("mongod".to_owned());
        assert_eq!(step.restart(), None, "it takes effect at the write");
        step.when = When::Process;
        assert_eq!(step.restart(), Some("mongod"));
        step.place = "/etc/systemd/system/mongod@a.service.d/zz-planish-nofile.conf".to_owned();
        assert_eq!(step.restart(), Some("mongod@a.service"));
        step.service = None;
        step.place = "/etc/systemd/system.conf.d/zz-planish.conf".to_owned();
        assert_eq!(step.restart(), None);
    }

    #[test]
    fn root_and_a_plain_user_get_one_hash() {
        let (root, user) = (plan_for(""), plan_for("by root"));
        assert_eq!(root.hash, user.hash);
        assert!(user.is_intact());
    }

    #[test]
    fn a_plan_file_whose_hash_has_the_words_stays_intact() {
        let mut old = plan_for("by root");
        old.hash = worded(&old.steps, &[], &old.host_id, &old.boot_id, None);
        assert!(old.is_intact());
        old.steps[0].wanted = "20".to_owned();
        assert!(!old.is_intact());
    }

    #[test]
    fn boot_parameters_are_covered_by_the_hash() {
        let plain = plan_for("");
        let plan = plan_for("").with_boot(plain.steps.clone());
        assert!(plan.is_intact() && plan.hash != plain.hash);
        let mut edited = plan.clone();
        edited.boot[0].wanted = "20".to_owned();
        assert!(!edited.is_intact());
        // Nor are they slipped under a hash that does not know them.
        assert!(!Plan { boot: plan.boot, ..plain }.is_intact());
        assert_eq!(plan_for("").with_boot(Vec::new()).hash, plan_for("").hash);
    }

    #[test]
    fn the_entry_whose_place_it_takes_is_covered_by_the_hash() {
        let plain = plan_for("");
        let (profile, theirs, files) = (String::new(), Vec::new(), Vec::new());
        let instead = Instead { entry: EntryId(3), profile, theirs, files, pools: Vec::new() };
        let plan = plan_for("").in_place_of(instead, plain.steps.clone());
        assert!(plan.is_intact() && plan.hash != plain.hash);
        let mut other = plan.clone();
        other.instead_of.as_mut().expect("it has one").entry = EntryId(4);
        assert!(!other.is_intact());
        assert!(!Plan { instead_of: None, ..plan }.is_intact());
    }

    #[test]
    fn an_edited_plan_is_not_intact() {
        let mut plan =
            Plan::new("series".to_owned(), "host".to_owned(), "boot".to_owned(), Vec::new(), Vec::new());
        assert!(plan.is_intact());
        plan.boot_id = "another boot".to_owned();
        assert!(!plan.is_intact());
    }
}
