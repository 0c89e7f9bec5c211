//! Entries: what was done to a host, and what it takes to undo it.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Allowed, BootFormat, Class, Coupling, DeviceId, Generator, KnobId, Part, Plan, PlanHash, Undo, ValueType,
    place,
};

/// The number of a journal entry, counted from 1 on each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct EntryId(pub u64);

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value as it was before our first write: kept byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Original {
    /// The knob.
    pub knob: KnobId,
    /// The place.
    pub place: String,
    /// How values of it compare: kept, so that undo needs the journal alone and no catalogue.
    pub r#type: ValueType,
    /// The kernel's text.
    pub value: String,
    /// `None` for the place that a step writes itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coupling: Option<Coupling>,
    /// The open entry that had left this value: its original is older, and counts once that entry is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<EntryId>,
}

impl Original {
    /// Whether it is that of a step's place, or of the twin that makes one setting with it.
    #[must_use]
    pub fn is_of_setting(&self) -> bool {
        matches!(self.coupling, None | Some(Coupling::Twin))
    }
}

/// What a write changed in a coupled place, as read back after it: the kernel recomputed it, or cleared a twin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Caused {
    /// The coupled place.
    pub place: String,
    /// The kernel's text there.
    pub value: String,
}

/// A write of a pool's size, recorded before it is made: after a kill it tells whose the pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolWrite {
    /// Pages of the pool that were the step's before.
    pub held: u64,
    /// Pages of the pool before.
    pub from: u64,
    /// Pages written.
    pub to: u64,
}

/// A grant that was shorter than asked, with what the kernel's own lists say about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShortGrant {
    /// Pages asked for.
    pub asked: u64,
    /// Pages granted.
    pub granted: u64,
    /// Why: free blocks of the size that were left, by node and zone, before and after compaction.
    pub reason: String,
    /// Pages that lay whole in free blocks after the last try; `None` where free blocks cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits: Option<u64>,
}

/// How one step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// Written, and read back as wanted.
    Done,
    /// Already as wanted; nothing was written.
    Satisfied,
    /// A pool that got fewer pages than asked.
    Short,
    /// A pool that somebody lowered since: what is left of its pages beside those of others is still held.
    Lowered,
    /// Written, but it reads back as something else, which is now "ours".
    ReadsBack,
    /// The kernel refused the write.
    Failed,
    /// Already as wanted by the entry that this one takes the place of, or by one beside it: held by this one from
    /// there on, with the original of that one. Nothing was written.
    TakenOver,
    /// Never tried: a step before it failed, and the entry was taken back.
    NotReached,
    /// Undo: someone else changed it since; theirs was kept.
    Theirs,
    /// Undo: a newer open entry set it since, and undoing that one brings our original back.
    HandedOver,
    /// Undo: a step of an earlier boot; nothing to write.
    GoneWithReboot,
    /// Undo: pages are still in use, or a line of others gives them, so that the pool was not lowered by them; the
    /// entry stays open.
    InUse,
    /// The place is no longer there.
    Vanished,
}

/// Pages of a pool that an undo left, since a line of others gives the pools of all nodes together so many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineClaim {
    /// How many of ours.
    pub pages: u64,
    /// How many the line gives.
    pub given: u64,
    /// The line: file and number.
    pub source: String,
}

impl LineClaim {
    /// The line, and what it gives.
    #[must_use]
    pub fn line(&self) -> String {
        let pages = if self.given == 1 { "page" } else { "pages" };
        format!("{} gives all nodes together {} {pages}", self.source, self.given)
    }

    /// When an undo takes the pages: told of the line.
    #[must_use]
    pub fn until(&self) -> String {
        match self.given.saturating_sub(self.pages) {
            0 => "when that line is gone".to_owned(),
            most => format!("when that line is gone, or for {most} at most"),
        }
    }
}

impl fmt::Display for LineClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stay = if self.pages == 1 { "page stays" } else { "pages stay" };
        write!(f, "{} {stay}, since {}", self.pages, self.line())
    }
}

