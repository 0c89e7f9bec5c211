//! Sizes as people read them, in reasons and arithmetic lines.

/// Binary multiples, largest first.
const BINARY: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];

/// A count and its noun: `1 page`, `3 pages`.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    let plural = match number {
        1 => "",
        _ if ["s", "x", "ch", "sh"].iter().any(|hiss| noun.ends_with(hiss)) => "es",
        _ => "s",
    };
    format!("{number} {noun}{plural}")
}

/// Bytes in the largest binary unit that keeps them above one: `23.5 GiB`, `2 MiB`, `512 B`.
#[must_use]
pub fn bytes(count: u64) -> String {
    let Some((unit, name)) = BINARY.into_iter().find(|(unit, _)| count >= *unit) else {
        return format!("{count} B");
    };
    if count.is_multiple_of(unit) {
        return format!("{} {name}", count / unit);
    }
    format!("{:.1} {name}", count as f64 / unit as f64)
}

#[cfg(test)]
mod tests {
    use super::{bytes, counted};

    #[test]
    fn a_noun_that_ends_in_a_hiss_has_a_plural_of_its_own() {
        assert_eq!([counted(1, "process"), counted(6, "process")], ["1 process", "6 processes"]);
        assert_eq!(counted(2, "page"), "2 pages");
    }

    #[test]
    fn bytes_keep_their_meaning() {
        for (count, text) in
            [(0, "0 B"), (1023, "1023 B"), (2 << 20, "2 MiB"), (25_769_803_776, "24 GiB"), (1_600, "1.6 KiB")]
        {
            assert_eq!(bytes(count), text);
        }
    }
}
