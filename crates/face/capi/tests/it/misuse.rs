//! What C gets wrong is an error with a reason, and changes nothing.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};

use planish::planish_result::*;
use planish::*;

const MB: usize = 1 << 20;

fn message() -> String {
    // SAFETY: the text lives until the next failure of this thread.
    unsafe { CStr::from_ptr(planish_error_message()) }.to_str().unwrap().to_owned()
}

fn options() -> planish_arena_options {
    planish_arena_options {
        page: planish_page::PLANISH_PAGE_BASE as u32,
        exact: 0,
        node_choice: 0,
        threads: 0,
        page_bytes: 0,
        nodes: null(),
        nodes_count: 0,
        capacity_bytes: 0,
        first_bytes: 0,
        cap_bytes: 0,
    }
}

fn arena_with(options: &planish_arena_options) -> Result<*mut planish_arena, planish_result> {
    // As C would leave it: not null, and nothing that may be freed.
    let mut arena = without_provenance_mut(8);
    // SAFETY: options and place are there, and so are the nodes that options name.
    match unsafe { planish_arena_new(options, &mut arena) } {
        PLANISH_OK => Ok(arena),
        error => {
            assert!(arena.is_null(), "it is set to null when it fails");
            Err(error)
        }
    }
}

#[test]
fn null_is_an_error_everywhere() {
    let arena = arena_with(&options()).unwrap();
    let (mut bytes, mut memory, mut achieved, mut bump) = (0, null_mut(), null_mut(), null_mut());
    let (mut number, mut backing) = (0, planish_backing::default());
    // SAFETY: every pointer is null or points to a variable of this function.
    unsafe {
        let results = [
            planish_arena_new(null(), null_mut()),
            planish_arena_alloc(null_mut(), 1, 0, &mut memory),
            planish_arena_alloc(arena, 1, 0, null_mut()),
            planish_arena_lease(null_mut(), 1, &mut memory),
            planish_arena_lease(arena, 1, null_mut()),
            planish_arena_give_back(null_mut(), null_mut()),
            planish_arena_reserve(null_mut(), 1),
            planish_arena_trim(null_mut(), 0, null_mut()),
            planish_arena_used_bytes(null(), &mut bytes),
            planish_arena_used_bytes(arena, null_mut()),
            planish_arena_achieved(null(), &mut achieved),
            planish_arena_achieved(arena, null_mut()),
            planish_arena_collapse(null_mut(), &mut achieved),
            planish_arena_collapse(arena, null_mut()),
            planish_achieved_backing(null(), &mut backing),
            planish_achieved_nodes(null(), null_mut(), 0, &mut bytes),
            planish_growing_new(null(), 1, null_mut()),
            planish_growing_resize(null_mut(), 1, &mut memory),
            planish_growing_trim(null_mut(), null_mut()),
            planish_growing_achieved(null(), &mut achieved),
            planish_growing_collapse(null_mut(), &mut achieved),
            planish_arena_new_per_node(null(), null_mut(), 0, null_mut()),
            planish_arena_new_per_node(null(), null_mut(), 1, &mut bytes),
            planish_bump_new(null_mut(), 0, 0, &mut bump),
            planish_bump_new(arena, 0, 0, null_mut()),
            planish_bump_alloc(null_mut(), 1, 0, &mut memory),
            planish_bump_clear(null_mut()),
            planish_bump_used_bytes(null(), &mut bytes),
            planish_numa_memory_node(0, null_mut()),
            planish_numa_nodes(null_mut(), 0, null_mut()),
            planish_numa_nodes(null_mut(), 1, &mut bytes),
            planish_numa_cpus(0, null_mut(), 0, null_mut()),
            planish_numa_distance(0, 0, null_mut()),
            planish_numa_here(null_mut(), &mut number),
            planish_numa_here(&mut number, null_mut()),
            planish_numa_node_of(null(), null_mut()),
            planish_pin_allowed(null_mut(), 0, null_mut()),
            planish_pin_current(null_mut(), 1, &mut bytes),
            planish_pin_cpus(null(), 1),
            planish_isolation_check(null(), 0, null_mut()),
        ];
        for (index, result) in results.into_iter().enumerate() {
            assert_eq!(result, PLANISH_ERROR_NULL, "number {index}: {}", message());
        }
        assert!(planish_achieved_why_not(null(), 0).is_null());
        planish_arena_free(null_mut());
        planish_achieved_free(null_mut());
        planish_growing_free(null_mut());
        planish_bump_free(null_mut());
        assert_eq!(planish_arena_give_back(arena, null_mut()), PLANISH_OK, "as free(NULL)");
        assert_eq!(planish_arena_trim(arena, 0, null_mut()), PLANISH_OK);
        planish_arena_free(arena);
    }
    assert!(memory.is_null() && achieved.is_null() && bytes == 0);
}

