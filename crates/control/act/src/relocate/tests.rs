//! Moves of a model: there and back, and everything that may happen in between.

use std::iter;
use std::time::Duration;

use planish_residency::Kind;
use planish_sys::{CpuSet, Errno, NodeSet};
use proptest::prelude::*;

use super::fake::{BASE, CHUNK, Fake, Page, areas, page};
use super::*;

const START: u64 = 0x1000_0000;

fn pages(nodes: &[u32]) -> Vec<(u64, Page)> {
    (0..).map(|n| START + n * BASE).zip(nodes.iter().map(|node| page(*node))).collect()
}

fn to(targets: &[u32]) -> Wish {
    Wish { targets: targets.to_vec(), kinds: vec![Kind::Anon, Kind::Heap], ..Wish::default() }
}

fn never() -> Pace<'static> {
    Pace { bytes_per_second: None, stop: &|| false }
}

fn surveyed(fake: &Fake, wish: &Wish) -> (Survey, Pages) {
    let process = fake.open(77).expect("seen").expect("it lives");
    let found = survey(fake, &*process, wish).expect("seen");
    let pages = found.pages(wish, fake);
    // As an undo gets it.
    let bytes = Record::Pages(fake.me(), pages.clone()).encode().expect("short");
    assert_eq!(Record::decode(&bytes), Ok(Record::Pages(fake.me(), pages.clone())));
    (found, pages)
}

fn carried(fake: &Fake, identity: &Identity, pages: &Pages) -> Carried {
    let process = fake.open(77).expect("seen").expect("it lives");
    let load = Load { process: &*process, identity, pages };
    carry(fake, &load, &to(&pages.targets), &never())
}

fn back(fake: &Fake, identity: &Identity, pages: &Pages, force: bool) -> Back {
    let process = fake.open(77).expect("seen").expect("it lives");
    take_back(fake, &Load { process: &*process, identity, pages }, force, &never())
}

#[test]
fn memory_goes_and_comes_back() {
    let fake = Fake::new(pages(&[0, 0, 1, 0, 2]));
    let (start, wish) = (fake.nodes(), to(&[1]));
    let (found, pages) = surveyed(&fake, &wish);
    assert_eq!((found.bytes(), found.on[&0], found.on[&1]), (4 * BASE, 3 * BASE, BASE));
    let carried = carried(&fake, &fake.me(), &pages);
    assert_eq!((carried.moved, carried.untried, carried.end), (4 * BASE, 0, End::Whole));
    assert!(fake.nodes().values().all(|node| *node == 1));
    assert_eq!(surveyed(&fake, &wish).0.bytes(), 0, "a second time there is nothing to move");
    let back = back(&fake, &fake.me(), &pages, false);
    assert_eq!((back.back, back.left_bytes(), back.theirs), (4 * BASE, 0, 0));
    assert_eq!(fake.nodes(), start);
}

#[test]
fn several_nodes_get_equal_shares_and_huge_pages_stay_whole() {
    let huge = |(address, page)| (address, Page { huge: true, ..page });
    let fake = Fake::new(pages(&[0; 64]).into_iter().map(huge));
    let (_, pages) = surveyed(&fake, &to(&[1, 2]));
    assert_eq!(carried(&fake, &fake.me(), &pages).moved, 64 * BASE);
    for (address, node) in fake.nodes() {
        assert_eq!(node, target(address, &[1, 2], CHUNK));
    }
    assert_eq!(fake.nodes().values().filter(|node| **node == 1).count(), 32);
    assert_eq!(fake.moves.get(), 1, "one address a huge page, all in one batch");
}

#[test]
fn only_what_lies_on_the_named_nodes_goes() {
    let fake = Fake::new(pages(&[0, 2, 3]));
    let from: NodeSet = [2].into_iter().collect();
    let (found, _) = surveyed(&fake, &Wish { from: Some(from), ..to(&[1]) });
    assert_eq!(found.extents, [Extent { start: START + BASE, pages: 1, node: 2 }]);
}