/// What a step did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The knob.
    pub knob: KnobId,
    /// The place.
    pub place: String,
    /// How it ended.
    pub outcome: OutcomeKind,
    /// The value read back afterwards: what is "ours" from now on.
    pub read_back: Option<String>,
    /// For pools: pages of it that are this step's after it: granted by an apply, still held after an undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_pages: Option<u64>,
    /// Coupled places that no longer show what they showed before the write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caused: Vec<Caused>,
    /// For a short grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<ShortGrant>,
    /// Processes that hold what undo wants back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
    /// For pools: what undo left of the pages to a line of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<LineClaim>,
    /// The kernel's error or another remark, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Outcome {
    /// An outcome with nothing to add.
    #[must_use]
    pub fn new(knob: KnobId, place: impl Into<String>, outcome: OutcomeKind) -> Self {
        Self {
            knob,
            place: place.into(),
            outcome,
            read_back: None,
            granted_pages: None,
            caused: Vec::new(),
            short: None,
            holders: Vec::new(),
            claim: None,
            detail: None,
        }
    }

    /// Pages that undo left to a line of others.
    #[must_use]
    pub fn claimed(&self) -> u64 {
        self.claim.as_ref().map_or(0, |claim| claim.pages)
    }
}

/// A process that holds huge pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Its short name.
    pub command: String,
    /// Bytes of huge pages it maps.
    pub bytes: u64,
}

/// What an entry has a file of ours give a pool at boot. The file has one line a pool, with the sum of all entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolLine {
    /// The pool.
    pub place: String,
    /// Pages for this entry.
    pub pages: u64,
    /// Pages that files of others give the pool at boot, as this entry saw them. The line is read after those, and sets
    /// the size of the whole pool: it must not take their pages. Those of the newest entry count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others: u64,
    /// The size that the pool is to have in all, where its profile counts the pages of others: what goes of theirs, the
    /// line has nevertheless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_all: Option<u64>,
    /// Where another line of ours has seen other pages of others since: those of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<OthersBefore>,
}

/// Pages of others that lines of ours went by when a boot began, of which one has learnt better in that boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OthersBefore {
    /// The boot.
    pub boot_id: String,
    /// See [`PoolLine::others`].
    pub pages: u64,
}

impl PoolLine {
    /// Takes in what a newer line has seen of others in a boot; `is_older` tells that this line was there when that
    /// boot began, which has loaded it as it was.
    pub fn see_others(&mut self, pages: u64, boot_id: &str, is_older: bool) {
        let is_first = self.before.as_ref().is_none_or(|before| before.boot_id != boot_id);
        if is_older && is_first && pages != self.others {
            self.before = Some(OthersBefore { boot_id: boot_id.to_owned(), pages: self.others });
        }
        self.others = pages;
    }

    /// The pages of others that were in it when a boot began.
    #[must_use]
    pub fn others_at(&self, boot_id: &str) -> u64 {
        let before = self.before.as_ref().filter(|before| before.boot_id == boot_id);
        before.map_or(self.others, |before| before.pages)
    }
}

/// What a rule of udev in a file of ours gives a place whenever its device appears. The rule tells the device by what
/// it has, and not by its name, so that its text alone does not tell the place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleLine {
    /// The place, by the name that the device had when the rule was written.
    pub place: String,
    /// The value.
    pub value: String,
    /// What the device was told by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceId>,
}

/// How the line of our own file of GRUB begins.
const ADDS: &str = "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT ";

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(crate) fn is_zero(pages: &u64) -> bool {
    *pages == 0
}

/// A step of an entry: intent, original and, once it ran, outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryStep {
    /// The knob.
    pub knob: KnobId,
    /// The place.
    pub place: String,
    /// What was going to be written.
    pub wanted: String,
    /// Risk class.
    pub class: Class,
    /// How it is taken back.
    pub undo: Undo,
    /// Of a card or a disk: what it was told by. Its name in the place is that of then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceId>,
    /// For pools: pages asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise_pages: Option<u64>,
    /// For pools: pages that it takes over from the entry which its own one takes the place of, once that one goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_pages: Option<u64>,
    /// For pools: see [`crate::Step::in_all`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_all: Option<u64>,
    /// For pools: the pages of others when the intent was written, in each pool of this size, by place. Those that are
    /// only lent are not counted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, u64>,
    /// For pools: what a line of others gave all nodes together when the intent was written, or when that was by which
    /// the pages were raised that it has taken over. Another line since means pages of ours, too, and so does the same
    /// one where somebody loaded it since, as every boot does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// For pools: all pages of this size that were there when the intent was written, ours among them. Those that are
    /// only lent are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub there: Option<u64>,
    /// For pools: the newest entry of the journal when somebody was seen to have lowered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowered_behind: Option<EntryId>,
    /// For pools: the service that the pages are for, by the name of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// What it is beside the entry that its own one takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The value before our first write, and those of the coupled places. Empty for a file that was not there.
    pub originals: Vec<Original>,
    /// For a file of ours: folders on the way to it that were not there, the outermost first. They go with it when
    /// they are empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// For a file of ours: pools that it sizes at boot, beside the lines that are `wanted`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolLine>,
    /// For a file of rules of ours: the places that the rules which are `wanted` set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleLine>,
    /// For a file that a boot loader's menu is made from: what makes it, after the file was written and after it was
    /// put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<Generator>,
    /// How it ended; `None` when planish was killed before it could say.
    pub outcome: Option<Outcome>,
    /// A write of the pool that was begun, and whose end is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<PoolWrite>,
    /// How the last attempt to take it back ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<Outcome>,
    /// The boot in which the journal last told something of it, where that is a later one than its entry's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_boot: Option<String>,
    /// The newest entry of the journal when it last told something of it, where that is a later one than its own: what
    /// was written or taken back behind the intent of that entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_entry: Option<EntryId>,
}