#[test]
fn options_that_make_no_sense_are_refused_by_name() {
    let nodes = [0u32, 1 << 21];
    let refused = |change: &dyn Fn(&mut planish_arena_options), word: &str| {
        let mut options = options();
        change(&mut options);
        assert_eq!(arena_with(&options).err(), Some(PLANISH_ERROR_INVALID), "{word}");
        assert!(message().contains(word), "{}", message());
    };
    refused(&|it| it.page = 4, "no planish_page");
    refused(&|it| it.exact = 2, "exact is 2");
    refused(&|it| it.node_choice = u32::MAX, "no planish_nodes");
    refused(&|it| it.page_bytes = 4096, "page_bytes");
    refused(&|it| it.node_choice = 2, "no nodes");
    refused(&|it| (it.nodes, it.nodes_count) = (nodes.as_ptr(), 1), "no use");
    refused(&|it| (it.node_choice, it.nodes, it.nodes_count) = (3, nodes.as_ptr(), 2), "beyond any machine");
    refused(&|it| (it.node_choice, it.nodes, it.nodes_count) = (3, nodes.as_ptr(), usize::MAX), "more than");
    for page_bytes in [0, 3 * MB] {
        refused(&|it| (it.page, it.page_bytes) = (2, page_bytes), "no power of two");
    }
    // SAFETY: one byte further than a variable that is aligned, and only looked at.
    let odd = unsafe { (&raw const nodes).cast::<u8>().add(1).cast::<u32>() };
    refused(&|it| (it.node_choice, it.nodes, it.nodes_count) = (3, odd, 1), "not aligned");
    let null_nodes = planish_arena_options { node_choice: 2, nodes_count: 1, ..options() };
    assert_eq!(arena_with(&null_nodes).err(), Some(PLANISH_ERROR_NULL));
}

#[test]
fn what_the_machine_cannot_give_is_told_with_a_cure() {
    let huge =
        planish_arena_options { page: 2, page_bytes: 1 << 46, exact: 1, capacity_bytes: MB, ..options() };
    assert_eq!(arena_with(&huge).err(), Some(PLANISH_ERROR_NO_SUCH_PAGE));
    let large = planish_arena_options { exact: 1, capacity_bytes: 1 << 46, ..options() };
    assert_eq!(arena_with(&large).err(), Some(PLANISH_ERROR_MEMORY));
    // SAFETY: the text lives until the next failure of this thread.
    let cure = unsafe { CStr::from_ptr(planish_error_cure()) }.to_str().unwrap();
    assert!(cure.starts_with("ask for less"), "{cure}");
}