/// Only these addresses.
fn within(ranges: impl IntoIterator<Item = Range<u64>>) -> Wish {
    Wish { ranges: Some(ranges.into_iter().collect()), ..to(&[1]) }
}

#[test]
fn only_pages_of_the_named_addresses_go_and_come_back() {
    let fake = Fake::new(pages(&[0; 10]));
    let start = fake.nodes();
    let named = [START + 2 * BASE..START + 4 * BASE, START + 7 * BASE..START + 8 * BASE];
    let (found, pages) = surveyed(&fake, &within(named.clone()));
    assert_eq!((found.bytes(), found.beyond, found.on[&0]), (3 * BASE, 0, 3 * BASE), "the rest is not told");
    let moved = carried(&fake, &fake.me(), &pages);
    assert_eq!((moved.moved, moved.untried, moved.end), (3 * BASE, 0, End::Whole));
    assert_eq!(fake.nodes().into_values().collect::<Vec<_>>(), [0, 0, 1, 1, 0, 0, 0, 1, 0, 0]);
    // A page beside them that came to that node by itself stays there, by force too.
    fake.pages.borrow_mut().insert(START, page(1));
    let back = back(&fake, &fake.me(), &pages, true);
    assert_eq!((back.back, back.left_bytes()), (3 * BASE, 0));
    fake.pages.borrow_mut().insert(START, page(0));
    assert_eq!(fake.nodes(), start);
    assert_eq!(surveyed(&fake, &within([])).0.on.len(), 0, "a process that has none of it");
}

#[test]
fn a_huge_page_at_the_end_of_a_range_goes_as_a_whole_and_is_told() {
    let huge = |(address, page)| (address, Page { huge: true, ..page });
    let fake = Fake::new(pages(&[0; 32]).into_iter().map(huge));
    let start = fake.nodes();
    // Of the four huge pages a piece of the second, twice, and of the third.
    let named =
        [START + CHUNK + BASE..START + CHUNK + 2 * BASE, START + CHUNK + 6 * BASE..START + 2 * CHUNK + BASE];
    let (found, pages) = surveyed(&fake, &within(named.clone()));
    assert_eq!((found.bytes(), found.beyond), (2 * CHUNK, 2 * CHUNK - 4 * BASE));
    assert_eq!(carried(&fake, &fake.me(), &pages).moved, 2 * CHUNK);
    let there = fake.nodes().into_iter().filter(|(_, node)| *node == 1).map(|(address, _)| address);
    assert_eq!(
        there.collect::<Vec<_>>(),
        (START + CHUNK..START + 3 * CHUNK).step_by(4096).collect::<Vec<_>>()
    );
    assert_eq!(back(&fake, &fake.me(), &pages, false).back, 2 * CHUNK);
    assert_eq!(fake.nodes(), start);
}

/// Variables that begin as zeroes lie behind their file and are anonymous; those with a value are the file's.
#[test]
fn variables_go_by_their_address_as_they_go_with_all() {
    let text = "10000000-10001000 r-xp 00000000 fe:00 7 /usr/lib/a.so\n\
                10001000-10002000 rw-p 00001000 fe:00 7 /usr/lib/a.so\n\
                10002000-10003000 rw-p 00000000 00:00 0 \n";
    let fake = Fake::new(pages(&[0, 0, 0]));
    let mapped = |area| Mapped { area, policy: Some("default".to_owned()), is_locked: false, is_pool: false };
    fake.areas.replace(areas(text).into_iter().map(mapped).collect());
    let (whole, _) = surveyed(&fake, &to(&[1]));
    assert_eq!(whole.extents, [Extent { start: START + 2 * BASE, pages: 1, node: 0 }]);
    let kinds = vec![Kind::Heap, Kind::Anon, Kind::Stack, Kind::Data, Kind::Text, Kind::Shared, Kind::File];
    let (part, _) = surveyed(&fake, &Wish { kinds, ..within(iter::once(START..START + 3 * BASE)) });
    assert_eq!((part.extents, part.stays.into_values().sum::<u64>()), (whole.extents, 2 * BASE));
}

