//! Memory that grows where it is.

use planish_arena::{ArenaError, Builder, Growing, Growth, Page};
use planish_skip::skip;
use proptest::prelude::*;

use super::{MB, fall_apart, on, pool};

/// Begins with a megabyte and goes on with pieces of up to four.
fn growing(page: Page) -> Builder {
    on(page).growth(Growth { first_bytes: MB, cap_bytes: 4 * MB })
}

/// Every byte that has memory must lie on `page`, and as many must have it.
fn assert_all_on<T: planish_arena::Plain>(memory: &Growing<T>, page: Page, bytes: usize) {
    let achieved = memory.achieved().expect("smaps is readable");
    assert_eq!(
        (achieved.bytes_on(page), achieved.mapped_bytes - achieved.absent_bytes),
        (bytes, bytes),
        "{achieved:?}"
    );
    assert!(achieved.is_as_requested() && achieved.why_not.is_empty(), "{achieved:?}");
    if let Some(nodes) = achieved.node_bytes {
        assert_eq!(nodes.values().sum::<usize>(), bytes);
    }
}

#[test]
fn what_fell_apart_is_collapsed_onto_huge_pages_again() {
    let test = "growing::what_fell_apart_is_collapsed_onto_huge_pages_again";
    let mut memory = match growing(Page::Thp).growing::<u8>(8 * MB) {
        Ok(memory) => memory,
        Err(error) => return skip(test, error),
    };
    if let Err(error) = memory.resize(8 * MB) {
        return skip(test, error);
    }
    memory.fill(9);
    fall_apart(&mut memory);
    let apart = memory.achieved().unwrap();
    assert!(apart.bytes_on(Page::Thp) < apart.mapped_bytes, "{apart:?}");
    let collapsed = memory.collapse().unwrap();
    match collapsed.why_not.iter().find(|why| why.starts_with("not collapsed")) {
        Some(why) => skip(test, why),
        None => assert_all_on(&memory, Page::Thp, 8 * MB),
    }
    assert!(memory.iter().all(|byte| *byte == 9), "what it held was copied");
}

