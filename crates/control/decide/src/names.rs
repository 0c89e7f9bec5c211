//! Words, nodes and devices of a wanted value that this host does not have, and most likely no host.
//!
//! What cannot be here is skipped, and never red: a governor that this kernel was built without, the disks of another
//! machine. A typing error looks the same to the host, and must not be green. The two are told apart by the words of
//! the row, and by what the host offers.

use std::collections::BTreeSet;

use planish_model::{Access, Catalogue, Knob, Nodes, Observation, ValueType, Want, nearest, place};

use crate::error::DecideError;

/// Refuses a word or a pattern that is most likely a typing error, and a node that this host does not have.
///
/// # Errors
/// The word with the one that it is near to; the pattern and the node with those that there are.
pub(crate) fn refuse(
    knob: &Knob,
    want: &Want,
    catalogue: &Catalogue,
    observation: &Observation,
) -> Result<(), DecideError> {
    want.literals().iter().try_for_each(|value| refuse_word(knob, value, observation))?;
    patterns(want).into_iter().try_for_each(|only| refuse_pattern(knob, only, observation))?;
    match want {
        Want::Need { nodes: Nodes::Each(each), .. }
        | Want::Needs { nodes: each, .. }
        | Want::Total { nodes: Nodes::Each(each), .. }
        | Want::Totals { nodes: each, .. } => refuse_node(knob, each, catalogue, observation),
        _ => Ok(()),
    }
}

/// The patterns of a wanted value.
pub(crate) fn patterns(want: &Want) -> Vec<&str> {
    let cases = match want {
        Want::Case(case) => std::slice::from_ref(case.as_ref()),
        Want::Cases(cases) => cases,
        _ => &[],
    };
    cases.iter().filter_map(|case| case.only.as_deref()).collect()
}

fn refuse_word(knob: &Knob, value: &str, observation: &Observation) -> Result<(), DecideError> {
    // The words of a choice are checked with its type.
    if !matches!(knob.r#type, ValueType::Text { .. }) {
        return Ok(());
    }
    let word = knob.r#type.normal(value);
    let readings = observation.knobs.get(&knob.id).into_iter().flatten();
    let offered: BTreeSet<&str> = readings.flat_map(|reading| &reading.offered).map(String::as_str).collect();
    let known: BTreeSet<&str> = knob.words.iter().map(String::as_str).collect();
    if offered.contains(word.as_str()) || known.contains(word.as_str()) {
        return Ok(());
    }
    // What is offered here is meant before what is offered elsewhere.
    let Some(near) =
        nearest(&word, offered.iter().copied()).or_else(|| nearest(&word, known.iter().copied()))
    else {
        return Ok(());
    };
    Err(DecideError::Word { knob: knob.id.clone(), near: near.to_owned(), word })
}

/// What there is on this host in the hole of a knob's path that a pattern is for.
pub(crate) fn here<'a>(knob: &'a Knob, only: &str, observation: &'a Observation) -> BTreeSet<&'a str> {
    let hole = only.split_once('=').map(|(hole, _)| hole);
    let readings = observation.knobs.get(&knob.id).into_iter().flatten();
    let filled = readings.filter(|reading| reading.access != Access::Absent).filter_map(|reading| {
        let mut captures = place::captures(&knob.path, &reading.place)?.into_iter();
        captures.find(|(name, _)| hole.is_none_or(|hole| hole == *name)).map(|(_, value)| value)
    });
    filled.collect()
}

/// Families of device names that the kernel has, and that are near to another one.
const FAMILIES: [&str; 4] = ["ram", "zram", "vlan", "wlan"];

/// A family of names that is shorter is near to too many: `sd`, `vd`, `eth`, `ens`.
const FAMILY_BYTES_MIN: usize = 4;

/// Refuses a pattern that means no device of this host and is near to the names of some: `nmve*` beside `nvme0n1`. One
/// that means the devices of another host (`nvme*` beside `sda`) is no error: a profile is for many hosts.
fn refuse_pattern(knob: &Knob, only: &str, observation: &Observation) -> Result<(), DecideError> {
    let here = here(knob, only, observation);
    let family = |name: &str| {
        let end = name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(name.len());
        name[..end].to_owned()
    };
    let (hole, pattern) = only.split_once('=').map_or((None, only), |(hole, pattern)| (Some(hole), pattern));
    let is_device = hole.map_or_else(
        || ["/{disk}/", "/{nic}/"].iter().any(|hole| knob.path.contains(hole)),
        |hole| hole == "disk" || hole == "nic",
    );
    let meant = family(pattern);
    let families: BTreeSet<String> = here.iter().map(|name| family(name)).collect();
    let is_known = families.contains(&meant) || FAMILIES.contains(&meant.as_str());
    let matches = here.iter().any(|name| place::matches(pattern, name));
    if !is_device || matches || is_known || meant.len() < FAMILY_BYTES_MIN {
        return Ok(());
    }
    match nearest(&meant, families.iter().map(String::as_str)) {
        None => Ok(()),
        Some(near) => Err(DecideError::Pattern {
            knob: knob.id.clone(),
            only: only.to_owned(),
            near: only.replacen(&meant, near, 1),
            places: here.into_iter().map(str::to_owned).collect(),
        }),
    }
}

