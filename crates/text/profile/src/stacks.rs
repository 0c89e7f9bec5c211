//! Sampled stacks as one tree, which a call profile no longer has: it keeps pairs of caller and callee alone.

use foldhash::fast::FixedState;

use crate::collect::Place;

/// Frames of a stack that are told, from its root: what lies deeper counts for the last of them.
const DEPTH_MAX: usize = 512;
/// Frames that are told at most: beyond them a stack counts for the last frame that it shares with another one.
const FRAMES_MAX: usize = 1 << 20;

/// What stands for code of the program without a symbol.
const UNNAMED: &str = "[no symbol]";
/// What stands for the kernel, libraries and other programs.
const OUTSIDE: &str = "[elsewhere]";

/// A function below the functions that called it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// Index of the frame of its caller, which stands before it; none of a root.
    pub caller: Option<u32>,
    /// The linker's name of the function; `[elsewhere]` and `[no symbol]` where there is none.
    pub name: String,
    /// Weight of the samples that ended in it.
    pub own: u64,
}

/// All stacks that were sampled: frames that have the same callers are one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    frames: Vec<StackFrame>,
}

impl Stacks {
    /// The frames, callers before what they called.
    #[must_use]
    pub fn frames(&self) -> &[StackFrame] {
        &self.frames
    }
}

/// What a frame is, wherever in its function it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Function(u32),
    Unnamed,
    Outside,
}

impl From<Place> for Key {
    fn from(place: Place) -> Self {
        match place {
            Place::In(function, _) => Self::Function(function),
            Place::Unnamed => Self::Unnamed,
            Place::Outside => Self::Outside,
        }
    }
}

struct Node {
    caller: Option<u32>,
    key: Key,
    own: u64,
}

/// The tree while it grows.
#[derive(Default)]
pub(crate) struct StackTree {
    nodes: Vec<Node>,
    below: std::collections::HashMap<(Option<u32>, Key), u32, FixedState>,
}

impl StackTree {
    /// Adds a stack whose first place is the innermost.
    pub fn add(&mut self, places: &[Place], weight: u64) {
        let (mut at, mut last) = (None, None);
        for key in places.iter().rev().take(DEPTH_MAX).map(|place| Key::from(*place)) {
            // Frames of libraries are nobody's here, so that many of them in turn tell no more than one.
            if key == Key::Outside && last == Some(key) {
                continue;
            }
            last = Some(key);
            match self.child(at, key) {
                Some(node) => at = Some(node),
                None => break,
            }
        }
        if let Some(node) = at {
            let own = &mut self.nodes[node as usize].own;
            *own = own.saturating_add(weight);
        }
    }

    /// The frame of a function below a caller; none where there are too many.
    fn child(&mut self, caller: Option<u32>, key: Key) -> Option<u32> {
        if let Some(node) = self.below.get(&(caller, key)) {
            return Some(*node);
        }
        // Roots are few, and without one a stack would count for nothing.
        if self.nodes.len() >= FRAMES_MAX && caller.is_some() {
            return None;
        }
        let node = u32::try_from(self.nodes.len()).ok()?;
        self.nodes.push(Node { caller, key, own: 0 });
        self.below.insert((caller, key), node);
        Some(node)
    }

    /// The tree with names for its functions.
    pub fn named(&self, name: impl Fn(u32) -> String) -> Stacks {
        let one = |node: &Node| StackFrame {
            caller: node.caller,
            name: match node.key {
                Key::Function(function) => name(function),
                Key::Unnamed => UNNAMED.to_owned(),
                Key::Outside => OUTSIDE.to_owned(),
            },
            own: node.own,
        };
        Stacks { frames: self.nodes.iter().map(one).collect() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(tree: &StackTree) -> Vec<(Option<u32>, String, u64)> {
        let stacks = tree.named(|function| format!("f{function}"));
        stacks.frames().iter().map(|frame| (frame.caller, frame.name.clone(), frame.own)).collect()
    }

    #[test]
    fn stacks_share_the_frames_that_they_begin_with() {
        let mut tree = StackTree::default();
        let (main, scan) = (Place::In(0, Some(4)), Place::In(1, None));
        tree.add(&[scan, main], 3);
        tree.add(&[scan, Place::In(0, Some(9))], 2);
        tree.add(&[Place::Outside, Place::Outside, scan, main], 1);
        tree.add(&[main], 7);
        tree.add(&[scan, Place::Unnamed], 5);
        tree.add(&[], 11);
        let expected = [
            (None, "f0", 7),
            (Some(0), "f1", 5),
            (Some(1), "[elsewhere]", 1),
            (None, "[no symbol]", 0),
            (Some(3), "f1", 5),
        ];
        let expected = expected.map(|(caller, name, own)| (caller, name.to_owned(), own));
        assert_eq!(told(&tree), expected);
    }

    #[test]
    fn a_stack_without_end_counts_for_the_last_frame_that_is_told() {
        let mut tree = StackTree::default();
        tree.add(&vec![Place::In(0, None); 10 * DEPTH_MAX], 2);
        let told = told(&tree);
        assert_eq!((told.len(), told.last().map(|frame| frame.2)), (DEPTH_MAX, Some(2)));
    }

    #[test]
    fn stacks_are_read_where_they_are_wanted_and_there_are_some() {
        let read = |text: &str, format, stacks| {
            let options = crate::ImportOptions { format: Some(format), stacks, ..Default::default() };
            crate::import(text.as_bytes(), &options).unwrap().stacks
        };
        let folded = "main;parse;scan 3\nmain;parse 2\n";
        assert_eq!(read(folded, crate::Format::Folded, false), None);
        let stacks = read(folded, crate::Format::Folded, true).unwrap();
        let told: Vec<_> = stacks.frames().iter().map(|frame| (frame.name.as_str(), frame.own)).collect();
        assert_eq!(told, [("main", 0), ("parse", 2), ("scan", 3)]);
        assert_eq!(read("main scan 3\n", crate::Format::Hfsort, true), None, "it knows calls alone");
    }

    proptest! {
        #[test]
        fn every_sample_is_told_once_and_callers_stand_first(
            stacks in prop::collection::vec((prop::collection::vec(0_u32..5, 1..6), 1_u64..9), 0..40),
        ) {
            let mut tree = StackTree::default();
            for (stack, weight) in &stacks {
                let places: Vec<Place> = stack.iter().map(|function| Place::In(*function, None)).collect();
                tree.add(&places, *weight);
            }
            let told = told(&tree);
            let all: u64 = stacks.iter().map(|(_, weight)| weight).sum();
            prop_assert_eq!(told.iter().map(|frame| frame.2).sum::<u64>(), all);
            let mut pairs = std::collections::HashSet::new();
            for (index, (caller, name, _)) in told.iter().enumerate() {
                prop_assert!(caller.is_none_or(|caller| (caller as usize) < index));
                prop_assert!(pairs.insert((*caller, name.clone())), "{} twice", name);
            }
        }
    }
}
