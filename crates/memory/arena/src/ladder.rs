//! Down the ladder of pages, from the one that is preferred to the one that can be had.

use crate::builder::{Builder, Fallback};
use crate::error::ArenaError;
use crate::page::{Offer, Page, Preference};

/// What came of an attempt, and in what it falls short of the wish where that is allowed.
pub(crate) type Granted<C> = (C, Option<String>);

/// What is asked for, and what there is.
pub(crate) struct Ladder<'a> {
    pub(crate) asked: &'a Builder,
    pub(crate) offer: &'a Offer,
}

impl Ladder<'_> {
    /// What `grant` gives for `wanted` bytes, or for `least` where memory is short; of the next page where that is
    /// allowed. With it the reasons why anything is not as asked for.
    pub(crate) fn descend<C>(
        &self,
        wanted: usize,
        least: usize,
        mut grant: impl FnMut(Page, usize) -> Result<Granted<C>, ArenaError>,
    ) -> Result<(C, Vec<String>), ArenaError> {
        let mut missed = Vec::new();
        let mut refusal = None;
        for (page, bytes) in self.attempts(wanted, least, &mut missed) {
            match grant(page, bytes) {
                Ok((granted, shortfall)) => {
                    // That more of the same pages could not be had is no fault of these.
                    missed.retain(|(other, _)| *other != page);
                    return Ok((granted, missed.into_iter().map(|(_, why)| why).chain(shortfall).collect()));
                }
                Err(error) if error.is_final() => return Err(error),
                Err(error) => {
                    missed.push((page, error.to_string()));
                    refusal = Some(error);
                }
            }
        }
        Err(refusal.expect("the last rung is always tried"))
    }

    /// The pages and sizes to try in turn; those that are not tried go to `missed`, with the reason.
    fn attempts(&self, wanted: usize, least: usize, missed: &mut Vec<(Page, String)>) -> Vec<(Page, usize)> {
        let mut attempts = Vec::new();
        let rungs = self.rungs();
        if let Preference::From(page) = self.asked.preference
            && rungs[0] != page
        {
            missed.push((page, format!("this kernel has no {page}")));
        }
        let last = rungs[rungs.len() - 1];
        for page in rungs {
            let sizes = [Some(wanted), (least < wanted).then_some(least)];
            for bytes in sizes.into_iter().flatten() {
                if page != last && wastes_half(bytes, page) {
                    missed.push((page, format!("{bytes} bytes would not fill half of their {page}")));
                } else {
                    attempts.push((page, bytes));
                }
            }
        }
        attempts
    }

    /// The pages to try in turn, at least one; only the first where a fallback is refused.
    fn rungs(&self) -> Vec<Page> {
        let mut ladder = self.offer.ladder(self.asked.preference);
        if self.asked.fallback == Fallback::Refuse {
            if let Preference::From(page) = self.asked.preference {
                return vec![page];
            }
            ladder.truncate(1);
        }
        ladder
    }
}

/// Whether more than half of the pages for `bytes` would stay empty: a 5 MB arena takes no 1 GB page.
fn wastes_half(bytes: usize, page: Page) -> bool {
    bytes.checked_next_multiple_of(page.bytes()).is_none_or(|rounded| rounded / 2 > bytes)
}
