//! `--persist`: what brings the values back at the next boot.
//!
//! Each place is either written, or named with the reason and what to do instead: nothing that somebody wants to keep
//! is left out in silence. `/proc/sys` values go into `sysctl.d`; those of `/sys`, and the one of `/proc/irq` that
//! keeps its name, into `tmpfiles.d`. systemd reads both at boot, and so do others. Settings of network cards, which
//! are no files, and those of disks, which come and go, go into rules of udev: see [`crate::rules`]; a limit that a
//! process holds into a unit that starts it: see [`crate::holding`]. Boot parameters go to the boot loader: see
//! [`crate::boot`].

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use planish_act::Sink;
use planish_decide::Kept;
use planish_host::Host;
use planish_model::place::MOUNTS;
use planish_model::{
    BootLoader, Class, Cpus, DriftState, Entry, EntryStep, Knob, KnobCheck, KnobId, Observation, Part, Plan,
    PoolLine, RuleLine, Skipped, Step, Undo, Unpersisted, VerdictKind, size_of_line,
};
use planish_sorted::CollectMap as _;

use crate::boot;
use crate::devices;
use crate::error::PipelineError;
use crate::holding;
use crate::next_boot;
use crate::rules;
use crate::session::Session;

/// Where lines for `/proc/sys` go.
const SYSCTL_FILE: &str = "/etc/sysctl.d/90-planish.conf";
/// Where lines for `/sys` go.
const TMPFILES_FILE: &str = "/etc/tmpfiles.d/90-planish.conf";

/// What brings one value back.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Route {
    /// A line of `sysctl.d`.
    Sysctl(String),
    /// A line of `tmpfiles.d`.
    Tmpfiles(String),
    /// Pages of a pool: a line of `tmpfiles.d` with the sum of all entries that want some.
    Pool,
    /// A unit of systemd, which starts the process that holds it.
    Holder,
    /// A rule of udev, which sets a network card when it appears.
    Rule,
    /// A rule of udev, which sets a disk when it appears; this line of `tmpfiles.d` where there can be none.
    Disk(String),
    /// An argument of the kernel, from the boot loader.
    Boot,
    /// Nothing more: it is a file that is read at boot.
    Itself,
    /// Nothing that planish writes.
    Nothing {
        /// Why.
        reason: &'static str,
        /// What to do instead.
        cure: &'static str,
    },
}

/// What `--persist` comes to for a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Persistence {
    /// One step for each file that gets lines.
    pub steps: Vec<EntryStep>,
    /// What no file brings back.
    pub left_out: Vec<Unpersisted>,
    /// Arguments that the next boot gives the kernel.
    pub pending: Option<String>,
}

impl Persistence {
    /// Of everything that a plan writes, of what is as it wants already, and of the boot parameters that it wants.
    ///
    /// # Errors
    /// A boot loader that is not known or whose files may not be read, and a file of it that is cut off or odd.
    pub fn of(
        session: &Session,
        plan: &Plan,
        entries: &[Entry],
        sink: &dyn Sink,
    ) -> Result<Self, PipelineError> {
        let (persistence, refusal) = Self::look(session, plan, entries, sink)?;
        refusal.map_or(Ok(persistence), Err)
    }