#[test]
fn a_lease_is_given_back_once_and_to_its_own_arena() {
    let (one, other) = (arena_with(&options()).unwrap(), arena_with(&options()).unwrap());
    let (mut leased, mut kept, mut bytes) = (null_mut(), null_mut(), 0);
    // SAFETY: both arenas live until the end of the block; memory is written to only while it is leased.
    unsafe {
        assert_eq!(planish_arena_lease(one, 3000, &mut leased), PLANISH_OK);
        assert_eq!(planish_arena_alloc(one, 3000, 4096, &mut kept), PLANISH_OK);
        assert_eq!((leased.addr() % 64, kept.addr() % 4096), (0, 0));
        leased.cast::<u8>().write_bytes(7, 3000);
        let inside = leased.cast::<u8>().add(64).cast::<c_void>();
        for (arena, memory) in [(other, leased), (one, inside), (one, kept), (one, without_provenance_mut(8))]
        {
            assert_eq!(planish_arena_give_back(arena, memory), PLANISH_ERROR_INVALID, "{}", message());
        }
        assert_eq!(planish_arena_give_back(one, leased), PLANISH_OK);
        assert_eq!(planish_arena_give_back(one, leased), PLANISH_ERROR_INVALID);
        let mut again = null_mut();
        assert_eq!(planish_arena_lease(one, 3000, &mut again), PLANISH_OK);
        assert_eq!(again, leased, "what was given back is leased again");
        assert!(std::slice::from_raw_parts(again.cast::<u8>(), 3000).iter().all(|byte| *byte == 0));
        assert_eq!(planish_arena_give_back(one, again), PLANISH_OK);
        assert_eq!(planish_arena_used_bytes(other, &mut bytes), PLANISH_OK);
        assert_eq!(bytes, 0);
        for (bytes, align) in [(0, 0), (1, 3), (1, 48)] {
            assert_eq!(planish_arena_alloc(one, bytes, align, &mut kept), PLANISH_ERROR_INVALID);
            assert!(kept.is_null());
        }
        for bytes in [usize::MAX, isize::MAX as usize] {
            assert_eq!(planish_arena_alloc(one, bytes, 0, &mut kept), PLANISH_ERROR_TOO_LARGE);
            assert_eq!(planish_arena_lease(one, bytes, &mut kept), PLANISH_ERROR_TOO_LARGE);
        }
        assert_eq!(planish_arena_reserve(one, usize::MAX), PLANISH_ERROR_TOO_LARGE);
        planish_arena_free(one);
        planish_arena_free(other);
    }
}

#[test]
fn what_is_trimmed_is_gone_and_what_is_had_is_read_back() {
    let with = planish_arena_options { capacity_bytes: 4 * MB, exact: 1, ..options() };
    let arena = arena_with(&with).unwrap();
    let (mut leased, mut kept) = (null_mut(), null_mut());
    let (mut handed, mut achieved) = (0, null_mut());
    let mut backing = planish_backing::default();
    // SAFETY: as above.
    unsafe {
        assert_eq!(planish_arena_lease(arena, MB, &mut kept), PLANISH_OK);
        assert_eq!(planish_arena_lease(arena, 3 * MB, &mut leased), PLANISH_OK);
        assert_eq!(planish_arena_give_back(arena, leased), PLANISH_OK);
        assert_eq!(planish_arena_trim(arena, MB, &mut handed), PLANISH_OK);
        assert_eq!(handed, 2 * MB);
        assert_eq!(planish_arena_achieved(arena, &mut achieved), PLANISH_OK);
        assert_eq!(planish_achieved_backing(achieved, &mut backing), PLANISH_OK);
        let wanted = planish_backing {
            mapped_bytes: 4 * MB,
            base_bytes: 2 * MB,
            absent_bytes: 2 * MB,
            as_requested: 1,
            ..Default::default()
        };
        assert_eq!(backing, wanted);
        let (mut nodes, mut count) = ([planish_node_bytes { node: 0, bytes: 0 }; 64], 0);
        match planish_achieved_nodes(achieved, nodes.as_mut_ptr(), nodes.len(), &mut count) {
            PLANISH_OK => {
                let sum: usize = nodes[..count].iter().map(|node| node.bytes).sum();
                assert_eq!(sum, 2 * MB);
            }
            PLANISH_ERROR_FORBIDDEN => planish_skip::skip("bytes by node through C", message()),
            other => panic!("{other:?}: {}", message()),
        }
        planish_achieved_free(achieved);
        planish_arena_free(arena);
    }
}