fn refuse_node(
    knob: &Knob,
    each: &[u32],
    catalogue: &Catalogue,
    observation: &Observation,
) -> Result<(), DecideError> {
    let aliases = knob.alias.iter().filter_map(|id| catalogue.knob(id).ok());
    let is_own = |place: &str| place::captures(&knob.path, place).is_some();
    let is_alias = |place: &str| aliases.clone().any(|alias| place::captures(&alias.path, place).is_some());
    // Where there is no pool of this size at all, no node can have one.
    if !observation.pools.iter().any(|pool| is_own(&pool.place) || is_alias(&pool.place)) {
        return Ok(());
    }
    let nodes: BTreeSet<u32> =
        observation.pools.iter().filter(|pool| is_own(&pool.place)).filter_map(|pool| pool.node).collect();
    match each.iter().find(|node| !nodes.contains(node)) {
        None => Ok(()),
        Some(&node) => {
            let nodes = nodes.into_iter().collect();
            Err(DecideError::NoNode { knob: knob.id.clone(), node, nodes })
        }
    }
}

#[cfg(test)]
mod tests {
    use planish_model::PoolReading;

    use super::*;
    use crate::testing::{catalogue, knob, observation, reading};

    fn governor(offered: &[&str]) -> (Knob, Observation) {
        let words = ["performance", "powersave", "schedutil"].map(str::to_owned).to_vec();
        let governor = Knob { words, ..knob("cpu.governor", "/sys/governor") };
        let mut observation = observation();
        let mut seen = reading("/sys/governor", "powersave");
        seen.offered = offered.iter().map(|word| (*word).to_owned()).collect();
        observation.knobs.insert(governor.id.clone(), vec![seen]);
        (governor, observation)
    }

    fn refused(word: &str, offered: &[&str]) -> Option<String> {
        let (governor, observation) = governor(offered);
        let want = Want::Text(word.to_owned());
        refuse(&governor, &want, &catalogue(), &observation).err().map(|error| error.to_string())
    }

    #[test]
    fn a_typing_error_is_told_from_a_word_of_another_host() {
        let offered = ["performance", "powersave"];
        let told = Some("`performanc` is no word of cpu.governor; did you mean `performance`?".to_owned());
        assert_eq!(refused("performanc", &offered), told);
        // Also where the host offers nothing by which it could be told.
        assert_eq!(refused("performanc", &[]), told);
        assert_eq!(refused("schedutil", &offered), None, "known, and not offered here");
        assert_eq!(refused("ours_built_in", &offered), None, "near to nothing");
        assert_eq!(refused("powersaved", &["powersaved"]), None, "offered, and near to another");
    }

    #[test]
    fn a_pattern_with_a_typing_error_is_told_from_the_disks_of_another_host() {
        let (catalogue, observation) = (catalogue(), observation());
        let knob = catalogue.knob(&planish_model::KnobId::new("block.scheduler")).expect("a row");
        let refused = |only: &str, observation: &Observation| {
            let (value, needs) = ("none".to_owned(), planish_model::Conditions::default());
            let case = planish_model::Case { value, only: Some(only.to_owned()), needs };
            let want = Want::Cases(vec![case]);
            refuse(knob, &want, &catalogue, observation).err().map(|error| error.to_string())
        };
        let told = |only: &str, near: &str| {
            Some(format!(
                "no place of block.scheduler matches `{only}`; did you mean `{near}`? this host has nvme0n1, sda"
            ))
        };
        assert_eq!(refused("nmve*", &observation), told("nmve*", "nvme*"));
        assert_eq!(refused("disk=nvm0n1", &observation), None, "three letters are near to too much");
        assert_eq!(refused("disk=nvne0n1", &observation), told("disk=nvne0n1", "disk=nvme0n1"));
        for other in ["nvme*", "nvme7n1", "vd*", "xvd*", "mmcblk*", "sdb", "*"] {
            assert_eq!(refused(other, &observation), None, "{other}: of another host");
        }
        let mut other = observation;
        other.knobs.get_mut(&knob.id).expect("disks").retain(|reading| reading.place.contains("/sda/"));
        assert_eq!(refused("nvme*", &other), None);
        assert_eq!(refused("nmve*", &other), None, "near to nothing that is here");
        let ram = reading("/sys/block/ram0/queue/scheduler", "none");
        other.knobs.get_mut(&knob.id).expect("disks").push(ram);
        assert_eq!(refused("zram*", &other), None, "both are names of the kernel");
        other.knobs.clear();
        assert_eq!(refused("nmve*", &other), None, "no disk at all");
    }

    #[test]
    fn a_node_that_is_not_there_is_told_with_those_that_are() {
        let (catalogue, mut observation) = (catalogue(), observation());
        let knob = catalogue.knob(&planish_model::KnobId::new("hugepages.2m")).expect("a row");
        let node = |node, observation: &Observation| {
            let want = Want::Need { need_bytes: 1, nodes: Nodes::Each(vec![0, node]) };
            refuse(knob, &want, &catalogue, observation).err().map(|error| error.to_string())
        };
        assert_eq!(node(0, &observation), None);
        let told = node(9, &observation).expect("no such node");
        assert!(told.starts_with("hugepages.2m is wanted on node 9, and this host has "), "{told}");
        // A kernel without nodes has the pool of all of them.
        observation.pools = vec![PoolReading {
            node: None,
            page_bytes: 2 << 20,
            place: "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages".to_owned(),
            pages: 0,
            free: 0,
            surplus: 0,
        }];
        assert!(node(0, &observation).expect("no node").ends_with("and this host has no nodes"));
        observation.pools.clear();
        assert_eq!(node(9, &observation), None, "no pools: they cannot be here");
    }
}
