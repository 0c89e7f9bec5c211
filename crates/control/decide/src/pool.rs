//! Pool arithmetic: from a need in bytes to pages on each node.
//!
//! A pool is shared by everybody on the host, so it is only ever *raised by our own need*: what is in it
//! already was reserved by someone for something, also when it looks free; where a size in all is wanted, our need is
//! what others leave missing of it. What counts as met, so that a second
//! apply writes nothing, is what entries hold in this boot (written in it, or brought back by a file of ours: see
//! [`planish_model::in_boot`]) for the same service, under whatever profile, or, for
//! a need that no service has, for the same profile; and what the running service has from the pool already,
//! whoever reserved it. Services are told apart by the names of their programs.
//!
//! Pages that are free and that nobody has claimed are not counted either: whom they are for is not to be seen. They
//! are told with each step that asks for more beside them, with what makes them count.

use std::collections::BTreeMap;

use planish_model::{
    Catalogue, Entry, EntryId, EntryStep, Knob, Nodes, Observation, OutcomeKind, PoolReading, Sizing, Step,
    fitting,
    page_pool::spread,
    units::{bytes, counted},
};
use planish_sorted::CollectMap as _;

/// How the last part of the arithmetic begins where pages lie idle.
const BESIDE: &str = "beside ";

/// The pages that one pool has to grow by, and the arithmetic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raise<'a> {
    /// The knob that the place belongs to: the global pool's on a kernel without NUMA.
    pub(crate) knob: &'a Knob,
    /// The pool.
    pub(crate) pool: &'a PoolReading,
    /// Pages that must be there for us.
    pub(crate) need: u64,
    /// The size that is wanted in all, where the pages of others count.
    pub(crate) in_all: Option<u64>,
    /// Pages of them that are there already: held by open entries, or used by the service.
    pub(crate) met: u64,
    /// Pages of them that become ours from the entry which the plan takes the place of.
    pub(crate) takes: u64,
    /// Pages of that entry that go, since nothing of the plan needs them.
    pub(crate) gives: u64,
    /// The service that they are for.
    pub(crate) service: Option<String>,
    /// The arithmetic, for people.
    pub(crate) because: String,
}

impl Raise<'_> {
    /// Pages that are still to be added.
    pub(crate) fn pages(&self) -> u64 {
        self.need.saturating_sub(self.met)
    }

    /// What the file must be set to. The kernel counts surplus pages as part of what the file shows, and
    /// takes what is written as the number without them (`mm/hugetlb.c`, `set_max_huge_pages`).
    ///
    /// Where pages are taken over, or none are missing, it is what is there once the others of that entry are gone.
    pub(crate) fn wanted(&self) -> u64 {
        let gives = if self.takes > 0 || self.pages() == 0 { self.gives } else { 0 };
        self.pool.persistent().saturating_add(self.pages()).saturating_sub(gives)
    }
}