/// The page tables have no word for it, and it may be split before the undo: its other pages are recorded too.
#[test]
fn a_large_page_at_the_end_of_a_range_comes_back_in_pieces() {
    let large = |(address, page)| (address, Page { large: true, ..page });
    let fake = Fake::new(pages(&[0; 20]).into_iter().map(large));
    let start = fake.nodes();
    // Of the second large page the middle, and of the third and the fourth the pages where they meet.
    let named = [START + 5 * BASE..START + 7 * BASE, START + 9 * BASE..START + 13 * BASE];
    let (found, pages) = surveyed(&fake, &within(named));
    assert_eq!((found.bytes(), found.beyond, found.may_take_more), (12 * BASE, 6 * BASE, false));
    assert_eq!(carried(&fake, &fake.me(), &pages).moved, 12 * BASE);
    let nodes = [[0; 4], [1; 4], [1; 4], [1; 4], [0; 4]].concat();
    assert_eq!(fake.nodes().into_values().collect::<Vec<_>>(), nodes);
    fake.pages.borrow_mut().values_mut().for_each(|page| page.large = false);
    assert_eq!(back(&fake, &fake.me(), &pages, false).back, 12 * BASE);
    assert_eq!(fake.nodes(), start);
    // Where nobody tells them, that is said; and not where there is nothing that could be of the same.
    fake.tells_large.set(false);
    let untold = |range| {
        let (found, _) = surveyed(&fake, &within(iter::once(range)));
        (found.bytes() / BASE, found.may_take_more)
    };
    assert_eq!(untold(START + 5 * BASE..START + CHUNK), (3, true));
    assert_eq!(untold(START..START + 5 * BASE), (5, true));
    assert_eq!(untold(START..START + CHUNK), (8, false));
    assert_eq!(untold(START + CHUNK..START + 20 * BASE), (12, false));
}

#[test]
fn swap_and_reasons_are_those_of_the_named_addresses() {
    let fake = Fake::new([
        (START, Page { swapped: true, ..page(0) }),
        (START + BASE, Page { swapped: true, ..page(0) }),
        (START + 2 * BASE, Page { hidden: true, ..page(0) }),
        (START + 3 * BASE, Page { hidden: true, ..page(0) }),
    ]);
    let (found, _) = surveyed(&fake, &within(iter::once(START + BASE..START + 3 * BASE)));
    assert_eq!(found.stays.values().copied().collect::<Vec<_>>(), [BASE, BASE], "{:?}", found.stays);
}

#[test]
fn what_stays_is_told_with_its_reason() {
    let stuck = |errno| Page { stuck: Some(errno), ..page(0) };
    let fake = Fake::new([
        (START, page(0)),
        (START + BASE, stuck(Errno::BUSY)),
        (START + 2 * BASE, stuck(Errno::ACCESS)),
        (START + 3 * BASE, Page { hidden: true, ..page(0) }),
        (START + 4 * BASE, Page { swapped: true, ..page(0) }),
    ]);
    let (found, pages) = surveyed(&fake, &to(&[1]));
    assert_eq!(found.bytes(), 3 * BASE);
    let reasons: Vec<&str> = found.stays.keys().map(String::as_str).collect();
    assert!(reasons.len() == 2 && reasons[0].starts_with("in swap"), "{reasons:?}");
    assert!(reasons[1].starts_with("not seen"), "hidden is not gone: {reasons:?}");
    let carried = carried(&fake, &fake.me(), &pages);
    assert_eq!(carried.moved, BASE);
    let reasons: Vec<&str> = carried.stayed.keys().map(String::as_str).collect();
    assert!(reasons[0].starts_with("in use") && reasons[1].starts_with("shared"), "{reasons:?}");
}

