//! From a plan to the intent of an entry: the last look at the host before the first write.

use std::collections::{BTreeMap, BTreeSet};

use planish_act::{Sink, stack};
use planish_host::Access;
use planish_journal::Intent;
use planish_model::{
    Catalogue, Class, Coupling, Entry, EntryStep, Knob, KnobId, NOT_GIVEN, Observation, Original, Part, Plan,
    PoolReading, Skipped, Step, Undo, place,
};
use planish_sorted::CollectMap as _;

use crate::apply::goes;
use crate::error::PipelineError;
use crate::session::Session;
use crate::{devices, pools, transition};

/// The intent of what no plan asked for: an action, a move, files of a program. It is called by a name in the place of
/// a profile, and no deadline undoes it.
pub(crate) fn unplanned(
    session: &Session,
    name: &str,
    reason: Option<&str>,
    steps: Vec<EntryStep>,
) -> Intent {
    let (host, boot) = (session.host().host_id(), session.host().boot_id());
    let plan = Plan::new(name.to_owned(), host, boot, Vec::new(), Vec::new());
    Intent {
        command: session.options.command.clone(),
        reason: reason.map(str::to_owned),
        profile: plan.profile,
        plan: plan.hash,
        allowed: plan.allowed,
        instead_of: None,
        confirm_by: None,
        on_confirm: None,
        steps,
    }
}

/// Refuses a plan that is not for this host and this boot of it.
///
/// # Errors
/// It is for another one, or was changed since it was hashed.
pub fn refuse_elsewhere(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    if !plan.is_intact() {
        return Err(PipelineError::Edited { hash: plan.hash.to_string() });
    }
    if is_of_another_host(session, plan) {
        return Err(PipelineError::Elsewhere { what: "host" });
    }
    if plan.boot_id != session.host().boot_id() {
        return Err(PipelineError::Elsewhere { what: "boot of this host" });
    }
    Ok(())
}

/// Whether a plan has the places and sizes of another host.
pub(crate) fn is_of_another_host(session: &Session, plan: &Plan) -> bool {
    plan.host_id != session.host().host_id()
}

/// Refuses steps that no plan of this catalogue can hold. A hash proves that a file was not changed after it was
/// hashed, and nothing about who made it; root must not write `/proc/sysrq-trigger` because a file says so.
///
/// # Errors
/// The place of such a step, and why no plan holds it; a catalogue that is not sound.
pub fn refuse_forged(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    let catalogue = session.sound_catalogue()?;
    for step in plan.steps.iter().chain(&plan.boot) {
        let forged = |why: String| PipelineError::Forged { place: step.place.clone(), why };
        let knob = catalogue.knob(&step.knob)?;
        if place::captures(&knob.path, &step.place).is_none() {
            return Err(forged(format!("no place of {}", knob.id)));
        }
        // What the host itself makes of a value is not looked at here: it may need leave where the row needs none.
        let least = match step.part {
            Some(Part::Back) => knob.class,
            _ => planish_decide::class_by_value(knob, &step.now, &step.wanted),
        };
        let by_host = knob.may_need_leave() && matches!(step.class, Class::Availability | Class::Durability);
        if !(step.class == least || (least == knob.class && by_host)) || step.undo != knob.undo {
            return Err(forged(format!("{} is of class {least:?} here", knob.id).to_lowercase()));
        }
        if matches!(knob.class, Class::Oneway | Class::Action) {
            return Err(forged(format!("{} cannot be undone", knob.id)));
        }
        // A pool is held by nobody beside its owner.
        let is_beside =
            step.beside.is_some() && step.part == Some(Part::TakenOver) && step.undo != Undo::Subtract;
        let takes = step.part.is_some() || step.takes_pages.is_some();
        if (plan.instead_of.is_none() && takes && !is_beside) || (step.beside.is_some() && !is_beside) {
            return Err(forged("it takes the place of no entry".to_owned()));
        }
        // What was there before an entry may be beyond what anybody may want; the journal is asked whether it was.
        if step.part != Some(Part::Back) {
            knob.validate(&step.wanted).map_err(|error| forged(error.to_string()))?;
        }
        // Nothing is looked at or refused for the sake of a value that is there already, so it has to be.
        let is_there = match step.undo {
            Undo::Subtract => step.raise_pages == Some(0),
            _ => knob.r#type.same(&step.now, &step.wanted),
        };
        if step.part == Some(Part::TakenOver) && !is_there {
            return Err(forged("it is taken over, and not there as wanted".to_owned()));
        }
        unlike_a_pool(step).map_or(Ok(()), |why| Err(forged(why)))?;
        for other in &step.coupled {
            if !is_coupled(catalogue, knob, step, other)? {
                return Err(forged(format!("{} is not coupled with it so", other.place)));
            }
        }
    }
    for step in &plan.boot {
        let forged = |why: &str| PipelineError::Forged { place: step.place.clone(), why: why.to_owned() };
        if catalogue.knob(&step.knob)?.argument(&step.wanted).is_none() {
            return Err(forged("no argument of the kernel sets it"));
        }
    }
    refuse_twice(plan)?;
    refuse_forged_lines(session, plan)
}

