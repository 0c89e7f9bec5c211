//! What entries hold of the pools of huge pages, and whether anybody uses it: pages that lie idle are memory which
//! nobody else can have.

use std::collections::BTreeMap;

use planish_act::stack::Claim;
use planish_host::Host;
use planish_model::{Entry, EntryId, EntryStep, Outcome, PoolGoing, PoolUse, Undo, page_pool};
use planish_observe::GivenPools;

use crate::session::Session;
use crate::transition;

/// The pools of entries that hold pages, oldest entry first.
///
/// What is idle is nobody's by name, so that it counts as the newest entry's.
pub(crate) fn held(host: &Host, holding: &[Entry]) -> Vec<PoolUse> {
    let mut unused = Unused::of(host);
    let mut pools = Vec::new();
    for entry in holding.iter().rev() {
        for step in raised(entry) {
            let idle = unused.take(&step.place, step.pages_held());
            pools.push(used_of(entry, step, idle));
        }
    }
    pools.reverse();
    pools
}

/// What becomes of the pools of an entry whose place is taken, as the host is now; `takes` tells how many pages of a
/// pool the other one is to have, and `known` is what is known of all entries in this boot.
///
/// What is idle counts as those of the entry that goes, newer ones or not: that is how many its undo finds to hand
/// back, in the order in which its steps go back.
pub(crate) fn going(
    session: &Session,
    entry: &Entry,
    takes: &dyn Fn(&str) -> u64,
    known: &[Entry],
) -> Vec<PoolGoing> {
    let (host, given) = (session.host(), session.given_pools());
    let mut unused = Unused::of(host);
    let steps: Vec<&EntryStep> = raised(entry).filter(|step| step.pages_held() > 0).collect();
    let read = |place: &str| host.read(place).ok();
    let mut gone = 0;
    let mut handed = |step: &&EntryStep| {
        let taken_over = takes(&step.place).min(step.pages_held());
        let rest = step.pages_held() - taken_over;
        let is_before = is_as_before(&given, (entry.id, step), known, &read);
        let claim = if is_before { None } else { claim(&given, step, known, &read) };
        let claimed = claim.map_or(0, |claim| rest.saturating_sub(claim.beside.saturating_sub(gone)));
        let back = unused.take(&step.place, rest - claimed);
        gone += back.unwrap_or(rest - claimed);
        (taken_over, back, claimed)
    };
    let handed: Vec<(u64, Option<u64>, u64)> = steps.iter().rev().map(&mut handed).collect();
    // What is idle besides is of those that are taken over, or that a line of others gives.
    let going = |(step, (taken_over, back, claimed)): (&&EntryStep, (u64, Option<u64>, u64))| {
        let due = step.pages_held() - taken_over - claimed;
        let kept = back.and_then(|back| unused.take(&step.place, step.pages_held() - back));
        let idle = back.zip(kept).map(|(back, kept)| back + kept);
        PoolGoing {
            pool: used_of(entry, step, idle),
            taken_over,
            handed_back: back.unwrap_or(due),
            in_use: back.map(|back| due - back),
            claimed,
        }
    };
    steps.iter().rev().zip(handed).map(going).collect()
}

/// What became of a pool of an entry that was taken back for another one, of what was to become of it: by how its step
/// ended, how many of the pages changed hands, and how far the pool shrank. Others may have lowered it before, and what
/// they took was not handed back here.
pub(crate) fn gone(
    going: PoolGoing,
    outcome: Option<&Outcome>,
    taken_over: u64,
    shrank: Option<u64>,
) -> PoolGoing {
    let granted = going.pool.granted;
    // Nothing is counted where the pool could not be looked at: all of it is where it was.
    let left = outcome.and_then(|outcome| outcome.granted_pages).unwrap_or(granted - taken_over.min(granted));
    let claimed = outcome.map_or(0, Outcome::claimed);
    let gone = granted.saturating_sub(taken_over).saturating_sub(left);
    let handed_back = shrank.map_or(gone, |shrank| gone.min(shrank));
    PoolGoing { taken_over, handed_back, in_use: Some(left.saturating_sub(claimed)), claimed, ..going }
}

/// Pages of a pool, without those that are only lent; `None` where `read`, which gives the text of a place, tells none.
pub(crate) fn pages_in(place: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let number = |place: &str| read(place)?.trim().parse::<u64>().ok();
    let lent = place.strip_suffix("nr_hugepages").map(|folder| format!("{folder}surplus_hugepages"));
    Some(number(place)?.saturating_sub(lent.and_then(|place| number(&place)).unwrap_or(0)))
}

/// What a line of others gives the pools of all nodes together whose size a place has, and the line.
pub(crate) fn line_of_others(given: &GivenPools<'_>, place: &str) -> Option<(u64, String)> {
    given.to_all_nodes(&page_pool::whole_of(place).unwrap_or_else(|| place.to_owned()))
}

/// The line of others that an undo of a step leaves pages to: whoever loads it means all that are there, and none that
/// other entries raised beside it as it is. `read` gives the text of a place.
pub(crate) fn claim(
    given: &GivenPools<'_>,
    step: &EntryStep,
    known: &[Entry],
    read: &dyn Fn(&str) -> Option<String>,
) -> Option<Claim> {
    if step.others.is_empty() {
        return None;
    }
    let (given, source) = line_of_others(given, &step.place)?;
    // What an undo has left to the line is in what it gives.
    let held_beside = |step: &EntryStep| match step.line == Some(given) {
        true => step.still_held().min(step.pages_in_force()),
        false => 0,
    };
    let all_beside: u64 = of_size(step, known).map(held_beside).sum();
    let others_beside = all_beside.saturating_sub(held_beside(step));
    let there = all_there(step, read);
    Some(Claim { beside: there.saturating_sub(others_beside).saturating_sub(given), given, source })
}

