//! What a load costs on pages of each size: the same walk over the same number of bytes, on the same node.
//!
//! With small pages the memory has more of them than the TLB has entries, so that most loads also walk the page table.
//! The difference between the rows is that walk.

use planish_arena::{Arena, Fallback, NodeChoice, Page, Preference};
use planish_host::Host;
use planish_stats::Rng;
use planish_sys::pages;
use planish_topo::Topology;

use crate::Rounds;
use crate::chase::Cycle;
use crate::error::{LatencyError, NO_ROOM};
use crate::figure::Figure;
use crate::pin::on_cpu;

/// Why there are no figures, and what to do about it.
pub type Missing = (String, String);

/// One kind of page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageRow {
    /// What was asked for, and is had where there are figures: `base`, `thp`, `hugetlb-2m`.
    pub backing: String,
    /// Size of one page in bytes.
    pub page_bytes: u64,
    /// Its figures; why there are none, and what to do about it.
    pub figures: Result<PageFigures, Missing>,
}

/// What was measured on one kind of page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageFigures {
    /// A load, in nanoseconds.
    pub load_ns: Figure,
    /// The same as a share of what it takes on base pages, round by round; none for those themselves.
    pub of_base: Option<Figure>,
    /// Bytes that lie on such pages, read back after the last round.
    pub achieved_bytes: u64,
}

/// Bytes that each kind of page is measured on, where there is room.
const BYTES: u64 = 256 << 20;
/// Less says nothing: it is within the reach of a TLB of 4 KB pages and of large caches.
const BYTES_MIN: u64 = 32 << 20;
/// Of what the node has free, one part of this for each kind of page.
const OF_FREE: u64 = 16;
/// Loads of a round.
const STEPS: usize = 200_000;

/// Measures each kind of page that this kernel has, from one CPU.
///
/// # Errors
/// The CPU cannot be used any more.
pub fn measure_pages(
    cpu: u32,
    topology: &Topology,
    rounds: &mut Rounds,
) -> Result<Vec<PageRow>, LatencyError> {
    let node = topology.cpus.iter().find(|it| it.id == cpu).and_then(|it| it.node).unwrap_or(0);
    let free = topology.node(node).map_or(0, |node| node.free_bytes) / OF_FREE;
    let unit = pages::thp_bytes().unwrap_or(1 << 20) as u64;
    let bytes = BYTES.min(free) / unit * unit;
    let mut kinds = vec![Page::Base];
    kinds.extend(pages::thp_bytes().map(|_| Page::Thp));
    kinds.extend(pages::hugetlb_bytes().into_iter().map(Page::HugeTlb));
    let arenas: Vec<(Page, Result<Arena, Missing>)> =
        kinds.into_iter().map(|page| (page, arena(page, bytes, node, topology))).collect();
    // The same cycle on all of them.
    let seed = rounds.rng.next_u64();
    let mut cycles: Vec<Result<Cycle<'_>, Missing>> = Vec::new();
    for (_, arena) in &arenas {
        cycles.push(arena.as_ref().map_err(Clone::clone).and_then(|arena| lay(arena, bytes, seed)));
    }
    let seen = walk_all(cpu, &mut cycles, rounds)?;
    let base = seen[0].clone();
    let rows = arenas.iter().zip(&cycles).zip(&seen).map(|(((page, arena), cycle), seen)| {
        let figures = match (arena, cycle) {
            (Err(why), _) | (_, Err(why)) => Err(why.clone()),
            (Ok(arena), Ok(_)) => figures(*page, arena, seen, &base, rounds),
        };
        PageRow { backing: page.backing(), page_bytes: page.bytes() as u64, figures }
    });
    Ok(rows.collect())
}

/// Memory on such pages and no others.
fn arena(page: Page, bytes: u64, node: u32, topology: &Topology) -> Result<Arena, Missing> {
    if bytes < BYTES_MIN {
        let why =
            format!("a {OF_FREE}th of what is free on node {node} is less than {} MiB", BYTES_MIN >> 20);
        return Err((why, NO_ROOM.to_owned()));
    }
    if let Page::HugeTlb(page_bytes) = page {
        pool_has(page_bytes as u64, bytes, node, topology)?;
    }
    let choice = if topology.nodes.len() == 1 { NodeChoice::Inherit } else { NodeChoice::only(node) };
    let builder = Arena::builder().page(Preference::From(page)).fallback(Fallback::Refuse).node(choice);
    let bytes = usize::try_from(bytes).expect("a quarter of a gigabyte fits an address");
    builder.capacity(bytes).build().map_err(|error| (error.to_string(), error.cure()))
}

