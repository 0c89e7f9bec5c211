//! Ranges of bytes, many of them: sums and differences in the time of a sort.

use std::ops::Range;

/// The same bytes in rising order, each once: ranges that touch are one.
pub(crate) fn union(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// What of `ranges` is in none of `known`; both in rising order and without overlap.
pub(crate) fn without(ranges: &[Range<u64>], known: &[Range<u64>]) -> Vec<Range<u64>> {
    let (mut left, mut first) = (Vec::with_capacity(ranges.len()), 0);
    for range in ranges {
        while known.get(first).is_some_and(|known| known.end <= range.start) {
            first += 1;
        }
        let mut at = range.start;
        for known in known[first..].iter().take_while(|known| known.start < range.end) {
            if at < known.start {
                left.push(at..known.start);
            }
            at = known.end;
        }
        if at < range.end {
            left.push(at..range.end);
        }
    }
    left
}

/// What of `ranges`, in rising order, lies before `end`.
pub(crate) fn within(ranges: &[Range<u64>], end: u64) -> Vec<Range<u64>> {
    let before = ranges.iter().take_while(|range| range.start < end);
    before.map(|range| range.start..range.end.min(end)).collect()
}

/// Whether `range` lies whole in one of `ranges`, which are in rising order and do not touch.
pub(crate) fn has(ranges: &[Range<u64>], range: &Range<u64>) -> bool {
    let next = ranges.partition_point(|known| known.end < range.end);
    ranges.get(next).is_some_and(|known| known.start <= range.start)
}

/// Bytes of all of them.
pub(crate) fn length(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn some() -> impl Strategy<Value = Vec<Range<u64>>> {
        proptest::collection::vec((0u64..60, 1u64..9), 0..12)
            .prop_map(|ranges| ranges.into_iter().map(|(start, length)| start..start + length).collect())
    }

    fn bytes(ranges: &[Range<u64>]) -> BTreeSet<u64> {
        ranges.iter().cloned().flatten().collect()
    }

    #[test]
    fn parts_that_touch_join() {
        assert_eq!(union(vec![10..20, 40..50, 15..30, 30..31]), [10..31, 40..50]);
    }

    proptest! {
        #[test]
        fn a_byte_is_where_it_was(ranges in some(), known in some(), asked in (0u64..70, 1u64..6)) {
            let (one, other) = (union(ranges.clone()), union(known.clone()));
            prop_assert_eq!(bytes(&one), bytes(&ranges));
            prop_assert!(one.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert_eq!(length(&one), bytes(&ranges).len() as u64);
            let left: BTreeSet<u64> = bytes(&ranges).difference(&bytes(&known)).copied().collect();
            prop_assert_eq!(bytes(&without(&one, &other)), left);
            let before: BTreeSet<u64> = bytes(&ranges).into_iter().filter(|byte| *byte < asked.0).collect();
            prop_assert_eq!(bytes(&within(&one, asked.0)), before);
            let asked = asked.0..asked.0 + asked.1;
            prop_assert_eq!(has(&one, &asked), asked.clone().all(|byte| bytes(&ranges).contains(&byte)));
        }
    }
}
