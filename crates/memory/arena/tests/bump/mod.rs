//! Memory that one thread fills.

use std::alloc::Layout;
use std::collections::BTreeSet;
use std::ops::Range;

use planish_arena::{Arena, ArenaError, Bump, Growth, LINE_BYTES, Page};
use proptest::prelude::*;

use super::{MB, on};

fn arena(first_bytes: usize) -> Arena {
    on(Page::Base).growth(Growth { first_bytes, cap_bytes: first_bytes }).build().expect("an arena")
}

fn mapped(arena: &Arena) -> usize {
    arena.chunks().iter().map(|chunk| chunk.bytes).sum()
}

fn addresses<T>(items: &[T]) -> Range<usize> {
    let start = items.as_ptr().addr();
    start..start + size_of_val(items)
}

#[test]
fn items_lie_side_by_side_and_stay() {
    let arena = arena(4 * MB);
    let bump = arena.bump(Growth::BLOCKS);
    let items: Vec<&mut u64> = (0..100_000).map(|number| bump.alloc(number).unwrap()).collect();
    let beside =
        items.windows(2).filter(|two| (&raw const *two[0]).addr().abs_diff((&raw const *two[1]).addr()) == 8);
    assert!(beside.count() > 99_900, "but where a block ends");
    assert!(items.iter().zip(0..).all(|(item, number)| **item == number), "nothing moved");
    assert!((800_000..810_000).contains(&bump.used_bytes()), "{bump:?}");
    assert!(bump.held_bytes() >= bump.used_bytes() && arena.used_bytes() == bump.held_bytes());
    drop(bump);
    assert_eq!((arena.used_bytes(), mapped(&arena)), (0, 4 * MB));
}

#[test]
fn what_a_thread_leaves_behind_is_the_next_ones() {
    let arena = arena(4 * MB);
    let mut seen = BTreeSet::new();
    for thread in 0..20u8 {
        std::thread::scope(|scope| {
            let start = scope.spawn(|| {
                let bump = arena.bump(Growth::BLOCKS);
                let start = (&raw const *bump.alloc(thread).unwrap()).addr();
                let slices: Vec<&mut [u8]> = (0..30).map(|_| bump.alloc_slice(100_000).unwrap()).collect();
                assert!(slices.iter().all(|slice| slice.iter().all(|byte| *byte == 0)), "others' bytes");
                slices.into_iter().for_each(|slice| slice.fill(thread + 1));
                start
            });
            seen.insert(start.join().unwrap());
        });
        assert_eq!(arena.used_bytes(), 0, "the end of the thread gives it back");
    }
    assert_eq!((mapped(&arena), seen.len()), (4 * MB, 1), "each had what the one before had");
    assert_eq!(arena.trim(0), 4 * MB, "and the kernel gets it when asked to");
}

#[test]
fn a_bump_may_be_handed_on_with_what_it_holds() {
    let arena = arena(MB);
    let (bump, start) = std::thread::scope(|scope| {
        let filled = scope.spawn(|| {
            let bump = arena.bump(Growth::BLOCKS);
            let start = (&raw const *bump.alloc([7u32; 5]).unwrap()).addr();
            (bump, start)
        });
        filled.join().unwrap()
    });
    let next = (&raw const *bump.alloc(1u32).unwrap()).addr();
    assert_eq!(next, start - 4);
}

#[test]
fn clearing_keeps_a_block_and_gives_others_back() {
    let arena = arena(4 * MB);
    let mut bump = arena.bump(Growth::BLOCKS);
    for round in 0..50u64 {
        let first = (&raw const *bump.alloc(round).unwrap()).addr();
        let zeroed = bump.alloc_slice::<u64>(20_000).unwrap();
        assert!(zeroed.iter().all(|item| *item == 0), "round {round}");
        zeroed.fill(u64::MAX);
        bump.clear();
        assert_eq!(bump.used_bytes(), 0);
        let again = (&raw const *bump.alloc(round).unwrap()).addr();
        assert!(round == 0 || again == first, "it begins where it began");
        bump.clear();
    }
    assert!((1..MB).contains(&bump.held_bytes()) && arena.used_bytes() == bump.held_bytes(), "{bump:?}");
    assert_eq!(mapped(&arena), 4 * MB);
}

