//! What of a process lies where, what of it is to go, and what stays for which reason. Writes nothing.

use std::collections::BTreeMap;
use std::ops::Range;

use planish_residency::{Area, Kind};
use planish_sys::pagemap::{Filled, Run};
use planish_sys::policy::PageAt;
use planish_sys::{Errno, NodeSet};

use super::named::{joined, overlap, whole};
use super::{Extent, Mapped, Pages, Process, Processes, Reasons, RelocateError, filled_at, target};

/// Pages that are asked about in one call.
const PAGES_PER_CALL: u64 = 16 << 10;

/// Why what is in swap stays.
const IN_SWAP: &str = "in swap: it comes back to the node of the thread that asks for it";
/// Page tables call swapped whatever entry is no page; as far as the process has nothing in swap, it has no memory.
const MARKED: &str = "marked in the page tables, with no memory behind it: write protection by userfaultfd, or pages \
                      that failed";

/// What is to be moved.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// The nodes to move to; none to look only.
    pub targets: Vec<u32>,
    /// Only pages that lie on these nodes now.
    pub from: Option<NodeSet>,
    /// Only memory of these kinds.
    pub kinds: Vec<Kind>,
    /// Only memory at these addresses: whole pages, in rising order, no two of which touch. `None` is all of it.
    pub ranges: Option<Vec<Range<u64>>>,
    /// Also what has a policy of its own that says otherwise.
    pub against_policy: bool,
    /// Also what the program has locked into memory.
    pub locked: bool,
    /// Bytes a second at most, there and back.
    pub bytes_per_second: u64,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Bytes of the wanted kinds on each node, whether they are to go or not.
    pub on: BTreeMap<u32, u64>,
    /// The pages that are to go, by address.
    pub extents: Vec<Extent>,
    /// The mappings in which they lie.
    pub areas: Vec<(Range<u64>, String)>,
    /// Bytes that stay, by reason.
    pub stays: Reasons,
    /// Bytes that are to go to each node.
    pub incoming: BTreeMap<u32, u64>,
    /// Of these, bytes beyond the addresses that were named: they are of the same large pages.
    pub beyond: u64,
    /// Whether there may be more of these, which nobody tells: they go too, and are not recorded.
    pub may_take_more: bool,
}

impl Survey {
    /// Bytes that are to go.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.incoming.values().sum()
    }

    /// The pages as a record holds them.
    #[must_use]
    pub fn pages(&self, wish: &Wish, processes: &dyn Processes) -> Pages {
        Pages {
            targets: wish.targets.clone(),
            chunk_bytes: processes.chunk_bytes(),
            base_bytes: processes.base_bytes(),
            bytes_per_second: wish.bytes_per_second,
            areas: self.areas.clone(),
            extents: self.extents.clone(),
        }
    }

    fn stay(&mut self, reason: impl Into<String>, bytes: u64) {
        if bytes > 0 {
            *self.stays.entry(reason.into()).or_default() += bytes;
        }
    }
}

/// Looks at the memory of a process.
///
/// # Errors
/// It has ended, or may not be seen.
pub fn survey(
    processes: &dyn Processes,
    process: &dyn Process,
    wish: &Wish,
) -> Result<Survey, RelocateError> {
    let mut survey = Survey::default();
    if wish.kinds.is_empty() || wish.ranges.as_ref().is_some_and(Vec::is_empty) {
        // Threads alone: nothing of its memory is looked at, which costs it something, and needs NUMA. Or it has none
        // of the mappings that were named.
        return Ok(survey);
    }
    let (mut marked, mapped) = (0, process.mapped()?);
    let parts = wish.ranges.as_ref();
    let parts = parts.map(|parts| widened(processes, process, &mapped, parts, &mut survey)).transpose()?;
    for mapped in mapped.iter().filter(|mapped| wish.kinds.contains(&mapped.area.kind)) {
        let runs = runs_of(process, parts.as_deref(), &mapped.area.range)?;
        let bytes = |wanted: fn(Filled) -> bool| -> u64 {
            let runs = runs.iter().filter(|run| wanted(run.filled));
            runs.map(|run| run.range.end - run.range.start).sum()
        };
        marked += bytes(|filled| filled == Filled::Swapped);
        let resident = bytes(|filled| matches!(filled, Filled::Base | Filled::Huge));
        let kept = kept(mapped, wish);
        if resident == 0 {
            continue;
        }
        let first = survey.extents.len();
        for run in runs.iter().filter(|run| matches!(run.filled, Filled::Base | Filled::Huge)) {
            look(processes, process, wish, run, kept.as_deref(), &mut survey)?;
        }
        if survey.extents.len() > first {
            survey.areas.push((mapped.area.range.clone(), mapped.area.name.clone()));
        }
    }
    let swapped = if marked > 0 { process.swapped_bytes()?.unwrap_or(marked).min(marked) } else { 0 };
    survey.stay(IN_SWAP, swapped);
    survey.stay(MARKED, marked - swapped);
    let base = processes.base_bytes();
    survey.beyond =
        wish.ranges.as_ref().map_or(0, |ranges| survey.bytes() - bytes_within(&survey.extents, ranges, base));
    Ok(survey)
}