    /// The same for a look: what keeps the boot loader from giving the boot parameters is told beside the rest, and
    /// they are left out for that reason.
    ///
    /// # Errors
    /// A knob that the catalogue does not have.
    pub fn look(
        session: &Session,
        plan: &Plan,
        entries: &[Entry],
        sink: &dyn Sink,
    ) -> Result<(Self, Option<PipelineError>), PipelineError> {
        let mut wishes =
            boot::Wishes::instead_of(plan.instead_of.as_ref().map(|instead| instead.entry), entries);
        let (mut sysctl, mut tmpfiles, mut rules) = (String::new(), String::new(), String::new());
        let (mut pools, mut ruled, mut holders) = (Vec::new(), Vec::new(), Vec::new());
        let mut left_out = nobody_named(session, plan)?;
        let mut observation: Option<Observation> = None;
        for (knob, place, value) in to_keep(plan, entries) {
            let row = session.sound_catalogue()?.knob(knob)?;
            match route_of(session, plan, (row, place, value), &mut observation) {
                Route::Sysctl(line) => sysctl += &line,
                Route::Tmpfiles(line) => tmpfiles += &line,
                Route::Rule => match rules::rule(session.host(), place, value) {
                    Ok(line) => {
                        rules += &line;
                        ruled.push(rule_line(session.host(), place, value));
                    }
                    Err(why) => left_out.push(unpersisted(knob, place, value, why)),
                },
                Route::Disk(line) => {
                    let (rule, line) = for_disk(session.host(), entries, (place, value), line);
                    ruled.extend(rule.is_some().then(|| rule_line(session.host(), place, value)));
                    rules.extend(rule);
                    tmpfiles.extend(line);
                }
                Route::Holder => match holding::steps(session.host(), value) {
                    Ok(files) => holders.extend(files),
                    Err(why) => left_out.push(unpersisted(knob, place, value, why)),
                },
                Route::Boot => {
                    let observation = observation.get_or_insert_with(|| session.observe());
                    wishes.add(row, place, value, observation);
                }
                Route::Pool => {
                    let observation = observation.get_or_insert_with(|| session.observe());
                    match pool_line(session, plan, place, entries, observation) {
                        Some(line) => pools.push(line),
                        None => left_out.push(unpersisted(knob, place, value, NOT_OURS)),
                    }
                }
                Route::Itself => {}
                Route::Nothing { reason, cure } => {
                    left_out.push(unpersisted(knob, place, value, (reason, cure)))
                }
            }
        }
        for (row, wanted) in not_given(plan) {
            let observation = observation.get_or_insert_with(|| session.observe());
            wishes.add_stale(session.sound_catalogue()?.knob(&row.knob)?, &row.place, wanted, observation);
        }
        let mut refusal = beyond_next_boot(session, plan, entries, &pools, observation.as_ref())?
            .or_else(|| starved_at_boot(session, plan, entries));
        let sysctl = file_step("persist.sysctl", SYSCTL_FILE, sysctl);
        let tmpfiles = EntryStep { pools, ..file_step("persist.tmpfiles", TMPFILES_FILE, tmpfiles) };
        let rules = EntryStep { rules: ruled, ..file_step("persist.udev", rules::RULES_FILE, rules) };
        let mut steps: Vec<EntryStep> = [sysctl, tmpfiles, rules].into_iter().chain(holders).collect();
        steps.retain(|step| !step.wanted.is_empty() || !step.pools.is_empty());
        let mut found = Self { steps, left_out, pending: None };
        let has_interrupts = found.left_out.iter().any(is_interrupt);
        if let Some(observation) = observation.or_else(|| has_interrupts.then(|| session.observe())) {
            found.add_boot(&wishes, session, (plan, &observation), (entries, sink), &mut refusal);
        }
        Ok((found, refusal))
    }

    /// Adds what the files of the boot loader get, and takes out what that keeps.
    fn add_boot(
        &mut self,
        wishes: &boot::Wishes,
        session: &Session,
        (plan, observation): (&Plan, &Observation),
        (entries, sink): (&[Entry], &dyn Sink),
        refusal: &mut Option<PipelineError>,
    ) {
        let (written, outside) = match wishes.clone().into_steps(session, &observation.boot, entries, sink) {
            Ok(given) => given,
            Err(error) => (Vec::new(), wishes.clone().left_out(refusal.get_or_insert(error))),
        };
        if !outside.iter().any(|left| left.place == INTERRUPTS_AT_BOOT) {
            let at_boot = interrupts_at_boot(plan, observation);
            self.left_out = without_kept_interrupts(mem::take(&mut self.left_out), at_boot.as_ref());
        }
        if !written.iter().any(|step| step.generator.is_some()) {
            self.left_out.extend_from_slice(wishes.stale());
        }
        self.pending = wishes.arguments().filter(|_| !written.is_empty());
        self.steps.extend(written);
        self.left_out.extend(outside);
    }
}

/// Where all interrupts begin at a boot.
const INTERRUPTS_AT_BOOT: &str = "cmdline:irqaffinity";

