//! What the user wants, as the command line says it.

use planish_sys::{CpuSet, NodeSet, Policy, parse_bytes};

use crate::allocator::Allocator;

/// Over which nodes memory goes. Nodes that are not named are all that the process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spread {
    /// The node of the CPU that touches a page first.
    Local,
    /// Round these nodes, page by page.
    Interleave(Option<NodeSet>),
    /// Round these nodes by the weights of the kernel (Linux 6.9).
    Weighted(Option<NodeSet>),
    /// On these nodes only.
    Bind(NodeSet),
    /// On these nodes as long as they have room (several: Linux 5.15).
    Prefer(NodeSet),
}

/// Pages of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedPages {
    /// Transparent huge pages: nothing has to be reserved.
    Thp,
    /// From the pool of pages of this size in bytes, or of the default size.
    Pool(Option<u64>),
}

/// Pages of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapPages {
    /// Transparent huge pages.
    Thp,
    /// From a pool, where the allocator can take them from there.
    Pool,
}

/// How code comes onto huge pages of the page cache, where it is not on them already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextRoute {
    /// The first of reading anew and a copy that works.
    #[default]
    First,
    /// The file is read anew in huge pieces.
    Warm,
    /// A copy that fits is executed in its place.
    Copy,
    /// The kernel collapses what the page cache has of it.
    Collapse,
}

impl TextRoute {
    /// As `--huge` says it.
    #[must_use]
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::First => "text",
            Self::Warm => "text=warm",
            Self::Copy => "text=copy",
            Self::Collapse => "text=collapse",
        }
    }
}

/// Whether shared segments are filled before the program sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefault {
    /// As soon as anything is wanted of shared memory, by a thread for each CPU.
    #[default]
    Usual,
    /// Not.
    Never,
    /// By so many threads.
    Threads(usize),
}

/// Everything that can be wanted.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Nodes of shared segments.
    pub shared: Option<Spread>,
    /// Nodes of everything else.
    pub heap: Option<Spread>,
    /// Pages of shared segments.
    pub shared_pages: Option<SharedPages>,
    /// Pages of the heap.
    pub heap_pages: Option<HeapPages>,
    /// The program's code on huge pages: who starts it sees to that beforehand.
    pub text: Option<TextRoute>,
    /// Whether shared segments are filled.
    pub prefault: Prefault,
    /// Shared segments shorter than this are left alone; bytes.
    pub bytes_min: u64,
    /// Run on these CPUs only.
    pub cpus: Option<CpuSet>,
    /// Run on the CPUs of these nodes, with all memory on them.
    pub nodes: Option<NodeSet>,
    /// Another allocator than that of the libc.
    pub malloc: Option<Allocator>,
    /// Run without transparent huge pages.
    pub without_thp: bool,
    /// Most bytes that it may lock in memory; `u64::MAX` is without a limit.
    pub memlock_bytes: Option<u64>,
}

impl Wish {
    /// Whether anything is wanted of memory that a look at it proves: where it lies, and on which pages.
    pub fn wants_memory(&self) -> bool {
        self.wants_shared() || self.heap.is_some() || self.heap_pages.is_some() || self.nodes.is_some()
    }

    /// Whether anything is wanted of shared segments, which needs the preload.
    pub fn wants_shared(&self) -> bool {
        let heap_elsewhere = self.heap.as_ref().is_some_and(|spread| *spread != Spread::Local);
        let placed = match &self.shared {
            None => false,
            Some(Spread::Local) => heap_elsewhere || self.nodes.is_some(),
            Some(_) => true,
        };
        placed || self.shared_pages.is_some() || matches!(self.prefault, Prefault::Threads(_))
    }
}

impl Spread {
    /// The nodes that are named.
    pub fn nodes(&self) -> Option<&NodeSet> {
        match self {
            Self::Local => None,
            Self::Interleave(nodes) | Self::Weighted(nodes) => nodes.as_ref(),
            Self::Bind(nodes) | Self::Prefer(nodes) => Some(nodes),
        }
    }

    /// The policy for the kernel, with `all` where no nodes are named.
    pub fn policy(&self, all: &NodeSet) -> Policy {
        let named = |nodes: &Option<NodeSet>| nodes.clone().unwrap_or_else(|| all.clone());
        match self {
            Self::Local => Policy::Local,
            Self::Interleave(nodes) => Policy::Interleave(named(nodes)),
            Self::Weighted(nodes) => Policy::WeightedInterleave(named(nodes)),
            Self::Bind(nodes) => Policy::Bind(nodes.clone()),
            Self::Prefer(nodes) => Policy::PreferredMany(nodes.clone()),
        }
    }