#[test]
fn memory_grows_where_it_is_and_is_given_back() {
    let exact = planish_arena_options { first_bytes: MB, exact: 1, ..options() };
    let (mut growing, mut memory, mut again) = (null_mut(), null_mut(), null_mut());
    let (mut handed, mut achieved, mut backing) = (0, null_mut(), planish_backing::default());
    // SAFETY: the handle lives until it is freed below; memory is used as far as it was asked for.
    unsafe {
        assert_eq!(planish_growing_new(&exact, 8 * MB, &mut growing), PLANISH_OK, "{}", message());
        assert_eq!(planish_growing_resize(growing, 3, &mut memory), PLANISH_OK);
        memory.cast::<u8>().write_bytes(7, 3);
        assert_eq!(planish_growing_resize(growing, 8 * MB, &mut again), PLANISH_OK);
        assert_eq!(memory, again, "it has not moved");
        let bytes = std::slice::from_raw_parts(memory.cast::<u8>(), 8 * MB);
        assert!(bytes[..3] == [7; 3] && bytes[3..].iter().all(|byte| *byte == 0));
        assert_eq!(planish_growing_resize(growing, 8 * MB + 1, &mut again), PLANISH_ERROR_FULL);
        assert!(message().contains("8388608 are the most"), "{}", message());
        assert_eq!(planish_growing_resize(null_mut(), 1, &mut again), PLANISH_ERROR_NULL);
        assert_eq!((again, *bytes.last().unwrap()), (memory, 0), "where it is must not be lost");
        assert_eq!(planish_growing_resize(growing, MB, &mut again), PLANISH_OK);
        assert_eq!(planish_growing_trim(growing, &mut handed), PLANISH_OK);
        assert_eq!((handed, again), (7 * MB, memory));
        assert_eq!(planish_growing_achieved(growing, &mut achieved), PLANISH_OK);
        assert_eq!(planish_achieved_backing(achieved, &mut backing), PLANISH_OK);
        assert_eq!((backing.base_bytes, backing.absent_bytes, backing.as_requested), (MB, 7 * MB, 1));
        planish_achieved_free(achieved);
        assert_eq!(planish_growing_collapse(growing, &mut achieved), PLANISH_OK);
        assert!(planish_achieved_why_not(achieved, 0).is_null(), "base pages are what it wants");
        planish_achieved_free(achieved);
        planish_growing_free(growing);
        assert_eq!(planish_growing_new(null(), 0, &mut growing), PLANISH_ERROR_INVALID);
        assert_eq!(planish_growing_new(null(), usize::MAX, &mut growing), PLANISH_ERROR_TOO_LARGE);
        assert!(growing.is_null());
    }
}

#[test]
fn why_memory_is_not_as_asked_for_is_told() {
    let huge = planish_arena_options { page: 2, page_bytes: 1 << 40, capacity_bytes: MB, ..options() };
    let arena = arena_with(&huge).unwrap();
    let mut achieved = null_mut();
    // SAFETY: the arena and what it achieved live until they are freed below.
    unsafe {
        assert_eq!(planish_arena_achieved(arena, &mut achieved), PLANISH_OK);
        let why = CStr::from_ptr(planish_achieved_why_not(achieved, 0)).to_str().unwrap();
        assert!(why.contains("this kernel has no 1024 GB huge pages"), "{why}");
        assert!(planish_achieved_why_not(achieved, usize::MAX).is_null());
        planish_achieved_free(achieved);
        planish_arena_free(arena);
    }
}

fn list(ask: impl Fn(*mut u32, usize, *mut usize) -> planish_result) -> Vec<u32> {
    let mut count = 0;
    assert_eq!(ask(null_mut(), 0, &mut count), PLANISH_OK, "{}", message());
    let mut list = vec![u32::MAX; count + 1];
    let mut again = 0;
    assert_eq!(ask(list.as_mut_ptr(), list.len(), &mut again), PLANISH_OK);
    assert_eq!((again, list.pop()), (count, Some(u32::MAX)), "no more is written than there is");
    if count > 1 {
        let mut short = [u32::MAX; 2];
        assert_eq!(ask(short.as_mut_ptr(), 1, &mut again), PLANISH_OK);
        assert_eq!((again, short), (count, [list[0], u32::MAX]), "no more is written than there is room for");
    }
    list
}

