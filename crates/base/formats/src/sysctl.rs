//! `sysctl.d(5)`: the order in which systemd applies lines.

use std::collections::HashMap;

/// What a line sets.
pub trait Line {
    /// The place: one for `vm.swappiness` and `vm/swappiness`.
    fn place(&self) -> &str;
    /// The value; an empty one takes back the lines of its place before it.
    fn value(&self) -> &str;
}

/// The lines in the order in which systemd applies them: each place once, where its value was first given. A line that
/// repeats the value of an earlier one keeps the earlier turn (systemd 252, `src/sysctl/sysctl.c`).
pub fn in_order<L: Line>(lines: impl Iterator<Item = L>) -> Vec<L> {
    // Lines of one place and one value.
    let mut turns: Vec<Vec<L>> = Vec::new();
    let mut last: HashMap<String, usize> = HashMap::new();
    for line in lines {
        let turn = last.get(line.place()).and_then(|&turn| turns.get_mut(turn));
        if let Some(turn) =
            turn.filter(|turn| turn.first().is_some_and(|first| first.value() == line.value()))
        {
            turn.push(line);
            continue;
        }
        last.insert(line.place().to_owned(), turns.len());
        turns.push(vec![line]);
    }
    turns.into_iter().flatten().collect()
}
