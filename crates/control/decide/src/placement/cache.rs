//! Ways of the caches that services have to themselves.
//!
//! ```text
//!   ways of one cache    10 9 8 7 6 5 4 3 2 1 0
//!   devices fill, too     x x                        never given away
//!   a group of others             o o                never given away, never changed
//!   the service                             s s s s  its group alone
//!   the default group     d d d d d d d              what is left
//! ```
//!
//! Two things make the ways its own: its CPUs are in a group that has them, and the default group, which all others are
//! in, loses them. Where every cache of the machine is shared out so, the group is exclusive, and the kernel keeps
//! later groups off its ways by itself. Elsewhere that would take ways of caches that none of its CPUs has, and is not
//! done.

use std::collections::BTreeMap;

use planish_model::{
    CacheControl, CacheGroup, CacheResource, Cpus, KnobId, Observation, PlacedCache, PlacedService,
    Placement, PlacementRequest, Schemata, place,
};

use super::{Ask, PlacementError, What};

/// What to do about a group of ours that is in the way.
const UNDO_FIRST: &str = "take it back first: planish log, planish undo ENTRY";

/// What cannot be given away, or not so.
struct Refused {
    reason: String,
    cure: String,
}

fn refused(reason: impl Into<String>, cure: impl Into<String>) -> Refused {
    Refused { reason: reason.into(), cure: cure.into() }
}

/// What is left of every cache, and what is everybody's.
struct Left {
    /// Ways that nobody else has, by cache.
    free: BTreeMap<u32, u64>,
    /// Ways of the default group, by cache.
    default: BTreeMap<u32, u64>,
}

/// The shares of all services that ask for one.
pub(super) fn shares(
    observation: &Observation,
    request: &PlacementRequest,
    placement: &Placement,
) -> Result<(Vec<PlacedCache>, Vec<Ask>), PlacementError> {
    let asked = request.service.iter().zip(&placement.services);
    let asked: Vec<(u32, &PlacedService)> =
        asked.filter_map(|(asked, placed)| Some((asked.cache?, placed))).collect();
    let Some((_, first)) = asked.first() else { return Ok((Vec::new(), Vec::new())) };
    let error = |unit: &str, Refused { reason, cure }: Refused| PlacementError::NoCache {
        unit: unit.to_owned(),
        reason,
        cure,
    };
    let caches = observation.caches.as_ref().ok_or(PlacementError::Unseen)?;
    let (resource, mut left, whole) = look(caches, &asked).map_err(|why| error(&first.unit, why))?;
    let mut placed = Vec::new();
    for (percent, service) in &asked {
        let ways =
            share(caches, resource, &mut left, *percent, service).map_err(|why| error(&service.unit, why))?;
        placed.push(PlacedCache {
            unit: service.unit.clone(),
            group: group_of(service),
            ways,
            of: resource.mask.count_ones(),
            shareable: None,
            beside: beside(caches, &asked),
        });
    }
    let shareable = shareable(caches, &placed);
    placed.iter_mut().for_each(|cache| cache.shareable.clone_from(&shareable));
    let groups = groups(&placed, &asked, &whole, &left);
    for ((name, group), (_, service)) in groups.iter().zip(&asked) {
        refuse_changed(caches, name, group).map_err(|why| error(&service.unit, why))?;
    }
    let asks = asks(&placed, &asked, groups, default_of(&whole, &left));
    Ok((placed, asks))
}

/// The name of the group of a service: a folder in resctrl.
fn group_of(service: &PlacedService) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._@:-".contains(c) { c } else { '-' };
    let stem = service.unit.strip_suffix(".service").unwrap_or(&service.unit);
    format!("{}{}", place::RESCTRL_OWN, stem.chars().map(plain).collect::<String>())
}

fn is_ours(name: &str, asked: &[(u32, &PlacedService)]) -> bool {
    asked.iter().any(|(_, service)| group_of(service) == name)
}