#[test]
fn nodes_have_cpus_and_distances() {
    // SAFETY: `list` gives places for as many as it says.
    let nodes = list(|items, capacity, count| unsafe { planish_numa_nodes(items, capacity, count) });
    assert!(!nodes.is_empty());
    let (mut cpu, mut here, mut distance) = (0, 0, 0);
    // SAFETY: the places are variables of this function.
    assert_eq!(unsafe { planish_numa_here(&mut cpu, &mut here) }, PLANISH_OK);
    // SAFETY: as above.
    let cpus = list(|items, capacity, count| unsafe { planish_numa_cpus(here, items, capacity, count) });
    assert!(cpus.contains(&cpu), "{cpus:?} without {cpu}");
    // SAFETY: as above.
    unsafe {
        assert_eq!(planish_numa_distance(here, here, &mut distance), PLANISH_OK, "{}", message());
        assert_eq!(distance, 10);
        assert_eq!(planish_numa_distance(here, 1000, &mut distance), PLANISH_ERROR_NO_SUCH_NODE);
        assert_eq!(planish_numa_cpus(1000, null_mut(), 0, &mut 0), PLANISH_ERROR_NO_SUCH_NODE);
        let value = Box::new(7u64);
        match planish_numa_node_of((&raw const *value).cast(), &mut here) {
            PLANISH_OK => assert!(nodes.contains(&here)),
            PLANISH_ERROR_FORBIDDEN => planish_skip::skip("the node of a page through C", message()),
            other => panic!("{other:?}: {}", message()),
        }
    }
}

#[test]
fn memory_that_nobody_has_written_to_is_on_no_node() {
    let options = planish_sys::MapOptions::new(planish_sys::PageRequest::Base);
    let mapping = planish_sys::map_anonymous(1, options).unwrap();
    let address = mapping.as_ptr();
    let mut node = u32::MAX;
    // SAFETY: the place is a variable of this function; the address is only looked up.
    let mut node_of = |address: *const u8| unsafe { planish_numa_node_of(address.cast(), &mut node) };
    if node_of(address) == PLANISH_ERROR_FORBIDDEN {
        planish_skip::skip("the node of memory that was only read", message());
        return;
    }
    assert_eq!(node_of(address), PLANISH_ERROR_ABSENT, "{}", message());
    // SAFETY: the mapping is as long as a page, and zero at first.
    assert_eq!(unsafe { address.read_volatile() }, 0);
    assert_eq!(node_of(address), PLANISH_ERROR_ABSENT, "it was only read: {}", message());
    assert_eq!(node_of(without_provenance_mut(8)), PLANISH_ERROR_ABSENT, "nothing is mapped: {}", message());
    // SAFETY: as above; nobody else has it.
    unsafe { address.write_volatile(7) };
    assert_eq!(node_of(address), PLANISH_OK, "{}", message());
}

#[test]
fn a_thread_is_pinned_or_left_alone() {
    std::thread::spawn(|| {
        // SAFETY: `list` gives places for as many as it says.
        let allowed = list(|items, capacity, count| unsafe { planish_pin_allowed(items, capacity, count) });
        // SAFETY: as above.
        let current =
            || list(|items, capacity, count| unsafe { planish_pin_current(items, capacity, count) });
        let last = [*allowed.last().unwrap()];
        // SAFETY: the lists are as long as they say.
        unsafe {
            assert_eq!(planish_pin_cpus(last.as_ptr(), 1), PLANISH_OK);
            assert_eq!(current(), last);
            let beyond = [last[0], 5000];
            assert_eq!(planish_pin_cpus(beyond.as_ptr(), 2), PLANISH_ERROR_OUTSIDE);
            assert!(message().starts_with("CPU 5000 cannot be used"), "{}", message());
            assert_eq!(planish_pin_cpus(last.as_ptr(), 0), PLANISH_ERROR_INVALID);
            assert_eq!(planish_pin_cpus([u32::MAX].as_ptr(), 1), PLANISH_ERROR_INVALID);
        }
        assert_eq!(planish_pin_node(1000), PLANISH_ERROR_NO_SUCH_NODE);
        assert_eq!(current(), last, "nothing was changed");
        assert_eq!(planish_pin_clear(), PLANISH_OK);
        let isolated = planish_topo::isolated(&planish_host::Host::live()).unwrap_or_default();
        let ordinary: Vec<u32> = allowed.iter().copied().filter(|cpu| !isolated.contains(*cpu)).collect();
        assert_eq!(current(), if ordinary.is_empty() { allowed.clone() } else { ordinary });
        let (mut cpu, mut node) = (0, 0);
        // SAFETY: the places are variables of this function.
        assert_eq!(unsafe { planish_numa_here(&mut cpu, &mut node) }, PLANISH_OK);
        assert_eq!(planish_pin_node(node), PLANISH_OK);
        assert!(current().iter().all(|cpu| allowed.contains(cpu)));
    })
    .join()
    .unwrap();
}