/// A page that is marked for write protection looks swapped to the page tables, on a machine without swap as well.
#[test]
fn a_mark_without_memory_is_not_called_swap() {
    let swapped = || Page { swapped: true, ..page(0) };
    let fake = Fake::new([(START, page(1)), (START + BASE, swapped()), (START + 2 * BASE, swapped())]);
    for (swap, in_swap, marked) in [(None, 2, 0), (Some(1 << 30), 2, 0), (Some(BASE), 1, 1), (Some(0), 0, 2)]
    {
        fake.swap.set(swap);
        let (found, _) = surveyed(&fake, &to(&[1]));
        let told = |begin: &str| -> u64 {
            found.stays.iter().filter(|(reason, _)| reason.starts_with(begin)).map(|(_, bytes)| bytes).sum()
        };
        assert_eq!((told("in swap"), told("marked")), (in_swap * BASE, marked * BASE), "{swap:?}");
    }
}

#[test]
fn a_pinned_page_keeps_no_other_one() {
    let mut some = pages(&[0; 6]);
    for pinned in [0, 2, 5] {
        some[pinned].1.stuck = Some(Errno::AGAIN);
    }
    let fake = Fake::new(some);
    let (_, pages) = surveyed(&fake, &to(&[1]));
    let carried = carried(&fake, &fake.me(), &pages);
    assert_eq!(fake.nodes().into_values().collect::<Vec<_>>(), [0, 1, 0, 1, 1, 0]);
    assert_eq!((carried.moved, carried.end), (3 * BASE, End::Whole));
    let pinned = "in use by the kernel or a device: pinned, or under input or output";
    assert_eq!(carried.stayed, [(pinned.to_owned(), 3 * BASE)].into());
    assert_eq!(back(&fake, &fake.me(), &pages, false).back, 3 * BASE);
}

#[test]
fn policies_locks_pools_and_files_stay_unless_asked() {
    let text = "10000000-10001000 rw-p 00000000 00:00 0 \n10001000-10002000 rw-p 00000000 00:00 0 \n\
                10002000-10003000 rw-p 00000000 00:0f 9 /anon_hugepage (deleted)\n\
                10003000-10004000 rw-s 00000000 00:01 8 /dev/zero (deleted)\n";
    let fake = Fake::new(pages(&[0, 0, 0, 0]));
    let mut mapped: Vec<Mapped> = areas(text)
        .into_iter()
        .map(|area| Mapped {
            is_pool: area.inode == 9,
            area,
            policy: Some("default".to_owned()),
            is_locked: false,
        })
        .collect();
    mapped[0].policy = Some("interleave:0-1".to_owned());
    mapped[1].is_locked = true;
    fake.areas.replace(mapped);
    let wish = Wish { kinds: vec![Kind::Anon, Kind::Shared], ..to(&[1]) };
    let (found, _) = surveyed(&fake, &wish);
    assert_eq!((found.bytes(), found.stays.len()), (0, 4), "{:?}", found.stays);
    let asked = Wish { against_policy: true, locked: true, ..wish };
    let (found, _) = surveyed(&fake, &asked);
    assert_eq!((found.bytes(), found.stays.len()), (2 * BASE, 2), "{:?}", found.stays);
}

#[test]
fn a_node_that_fills_up_ends_it_and_nothing_is_forgotten() {
    // Two batches of 512 pages.
    let fake = Fake::new(pages(&vec![0; 1024]));
    let start = fake.nodes();
    fake.spare.set(600 * BASE);
    let (_, pages) = surveyed(&fake, &to(&[1]));
    let moved = carried(&fake, &fake.me(), &pages);
    assert_eq!((moved.moved, moved.untried), (512 * BASE, 512 * BASE));
    assert!(matches!(moved.end, End::Full { node: 1, .. }), "{:?}", moved.end);
    fake.spare.set(u64::MAX / 2);
    let back = back(&fake, &fake.me(), &pages, false);
    assert_eq!((back.back, back.already), (512 * BASE, 512 * BASE));
    assert_eq!(fake.nodes(), start);
}

#[test]
fn a_signal_ends_it_between_two_batches() {
    let fake = Fake::new(pages(&vec![0; 1024]));
    let (_, pages) = surveyed(&fake, &to(&[1]));
    let process = fake.open(77).expect("seen").expect("it lives");
    let pace = Pace { bytes_per_second: Some(1 << 40), stop: &|| fake.moves.get() > 0 };
    let load = Load { process: &*process, identity: &fake.me(), pages: &pages };
    let moved = carry(&fake, &load, &to(&[1]), &pace);
    assert_eq!((moved.moved, moved.end), (512 * BASE, End::Stopped));
}