/// What there is to share out: the third-level cache, what is left of each, and the schemata of the default group as it
/// is without our groups.
fn look<'a>(
    caches: &'a CacheControl,
    asked: &[(u32, &PlacedService)],
) -> Result<(&'a CacheResource, Left, Schemata), Refused> {
    if let Some((reason, cure)) = &caches.hindered {
        return Err(refused(reason.clone(), cure.clone()));
    }
    let l3 = caches.resources.iter().find(|(name, _)| name.starts_with("L3"));
    let Some((name, resource)) = l3.filter(|(_, resource)| resource.mask != 0) else {
        return Err(refused("this CPU shares out no third-level cache", "leave `cache` out of the profile"));
    };
    let Some(mut whole) = Schemata::parse(&caches.default) else {
        return Err(refused(
            format!("what the default group has cannot be read: `{}`", caches.default),
            "see cat /sys/fs/resctrl/schemata",
        ));
    };
    let new = asked.iter().filter(|(_, service)| !caches.groups.contains_key(&group_of(service))).count();
    let (groups, closids) = (caches.groups.len() + 1, caches.closids());
    if groups + new > closids {
        return Err(refused(
            format!("{new} more of {closids} groups are needed, and {groups} are there"),
            "remove a group that nobody needs: ls /sys/fs/resctrl",
        ));
    }
    let domains = whole.0.get(name).cloned().unwrap_or_default();
    if whole.0.iter().any(|(other, ways)| other.starts_with("L3") && *ways != domains) {
        return Err(refused(
            format!("code and data of the default group have different ways: {}", caches.default),
            "give both the same: /sys/fs/resctrl/schemata",
        ));
    }
    let mut left = Left { free: BTreeMap::new(), default: domains };
    for (domain, ways) in &mut left.default {
        let mut taken = resource.shareable;
        for (group, other) in &caches.groups {
            let theirs = Schemata::parse(&other.schemata);
            // Code and data of a cache have a mask each.
            let of_l3 =
                theirs.iter().flat_map(|schemata| &schemata.0).filter(|(name, _)| name.starts_with("L3"));
            let theirs = of_l3.filter_map(|(_, domains)| domains.get(domain)).fold(0, |all, ways| all | ways);
            match is_ours(group, asked) {
                true => *ways |= theirs,
                false => taken |= theirs,
            }
        }
        left.free.insert(*domain, *ways & !taken);
    }
    let of_l3 = whole.0.iter_mut().filter(|(name, _)| name.starts_with("L3"));
    of_l3.for_each(|(_, domains)| domains.clone_from(&left.default));
    Ok((resource, left, whole))
}

/// The ways of one service, taken out of what is left.
fn share(
    caches: &CacheControl,
    resource: &CacheResource,
    left: &mut Left,
    percent: u32,
    service: &PlacedService,
) -> Result<BTreeMap<u32, u64>, Refused> {
    let profile = "in the table [placement] of the profile (docs/cache.md)";
    if !(1..=99).contains(&percent) {
        return Err(refused(
            format!("{percent} % of a cache is no share of it"),
            format!("say 1 to 99 {profile}"),
        ));
    }
    for (name, other) in &caches.groups {
        let shared = other.cpus.intersection(&service.cpus);
        if *name == group_of(service) {
            refuse_used(name, other, service)?;
        } else if !shared.is_empty() {
            let other_cpus = format!("give the service other CPUs {profile}");
            let (whose, cure) = match name.starts_with(place::RESCTRL_OWN) {
                true => ("that of another service", UNDO_FIRST),
                false => ("which somebody else made", "remove that group"),
            };
            return Err(refused(
                format!("CPU {shared} is in the group {name} of resctrl, {whose}"),
                format!("{other_cpus}, or {cure}"),
            ));
        }
    }
    let domains: Vec<u32> = {
        let has = |cpus: &Cpus| !cpus.intersection(&service.cpus).is_empty();
        let domains = caches.l3_cpus.iter().filter(|(_, cpus)| has(cpus)).map(|(domain, _)| *domain);
        domains.filter(|domain| left.default.contains_key(domain)).collect()
    };
    if domains.is_empty() {
        return Err(refused(
            format!("nothing tells which third-level cache CPU {} has", service.cpus),
            "see cat /sys/devices/system/cpu/cpu0/cache/index3/id",
        ));
    }
    let count = (resource.mask.count_ones() * percent).div_ceil(100).max(resource.bits_min);
    let mut ways = BTreeMap::new();
    for domain in domains {
        let (free, default) = (left.free[&domain], left.default[&domain]);
        let Some((taken, rest)) = run(resource, free, default, count) else {
            return Err(refused(
                format!(
                    "{count} of {} ways of cache {domain} cannot be given away: free are {free:x}, and all others need \
                     some of {default:x}",
                    resource.mask.count_ones()
                ),
                format!(
                    "say a smaller `cache` {profile}, or remove a group that nobody needs: ls /sys/fs/resctrl"
                ),
            ));
        };
        left.free.insert(domain, free & !taken);
        left.default.insert(domain, rest);
        ways.insert(domain, taken);
    }
    Ok(ways)
}

/// Ways side by side that are free, and what the default group keeps: as much as can be, and of as much the lowest.
fn run(resource: &CacheResource, free: u64, default: u64, count: u32) -> Option<(u64, u64)> {
    let ways = 1_u64.checked_shl(count)?.checked_sub(1)?;
    let places = 0..=64_u32.checked_sub(count)?;
    let here = places.map(|at| ways << at).filter(|ways| free & ways == *ways);
    let kept = here.map(|ways| (ways, kept(resource, default & !ways)));
    let legal = kept.filter(|(_, rest)| resource.refusal_of_ways(*rest).is_none());
    legal.min_by_key(|(_, rest)| std::cmp::Reverse(rest.count_ones()))
}

/// What of ways the CPU takes for one group: all, or where they must lie side by side the longest row.
fn kept(resource: &CacheResource, ways: u64) -> u64 {
    if resource.sparse || resource.refusal_of_ways(ways).is_none() {
        return ways;
    }
    let row = |at: u32| {
        let row = (ways >> at).trailing_ones();
        1_u64.checked_shl(row).map_or(u64::MAX, |end| end - 1) << at
    };
    (0..64).map(row).max_by_key(|row| (row.count_ones(), *row)).unwrap_or(0)
}

