//! Command lines of compilers and linkers, their response files, what a linker says of itself, and orders of symbols: a
//! wrapper reads them in the middle of anybody's build.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_order::command_line::{
    LinkerFound, Machine, Needs, Wanted, Work, expand, launchers, split, work_of_compiler, work_of_linker,
};
use planish_order::{emit, pinned};

fuzz_target!(|text: &str| {
    let words = split(text);
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    assert_eq!(split(&quoted.join(" ")), words, "{quoted:?}");
    // A file that names itself ends, and one that cannot be read stays a word.
    assert_eq!(expand(words.clone(), &|_| None), words);
    let once = |name: &str| (name == "a").then(|| "b @b c".to_owned());
    let all = expand(words.clone(), &once);
    let named = words.iter().filter(|word| *word == "@a").count();
    assert_eq!(all.len(), words.len() + 2 * named);

    assert!(launchers(&words) <= words.len());
    let symbols = pinned::symbols(text).ok();
    if let Some(symbols) = &symbols {
        assert_eq!(pinned::symbols(&emit::symbol_lines(symbols)).as_ref().ok(), Some(symbols));
    }
    let found = LinkerFound::parse(text)
        .unwrap_or_else(|| LinkerFound::parse("mold 2.4.0").expect("a linker that takes an order"));
    let machine = Machine::of_target(text, words.iter().map(String::as_str));
    for work in [work_of_compiler(&words), work_of_linker(&words)] {
        let Work::Link(link) = work else { continue };
        let wanted = Wanted { symbols: symbols.as_deref(), huge_bytes: Some(2 << 20), machine };
        if let Ok(needs) = Needs::of(&link, &found, wanted) {
            assert!(!(link.has_order && needs.file.is_some()), "an order beside another: {link:?}");
            let _ = needs.words("/order", Some("/marks"));
        }
    }
});

/// A word as GNU tools take it, whatever it holds.
fn quoted(word: &str) -> String {
    let letters: String = word.chars().flat_map(|letter| ['\\', letter]).collect();
    if letters.is_empty() { "''".to_owned() } else { letters }
}