fn is_interrupt(left: &Unpersisted) -> bool {
    left.knob.as_str() == "irq.affinity"
}

/// What is left out, save interrupts that a boot keeps to CPUs of theirs: all of them begin with those of
/// `irqaffinity=`, where this plan or a file gives it.
fn without_kept_interrupts(left_out: Vec<Unpersisted>, at_boot: Option<&Cpus>) -> Vec<Unpersisted> {
    let is_kept = |left: &Unpersisted| {
        let cpus = at_boot.zip(Cpus::parse(&left.value));
        is_interrupt(left) && cpus.is_some_and(|(at_boot, cpus)| cpus.is_within(at_boot))
    };
    left_out.into_iter().filter(|left| !is_kept(left)).collect()
}

/// The CPUs that the next boot gives all interrupts. Of a file that has what this plan wants no menu may be made yet:
/// that is told of the parameter itself.
fn interrupts_at_boot(plan: &Plan, observation: &Observation) -> Option<Cpus> {
    let wanted = plan.boot.iter().map(|step| (&step.place, step.wanted.as_str()));
    let there = plan.skipped.iter().filter(|row| row.satisfied);
    let mut wanted = wanted.chain(there.filter_map(|row| Some((&row.place, row.wanted.as_deref()?))));
    let given = wanted.find_map(|(place, list)| (place == INTERRUPTS_AT_BOOT).then_some(list));
    let list = given.or_else(|| {
        let is_known = matches!(observation.boot, BootLoader::Known(_));
        let found = observation.persisted.get(INTERRUPTS_AT_BOOT).filter(|_| is_known)?;
        let is_wanted = not_given(plan).any(|(row, list)| {
            row.place == INTERRUPTS_AT_BOOT && Cpus::parse(list) == Cpus::parse(&found.value)
        });
        Some(found.at_boot.as_ref().filter(|_| !is_wanted).unwrap_or(&found.value))
    })?;
    Cpus::parse(list)
}

/// Boot parameters that a plan finds in no need of a step, and that do not run: a menu may lack them.
fn not_given(plan: &Plan) -> impl Iterator<Item = (&Skipped, &str)> {
    let of_boot = plan.skipped.iter().filter(|row| !row.satisfied && row.place.starts_with("cmdline:"));
    let without_step = of_boot.filter(|row| plan.boot.iter().all(|step| step.place != row.place));
    without_step.filter_map(|row| Some((row, row.wanted.as_deref()?)))
}

fn rule_line(host: &Host, place: &str, value: &str) -> RuleLine {
    RuleLine { place: place.to_owned(), value: value.to_owned(), device: devices::id(host, place) }
}

/// The rule for a value of a disk, and the line of `tmpfiles.d`: where there is no rule, and where an older planish had
/// the value there, since the two must not be at odds.
fn for_disk(
    host: &Host,
    entries: &[Entry],
    (place, value): (&str, &str),
    line: String,
) -> (Option<String>, Option<String>) {
    let rule = rules::disk_rule(host, place, value);
    let line = (rule.is_none() || has_line(entries, TMPFILES_FILE, place)).then_some(line);
    (rule, line)
}

/// Whether a file of ours has a line for a place, by an entry that is there.
fn has_line(entries: &[Entry], file: &str, place: &str) -> bool {
    let steps = entries.iter().filter(|entry| entry.is_open()).flat_map(|entry| &entry.steps);
    let mut steps = steps.filter(|step| step.place == file && step.is_in_file() && !step.is_undone());
    steps.any(|step| step.lines().any(|(other, _)| other == place))
}

