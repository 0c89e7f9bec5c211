//! What an arena refuses, with the cure.

use std::error::Error as _;
use std::path::PathBuf;

use crate::page::{Page, Size};

/// Why an arena could not give the memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArenaError {
    /// The pool of reserved pages is too small now.
    #[error(
        "no {page} for {wanted_bytes} bytes: {} wanted, {} free",
        wanted_bytes.div_ceil(page.bytes()), shown(free_pages)
    )]
    PoolShort {
        /// The page that was asked for.
        page: Page,
        /// Bytes that were asked for.
        wanted_bytes: usize,
        /// Free and unreserved pages that were seen, on the chosen nodes where a choice binds; `None` when
        /// unread.
        free_pages: Option<u64>,
        /// What the kernel said, if it was asked.
        #[source]
        source: Option<planish_sys::Error>,
    },
    /// This machine does not have the kind of page at all.
    #[error("this kernel has no {page}; reserved pages come in: {}", sizes(offered_bytes))]
    NoSuchPage {
        /// The page that was asked for.
        page: Page,
        /// Sizes of the reserved pages that there are.
        offered_bytes: Vec<usize>,
    },
    /// The memory was mapped, but lies on other pages than asked for; it was given back.
    #[error("asked for {wanted_bytes} bytes on {page}, had {had_bytes}")]
    NotBacked {
        /// The page that was asked for.
        page: Page,
        /// Bytes that were asked for.
        wanted_bytes: usize,
        /// Bytes that lay on such pages.
        had_bytes: usize,
    },
    /// Faulting the memory in would take more than there is, and the kernel would kill somebody for it.
    #[error("{wanted_bytes} bytes on {page} wanted, {available_bytes} available{}", under(limit.as_ref()))]
    Memory {
        /// The page that was asked for.
        page: Page,
        /// Bytes that were asked for.
        wanted_bytes: usize,
        /// Bytes that can be had without swapping, on the chosen nodes where a choice binds.
        available_bytes: u64,
        /// The file of the limit, where a control group leaves less than the machine.
        limit: Option<PathBuf>,
    },
    /// The kernel refused the placement on nodes.
    #[error("cannot place {wanted_bytes} bytes on node {nodes}")]
    Placement {
        /// The nodes, as a list.
        nodes: String,
        /// Bytes that were asked for.
        wanted_bytes: usize,
        /// What the kernel said.
        #[source]
        source: planish_sys::Error,
    },
    /// A node was named that this machine does not have, or that has no memory.
    #[error("node {nodes} does not exist or has no memory; there are: {there}")]
    NoSuchNode {
        /// Those of the named that there are not, as a list.
        nodes: String,
        /// Those that there are.
        there: String,
    },
    /// A node was named that the cpuset of this process does not have.
    #[error("node {nodes} may not be used by this process, but {allowed}")]
    OutsideNode {
        /// Those of the named that it does not have, as a list.
        nodes: String,
        /// Those that it has.
        allowed: String,
    },
    /// The memory lay on other nodes than those that were named; it was given back.
    #[error("asked for {wanted_bytes} bytes on node {nodes}, {elsewhere_bytes} of them lay elsewhere")]
    Misplaced {
        /// The nodes, as a list.
        nodes: String,
        /// Bytes that were asked for.
        wanted_bytes: usize,
        /// Bytes that lay on other nodes.
        elsewhere_bytes: usize,
    },
    /// One of the arenas of a set could not be had.
    #[error("no arena on node {node}")]
    OnNode {
        /// Its node.
        node: u32,
        /// What it met.
        #[source]
        source: Box<ArenaError>,
    },
    /// The kernel refused to map or to fault in.
    #[error("cannot map {wanted_bytes} bytes on {page}")]
    Map {
        /// The page that was asked for.
        page: Page,
        /// Bytes that were asked for.
        wanted_bytes: usize,
        /// What the kernel said.
        #[source]
        source: planish_sys::Error,
    },
    /// What the kernel gave cannot be read back.
    #[error("cannot read {path}")]
    ReadBack {
        /// The file.
        path: &'static str,
        /// What the kernel said.
        #[source]
        source: std::io::Error,
    },
    /// Memory that grows in place has no more addresses.
    #[error("{wanted_bytes} bytes wanted, {most_bytes} are the most that was reserved")]
    Full {
        /// Bytes that were asked for.
        wanted_bytes: usize,
        /// Bytes that there can be.
        most_bytes: usize,
    },
    /// A slice of more bytes than an address space has.
    #[error("a slice of {count} items of {item_bytes} bytes is too large")]
    TooLarge {
        /// Number of items.
        count: usize,
        /// Size of one.
        item_bytes: usize,
    },
}