    /// `interleave over 0-1`, with `all` where no nodes are named.
    pub fn describe(&self, all: &NodeSet) -> String {
        let nodes = self.nodes().unwrap_or(all);
        match self {
            Self::Local => "local".to_owned(),
            Self::Interleave(_) => format!("interleaved over {nodes}"),
            Self::Weighted(_) => format!("interleaved by weight over {nodes}"),
            Self::Bind(_) => format!("bound to {nodes}"),
            Self::Prefer(_) => format!("preferably on {nodes}"),
        }
    }

    /// `interleave`, `weighted:0-1`, `bind:0,2`
    fn parse(text: &str) -> Result<Self, String> {
        let (word, list) = match text.split_once(':') {
            Some((word, list)) => (word, Some(list)),
            None => (text, None),
        };
        let nodes = |list: &str| {
            let nodes = NodeSet::parse_list(list).map_err(|error| format!("nodes {list:?}: {error}"))?;
            if nodes.is_empty() { Err(format!("{text:?} names no node")) } else { Ok(nodes) }
        };
        let named = || list.map(nodes).transpose();
        let needed = || nodes(list.ok_or_else(|| format!("{word} of which nodes? {word}:0 or {word}:0-1"))?);
        match word {
            "local" if list.is_none() => Ok(Self::Local),
            "interleave" => Ok(Self::Interleave(named()?)),
            "weighted" => Ok(Self::Weighted(named()?)),
            "bind" => Ok(Self::Bind(needed()?)),
            "prefer" => Ok(Self::Prefer(needed()?)),
            "local" => Err("local takes no nodes; bind:NODES does".to_owned()),
            _ => Err(format!("{word:?} is none of local, interleave, weighted, bind, prefer")),
        }
    }
}

/// What memory an item is about.
enum About {
    Shared,
    Heap,
}

/// The items of a list whose values may hold commas themselves: `shm=interleave:0,2,heap=local`.
fn items(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let is_more = piece.starts_with(|c: char| c.is_ascii_digit());
        match items.last_mut() {
            Some(last) if is_more => last.extend([",", piece]),
            _ => items.push(piece.to_owned()),
        }
    }
    items
}

/// `shm` or `heap` in front of an `=`.
fn about(item: &str) -> Result<(About, Option<&str>), String> {
    let (name, value) = match item.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (item, None),
    };
    match name {
        "shm" => Ok((About::Shared, value)),
        "heap" => Ok((About::Heap, value)),
        _ => Err(format!("{name:?} is neither shm nor heap")),
    }
}

/// Adds what `--numa` says: `shm=interleave,heap=local`; a policy alone is about shared segments.
///
/// # Errors
/// What cannot be understood, in one sentence.
pub fn parse_numa(text: &str, wish: &mut Wish) -> Result<(), String> {
    for item in items(text) {
        let (about, spread) = match about(&item) {
            Ok((about, Some(policy))) => (about, Spread::parse(policy)?),
            Ok((_, None)) => return Err(format!("{item} how? {item}=interleave, or bind:NODES, ...")),
            Err(_) if !item.contains('=') => (About::Shared, Spread::parse(&item)?),
            Err(error) => return Err(error),
        };
        let place = match about {
            About::Shared => &mut wish.shared,
            About::Heap => &mut wish.heap,
        };
        if place.replace(spread).is_some() {
            return Err(format!("{item}: it was said before where that goes"));
        }
    }
    Ok(())
}

/// Adds what `--huge` says: `heap,shm=2m,text=copy`.
///
/// # Errors
/// What cannot be understood, in one sentence.
pub fn parse_huge(text: &str, wish: &mut Wish) -> Result<(), String> {
    for item in text.split(',') {
        if item == "text" || item.starts_with("text=") {
            let route = text_route(item)?;
            if wish.text.replace(route).is_some_and(|before| before != route) {
                return Err(format!("{item}: it was said before by which route"));
            }
            continue;
        }
        let (about, pages) = about(item).map_err(|error| format!("{error}, nor text"))?;
        let pages = pages.unwrap_or("thp");
        let is_twice = match about {
            About::Shared => wish.shared_pages.replace(shared_pages(pages)?).is_some(),
            About::Heap => wish.heap_pages.replace(heap_pages(pages)?).is_some(),
        };
        if is_twice {
            return Err(format!("{item}: it was said before which pages"));
        }
    }
    Ok(())
}

/// The route of `text` or `text=ROUTE`. What a program puts over its own code, nobody else can put there: by the time
/// that another process could, threads run in it, and no call maps memory into another process.
fn text_route(item: &str) -> Result<TextRoute, String> {
    match item.strip_prefix("text=") {
        None => Ok(TextRoute::First),
        Some("warm") => Ok(TextRoute::Warm),
        Some("copy") => Ok(TextRoute::Copy),
        Some("collapse") => Ok(TextRoute::Collapse),
        Some("memfd" | "anonymous" | "hugetlb") => Err(format!(
            "{item}: only a program itself can put such a copy over its code, by planish_hugify_self() in its main"
        )),
        Some(_) => Err(format!(
            "{item}: code is on huge pages of the page cache, by the route warm, copy or collapse"
        )),
    }
}

