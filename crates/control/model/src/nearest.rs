//! The nearest valid name, for errors that name a cure.

/// The candidate closest to `wrong`, when it is close enough to be a likely typing error.
///
/// Distance is Damerau-Levenshtein; the limit is a third of the longer word, so that a short wrong word does not
/// attract a random one.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(wrong, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (wrong.len().max(candidate.len()) / 3).max(1))
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_the_likely_word_and_no_random_one() {
        let ids = ["vm.swappiness", "vm.stat_interval", "thp.enabled"];
        assert_eq!(nearest("vm.swapiness", ids), Some("vm.swappiness"));
        assert_eq!(nearest("kernel.nothing", ids), None);
    }
}