#[test]
fn another_process_of_the_number_is_never_moved() {
    let fake = Fake::new(pages(&vec![0; 1024]));
    let (identity, wish) = (fake.me(), to(&[1]));
    let (_, pages) = surveyed(&fake, &wish);
    let stranger = Identity { start_ticks: 6, ..identity };
    fake.then.replace(Some((1, Box::new(move |fake| fake.identity.set(Some(stranger))))));
    assert_eq!(carried(&fake, &identity, &pages).end, End::Ended);
    assert_eq!(fake.moves.get(), 1);
    let back = back(&fake, &identity, &pages, true);
    assert_eq!((back.back, back.gone, fake.moves.get()), (0, 1024 * BASE, 1), "not even by force");
}

#[test]
fn a_program_that_was_executed_since_has_other_memory() {
    let fake = Fake::new(pages(&[0, 0]));
    let identity = fake.me();
    let (_, pages) = surveyed(&fake, &to(&[1]));
    carried(&fake, &identity, &pages);
    // The same layout, as without random addresses.
    fake.identity.set(Some(Identity { mark: Some(4), ..identity }));
    let back = back(&fake, &identity, &pages, true);
    assert_eq!((back.back, back.gone, back.end), (0, 2 * BASE, Some(End::Executed)));
}

#[test]
fn a_mapping_of_another_kind_at_the_old_address_is_not_ours() {
    let fake = Fake::new(pages(&[0, 0]));
    let (_, pages) = surveyed(&fake, &to(&[1]));
    carried(&fake, &fake.me(), &pages);
    for text in [
        "10000000-20000000 rw-s 00000000 00:01 8 /dev/zero (deleted)\n",
        "10000000-20000000 rw-p 00000000 00:00 0 [heap]\n",
        "30000000-30001000 rw-p 00000000 00:00 0 \n",
    ] {
        fake.areas.borrow_mut()[0].area = areas(text).remove(0);
        let back = back(&fake, &fake.me(), &pages, true);
        assert_eq!((back.back, back.gone), (0, 2 * BASE), "{text}");
    }
}

/// Two batches of pages, the mapping of the second of which changes as soon as the first one went.
fn changed_meanwhile(change: impl FnOnce(&Fake) + 'static) -> (Fake, Pages, Carried) {
    let fake = Fake::new(pages(&vec![0; 1024]));
    let (_, pages) = surveyed(&fake, &to(&[1]));
    fake.move_takes.set(Duration::from_secs(2));
    fake.then.replace(Some((1, Box::new(change))));
    let carried = carried(&fake, &fake.me(), &pages);
    assert!(fake.then.borrow().is_none(), "it changed");
    (fake, pages, carried)
}

/// The second half is of this line, and of this policy.
fn remap(fake: &Fake, line: &str, policy: &str) {
    let mut all = fake.areas.borrow_mut();
    all[0].area.range.end = START + 512 * BASE;
    let mut second = Mapped { area: areas(line).remove(0), ..all[0].clone() };
    second.policy = Some(policy.to_owned());
    all.truncate(1);
    all.push(second);
}

