//! Arenas on the running kernel: what was asked for is compared with what smaps and the pools say.

mod bump;
mod growing;
mod nodes;
mod pool;

use std::alloc::Layout;

use planish_arena::{
    Achieved, Arena, ArenaError, Fallback, Growth, LINE_BYTES, Lease, NodeChoice, Page, Preference,
};
use planish_skip::skip;
use proptest::prelude::*;

const MB: usize = 1 << 20;

fn on(page: Page) -> planish_arena::Builder {
    Arena::builder().page(Preference::From(page)).fallback(Fallback::Refuse)
}

/// Builds the arena, or says why this machine cannot.
fn build_or_skip(test: &str, builder: planish_arena::Builder) -> Option<Arena> {
    match builder.build() {
        Ok(arena) => Some(arena),
        Err(
            error
            @ (ArenaError::NoSuchPage { .. } | ArenaError::NotBacked { .. } | ArenaError::Memory { .. }),
        ) => {
            skip(test, &error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Every mapped byte must lie on `page`, and the arena must know it.
fn assert_all_on(arena: &Arena, page: Page) {
    let achieved = arena.achieved().expect("smaps is readable");
    assert_eq!(achieved.bytes_on(page), achieved.mapped_bytes, "{achieved:?}");
    assert_eq!(achieved.mostly(), Some(page));
    assert_eq!((achieved.absent_bytes, achieved.why_not.len()), (0, 0), "{achieved:?}");
    assert!(achieved.is_as_requested());
    if let Some(nodes) = achieved.node_bytes {
        assert_eq!(nodes.values().sum::<usize>(), achieved.mapped_bytes);
    }
}

#[test]
fn base_pages_are_base_pages() {
    let arena = on(Page::Base).capacity(5 * MB).build().unwrap();
    assert_all_on(&arena, Page::Base);
    assert_eq!(arena.achieved().unwrap().mapped_bytes, 5 * MB);
}

/// Stacks of threads are mapped without huge pages too; the kernel must not merge them with a chunk.
#[test]
fn base_pages_are_counted_apart_from_thread_stacks() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_all_on(&on(Page::Base).capacity(MB).build().unwrap(), Page::Base));
        }
    });
}

/// A host may forbid them of shared memory (`shmem_enabled` is `deny`), or its kernel know no collapse of it.
#[test]
fn shared_memory_is_shared_on_pages_of_any_kind() {
    let test = "shared_memory_is_shared_on_pages_of_any_kind";
    for page in [Page::Base, Page::Thp] {
        let Some(arena) = build_or_skip(test, on(page).shared(true).capacity(4 * MB)) else { continue };
        assert_all_on(&arena, page);
        assert_eq!(arena.achieved().unwrap().shared_bytes, 4 * MB);
        let words = arena.alloc_slice::<u64>(MB / 8).unwrap();
        assert!(words.iter().all(|word| *word == 0), "fresh memory is zero");
        words.fill(7);
        assert_eq!(words[MB / 8 - 1], 7);
    }
    let Some(own) = build_or_skip(test, on(Page::Base).capacity(4 * MB)) else { return };
    assert_eq!(own.achieved().unwrap().shared_bytes, 0);
}

#[test]
fn transparent_huge_pages_are_huge() {
    let test = "transparent_huge_pages_are_huge";
    let Some(arena) = build_or_skip(test, on(Page::Thp).capacity(20 * MB)) else { return };
    assert_all_on(&arena, Page::Thp);
}

#[test]
fn two_arenas_side_by_side_are_counted_apart() {
    let test = "two_arenas_side_by_side_are_counted_apart";
    for page in [Page::Thp, Page::Base, Page::Thp] {
        let Some(first) = build_or_skip(test, on(page).capacity(4 * MB)) else { return };
        let Some(second) = build_or_skip(test, on(page).capacity(6 * MB)) else { return };
        drop(first);
        assert_all_on(&second, page);
    }
}

