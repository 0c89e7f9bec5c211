//! CDSort by the cases that LLVM's own tests decide (`unittests/Transforms/Utils/CodeLayoutTest.cpp`): numbers alone.

use planish_order::{Arc, Graph, Node, cdsort};

/// Weights and bytes of the functions, calls, where these stand in their callers, and the order of LLVM.
struct Case<'a> {
    name: &'a str,
    weights: &'a [u64],
    bytes: &'a [u64],
    calls: &'a [(u32, u32, u64)],
    offsets: &'a [u64],
    order: &'a [u32],
}

#[test]
fn orders_are_those_of_llvm_where_its_tests_name_one() {
    const LOOPS: &[(u32, u32, u64)] =
        &[(0, 1, 177), (1, 2, 196), (2, 3, 124), (3, 1, 124), (1, 5, 177), (2, 4, 79), (4, 1, 70)];
    const LOOP_WEIGHTS: &[u64] = &[177, 371, 196, 124, 70, 177];
    let cases = [
        Case {
            name: "the likelier successor comes first",
            weights: &[140, 40, 140],
            bytes: &[9; 3],
            calls: &[(0, 1, 40), (0, 2, 100), (1, 2, 40)],
            offsets: &[5; 3],
            order: &[0, 2, 1],
        },
        Case {
            name: "a call at the end of its function comes before a heavier one",
            weights: &[180, 80, 180],
            bytes: &[9; 3],
            calls: &[(0, 1, 80), (0, 2, 100), (1, 2, 80)],
            offsets: &[9, 5, 9],
            order: &[0, 1, 2],
        },
        Case {
            name: "a hot chain stays together",
            weights: &[22, 7, 22, 15, 46],
            bytes: &[9; 5],
            calls: &[(0, 1, 7), (1, 2, 7), (0, 3, 15), (3, 4, 15), (4, 4, 31), (4, 2, 15)],
            offsets: &[5; 6],
            order: &[0, 3, 4, 2, 1],
        },
        Case {
            name: "of two loops one is broken",
            weights: LOOP_WEIGHTS,
            bytes: &[9; 6],
            calls: LOOPS,
            offsets: &[5; 7],
            order: &[4, 0, 1, 2, 3, 5],
        },
        Case {
            name: "a larger function moves the other loop",
            weights: LOOP_WEIGHTS,
            bytes: &[18, 9, 9, 9, 9, 9],
            calls: LOOPS,
            offsets: &[5; 7],
            order: &[0, 4, 1, 2, 3, 5],
        },
    ];
    for case in cases {
        let nodes = case.weights.iter().zip(case.bytes);
        let nodes = nodes.map(|(weight, bytes)| Node { bytes: *bytes, weight: *weight }).collect();
        let arcs = case.calls.iter().zip(case.offsets);
        let arcs = arcs.map(|((from, to, weight), offset)| Arc {
            from: *from,
            to: *to,
            weight: *weight,
            offset: *offset,
        });
        let graph = Graph::new(nodes, arcs.collect()).unwrap();
        assert_eq!(cdsort(&graph), case.order, "{}", case.name);
    }
}