impl EntryStep {
    /// A step that is about to be begun: without originals, and with nothing that only some kinds of steps have.
    #[must_use]
    pub fn new(knob: KnobId, place: String, wanted: String, class: Class, undo: Undo) -> Self {
        Self {
            knob,
            place,
            wanted,
            class,
            undo,
            device: None,
            raise_pages: None,
            takes_pages: None,
            in_all: None,
            others: BTreeMap::new(),
            line: None,
            there: None,
            lowered_behind: None,
            service: None,
            part: None,
            originals: Vec::new(),
            folders: Vec::new(),
            pools: Vec::new(),
            rules: Vec::new(),
            generator: None,
            outcome: None,
            begun: None,
            undone: None,
            last_boot: None,
            last_entry: None,
        }
    }

    /// Whether the journal told something of it in a boot that is not its entry's own.
    #[must_use]
    pub fn was_seen_in(&self, boot_id: &str) -> bool {
        self.last_boot.as_deref() == Some(boot_id)
    }

    /// The boot in which it was written, a step of an entry that was made in boot `own`: a file may wait for a confirm.
    #[must_use]
    pub fn written_in<'a>(&'a self, own: &'a str) -> &'a str {
        self.last_boot.as_deref().unwrap_or(own)
    }

    /// Whether the journal told something of it, a step of entry `own`, behind the intent of another entry.
    #[must_use]
    pub fn was_told_behind(&self, own: EntryId, intent: EntryId) -> bool {
        self.last_entry.unwrap_or(own) >= intent
    }

    /// For a file of ours: whether it was written.
    #[must_use]
    pub fn is_in_file(&self) -> bool {
        let written =
            |outcome: &Outcome| matches!(outcome.outcome, OutcomeKind::Done | OutcomeKind::Satisfied);
        self.undo == Undo::File && self.outcome.as_ref().is_some_and(written)
    }

    /// For a file of ours that is read at boot: the places that its lines set, and the values.
    pub fn lines(&self) -> impl Iterator<Item = (String, String)> {
        let lines = if self.undo == Undo::File { self.wanted.as_str() } else { "" };
        let rules = self.rules.iter().map(|RuleLine { place, value, .. }| (place.clone(), value.clone()));
        lines.lines().filter_map(place::of_line).chain(rules)
    }

    /// Takes the sizes of pools out of the lines of a file of ours. An older planish wrote the size of the whole pool
    /// there, with the pages of everybody else: what `raised` tells, the steps of the same entry, is its own share.
    pub fn split_pools(&mut self, raised: &[(String, u64)]) {
        if self.undo != Undo::File || !self.wanted.contains("/nr_hugepages - - - - ") {
            return;
        }
        let mut lines = String::new();
        for line in self.wanted.lines() {
            match place::of_line(line).filter(|(place, _)| place.ends_with("/nr_hugepages")) {
                Some((place, value)) => {
                    let own = raised.iter().find(|(raised, _)| *raised == place).map(|(_, pages)| *pages);
                    let pages = own.or_else(|| value.parse().ok()).unwrap_or(0);
                    self.pools.push(PoolLine { place, pages, ..PoolLine::default() });
                }
                None => lines = lines + line + "\n",
            }
        }
        self.wanted = lines;
    }

    /// Has both of two twins be what the same entry left. An older planish noted that of one of them alone, where that
    /// entry had found the other one cleared already, and so lost the original of the other below it.
    pub fn link_twins(&mut self) {
        let over = self.originals.iter().filter(|original| original.is_of_setting()).find_map(|own| own.over);
        let both = self.originals.iter_mut().filter(|original| original.is_of_setting());
        both.for_each(|original| original.over = over);
    }

