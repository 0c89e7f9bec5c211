//! C3 and CDSort against LLVM's own: the same graph through `ld.lld`, which every Rust toolchain brings along.

#![expect(clippy::disallowed_methods, reason = "tests assemble and link programs of their own")]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use planish_order::{Arc, Graph, Node, c3, cdsort, cdsort_calls, ext_tsp, lay_out};
use planish_skip::skip;

/// The linker of the toolchain that built this test.
fn lld() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let host = Command::new("rustc").arg("--print=host-tuple").output().ok()?;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok().map(|text| text.trim().to_owned());
    let path = Path::new(&text(output.stdout)?)
        .join("lib/rustlib")
        .join(text(host.stdout)?)
        .join("bin/gcc-ld/ld.lld");
    path.exists().then_some(path)
}

/// A graph that looks like a program: most calls are of a few functions, and near.
fn graph(count: u32, seed: u64) -> Graph {
    let mut state = seed;
    let mut random = move |bound: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % bound
    };
    let bytes: Vec<u64> = (0..count).map(|_| 16 + random(60) * 16 * (1 + random(4))).collect();
    let mut calls: HashMap<(u32, u32), u64> = HashMap::new();
    for _ in 0..count * 3 {
        let from = random(u64::from(count)) as u32;
        let hot = random(4) == 0;
        let to =
            if hot { random(u64::from(count / 10)) as u32 } else { (from + 1 + random(40) as u32) % count };
        if from != to {
            *calls.entry((from, to)).or_default() += 1 + random(1000);
        }
    }
    let mut calls: Vec<_> = calls.into_iter().collect();
    calls.sort_unstable();
    // As lld does: a function weighs what calls it, and calls stand in the middle of their caller.
    let mut weights = vec![0; count as usize];
    calls.iter().for_each(|((_, to), weight)| weights[*to as usize] += weight);
    let nodes = bytes.iter().zip(weights).map(|(bytes, weight)| Node { bytes: *bytes, weight });
    let arc = |((from, to), weight): &((u32, u32), u64)| Arc {
        from: *from,
        to: *to,
        weight: *weight,
        offset: bytes[*from as usize].div_ceil(2),
    };
    Graph::new(nodes.collect(), calls.iter().map(arc).collect()).expect("ends are below the count")
}