/// What is to be so at the next boot too: what is written now and does not go back, what is there as it is wanted, what
/// an entry that is open asked for in vain, and boot parameters.
fn to_keep<'a>(
    plan: &'a Plan,
    entries: &'a [Entry],
) -> impl Iterator<Item = (&'a KnobId, &'a String, &'a str)> {
    let wanted = plan.steps.iter().filter(|step| step.part != Some(Part::Back));
    let planned = wanted.map(|step| (&step.knob, &step.place, step.wanted.as_str()));
    let may =
        |skipped: &&Skipped| skipped.satisfied && skipped.not_to_keep.is_none() && means_something(skipped);
    let there = plan.skipped.iter().filter(may);
    let there = there.filter_map(|row| Some((&row.knob, &row.place, row.wanted.as_deref()?)));
    let at_boot = plan.boot.iter().map(|step| (&step.knob, &step.place, step.wanted.as_str()));
    let asked = plan.skipped.iter().filter_map(|row| {
        let step = asked_in_vain(row, entries)?;
        Some((&row.knob, &row.place, step.wanted.as_str()))
    });
    planned.chain(there).chain(asked).chain(at_boot)
}

/// Whether a place that is as wanted is so by more than chance. What means nothing here, or is for others to set, is
/// written by no apply: where a write beside it has it as wanted, a line for it would come of the second apply and not
/// of the first.
fn means_something(row: &Skipped) -> bool {
    use VerdictKind::{Absent, Firmware, Host, Moot, NotRecorded};
    !matches!(row.verdict.verdict, Moot | Host | Firmware | Absent | NotRecorded)
}

/// What lines of files are for, of a plan that is to be persisted, beside its steps: who writes such a place over at a
/// boot is a second writer as much as one of a step's.
pub(crate) fn kept<'a>(
    session: &Session,
    plan: &'a Plan,
    entries: &'a [Entry],
    observation: &Observation,
) -> Vec<Kept<'a>> {
    let host = session.host();
    let is_new = |place: &str| plan.steps.iter().chain(&plan.boot).all(|step| step.place != place);
    let comes = |place: &str| observation.persisted.contains_key(place);
    let route = |knob: &KnobId, place: &str, value: &str| match session.catalogue().knob(knob) {
        Ok(knob) if is_of_start(knob, value) => of_start(knob, place, value, observation),
        _ => route(place, value),
    };
    let has_line = |knob: &KnobId, place: &str, value: &str| match route(knob, place, value) {
        Route::Sysctl(_) | Route::Tmpfiles(_) | Route::Disk(_) => true,
        Route::Rule => rules::rule(host, place, value).is_ok(),
        Route::Holder => holding::steps(host, value).is_ok(),
        Route::Pool => pool_line(session, plan, place, entries, observation).is_some(),
        Route::Boot => !comes(place),
        Route::Itself | Route::Nothing { .. } => false,
    };
    let rows =
        to_keep(plan, entries).filter(|(knob, place, value)| is_new(place) && has_line(knob, place, value));
    rows.map(|(knob, place, wanted)| Kept { knob, place, wanted }).collect()
}

/// What brings a value back that a plan keeps. The host is looked at where that decides.
fn route_of(
    session: &Session,
    plan: &Plan,
    (knob, place, value): (&Knob, &str, &str),
    observation: &mut Option<Observation>,
) -> Route {
    match plan.boot.iter().any(|step| step.place == place) {
        true => Route::Boot,
        false if is_of_start(knob, value) => {
            of_start(knob, place, value, observation.get_or_insert_with(|| session.observe()))
        }
        false => route(place, value),
    }
}

/// Whether a value is taken up when a boot starts its module, and not from a file that is read after that: the place
/// shows what was written, and the devices run with what they began with.
fn is_of_start(knob: &Knob, value: &str) -> bool {
    knob.is_given_at_boot() && knob.boot_parameter().is_none() && knob.argument(value).is_some()
}

/// What brings such a value back that is there: nothing, as long as nothing gives the module another one.
fn of_start(knob: &Knob, place: &str, value: &str, observation: &Observation) -> Route {
    let given = observation.persisted.get(place).map(|given| given.value.as_str());
    let may = observation.undecided.get(place).into_iter().flatten().map(|may| may.value.as_str());
    match given.into_iter().chain(may).any(|given| !knob.r#type.same(given, value)) {
        true => Route::Boot,
        false => Route::Itself,
    }
}