impl ArenaError {
    /// What to do about it, as a sentence fragment that may follow the error.
    pub fn cure(&self) -> String {
        match self {
            Self::PoolShort { page, wanted_bytes, .. } => {
                let count = wanted_bytes.div_ceil(page.bytes());
                let pages = if count == 1 { "page" } else { "pages" };
                format!(
                    "raise the pool by {count} {pages} of {} (`planish size --bytes {wanted_bytes}` shows the plan), \
                     or allow smaller pages",
                    Size(page.bytes()),
                )
            }
            Self::NoSuchPage { .. } => {
                "choose a page size that this kernel offers, or allow smaller pages".into()
            }
            Self::NotBacked { page: Page::Thp, .. } => "free or compact memory, look at \
                 /sys/kernel/mm/transparent_hugepage/enabled, or allow base pages"
                .into(),
            Self::NotBacked { .. } => {
                "look for a policy or preload that changes the pages of this process".into()
            }
            Self::Memory { limit: Some(limit), .. } => {
                format!("ask for less, or raise the limit of the control group in {}", limit.display())
            }
            Self::Memory { .. } => "ask for less, free memory, or choose more nodes".into(),
            Self::Placement { .. } => "choose nodes that this process may use (Mems_allowed_list in \
                 /proc/self/status); in a container, grant CAP_SYS_NICE"
                .into(),
            Self::NoSuchNode { .. } => "choose one of those that there are (`planish topo`)".into(),
            Self::OutsideNode { .. } => {
                "choose nodes that this process may use, or widen the cpuset of its control \
                 group (cpuset.mems)"
                    .into()
            }
            Self::Misplaced { .. } => "free memory on the node, or allow others".into(),
            Self::OnNode { source, .. } => source.cure(),
            Self::Map { .. } => {
                "look at the limits of this process and cgroup (ulimit -v, hugetlb and memory \
                 controllers)"
                    .into()
            }
            Self::ReadBack { .. } => "mount /proc".into(),
            Self::Full { .. } => "reserve more at the start: addresses without memory cost nothing".into(),
            Self::TooLarge { .. } => "ask for less".into(),
        }
    }

    /// Whether neither another size nor another page helps against it.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Placement { .. } | Self::Misplaced { .. } | Self::ReadBack { .. })
    }
}

/// Why memory stays on the pages that it lies on, in the words of the kernel.
pub(crate) fn not_collapsed(error: &planish_sys::Error) -> String {
    let cause = error.errno().map_or_else(String::new, |errno| format!(": {errno}"));
    format!("not collapsed: {error}{cause}")
}

/// The error with its causes, as a reason why something is not as asked for.
pub(crate) fn told(error: &ArenaError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn under(limit: Option<&PathBuf>) -> String {
    limit.map(|limit| format!(" under {}", limit.display())).unwrap_or_default()
}

fn shown(pages: &Option<u64>) -> String {
    pages.map_or("an unknown number".to_owned(), |pages| pages.to_string())
}

fn sizes(bytes: &[usize]) -> String {
    if bytes.is_empty() {
        return "none".into();
    }
    bytes.iter().map(|&bytes| Size(bytes).to_string()).collect::<Vec<_>>().join(", ")
}
