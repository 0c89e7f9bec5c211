//! The order in which people count: `cpu2` before `cpu10`.

use std::cmp::Ordering;

/// Compares two texts with runs of digits taken as numbers; texts that differ only in leading zeroes are
/// ordered by their bytes, so that the order is total.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.as_bytes(), b.as_bytes());
    loop {
        let order = match (left.first(), right.first()) {
            (None, None) => return a.cmp(b),
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let (number, other) = (take_digits(&mut left), take_digits(&mut right));
                number.len().cmp(&other.len()).then_with(|| number.cmp(other))
            }
            (x, y) => {
                left = left.get(1..).unwrap_or_default();
                right = right.get(1..).unwrap_or_default();
                x.cmp(&y)
            }
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Takes the leading digits off `text` and returns them without leading zeroes.
fn take_digits<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    let zeroes = digits.iter().take_while(|byte| **byte == b'0').count();
    &digits[zeroes..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_count() {
        let mut names = ["cpu10", "cpu2", "cpu", "cpu1/x", "cpu1", "cpu02", "a9b10", "a9b9"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(names, ["a9b9", "a9b10", "cpu", "cpu1", "cpu1/x", "cpu02", "cpu2", "cpu10"]);
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in "[ab019]{0,6}", b in "[ab019]{0,6}", c in "[ab019]{0,6}") {
            prop_assert_eq!(natural_order(&a, &b), natural_order(&b, &a).reverse());
            prop_assert_eq!(natural_order(&a, &b) == Ordering::Equal, a == b);
            if natural_order(&a, &b).is_le() && natural_order(&b, &c).is_le() {
                prop_assert!(natural_order(&a, &c).is_le());
            }
        }
    }
}
