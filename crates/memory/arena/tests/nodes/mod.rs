//! Arenas on nodes: what was named, what there is, and what the kernel says was had.

use planish_arena::{Arena, ArenaError, Fallback, NodeChoice, NodeSet, Page, PerNode};
use planish_skip::skip;

use super::{MB, on};

/// No machine has so many.
const NO_NODE: u32 = 1000;

fn preferring(node: u32, fallback: Fallback) -> planish_arena::Builder {
    on(Page::Base).fallback(fallback).node(NodeChoice::prefer(node)).capacity(4 * MB)
}

/// Whether this kernel has nodes and lets them be chosen, or a word why not.
fn places(test: &str) -> bool {
    let outcome = on(Page::Base).node(NodeChoice::only(0)).capacity(MB).build();
    outcome.map_err(|error| skip(test, error)).is_ok()
}

#[test]
fn a_node_that_is_preferred_is_had_where_it_can_be() {
    let test = "a_node_that_is_preferred_is_had_where_it_can_be";
    if !places(test) {
        return;
    }
    for fallback in [Fallback::Allow, Fallback::Refuse] {
        let achieved = preferring(0, fallback).build().unwrap().achieved().unwrap();
        assert_eq!((achieved.elsewhere_bytes, achieved.why_not.len()), (Some(0), 0), "{achieved:?}");
        assert!(achieved.node_bytes.is_some_and(|nodes| nodes.into_iter().eq([(0, 4 * MB)])));
    }
}

#[test]
fn a_node_that_does_not_exist_is_named_and_passed_over_where_it_is_only_preferred() {
    let test = "a_node_that_does_not_exist_is_named_and_passed_over_where_it_is_only_preferred";
    if !places(test) {
        return;
    }
    let nodes: NodeSet = [0, NO_NODE].into_iter().collect();
    let bound = [NodeChoice::only(NO_NODE), NodeChoice::Bind(nodes.clone()), NodeChoice::Interleave(nodes)];
    for choice in bound {
        for fallback in [Fallback::Allow, Fallback::Refuse] {
            let error =
                on(Page::Base).fallback(fallback).node(choice.clone()).capacity(MB).build().unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with("node 1000 does not exist or has no memory; there are: 0"), "{text}");
            assert!(error.cure().contains("planish topo"), "{}", error.cure());
        }
    }
    let error = preferring(NO_NODE, Fallback::Refuse).build().unwrap_err();
    assert!(matches!(error, ArenaError::NoSuchNode { .. }), "{error}");
    let achieved = preferring(NO_NODE, Fallback::Allow).build().unwrap().achieved().unwrap();
    assert_eq!((achieved.mapped_bytes, achieved.elsewhere_bytes), (4 * MB, Some(4 * MB)));
    assert!(achieved.why_not[0].starts_with("node 1000 does not exist"), "{achieved:?}");
    assert_eq!(achieved.why_not[1], "4194304 bytes lie on other nodes than 1000");
    assert_eq!(achieved.why_not.len(), 2, "{achieved:?}");
}

#[test]
fn memory_that_grows_says_the_same_of_its_nodes() {
    let test = "memory_that_grows_says_the_same_of_its_nodes";
    if !places(test) {
        return;
    }
    let growing = |node, fallback| preferring(node, fallback).growing::<u8>(8 * MB);
    let placed = growing(0, Fallback::Refuse).unwrap().achieved().unwrap();
    assert_eq!((placed.elsewhere_bytes, placed.why_not.len()), (Some(0), 0), "{placed:?}");
    assert!(matches!(growing(NO_NODE, Fallback::Refuse), Err(ArenaError::NoSuchNode { .. })));
    let elsewhere = growing(NO_NODE, Fallback::Allow).unwrap().achieved().unwrap();
    assert_eq!(elsewhere.elsewhere_bytes, Some(4 * MB));
    assert!(elsewhere.why_not[0].starts_with("node 1000 does not exist"), "{elsewhere:?}");
}

#[test]
fn where_no_node_is_named_none_is_missed() {
    for choice in [NodeChoice::Inherit, NodeChoice::Local] {
        match on(Page::Base).node(choice).capacity(MB).build() {
            Ok(arena) => assert_eq!(arena.achieved().unwrap().elsewhere_bytes, None),
            Err(error) => skip("where_no_node_is_named_none_is_missed", error),
        }
    }
}

fn per_node(fallback: Fallback) -> Result<PerNode, ArenaError> {
    on(Page::Base).fallback(fallback).capacity(2 * MB).per_node()
}

#[test]
fn each_node_has_an_arena_with_memory_of_its_own() {
    let test = "each_node_has_an_arena_with_memory_of_its_own";
    if !places(test) {
        return;
    }
    let nodes = planish_sys::policy::allowed_nodes().unwrap();
    for fallback in [Fallback::Allow, Fallback::Refuse] {
        let arenas = per_node(fallback).unwrap();
        for (node, arena) in arenas.iter() {
            assert!(nodes.contains(node), "{node}");
            assert!(std::ptr::eq(arena, arenas.on(node).unwrap()));
            let achieved = arena.achieved().unwrap();
            assert_eq!((achieved.mapped_bytes, achieved.elsewhere_bytes), (2 * MB, Some(0)), "{achieved:?}");
        }
        assert!(arenas.on(NO_NODE).is_none());
        let here = arenas.here();
        assert!(arenas.iter().any(|(_, arena)| std::ptr::eq(arena, here)));
        if let [(_, only)] = arenas.iter().collect::<Vec<_>>()[..] {
            assert!(std::ptr::eq(only, here), "one node has every thread");
        }
        let all: Vec<(u32, Arena)> = arenas.into_arenas();
        assert!(all.is_sorted_by_key(|(node, _)| *node) && !all.is_empty());
    }
}

#[test]
fn an_arena_that_cannot_be_had_names_its_node() {
    let error = on(Page::Base).capacity(1 << 46).per_node().unwrap_err();
    let ArenaError::OnNode { node, source } = &error else { panic!("{error}") };
    assert!(matches!(**source, ArenaError::Memory { .. }), "{source}");
    assert_eq!((error.to_string(), error.cure()), (format!("no arena on node {node}"), source.cure()));
}
