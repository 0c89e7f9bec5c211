//! Sections of functions, as compilers name them, in the syntax of the GNU linkers.

use planish_profile::{ProgramFunction, names};

use super::{lines, symbol};

/// The input sections that a function may be in, by all of its names: an object file knows only one of them.
pub(super) fn of(function: &ProgramFunction) -> Vec<String> {
    let all = std::iter::once(&function.name).chain(&function.aliases);
    all.flat_map(|name| of_symbol(symbol(name))).collect()
}

/// The input sections that the code of a symbol may be in.
pub(super) fn of_symbol(name: &str) -> Vec<String> {
    if names::is_cold_part(name) {
        // GCC puts `f.cold` into the section of the unlikely part of `f`.
        let stem = name.find(".cold").map_or(name, |at| &name[..at]);
        return vec![format!(".text.unlikely.{stem}")];
    }
    vec![format!(".text.{name}"), format!(".text.hot.{name}")]
}

/// A section-ordering file of GNU ld 2.43: statements of an output section, and nothing else.
pub(super) fn gnu_ld(functions: impl Iterator<Item = Vec<String>>) -> String {
    format!(".text : {{\n{}}}\n", inputs(functions, "  "))
}

/// Lines to stand first in the `.text` output section of a linker script.
pub(super) fn linker_script(functions: impl Iterator<Item = Vec<String>>) -> String {
    let inputs = inputs(functions, "");
    format!("__hot_start = .;\n{inputs}__hot_end = .;\n")
}

/// A script that `-T` adds to the one that is there, whatever options chose that: it has a section of its own right
/// before `.text`. The marks are hidden, so that those of a library and of its program do not become one.
pub(super) fn script_to_insert(functions: impl Iterator<Item = Vec<String>>) -> String {
    let inputs = inputs(functions, "    ");
    format!(
        "SECTIONS {{\n  .hot_text : {{\n    HIDDEN(__hot_start = .);\n{inputs}    HIDDEN(__hot_end = .);\n  }}\n}}\n\
         INSERT BEFORE .text;\n"
    )
}

/// A statement for each function, of the sections that it may be in.
fn inputs(functions: impl Iterator<Item = Vec<String>>, indent: &str) -> String {
    let line = |sections: Vec<String>| {
        let sections: Vec<String> = sections.iter().map(|section| quoted(section)).collect();
        format!("{indent}*({})", sections.join(" "))
    };
    lines(functions.map(line))
}

/// Names with characters that a script gives a meaning (Rust's `$`, `?`, brackets) stand in quotes.
fn quoted(section: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._$".contains(c);
    if section.chars().all(plain) { section.to_owned() } else { format!("\"{section}\"") }
}