/// Refuses a group of ours that somebody uses, or that has other CPUs: it is never changed.
fn refuse_used(
    name: &str,
    group: &planish_model::OtherGroup,
    service: &PlacedService,
) -> Result<(), Refused> {
    if group.tasks > 0 {
        return Err(refused(
            format!("{} tasks were put into its group {name} by somebody else", group.tasks),
            format!("put them elsewhere: cat /sys/fs/resctrl/{name}/tasks"),
        ));
    }
    if group.cpus.is_empty() || group.cpus == service.cpus {
        return Ok(());
    }
    Err(refused(
        format!("its group {name} has CPU {} already, and no group that is made is changed", group.cpus),
        UNDO_FIRST,
    ))
}

/// Refuses another share for a group that is made: the kernel would take it, and whoever runs in it would have lost
/// ways before the others got theirs back.
fn refuse_changed(caches: &CacheControl, name: &str, wanted: &CacheGroup) -> Result<(), Refused> {
    let Some(there) = caches.groups.get(name).filter(|there| !there.cpus.is_empty()) else { return Ok(()) };
    if Schemata::parse(&there.schemata).as_ref() == Some(&wanted.schemata) && there.mode == wanted.mode {
        return Ok(());
    }
    let has = format!("its group {name} is {} with {}", there.mode, there.schemata);
    Err(refused(
        format!(
            "{has} and would be {} with {}; no group that is made is changed",
            wanted.mode, wanted.schemata
        ),
        UNDO_FIRST,
    ))
}

/// Groups whose tasks have the share of that group wherever they run, on the CPUs of the services, too.
fn beside(caches: &CacheControl, asked: &[(u32, &PlacedService)]) -> Vec<String> {
    let others = caches.groups.iter().filter(|(name, group)| group.tasks > 0 && !is_ours(name, asked));
    others.map(|(name, _)| name.clone()).collect()
}

/// Why the groups are not exclusive; `None` where they are.
fn shareable(caches: &CacheControl, placed: &[PlacedCache]) -> Option<String> {
    let names: Vec<&str> = caches.caches().map(|(name, _)| name.as_str()).collect();
    if names != ["L3"] {
        return Some(format!("the machine shares out {}, and exclusive means all of them", names.join(", ")));
    }
    let domains =
        Schemata::parse(&caches.default).and_then(|schemata| schemata.0.get("L3").map(BTreeMap::len));
    let everywhere = placed.iter().all(|cache| Some(cache.ways.len()) == domains);
    (!everywhere).then(|| "exclusive means every cache of the machine, and it has CPUs of some".to_owned())
}

/// A schemata with other ways of the third-level cache.
fn with(whole: &Schemata, ways: impl Fn(u32) -> u64) -> Schemata {
    let mut schemata = whole.clone();
    for (_, domains) in schemata.0.iter_mut().filter(|(name, _)| name.starts_with("L3")) {
        domains.iter_mut().for_each(|(domain, mask)| *mask = ways(*domain));
    }
    schemata
}

/// The default group without what is given away.
fn default_of(whole: &Schemata, left: &Left) -> Schemata {
    with(whole, |domain| left.default[&domain])
}

/// The groups as they are to be, by name, one for each service that asks.
fn groups(
    placed: &[PlacedCache],
    asked: &[(u32, &PlacedService)],
    whole: &Schemata,
    left: &Left,
) -> Vec<(String, CacheGroup)> {
    let group = |(cache, (_, service)): (&PlacedCache, &(u32, &PlacedService))| {
        let group = CacheGroup {
            cpus: service.cpus.clone(),
            mode: if cache.shareable.is_none() { "exclusive" } else { "shareable" }.to_owned(),
            schemata: with(whole, |domain| cache.ways.get(&domain).copied().unwrap_or(left.default[&domain])),
            tasks: 0,
            monitors: 0,
        };
        (cache.group.clone(), group)
    };
    placed.iter().zip(asked).map(group).collect()
}

/// The default group without what is given away, and then the groups.
fn asks(
    placed: &[PlacedCache],
    asked: &[(u32, &PlacedService)],
    groups: Vec<(String, CacheGroup)>,
    default: Schemata,
) -> Vec<Ask> {
    let ask = |knob: &str, place: String, value: String, because: String| Ask {
        knob: KnobId::new(knob),
        what: What::Value { place, value, required: true },
        because,
    };
    let units: Vec<&str> = placed.iter().map(|cache| cache.unit.as_str()).collect();
    let rest = format!("what is left of the caches by {}", units.join(", "));
    let mut asks = vec![ask("resctrl.default", place::RESCTRL_DEFAULT.to_owned(), default.to_string(), rest)];
    for ((name, group), (percent, service)) in groups.into_iter().zip(asked) {
        let place = format!("{}{name}", place::RESCTRL_GROUPS);
        let because = format!("{percent} % of the cache of CPU {} for {}", service.cpus, service.unit);
        asks.push(ask("resctrl.group", place, group.to_string(), because));
    }
    asks
}

#[cfg(test)]
mod tests;
