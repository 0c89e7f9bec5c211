//! A profile and a program as a graph: which functions can be ordered, and where they are now.

use planish_profile::{CallProfile, Program};

use crate::graph::{Arc, Graph, Node};

/// Why there is nothing to order.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// No function of the profile is in the program.
    #[error("none of the {functions} functions of the profile is in the program")]
    NothingMatches {
        /// Functions of the profile.
        functions: usize,
    },
}

/// The functions of a program that a profile knows.
#[derive(Debug)]
pub struct Subject {
    /// Their call graph; node `i` is `functions[i]` of the program.
    pub graph: Graph,
    /// For each node its index in the program, by address.
    pub functions: Vec<u32>,
    /// For each node its sampled offsets with their weights.
    pub hits: Vec<Vec<(u64, u64)>>,
    /// For each node its address in the program.
    pub addresses: Vec<u64>,
    /// The share of the profile's weight whose function the program has, from 0 to 1.
    pub matched: f64,
    /// The share of the calls that go through a procedure linkage table, which no order can move.
    pub linkage: f64,
}

impl Subject {
    /// Matches a profile with a program: exactly, by alias, or by the part of a name that outlives a build.
    ///
    /// # Errors
    /// [`SubjectError::NothingMatches`] where the two have nothing in common.
    pub fn new(profile: &CallProfile, program: &Program) -> Result<Self, SubjectError> {
        let found: Vec<Option<u32>> =
            profile.functions.iter().map(|function| program.by_name(&function.name)).collect();
        let is_linkage = |index: u32| program.functions()[index as usize].name.starts_with('[');
        let mut functions: Vec<u32> =
            found.iter().flatten().copied().filter(|index| !is_linkage(*index)).collect();
        functions.sort_unstable();
        functions.dedup();
        if functions.is_empty() {
            return Err(SubjectError::NothingMatches { functions: found.len() });
        }
        // Where each function of the profile is among them: looked for once, and not for every call.
        let place = |index: Option<u32>| functions.binary_search(&index?).ok();
        let places: Vec<Option<usize>> = found.iter().copied().map(place).collect();
        let node = |index: &u32| Node { bytes: program.functions()[*index as usize].bytes, weight: 0 };
        let mut nodes: Vec<Node> = functions.iter().map(node).collect();
        let mut hits = vec![Vec::new(); functions.len()];
        // Offsets of another build point at other instructions.
        let same_build = profile.is_of_build(program.build_id.as_deref());
        let (mut total, mut matched) = (0_u64, 0_u64);
        for ((function, found), place) in profile.functions.iter().zip(&found).zip(&places) {
            total = total.saturating_add(function.weight);
            if found.is_none() {
                continue;
            }
            matched = matched.saturating_add(function.weight);
            if let Some(place) = *place {
                nodes[place].weight = nodes[place].weight.saturating_add(function.weight);
                hits[place].extend(function.hits.iter().filter(|_| same_build));
            }
        }
        let (mut arcs, mut calls, mut through_tables) = (Vec::new(), 0_u64, 0_u64);
        for edge in &profile.edges {
            let ends = [edge.caller as usize, edge.callee as usize];
            if ends.iter().any(|end| found[*end].is_none()) {
                continue;
            }
            calls = calls.saturating_add(edge.weight);
            let [Some(from), Some(to)] = ends.map(|end| places[end]) else {
                through_tables = through_tables.saturating_add(edge.weight);
                continue;
            };
            let index = |place: usize| u32::try_from(place).expect("functions fit 32 bits");
            // Where in the caller a call stands is not known: its middle is right on average.
            let offset = nodes[from].bytes.div_ceil(2);
            arcs.push(Arc { from: index(from), to: index(to), weight: edge.weight, offset });
        }
        let addresses = functions.iter().map(|index| program.functions()[*index as usize].address).collect();
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        Ok(Self {
            graph: Graph::new(nodes, arcs).expect("every end was looked up"),
            hits,
            addresses,
            matched: share(matched, total),
            linkage: share(through_tables, calls),
            functions,
        })
    }

    /// The order that the functions have in the program.
    #[must_use]
    pub fn current(&self) -> Vec<u32> {
        (0..).take(self.functions.len()).collect()
    }

    /// An order that was made before, by the names of its functions; those that it lacks follow as they stand.
    #[must_use]
    pub fn previous<'a>(&self, names: impl Iterator<Item = &'a str>, program: &Program) -> Vec<u32> {
        let mut taken = vec![false; self.functions.len()];
        let known = names.filter_map(|name| self.functions.binary_search(&program.by_name(name)?).ok());
        let mut order: Vec<usize> =
            known.filter(|place| !std::mem::replace(&mut taken[*place], true)).collect();
        order.extend((0..taken.len()).filter(|place| !taken[*place]));
        order.into_iter().map(|place| u32::try_from(place).expect("functions fit 32 bits")).collect()
    }
}
