//! Words and nodes of a wanted value that this host does not have, and most likely no host.
//!
//! What cannot be here is skipped, and never red: a governor that this kernel was built without. A typing error looks
//! the same to the host, and must not be green. The two are told apart by the words of the row, and by what the host
//! offers.

use std::collections::BTreeSet;

use planish_model::{Catalogue, Knob, Nodes, Observation, ValueType, Want, nearest, place};

use crate::error::DecideError;

/// Refuses a word that is most likely a typing error, and a node that this host does not have.
///
/// # Errors
/// The word with the one that it is near to; the node with those that there are.
pub(crate) fn refuse(
    knob: &Knob,
    want: &Want,
    catalogue: &Catalogue,
    observation: &Observation,
) -> Result<(), DecideError> {
    want.literals().iter().try_for_each(|value| refuse_word(knob, value, observation))?;
    match want {
        Want::Need { nodes: Nodes::Each(each), .. } => refuse_node(knob, each, catalogue, observation),
        _ => Ok(()),
    }
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