/// What a pool is wanted for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need<'a> {
    /// So many bytes on these nodes.
    Bytes(u64, &'a Nodes),
    /// So many bytes on each of so many nodes.
    Each(&'a [u64], &'a [u32]),
    /// What is missing of so many bytes in all on these nodes, beside what others have there.
    Total(u64, &'a Nodes),
    /// The same on each of so many nodes.
    Totals(&'a [u64], &'a [u32]),
    /// What a service needs.
    Service(&'a Sizing),
}

/// Whose pages count as those of a plan: of its profile, and of the entry that it takes the place of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own<'a> {
    /// The profile.
    pub(crate) profile: &'a str,
    /// The entry.
    pub(crate) instead_of: Option<EntryId>,
    /// The open entries of the journal.
    pub(crate) open: &'a [Entry],
}

/// What the pools of `knob` have to grow by, node by node.
///
/// # Errors
/// Why there is no such pool here, for a verdict.
pub(crate) fn raises<'a>(
    knob: &'a Knob,
    need: Need<'_>,
    own: Own<'_>,
    catalogue: &'a Catalogue,
    observation: &'a Observation,
) -> Result<Vec<Raise<'a>>, String> {
    let pools = pools(knob, catalogue, observation);
    let Some((_, first)) = pools.first() else {
        return Err(no_pool(observation));
    };
    let page_bytes = first.page_bytes;
    let nodes: Vec<Option<u32>> = pools.iter().map(|(_, pool)| pool.node).collect();
    let service = match need {
        Need::Service(sizing) => sizing.service.clone(),
        _ => None,
    };
    let held_by = |pool: &PoolReading, entry: Option<EntryId>| {
        let steps = own_steps(own, observation, service.as_deref(), &pool.place);
        let counted = steps.filter(|(other, _)| entry.is_none() || Some(other.id) == own.instead_of);
        counted.map(|(_, step)| step.pages_in_force()).sum::<u64>()
    };
    let others = || -> BTreeMap<Option<u32>, u64> {
        let of_others = |pool: &PoolReading| pool.persistent().saturating_sub(held_by(pool, None));
        pools.iter().map(|(_, pool)| (pool.node, of_others(pool))).collect_map()
    };
    let wanted = match need {
        Need::Bytes(bytes, nodes_wanted) => by_bytes(bytes, page_bytes, nodes_wanted, &nodes, observation)?,
        Need::Each(needs, on) => by_node(needs, page_bytes, on, &nodes)?,
        Need::Total(bytes, Nodes::Spread) => {
            missing_in_all(bytes, page_bytes, &spread_nodes(&nodes, observation), &others())
        }
        Need::Total(bytes, Nodes::Each(on)) => {
            missing_by_node(&vec![bytes; on.len()], page_bytes, on, &nodes, &others())?
        }
        Need::Totals(sizes, on) => missing_by_node(sizes, page_bytes, on, &nodes, &others())?,
        Need::Service(sizing) => by_service(sizing, page_bytes, &nodes)?,
    };
    let arithmetic = wanted.arithmetic;
    let (mut raises, mut waiting) = (Vec::new(), 0_u64);
    for (knob, pool) in pools {
        let Some(&(need, used)) = wanted.pages.get(&pool.node) else { continue };
        let in_all = wanted.in_all.get(&pool.node).copied();
        let held = held_by(pool, None);
        let of_old = own.instead_of.map_or(0, |entry| held_by(pool, Some(entry)));
        let takes = of_old.min(need.saturating_sub(held - of_old));
        let mut because = arithmetic.clone();
        if held > of_old {
            because += &format!("; {} of them held since an earlier apply", held - of_old);
        }
        if let Some(entry) = own.instead_of.filter(|_| takes > 0) {
            because += &format!("; {takes} of them taken over from entry {entry}");
        }
        // What the service uses may be what was held for it: the two are not added.
        let (met, gives, service) = (held.max(used), of_old - takes, service.clone());
        waiting = waiting.saturating_add(held.saturating_sub(used));
        raises.push(Raise { knob, pool, need, in_all, met, takes, gives, service, because });
    }
    tell_idle(&mut raises, waiting, observation);
    Ok(raises)
}