    /// The arguments that it has the boot loader give every further boot; `None` for a step of no such file.
    #[must_use]
    pub fn boot_arguments(&self) -> Option<&str> {
        if self.undo == Undo::Edit {
            return BootFormat::of_knob(self.knob.as_str()).map(|_| self.wanted.as_str());
        }
        // The line of our own file of GRUB adds to what the files before it say.
        let mut lines = self.wanted.lines().filter(|_| self.undo == Undo::File);
        lines.find_map(|line| line.strip_prefix(ADDS)?.strip_suffix('"'))
    }

    /// The boot parameters among them, a number of pages with their size; those of every line of our own file of GRUB.
    #[must_use]
    pub fn boot_parameters(&self) -> Vec<String> {
        let added = |line: &'_ str| Some(line.strip_prefix(ADDS)?.strip_suffix('"')?.to_owned());
        let runs: Vec<String> = match self.undo {
            Undo::File => self.wanted.lines().filter_map(added).collect(),
            _ => self.boot_arguments().map(str::to_owned).into_iter().collect(),
        };
        let mut found: Vec<String> = Vec::new();
        for word in runs.iter().flat_map(|run| run.split_whitespace()) {
            let is_size = |before: &&mut String| before.starts_with("hugepagesz=") && !before.contains(' ');
            match found.last_mut().filter(is_size) {
                Some(size) if word.starts_with("hugepages=") => *size += &format!(" {word}"),
                _ => found.push(word.to_owned()),
            }
        }
        found
    }

    /// The original of the place that the step writes itself; `None` for a file that was not there.
    #[must_use]
    pub fn original(&self) -> Option<&Original> {
        self.originals.iter().find(|original| original.coupling.is_none())
    }

    /// Originals of the coupled places.
    pub fn coupled(&self) -> impl Iterator<Item = &Original> {
        self.originals.iter().filter(|original| original.coupling.is_some())
    }

    /// What the place showed after our write, as far as the journal knows: "ours".
    #[must_use]
    pub fn ours(&self) -> &str {
        self.outcome.as_ref().and_then(|outcome| outcome.read_back.as_deref()).unwrap_or(&self.wanted)
    }

    /// Pages of the pool that the journal knows to be this step's.
    #[must_use]
    pub fn pages_held(&self) -> u64 {
        let last = self.undone.as_ref().or(self.outcome.as_ref());
        last.and_then(|outcome| outcome.granted_pages).unwrap_or(0)
    }

    /// Pages that are for its entry still: what an undo left to a line of others is there for nobody of ours.
    #[must_use]
    pub fn pages_in_force(&self) -> u64 {
        self.pages_held().saturating_sub(self.undone.as_ref().map_or(0, Outcome::claimed))
    }

    /// Pages that are held by a step that was not taken back.
    #[must_use]
    pub fn still_held(&self) -> u64 {
        if self.is_undone() { 0 } else { self.pages_held() }
    }

    /// Leaves it so many pages of its pool: the others are somebody else's by now. Says why, and what that goes by.
    pub fn lower_to(&mut self, still: u64, reason: String, since: &str) {
        let (knob, place, held) = (self.knob.clone(), self.place.clone(), self.pages_held());
        let mut outcome =
            self.outcome.take().unwrap_or_else(|| Outcome::new(knob, place, OutcomeKind::Lowered));
        // What it held before the first loss: told of a second one, too.
        let was = outcome.short.take().filter(|_| outcome.outcome == OutcomeKind::Lowered);
        let asked = was.map_or(held, |was| was.asked);
        outcome.outcome = OutcomeKind::Lowered;
        outcome.granted_pages = Some(still);
        outcome.detail = Some(format!("{reason}; {since}, so that {still} of {asked} pages are ours still"));
        outcome.short = Some(ShortGrant { asked, granted: still, reason, fits: None });
        // What an undo left is left still, as far as it is there.
        let left = self.undone.take().filter(|undone| undone.outcome == OutcomeKind::InUse);
        let fewer = |claim: LineClaim| LineClaim { pages: claim.pages.min(still), ..claim };
        self.undone = left.map(|left| Outcome {
            granted_pages: Some(still),
            claim: left.claim.clone().map(fewer),
            ..left
        });
        self.outcome = Some(outcome);
    }