/// What the page tables have in a mapping: of one in which parts are meant those parts.
fn runs_of(
    process: &dyn Process,
    parts: Option<&[Range<u64>]>,
    area: &Range<u64>,
) -> Result<Vec<Run>, RelocateError> {
    let Some(parts) = parts else { return process.runs(area.clone()) };
    let mut runs = Vec::new();
    for part in parts.iter().map(|part| overlap(part, area)).filter(|part| !part.is_empty()) {
        runs.extend(process.runs(part)?);
    }
    Ok(runs)
}

/// Ranges with the rest of the large pages at their ends, since the kernel moves no piece of one: an undo has to know
/// those neighbours, as the page may be split before.
fn widened(
    processes: &dyn Processes,
    process: &dyn Process,
    mapped: &[Mapped],
    ranges: &[Range<u64>],
    survey: &mut Survey,
) -> Result<Vec<Range<u64>>, RelocateError> {
    let (base, mut all) = (processes.base_bytes(), ranges.to_vec());
    for range in ranges {
        for (end, page) in [(range.start, range.start), (range.end, range.end - base)] {
            match large_at(processes, process, mapped, (end, page))? {
                Some(large) => all.push(large),
                None => survey.may_take_more = true,
            }
        }
    }
    Ok(joined(all))
}

/// The large page that an end of a range cuts, by the page of the range that lies there: that page alone where there is
/// none, `None` where nobody tells.
fn large_at(
    processes: &dyn Processes,
    process: &dyn Process,
    mapped: &[Mapped],
    (end, page): (u64, u64),
) -> Result<Option<Range<u64>>, RelocateError> {
    let alone = page..page + processes.base_bytes();
    if end.is_multiple_of(processes.chunk_bytes()) {
        return Ok(Some(alone));
    }
    let chunk = whole(&alone, processes.chunk_bytes());
    let before = mapped.partition_point(|mapped| mapped.area.range.end <= chunk.start);
    let mut runs = Vec::new();
    for mapped in mapped[before..].iter().take_while(|mapped| mapped.area.range.start < chunk.end) {
        runs.extend(process.runs(overlap(&mapped.area.range, &chunk))?);
    }
    let beyond = if page == end { chunk.start..end } else { end..chunk.end };
    let is_beyond = |run: &Run| run.filled == Filled::Base && !overlap(&run.range, &beyond).is_empty();
    Ok(match filled_at(&runs, page) {
        Some(Filled::Huge) => Some(chunk),
        Some(Filled::Base) if runs.iter().any(is_beyond) => process.folio(page, &chunk),
        _ => Some(alone),
    })
}

/// Bytes of runs that lie within ranges, both in rising order.
fn bytes_within(extents: &[Extent], ranges: &[Range<u64>], base: u64) -> u64 {
    let (mut bytes, mut first) = (0, 0);
    for extent in extents.iter().map(|extent| extent.range(base)) {
        while ranges.get(first).is_some_and(|range| range.end <= extent.start) {
            first += 1;
        }
        let rest = ranges.get(first..).unwrap_or_default();
        let touched =
            rest.iter().take_while(|range| range.start < extent.end).map(|range| overlap(range, &extent));
        bytes += touched.map(|part| part.end - part.start).sum::<u64>();
    }
    bytes
}