#[test]
fn a_thread_that_may_be_moved_is_told_so() {
    let with = planish_arena_options { capacity_bytes: MB, ..options() };
    let arena = arena_with(&with).unwrap();
    // SAFETY: all zero is a value of plain numbers.
    let mut found: planish_isolation = unsafe { std::mem::zeroed() };
    // SAFETY: the arena lives until it is freed, the place is a variable of this function.
    unsafe {
        assert_eq!(planish_isolation_check(arena, 0, &mut found), PLANISH_OK, "{}", message());
        assert_eq!(found.backing.base_bytes, MB);
        assert!(found.unknown & planish_problem::PLANISH_PROBLEM_TICKS as u32 != 0, "nothing was watched");
        assert_eq!((found.ticks_per_s, found.irqs_per_s), (-1.0, -1.0));
        assert_eq!(found.problems & found.unknown, 0);
        let is_movable = found.problems & planish_problem::PLANISH_PROBLEM_NOT_PINNED as u32 != 0;
        assert_eq!(is_movable, found.cpus_count > 1);
        assert_eq!(planish_isolation_check(null(), 60_001, &mut found), PLANISH_ERROR_INVALID);
        assert_eq!(planish_isolation_check(null(), 0, &mut found), PLANISH_OK);
        assert_eq!(found.backing, planish_backing::default());
        planish_arena_free(arena);
    }
}

/// A thread's own memory of an arena; the arena goes with the last of them.
#[test]
fn a_bump_outlives_the_handle_of_its_arena() {
    let arena = arena_with(&options()).unwrap();
    let (mut bump, mut other, mut memory, mut bytes) = (null_mut(), null_mut(), null_mut(), 0);
    // SAFETY: the arguments are null or variables of this function; handles come from the library, are used by this
    // thread alone and freed once.
    unsafe {
        assert_eq!(planish_bump_new(arena, 0, 0, &mut bump), PLANISH_OK);
        assert_eq!(
            planish_bump_new(arena, 1 << 20, 1, &mut other),
            PLANISH_OK,
            "the cap is no less than the first"
        );
        let mut places = Vec::new();
        for align in [0, 1, 64, 4096] {
            assert_eq!(planish_bump_alloc(bump, 100, align, &mut memory), PLANISH_OK);
            assert!(memory.addr().is_multiple_of(align.max(1)));
            places.push(memory.cast::<u8>());
        }
        planish_arena_free(arena);
        for place in &places {
            let slice = std::slice::from_raw_parts_mut(*place, 100);
            assert!(slice.iter().all(|byte| *byte == 0));
            slice.fill(7);
        }
        assert_eq!(planish_bump_alloc(bump, 5 * MB, 0, &mut memory), PLANISH_OK, "it still grows");
        assert_eq!(planish_bump_used_bytes(bump, &mut bytes), PLANISH_OK);
        assert!(bytes >= 5 * MB + 400, "{bytes}");
        planish_bump_free(other);
        assert_eq!(planish_bump_clear(bump), PLANISH_OK);
        assert_eq!(planish_bump_used_bytes(bump, &mut bytes), PLANISH_OK);
        assert_eq!((bytes, planish_bump_alloc(bump, 100, 0, &mut memory)), (0, PLANISH_OK));
        assert!(
            std::slice::from_raw_parts(memory.cast::<u8>(), 100).iter().all(|byte| *byte == 0),
            "zeroed again"
        );
        for (bytes, align, word) in [(0, 0, "0 bytes"), (1, 3, "align is 3")] {
            assert_eq!(planish_bump_alloc(bump, bytes, align, &mut memory), PLANISH_ERROR_INVALID);
            assert!(memory.is_null() && message().contains(word), "{}", message());
        }
        assert_eq!(planish_bump_alloc(bump, usize::MAX, 0, &mut memory), PLANISH_ERROR_TOO_LARGE);
        assert_eq!(planish_bump_alloc(bump, 1 << 46, 0, &mut memory), PLANISH_ERROR_MEMORY);
        planish_bump_free(bump);
    }
}