    /// Gives it pages of its pool that a step of another entry held. From here on they are pages that it asked for, and
    /// got; they are as old as they were, so that what the other one saw of `line` counts for it.
    pub fn take_over(&mut self, pages: u64, line: Option<u64>) {
        let (knob, place, held) = (self.knob.clone(), self.place.clone(), self.pages_held());
        let outcome = self.outcome.get_or_insert_with(|| Outcome::new(knob, place, OutcomeKind::TakenOver));
        outcome.granted_pages = Some(held.saturating_add(pages));
        self.raise_pages = Some(self.raise_pages.unwrap_or(0).saturating_add(pages));
        let rest = self.takes_pages.unwrap_or(0).saturating_sub(pages);
        self.takes_pages = (rest > 0).then_some(rest);
        self.line = line;
    }

    /// Whether somebody took pages of the pool since it was raised.
    #[must_use]
    pub fn is_lowered(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.outcome == OutcomeKind::Lowered)
    }

    /// Pages that it asked a pool for: those that it raised it by, and those that it took over.
    #[must_use]
    pub fn pages_asked(&self) -> u64 {
        let raised = self.raise_pages.map(|raised| raised + self.takes_pages.unwrap_or(0));
        raised.unwrap_or_else(|| self.pages_held())
    }

    /// Pages that a boot was to give it by a line of ours, and that are not there: what was raised by hand was granted,
    /// or is told as short or lowered.
    #[must_use]
    pub fn pages_lacking(&self) -> u64 {
        let is_done = self.outcome.as_ref().is_some_and(|outcome| outcome.outcome == OutcomeKind::Done);
        let is_whole = is_done && self.undo == Undo::Subtract && self.undone.is_none();
        if is_whole { self.pages_asked().saturating_sub(self.pages_held()) } else { 0 }
    }

    /// Why it holds fewer pages than it asked for, where that is not that a raise came short.
    #[must_use]
    pub fn why_lost(&self) -> Option<String> {
        let lowered = self.outcome.as_ref().filter(|_| self.is_lowered());
        let reason = lowered.and_then(|outcome| Some(outcome.short.as_ref()?.reason.clone()));
        let by_boot = "the boot had no more for the line of ours, or somebody took the others since";
        reason.or_else(|| (self.pages_lacking() > 0).then(|| by_boot.to_owned()))
    }

    /// Whether the host made something else of the value that it wrote: ours to undo, and not what was wanted.
    #[must_use]
    pub fn made_otherwise(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.outcome == OutcomeKind::ReadsBack)
    }

    /// Says so, of the entry and what its place shows.
    #[must_use]
    pub fn told_otherwise(entry: EntryId, now: &str) -> String {
        format!("entry {entry} wrote it, and this host made `{}` of it", now.trim())
    }

    /// Whether it has set a place, or holds it beside the entry that has, and still does. Pages of pools are held by as
    /// many as have raised some, and are none of these.
    #[must_use]
    pub fn sets(&self, place: &str) -> bool {
        self.place == place && !self.is_undone() && matches!(self.undo, Undo::Restore | Undo::File)
    }

    /// Whether nothing of it is left to take back.
    #[must_use]
    pub fn is_undone(&self) -> bool {
        self.undone.as_ref().is_some_and(|undone| {
            !matches!(undone.outcome, OutcomeKind::InUse | OutcomeKind::Failed) && !self.is_lost(undone)
        })
    }

    /// Whether taking it back was refused: by the kernel, or since the host would not have borne the value. Pages of a
    /// pool that are in use are not.
    #[must_use]
    pub fn is_refused(&self, undone: &Outcome) -> bool {
        match undone.outcome {
            OutcomeKind::Failed => true,
            OutcomeKind::InUse => self.undo == Undo::Restore,
            _ => false,
        }
    }

    /// Whether pages of a pool are all that is left of it: it was taken back, and a program used them then, or a line
    /// of others gave them.
    #[must_use]
    pub fn is_left_in_use(&self) -> bool {
        let is_in_use = |undone: &Outcome| undone.outcome == OutcomeKind::InUse;
        self.undo == Undo::Subtract && self.undone.as_ref().is_some_and(is_in_use)
    }

    /// Whether taking it back found no place any more where it had written. A file that is gone took all of ours along;
    /// a CPU that is offline, or a device, may come back with the value that it had. So may
    /// a thread of the kernel, which is not seen from everywhere.
    #[must_use]
    pub fn is_lost(&self, undone: &Outcome) -> bool {
        let written = |outcome: &Outcome| {
            matches!(outcome.outcome, OutcomeKind::Done | OutcomeKind::ReadsBack | OutcomeKind::TakenOver)
        };
        undone.outcome == OutcomeKind::Vanished
            && !self.undo.outlives_boot()
            && self.outcome.as_ref().is_some_and(written)
    }

    /// Whether an undo kept what someone else had set: by force it is still to be taken back.
    #[must_use]
    pub fn left_theirs(&self) -> bool {
        self.undone.as_ref().is_some_and(|undone| undone.outcome == OutcomeKind::Theirs)
    }
}