/// The step by which an open entry asked for what a row wants, and did not get it. What a plan file says of that counts
/// for nothing without the journal.
fn asked_in_vain<'a>(row: &Skipped, entries: &'a [Entry]) -> Option<&'a EntryStep> {
    let id = row.asked_by.filter(|_| !row.satisfied)?;
    let entry = entries.iter().find(|entry| entry.id == id && entry.is_open())?;
    entry.steps.iter().find(|step| {
        let is_short = step.outcome.as_ref().is_some_and(|outcome| outcome.short.is_some());
        step.place == row.place && !step.is_undone() && (is_short || step.made_otherwise())
    })
}

/// What is as wanted and is not to be kept, since nobody named its knob. What a file of an earlier apply brings back
/// comes by that one, and nothing of it is missing.
fn nobody_named(session: &Session, plan: &Plan) -> Result<Vec<Unpersisted>, PipelineError> {
    let rows = plan.skipped.iter().filter(|row| row.satisfied);
    let rows: Vec<(&Skipped, &str, &str)> =
        rows.filter_map(|row| Some((row, row.wanted.as_deref()?, row.not_to_keep.as_deref()?))).collect();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let persisted = session.observe().persisted;
    let mut left_out = Vec::new();
    for (row, wanted, why) in rows {
        let kind = &session.sound_catalogue()?.knob(&row.knob)?.r#type;
        let comes = persisted.get(&row.place).is_some_and(|found| kind.same(&found.value, wanted));
        if !comes {
            let cure = format!("apply with --persist --allow-knob {}", row.knob);
            left_out.push(unpersisted(&row.knob, &row.place, wanted, (why, &cure)));
        }
    }
    Ok(left_out)
}

/// Why a pool gets no line, and what to do instead.
const NOT_OURS: (&str, &str) = (
    "none of its pages were reserved for this profile: a file would take those of others for ours",
    "whoever reserved them makes them last; or apply this profile again when they are gone",
);

fn unpersisted(knob: &KnobId, place: &str, value: &str, (reason, cure): (&str, &str)) -> Unpersisted {
    Unpersisted {
        knob: knob.clone(),
        place: place.to_owned(),
        value: value.to_owned(),
        reason: reason.to_owned(),
        cure: cure.to_owned(),
    }
}

/// What runs as wanted until the next boot, although no file that planish writes could bring it back. `None` for all
/// that `--persist` helps, or that a file of the host will set.
pub(crate) fn kept_by_no_file(host: &Host, check: &KnobCheck) -> Option<Unpersisted> {
    let value = check.wanted.as_deref().or(check.running.as_deref())?;
    if check.state != DriftState::LostAtBoot || check.next_boot.is_some() {
        return None;
    }
    match route(&check.place, value) {
        Route::Nothing { reason, cure } => {
            Some(unpersisted(&check.knob, &check.place, value, (reason, cure)))
        }
        Route::Holder => {
            let why = holding::steps(host, value).err()?;
            Some(unpersisted(&check.knob, &check.place, value, why))
        }
        Route::Rule => {
            let why = rules::rule(host, &check.place, value).err()?;
            Some(unpersisted(&check.knob, &check.place, value, why))
        }
        _ => None,
    }
}

/// Refuses lines and arguments for pools that are, with all that the next boot gives besides, more than its memory.
fn beyond_next_boot(
    session: &Session,
    plan: &Plan,
    entries: &[Entry],
    pools: &[PoolLine],
    observation: Option<&Observation>,
) -> Result<Option<PipelineError>, PipelineError> {
    // Nothing of the plan is of a pool or of the boot.
    let Some(observation) = observation else { return Ok(None) };
    let catalogue = session.sound_catalogue()?;
    let goes = |entry: &&Entry| plan.instead_of.as_ref().is_some_and(|instead| instead.entry == entry.id);
    let stays = entries.iter().filter(|entry| entry.is_open() && !goes(entry));
    let steps = stays.flat_map(|entry| &entry.steps).filter(|step| step.is_in_file() && !step.is_undone());
    let known: Vec<&PoolLine> = steps.flat_map(|step| &step.pools).collect();
    // The file has one line for each pool, for all entries.
    let size = |line: &PoolLine| {
        let older = known.iter().copied().filter(|known| known.place == line.place);
        size_of_line(older.chain([line])).map(|size| (line.place.clone(), size))
    };
    let lines: BTreeMap<String, u64> = pools.iter().filter_map(size).collect_map();
    let is_pool = |step: &&Step| {
        let parameter = catalogue.knob(&step.knob).ok().and_then(Knob::boot_parameter);
        matches!(parameter, Some(("hugepages" | "hugetlb_cma", _)))
    };
    let is_line = |knob: &&Step| lines.contains_key(&knob.place);
    let knobs = plan.boot.iter().filter(is_pool).chain(plan.steps.iter().filter(is_line));
    let knobs: BTreeSet<KnobId> = knobs.map(|step| step.knob.clone()).collect();
    // What comes without us is nothing that a plan could be refused for.
    if knobs.is_empty() {
        return Ok(None);
    }
    let why = planish_decide::beyond_next_boot(catalogue, observation, &plan.boot, &lines);
    Ok(why.map(|why| PipelineError::BeyondNextBoot { knobs: knobs.into_iter().collect(), why }))
}