/// Refuses a place that a plan names twice: each step is reviewed, and looked at, as if the others were not there. Two
/// steps for one pool, each `0 -> 10`, would end at 20.
fn refuse_twice(plan: &Plan) -> Result<(), PipelineError> {
    plan.named_twice().map_or(Ok(()), |(place, _)| {
        let why = "the plan names it twice".to_owned();
        Err(PipelineError::Forged { place: place.to_owned(), why })
    })
}

/// Why the pages of a step are not those that its `now` and `wanted` show, which is what people review. Pages that
/// are only lent are part of `now` and not of `wanted`; how many there are is looked at with the host in hand.
fn unlike_a_pool(step: &Step) -> Option<String> {
    if step.undo != Undo::Subtract {
        let of_pool = step.raise_pages.or(step.in_all);
        return of_pool.map(|_| "only a pool is raised by pages".to_owned());
    }
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (now, wanted) = (number(&step.now), number(&step.wanted));
    let sound = now.zip(wanted).zip(step.raise_pages).is_some_and(|((now, wanted), raise)| {
        // Where all of it is there, what the entry that goes has besides leaves the pool.
        let least = if raise == 0 && step.takes_pages.is_some() { 1 } else { raise };
        least > 0 && now.checked_add(raise).is_some_and(|most| (least..=most).contains(&wanted))
    });
    // Each boot would have it, and nobody reads it in the table of the plan.
    if let Some(all) = step.in_all.filter(|all| wanted.is_none_or(|wanted| *all > wanted)) {
        return Some(format!("{all} pages in all are more than `{}`", step.wanted.trim()));
    }
    let raise = step.raise_pages.map_or_else(|| "no".to_owned(), |pages| pages.to_string());
    (!sound)
        .then(|| format!("{raise} pages more than `{}` are not `{}`", step.now.trim(), step.wanted.trim()))
}

/// Whether the catalogue couples a place with that of a step, and in the way that the step tells.
fn is_coupled(
    catalogue: &Catalogue,
    knob: &Knob,
    step: &Step,
    other: &planish_model::Coupled,
) -> Result<bool, PipelineError> {
    let known = match other.coupling {
        Coupling::Twin => knob.twin.as_ref() == Some(&other.knob),
        Coupling::Alias => knob.alias.contains(&other.knob),
        Coupling::Derived => knob.derives.contains(&other.knob),
    };
    let holes = place::captures(&knob.path, &step.place).unwrap_or_default();
    let path = place::fill(&catalogue.knob(&other.knob)?.path, &holes);
    Ok(known && place::captures(&path, &other.place).is_some())
}

/// The same for values that are as wanted already: the hash does not cover them, and `--persist` writes them into
/// files that are read at every boot.
fn refuse_forged_lines(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    let catalogue = session.sound_catalogue()?;
    for skipped in plan.skipped.iter().filter(|skipped| skipped.satisfied) {
        let forged = |why: String| PipelineError::Forged { place: skipped.place.clone(), why };
        let knob = catalogue.knob(&skipped.knob)?;
        if place::captures(&knob.path, &skipped.place).is_none() {
            return Err(forged(format!("no place of {}", knob.id)));
        }
        if matches!(knob.class, Class::Oneway | Class::Action) {
            return Err(forged(format!("{} cannot be undone", knob.id)));
        }
        let Some(wanted) = &skipped.wanted else { continue };
        knob.validate(wanted).map_err(|error| forged(error.to_string()))?;
    }
    Ok(())
}

