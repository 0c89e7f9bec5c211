//! Functions of a real program as BOLT is told of them.

use planish_order::bolt::{SkipList, Skipped, selection};
use planish_profile::Program;

/// This test's own binary: a real ELF file with many functions, local ones among them.
fn this_test() -> Program {
    #[expect(clippy::disallowed_methods, reason = "a test reads its own binary")]
    let bytes = std::fs::read("/proc/self/exe").expect("this test can read itself");
    Program::parse("p", &bytes).expect("an ELF file")
}

#[test]
fn the_first_reason_stays_and_a_second_one_is_nothing_new() {
    let program = this_test();
    let mut list = SkipList::default();
    assert!(list.is_empty() && list.add(7, Skipped::Asked) && !list.add(7, Skipped::Known("odd")));
    assert!(list.holds(7) && !list.holds(8));
    let rows: Vec<_> = list.rows(&program).collect();
    assert_eq!(rows, [(program.functions()[7].name.as_str(), &Skipped::Asked)]);
    assert_eq!(list.patterns(&program).lines().count(), 1);
}

#[test]
fn local_functions_have_the_number_that_bolt_gives_them() {
    let program = this_test();
    let (mut list, mut seen) = (SkipList::default(), [0, 0]);
    for (index, function) in (0_u32..).zip(program.functions()).filter(|(_, one)| !one.name.contains('/')) {
        let line = selection(std::iter::once(index), &program);
        let numbered = if function.global { "" } else { "/1" };
        assert_eq!(line, format!("{}{numbered}\n", function.name));
        list.add(index, Skipped::Asked);
        seen[usize::from(function.global)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 0), "both kinds are in a program: {seen:?}");
    let patterns = list.patterns(&program);
    assert_eq!(patterns.lines().filter(|line| line.ends_with("(/.*)?")).count(), seen[0]);
}