/// Adds to the arithmetic how many pages of these pools are free that nobody has claimed. Of the free ones `waiting`
/// are held for the same need and count as met; a size in all has counted every one.
fn tell_idle(raises: &mut [Raise<'_>], waiting: u64, observation: &Observation) {
    let page_bytes = raises.first().map(|raise| raise.pool.page_bytes);
    let Some(claimed) = page_bytes.and_then(|size| observation.pages_claimed.get(&size)) else { return };
    let free = raises.iter().map(|raise| raise.pool.free).fold(0, u64::saturating_add);
    let idle = free.saturating_sub(*claimed).saturating_sub(waiting);
    for raise in raises.iter_mut().filter(|raise| raise.in_all.is_none() && raise.pages() > 0 && idle > 0) {
        raise.because += &format!("; {BESIDE}{} free that nobody has claimed", counted(idle, "page"));
    }
}

/// What a step that raises a pool says of pages that lie idle there.
pub(crate) fn idle_beside(step: &Step) -> Option<&str> {
    step.raise_pages.filter(|pages| *pages > 0)?;
    let (_, last) = step.because.as_deref()?.rsplit_once("; ")?;
    last.starts_with(BESIDE).then_some(last)
}

/// What makes those pages count for what the step is for.
pub(crate) fn cure_of_idle(step: &Step) -> String {
    match &step.service {
        Some(service) => {
            format!(
                "where those are for {service}, start it on them: what it has of the pool is not asked for again"
            )
        }
        None => "where those are for it, a profile that wants { total_bytes = N } counts them".to_owned(),
    }
}

/// Of each pool that a plan raises by more pages than lie whole in free blocks, what may come of it.
pub(crate) fn scattered(steps: &[Step], observation: &Observation) -> Vec<String> {
    let told = |step: &Step| {
        let pages = step.raise_pages?;
        let pool = observation.pools.iter().find(|pool| pool.place == step.place)?;
        let fits = fitting(&observation.buddy, pool.node, pool.page_bytes, observation.host.page_bytes)?;
        (fits < pages).then(|| {
            let on = pool.node.map(|node| format!(" on node {node}")).unwrap_or_default();
            format!(
                "{knob}{on}: of {} that are wanted {fits} lie in free blocks now, and what compaction does not find \
                 besides is not granted; a boot has them all, by the line that --persist writes; --exclude {knob} \
                 leaves the pool as it is",
                counted(pages, "page"),
                knob = step.knob
            )
        })
    };
    steps.iter().filter_map(told).collect()
}

/// Of each knob whose pools a plan raises beside pages that lie idle, how many and what to do about it.
pub(crate) fn raised_beside_idle(steps: &[Step]) -> Vec<String> {
    let of_knob = |steps: &[Step]| {
        let idle = steps.iter().find_map(|step| Some((step, idle_beside(step)?)));
        let pages = steps.iter().filter_map(|step| step.raise_pages).fold(0, u64::saturating_add);
        idle.map(|(step, beside)| {
            let (knob, cure) = (&step.knob, cure_of_idle(step));
            format!(
                "{knob}: {} more, {beside}, since those may be meant for others; {cure}; --exclude {knob} leaves the \
                 pool as it is",
                counted(pages, "page")
            )
        })
    };
    steps.chunk_by(|a, b| a.knob == b.knob).filter_map(of_knob).collect()
}

/// The pools of a knob with their places; on a kernel without NUMA those of its alias, the global pool.
fn pools<'a>(
    knob: &'a Knob,
    catalogue: &'a Catalogue,
    observation: &'a Observation,
) -> Vec<(&'a Knob, &'a PoolReading)> {
    let of = |knob: &'a Knob| {
        observation
            .pools
            .iter()
            .filter(|pool| planish_model::place::captures(&knob.path, &pool.place).is_some())
            .map(|pool| (knob, pool))
            .collect::<Vec<_>>()
    };
    let own = of(knob);
    if !own.is_empty() {
        return own;
    }
    knob.alias
        .iter()
        .filter_map(|alias| catalogue.knob(alias).ok())
        .map(of)
        .find(|p| !p.is_empty())
        .unwrap_or(own)
}

/// Why no pool of any size was found, where none was.
pub(crate) fn without_pools(observation: &Observation) -> Option<&'static str> {
    if observation.host.huge_page_bytes.is_empty() {
        return Some("this kernel has no huge-page pools");
    }
    // Nothing that was not seen is called absent: /sys may not be mounted here.
    let unseen = "the huge-page pools of this kernel cannot be seen: /sys/kernel/mm/hugepages is not there";
    observation.pools.is_empty().then_some(unseen)
}

fn no_pool(observation: &Observation) -> String {
    let sizes = &observation.host.huge_page_bytes;
    if let Some(reason) = without_pools(observation) {
        return reason.to_owned();
    }
    let sizes: Vec<String> = sizes.iter().map(|size| bytes(*size)).collect();
    format!("this kernel offers huge pages of {}", sizes.join(" and "))
}

/// Pages by node, needed and in use already, and how they came about.
#[derive(Default)]
struct Wanted {
    pages: BTreeMap<Option<u32>, (u64, u64)>,
    /// What is wanted of a pool in all, where that is how it is wanted.
    in_all: BTreeMap<Option<u32>, u64>,
    arithmetic: String,
}