/// Refuses lines for a mode or its limit that hold programs at the next boot to less than they are promised now: one of
/// the two may be in force without a file.
fn starved_at_boot(session: &Session, plan: &Plan, entries: &[Entry]) -> Option<PipelineError> {
    let catalogue = session.catalogue();
    let lines = to_keep(plan, entries).filter(|(knob, ..)| planish_decide::holds(catalogue, knob).is_some());
    let lines: Vec<(&KnobId, &String, &str)> = lines.collect();
    // What comes without us is nothing that a plan could be refused for.
    if lines.is_empty() {
        return None;
    }
    let knobs = lines.iter().map(|(knob, ..)| (*knob).clone()).collect();
    let lines = lines.into_iter().map(|(_, place, value)| (place.clone(), value.to_owned())).collect_map();
    next_boot::starves(session, &lines).map(|why| PipelineError::BeyondNextBoot { knobs, why })
}

/// What this plan adds to the line of a pool: the pages that it raises the pool by, those that the same profile
/// holds already, and those that it asked for and memory did not give, as far as no file has them yet. Nobody else's
/// pages: what others reserved by hand is gone at the next boot, with or without us. `None` where the profile has none
/// there at all.
fn pool_line(
    session: &Session,
    plan: &Plan,
    place: &str,
    entries: &[Entry],
    observation: &Observation,
) -> Option<PoolLine> {
    let step = plan.steps.iter().find(|step| step.place == place);
    let raise = step.map(|step| step.raise_pages.unwrap_or(0) + step.takes_pages.unwrap_or(0));
    let row = plan.skipped.iter().find(|row| row.place == place && row.asked_by.is_some() && !row.satisfied);
    // What an entry of another profile asked for in vain is in its own line already.
    let is_in_line = |row: &&Skipped| {
        let asked =
            entries.iter().find(|entry| Some(entry.id) == row.asked_by && entry.profile != plan.profile);
        let files =
            asked.iter().flat_map(|entry| &entry.steps).filter(|step| step.is_in_file() && !step.is_undone());
        files.flat_map(|step| &step.pools).any(|line| line.place == place)
    };
    let lacking = row.filter(|row| !is_in_line(row)).and_then(|row| pages_lacking(row, observation));
    let holding = session.holding(entries);
    // What an entry has that goes for this plan is what the plan takes of it, and no more.
    let goes = |entry: &Entry| plan.instead_of.as_ref().is_some_and(|instead| instead.entry == entry.id);
    let own = |entry: &&Entry| entry.profile == plan.profile && !goes(entry);
    let held = holding.iter().filter(own).flat_map(|entry| &entry.steps);
    let held = held.filter(|step| step.undo == Undo::Subtract && step.place == place && !step.is_undone());
    let held: Vec<&EntryStep> = held.collect();
    let of_steps = held.iter().filter_map(|step| step.in_all).max();
    let held: u64 = held.into_iter().map(EntryStep::pages_in_force).sum();
    let open = entries.iter().filter(|entry| entry.is_open());
    let files = open.filter(own).flat_map(|entry| &entry.steps);
    let lines = files.filter(|step| step.is_in_file() && !step.is_undone()).flat_map(|step| &step.pools);
    let persisted: u64 = lines.filter(|line| line.place == place).map(|line| line.pages).sum();
    let pages = raise.or(lacking).unwrap_or(0).saturating_add(held).saturating_sub(persisted);
    let others = observation.pool_by_others(place).map_or(0, |(pages, _)| pages);
    // A profile that wants pages for itself by now wants no size in all any more.
    let in_all = step.map_or(of_steps, |step| step.in_all);
    let place = place.to_owned();
    let line = PoolLine { place, pages, others, in_all, before: None };
    (pages > 0 || persisted > 0).then_some(line)
}

