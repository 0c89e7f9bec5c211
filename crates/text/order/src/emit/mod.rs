//! An order as a linker or rewriter reads it.
//!
//! Linkers that order sections match `.text.NAME`, so the program must be compiled with `-ffunction-sections`; what
//! a compiler set apart as hot or cold has a section of that kind. lld orders by symbols, rustc and BOLT too.

mod sections;

use std::collections::HashSet;
use std::fmt::Write as _;

use planish_profile::{Program, ProgramFunction, names};

use crate::subject::Subject;

/// What an order can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A symbol a line: lld and rustc, `-Wl,--symbol-ordering-file=F`.
    Symbols,
    /// `caller callee weight`: lld, `-Wl,--call-graph-ordering-file=F`; lld then orders by itself.
    CallGraph,
    /// A section a line: gold, `-Wl,--section-ordering-file=F`.
    Gold,
    /// Input sections of `.text`: GNU ld from 2.43 on, `-Wl,--section-ordering-file=F`.
    GnuLd,
    /// Lines for the `.text` of a linker script, with `__hot_start` and `__hot_end`: every GNU ld, and lld.
    LinkerScript,
    /// A function a line: `llvm-bolt --reorder-functions=user --function-order=F`.
    Bolt,
}

impl Form {
    /// Every form with the word that names it on a command line.
    pub const ALL: [(&'static str, Self); 6] = [
        ("symbols", Self::Symbols),
        ("call-graph", Self::CallGraph),
        ("gold", Self::Gold),
        ("gnu-ld", Self::GnuLd),
        ("linker-script", Self::LinkerScript),
        ("bolt", Self::Bolt),
    ];
}

/// Writes an order in one form.
#[must_use]
pub fn write(form: Form, order: &[u32], subject: &Subject, program: &Program) -> String {
    let functions = || order.iter().map(|index| function(subject, program, *index));
    match form {
        Form::Symbols => lines(functions().map(|function| symbol(&function.name).to_owned())),
        Form::CallGraph => call_graph(subject, program),
        Form::Gold => lines(functions().flat_map(sections::of)),
        Form::GnuLd => sections::gnu_ld(functions()),
        Form::LinkerScript => sections::linker_script(functions()),
        // BOLT knows equal local names apart by the spelling that profiles use.
        Form::Bolt => lines(functions().map(|function| function.name.clone())),
    }
}

/// The first and the last function of an order whose names other files can use: what `--defsym` can anchor
/// `__hot_start` and `__hot_end` to where the linker takes no script.
#[must_use]
pub fn hot_range<'a>(order: &[u32], subject: &Subject, program: &'a Program) -> Option<(&'a str, &'a str)> {
    let global = |index: &u32| Some(function(subject, program, *index)).filter(|function| function.global);
    let first = order.iter().find_map(global)?;
    let last = order.iter().rev().find_map(global)?;
    Some((&first.name, &last.name))
}

fn function<'a>(subject: &Subject, program: &'a Program, index: u32) -> &'a ProgramFunction {
    &program.functions()[subject.functions[index as usize] as usize]
}

/// The linker's name: local functions that share one are laid together, because a linker cannot tell them apart.
fn symbol(name: &str) -> &str {
    names::split_file(name).0
}

/// Lines, each once, in the order in which they first come.
fn lines(all: impl Iterator<Item = String>) -> String {
    let mut seen = HashSet::new();
    let mut text = String::new();
    for line in all {
        if seen.insert(line.clone()) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

fn call_graph(subject: &Subject, program: &Program) -> String {
    let mut text = String::new();
    for arc in subject.graph.arcs() {
        let name = |index: u32| symbol(&function(subject, program, index).name);
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{} {} {}", name(arc.from), name(arc.to), arc.weight);
    }
    text
}