/// Whether a pool has pages that are free on the node and promised to nobody.
///
/// The arena would also take surplus pages, which the kernel adds to a pool for as long as they are used: that would
/// raise it, and this crate raises none.
fn pool_has(page_bytes: u64, bytes: u64, node: u32, topology: &Topology) -> Result<(), Missing> {
    let needed = bytes.div_ceil(page_bytes);
    let pool =
        topology.node(node).and_then(|node| node.pools.iter().find(|pool| pool.page_bytes == page_bytes));
    let everywhere: u64 = topology
        .nodes
        .iter()
        .flat_map(|node| &node.pools)
        .filter(|pool| pool.page_bytes == page_bytes)
        .map(|pool| pool.free)
        .sum();
    let promised = format!("/sys/kernel/mm/hugepages/hugepages-{}kB/resv_hugepages", page_bytes / 1024);
    let promised = Host::live().read(&promised).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let free =
        pool.map_or(0, |pool| pool.free).min(everywhere.saturating_sub(promised.unwrap_or(everywhere)));
    if free >= needed {
        return Ok(());
    }
    let has = pool.map_or(0, |pool| pool.total);
    let why = format!(
        "it needs {needed} pages of the pool of node {node}, which has {has} and {free} of them free; none is added to \
         it here"
    );
    let bytes = needed.saturating_mul(page_bytes);
    let page = match page_bytes {
        1_073_741_824.. => format!("{}G", page_bytes >> 30),
        1_048_576.. => format!("{}M", page_bytes >> 20),
        _ => format!("{}K", page_bytes >> 10),
    };
    let file = format!("./pool-{}.toml", page.to_lowercase());
    let cure = format!(
        "planish size --bytes {bytes} --page-size {page} --output {file} writes a profile with the pool that it takes; \
         planish apply {file} sets it"
    );
    Err((why, cure))
}

fn lay(arena: &Arena, bytes: u64, seed: u64) -> Result<Cycle<'_>, Missing> {
    let count = usize::try_from(bytes).expect("it was mapped") / size_of::<u64>();
    let words = arena.alloc_slice(count).map_err(|error| (error.to_string(), error.cure()))?;
    Ok(Cycle::lay(words, &mut Rng::new(seed)))
}

/// Nanoseconds of a load in each round, on each kind of page; none for those that are not there.
fn walk_all<E>(
    cpu: u32,
    cycles: &mut [Result<Cycle<'_>, E>],
    rounds: &mut Rounds,
) -> Result<Vec<Vec<f64>>, LatencyError> {
    let mut seen = vec![Vec::with_capacity(rounds.count); cycles.len()];
    let mut order: Vec<usize> = (0..cycles.len()).filter(|&index| cycles[index].is_ok()).collect();
    for _ in 0..rounds.count {
        rounds.rng.shuffle(&mut order);
        for &index in &order {
            let Ok(cycle) = &mut cycles[index] else { continue };
            seen[index].push(on_cpu(cpu, || Ok(cycle.walk(STEPS)))?);
        }
    }
    Ok(seen)
}

fn figures(
    page: Page,
    arena: &Arena,
    seen: &[f64],
    base: &[f64],
    rounds: &Rounds,
) -> Result<PageFigures, Missing> {
    let again = || "run it again, when nothing else makes or splits huge pages".to_owned();
    let achieved = arena.achieved().map_err(|error| (error.to_string(), error.cure()))?;
    let elsewhere = achieved.backing.iter().find(|backing| backing.page != page && backing.bytes > 0);
    if let Some(other) = elsewhere {
        return Err((format!("{} bytes of it lie on {} by now", other.bytes, other.page), again()));
    }
    let load_ns =
        Figure::of(seen, rounds.spread).ok_or_else(|| ("no round came to an end".to_owned(), again()))?;
    let ratios: Vec<f64> = seen.iter().zip(base).map(|(own, base)| own / base).collect();
    let of_base = if page == Page::Base { None } else { Figure::of(&ratios, rounds.spread) };
    Ok(PageFigures { load_ns, of_base, achieved_bytes: achieved.bytes_on(page) as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Spread;

    #[test]
    fn base_pages_are_measured_and_a_pool_that_is_short_is_left_alone() {
        let mut topology = Topology::read(&Host::live());
        for node in &mut topology.nodes {
            // Small, and as if every pool were in use.
            node.free_bytes = node.free_bytes.min(BYTES_MIN * OF_FREE);
            node.pools.iter_mut().for_each(|pool| pool.free = 0);
        }
        let cpu = topology.allowed().first().expect("we run somewhere");
        let mut rounds = Rounds { count: 2, spread: Spread::Usual, rng: Rng::new(1) };
        let rows = measure_pages(cpu, &topology, &mut rounds).expect("a CPU that we may use");
        assert_eq!(rows[0].backing, "base");
        match &rows[0].figures {
            Ok(base) => {
                assert!(base.load_ns.value > 0.1 && base.of_base.is_none(), "{base:?}");
                assert!(base.achieved_bytes >= BYTES_MIN);
            }
            Err((why, cure)) => {
                assert!(!why.is_empty() && !cure.is_empty(), "a machine without memory: {why}")
            }
        }
        for row in rows.iter().filter(|row| row.backing.starts_with("hugetlb")) {
            let (why, cure) = row.figures.as_ref().expect_err("none is free");
            assert!(why.contains(" and 0 of them free") && cure.contains("planish size"), "{why}");
            assert!(
                cure.contains(" --output ") && cure.contains("planish apply ./"),
                "no plan takes bytes: {cure}"
            );
        }
    }

    #[test]
    fn a_machine_without_room_says_so_for_each_kind() {
        let mut topology = Topology::read(&Host::live());
        topology.nodes.iter_mut().for_each(|node| node.free_bytes = 0);
        let cpu = topology.allowed().first().expect("we run somewhere");
        let mut rounds = Rounds { count: 1, spread: Spread::Usual, rng: Rng::new(1) };
        let rows = measure_pages(cpu, &topology, &mut rounds).expect("a CPU that we may use");
        assert!(!rows.is_empty());
        for row in rows {
            let (why, cure) = row.figures.expect_err("there is no room");
            assert!(why.contains("free on node") && cure.contains("page cache"), "{why}: {cure}");
        }
    }
}