/// Pages that a pool is short of, which a plan wants of it and does not ask for again.
pub(crate) fn pages_lacking(row: &Skipped, observation: &Observation) -> Option<u64> {
    let pool = observation.pools.iter().find(|pool| pool.place == row.place)?;
    let wanted = row.wanted.as_deref()?.trim().parse::<u64>().ok()?;
    Some(wanted.saturating_sub(pool.pages.saturating_sub(pool.surplus)))
}

/// Why an option of a mount gets no line, and what to do instead.
const OF_MOUNT: Route = Route::Nothing {
    reason: "a line of /etc/fstab, or a unit, has all options of a mount: planish writes into neither",
    cure: "add the option to those that stand there in /etc/fstab, or in Options= of the unit; or apply again after \
           each boot",
};

/// What brings a value back at a place.
fn route(place: &str, value: &str) -> Route {
    if value.contains('\n') {
        return Route::Nothing {
            reason: "a value of several lines fits into no line of sysctl.d or tmpfiles.d",
            cure: "apply again after each boot, from a unit of your own",
        };
    }
    if let Some(name) = place.strip_prefix("/proc/sys/") {
        // Both readers take slashes; dots would be ambiguous in names such as eth0.100.
        let name = if name.contains('.') { name.to_owned() } else { name.replace('/', ".") };
        return Route::Sysctl(format!("{name} = {value}\n"));
    }
    if rules::is_for(place) {
        return Route::Rule;
    }
    if holding::is_for(place) {
        return match holding::is_limit(value) {
            true => Route::Holder,
            false => Route::Nothing {
                reason: "every boot begins without such a limit",
                cure: "undo the entry whose unit starts the process that holds one, where there is one",
            },
        };
    }
    if place.starts_with("/sys/") && place.ends_with("/nr_hugepages") {
        return Route::Pool;
    }
    if place.starts_with(MOUNTS) {
        return OF_MOUNT;
    }
    if place.starts_with("/sys/fs/cgroup/") {
        return Route::Nothing {
            reason: "control groups are made anew at each boot, and as members",
            cure: "apply again after each boot; systemd since 261 makes the partition of planish.slice by itself, and \
                   isolcpus= (boot.isolcpus) isolates from the boot on",
        };
    }
    if place.starts_with("/sys/class/scsi_disk/") {
        return Route::Nothing {
            reason: "the numbers of SCSI disks are given anew at each boot, and a line may set another disk",
            cure: "most drives keep it by themselves; see after a boot whether this one did",
        };
    }
    if let Some(route) = without_files(place) {
        return route;
    }
    if place.starts_with("/sys/") || place == "/proc/irq/default_smp_affinity" {
        return match tmpfiles(place, value) {
            Route::Tmpfiles(line) if rules::is_of_disk(place) => Route::Disk(line),
            route => route,
        };
    }
    if place.starts_with("/proc/irq/") {
        return Route::Nothing {
            reason: "the kernel numbers interrupts anew at each boot: a file would mean another device",
            cure: "apply again after each boot; the boot parameter irqaffinity= (boot.irqaffinity) holds for all",
        };
    }
    if place.starts_with("cmdline:") {
        return Route::Boot;
    }
    if place.starts_with("/etc/systemd/system/") || place.starts_with("/etc/systemd/system.conf.d/") {
        return Route::Itself;
    }
    Route::Nothing {
        reason: "no file that is read at boot sets this place",
        cure: "apply again after each boot, from a unit of your own",
    }
}