#[test]
fn blocks_beyond_an_address_space_are_refused() {
    let arena = arena_with(&options()).unwrap();
    let mut bump = without_provenance_mut(8);
    // SAFETY: a handle of the library, freed once, and a variable of this function.
    unsafe {
        assert_eq!(planish_bump_new(arena, usize::MAX, 0, &mut bump), PLANISH_ERROR_TOO_LARGE);
        assert!(bump.is_null(), "it is set to null when it fails");
        planish_arena_free(arena);
    }
}

#[test]
fn each_node_has_an_arena_in_the_order_of_the_nodes() {
    let (mut nodes, mut count, mut made) = ([0; 64], 0, 0);
    let mut arenas = [null_mut(); 64];
    let options = planish_arena_options { capacity_bytes: MB, ..options() };
    // SAFETY: the arguments are null or variables of this function, and lists have as much room as is told.
    unsafe {
        assert_eq!(planish_numa_nodes(nodes.as_mut_ptr(), nodes.len(), &mut count), PLANISH_OK);
        assert_eq!(planish_arena_new_per_node(&options, null_mut(), 0, &mut made), PLANISH_OK);
        assert_eq!(made, count, "asked for the number, none is made");
        let result = planish_arena_new_per_node(&options, arenas.as_mut_ptr(), arenas.len(), &mut made);
        assert_eq!((result, made), (PLANISH_OK, count), "{}", message());
        for (arena, node) in arenas[..made].iter().zip(nodes) {
            let (mut memory, mut on) = (null_mut(), 0);
            assert_eq!(planish_arena_alloc(*arena, 1, 0, &mut memory), PLANISH_OK);
            match planish_numa_node_of(memory, &mut on) {
                PLANISH_OK => assert_eq!(on, node),
                error => planish_skip::skip(
                    "each_node_has_an_arena_in_the_order_of_the_nodes",
                    format!("{error:?}"),
                ),
            }
            let mut nearest = u32::MAX;
            assert_eq!(planish_numa_memory_node(node, &mut nearest), PLANISH_OK);
            assert_eq!(nearest, node, "a node with memory is its own");
            planish_arena_free(*arena);
        }
        assert_eq!(planish_numa_memory_node(1000, &mut 0), PLANISH_ERROR_NO_SUCH_NODE);
        let bound = planish_arena_options { node_choice: 1, ..options };
        assert_eq!(
            planish_arena_new_per_node(&bound, arenas.as_mut_ptr(), arenas.len(), &mut made),
            PLANISH_ERROR_INVALID
        );
        assert!(message().contains("a node of its own"), "{}", message());
    }
}

#[test]
fn nodes_that_do_not_exist_are_an_error_or_passed_over() {
    let nodes = [1000u32];
    let on = |choice| planish_arena_options {
        node_choice: choice,
        nodes: nodes.as_ptr(),
        nodes_count: 1,
        capacity_bytes: MB,
        ..options()
    };
    let bound = arena_with(&on(planish_nodes::PLANISH_NODES_BIND as u32)).err();
    if bound == Some(PLANISH_ERROR_PLACEMENT) {
        return planish_skip::skip("nodes_that_do_not_exist_are_an_error_or_passed_over", message());
    }
    assert_eq!(bound, Some(PLANISH_ERROR_NO_SUCH_NODE));
    assert!(message().starts_with("node 1000 does not exist"), "{}", message());
    let preferred = arena_with(&on(planish_nodes::PLANISH_NODES_PREFER as u32)).unwrap();
    let mut achieved = null_mut();
    // SAFETY: handles of the library, each freed once; the text belongs to the second.
    unsafe {
        assert_eq!(planish_arena_achieved(preferred, &mut achieved), PLANISH_OK);
        let why = CStr::from_ptr(planish_achieved_why_not(achieved, 0)).to_str().unwrap();
        assert!(why.starts_with("node 1000 does not exist"), "{why}");
        planish_achieved_free(achieved);
        planish_arena_free(preferred);
    }
}
