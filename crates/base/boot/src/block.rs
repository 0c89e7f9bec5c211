//! A block of lines at the end of a file of others, between two comments of ours.

use crate::odd::Odd;
use crate::shell;

/// The comments around a block.
pub(crate) struct Block {
    /// The line before it.
    pub begin: &'static str,
    /// The same where the line before had no end, which the block had to give it.
    pub begin_unended: &'static str,
    /// The line behind it.
    pub end: &'static str,
}

impl Block {
    fn around(&self, begin: &str, inner: &str) -> String {
        format!("{begin}{inner}{}", self.end)
    }

    /// The text with the block at its end. `inner` ends with a line end.
    pub fn insert(&self, text: &str, inner: &str) -> Result<String, Odd> {
        shell::refuse_unfinished(text)?;
        let begin = if text.is_empty() || text.ends_with('\n') { self.begin } else { self.begin_unended };
        Ok(text.to_owned() + &self.around(begin, inner))
    }

    /// The text without the last block that holds exactly this.
    pub fn remove(&self, text: &str, inner: &str) -> Option<String> {
        let unended = self.around(self.begin_unended, inner);
        let plain = self.around(self.begin, inner);
        let last = text.rfind(&plain);
        if let Some(at) = text.rfind(&unended).filter(|at| last.is_none_or(|last| last < *at)) {
            let (before, after) = (&text[..at], &text[at + unended.len()..]);
            // The line before gets its missing end from whatever follows now.
            return Some(match after.strip_prefix(self.begin) {
                Some(next) => format!("{before}{}{next}", self.begin_unended),
                None if after.is_empty() => before.to_owned(),
                None => format!("{before}\n{after}"),
            });
        }
        let at = last?;
        Some(format!("{}{}", &text[..at], &text[at + plain.len()..]))
    }
}