#[test]
fn what_the_program_maps_anew_meanwhile_stays() {
    let second = START + 512 * BASE;
    for (line, policy, word) in [
        ("10200000-10400000 rw-p 00000000 00:01 8 /var/data\n", "default", "mapped anew"),
        ("10200000-10400000 rw-s 00000000 00:01 8 /dev/zero (deleted)\n", "default", "mapped anew"),
        ("10200000-10400000 rw-p 00000000 00:0f 8 /anon_hugepage (deleted)\n", "default", "mapped anew"),
        ("10200000-10400000 rw-p 00000000 00:00 0 \n", "bind:0", "has the policy bind:0"),
    ] {
        let (fake, _, carried) = changed_meanwhile(move |fake| remap(fake, line, policy));
        assert_eq!((carried.moved, carried.untried), (512 * BASE, 0), "{line}");
        let (reason, bytes) = carried.stayed.first_key_value().expect("the second half stays");
        assert!(reason.contains(word) && *bytes == 512 * BASE, "{reason}");
        assert!(fake.nodes().range(second..).all(|(_, node)| *node == 0), "{line}");
    }
    // Locked since.
    let (_, _, carried) = changed_meanwhile(|fake| fake.areas.borrow_mut()[0].is_locked = true);
    assert_eq!((carried.moved, carried.stayed.values().sum()), (512 * BASE, 512 * BASE));
    // Memory that the program gives a name is still the same.
    let (_, _, carried) =
        changed_meanwhile(|fake| fake.areas.borrow_mut()[0].area.name = "[anon:a]".to_owned());
    assert_eq!(carried.moved, 1024 * BASE);
}

#[test]
fn what_somebody_moves_meanwhile_is_left_to_him() {
    let third = START + 600 * BASE;
    let (fake, _, carried) =
        changed_meanwhile(move |fake| fake.pages.borrow_mut().get_mut(&third).expect("there").node = 3);
    assert_eq!((carried.moved, fake.nodes()[&third]), (1023 * BASE, 3));
}

#[test]
fn what_the_program_maps_anew_during_an_undo_is_not_ours() {
    let fake = Fake::new(pages(&vec![0; 1024]));
    let (_, pages) = surveyed(&fake, &to(&[1]));
    carried(&fake, &fake.me(), &pages);
    fake.move_takes.set(Duration::from_secs(2));
    let line = "10200000-10400000 rw-p 00000000 00:01 8 /var/data\n";
    let change = move |fake: &Fake| remap(fake, line, "default");
    fake.then.replace(Some((fake.moves.get() + 1, Box::new(change))));
    let back = back(&fake, &fake.me(), &pages, false);
    assert_eq!((back.back, back.gone), (512 * BASE, 512 * BASE));
}

#[test]
fn a_process_that_cannot_be_told_has_not_ended() {
    let (fake, pages, moved) = changed_meanwhile(|fake| fake.unreadable.set(true));
    assert!(matches!(&moved.end, End::Refused(why) if why.contains("too many")), "{:?}", moved.end);
    let undone = back(&fake, &fake.me(), &pages, true);
    assert_eq!((undone.gone, undone.left_bytes()), (0, 1024 * BASE), "{undone:?}");
    assert!(undone.is_passing());
    fake.unreadable.set(false);
    assert_eq!(back(&fake, &fake.me(), &pages, false).back, 512 * BASE);
}

#[test]
fn a_node_that_is_full_keeps_no_other_from_getting_its_pages_back() {
    let fake = Fake::new(pages(&[0, 2, 0]));
    let (_, pages) = surveyed(&fake, &to(&[1]));
    carried(&fake, &fake.me(), &pages);
    fake.full.set(Some(0));
    let first = back(&fake, &fake.me(), &pages, true);
    assert_eq!((first.back, first.left_bytes(), first.is_passing()), (BASE, 2 * BASE, true), "{first:?}");
    fake.full.set(None);
    assert_eq!(back(&fake, &fake.me(), &pages, false).back, 2 * BASE);
}

#[test]
fn memory_that_was_dealt_out_by_page_goes_in_whole_batches() {
    let nodes: Vec<u32> = (0..1024).map(|page| page % 2).collect();
    let fake = Fake::new(pages(&nodes));
    let (_, pages) = surveyed(&fake, &to(&[1]));
    assert_eq!((pages.extents.len(), carried(&fake, &fake.me(), &pages).moved), (512, 512 * BASE));
    assert_eq!(fake.moves.get(), 1);
    assert_eq!((back(&fake, &fake.me(), &pages, false).back, fake.moves.get()), (512 * BASE, 2));
}

