//! An order as a linker or rewriter reads it.
//!
//! Linkers that order sections match `.text.NAME`, so the program must be compiled with `-ffunction-sections`; what
//! a compiler set apart as hot or cold has a section of that kind. lld orders by symbols, rustc and BOLT too.

mod autofdo;
mod sections;

use std::collections::HashSet;
use std::fmt::Write as _;

use planish_profile::{Program, ProgramFunction, names};

use crate::subject::Subject;

pub use autofdo::{AutoFdo, autofdo};

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
        Form::GnuLd => sections::gnu_ld(functions().map(sections::of)),
        Form::LinkerScript => sections::linker_script(functions().map(sections::of)),
        // BOLT knows equal local names apart by the spelling that profiles use.
        Form::Bolt => lines(functions().map(|function| function.name.clone())),
    }
}

/// Symbols as lld reads them. Here and below no program is at hand that would know the aliases of a symbol.
#[must_use]
pub fn symbol_lines(symbols: &[String]) -> String {
    lines(symbols.iter().cloned())
}

/// The sections of symbols for gold.
#[must_use]
pub fn gold_of_symbols(symbols: &[String]) -> String {
    lines(symbols.iter().flat_map(|symbol| sections_of_symbol(symbol)))
}

/// The sections of symbols for GNU ld from 2.43 on.
#[must_use]
pub fn gnu_ld_of_symbols(symbols: &[String]) -> String {
    sections::gnu_ld(symbols.iter().map(|symbol| sections_of_symbol(symbol)))
}

/// The sections of symbols as a script for an older GNU ld: `-T F`, beside the script that it has.
#[must_use]
pub fn script_of_symbols(symbols: &[String]) -> String {
    sections::script_to_insert(symbols.iter().map(|symbol| sections_of_symbol(symbol)))
}

fn sections_of_symbol(symbol: &str) -> Vec<String> {
    let twin = structor_twin(symbol);
    std::iter::once(symbol).chain(twin.as_deref()).flat_map(sections::of_symbol).collect()
}

/// The other name of a C++ constructor or destructor: for complete objects (`C1E`) and for bases (`C2E`) compilers
/// make one function, and its section has the name of either.
fn structor_twin(symbol: &str) -> Option<String> {
    const TWINS: [(&str, &str); 4] = [("C1E", "C2E"), ("C2E", "C1E"), ("D1E", "D2E"), ("D2E", "D1E")];
    let last = TWINS.iter().filter_map(|(one, other)| Some((symbol.rfind(one)?, *other)));
    let (at, other) = last.max().filter(|_| symbol.starts_with("_ZN"))?;
    Some(format!("{}{other}{}", &symbol[..at], &symbol[at + other.len()..]))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_become_the_sections_that_they_may_be_in() {
        let symbols = ["f", "_ZN1AC1Ev", "g.cold", "core::x"].map(str::to_owned);
        assert_eq!(symbol_lines(&symbols[..1]), "f\n");
        let gold = ".text.f\n.text.hot.f\n.text._ZN1AC1Ev\n.text.hot._ZN1AC1Ev\n.text._ZN1AC2Ev\n\
                    .text.hot._ZN1AC2Ev\n.text.unlikely.g\n.text.core::x\n.text.hot.core::x\n";
        assert_eq!(gold_of_symbols(&symbols), gold);
        assert_eq!(
            script_of_symbols(&symbols[3..]),
            "SECTIONS {\n  .hot_text : {\n    HIDDEN(__hot_start = .);\n    \
             *(\".text.core::x\" \".text.hot.core::x\")\n    HIDDEN(__hot_end = .);\n  }\n}\nINSERT BEFORE .text;\n"
        );
        assert_eq!(gnu_ld_of_symbols(&symbols[..1]), ".text : {\n  *(.text.f .text.hot.f)\n}\n");
    }

    #[test]
    fn only_structors_have_a_twin() {
        assert_eq!(structor_twin("_ZN1AD2Ev").as_deref(), Some("_ZN1AD1Ev"));
        assert_eq!(structor_twin("_ZN3C1E1AC2ERKS0_").as_deref(), Some("_ZN3C1E1AC1ERKS0_"));
        for name in ["_ZN1AD0Ev", "_ZN1A1fEv", "C1E", "_ZN4core3fmtE"] {
            assert_eq!(structor_twin(name), None, "{name}");
        }
    }
}