/// How an entry was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Closure {
    /// Undone: every step is back, or theirs was kept.
    Undone,
    /// Its run-time steps went with a reboot.
    GoneWithReboot,
    /// It never wrote anything.
    Empty,
    /// It acted and left no value: caches were dropped, memory was compacted.
    Acted,
    /// Another entry took its place: that one holds its originals, wherever it holds values.
    Replaced,
}

/// How the wait of an entry for a `planish confirm` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitEnd {
    /// Somebody confirmed it in time.
    Confirmed,
    /// Nobody did, and it was taken back. The moment of that, seconds since 1970.
    Lapsed(u64),
}

/// Whether an entry still holds something on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EntryState {
    /// Its values are on the host.
    Open,
    /// It waits for `planish confirm` and is undone at its deadline otherwise.
    Unconfirmed,
    /// planish was killed before the entry was complete: `undo` puts the host back.
    Interrupted,
    /// Nothing of it is on the host any more.
    Closed(Closure),
}

/// One apply: a line of `planish log`, and what `planish undo` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Its number.
    pub id: EntryId,
    /// Seconds since 1970.
    pub at: u64,
    /// The boot it was made in.
    pub boot_id: String,
    /// Who: user name and, under sudo, who called it.
    pub who: String,
    /// The command or trial that made it.
    pub command: String,
    /// The user's `--reason`.
    pub reason: Option<String>,
    /// The profile.
    pub profile: String,
    /// The plan.
    pub plan: PlanHash,
    /// What was allowed besides what is safe, when its plan was made.
    #[serde(default, skip_serializing_if = "Allowed::is_nothing")]
    pub allowed: Allowed,
    /// Steps in the order they were written.
    pub steps: Vec<EntryStep>,
    /// Deadline of the dead-man timer, seconds since 1970.
    pub confirm_by: Option<u64>,
    /// How its wait for a confirm ended; `None` where it waits, or never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_end: Option<WaitEnd>,
    /// While it waits for a confirm that is to persist it: what its plan has the next boot bring. A row of `skipped`
    /// that is satisfied is a value of it, whether it was written or not; `boot` are its boot parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_confirm: Option<Box<Plan>>,
    /// Whether it still holds something.
    pub state: EntryState,
    /// Whether an undo was begun that has not said how it ended: it may have written what no step tells.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undo_begun: bool,
    /// The host that it is of, hashed; not known of one of an older planish, and of a host without an id that lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The entry whose place it takes: that one stays open until this one holds all that it is to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<EntryId>,
    /// The entry that took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<EntryId>,
}

impl Entry {
    /// When it was taken back because nobody had confirmed it, seconds since 1970; `None` where that is not so.
    #[must_use]
    pub fn lapsed_at(&self) -> Option<u64> {
        match self.wait_end {
            Some(WaitEnd::Lapsed(at)) => Some(at),
            _ => None,
        }
    }

    /// Whether `undo` has something to do with it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self.state, EntryState::Closed(_))
    }

    /// Whether its undo went to its end and could not put all of it back, for which it is open still.
    #[must_use]
    pub fn is_undone_in_part(&self) -> bool {
        let is_left = |step: &EntryStep| step.undone.as_ref().is_some_and(|undone| step.is_refused(undone));
        self.state == EntryState::Open && self.steps.iter().any(is_left)
    }

    /// What whoever applied it allowed. An entry of an older planish does not say; what it has set was allowed, and of
    /// a class that nobody need allow nothing is named: to name a knob allows more, such as the card of one's own
    /// session.
    #[must_use]
    pub fn was_allowed(&self) -> Allowed {
        if !self.allowed.is_nothing() {
            return self.allowed.clone();
        }
        let is_set = |step: &&EntryStep| !step.is_undone() && !step.knob.is_persistence();
        let set = self.steps.iter().filter(|step| step.class != Class::Safe).filter(is_set);
        Allowed { classes: Vec::new(), knobs: set.map(|step| step.knob.clone()).collect() }
    }
}
