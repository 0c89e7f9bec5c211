//! Names of functions: as people read them, and as they stay the same from build to build.

use cpp_demangle::{DemangleOptions, Symbol};

/// A name as people read it: Rust and C++ names demangled, others as they are.
#[must_use]
pub fn readable(name: &str) -> String {
    let (symbol, suffix) = split_file(name);
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        return format!("{rust:#}{suffix}");
    }
    // GCC's `.cold` and its like follow the mangled name; the demangler wants it alone.
    let (stem, part) = match symbol.find('.') {
        Some(dot) if symbol.starts_with("_Z") => symbol.split_at(dot),
        _ => (symbol, ""),
    };
    match demangled_cpp(stem, true) {
        Some(cpp) => format!("{cpp}{part}{suffix}"),
        None => name.to_owned(),
    }
}

/// A demangled C++ name, with or without the types of its parameters.
#[must_use]
pub(crate) fn demangled_cpp(symbol: &str, parameters: bool) -> Option<String> {
    if !symbol.starts_with("_Z") {
        return None;
    }
    let options = DemangleOptions::new();
    let options = if parameters { options } else { options.no_params().no_return_type() };
    Symbol::new(symbol).ok()?.demangle_with_options(&options).ok()
}

/// `name` and `/file.c/2` of the spelling for local functions that share a name.
#[must_use]
pub fn split_file(name: &str) -> (&str, &str) {
    match name.find('/') {
        // A path as the whole name (`/usr/bin/x`) is no such spelling.
        Some(at) if at > 0 => name.split_at(at),
        _ => (name, ""),
    }
}

/// The part of a name that stays when the program is built again.
///
/// Dropped are the hash of a legacy Rust name (`17h` and 16 digits), the crate disambiguator of a new one, and the
/// module hash that ThinLTO appends (`.llvm.123`). What a compiler cut out (`.cold`, `.part.0`) keeps its suffix:
/// it is code of its own.
#[must_use]
pub fn stable(name: &str) -> String {
    let cut = name.find(".llvm.").map_or(name, |at| &name[..at]);
    if let Some(stem) = without_legacy_hash(cut) {
        return stem;
    }
    if cut.starts_with("_R") { without_disambiguators(cut) } else { cut.to_owned() }
}

/// `_ZN4core3fmt5write17h0123456789abcdefE` without its last component.
fn without_legacy_hash(name: &str) -> Option<String> {
    const HASH_DIGITS: usize = 16;
    if !name.starts_with("_ZN") {
        return None;
    }
    let at = name.rfind("17h")?;
    let digits = name.get(at + 3..at + 3 + HASH_DIGITS)?;
    let rest = name.get(at + 3 + HASH_DIGITS..)?;
    let is_hash = digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && rest.starts_with('E');
    is_hash.then(|| format!("{}{rest}", &name[..at]))
}

/// `_RNvCs1a2b_5crate4name` without `s1a2b_`: only where it stands before a crate's root (`C`).
fn without_disambiguators(name: &str) -> String {
    let mut stable = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("Cs") {
        let (before, after) = rest.split_at(at + 1);
        stable.push_str(before);
        let digits = after[1..].find(|c: char| !c.is_ascii_alphanumeric()).map(|length| length + 1);
        rest = match digits {
            // The number ends in an underscore and a length follows; anything else was part of a name.
            Some(end) if after[end..].starts_with('_') && starts_with_digit(&after[end + 1..]) => {
                &after[end + 1..]
            }
            _ => after,
        };
    }
    stable + rest
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether the compiler moved this code away because it seldom runs: `.cold`, `.cold.0`, BOLT's too.
#[must_use]
pub fn is_cold_part(name: &str) -> bool {
    let (symbol, _) = split_file(name);
    symbol.ends_with(".cold")
        || symbol.rfind(".cold.").is_some_and(|at| {
            let rest = &symbol[at + ".cold.".len()..];
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_two_builds_are_the_same() {
        let legacy = |hash: &str| format!("_ZN4core3fmt5write17h{hash}E");
        assert_eq!(stable(&legacy("0123456789abcdef")), stable(&legacy("fedcba9876543210")));
        assert_eq!(stable(&legacy("0123456789abcdef")), "_ZN4core3fmt5writeE");
        let v0 = |mark: &str| format!("_RNvNtC{mark}4core3fmt5write");
        assert_eq!(stable(&v0("s8kA2_")), stable(&v0("sZ_")));
        assert_eq!(stable("scan.llvm.4711"), "scan");
        assert_eq!(stable("scan.constprop.0"), "scan.constprop.0");
        assert_eq!(stable("_ZN3one3twoEv"), "_ZN3one3twoEv");
    }

    #[test]
    fn names_read_like_the_source() {
        assert_eq!(readable("_ZN3one3twoEi"), "one::two(int)");
        assert_eq!(readable("_ZN3one3twoEi.cold"), "one::two(int).cold");
        assert_eq!(readable("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(readable("scan/heap.c/2"), "scan/heap.c/2");
        assert_eq!(readable("main"), "main");
    }

    #[test]
    fn cold_parts_are_known() {
        for (name, cold) in [
            ("f.cold", true),
            ("f.cold.3", true),
            ("f.cold/a.c/1", true),
            ("f.colder", false),
            ("cold", false),
        ] {
            assert_eq!(is_cold_part(name), cold, "{name}");
        }
    }
}
