//! What a condition decides on, and the folder that a shell is in behind it.

use super::Finder;
use crate::shell::tree::{Chain, List};

/// The folder that a shell is in, and the one before it.
pub(super) type Stand = (Option<String>, Option<String>);

/// Of several places that a shell may be at, one in a folder of the kernel; else the last.
fn likely(mut stands: Vec<Stand>) -> Stand {
    let is_of_kernel = |folder: &String| ["/proc", "/sys"].iter().any(|kernel| folder.starts_with(kernel));
    let at = stands.iter().position(|(folder, _)| folder.as_ref().is_some_and(is_of_kernel));
    at.map(|at| stands.swap_remove(at)).or_else(|| stands.pop()).unwrap_or_default()
}

/// Whether a condition may hold although a command of it failed: behind `!`, or with another one behind `||`.
fn may_hold_by_failing(condition: &List<'_>) -> bool {
    condition.items.iter().any(|chain| {
        chain.first.is_negated || chain.rest.iter().any(|(is_and, pipeline)| !is_and || pipeline.is_negated)
    })
}

impl Finder<'_> {
    pub(super) fn stand(&self) -> Stand {
        (self.folder.clone(), self.left.clone())
    }

    pub(super) fn stand_at(&mut self, stand: Stand) {
        (self.folder, self.left) = stand;
    }

    /// Runs branches of which one is run, or none: each behind the conditions before it, which are run one after the
    /// other. A condition that fails may have gone nowhere. Of several folders that it may be in, that of the kernel
    /// counts.
    pub(super) fn one_of<'l, 't: 'l>(
        &mut self,
        branches: impl Iterator<Item = (Option<&'l List<'t>>, &'l List<'t>)>,
        may_be_none: bool,
    ) {
        let mut begin = self.stand();
        let mut ends = Vec::new();
        for (condition, then) in branches {
            self.stand_at(begin.clone());
            if let Some(condition) = condition {
                self.perhaps(|finder| finder.list(condition));
                let behind = self.stand();
                begin = likely(vec![begin, behind.clone()]);
                self.stand_at(if may_hold_by_failing(condition) { begin.clone() } else { behind });
            }
            self.perhaps(|finder| finder.list(then));
            ends.push(self.stand());
        }
        if may_be_none {
            ends.insert(0, begin);
        }
        self.stand_at(likely(ends));
    }

    /// Pipelines of which a later one waits for what the one before says.
    pub(super) fn chain(&mut self, chain: &Chain<'_>) {
        let mut before = self.stand();
        self.pipeline(&chain.first);
        if self.over.is_some() {
            return;
        }
        let mut is_negated = chain.first.is_negated;
        for (is_and, pipeline) in &chain.rest {
            let behind = self.stand();
            // It comes by where the one before failed, which then has gone nowhere.
            let begin =
                if *is_and == is_negated { likely(vec![before, behind.clone()]) } else { behind.clone() };
            self.stand_at(begin.clone());
            self.perhaps(|finder| finder.pipeline(pipeline));
            if self.stand() == begin {
                self.stand_at(behind);
            }
            (before, is_negated) = (begin, pipeline.is_negated);
        }
    }
}