/// The order in which lld lays the functions of a graph; `None`, said aloud, where it cannot be asked.
fn order_of_lld(name: &str, graph: &Graph, sort: &str) -> Option<Vec<u32>> {
    let Some(lld) = lld() else {
        skip(name, "no ld.lld in this toolchain");
        return None;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut source = String::from(".globl _start\n.section .text._start,\"ax\"\n_start: .byte 0\n");
    for (index, node) in graph.nodes().iter().enumerate() {
        let bytes = node.bytes;
        let _ = writeln!(
            source,
            ".section .text.f{index},\"ax\",@progbits\n.globl f{index}\nf{index}: .zero {bytes}, 1"
        );
    }
    let calls: String =
        graph.arcs().iter().map(|arc| format!("f{} f{} {}\n", arc.from, arc.to, arc.weight)).collect();
    std::fs::write(folder.path().join("f.s"), source).expect("the folder can be written");
    std::fs::write(folder.path().join("calls"), calls).expect("the folder can be written");
    let done = |command: &mut Command| {
        command.current_dir(folder.path()).output().is_ok_and(|output| output.status.success())
    };
    if !done(Command::new("cc").args(["-c", "f.s", "-o", "f.o"])) {
        skip(name, "no assembler");
        return None;
    }
    let sort = format!("--call-graph-profile-sort={sort}");
    let options = ["f.o", "-o", "f", "--call-graph-ordering-file=calls", &sort];
    if !done(Command::new(lld).args(options)) {
        skip(name, "this ld.lld does not know the sort");
        return None;
    }
    let linked = std::fs::read(folder.path().join("f")).expect("lld linked");
    let program = planish_profile::Program::parse("f", &linked).expect("an ELF file");
    let order: Vec<u32> = program
        .functions()
        .iter()
        .filter_map(|function| function.name.strip_prefix('f')?.parse().ok())
        .collect();
    Some(called(graph, order))
}

/// What cache-directed sort works for: near calls, by the inverse fourth root of their distance.
fn locality(graph: &Graph, order: &[u32]) -> f64 {
    let addresses = lay_out(graph, order);
    let of = |arc: &Arc| {
        let distance =
            (addresses[arc.from as usize] + arc.offset).abs_diff(addresses[arc.to as usize]).max(1);
        arc.weight as f64 / (distance as f64).sqrt().sqrt()
    };
    graph.arcs().iter().map(of).sum()
}

/// How many functions stand behind the same function as in the other order.
fn same_neighbours(left: &[u32], right: &[u32]) -> f64 {
    let after: HashMap<u32, u32> = right.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let same = left.windows(2).filter(|pair| after.get(&pair[0]) == Some(&pair[1])).count();
    same as f64 / (left.len() - 1) as f64
}

/// Only functions with a call stand in lld's order.
fn called(graph: &Graph, order: Vec<u32>) -> Vec<u32> {
    let ends: std::collections::HashSet<u32> =
        graph.arcs().iter().flat_map(|arc| [arc.from, arc.to]).collect();
    order.into_iter().filter(|index| ends.contains(index)).collect()
}

#[test]
fn c3_is_what_lld_calls_hfsort() {
    const NAME: &str = "c3_is_what_lld_calls_hfsort";
    for seed in 1..4 {
        let graph = graph(600, seed);
        let Some(theirs) = order_of_lld(NAME, &graph, "hfsort") else { return };
        let ours = called(&graph, c3(&graph));
        assert_eq!(ours.len(), theirs.len());
        let same = same_neighbours(&ours, &theirs);
        assert!(same > 0.97, "seed {seed}: {same}");
        let ratio = ext_tsp(&graph, &lay_out(&graph, &ours)) / ext_tsp(&graph, &lay_out(&graph, &theirs));
        assert!(ratio > 0.99, "seed {seed}: {ratio}");
    }
}

#[test]
fn cdsort_is_as_good_as_llvms() {
    const NAME: &str = "cdsort_is_as_good_as_llvms";
    for seed in 1..4 {
        let graph = graph(600, seed);
        let Some(theirs) = order_of_lld(NAME, &graph, "cdsort") else { return };
        let ours = called(&graph, cdsort(&graph));
        assert_eq!(ours.len(), theirs.len());
        let same = same_neighbours(&ours, &theirs);
        let ratio = locality(&graph, &ours) / locality(&graph, &theirs);
        println!("seed {seed}: {same:.3} of the neighbours are the same, locality {ratio:.4} of lld's");
        assert!(same > 0.9, "seed {seed}: {same}");
        assert!(ratio > 0.99, "seed {seed}: {ratio}");
    }
}

/// The order by calls alone is that of lld, whatever was sampled: it is given calls and no samples.
#[test]
fn cdsort_by_calls_alone_is_that_of_lld() {
    const NAME: &str = "cdsort_by_calls_alone_is_that_of_lld";
    for seed in 1..4 {
        let by_calls = graph(600, seed);
        // Most samples in functions that are seldom called.
        let node = |node: &Node| Node { weight: 1_000_000 / (1 + node.weight), ..*node };
        let nodes = by_calls.nodes().iter().map(node).collect();
        let sampled = Graph::new(nodes, by_calls.arcs().to_vec()).expect("ends are those of a graph");
        let ours = called(&sampled, cdsort_calls(&sampled));
        assert_eq!(ours, called(&by_calls, cdsort(&by_calls)));
        let Some(theirs) = order_of_lld(NAME, &sampled, "cdsort") else { return };
        let same = same_neighbours(&ours, &theirs);
        let by_samples = same_neighbours(&called(&sampled, cdsort(&sampled)), &theirs);
        println!("seed {seed}: {same:.3} of the neighbours are lld's, {by_samples:.3} by samples");
        assert_eq!(ours, theirs, "seed {seed}: {same} of the neighbours are the same");
        assert!(by_samples < 0.9, "seed {seed}: {by_samples}");
    }
}
