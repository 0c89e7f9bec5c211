//! The nearest valid name, for errors that name a cure.

/// The candidate closest to `wrong`, when it is close enough to be a likely typing error.
///
/// Distance is Damerau-Levenshtein; the limit is a third of the longer word, so that a short wrong word does not
/// attract a random one.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (edits(wrong, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (wrong.len().max(candidate.len()) / 3).max(1))
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters are missing, too many, others, or changed with their neighbours.
#[must_use]
pub fn edits(one: &str, other: &str) -> usize {
    strsim::damerau_levenshtein(one, other)
}

/// The nearest of the names that a reader lists: ``unknown field `a`, expected one of `b`, `c` ``.
#[must_use]
pub fn nearest_listed(message: &str) -> Option<&str> {
    let (unknown, expected) = message.split_once(", expected ")?;
    let wrong = unknown.split('`').skip(1).step_by(2).last()?;
    nearest(wrong, expected.split('`').skip(1).step_by(2))
}

#[cfg(test)]
mod tests {
    use super::{nearest, nearest_listed};

    #[test]
    fn finds_the_likely_word_and_no_random_one() {
        let ids = ["vm.swappiness", "vm.stat_interval", "thp.enabled"];
        assert_eq!(nearest("vm.swapiness", ids), Some("vm.swappiness"));
        assert_eq!(nearest("kernel.nothing", ids), None);
    }

    #[test]
    fn the_nearest_name_is_read_from_a_reader_s_list() {
        let message = "unknown field `sumary`, expected one of `name`, `summary`, `primary`";
        assert_eq!(nearest_listed(message), Some("summary"));
        assert_eq!(
            nearest_listed("unknown variant `pgbanch`, expected `pgbench` or `http`"),
            Some("pgbench")
        );
        assert_eq!(nearest_listed("invalid type: string"), None);
    }
}