#[test]
fn a_pool_gives_its_pages_and_gets_them_back() {
    for bytes in [2 * MB, 1 << 30] {
        let test = format!("a_pool_gives_its_pages_and_gets_them_back ({} MB)", bytes / MB);
        let Some(pool) = pool::borrow(&test, bytes, if bytes == 2 * MB { 4 } else { 1 }) else { continue };
        let free_before = pool.free();
        let page = Page::HugeTlb(bytes);
        let arena = on(page).capacity(bytes / 2 + 1).build().unwrap();
        assert_all_on(&arena, page);
        assert_eq!(pool.free(), free_before - 1);
        drop(arena);
        assert_eq!(pool.free(), free_before);
    }
}

#[test]
fn pages_of_a_pool_are_free_again_when_nobody_leases_of_them() {
    let test = "pages_of_a_pool_are_free_again_when_nobody_leases_of_them";
    let Some(pool) = pool::borrow(test, 2 * MB, 4) else { return };
    let free_before = pool.free();
    let arena = on(Page::HugeTlb(2 * MB)).capacity(8 * MB).build().unwrap();
    assert_eq!(pool.free(), free_before - 4);
    let mut leases: Vec<_> = (0..8).map(|_| arena.lease::<u8>(MB).unwrap()).collect();
    leases.iter_mut().for_each(|lease| lease.fill(7));
    // The first half of the second page, and all of the third and fourth.
    leases.truncate(3);
    assert_eq!((arena.trim(0), pool.free(), pool.set_aside()), (4 * MB, free_before - 2, 0));
    assert!(leases.iter().all(|lease| lease.iter().all(|byte| *byte == 7)), "what is leased stays");
    let again = arena.lease::<u64>(2 * MB / 8).unwrap();
    assert!(again.iter().all(|item| *item == 0));
    assert_eq!(
        pool.free(),
        free_before - 3,
        "it begins on the second page, which is there, and ends on the third"
    );
    drop((leases, again));
    assert_eq!((arena.trim(0), pool.free()), (6 * MB, free_before), "the chunk is gone");
    assert_eq!(arena.achieved().unwrap().mapped_bytes, 0);
}

/// Without care the write would need a third page for the copy, and end this program with SIGBUS.
#[test]
fn a_program_that_is_started_meanwhile_takes_no_page_of_a_full_pool() {
    use std::io::{Read as _, Write as _};
    use std::os::unix::process::CommandExt as _;

    let test = "a_program_that_is_started_meanwhile_takes_no_page_of_a_full_pool";
    let Some(pool) = pool::borrow(test, 2 * MB, 2) else { return };
    let arena = on(Page::HugeTlb(2 * MB)).capacity(pool.free() as usize * 2 * MB).build().unwrap();
    assert_eq!(pool.free(), 0);
    let mut lease = arena.lease::<u8>(4 * MB).unwrap();
    let (mut forked, mut tell) = std::io::pipe().unwrap();
    let (mut wait, mut go_on) = std::io::pipe().unwrap();
    std::thread::scope(|scope| {
        let started = scope.spawn(move || {
            let mut command = std::process::Command::new("true");
            let between = move || {
                tell.write_all(b"x")?;
                wait.read_exact(&mut [0])
            };
            // SAFETY: between fork and exec only read(2) and write(2) are called, which are safe there.
            unsafe { command.pre_exec(between) }.status()
        });
        forked.read_exact(&mut [0]).unwrap();
        lease.fill(7);
        go_on.write_all(b"x").unwrap();
        assert!(started.join().unwrap().unwrap().success());
    });
    assert!(lease.iter().all(|byte| *byte == 7));
}