/// Whether a mapping is of this process alone: a child that it forked may share its pages, and nobody else.
pub(super) fn is_own(area: &Area) -> bool {
    !area.is_shared() && area.inode == 0
}

/// Why a whole mapping stays; `None` for one that may go.
pub(super) fn kept(mapped: &Mapped, wish: &Wish) -> Option<String> {
    if mapped.is_pool {
        return Some(
            "on pages of a pool, which are taken from the pool of another node: not moved".to_owned(),
        );
    }
    if !is_own(&mapped.area) {
        return Some("of a file, or shared with other processes: not moved".to_owned());
    }
    if mapped.is_locked && !wish.locked {
        return Some("locked into memory by the program: --locked moves it".to_owned());
    }
    match &mapped.policy {
        None => Some("its memory policy could not be told".to_owned()),
        Some(policy) if wish.against_policy || agrees(policy, &wish.targets) => None,
        Some(policy) => Some(format!("has the policy {policy}: --against-policy moves it")),
    }
}

/// Whether memory may lie on the nodes without going against its policy.
fn agrees(policy: &str, targets: &[u32]) -> bool {
    let (mode, nodes) = policy.split_once(':').unwrap_or((policy, ""));
    let mode = mode.split('=').next().unwrap_or(mode).trim();
    let names_all =
        NodeSet::parse_list(nodes).is_ok_and(|nodes| targets.iter().all(|node| nodes.contains(*node)));
    match mode {
        "default" | "local" => true,
        // A bound or preferred page may lie on any of its nodes; one that is dealt out has the one that it was dealt.
        "bind" | "prefer" | "prefer (many)" => names_all,
        _ => false,
    }
}

/// Asks where the pages of a run lie.
fn look(
    processes: &dyn Processes,
    process: &dyn Process,
    wish: &Wish,
    run: &Run,
    kept: Option<&str>,
    survey: &mut Survey,
) -> Result<(), RelocateError> {
    let base = processes.base_bytes();
    let mut from = run.range.start;
    while from < run.range.end {
        let end = run.range.end.min(from + PAGES_PER_CALL * base);
        let addresses: Vec<u64> = (from..end).step_by(usize::try_from(base).unwrap_or(4096)).collect();
        for (address, at) in addresses.iter().zip(process.pages_at(&addresses)?) {
            // Before Linux 6.7 the page tables do not tell a page of zeroes, which no process owns, from another.
            if at == PageAt::Failed(Errno::FAULT) {
                continue;
            }
            let PageAt::Node(node) = at else {
                survey.stay("not seen: hidden by automatic balancing, or busy at that moment", base);
                continue;
            };
            *survey.on.entry(node).or_default() += base;
            let is_from = wish.from.as_ref().is_none_or(|from| from.contains(node));
            if wish.targets.is_empty() || !is_from {
                continue;
            }
            let to = target(*address, &wish.targets, processes.chunk_bytes());
            if node == to {
                continue;
            }
            if let Some(reason) = kept {
                survey.stay(reason, base);
                continue;
            }
            *survey.incoming.entry(to).or_default() += base;
            add(&mut survey.extents, *address, node, base, run.range.start);
        }
        from = end;
    }
    Ok(())
}

/// Adds a page to the last run where it goes on, and not across the beginning of a run of the page tables.
fn add(extents: &mut Vec<Extent>, address: u64, node: u32, base: u64, run_start: u64) {
    match extents.last_mut() {
        Some(last) if last.node == node && last.range(base).end == address && address != run_start => {
            last.pages += 1;
        }
        _ => extents.push(Extent { start: address, pages: 1, node }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_somebody_set_is_not_broken_by_accident() {
        assert!(agrees("default", &[1]) && agrees("local", &[0]));
        assert!(agrees("bind:0-1", &[1]) && agrees("prefer:1", &[1]) && agrees("prefer (many):0-1", &[0, 1]));
        assert!(agrees("bind=static:0-1", &[1]), "flags of a mode are no other mode");
        assert!(!agrees("bind:0", &[1]) && !agrees("bind:0", &[0, 1]));
        assert!(!agrees("interleave:0-1", &[1]) && !agrees("weighted interleave:0-1", &[0]));
        assert!(!agrees("something new:1", &[1]));
    }
}
