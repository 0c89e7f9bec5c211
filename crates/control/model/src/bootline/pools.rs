//! Pools of huge pages on a command line, as `mm/hugetlb.c` reads them.
//!
//! ```text
//!   hugepagesz=1G hugepages=4 hugepagesz=1G hugepages=2     4: a size is taken once
//!   hugepagesz=1G hugepages=1 hugepages=7                   1: no size stands between them
//!   hugepages=8 hugepagesz=2M hugepages=5                   8 of 2 MiB: no size before them is the default one
//!   hugepages=8 default_hugepagesz=1G hugepages=4           4 of 1 GiB
//! ```
//!
//! Linux 5.8 made it so. One before passes over a second size alone, so that pages behind it are of the size that was
//! new last, and takes the last `default_hugepagesz=`. Since Linux 6.15 they are early parameters: kept first, as many
//! as the architecture has room for, and read later.

use super::{Kernel, parts, size};

/// The pages of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Their size.
    pub page_bytes: u64,
    /// How many: a number, or `0:4,1:2` by node.
    pub pages: String,
    /// The index of the word that counts.
    pub index: usize,
}

/// What has been read of a command line.
#[derive(Default)]
struct Reader {
    kernel: Kernel,
    /// Sizes in the order in which they came up, with what they have.
    sizes: Vec<(u64, Option<(String, usize)>)>,
    /// The one that `hugepages=` counts in.
    current: usize,
    is_skipped: bool,
    default: Option<u64>,
    /// Pages that no size stands before.
    of_default: Option<(String, usize)>,
    /// The pool that was filled last; `Some(None)` is that of the default size.
    last: Option<Option<usize>>,
}

/// The pools that some arguments fill.
#[must_use]
pub fn pools(words: &[&str], kernel: Kernel) -> Vec<Pool> {
    let mut reader = Reader { kernel, ..Reader::default() };
    let named = words.iter().enumerate().map(|(index, word)| (index, parts(word)));
    let huge = named.filter_map(|(index, (name, value))| {
        ["hugepagesz", "hugepages", "default_hugepagesz"].contains(&name).then_some((index, name, value?))
    });
    for (index, name, value) in huge.take(kernel.huge_arguments.unwrap_or(usize::MAX)) {
        match name {
            "hugepages" => reader.pages(value, index),
            "hugepagesz" => reader.size(size(value)),
            _ => reader.default_size(size(value)),
        }
    }
    reader.finish();
    let pool = |(page_bytes, given): (u64, Option<(String, usize)>)| {
        let (pages, index) = given?;
        Some(Pool { page_bytes, pages, index })
    };
    reader.sizes.into_iter().filter_map(pool).collect()
}

impl Reader {
    fn is_old(&self) -> bool {
        self.kernel.is_older((5, 8))
    }

    fn known(&self, bytes: u64) -> Option<usize> {
        self.sizes.iter().position(|(own, _)| *own == bytes)
    }

    /// Makes a size the current one where it is new.
    fn add(&mut self, bytes: u64) -> usize {
        self.known(bytes).unwrap_or_else(|| {
            self.sizes.push((bytes, None));
            self.current = self.sizes.len() - 1;
            self.current
        })
    }

    fn pages(&mut self, value: &str, index: usize) {
        if std::mem::take(&mut self.is_skipped) {
            return;
        }
        let pool = (!self.sizes.is_empty()).then_some(self.current);
        if self.last == Some(pool) {
            return;
        }
        let given = Some((value.to_owned(), index));
        match pool {
            Some(pool) => self.sizes[pool].1 = given,
            None => self.of_default = given,
        }
        self.last = Some(pool);
    }

    fn size(&mut self, bytes: Option<u64>) {
        self.is_skipped = bytes.is_none();
        let Some(bytes) = bytes else { return };
        match self.known(bytes) {
            None => {
                self.add(bytes);
            }
            Some(_) if self.is_old() => {}
            // The default one may be named once more where it has no pages yet.
            Some(known) if self.default == Some(bytes) && !has_some(self.sizes[known].1.as_ref()) => {
                self.current = known;
            }
            Some(_) => self.is_skipped = true,
        }
    }

    fn default_size(&mut self, bytes: Option<u64>) {
        if self.is_old() {
            self.default = bytes;
            return;
        }
        self.is_skipped = self.default.is_some() || bytes.is_none();
        let Some(bytes) = bytes.filter(|_| !self.is_skipped) else { return };
        let pool = self.add(bytes);
        self.default = Some(bytes);
        if has_some(self.of_default.as_ref()) {
            self.sizes[pool].1 = self.of_default.take();
        }
    }

    /// What no size stood before, and no default size took, is for the default one of the kernel: in place of what was
    /// said for that size, since Linux 5.8.
    fn finish(&mut self) {
        let named = self.default.filter(|bytes| self.known(*bytes).is_some());
        let Some(bytes) = named.or(self.kernel.page).filter(|_| has_some(self.of_default.as_ref())) else {
            return;
        };
        let pool = self.add(bytes);
        if !self.is_old() || !has_some(self.sizes[pool].1.as_ref()) {
            self.sizes[pool].1 = self.of_default.take();
        }
    }
}

/// Whether pages were said, and more than none.
fn has_some(given: Option<&(String, usize)>) -> bool {
    let count = |part: &str| part.rsplit(':').next().and_then(|pages| pages.parse::<u64>().ok());
    given.is_some_and(|(pages, _)| pages.split(',').any(|part| count(part).is_some_and(|pages| pages > 0)))
}