#[test]
fn what_is_given_back_is_leased_again_and_handed_to_the_kernel_when_asked_for() {
    let test = "what_is_given_back_is_leased_again_and_handed_to_the_kernel_when_asked_for";
    for (page, shared) in [(Page::Base, false), (Page::Thp, false), (Page::Base, true)] {
        let Some(arena) = build_or_skip(test, on(page).shared(shared).capacity(32 * MB)) else { continue };
        let there = || arena.achieved().unwrap().bytes_on(page);
        let mut leases: Vec<_> = (0..31).map(|_| arena.lease::<u32>(MB / 4).unwrap()).collect();
        leases.iter_mut().for_each(|lease| lease.fill(u32::MAX));
        let kept = leases.split_off(30);
        assert_eq!((arena.trim(0), arena.used_bytes()), (0, 31 * MB), "everything is leased");
        drop(leases);
        assert_eq!((there(), arena.used_bytes()), (32 * MB, MB));
        assert_eq!(arena.trim(20 * MB), 10 * MB, "no more than asked for");
        assert_eq!(arena.trim(0), 20 * MB);
        assert_eq!(there(), 2 * MB);
        assert_eq!(arena.achieved().unwrap().absent_bytes, 30 * MB);
        let again = arena.lease::<u32>(3 * MB / 4).unwrap();
        assert!(again.iter().all(|item| *item == 0), "others' bytes are not handed on");
        assert!((5 * MB..=6 * MB).contains(&there()), "it is faulted in: {}", there());
        assert_eq!(arena.achieved().unwrap().mapped_bytes, 32 * MB, "no new chunk was needed");
        assert!(kept[0].iter().all(|item| *item == u32::MAX));
        drop((again, kept));
        assert_eq!(arena.used_bytes(), 0);
        arena.trim(0);
        assert_eq!(arena.achieved().unwrap().mapped_bytes, 0, "a chunk of which nothing is leased goes");
        assert!(arena.lease::<u64>(5).unwrap().iter().all(|item| *item == 0));
    }
}

#[test]
fn a_lease_goes_through_a_pointer_and_comes_back() {
    let arena = on(Page::Base).capacity(MB).build().unwrap();
    let mut lease = arena.lease::<u32>(33).unwrap();
    lease.fill(7);
    let items = lease.into_raw();
    assert_eq!((items.len(), arena.trim(0)), (33, 0), "it is still leased");
    // SAFETY: the pointer is of a lease of this arena, and of no other lease since.
    let lease = unsafe { Lease::from_raw(&arena, items) };
    assert!(lease.iter().all(|item| *item == 7));
    drop(lease);
    assert_eq!(arena.used_bytes(), 0);
    assert_eq!(arena.trim(0), MB, "nothing is leased any more");
    // SAFETY: as above; a lease of nothing.
    drop(unsafe { Lease::from_raw(&arena, arena.lease::<u64>(0).unwrap().into_raw()) });
}

#[test]
fn bytes_are_aligned_as_wanted() {
    let arena = on(Page::Base).growth(Growth { first_bytes: 1, cap_bytes: MB }).build().unwrap();
    for (bytes, align) in [(1, 1), (100, 512), (3, 4096), (5000, 1 << 16), (0, 1 << 20), (1, 64)] {
        let slice = arena.alloc_bytes(Layout::from_size_align(bytes, align).unwrap()).unwrap();
        assert_eq!((slice.len(), slice.as_ptr().addr() % align), (bytes, 0));
        assert!(slice.iter().all(|byte| *byte == 0));
        slice.fill(1);
    }
    for (bytes, align) in [(0, 1 << 63), (1 << 62, 1 << 62), (isize::MAX as usize, 1)] {
        let outcome =
            arena.alloc_bytes(Layout::from_size_align(bytes, align).unwrap()).map(|slice| slice.len());
        assert!(
            matches!(outcome, Err(ArenaError::TooLarge { .. } | ArenaError::Memory { .. }) | Ok(0)),
            "{outcome:?}"
        );
    }
}

/// Gives a page of a huge one back behind the arena's back, as reclaim does, and fills it again.
fn fall_apart(bytes: &mut [u8]) {
    let page_bytes = Page::Base.bytes();
    let page = &mut bytes[page_bytes..2 * page_bytes];
    assert!(page.as_ptr().addr().is_multiple_of(page_bytes), "it is a whole page");
    // SAFETY: a page of bytes that the caller has to itself; whatever they hold afterwards is a value of them.
    unsafe { rustix::mm::madvise(page.as_mut_ptr().cast(), page_bytes, rustix::mm::Advice::LinuxDontNeed) }
        .expect("the kernel drops a page that is there");
    page.fill(9);
}

/// What the arena has after it was collapsed; or a word why this kernel does not.
fn collapsed_or_skip(test: &str, arena: &Arena) -> Option<Achieved> {
    let achieved = arena.collapse().expect("smaps is readable");
    match achieved.why_not.iter().find(|why| why.starts_with("not collapsed")) {
        Some(why) => {
            skip(test, why);
            None
        }
        None => Some(achieved),
    }
}