fn by_bytes(
    need: u64,
    page_bytes: u64,
    nodes_wanted: &Nodes,
    nodes: &[Option<u32>],
    observation: &Observation,
) -> Result<Wanted, String> {
    let pages = need.div_ceil(page_bytes);
    let size = format!("{} in pages of {} = {pages}", bytes(need), bytes(page_bytes));
    match nodes_wanted {
        Nodes::Spread => {
            let over = spread_nodes(nodes, observation);
            let arithmetic = match over.as_slice() {
                [_] => size,
                several => format!("{size}, over {} nodes", several.len()),
            };
            let pages =
                spread(pages, &over).into_iter().map(|(node, pages)| (node, (pages, 0))).collect_map();
            Ok(Wanted { pages, arithmetic, ..Wanted::default() })
        }
        Nodes::Each(each) => {
            refuse_missing(each, nodes)?;
            let pages = each.iter().map(|node| (Some(*node), (pages, 0))).collect_map();
            let arithmetic = format!("{size} on each node named");
            Ok(Wanted { pages, arithmetic, ..Wanted::default() })
        }
    }
}

fn by_node(needs: &[u64], page_bytes: u64, on: &[u32], nodes: &[Option<u32>]) -> Result<Wanted, String> {
    refuse_missing(on, nodes)?;
    let pages: BTreeMap<_, _> =
        on.iter().zip(needs).map(|(node, need)| (Some(*node), (need.div_ceil(page_bytes), 0))).collect_map();
    let sizes: Vec<String> =
        on.iter().zip(needs).map(|(node, need)| format!("{} on node {node}", bytes(*need))).collect();
    let arithmetic = format!("{} in pages of {}", sizes.join(", "), bytes(page_bytes));
    Ok(Wanted { pages, arithmetic, ..Wanted::default() })
}

/// What is missing of a size of all pools together, over the nodes: wherever others have theirs.
fn missing_in_all(
    total: u64,
    page_bytes: u64,
    over: &[Option<u32>],
    others: &BTreeMap<Option<u32>, u64>,
) -> Wanted {
    let (pages, there) = (total.div_ceil(page_bytes), others.values().sum::<u64>());
    let missing = pages.saturating_sub(there);
    let missing = spread(missing, over);
    // Where others have all of it, no pool of a node need have any size.
    let of_others = |node: &Option<u32>| others.get(node).copied().unwrap_or(0);
    let in_all = missing.iter().filter(|(_, pages)| **pages > 0);
    let in_all = in_all.map(|(node, pages)| (*node, of_others(node).saturating_add(*pages))).collect_map();
    let pages = missing.into_iter().map(|(node, pages)| (node, (pages, 0))).collect_map();
    Wanted { pages, in_all, arithmetic: told_in_all(total, page_bytes, there) }
}

/// The same for the size of each node's pool.
fn missing_by_node(
    totals: &[u64],
    page_bytes: u64,
    on: &[u32],
    nodes: &[Option<u32>],
    others: &BTreeMap<Option<u32>, u64>,
) -> Result<Wanted, String> {
    refuse_missing(on, nodes)?;
    let of = |(node, total): (&u32, &u64)| {
        let there = others.get(&Some(*node)).copied().unwrap_or(0);
        let all = total.div_ceil(page_bytes);
        let told = format!("{} on node {node}", told_in_all(*total, page_bytes, there));
        (((Some(*node), (all.saturating_sub(there), 0)), (Some(*node), all)), told)
    };
    let (pools, sizes): (Vec<_>, Vec<_>) = on.iter().zip(totals).map(of).unzip();
    let (pages, in_all) = pools.into_iter().unzip();
    Ok(Wanted { pages, in_all, arithmetic: sizes.join("; ") })
}

fn told_in_all(total: u64, page_bytes: u64, there: u64) -> String {
    let pages = total.div_ceil(page_bytes);
    let size = format!("{} in pages of {} = {pages} in all", bytes(total), bytes(page_bytes));
    if there == 0 { size } else { format!("{size}, {there} of them of others") }
}