#[test]
fn what_is_left_of_a_chunk_is_used() {
    let arena = arena(MB);
    let big: Vec<_> = (0..3).map(|_| arena.alloc_slice::<u8>(700 << 10).unwrap()).collect();
    let tails = || arena.chunks().iter().map(|chunk| chunk.tail_bytes >> 10).collect::<Vec<_>>();
    assert_eq!((big.len(), tails()), (3, vec![324; 3]), "told, chunk by chunk");
    let small = arena.alloc_slice::<u8>(300 << 10).unwrap();
    let next = arena.alloc_slice::<u8>(300 << 10).unwrap();
    assert_eq!(
        (small.len() + next.len(), tails()),
        (600 << 10, vec![324, 24, 24]),
        "the newest first, then others"
    );
    let leased = arena.lease::<u8>(300 << 10).unwrap();
    assert_eq!((leased.len(), tails()), (300 << 10, vec![24; 3]));
    let bump = arena.bump(Growth { first_bytes: MB, cap_bytes: MB });
    for _ in 0..70 {
        bump.alloc_slice::<u8>(1 << 10).unwrap().fill(1);
    }
    assert_eq!(
        (tails(), bump.held_bytes()),
        (vec![0; 3], 72 << 10),
        "a block is what is left, whatever was wished"
    );
    assert_eq!(mapped(&arena), 3 * MB);
}

#[test]
fn what_is_left_of_a_block_goes_back() {
    let arena = arena(MB);
    let bump = arena.bump(Growth { first_bytes: 64 << 10, cap_bytes: 64 << 10 });
    bump.alloc_slice::<u8>(60 << 10).unwrap();
    bump.alloc_slice::<u8>(10 << 10).unwrap();
    let spare = arena.chunks()[0].spare_bytes;
    assert_eq!(spare, 4 << 10, "none of it is lost");
    assert_eq!(arena.lease::<u8>(4 << 10).unwrap().len(), spare);
    bump.alloc_slice::<u8>(40 << 10).unwrap();
    let large = bump.alloc_slice::<u8>(200 << 10).unwrap();
    let small = bump.alloc_slice::<u8>(1 << 10).unwrap();
    assert!(addresses(small).start < addresses(large).start, "a large one does not end the block");
}

#[test]
fn what_fails_changes_nothing() {
    let arena = arena(MB);
    let bump = arena.bump(Growth::BLOCKS);
    let before = (&raw const *bump.alloc(1u8).unwrap()).addr();
    let held = (bump.used_bytes(), bump.held_bytes(), arena.chunks());
    let error = bump.alloc_slice::<u8>(1 << 46).unwrap_err();
    assert!(matches!(error, ArenaError::Memory { .. }), "{error}");
    for count in [usize::MAX, usize::MAX / 8, isize::MAX as usize / 4] {
        let error = bump.alloc_slice::<u64>(count).unwrap_err();
        assert!(matches!(error, ArenaError::TooLarge { .. } | ArenaError::Memory { .. }), "{error}");
    }
    assert_eq!((bump.used_bytes(), bump.held_bytes(), arena.chunks()), held);
    assert_eq!((&raw const *bump.alloc(1u8).unwrap()).addr(), before - 1);
}