#[test]
fn a_page_of_zeroes_is_nobodys() {
    let fake = Fake::new(pages(&[0, 0]));
    let (_, pages) = surveyed(&fake, &to(&[1]));
    carried(&fake, &fake.me(), &pages);
    fake.pages.borrow_mut().get_mut(&START).expect("there").zeroes = true;
    assert!(surveyed(&fake, &to(&[1])).0.stays.is_empty());
    let back = back(&fake, &fake.me(), &pages, false);
    assert_eq!((back.back, back.gone, back.left_bytes()), (BASE, BASE, 0));
}

#[test]
fn for_threads_alone_no_memory_is_looked_at() {
    let fake = Fake::new(pages(&[0]));
    fake.unreadable.set(true);
    let process = fake.open(77).expect("seen").expect("it lives");
    assert_eq!(survey(&fake, &*process, &Wish::default()).expect("not asked").bytes(), 0);
}

#[test]
fn a_page_that_is_hidden_at_undo_is_not_forgotten() {
    let fake = Fake::new(pages(&[0, 0, 0]));
    let (_, pages) = surveyed(&fake, &to(&[1]));
    carried(&fake, &fake.me(), &pages);
    let set = |hidden, swapped| {
        let mut all = fake.pages.borrow_mut();
        all.get_mut(&START).expect("there").hidden = hidden;
        all.get_mut(&(START + BASE)).expect("there").swapped = swapped;
    };
    set(true, true);
    let first = back(&fake, &fake.me(), &pages, false);
    assert_eq!((first.back, first.left_bytes(), first.gone), (BASE, 2 * BASE, 0), "{first:?}");
    set(false, false);
    let second = back(&fake, &fake.me(), &pages, false);
    assert_eq!((second.back, second.already, second.left_bytes()), (2 * BASE, BASE, 0));
    assert!(fake.nodes().values().all(|node| *node == 0));
}

#[test]
fn what_others_moved_since_is_theirs_unless_forced() {
    let fake = Fake::new(pages(&[0, 0]));
    let (_, pages) = surveyed(&fake, &to(&[1]));
    carried(&fake, &fake.me(), &pages);
    fake.pages.borrow_mut().get_mut(&START).expect("there").node = 3;
    let first = back(&fake, &fake.me(), &pages, false);
    assert_eq!((first.back, first.theirs, fake.nodes()[&START]), (BASE, BASE, 3));
    assert_eq!(back(&fake, &fake.me(), &pages, true).back, BASE);
    assert_eq!(fake.nodes()[&START], 0);
}

fn thread(tid: u32, cpus: &str) -> Thread {
    Thread { tid, start_ticks: u64::from(tid), cpus: cpus.parse().expect("a list") }
}

fn cpus(list: &str) -> CpuSet {
    list.parse().expect("a list")
}

#[test]
fn threads_get_their_own_cpus_back() {
    let fake = Fake::new([]);
    let start = vec![thread(77, "0-7"), thread(78, "0-3"), thread(79, "4")];
    fake.threads.replace(start.clone());
    let process = fake.open(77).expect("seen").expect("it lives");
    let record = to_pin(&*process, &cpus("4-5")).expect("it lives");
    let pinned = pin(&*process, &record);
    assert_eq!((pinned.pinned, pinned.left.len()), (3, 0));
    assert!(fake.threads.borrow().iter().all(|thread| thread.cpus == cpus("4-5")));
    // One ends, one is pinned by its owner, one is born.
    fake.threads.borrow_mut().remove(2);
    fake.threads.borrow_mut()[1].cpus = cpus("6");
    fake.threads.borrow_mut().push(thread(90, "4-5"));
    let first = release(&*process, &record, false).expect("it lives");
    assert_eq!((first.back, first.theirs, first.ended), (1, 1, 1), "{first:?}");
    assert_eq!((first.unknown, first.left.len()), (1, 0), "nobody can say what the new one would have had");
    let forced = release(&*process, &record, true).expect("it lives");
    assert_eq!((forced.back, forced.already), (1, 1));
    assert_eq!(fake.threads.borrow()[..2], start[..2]);
}