fn refuse_missing(wanted: &[u32], nodes: &[Option<u32>]) -> Result<(), String> {
    let missing = wanted.iter().find(|node| !nodes.contains(&Some(**node)));
    missing.map_or(Ok(()), |node| Err(format!("there is no pool on node {node}")))
}

fn by_service(sizing: &Sizing, page_bytes: u64, nodes: &[Option<u32>]) -> Result<Wanted, String> {
    let pages: BTreeMap<_, _> = sizing
        .rows
        .iter()
        .filter(|row| row.page_bytes == page_bytes && nodes.contains(&row.node))
        .map(|row| (row.node, (row.pages, row.used)))
        .collect_map();
    if pages.is_empty() {
        return Err(format!("{} was not sized in pages of {}", sizing.subject, bytes(page_bytes)));
    }
    let total: u64 = pages.values().map(|(need, _)| need).sum();
    let used: u64 = pages.values().map(|(_, used)| used).sum();
    let mut arithmetic = format!(
        "{} maps {}; with {} % headroom {total} pages of {}",
        sizing.subject,
        bytes(sizing.need_bytes),
        sizing.headroom_percent,
        bytes(page_bytes)
    );
    if used > 0 {
        arithmetic += &format!(", and it has {used} of them already");
    }
    Ok(Wanted { pages, arithmetic, ..Wanted::default() })
}

/// The nodes that a pool is spread over: those with memory and CPUs. A memory-only node (CXL) is slower
/// memory and is used when it is named; where no node has both, all nodes of the pool count.
pub(crate) fn spread_nodes(nodes: &[Option<u32>], observation: &Observation) -> Vec<Option<u32>> {
    let local = |node: &&Option<u32>| node.is_none_or(|node| observation.host.cpu_nodes.contains(&node));
    let over: Vec<_> = nodes.iter().filter(local).copied().collect();
    if over.is_empty() { nodes.to_vec() } else { over }
}

/// Steps of open entries of this boot that raised a pool for the service or, without one, for the profile.
fn own_steps<'a>(
    own: Own<'a>,
    observation: &'a Observation,
    service: Option<&'a str>,
    place: &'a str,
) -> impl Iterator<Item = (&'a Entry, &'a EntryStep)> {
    let boot = &observation.host.boot_id;
    let is_own = move |entry: &Entry| entry.profile == own.profile || Some(entry.id) == own.instead_of;
    own.open
        .iter()
        .filter(move |entry| entry.is_open() && &entry.boot_id == boot)
        .flat_map(|entry| entry.steps.iter().map(move |step| (entry, step)))
        .filter(move |(_, step)| step.place == place && step.service.as_deref() == service)
        .filter(move |(entry, _)| service.is_some() || is_own(entry))
}

/// Why a pool that came short is not asked again: free blocks hold no more than they did then, so that another
/// write would bring nothing but another entry.
pub(crate) fn came_short(
    raise: &Raise<'_>,
    observation: &Observation,
    own: Own<'_>,
) -> Option<(EntryId, String)> {
    let place = &raise.pool.place;
    let mut steps = own_steps(own, observation, raise.service.as_deref(), place);
    let (entry, short) = steps.find_map(|(entry, step)| {
        // Pages that somebody took from the pool since are asked for once more.
        let outcome = step.outcome.as_ref().filter(|outcome| outcome.outcome != OutcomeKind::Lowered)?;
        (!step.is_undone()).then_some((entry, outcome.short.as_ref()?))
    })?;
    let page_bytes = raise.pool.page_bytes;
    let fits = fitting(&observation.buddy, raise.pool.node, page_bytes, observation.host.page_bytes);
    let more = fits.zip(short.fits).is_some_and(|(now, then)| now > then);
    (!more).then(|| {
        let (id, granted, asked, reason) = (entry.id, short.granted, short.asked, &short.reason);
        let told = format!(
            "entry {id} got {granted} of {asked} pages: {reason}; asked again when more is free, or after \
             planish undo {id}"
        );
        (id, told)
    })
}

#[cfg(test)]
mod tests {
    use planish_model::Want;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{catalogue, entry_holding, observation, pool, profile};
    use crate::{Against, Options};