/// Refuses a plan without a step when that is because nothing of it may be written: "nothing to do" would be a green
/// light for a container with a read-only `/proc/sys`. What somebody left out, or did not allow, is no part of it.
pub(crate) fn refuse_blocked(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    if !plan.steps.is_empty() {
        return Ok(());
    }
    for skipped in plan.skipped.iter().filter(|skipped| !skipped.satisfied && skipped.hindered) {
        if matches!(session.host().access(&skipped.place), Access::ReadOnlyMount | Access::Denied(_)) {
            refuse_unwritable(session, &skipped.place)?;
        }
    }
    Ok(())
}

/// Refuses a plan of which a part is impossible on its host: what is left of it is not what was asked for, and whoever
/// asked has another host in mind.
///
/// # Errors
/// The knobs, each with its reason.
pub fn refuse_impossible(plan: &Plan) -> Result<(), PipelineError> {
    let rows: Vec<&Skipped> = plan.skipped.iter().filter(|row| row.impossible && !row.satisfied).collect();
    let told: BTreeSet<String> =
        rows.iter().map(|row| format!("{}: {}", row.knob, row.verdict.reason)).collect();
    if told.is_empty() {
        return Ok(());
    }
    let why = told.into_iter().collect::<Vec<_>>().join("; ");
    Err(PipelineError::Impossible { knobs: each_once(rows.iter().map(|row| &row.knob)), why })
}

/// Refuses a plan with a pool that memory could not give when it was made: its other values alone are not what was
/// asked for, and a service that starts on small pages, or not at all, would find everything green.
///
/// # Errors
/// The pools, each with its reason.
pub fn refuse_short_of_memory(plan: &Plan) -> Result<(), PipelineError> {
    let short: Vec<&Skipped> =
        plan.skipped.iter().filter(|row| row.short_of_memory && !row.satisfied).collect();
    if short.is_empty() {
        return Ok(());
    }
    let told: BTreeSet<String> =
        short.iter().map(|row| format!("{}: {}", row.knob, row.verdict.reason)).collect();
    let why = told.into_iter().collect::<Vec<_>>().join("; ");
    Err(PipelineError::NoMemory { knobs: each_once(short.iter().map(|row| &row.knob)), why })
}

