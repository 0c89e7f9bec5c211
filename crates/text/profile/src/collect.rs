//! Where every reader puts what it finds: interns names, joins equal calls, and ends as a profile.

use foldhash::fast::FixedState;

use crate::profile::{CallProfile, Edge, Edges, Function, Weights};
use crate::program::Program;
use crate::stacks::{StackTree, Stacks};

/// Millions of small keys, from files that their owner recorded: quick to hash, the same in every run.
type HashMap<K, V> = std::collections::HashMap<K, V, FixedState>;

/// A place in the program that a sample names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A function, and the offset in it where it is known.
    In(u32, Option<u64>),
    /// Code of the program without a symbol.
    Unnamed,
    /// Another program, a library, the kernel.
    Outside,
}

impl Place {
    pub fn function(self) -> Option<u32> {
        match self {
            Self::In(function, _) => Some(function),
            Self::Unnamed | Self::Outside => None,
        }
    }
}

/// Collects one profile.
pub(crate) struct Collector<'a> {
    program: Option<&'a Program>,
    /// Names to places: of the program, or in the order in which they came where there is none.
    names: HashMap<String, Place>,
    free: Vec<String>,
    weights: HashMap<u32, u64>,
    hits: HashMap<(u32, u64), u64>,
    edges: HashMap<(u32, u32), u64>,
    /// The stack that a thread showed last, from its root.
    last: HashMap<u64, Vec<Place>>,
    /// All stacks, where somebody wants them.
    stacks: Option<StackTree>,
    total: u64,
    outside: u64,
    unnamed: u64,
}

impl<'a> Collector<'a> {
    pub fn new(program: Option<&'a Program>) -> Self {
        Self {
            program,
            names: HashMap::default(),
            free: Vec::new(),
            weights: HashMap::default(),
            hits: HashMap::default(),
            edges: HashMap::default(),
            last: HashMap::default(),
            stacks: None,
            total: 0,
            outside: 0,
            unnamed: 0,
        }
    }

    /// Keeps the stacks as well.
    pub fn with_stacks(self) -> Self {
        Self { stacks: Some(StackTree::default()), ..self }
    }

    /// The stacks that were kept.
    pub fn stacks(&self) -> Option<Stacks> {
        self.stacks.as_ref().map(|tree| tree.named(|function| self.name_of(function).to_owned()))
    }

    fn name_of(&self, function: u32) -> &str {
        match self.program {
            Some(program) => &program.functions()[function as usize].name,
            None => &self.free[function as usize],
        }
    }

    /// Names the place; a name that the program does not have is outside of it.
    pub fn named(&mut self, name: &str, offset: Option<u64>) -> Place {
        if name.is_empty() {
            return Place::Unnamed;
        }
        let place = match self.names.get(name) {
            Some(place) => *place,
            None => {
                let place = match self.program {
                    Some(program) => {
                        program.by_name(name).map_or(Place::Outside, |index| Place::In(index, None))
                    }
                    None => {
                        self.free.push(name.to_owned());
                        Place::In(u32::try_from(self.free.len() - 1).expect("names fit 32 bits"), None)
                    }
                };
                self.names.insert(name.to_owned(), place);
                place
            }
        };
        match place {
            Place::In(function, _) => Place::In(function, offset),
            other => other,
        }
    }

    /// Names the place of a frame whose run-time address is known too: local functions that share a name are told
    /// apart by it, since every loader keeps the offset into a page. A name that fits none is in the program still.
    pub fn named_at(&mut self, name: &str, offset: Option<u64>, address: u64) -> Place {
        let place = self.named(name, offset);
        let (Place::Outside, Some(program)) = (place, self.program) else { return place };
        let found = program.local_at(name, offset.unwrap_or(0), address);
        found.map_or(Place::Unnamed, |function| Place::In(function, offset))
    }

    /// Whether a file of this path is the program; every file is where no program was named.
    pub fn is_ours(&self, path: &str) -> bool {
        let last = |path: &str| path.rsplit('/').next().map(str::to_owned);
        self.program.is_none_or(|program| last(&program.name) == last(path))
    }

    /// The place of a virtual address of the program.
    pub fn at(&self, address: u64) -> Place {
        let Some(program) = self.program else { return Place::Outside };
        match program.at(address) {
            Some((function, offset)) => Place::In(function, Some(offset)),
            None if program.holds_code(address) => Place::Unnamed,
            None => Place::Outside,
        }
    }