#[test]
fn what_fell_apart_is_collapsed_onto_huge_pages_again() {
    let test = "what_fell_apart_is_collapsed_onto_huge_pages_again";
    let Some(arena) = build_or_skip(test, on(Page::Thp).capacity(8 * MB)) else { return };
    let slice = arena.alloc_slice::<u8>(8 * MB).unwrap();
    slice.fill(9);
    fall_apart(slice);
    let apart = arena.achieved().unwrap();
    assert!(apart.bytes_on(Page::Thp) < apart.mapped_bytes && !apart.is_as_requested(), "{apart:?}");
    if collapsed_or_skip(test, &arena).is_some() {
        assert_all_on(&arena, Page::Thp);
    }
    assert!(slice.iter().all(|byte| *byte == 9), "what it held was copied");
}

#[test]
fn what_was_handed_back_is_not_collapsed_into_being() {
    let test = "what_was_handed_back_is_not_collapsed_into_being";
    let Some(arena) = build_or_skip(test, on(Page::Thp).capacity(8 * MB)) else { return };
    let [mut kept, gone] = [4 * MB, 4 * MB].map(|bytes| arena.lease::<u8>(bytes).unwrap());
    drop(gone);
    let handed = arena.trim(0);
    assert_eq!(handed, 4 * MB);
    fall_apart(&mut kept);
    let Some(achieved) = collapsed_or_skip(test, &arena) else { return };
    assert_eq!((achieved.bytes_on(Page::Thp), achieved.absent_bytes), (4 * MB, handed), "{achieved:?}");
    assert!(achieved.is_as_requested());
}