fn heap_pages(word: &str) -> Result<HeapPages, String> {
    match word {
        "thp" => Ok(HeapPages::Thp),
        "hugetlb" => Ok(HeapPages::Pool),
        _ => Err(format!("heap={word}: a heap can be on thp or hugetlb")),
    }
}

fn shared_pages(word: &str) -> Result<SharedPages, String> {
    match word.to_ascii_lowercase().as_str() {
        "thp" => Ok(SharedPages::Thp),
        "hugetlb" => Ok(SharedPages::Pool(None)),
        size => parse_bytes(size).map(|bytes| SharedPages::Pool(Some(bytes))).ok_or_else(|| {
            format!("shm={word}: shared memory can be on thp, hugetlb, or pages of a size such as 2m or 1g")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(list: &str) -> NodeSet {
        NodeSet::parse_list(list).unwrap()
    }

    fn numa(text: &str) -> Result<Wish, String> {
        let mut wish = Wish::default();
        parse_numa(text, &mut wish).map(|()| wish)
    }

    #[test]
    fn policies_of_both_kinds_of_memory_are_read() {
        let wish = numa("shm=interleave:0,2,heap=bind:1").unwrap();
        assert_eq!(wish.shared, Some(Spread::Interleave(Some(nodes("0,2")))));
        assert_eq!(wish.heap, Some(Spread::Bind(nodes("1"))));
        assert_eq!(numa("interleave").unwrap().shared, Some(Spread::Interleave(None)));
        assert_eq!(numa("shm=weighted").unwrap().shared, Some(Spread::Weighted(None)));
        assert!(!numa("heap=interleave").unwrap().wants_shared());
        assert!(!numa("shm=local").unwrap().wants_shared(), "which is what a program has anyway");
    }

    #[test]
    fn what_is_wrong_is_told_in_a_sentence() {
        let wrong = [
            ("shm=bind", "bind of which nodes? bind:0 or bind:0-1"),
            ("shm=even", "\"even\" is none of local, interleave, weighted, bind, prefer"),
            ("stack=local", "\"stack\" is neither shm nor heap"),
            ("shm", "shm how? shm=interleave, or bind:NODES, ..."),
            ("shm=local,shm=interleave", "shm=interleave: it was said before where that goes"),
            ("local:1", "local takes no nodes; bind:NODES does"),
        ];
        for (text, why) in wrong {
            assert_eq!(numa(text).unwrap_err(), why, "{text}");
        }
        assert!(numa("shm=bind:x").unwrap_err().starts_with("nodes \"x\": "));
    }

    #[test]
    fn page_sizes_are_read() {
        let huge = |text: &str| {
            let mut wish = Wish::default();
            parse_huge(text, &mut wish).map(|()| (wish.heap_pages, wish.shared_pages))
        };
        assert_eq!(huge("heap,shm"), Ok((Some(HeapPages::Thp), Some(SharedPages::Thp))));
        assert_eq!(huge("shm=1G"), Ok((None, Some(SharedPages::Pool(Some(1 << 30))))));
        assert_eq!(huge("shm=hugetlb"), Ok((None, Some(SharedPages::Pool(None)))));
        for size in ["2m", "2M", "2MB", "2MiB", "2 MiB", "2048k"] {
            let pool = Some(SharedPages::Pool(Some(2 << 20)));
            assert_eq!(huge(&format!("shm={size}")), Ok((None, pool)), "{size}");
        }
        assert_eq!(huge("heap=hugetlb"), Ok((Some(HeapPages::Pool), None)));
        assert_eq!(huge("text,heap"), Ok((Some(HeapPages::Thp), None)));
        assert!(huge("text=2m").unwrap_err().starts_with("text=2m: code is on huge pages of the page cache"));
        let route = |text: &str| {
            let mut wish = Wish::default();
            parse_huge(text, &mut wish).map(|()| wish.text)
        };
        assert_eq!(route("heap"), Ok(None));
        assert_eq!(route("text,heap,text"), Ok(Some(TextRoute::First)));
        assert_eq!(route("heap,text=warm"), Ok(Some(TextRoute::Warm)));
        assert_eq!(route("text=copy"), Ok(Some(TextRoute::Copy)));
        assert_eq!(route("text=collapse"), Ok(Some(TextRoute::Collapse)));
        assert!(route("text=copy,text").unwrap_err().contains("said before"));
        for own in ["text=memfd", "text=anonymous", "text=hugetlb"] {
            assert!(route(own).unwrap_err().contains("only a program itself"), "{own}");
        }
        assert!(route("text=").unwrap_err().contains("warm, copy or collapse"));
        assert_eq!(huge("bogus").unwrap_err(), "\"bogus\" is neither shm nor heap, nor text");
        assert!(huge("shm=99999999999999999999g").is_err() && huge("shm=18446744073709551615g").is_err());
    }
}