    fn own<'a>(profile: &'a str, open: &'a [Entry]) -> Own<'a> {
        Own { profile, instead_of: None, open }
    }

    fn plan_2m(need: u64, nodes: &Nodes, open: &[Entry]) -> Result<Vec<(Option<u32>, u64, u64)>, String> {
        let (catalogue, observation) = (catalogue(), observation());
        let knob = catalogue.knob(&planish_model::KnobId::new("hugepages.2m")).expect("a row");
        raises(knob, Need::Bytes(need, nodes), own("series", open), &catalogue, &observation)
            .map(|raises| raises.iter().map(|r| (r.pool.node, r.pages(), r.wanted())).collect())
    }

    #[test]
    fn a_need_is_spread_over_the_nodes_with_cpus() {
        // Node 2 has memory and no CPU. Node 1 has ten pages of someone else, two of them surplus.
        assert_eq!(plan_2m(5 << 21, &Nodes::Spread, &[]), Ok(vec![(Some(0), 3, 3), (Some(1), 2, 10)]));
    }

    #[test]
    fn a_named_node_takes_the_whole_need_and_a_missing_one_is_named() {
        assert_eq!(plan_2m(5 << 21, &Nodes::Each(vec![2]), &[]), Ok(vec![(Some(2), 5, 5)]));
        assert_eq!(plan_2m(1, &Nodes::Each(vec![7]), &[]), Err("there is no pool on node 7".to_owned()));
    }

    #[test]
    fn each_node_takes_its_own_need_and_a_missing_one_is_named() {
        let (catalogue, observation) = (catalogue(), observation());
        let knob = catalogue.knob(&planish_model::KnobId::new("hugepages.2m")).expect("a row");
        let on = |nodes: &[u32]| {
            let need = Need::Each(&[3 << 21, 1], nodes);
            raises(knob, need, own("mine", &[]), &catalogue, &observation)
                .map(|raises| raises.iter().map(|raise| (raise.pool.node, raise.pages())).collect::<Vec<_>>())
        };
        assert_eq!(on(&[0, 2]), Ok(vec![(Some(0), 3), (Some(2), 1)]));
        assert_eq!(on(&[2, 0]), Ok(vec![(Some(0), 1), (Some(2), 3)]));
        assert_eq!(on(&[0, 7]), Err("there is no pool on node 7".to_owned()));
    }