#[test]
fn a_thread_that_is_born_meanwhile_goes_back_with_the_others() {
    let fake = Fake::new([]);
    fake.threads.replace(vec![thread(77, "0-7")]);
    let process = fake.open(77).expect("seen").expect("it lives");
    let record = to_pin(&*process, &cpus("4-5")).expect("it lives");
    fake.threads.borrow_mut().push(thread(80, "0-7"));
    fake.threads.borrow_mut().push(thread(81, "0-1"));
    let pinned = pin(&*process, &record);
    assert_eq!((pinned.pinned, pinned.left.len()), (2, 1), "81 has CPUs that no record knows");
    fake.threads.borrow_mut().push(thread(82, "4-5"));
    let back = release(&*process, &record, false).expect("it lives");
    assert_eq!((back.back, back.left.len()), (3, 0));
    let now: Vec<CpuSet> = fake.threads.borrow().iter().map(|thread| thread.cpus.clone()).collect();
    assert_eq!(now, ["0-7", "0-7", "0-1", "0-7"].map(cpus));
}

#[test]
fn a_cpuset_that_takes_cpus_away_is_told_and_nothing_is_half_done() {
    let fake = Fake::new([]);
    fake.threads.replace(vec![thread(77, "0-3")]);
    fake.cpuset.replace(Some(cpus("0-3")));
    let process = fake.open(77).expect("seen").expect("it lives");
    let record = to_pin(&*process, &cpus("3-4")).expect("it lives");
    let pinned = pin(&*process, &record);
    assert_eq!(pinned.left.keys().next().map(String::as_str), Some("its cpuset leaves it CPU 3 only"));
    assert_eq!(fake.threads.borrow()[0].cpus, cpus("0-3"));
}

proptest! {
    /// Moved, touched here and there by others, and taken back: every page that nobody touched is where it was.
    #[test]
    fn there_and_back_is_the_start_for_every_page_that_was_not_touched(
        nodes in proptest::collection::vec((0u32..4, 0u8..12), 1..1500),
        targets in proptest::collection::vec(0u32..4, 1..3),
        touched in proptest::collection::vec((0usize..1500, 0u8..4), 0..20),
        stop_after in 0usize..4,
    ) {
        let made = nodes.iter().map(|(node, kind)| match kind {
            0 => Page { hidden: true, ..page(*node) },
            1 => Page { swapped: true, ..page(*node) },
            2 => Page { stuck: Some(Errno::BUSY), ..page(*node) },
            _ => page(*node),
        });
        let fake = Fake::new((0..).map(|n| START + n * BASE).zip(made).filter(|(at, _)| at / BASE % 7 != 3));
        let (identity, start) = (fake.me(), fake.nodes());
        let (_, pages) = surveyed(&fake, &to(&targets));
        let process = fake.open(77).expect("seen").expect("it lives");
        let pace = Pace { bytes_per_second: None, stop: &|| stop_after > 0 && fake.moves.get() >= stop_after };
        let load = Load { process: &*process, identity: &identity, pages: &pages };
        carry(&fake, &load, &to(&targets), &pace);
        let mut others = Vec::new();
        for (index, what) in touched {
            let address = START + index as u64 * BASE;
            let mut all = fake.pages.borrow_mut();
            let Some(page) = all.get_mut(&address) else { continue };
            others.push(address);
            match what {
                0 => page.node = 3,
                1 => page.swapped = true,
                2 => page.hidden = true,
                _ => { all.remove(&address); }
            }
        }
        let before_undo = fake.nodes();
        let undone = take_back(&fake, &load, false, &never());
        for (address, node) in fake.nodes() {
            if !others.contains(&address) {
                prop_assert_eq!(node, start[&address], "{:#x}", address);
            }
            // What is not in the record is nobody's business, wherever it lies.
            let recorded = pages.extents.iter().any(|extent| extent.range(BASE).contains(&address));
            if !recorded {
                prop_assert_eq!(node, before_undo[&address]);
            }
        }
        let told = undone.back + undone.already + undone.theirs + undone.left_bytes() + undone.gone;
        prop_assert_eq!(told, pages.bytes(), "every byte is accounted for");
    }
}