    /// The place of a byte of the program's file, as maps of processes name it.
    pub fn at_file_offset(&self, offset: u64) -> Place {
        let address = self.program.and_then(|program| program.address_of(offset));
        address.map_or(Place::Outside, |address| self.at(address))
    }

    /// Adds weight to a place.
    pub fn hit(&mut self, place: Place, weight: u64) {
        self.total = self.total.saturating_add(weight);
        match place {
            Place::In(function, offset) => {
                add(&mut self.weights, function, weight);
                if let Some(offset) = offset {
                    add(&mut self.hits, (function, offset), weight);
                }
            }
            Place::Unnamed => self.unnamed = self.unnamed.saturating_add(weight),
            Place::Outside => self.outside = self.outside.saturating_add(weight),
        }
    }

    /// Adds calls.
    pub fn call(&mut self, caller: Place, callee: Place, weight: u64) {
        if let (Some(caller), Some(callee)) = (caller.function(), callee.function()) {
            add(&mut self.edges, (caller, callee), weight);
        }
    }

    /// Adds a taken branch: activity of the function that it leaves, and a call where it enters another one.
    pub fn branch(&mut self, from: Place, to: Place, count: u64) {
        self.hit(from, count);
        let enters = matches!(to, Place::In(_, Some(0)));
        if enters && from.function() != to.function() {
            self.call(from, to, count);
        }
    }

    /// Adds a stack whose first place is the innermost.
    ///
    /// A call counts where it is the innermost, or where the frame was not there in the last sample of the thread:
    /// frames that merely stay (a main loop) were not called again. Without a thread, every call of the stack
    /// counts.
    pub fn stack(&mut self, thread: Option<u64>, places: &[Place], weight: u64) {
        let Some(&leaf) = places.first() else { return };
        self.hit(leaf, weight);
        if let Some(stacks) = &mut self.stacks {
            stacks.add(places, weight);
        }
        let stayed = match thread {
            Some(thread) => {
                let last = self.last.entry(thread).or_default();
                let same = |(now, then): &(&Place, &Place)| now.function() == then.function();
                let stayed = places.iter().rev().zip(last.iter()).take_while(same).count();
                last.clear();
                last.extend(places.iter().rev());
                stayed
            }
            None => 0,
        };
        for (depth, pair) in places.windows(2).enumerate() {
            let from_root = places.len() - 1 - depth;
            if depth == 0 || from_root >= stayed {
                self.call(pair[1], pair[0], weight);
            }
        }
    }

    /// Whether anything of the program was found.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty() && self.edges.is_empty()
    }

    /// Weight of all that was sampled.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The profile of what was collected.
    pub fn finish(self, event: String, weights: Weights, edges: Edges) -> CallProfile {
        let mut seen: Vec<u32> = self.weights.keys().copied().collect();
        seen.extend(self.edges.keys().flat_map(|(caller, callee)| [*caller, *callee]));
        seen.sort_unstable();
        seen.dedup();
        let place: HashMap<u32, u32> = seen.iter().copied().zip(0..).collect();
        let function = |index: &u32| {
            let (name, bytes) = match self.program {
                Some(program) => {
                    let function = &program.functions()[*index as usize];
                    (function.name.clone(), function.bytes)
                }
                None => (self.free[*index as usize].clone(), 0),
            };
            let weight = self.weights.get(index).copied().unwrap_or(0);
            Function { name, bytes, weight, hits: Vec::new() }
        };
        let mut functions: Vec<Function> = seen.iter().map(function).collect();
        for ((index, offset), weight) in self.hits {
            functions[place[&index] as usize].hits.push((offset, weight));
        }
        functions.iter_mut().for_each(|function| function.hits.sort_unstable());
        let edge =
            |((caller, callee), weight)| Edge { caller: place[&caller], callee: place[&callee], weight };
        let mut profile = CallProfile {
            program: self.program.map(|program| program.name.clone()).unwrap_or_default(),
            build_ids: self.program.and_then(|program| program.build_id.clone()).into_iter().collect(),
            event,
            weights,
            edges_are: edges,
            hosts: Vec::new(),
            window: None,
            duty: 1.0,
            total: self.total,
            outside: self.outside,
            unnamed: self.unnamed,
            functions,
            edges: self.edges.into_iter().map(edge).collect(),
        };
        profile.normalise();
        profile
    }
}

fn add<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u64>, key: K, weight: u64) {
    let count = counts.entry(key).or_default();
    *count = count.saturating_add(weight);
}
