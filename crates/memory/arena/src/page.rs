//! The ladder of page sizes.

use std::fmt;
use std::str::FromStr;

use planish_sys::{PageRequest, pages, parse_bytes};

/// One rung: a kind of page that memory can lie on. Sizes are those of the running kernel, never constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Page {
    /// Base pages for certain, also where transparent huge pages are `always`.
    Base,
    /// Transparent huge pages: no reservation, given when the kernel finds some free.
    Thp,
    /// Pages of this many bytes from a reserved pool.
    HugeTlb(usize),
}

/// Where on the ladder an arena begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preference {
    /// The largest pages that a chunk can fill.
    Largest,
    /// This kind of page, and below it only what [`Fallback`](crate::Fallback) allows.
    From(Page),
}

impl Page {
    /// Size of one page in bytes; that of a base page where the kernel has no transparent huge pages.
    pub fn bytes(self) -> usize {
        match self {
            Self::Base => pages::base_bytes(),
            Self::Thp => pages::thp_bytes().unwrap_or_else(pages::base_bytes),
            Self::HugeTlb(bytes) => bytes,
        }
    }

    /// The word for memory on such pages, as reports and trial files write it: `base`, `thp`, `hugetlb-2m`.
    pub fn backing(self) -> String {
        match self {
            Self::Base => "base".into(),
            Self::Thp => "thp".into(),
            Self::HugeTlb(bytes) => {
                let (count, unit) = Size(bytes).parts();
                format!("hugetlb-{count}{}", unit.get(..1).unwrap_or_default().to_ascii_lowercase())
            }
        }
    }

    /// Bytes from one page to the next that may lie on another node: huge pages may fall apart, but those of pools.
    pub(crate) fn node_stride(self) -> usize {
        match self {
            Self::HugeTlb(bytes) => bytes,
            Self::Base | Self::Thp => Self::Base.bytes(),
        }
    }

    pub(crate) fn request(self) -> PageRequest {
        match self {
            Self::Base => PageRequest::Base,
            Self::Thp => PageRequest::Thp,
            Self::HugeTlb(bytes) => PageRequest::HugeTlb(bytes),
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => write!(out, "base pages"),
            Self::Thp => write!(out, "transparent huge pages"),
            Self::HugeTlb(bytes) => write!(out, "{} huge pages", Size(*bytes)),
        }
    }
}

/// A text that names no kind of page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no page size (4k or base, thp, 2m, 1g, or another power of two in bytes, k, m or g)")]
pub struct ParsePageError(pub String);

impl FromStr for Page {
    type Err = ParsePageError;

    /// Reads `base`, `4k` (the base page by its size), `thp`, or the size of a reserved page: `2m`, `1g`,
    /// `64k`.
    fn from_str(text: &str) -> Result<Self, ParsePageError> {
        let error = || ParsePageError(text.to_owned());
        match text.to_ascii_lowercase().as_str() {
            "base" => Ok(Self::Base),
            "thp" => Ok(Self::Thp),
            lower => {
                let bytes = parse_bytes(lower).and_then(|bytes| usize::try_from(bytes).ok());
                let bytes = bytes.filter(|bytes| bytes.is_power_of_two()).ok_or_else(error)?;
                // "4k" means base pages on every machine, so that one command line serves all of them.
                let base = bytes == pages::base_bytes() || bytes == 4096;
                Ok(if base { Self::Base } else { Self::HugeTlb(bytes) })
            }
        }
    }
}

/// A size in bytes, shown in its largest whole unit.
pub(crate) struct Size(pub(crate) usize);

impl Size {
    /// Number and unit; the unit is empty for bytes.
    fn parts(&self) -> (usize, &'static str) {
        let units = [(30, "GB"), (20, "MB"), (10, "KB")];
        let whole = units.into_iter().find(|(shift, _)| self.0 > 0 && self.0.trailing_zeros() >= *shift);
        whole.map_or((self.0, ""), |(shift, unit)| (self.0 >> shift, unit))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (bytes, "") => write!(out, "{bytes} bytes"),
            (count, unit) => write!(out, "{count} {unit}"),
        }
    }
}

/// What the kernel offers, as far as the ladder goes.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    /// Sizes of reserved pages.
    pub(crate) hugetlb: Vec<usize>,
    /// Size of a transparent huge page.
    pub(crate) thp: Option<usize>,
}