#[test]
fn slices_that_are_handed_out_for_good_keep_their_memory() {
    let arena = on(Page::Base).capacity(4 * MB).build().unwrap();
    let (slice, lease) = (arena.alloc_slice::<u8>(MB).unwrap(), arena.lease::<u8>(2 * MB).unwrap());
    slice.fill(3);
    assert!(arena.lease::<u64>(usize::MAX).is_err() && arena.lease::<u64>(0).unwrap().is_empty());
    drop(lease);
    assert_eq!((arena.trim(0), arena.used_bytes()), (2 * MB, MB));
    assert!(slice.iter().all(|byte| *byte == 3));
    assert!(arena.alloc_slice::<u8>(MB).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn a_pool_that_is_one_page_short_is_refused_and_left_alone() {
    let test = "a_pool_that_is_one_page_short_is_refused_and_left_alone";
    let Some(pool) = pool::borrow(test, 2 * MB, 2) else { return };
    let (free, page) = (pool.free(), Page::HugeTlb(2 * MB));
    let bytes = usize::try_from(free).unwrap() * 2 * MB + 1;
    match on(page).capacity(bytes).build().unwrap_err() {
        ArenaError::PoolShort { free_pages, .. } => assert_eq!(free_pages, Some(free)),
        other => panic!("{other}"),
    }
    assert_eq!(pool.free(), free);
    let arena = on(page).fallback(Fallback::Allow).capacity(bytes).build().unwrap();
    let achieved = arena.achieved().unwrap();
    assert_eq!((achieved.bytes_on(page), pool.free()), (0, free), "a chunk is of one kind of page");
    assert!(!achieved.is_as_requested());
    let short = format!("{} wanted, {free} free", free + 1);
    assert!(achieved.why_not[0].contains(&short), "{achieved:?}");
}

#[test]
fn a_pool_that_is_bound_to_its_node_places_there() {
    let test = "a_pool_that_is_bound_to_its_node_places_there";
    let Some(_pool) = pool::borrow(test, 2 * MB, 4) else { return };
    match on(Page::HugeTlb(2 * MB)).node(NodeChoice::only(0)).capacity(3 * MB).build() {
        Ok(arena) => {
            let nodes = arena.achieved().unwrap().node_bytes;
            assert!(nodes.is_none_or(|nodes| nodes.into_iter().eq([(0, 4 * MB)])));
        }
        Err(error @ (ArenaError::Placement { .. } | ArenaError::PoolShort { .. })) => skip(test, error),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_short_pool_is_refused_with_its_figures_and_a_cure() {
    let error = on(Page::HugeTlb(2 * MB)).capacity(1 << 46).build().unwrap_err();
    match &error {
        ArenaError::PoolShort { page, wanted_bytes, free_pages, .. } => {
            assert_eq!((*page, *wanted_bytes), (Page::HugeTlb(2 * MB), 1 << 46));
            assert!(free_pages.is_some());
            assert!(
                error.to_string().starts_with("no 2 MB huge pages for 70368744177664 bytes: 33554432 wanted")
            );
            assert!(error.cure().contains("planish size --bytes 70368744177664"));
        }
        ArenaError::NoSuchPage { .. } => skip("a_short_pool_is_refused_with_its_figures_and_a_cure", error),
        other => panic!("{other}"),
    }
}

#[test]
fn more_memory_than_there_is_is_refused_before_it_is_touched() {
    for page in [Page::Base, Page::Thp] {
        match on(page).capacity(1 << 46).build().unwrap_err() {
            ArenaError::Memory { available_bytes, .. } => assert!(available_bytes > 0),
            error @ ArenaError::NoSuchPage { .. } => skip("more_memory_than_there_is", error),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_page_that_the_kernel_lacks_is_an_error_or_the_next_rung() {
    let test = "a_page_that_the_kernel_lacks_is_an_error_or_the_next_rung";
    let Some(_turn) = pool::turn(test) else { return };
    let page = Page::HugeTlb(128 << 30);
    let error = on(page).capacity(MB).build().unwrap_err();
    assert!(matches!(error, ArenaError::NoSuchPage { .. }), "{error}");
    let arena = on(page).fallback(Fallback::Allow).capacity(MB).build().unwrap();
    let achieved = arena.achieved().unwrap();
    assert!(!achieved.is_as_requested());
    assert!(achieved.why_not[0].contains("this kernel has no 128 GB huge pages"), "{achieved:?}");
}

#[test]
fn five_megabytes_take_no_gigabyte_page() {
    let Some(_turn) = pool::turn("five_megabytes_take_no_gigabyte_page") else { return };
    let arena = on(Page::HugeTlb(1 << 30)).fallback(Fallback::Allow).capacity(5 * MB).build().unwrap();
    let achieved = arena.achieved().unwrap();
    assert!(achieved.mapped_bytes < 16 * MB, "{achieved:?}");
    assert!(!achieved.why_not.is_empty());
}

/// A first chunk of 2^46 bytes cannot be had, the slice itself can: nothing is amiss then.
#[test]
fn short_memory_gives_a_chunk_of_what_is_needed() {
    let growth = Growth { first_bytes: 1 << 46, cap_bytes: 1 << 46 };
    let arena = on(Page::Base).growth(growth).build().unwrap();
    assert_eq!(arena.alloc_slice::<u8>(MB).unwrap().len(), MB);
    assert_all_on(&arena, Page::Base);
}

#[test]
fn memory_lies_on_the_node_that_it_was_bound_to() {
    let test = "memory_lies_on_the_node_that_it_was_bound_to";
    for page in [Page::Base, Page::Thp] {
        match on(page).node(NodeChoice::only(0)).capacity(4 * MB).build() {
            Ok(arena) => {
                let nodes = arena.achieved().unwrap().node_bytes;
                assert!(nodes.is_none_or(|nodes| nodes.into_iter().eq([(0, 4 * MB)])));
            }
            Err(error) => skip(test, error),
        }
    }
    match on(Page::Base).node(NodeChoice::only(1000)).capacity(MB).build().unwrap_err() {
        ArenaError::NoSuchNode { nodes, .. } => assert_eq!(nodes, "1000"),
        // A kernel without NUMA.
        ArenaError::Placement { nodes, .. } => assert_eq!(nodes, "1000"),
        ArenaError::Memory { .. } => panic!("a node without figures must not count as full"),
        other => panic!("{other}"),
    }
}

#[test]
fn chunks_double_up_to_the_cap() {
    let growth = Growth { first_bytes: MB, cap_bytes: 2 * MB };
    let arena = on(Page::Base).growth(growth).build().unwrap();
    let mut mapped = Vec::new();
    for _ in 0..6 {
        arena.alloc_slice::<u8>(MB - LINE_BYTES).unwrap();
        mapped.push(arena.achieved().unwrap().mapped_bytes / MB);
    }
    assert_eq!(mapped, [1, 3, 3, 5, 5, 7]);
    arena.alloc_slice::<u8>(10 * MB).unwrap();
    assert_eq!(arena.achieved().unwrap().mapped_bytes / MB, 17);
}

#[test]
fn nothing_and_too_much() {
    let arena = Arena::builder().build().unwrap();
    arena.reserve(0).unwrap();
    assert!(arena.alloc_slice::<u64>(0).unwrap().is_empty());
    assert!(arena.alloc_slice::<[u64; 0]>(7).unwrap().len() == 7);
    assert_eq!(arena.achieved().unwrap().mostly(), None);
    for count in [usize::MAX, usize::MAX / 8, isize::MAX as usize] {
        let error = arena.alloc_slice::<u64>(count).unwrap_err();
        assert!(matches!(error, ArenaError::TooLarge { .. }), "{error}");
    }
    assert_eq!(arena.used_bytes(), 0);
}

#[test]
fn threads_share_one_arena() {
    let arena = on(Page::Base).build().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let arena = &arena;
            scope.spawn(move || {
                let slices: Vec<&mut [u64]> =
                    (0..50).map(|size| arena.alloc_filled(size * 100, thread).unwrap()).collect();
                assert!(slices.iter().all(|slice| slice.iter().all(|&item| item == thread)));
            });
        }
    });
}

/// A slice of the property test: what it was filled with, and where it lies.
enum Held<'a> {
    Bytes(u8, &'a mut [u8]),
    Words(u64, &'a mut [u64]),
    Lines([u32; 5], &'a mut [[u32; 5]]),
}

impl Held<'_> {
    fn address_range(&self) -> std::ops::Range<usize> {
        let range = |start: usize, bytes: usize| start..start + bytes;
        match self {
            Held::Bytes(_, slice) => range(slice.as_ptr().addr(), size_of_val(*slice)),
            Held::Words(_, slice) => range(slice.as_ptr().addr(), size_of_val(*slice)),
            Held::Lines(_, slice) => range(slice.as_ptr().addr(), size_of_val(*slice)),
        }
    }

    fn is_intact(&self) -> bool {
        match self {
            Held::Bytes(value, slice) => slice.iter().all(|item| item == value),
            Held::Words(value, slice) => slice.iter().all(|item| item == value),
            Held::Lines(value, slice) => slice.iter().all(|item| item == value),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Slices are zeroed, aligned, disjoint and keep what is written; the arena accounts for their bytes.
    #[test]
    fn slices_are_zeroed_aligned_disjoint_and_kept(
        asks in prop::collection::vec((0u8..3, prop_oneof![0usize..100, 0usize..100_000]), 1..40),
        first_bytes in 1usize..200_000,
    ) {
        let growth = Growth { first_bytes, cap_bytes: 1 << 20 };
        let arena = on(Page::Base).growth(growth).build().unwrap();
        let mut held = Vec::new();
        for (seed, &(kind, count)) in asks.iter().enumerate() {
            held.push(match kind {
                0 => {
                    let slice = arena.alloc_slice::<u8>(count).unwrap();
                    prop_assert!(slice.iter().all(|&item| item == 0));
                    slice.fill(seed as u8);
                    Held::Bytes(seed as u8, slice)
                }
                1 => {
                    let slice = arena.alloc_slice::<u64>(count).unwrap();
                    prop_assert!(slice.iter().all(|&item| item == 0));
                    slice.fill(seed as u64);
                    Held::Words(seed as u64, slice)
                }
                _ => Held::Lines([seed as u32; 5], arena.alloc_filled(count, [seed as u32; 5]).unwrap()),
            });
        }
        prop_assert!(held.iter().all(Held::is_intact));
        let mut ranges: Vec<_> =
            held.iter().map(Held::address_range).filter(|range| !range.is_empty()).collect();
        prop_assert!(ranges.iter().all(|range| range.start % LINE_BYTES == 0));
        ranges.sort_by_key(|range| range.start);
        prop_assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
        let bytes: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        prop_assert!(arena.used_bytes() >= bytes);
        prop_assert!(arena.achieved().unwrap().mapped_bytes >= arena.used_bytes());
    }
}
