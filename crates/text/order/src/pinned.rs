//! Orders that builds are pinned to: without the program at hand, because it is about to be linked.

use std::collections::HashSet;

use planish_profile::{CallProfile, names};

use crate::cdsort;
use crate::graph::{Arc, Graph, Node};

/// Size of a function whose profile was taken without its program: about the median of compiled code.
const BYTES_UNKNOWN: u64 = 128;

/// Why a text is no order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoOrder {
    /// It holds nothing that could be one.
    #[error("it names no function as linkers know them")]
    Empty,
    /// A line that is no symbol: the order was written in another form.
    #[error("line {line} is no symbol: `{text}`")]
    OtherForm {
        /// Number of the line, from 1.
        line: usize,
        /// Its beginning.
        text: String,
    },
}

/// The symbols of an order in the form `symbols`: one a line, each once, `#` before a comment.
///
/// # Errors
/// [`NoOrder`]
pub fn symbols(text: &str) -> Result<Vec<String>, NoOrder> {
    let lines = text.lines().map(str::trim).enumerate();
    let mut found = Vec::new();
    for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        // What other forms have: calls with weights, sections, statements of a script.
        if line.contains(char::is_whitespace) || line.starts_with(".text") || line.contains(['{', '}', '\0'])
        {
            let text = line.chars().filter(|letter| !letter.is_control()).take(40).collect();
            return Err(NoOrder::OtherForm { line: index + 1, text });
        }
        // Names that no linker is told, such as Go's, may stand among the others.
        if is_symbol(line) {
            found.push(line);
        }
    }
    let found = once_each(found.into_iter());
    if found.is_empty() { Err(NoOrder::Empty) } else { Ok(found) }
}

/// The order of the functions of a profile by CDSort. There is no program to try other orders on; where there is one,
/// `planish text order` picks the best.
///
/// # Errors
/// [`NoOrder::Empty`] for a profile without functions that a linker could lay.
pub fn of_profile(profile: &CallProfile) -> Result<Vec<String>, NoOrder> {
    let mut place = vec![None; profile.functions.len()];
    let (mut functions, mut nodes) = (Vec::new(), Vec::new());
    for (index, function) in profile.functions.iter().enumerate() {
        // Names for people are no linker's. Linkage tables (`[.plt]`) are one function each in a profile, and nothing
        // that a linker could move.
        if is_symbol(names::split_file(&function.name).0) {
            place[index] = u32::try_from(nodes.len()).ok();
            let bytes = if function.bytes == 0 { BYTES_UNKNOWN } else { function.bytes };
            nodes.push(Node { bytes, weight: function.weight });
            functions.push(function.name.as_str());
        }
    }
    let arcs = profile.edges.iter().filter_map(|edge| {
        let (from, to) = (place[edge.caller as usize]?, place[edge.callee as usize]?);
        // Where in the caller a call stands is not known: its middle is right on average.
        Some(Arc { from, to, weight: edge.weight, offset: nodes[from as usize].bytes.div_ceil(2) })
    });
    let arcs = arcs.collect();
    let graph = Graph::new(nodes, arcs).expect("every end was looked up");
    let order = cdsort(&graph);
    let names = order.iter().map(|index| names::split_file(functions[*index as usize]).0);
    let names = once_each(names);
    if names.is_empty() { Err(NoOrder::Empty) } else { Ok(names) }
}

/// Whether a linker may know a function by this name. What a linker script would read as more than a part of a name
/// is never handed to one.
fn is_symbol(name: &str) -> bool {
    let ends_it =
        |letter: char| letter.is_whitespace() || letter.is_control() || "\"'\\(){}[];,*?".contains(letter);
    !name.is_empty() && !name.contains(ends_it)
}

fn once_each<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = HashSet::new();
    names.filter(|name| seen.insert(*name)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use planish_profile::{ImportOptions, import};

    use super::*;

    #[test]
    fn an_order_is_a_symbol_a_line() {
        let read = |text: &str| symbols(text);
        assert_eq!(read("# hot\n b \n\na\r\nb\n").unwrap(), ["b", "a"]);
        assert_eq!(read("\n# nothing\n"), Err(NoOrder::Empty));
        assert_eq!(read("a\")INPUT(b\nmain.(*T).f\nc\n").unwrap(), ["c"], "nothing that a script would read");
        for other in ["a b 12\n", ".text.a\n", "SECTIONS{\n", "a\n__hot_start = .;\n"] {
            assert!(matches!(read(other), Err(NoOrder::OtherForm { .. })), "{other}");
        }
    }

    #[test]
    fn a_profile_alone_gives_an_order_of_its_functions() {
        let cold: String = (0..40).map(|index| format!("main;cold{index} 1\n")).collect();
        let stacks = format!("main;parse;scan 900\nmain;parse 90\n{cold}main;[.plt] 5\nmain;std::f(int) 4\n");
        let profile = import(stacks.as_bytes(), &ImportOptions::default()).unwrap().profile;
        let order = of_profile(&profile).unwrap();
        assert_eq!(order.len(), 43, "only what a linker may know: {order:?}");
        let at = order.iter().position(|name| name == "main").unwrap();
        assert_eq!(order[at..at + 3], ["main", "parse", "scan"], "{order:?}");
        let empty = CallProfile { functions: Vec::new(), edges: Vec::new(), ..profile };
        assert_eq!(of_profile(&empty), Err(NoOrder::Empty));
    }
}