impl Offer {
    pub(crate) fn of_this_kernel() -> Self {
        Self { hugetlb: pages::hugetlb_bytes(), thp: pages::thp_bytes() }
    }

    /// The rungs from `preference` down, largest first. A reserved page stands before a transparent one of
    /// the same size: it was set aside for us. Who asks for transparent pages never takes reserved ones.
    pub(crate) fn ladder(&self, preference: Preference) -> Vec<Page> {
        let mut rungs: Vec<(usize, Page)> = vec![(0, Page::Base)];
        rungs.extend(self.thp.map(|bytes| (bytes, Page::Thp)));
        rungs.extend(self.hugetlb.iter().map(|&bytes| (bytes, Page::HugeTlb(bytes))));
        rungs.sort_unstable();
        let below = |rung: &(usize, Page)| match preference {
            Preference::Largest => true,
            Preference::From(Page::HugeTlb(bytes)) => rung.0 <= bytes,
            Preference::From(Page::Thp) => !matches!(rung.1, Page::HugeTlb(_)),
            Preference::From(Page::Base) => rung.1 == Page::Base,
        };
        rungs.into_iter().rev().filter(below).map(|rung| rung.1).collect()
    }

    pub(crate) fn has(&self, page: Page) -> bool {
        match page {
            Page::Base => true,
            Page::Thp => self.thp.is_some(),
            Page::HugeTlb(bytes) => self.hugetlb.contains(&bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: usize = 1 << 10;
    const M: usize = 1 << 20;
    const G: usize = 1 << 30;

    #[test]
    fn the_ladder_goes_down_from_the_preference() {
        let offer = Offer { hugetlb: vec![2 * M, G], thp: Some(2 * M) };
        let all = vec![Page::HugeTlb(G), Page::HugeTlb(2 * M), Page::Thp, Page::Base];
        assert_eq!(offer.ladder(Preference::Largest), all);
        assert_eq!(offer.ladder(Preference::From(Page::HugeTlb(2 * M))), all[1..]);
        assert_eq!(offer.ladder(Preference::From(Page::Thp)), all[2..]);
        assert_eq!(offer.ladder(Preference::From(Page::Base)), all[3..]);
    }

    #[test]
    fn pages_of_an_arm_server_sort_by_size() {
        let offer = Offer { hugetlb: vec![2 * M, 512 * M, 16 * G], thp: Some(512 * M) };
        let wanted = [Page::HugeTlb(512 * M), Page::Thp, Page::HugeTlb(2 * M), Page::Base];
        assert_eq!(offer.ladder(Preference::From(Page::HugeTlb(G))), wanted);
        let none = Offer { hugetlb: vec![], thp: None };
        assert_eq!(none.ladder(Preference::Largest), [Page::Base]);
    }

    #[test]
    fn page_sizes_are_read() {
        let cases =
            [("4k", Page::Base), ("BASE", Page::Base), ("thp", Page::Thp), ("2MiB", Page::HugeTlb(2 * M))];
        for (text, page) in cases.into_iter().chain([
            ("1G", Page::HugeTlb(G)),
            ("32k", Page::HugeTlb(32 * K)),
            ("2m", Page::HugeTlb(2 * M)),
        ]) {
            assert_eq!(text.parse(), Ok(page), "{text}");
        }
        for text in ["", "k", "3m", "2mx", "-2m", "99999999999999999999g", "0", "é"] {
            assert_eq!(text.parse::<Page>(), Err(ParsePageError(text.to_owned())));
        }
    }

    #[test]
    fn a_backing_has_one_word() {
        let pages =
            [Page::Base, Page::Thp, Page::HugeTlb(64 * K), Page::HugeTlb(2 * M), Page::HugeTlb(16 * G)];
        let words = ["base", "thp", "hugetlb-64k", "hugetlb-2m", "hugetlb-16g"];
        assert_eq!(pages.map(Page::backing), words);
    }

    #[test]
    fn sizes_show_their_largest_whole_unit() {
        let shown = [G, 3 * M, 64 * K, 4097, 0].map(|bytes| Size(bytes).to_string());
        assert_eq!(shown, ["1 GB", "3 MB", "64 KB", "4097 bytes", "0 bytes"]);
    }
}