/// Each of them once.
fn each_once<'a>(knobs: impl Iterator<Item = &'a KnobId>) -> Vec<KnobId> {
    knobs.collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

/// Notes values that the plan found as wanted and that are not so any more.
///
/// Pools matter only to files that bring them back, which must hold no number that the host does not show: the hash of
/// a plan does not cover these rows, and pages that are too many keep the next boot from coming up. Otherwise others
/// may raise and lower them, since a plan wants no more of them than its own need. The same goes for boot parameters.
fn look_at_satisfied(
    session: &Session,
    plan: &Plan,
    (observation, open): (&Observation, &[Entry]),
    persist: bool,
    sink: &dyn Sink,
    moved: &mut Vec<String>,
) -> Result<(), PipelineError> {
    // What a pool has of an entry whose place the plan takes goes with that.
    let going = |place: &str| goes(plan).map_or(0, |old| transition::pages_held(old, place, open));
    for skipped in plan.skipped.iter().filter(|skipped| skipped.satisfied) {
        let Some(wanted) = &skipped.wanted else { continue };
        let knob = session.sound_catalogue()?.knob(&skipped.knob)?;
        if knob.undo == Undo::Restore && knob.boot_parameter().is_none() {
            look(session, sink, &skipped.knob, &skipped.place, wanted, None, moved)?;
        } else if persist && !shows(observation, knob, &skipped.place, (wanted, going(&skipped.place))) {
            moved.push(format!("{} is not `{}` any more, as the plan saw", skipped.place, wanted.trim()));
        }
    }
    Ok(())
}

/// Whether a pool, without the pages that are only lent and those that go, or a boot parameter is as wanted.
fn shows(observation: &Observation, knob: &Knob, place: &str, (wanted, going): (&str, u64)) -> bool {
    if let Some(pool) = observation.pools.iter().find(|pool| pool.place == place) {
        return wanted.trim().parse() == Ok(pool.persistent().saturating_sub(going));
    }
    let now = observation.reading(&knob.id, place).and_then(|reading| reading.value.as_deref());
    now.is_some_and(|now| knob.r#type.same(now, wanted))
}

/// The steps of an entry, with every original as the host shows it at this moment.
///
/// Refuses before anything is written: a place that we may not write, a host that shows anything else than the plan
/// saw in any place that it names, and pools that the memory of this moment cannot give. Which other places a step
/// changes is a matter of the catalogue and never of a plan file: undo would lack their originals.
pub(crate) fn steps(
    session: &Session,
    plan: &Plan,
    open: &[Entry],
    persist: bool,
    sink: &dyn Sink,
) -> Result<Vec<EntryStep>, PipelineError> {
    let (mut moved, mut steps, given) = (Vec::new(), Vec::new(), session.given_pools());
    let catalogue = session.sound_catalogue()?;
    let written = plan.steps.iter().filter_map(|step| catalogue.knob(&step.knob).ok());
    let mut asked: BTreeSet<&KnobId> = written.flat_map(Knob::coupled).collect();
    // What a machine has at a place is read beside it.
    let between = |id: &&KnobId| catalogue.knob(id).is_ok_and(|knob| knob.between.is_some());
    asked.extend(plan.steps.iter().map(|step| &step.knob).filter(between));
    if persist {
        let kept = plan.skipped.iter().filter(|row| row.satisfied || row.asked_by.is_some());
        asked.extend(kept.map(|row| &row.knob));
    }
    let mut observation = planish_observe::glance(session.host(), catalogue, |knob| asked.contains(&knob.id));
    session.observe_file_limits(plan.steps.iter().map(|step| &step.knob), &mut observation);
    for step in &plan.steps {
        if step.undo == Undo::File {
            steps.push(own_file(step, catalogue.knob(&step.knob)?, sink, &mut moved)?);
            continue;
        }
        if step.part != Some(Part::TakenOver) {
            refuse_unwritable(session, &step.place)?;
        }
        let mut originals = vec![look(session, sink, &step.knob, &step.place, &step.now, None, &mut moved)?];
        for other in &step.coupled {
            let coupling = Some(other.coupling);
            originals.push(look(session, sink, &other.knob, &other.place, &other.now, coupling, &mut moved)?);
        }
        // Those that a plan file leaves out, and those that whoever made the plan was not allowed to read.
        for other in
            planish_decide::coupled(catalogue, &observation, catalogue.knob(&step.knob)?, &step.place)
        {
            if !originals.iter().any(|original| original.place == other.place) {
                let (seen, coupling) = (&other.now, Some(other.coupling));
                originals.push(look(session, sink, &other.knob, &other.place, seen, coupling, &mut moved)?);
            }
        }
        stack::link(&mut originals, open);
        let device = devices::id(session.host(), &step.place);
        let others = pages_of_others(step, &observation, open);
        let is_pool = step.undo == Undo::Subtract;
        let line = is_pool.then(|| pools::line_of_others(&given, &step.place)).flatten();
        let line = line.map(|(pages, _)| pages);
        let there = is_pool.then(|| all_there(&others, &observation));
        steps.push(EntryStep { device, others, line, there, ..entry_step(step, originals) });
    }
    look_at_satisfied(session, plan, (&observation, open), persist, sink, &mut moved)?;
    let by_node = look_at_pools(plan, &observation, &mut moved)?;
    if !moved.is_empty() {
        return Err(PipelineError::Moved { moved });
    }
    refuse_ruinous(catalogue, &observation, plan)?;
    if persist {
        refuse_lines_beyond_memory(plan, &observation)?;
    }
    let pools = || plan.steps.iter().filter(|step| step.undo == Undo::Subtract).map(|step| &step.knob);
    planish_decide::beyond_memory(&observation, &by_node)
        .map_or(Ok(steps), |why| Err(PipelineError::NoMemory { knobs: each_once(pools()), why }))
}

/// Refuses lines of pools that came short which are for more than an empty host has: no hash covers what a plan file
/// says of them, and a host whose memory a boot gives away does not come up.
fn refuse_lines_beyond_memory(plan: &Plan, observation: &Observation) -> Result<(), PipelineError> {
    let mut by_node: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    let rows = || plan.skipped.iter().filter(|row| row.asked_by.is_some() && !row.satisfied);
    for row in rows() {
        let Some(pool) = observation.pools.iter().find(|pool| pool.place == row.place) else { continue };
        let wanted = row.wanted.as_deref().and_then(|wanted| wanted.trim().parse::<u64>().ok());
        let bytes = by_node.entry(pool.node).or_default();
        *bytes = bytes.saturating_add(wanted.unwrap_or(0).saturating_mul(pool.page_bytes));
    }
    planish_decide::beyond_memory_at_boot(observation, &by_node).map_or(Ok(()), |why| {
        Err(PipelineError::NoMemory { knobs: each_once(rows().map(|row| &row.knob)), why })
    })
}

/// Refuses steps that the host of this moment cannot bear: it was another one when the plan was made, or the file that
/// holds it was made by something else.
pub(crate) fn refuse_ruinous(
    catalogue: &Catalogue,
    observation: &Observation,
    plan: &Plan,
) -> Result<(), PipelineError> {
    // What is taken over is there already: it is borne, unless something beside it goes back.
    let goes_back = plan.steps.iter().any(|step| step.part == Some(Part::Back));
    let is_judged = |step: &&Step| goes_back || step.part != Some(Part::TakenOver);
    let written = plan.steps.iter().filter(is_judged).cloned();
    refuse_found(&planish_decide::ruinous(catalogue, observation, &written.collect::<Vec<_>>()))
}

/// Refuses boot parameters with which the host of this moment would not come up to any use.
pub(crate) fn refuse_unbootable(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    if plan.boot.is_empty() {
        return Ok(());
    }
    let host = session.observe_planned(plan).host;
    refuse_found(&planish_decide::unbootable(session.sound_catalogue()?, &host, plan))
}

/// Refuses what is impossible: knobs and reasons.
fn refuse_found(found: &[(KnobId, String)]) -> Result<(), PipelineError> {
    let told: BTreeSet<String> = found.iter().map(|(knob, why)| format!("{knob}: {why}")).collect();
    if told.is_empty() {
        return Ok(());
    }
    let why = told.into_iter().collect::<Vec<_>>().join("; ");
    Err(PipelineError::Impossible { knobs: each_once(found.iter().map(|(knob, _)| knob)), why })
}

/// The bytes that all pools of a plan grow by, node by node. Notes pools whose lent pages are not those that the plan
/// counted.
fn look_at_pools(
    plan: &Plan,
    observation: &Observation,
    moved: &mut Vec<String>,
) -> Result<BTreeMap<Option<u32>, u64>, PipelineError> {
    let mut by_node: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    for step in plan.steps.iter().filter(|step| step.undo == Undo::Subtract) {
        let Some(pool) = observation.pools.iter().find(|pool| pool.place == step.place) else {
            let (place, why) = (step.place.clone(), "it is no pool of this host".to_owned());
            return Err(PipelineError::NotWritable { place, why });
        };
        let raise = step.raise_pages.unwrap_or(0);
        let becomes = pool.pages.saturating_sub(pool.surplus).saturating_add(raise);
        let goes = raise == 0 && step.takes_pages.is_some();
        let is_so = |wanted: u64| wanted == becomes || (goes && wanted < becomes);
        if !step.wanted.trim().parse().is_ok_and(is_so) {
            let (place, lent) = (&step.place, pool.surplus);
            moved.push(format!(
                "{place} with {raise} pages more is {becomes} ({lent} are lent), the plan says {}",
                step.wanted.trim()
            ));
        }
        let bytes = by_node.entry(pool.node).or_default();
        *bytes = bytes.saturating_add(raise.saturating_mul(pool.page_bytes));
    }
    Ok(by_node)
}

/// What others have at this moment of the pool that a step is for, and of those of its size on other nodes, by place.
/// Without what is lent, and without what open entries hold.
fn pages_of_others(step: &Step, observation: &Observation, open: &[Entry]) -> BTreeMap<String, u64> {
    let pools = &observation.pools;
    let own = pools.iter().find(|pool| step.undo == Undo::Subtract && pool.place == step.place);
    let is_beside = |pool: &&PoolReading| {
        own.is_some_and(|own| own.page_bytes == pool.page_bytes && own.node.is_some() == pool.node.is_some())
    };
    let held = |place: &str| -> u64 {
        let steps = open.iter().flat_map(|entry| &entry.steps);
        steps
            .filter(|step| step.undo == Undo::Subtract && step.place == place)
            .map(EntryStep::still_held)
            .sum()
    };
    let of_others = |pool: &PoolReading| {
        let pages = pool.pages.saturating_sub(pool.surplus).saturating_sub(held(&pool.place));
        (pool.place.clone(), pages)
    };
    pools.iter().filter(is_beside).map(of_others).collect_map()
}

/// All pages of the pools that a step's others have some of, without what is lent.
fn all_there(others: &BTreeMap<String, u64>, observation: &Observation) -> u64 {
    let pools = observation.pools.iter().filter(|pool| others.contains_key(&pool.place));
    pools.map(|pool| pool.pages.saturating_sub(pool.surplus)).sum()
}

fn entry_step(step: &Step, originals: Vec<Original>) -> EntryStep {
    let (knob, place, wanted) = (step.knob.clone(), step.place.clone(), step.wanted.clone());
    EntryStep {
        raise_pages: step.raise_pages,
        takes_pages: step.takes_pages,
        in_all: step.in_all,
        part: step.part,
        service: step.service.clone(),
        // A pool is taken back by subtraction, whatever its size was: no other place is set back with it.
        originals: match step.undo {
            Undo::Subtract => originals.into_iter().filter(|original| original.coupling.is_none()).collect(),
            _ => originals,
        },
        ..EntryStep::new(knob, place, wanted, step.class, step.undo)
    }
}

/// A step for a file of ours; notes one that is not what the plan saw. What was there before us is kept by whoever
/// knows the lines of all entries: see [`crate::contents`].
fn own_file(
    step: &Step,
    knob: &Knob,
    sink: &dyn Sink,
    moved: &mut Vec<String>,
) -> Result<EntryStep, PipelineError> {
    let text = sink.read_file(&step.place).map_err(PipelineError::Before)?;
    let now = text.as_deref().unwrap_or(NOT_GIVEN);
    if !knob.r#type.same(now, &step.now) {
        let (now, seen) = (knob.r#type.normal(now), knob.r#type.normal(&step.now));
        moved.push(format!("{} is `{now}`, the plan saw `{seen}`", step.place));
    }
    Ok(EntryStep { wanted: knob.r#type.in_file(&step.place, &step.wanted), ..entry_step(step, Vec::new()) })
}

/// The original at a place; notes when it is not what the plan saw.
fn look(
    session: &Session,
    sink: &dyn Sink,
    knob: &KnobId,
    place: &str,
    seen: &str,
    coupling: Option<Coupling>,
    moved: &mut Vec<String>,
) -> Result<Original, PipelineError> {
    let kind = session.sound_catalogue()?.knob(knob)?.r#type.clone();
    let value = sink.read(place).map_err(PipelineError::Before)?;
    if !kind.same(&value, seen) {
        moved.push(format!("{place} is `{}`, the plan saw `{}`", kind.normal(&value), kind.normal(seen)));
    }
    let (knob, place, value) = (knob.clone(), place.to_owned(), kind.as_original(value));
    Ok(Original { knob, place, r#type: kind, value, coupling, over: None })
}

pub(crate) fn refuse_unwritable(session: &Session, place: &str) -> Result<(), PipelineError> {
    refuse_access(&session.host().access(place), place)
}

/// Refuses a file where none can be made or replaced: its folder is on a read-only mount, or is not ours to write. Of a
/// link it is the folder of what it leads to.
pub(crate) fn refuse_folder(session: &Session, file: &str) -> Result<(), PipelineError> {
    let real = session.host().canonical(file);
    let real = real.as_deref().unwrap_or(file);
    let folder = real.rsplit_once('/').map_or("/", |(folder, _)| folder);
    match session.host().folder_access(folder) {
        Access::ReadOnlyMount => {
            let why = format!("{folder} is mounted read-only");
            Err(PipelineError::ReadOnlyFolder { file: file.to_owned(), why })
        }
        access => refuse_access(&access, file),
    }
}

/// Refuses a place that we have no right to write.
pub(crate) fn refuse_access(access: &Access, place: &str) -> Result<(), PipelineError> {
    let why = match access {
        Access::Writable | Access::WriteOnly => return Ok(()),
        Access::Absent => "it is not there".to_owned(),
        Access::ReadOnly => "nobody may write it".to_owned(),
        Access::ReadOnlyMount => "it is mounted read-only".to_owned(),
        Access::Denied(why) => why.clone(),
    };
    Err(PipelineError::NotWritable { place: place.to_owned(), why })
}