#[test]
fn what_grows_stays_where_it_is() {
    let test = "what_grows_stays_where_it_is";
    'pages: for page in [Page::Base, Page::Thp] {
        let mut memory = match growing(page).growing::<u64>(8 * MB) {
            Ok(memory) => memory,
            Err(error @ (ArenaError::NoSuchPage { .. } | ArenaError::NotBacked { .. })) => {
                skip(test, error);
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let start = memory.as_mut_ptr();
        let whole = |bytes: usize| bytes.next_multiple_of(page.bytes());
        assert_all_on(&memory, page, whole(MB));
        for item in 0..3 * MB as u64 {
            match memory.push(item) {
                Ok(()) => {}
                // Free memory is in pieces, and the first of ours took the last that was whole.
                Err(error @ ArenaError::NotBacked { .. }) => {
                    assert_eq!((memory.len() as u64, page), (item, Page::Thp), "nothing has changed");
                    skip(test, error);
                    continue 'pages;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!((memory.as_mut_ptr(), memory.len()), (start, 3 * MB));
        assert!(memory.iter().enumerate().all(|(index, item)| *item == index as u64));
        // 24 MB of items; the last piece is 4 MB, of which less than all is used.
        let had = memory.achieved().unwrap().mapped_bytes;
        assert!((24 * MB..28 * MB).contains(&had), "{had}");
        assert_all_on(&memory, page, had);
    }
}

#[test]
fn what_was_truncated_is_zero_again_and_its_pages_go_when_asked_for() {
    let mut memory = growing(Page::Base).growing::<u32>(8 * MB).unwrap();
    memory.resize(4 * MB).unwrap();
    memory.fill(7);
    memory.truncate(MB / 4 + 1);
    let had = memory.achieved().unwrap().mapped_bytes;
    assert!(had >= 16 * MB, "the memory stays for others: {had}");
    memory.resize(MB).unwrap();
    let (kept, new) = memory.split_at(MB / 4 + 1);
    assert!(kept.iter().all(|item| *item == 7) && new.iter().all(|item| *item == 0));
    memory.truncate(MB / 4 + 1);
    let left = MB + Page::Base.bytes();
    assert_eq!(memory.trim(), had - left, "the item on the next page keeps it");
    assert_all_on(&memory, Page::Base, left);
    assert_eq!(memory.achieved().unwrap().absent_bytes, had - left);
    memory.resize(8 * MB).unwrap();
    assert_eq!(memory.iter().filter(|item| **item == 7).count(), MB / 4 + 1);
    memory.resize(0).unwrap();
    assert_eq!(memory.trim(), 32 * MB);
    assert_eq!(memory.achieved().unwrap().bytes_on(Page::Base), 0);
}

/// More than any machine has: what is promised is addresses.
#[test]
fn addresses_without_memory_cost_nothing() {
    let mut memory = on(Page::Base).capacity(MB).growing::<u8>(1 << 44).unwrap();
    assert_all_on(&memory, Page::Base, MB);
    assert_eq!(memory.most(), 1 << 44);
    let before = memory.as_mut_ptr();
    for wanted in [1 << 43, 1 << 44] {
        assert!(matches!(memory.resize(wanted), Err(ArenaError::Memory { .. })));
        // It would take minutes to ask for the node of each such page, too.
        let achieved = memory.achieved().unwrap();
        assert_eq!((achieved.mapped_bytes, achieved.absent_bytes), (MB, 0), "what was refused is not had");
    }
    assert_eq!((memory.len(), memory.as_mut_ptr()), (0, before), "nothing has changed");
    memory.extend_from_slice(&[1, 2, 3]).unwrap();
    assert_eq!(*memory, [1, 2, 3]);
}

#[test]
fn more_than_was_reserved_is_refused_and_changes_nothing() {
    let mut memory = growing(Page::Base).growing::<u16>(3).unwrap();
    memory.extend_from_slice(&[1, 2]).unwrap();
    let error = memory.extend_from_slice(&[3, 4]).unwrap_err();
    assert_eq!(error.to_string(), "8 bytes wanted, 6 are the most that was reserved");
    assert!(error.cure().contains("reserve more"), "{}", error.cure());
    assert_eq!(*memory, [1, 2]);
    memory.push(3).unwrap();
    assert!(matches!(memory.push(4), Err(ArenaError::Full { wanted_bytes: 8, most_bytes: 6 })));
    assert!(matches!(memory.resize(usize::MAX), Err(ArenaError::Full { .. })));
    assert_eq!(*memory, [1, 2, 3]);
    for most in [usize::MAX, usize::MAX / 2] {
        assert!(matches!(growing(Page::Base).growing::<u16>(most), Err(ArenaError::TooLarge { .. })));
    }
}

#[test]
fn a_pool_gives_page_by_page_and_gets_back_what_is_trimmed() {
    let test = "a_pool_gives_page_by_page_and_gets_back_what_is_trimmed";
    let Some(pool) = pool::borrow(test, 2 * MB, 4) else { return };
    let free_before = pool.free();
    let page = Page::HugeTlb(2 * MB);
    let pages = free_before as usize;
    let mut memory = growing(page).growing::<u8>((pages + 1) * 2 * MB).unwrap();
    assert_eq!((pool.free(), pool.set_aside()), (free_before - 1, 0), "nothing is taken before it is needed");
    memory.resize(2 * MB).unwrap();
    memory.fill(7);
    let short = memory.resize((pages + 1) * 2 * MB).unwrap_err();
    assert!(matches!(short, ArenaError::PoolShort { .. }), "{short}");
    assert_eq!((pool.free(), memory.len()), (free_before - 1, 2 * MB), "nothing has changed");
    assert_eq!(memory.achieved().unwrap().mapped_bytes, 2 * MB, "nor what is told of it");
    memory.resize((pages - 1) * 2 * MB).unwrap();
    memory.resize(pages * 2 * MB).unwrap();
    assert_eq!(pool.free(), 0, "every page of the pool can be had, though the next piece would be larger");
    assert_eq!(memory.achieved().unwrap().mapped_bytes, pages * 2 * MB, "the larger piece is not counted");
    assert_all_on(&memory, page, pages * 2 * MB);
    assert!(memory[..2 * MB].iter().all(|byte| *byte == 7) && memory[2 * MB..].iter().all(|byte| *byte == 0));
    memory.truncate(1);
    assert_eq!((memory.trim(), pool.free()), ((pages - 1) * 2 * MB, free_before - 1));
    drop(memory);
    assert_eq!(pool.free(), free_before);
}

#[derive(Debug, Clone)]
enum Change {
    Push(u32),
    Extend(Vec<u32>),
    Resize(usize),
    Truncate(usize),
    Trim,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<u32>().prop_map(Change::Push),
        prop::collection::vec(any::<u32>(), 0..3000).prop_map(Change::Extend),
        (0..6000usize).prop_map(Change::Resize),
        (0..6000usize).prop_map(Change::Truncate),
        Just(Change::Trim),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A vector is the model; beyond the most nothing changes.
    #[test]
    fn it_holds_what_a_vector_holds(changes in prop::collection::vec(change(), 1..30)) {
        const MOST: usize = 5000;
        let growth = Growth { first_bytes: 1, cap_bytes: 8192 };
        let mut memory = on(Page::Base).growth(growth).growing::<u32>(MOST).unwrap();
        let mut model: Vec<u32> = Vec::new();
        for change in changes {
            let mut wanted = model.clone();
            let outcome = match change {
                Change::Push(item) => {
                    wanted.push(item);
                    memory.push(item)
                }
                Change::Extend(items) => {
                    wanted.extend_from_slice(&items);
                    memory.extend_from_slice(&items)
                }
                Change::Resize(count) => {
                    wanted.resize(count, 0);
                    memory.resize(count)
                }
                Change::Truncate(count) => {
                    wanted.truncate(count);
                    memory.truncate(count);
                    Ok(())
                }
                Change::Trim => {
                    memory.trim();
                    Ok(())
                }
            };
            prop_assert_eq!(outcome.is_ok(), wanted.len() <= MOST);
            if outcome.is_ok() {
                model = wanted;
            }
            prop_assert_eq!(&*memory, &*model);
        }
    }
}
