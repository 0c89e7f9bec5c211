//! Symbols: text that comes again and again, as dense numbers.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::error::TableError;

/// Most symbols of a table: their numbers must fit the keys of kernels.
const SYMBOLS_MAX: usize = u32::MAX as usize;

/// Text <-> number, in the order in which the texts were first seen.
#[derive(Debug, Clone, Default)]
pub struct Dictionary {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32, RandomState>,
}

impl Dictionary {
    /// Of texts in the order of their numbers; `None` when one is there twice.
    pub(crate) fn of(texts: &[String]) -> Option<Self> {
        let mut dictionary = Self::default();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        dictionary.take_in(&texts, &mut Vec::new()).ok()?;
        (dictionary.len() == texts.len()).then_some(dictionary)
    }

    /// Number of symbols; each number is below it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The number of a text that was seen before.
    #[must_use]
    pub fn number(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// The text of a number.
    #[must_use]
    pub fn text(&self, number: u32) -> Option<&str> {
        self.texts.get(number as usize).map(AsRef::as_ref)
    }

    /// All texts, in the order of their numbers.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(AsRef::as_ref)
    }

    /// The numbers of many texts; those not seen before get the next ones.
    pub(crate) fn take_in(&mut self, texts: &[&str], numbers: &mut Vec<u32>) -> Result<(), TableError> {
        let before = self.texts.len();
        numbers.reserve(texts.len());
        for &text in texts {
            let known = self.numbers.get(text).copied();
            let Some(number) = known.or_else(|| self.add(text)) else {
                self.forget_from(before);
                return Err(TableError::Symbols { limit: SYMBOLS_MAX });
            };
            numbers.push(number);
        }
        Ok(())
    }

    /// Forgets the symbols from this number on.
    pub(crate) fn forget_from(&mut self, number: usize) {
        for text in self.texts.drain(number..) {
            self.numbers.remove(&text);
        }
    }

    fn add(&mut self, text: &str) -> Option<u32> {
        let number =
            u32::try_from(self.texts.len()).ok().filter(|&number| (number as usize) < SYMBOLS_MAX)?;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_dense_and_stay() {
        let (mut dictionary, mut numbers) = (Dictionary::default(), Vec::new());
        dictionary.take_in(&["b", "a", "b", ""], &mut numbers).unwrap();
        dictionary.take_in(&["a", "c"], &mut numbers).unwrap();
        assert_eq!(numbers, [0, 1, 0, 2, 1, 3]);
        assert_eq!(
            (dictionary.number("c"), dictionary.text(2), dictionary.text(4)),
            (Some(3), Some(""), None)
        );
        dictionary.forget_from(2);
        assert_eq!((dictionary.len(), dictionary.number("c"), dictionary.number("a")), (2, None, Some(1)));
    }
}