/// The route of what is no file: no line of a file can set it.
fn without_files(place: &str) -> Option<Route> {
    if place.starts_with(planish_model::place::RESCTRL) {
        return Some(Route::Nothing {
            reason: "resctrl is mounted empty at each boot, and no file that is read at boot makes its groups",
            cure: "have it mounted at boot (a line of /etc/fstab), and apply again after each boot",
        });
    }
    place.starts_with(planish_model::place::THREADS).then_some(Route::Nothing {
        reason: "the kernel makes its threads anew at each boot, and no file that is read at boot schedules them",
        cure: "apply again after each boot",
    })
}

/// A line of `tmpfiles.d`, which takes paths for shell patterns, and takes specifiers and escapes apart.
fn tmpfiles(place: &str, value: &str) -> Route {
    if place.contains(|c: char| c.is_whitespace() || "*?[]{}\"'\\".contains(c)) {
        return Route::Nothing {
            reason: "tmpfiles.d would take the name of the place for a pattern",
            cure: "apply again after each boot, from a unit of your own",
        };
    }
    let literal = |text: &str| text.replace('\\', "\\\\").replace('%', "%%");
    Route::Tmpfiles(format!("w {} - - - - {}\n", literal(place), literal(value)))
}

/// A step for a file of ours that gets these lines.
pub(crate) fn file_step(knob: &str, path: &str, lines: String) -> EntryStep {
    EntryStep::new(KnobId::new(knob), path.to_owned(), lines, Class::Safe, Undo::File)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_one_way() {
        let line = |place, value| match route(place, value) {
            Route::Sysctl(line) | Route::Tmpfiles(line) => line,
            Route::Boot => "boot".to_owned(),
            Route::Pool => "pool".to_owned(),
            Route::Rule => "rule".to_owned(),
            Route::Disk(line) => format!("rule or {line}"),
            Route::Holder => "holder".to_owned(),
            Route::Itself => "itself".to_owned(),
            Route::Nothing { reason, cure } => {
                assert!(!reason.is_empty() && !cure.is_empty());
                String::new()
            }
        };
        assert_eq!(line("/proc/sys/vm/swappiness", "10"), "vm.swappiness = 10\n");
        let vlan = "/proc/sys/net/ipv4/conf/eth0.1/rp_filter";
        assert_eq!(line(vlan, "0"), "net/ipv4/conf/eth0.1/rp_filter = 0\n");
        let default = "/proc/irq/default_smp_affinity";
        assert_eq!(line(default, "f"), format!("w {default} - - - - f\n"));
        assert_eq!(line("/sys/x", "50%"), "w /sys/x - - - - 50%%\n");
        let partition = "/sys/fs/cgroup/planish.slice/cpuset.cpus.partition";
        assert_eq!(line(partition, "isolated"), "");
        for place in [
            "/proc/irq/24/smp_affinity_list",
            "/dev/cpu_dma_latency",
            "/sys/a b",
            "/planish/resctrl/default",
            "/planish/resctrl/groups/planish-a",
            "/planish/threads/ksoftirqd/0",
        ] {
            assert_eq!(line(place, "1"), "", "{place}");
        }
        assert_eq!(line("cmdline:nosmt", "1"), "boot");
        assert_eq!(line("/planish/ethtool/eth0/rings_rx", "1"), "rule");
        let disk = "/sys/block/sda/queue/scheduler";
        assert_eq!(line(disk, "none"), format!("rule or w {disk} - - - - none\n"));
        assert_eq!(line("/planish/held/cpu_dma_latency_us", "20"), "holder");
        assert_eq!(line("/planish/held/cpu_dma_latency_us", "2000000000"), "");
        assert_eq!(line("/planish/mounts/dev-shm/size", "1073741824"), "");
        assert_eq!(line("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "1"), "pool");
        let lent = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";
        assert_eq!(line(lent, "1"), format!("w {lent} - - - - 1\n"));
        assert_eq!(line("/etc/systemd/system/a.service.d/zz-planish.conf", "CPUAffinity=1"), "itself");
        assert_eq!(line("/etc/systemd/system.conf.d/zz-planish.conf", "CPUAffinity=1"), "itself");
        assert_eq!(line("/proc/sys/kernel/core_pattern", "a\nb"), "");
    }
}
