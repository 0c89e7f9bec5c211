//! The profile itself: functions with weights, and calls between them.

use std::fmt;

use planish_sorted::SortSmall as _;

/// What the weight of a function counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weights {
    /// Samples in which the function was on top: time, or whatever the event counts.
    Samples,
    /// Taken branches that started in the function: from branch stacks and BOLT.
    Branches,
    /// Instructions or another exact cost: from callgrind.
    Cost,
}

/// What the weight of a call counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edges {
    /// The source knows no calls.
    None,
    /// Sampled stacks in which the caller stood right above the callee: time, as an estimate of calls.
    Stacks,
    /// Calls that were counted: exactly, or by a constant share of them.
    Calls,
}

macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal),+ }) => {
        impl $name {
            /// The word in a profile file.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The meaning of a word in a profile file.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words!(Weights { Samples = "samples", Branches = "branches", Cost = "cost" });
words!(Edges { None = "none", Stacks = "stacks", Calls = "calls" });

/// When the samples were taken, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first sample.
    pub start: u64,
    /// The last sample.
    pub end: u64,
}

/// A function with its own bytes and its own weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The linker's name. Where several local functions share one, `name/file.c/N`, as BOLT writes it.
    pub name: String,
    /// Size of its code; 0 where the program was not at hand.
    pub bytes: u64,
    /// What [`CallProfile::weights`] says; callees not included.
    pub weight: u64,
    /// Weight by offset into the function, in the order of offsets; empty where the source has no addresses.
    pub hits: Vec<(u64, u64)>,
}

/// Calls from one function to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// Index into [`CallProfile::functions`].
    pub caller: u32,
    /// Index into [`CallProfile::functions`].
    pub callee: u32,
    /// What [`CallProfile::edges_are`] says.
    pub weight: u64,
}

/// Samples of one program as a weighted call graph.
///
/// Functions stand in the order of falling weight, then of their names; edges by caller and callee, each pair once.
#[derive(Clone, Debug, PartialEq)]
pub struct CallProfile {
    /// Path or name of the program.
    pub program: String,
    /// Build ids in lower-case hexadecimal: one, unless profiles of several builds were merged; none if unknown.
    pub build_ids: Vec<String>,
    /// The event that was sampled, as its source calls it.
    pub event: String,
    /// What the weights of functions count.
    pub weights: Weights,
    /// What the weights of edges count.
    pub edges_are: Edges,
    /// Hosts that the samples came from.
    pub hosts: Vec<String>,
    /// When they were taken.
    pub window: Option<Window>,
    /// The share of time that was recorded, in (0, 1]: 0.05 for a recorder that ran three minutes in the hour.
    pub duty: f64,
    /// Weight of everything that was sampled, inside and outside of the program.
    pub total: u64,
    /// Weight outside of the program: the kernel, libraries, other programs.
    pub outside: u64,
    /// Weight inside of the program where no symbol is.
    pub unnamed: u64,
    /// The functions that were seen.
    pub functions: Vec<Function>,
    /// The calls that were seen.
    pub edges: Vec<Edge>,
}

impl CallProfile {
    /// Weight that lies in functions with a name.
    #[must_use]
    pub fn named(&self) -> u64 {
        self.functions.iter().map(|function| function.weight).fold(0, u64::saturating_add)
    }

    /// Whether its offsets are those of a program: unless both name a build and the builds differ.
    #[must_use]
    pub fn is_of_build(&self, build_id: Option<&str>) -> bool {
        self.build_ids.is_empty() || build_id.is_none_or(|wanted| self.build_ids == [wanted])
    }

    /// Puts functions and edges into their fixed order and joins edges of the same pair.
    pub(crate) fn normalise(&mut self) {
        let count = self.functions.len();
        // A name must not end its line in a file.
        for function in self.functions.iter_mut().filter(|function| function.name.contains(['\n', '\r'])) {
            function.name = function.name.replace(['\n', '\r'], " ");
        }
        let mut order: Vec<u32> =
            (0..u32::try_from(count).expect("functions are counted in 32 bits")).collect();
        let key = |index: &u32| {
            let function = &self.functions[*index as usize];
            (std::cmp::Reverse(function.weight), &function.name)
        };
        order.sort_small_by(|left, right| key(left).cmp(&key(right)));
        let mut place = vec![0_u32; count];
        for (new, old) in (0_u32..).zip(&order) {
            place[*old as usize] = new;
        }
        let mut old: Vec<Option<Function>> =
            std::mem::take(&mut self.functions).into_iter().map(Some).collect();
        let taken = order.iter().map(|index| old[*index as usize].take().expect("an order names each once"));
        self.functions = taken.collect();
        for edge in &mut self.edges {
            edge.caller = place[edge.caller as usize];
            edge.callee = place[edge.callee as usize];
        }
        self.edges.sort_unstable();
        self.edges.dedup_by(|next, kept| {
            let same = (next.caller, next.callee) == (kept.caller, kept.callee);
            if same {
                kept.weight = kept.weight.saturating_add(next.weight);
            }
            same
        });
    }
}