    #[test]
    fn a_size_in_all_is_raised_by_what_others_leave_missing_and_lowers_nothing() {
        let (catalogue, observation) = (catalogue(), observation());
        let knob = catalogue.knob(&planish_model::KnobId::new("hugepages.2m")).expect("a row");
        let on = |need: Need<'_>, open: &[Entry]| {
            raises(knob, need, own("mine", open), &catalogue, &observation).map(|raises| {
                raises
                    .iter()
                    .map(|raise| (raise.pool.node, raise.pages(), raise.wanted()))
                    .collect::<Vec<_>>()
            })
        };
        // Node 1 has ten pages of someone else, two of them surplus.
        let spread = |pages: u64, open: &[Entry]| on(Need::Total(pages << 21, &Nodes::Spread), open);
        assert_eq!(spread(13, &[]), Ok(vec![(Some(0), 3, 3), (Some(1), 2, 10)]));
        assert_eq!(spread(8, &[]), Ok(vec![(Some(0), 0, 0), (Some(1), 0, 8)]));
        assert_eq!(spread(1, &[]), Ok(vec![(Some(0), 0, 0), (Some(1), 0, 8)]));
        let totals = |pages: [u64; 2]| on(Need::Totals(&pages.map(|pages| pages << 21), &[0, 1]), &[]);
        assert_eq!(totals([4, 9]), Ok(vec![(Some(0), 4, 4), (Some(1), 1, 9)]));
        assert_eq!(totals([0, 2]), Ok(vec![(Some(0), 0, 0), (Some(1), 0, 8)]));
        // Of the eight pages three are ours since an earlier apply: nothing is written again.
        let open = [entry_holding("mine", &pool(1, 0).place, 3)];
        assert_eq!(on(Need::Total(8 << 21, &Nodes::Each(vec![1])), &open), Ok(vec![(Some(1), 0, 8)]));
        assert_eq!(on(Need::Total(9 << 21, &Nodes::Each(vec![1])), &open), Ok(vec![(Some(1), 1, 9)]));
        let missing = on(Need::Total(1, &Nodes::Each(vec![7])), &[]);
        assert_eq!(missing, Err("there is no pool on node 7".to_owned()));
    }

    /// One finding said that pages lie idle, and the other one wanted as many more.
    #[test]
    fn pages_that_lie_idle_are_told_with_what_makes_them_count() {
        let (catalogue, mut seen) = (catalogue(), observation());
        let row = |node: u32, pages: u64| planish_model::SizeRow {
            node: Some(node),
            page_bytes: 2 << 20,
            pages,
            bytes: pages << 21,
            used: 0,
            free: 0,
            fits: None,
            refused: None,
        };
        let sizing = Sizing {
            subject: "engine (pid 7)".to_owned(),
            service: Some("engine".to_owned()),
            need_bytes: 4 << 21,
            headroom_percent: 20,
            rows: vec![row(0, 3), row(1, 2)],
            arithmetic: Vec::new(),
        };
        let by_service = Want::From { from: planish_model::Computation::ServicePool };
        let by_need = Want::Need { need_bytes: 5 << 21, nodes: Nodes::Spread };
        let told = |want: &Want, open: &[Entry], observation: &Observation| {
            let options = Options { sizing: Some(sizing.clone()), ..Options::default() };
            let profile = profile(&[("hugepages.2m", want.clone())]);
            let plan = crate::plan(&catalogue, observation, &profile, open, &options).expect("known knobs");
            let because: Vec<_> = plan.steps.iter().filter_map(|step| step.because.clone()).collect();
            let against = Against { plan: &plan, source: "series", service: None };
            let found = crate::findings(&catalogue, observation, Some(against));
            (because.join(" | "), plan.remarks.join(" | "), found[0].cure.clone())
        };
        // Of the ten pages of node 1 four are claimed.
        seen.pages_claimed = BTreeMap::from([(2 << 20, 4)]);
        let (because, remarks, cure) = told(&by_need, &[], &seen);
        let idle = "beside 6 pages free that nobody has claimed";
        assert_eq!(because.matches(idle).count(), 2, "{because}");
        let counts = "where those are for it, a profile that wants { total_bytes = N } counts them";
        assert_eq!(
            remarks,
            format!(
                "hugepages.2m: 5 pages more, {idle}, since those may be meant for others; {counts}; --exclude \
                 hugepages.2m leaves the pool as it is"
            )
        );
        assert_eq!(cure, format!("{counts}; else planish apply series"));
        let (_, remarks, cure) = told(&by_service, &[], &seen);
        let start =
            "where those are for engine, start it on them: what it has of the pool is not asked for again";
        assert!(remarks.contains(start), "{remarks}");
        assert_eq!(cure, format!("{start}; else planish apply series --service engine"));
        // What is held for the same need is free until it is used, and counts.
        let open = [entry_holding("series", &pool(1, 0).place, 9)];
        let apply = "planish apply series".to_owned();
        let (because, remarks, cure) = told(&by_need, &open, &seen);
        assert!(!because.contains("beside") && remarks.is_empty() && cure == apply, "{because}: {remarks}");
        // A size in all counts them already.
        let in_all = Want::Total { total_bytes: 14 << 21, nodes: Nodes::Spread };
        let (because, remarks, cure) = told(&in_all, &[], &seen);
        assert!(!because.contains("beside") && remarks.is_empty() && cure == apply, "{because}: {remarks}");
        // Of a kernel that does not tell what is claimed nothing is known to be idle.
        seen.pages_claimed.clear();
        assert_eq!(told(&by_need, &[], &seen).2, apply);
    }

    #[test]
    fn what_an_entry_of_the_same_profile_holds_is_not_asked_again() {
        let open =
            [entry_holding("series", &pool(0, 0).place, 3), entry_holding("postgres", &pool(1, 0).place, 9)];
        assert_eq!(plan_2m(5 << 21, &Nodes::Spread, &open), Ok(vec![(Some(0), 0, 0), (Some(1), 2, 10)]));
    }

    #[test]
    fn pages_of_the_entry_that_goes_are_taken_over_as_far_as_they_are_needed() {
        let (catalogue, mut observation) = (catalogue(), observation());
        let knob = catalogue.knob(&planish_model::KnobId::new("hugepages.2m")).expect("a row");
        let mut open = vec![
            entry_holding("postgres", &pool(0, 0).place, 3),
            entry_holding("mine", &pool(0, 0).place, 1),
        ];
        open[1].id = EntryId(2);
        let own = Own { profile: "mine", instead_of: Some(EntryId(1)), open: &open };
        // Node 0 has 20 pages by now, four of them ours.
        observation.pools[0].pages = 20;
        for (need, raised, takes, wanted) in [(2, 0, 1, 18), (4, 0, 3, 20), (9, 5, 3, 25)] {
            let need = Need::Bytes(need << 21, &Nodes::Each(vec![0]));
            let raises = raises(knob, need, own, &catalogue, &observation).expect("a pool");
            assert_eq!((raises[0].pages(), raises[0].takes, raises[0].wanted()), (raised, takes, wanted));
        }
    }

    #[test]
    fn pages_for_a_service_are_held_under_its_name_and_whatever_profile() {
        let observation = observation();
        let mut entry = entry_holding("series", &pool(0, 0).place, 3);
        entry.steps[0].service = Some("engine".to_owned());
        let held = |profile, service| {
            let own = own(profile, std::slice::from_ref(&entry));
            let place = pool(0, 0).place;
            own_steps(own, &observation, service, &place).map(|(_, step)| step.pages_held()).sum::<u64>()
        };
        assert_eq!(held("postgres", Some("engine")), 3);
        assert_eq!(held("series", Some("another")), 0);
        assert_eq!(held("series", None), 0);
    }

    #[test]
    fn a_kernel_without_numa_has_the_global_pool() {
        let catalogue = catalogue();
        let mut observation = observation();
        observation.pools = vec![PoolReading {
            node: None,
            page_bytes: 2 << 20,
            place: "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages".to_owned(),
            pages: 4,
            free: 4,
            surplus: 0,
        }];
        let knob = catalogue.knob(&planish_model::KnobId::new("hugepages.2m")).expect("a row");
        let need = Need::Bytes(3 << 20, &Nodes::Spread);
        let raises = raises(knob, need, own("series", &[]), &catalogue, &observation).expect("a pool");
        assert_eq!(raises[0].knob.id.as_str(), "hugepages.2m.total");
        assert_eq!((raises[0].pages(), raises[0].wanted()), (2, 6));
    }

    proptest! {
        #[test]
        fn a_spread_is_whole_and_even(pages in 0_u64..100_000, count in 1_u32..64) {
            let nodes: Vec<_> = (0..count).map(Some).collect();
            let spread = spread(pages, &nodes);
            prop_assert_eq!(spread.values().sum::<u64>(), pages);
            let (least, most) = (spread.values().min(), spread.values().max());
            prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1));
        }

        #[test]
        fn a_raise_never_lowers_what_others_have(
            pages in 0_u64..10_000, surplus in 0_u64..100, need in 0_u64..1 << 36, held in 0_u64..10_000,
        ) {
            let (catalogue, mut observation) = (catalogue(), observation());
            observation.pools = vec![PoolReading { surplus: surplus.min(pages), ..pool(0, pages) }];
            let knob = catalogue.knob(&planish_model::KnobId::new("hugepages.2m")).expect("a row");
            let open = [entry_holding("series", &pool(0, 0).place, held)];
            let need = Need::Bytes(need, &Nodes::Spread);
            let raises = raises(knob, need, own("series", &open), &catalogue, &observation).expect("a pool");
            let persistent = pages - surplus.min(pages);
            prop_assert!(raises[0].wanted() >= persistent);
            prop_assert_eq!(raises[0].wanted() - persistent, raises[0].pages());
        }
    }
}