#[test]
fn nothing_takes_no_memory() {
    let arena = arena(MB);
    let bump = arena.bump(Growth::BLOCKS);
    bump.alloc(()).unwrap();
    assert!(
        bump.alloc_slice::<u64>(0).unwrap().is_empty() && bump.alloc_copy::<u128>(&[]).unwrap().is_empty()
    );
    let none = bump.alloc_bytes(Layout::from_size_align(0, 1 << 20).unwrap()).unwrap();
    assert!(none.is_empty() && none.as_ptr().addr().is_multiple_of(1 << 20));
    assert_eq!((bump.held_bytes(), mapped(&arena)), (0, 0));
}

/// Threads on one arena: each fills, checks, clears and ends, over and over.
#[test]
fn threads_never_meet() {
    const THREADS: u64 = 4;
    let arena = arena(MB);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let arena = &arena;
            scope.spawn(move || {
                let mut seed = thread + 1;
                for _ in 0..30 {
                    let mut bump = arena.bump(Growth { first_bytes: 1 << 10, cap_bytes: 64 << 10 });
                    for _ in 0..5 {
                        fill_and_check(&bump, thread, &mut seed);
                        bump.clear();
                    }
                    fill_and_check(&bump, thread, &mut seed);
                }
            });
        }
    });
    assert_eq!(arena.used_bytes(), 0);
    assert!(mapped(&arena) <= 3 * MB, "{} bytes for less than {THREADS} x 0.4 MB", mapped(&arena));
}

fn fill_and_check(bump: &Bump<'_>, thread: u64, seed: &mut u64) {
    let mut slices = Vec::new();
    for _ in 0..60 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let slice = bump.alloc_slice::<u64>((*seed >> 54) as usize).expect("memory");
        assert!(slice.iter().all(|item| *item == 0), "zeroed for thread {thread}");
        slice.fill(thread << 32 | *seed >> 48);
        slices.push((slice, thread << 32 | *seed >> 48));
    }
    assert!(slices.iter().all(|(slice, value)| slice.iter().all(|item| item == value)), "thread {thread}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever two bumps and the arena give out is aligned, zeroed, disjoint and kept; between bumps not even a line
    /// is shared.
    #[test]
    fn what_bumps_give_out_is_theirs_alone(
        asks in prop::collection::vec((0..3usize, 0..3000usize, 0..9u32), 1..120),
        block_bytes in 1..20_000usize,
    ) {
        let arena = on(Page::Base).growth(Growth { first_bytes: 1, cap_bytes: 1 << 16 }).build().unwrap();
        let blocks = Growth { first_bytes: block_bytes, cap_bytes: 4 * block_bytes };
        let bumps = [arena.bump(blocks), arena.bump(blocks)];
        let mut held: Vec<(usize, u8, &mut [u8])> = Vec::new();
        for (seed, &(who, bytes, align)) in asks.iter().enumerate() {
            let layout = Layout::from_size_align(bytes, 1 << align).unwrap();
            let slice = match bumps.get(who) {
                Some(bump) => bump.alloc_bytes(layout).unwrap(),
                None => arena.alloc_bytes(layout).unwrap(),
            };
            prop_assert!(slice.iter().all(|byte| *byte == 0));
            prop_assert!(slice.as_ptr().addr().is_multiple_of(1 << align));
            slice.fill(seed as u8);
            held.push((who, seed as u8, slice));
        }
        for (_, value, slice) in &held {
            prop_assert!(slice.iter().all(|byte| byte == value));
        }
        let lines = |range: Range<usize>| range.start / LINE_BYTES..range.end.div_ceil(LINE_BYTES);
        let mut ranges: Vec<_> = held.iter().filter(|(.., slice)| !slice.is_empty())
            .map(|(who, _, slice)| (addresses(slice).start, addresses(slice).end, *who)).collect();
        ranges.sort_unstable();
        for two in ranges.windows(2) {
            let (one, other) = (lines(two[0].0..two[0].1), lines(two[1].0..two[1].1));
            prop_assert!(two[0].1 <= two[1].0);
            prop_assert!(two[0].2 == two[1].2 || one.end <= other.start, "{two:?}");
        }
    }
}
