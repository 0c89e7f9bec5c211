//! Sections of functions, as compilers name them, in the syntax of the GNU linkers.

use planish_profile::{ProgramFunction, names};

use super::{lines, symbol};

/// The input sections that a function may be in, by all of its names: an object file knows only one of them.
pub(super) fn of(function: &ProgramFunction) -> Vec<String> {
    let all = std::iter::once(&function.name).chain(&function.aliases);
    all.flat_map(|name| of_symbol(symbol(name))).collect()
}

fn of_symbol(name: &str) -> Vec<String> {
    if names::is_cold_part(name) {
        // GCC puts `f.cold` into the section of the unlikely part of `f`.
        let stem = name.find(".cold").map_or(name, |at| &name[..at]);
        return vec![format!(".text.unlikely.{stem}")];
    }
    vec![format!(".text.{name}"), format!(".text.hot.{name}")]
}

/// A section-ordering file of GNU ld 2.43: statements of an output section, and nothing else.
pub(super) fn gnu_ld<'a>(functions: impl Iterator<Item = &'a ProgramFunction>) -> String {
    format!(".text : {{\n{}}}\n", inputs(functions, "  "))
}

/// Lines to stand first in the `.text` output section of a linker script.
pub(super) fn linker_script<'a>(functions: impl Iterator<Item = &'a ProgramFunction>) -> String {
    let inputs = inputs(functions, "");
    format!("__hot_start = .;\n{inputs}__hot_end = .;\n")
}

fn inputs<'a>(functions: impl Iterator<Item = &'a ProgramFunction>, indent: &str) -> String {
    let line = |function: &ProgramFunction| {
        let sections: Vec<String> = of(function).iter().map(|section| quoted(section)).collect();
        format!("{indent}*({})", sections.join(" "))
    };
    lines(functions.map(line))
}

/// Names with characters that a script gives a meaning (Rust's `$`, `?`, brackets) stand in quotes.
fn quoted(section: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._$".contains(c);
    if section.chars().all(plain) { section.to_owned() } else { format!("\"{section}\"") }
}