/// Whether the line of others means none of a step's pages: it was the same when the step raised its pool, and nobody
/// has loaded it since. What it had not got by then it lacks without us, too.
///
/// That is so while all pools of its size are page for page what they were then, and what entries hold there. Where
/// they come to exactly what the line gives, nobody can tell, nor where they had come to it when an entry behind this
/// one raised a pool: whoever loaded it then changed nothing. To be asked before an undo writes any pool: it may come
/// to that number on its way, as the raise of an entry does that takes its place. Not where that rested for a confirm.
pub(crate) fn is_as_before(
    lines: &GivenPools<'_>,
    (id, step): (EntryId, &EntryStep),
    known: &[Entry],
    read: &dyn Fn(&str) -> Option<String>,
) -> bool {
    // Nothing is read for the many steps that no line was beside.
    let Some(given) = step.line else { return false };
    let is_same = line_of_others(lines, &step.place).is_some_and(|(now, _)| now == given);
    let newer = || known.iter().filter(|entry| entry.id > id);
    let rested = |heir: &Entry| heir.confirm_by.is_some() || heir.wait_end.is_some();
    let raises = |heir: &Entry| of_size(step, std::slice::from_ref(heir)).next().is_some();
    let heir = transition::heir(id, known).filter(|heir| step.undone.is_none() && !rested(heir));
    let is_on_its_way = heir.is_some_and(raises);
    if !is_same || (!is_on_its_way && all_there(step, read) == given) {
        return false;
    }
    // What an entry of an older planish found is not known.
    let came_to_it = |other: &EntryStep| other.there.is_none_or(|there| there == given);
    if newer().any(|entry| of_size(step, std::slice::from_ref(entry)).any(came_to_it)) {
        return false;
    }
    let is_as_left = |(place, others): (&String, &u64)| {
        let held = of_size(step, known).filter(|other| other.place == *place);
        let held = held.fold(*others, |pages, other| pages.saturating_add(other.still_held()));
        pages_in(place, read).unwrap_or(0) == held
    };
    // Such a pool is what others had and what is left of ours: it counts where it was seen behind this step.
    let is_lowered =
        |other: &EntryStep| other.is_lowered() && other.lowered_behind.is_none_or(|newest| newest >= id);
    step.others.iter().all(is_as_left) && !of_size(step, known).any(is_lowered)
}

/// The pages of all pools of a step's size. One that is not there, with its node, has none.
fn all_there(step: &EntryStep, read: &dyn Fn(&str) -> Option<String>) -> u64 {
    step.others.keys().filter_map(|place| pages_in(place, read)).sum()
}

/// The steps that raised a pool of the same page size, that one among them.
fn of_size<'a>(step: &'a EntryStep, known: &'a [Entry]) -> impl Iterator<Item = &'a EntryStep> {
    let steps = known.iter().flat_map(|entry| &entry.steps);
    steps.filter(|other| other.undo == Undo::Subtract && step.others.contains_key(&other.place))
}

/// The steps of an entry that hold pages of pools.
fn raised(entry: &Entry) -> impl DoubleEndedIterator<Item = &EntryStep> {
    let steps = entry.steps.iter().filter(|step| step.undo == Undo::Subtract && !step.is_undone());
    steps.filter(|step| step.outcome.is_some() && pool(&step.place).is_some())
}

/// What a step holds, with as many idle pages among it.
fn used_of(entry: &Entry, step: &EntryStep, idle: Option<u64>) -> PoolUse {
    let granted = step.pages_held();
    PoolUse {
        entry: entry.id,
        knob: step.knob.clone(),
        place: step.place.clone(),
        asked: step.pages_asked(),
        granted,
        used: idle.map(|idle| granted - idle),
        idle,
    }
}

/// The pages of pools that nobody uses and nobody has reserved, while they are shared out.
///
/// Of a node the kernel does not tell what is reserved: all nodes together have no more that is idle than the host.
struct Unused<'a> {
    host: &'a Host,
    /// Free pages of each pool.
    free: BTreeMap<String, Option<u64>>,
    /// Pages of each size that are free and not reserved, on all nodes.
    unreserved: BTreeMap<String, Option<u64>>,
}

impl<'a> Unused<'a> {
    fn of(host: &'a Host) -> Self {
        Self { host, free: BTreeMap::new(), unreserved: BTreeMap::new() }
    }

    /// Takes so many pages of a pool, or those that there are; `None` where the host does not tell.
    fn take(&mut self, place: &str, pages: u64) -> Option<u64> {
        let (folder, size) = pool(place)?;
        let host = self.host;
        let number = |path: &str| host.read(path).ok()?.trim().parse::<u64>().ok();
        let free = self.free.entry(place.to_owned());
        let free = free.or_insert_with(|| number(&format!("{folder}/free_hugepages"))).as_mut()?;
        let unreserved = self.unreserved.entry(size.to_owned()).or_insert_with(|| {
            let whole = format!("/sys/kernel/mm/hugepages/{size}");
            let free = number(&format!("{whole}/free_hugepages"))?;
            Some(free.saturating_sub(number(&format!("{whole}/resv_hugepages"))?))
        });
        let unreserved = unreserved.as_mut()?;
        let taken = pages.min(*free).min(*unreserved);
        (*free, *unreserved) = (*free - taken, *unreserved - taken);
        Some(taken)
    }
}

/// The folder of a pool, and the name that its page size has in all of them.
fn pool(place: &str) -> Option<(&str, &str)> {
    let folder = place.strip_suffix("/nr_hugepages")?;
    Some((folder, folder.rsplit('/').next()?))
}
