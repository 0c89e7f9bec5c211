//! Rectangles whose areas are as given numbers, as near to squares as can be: Bruls, Huizing and van Wijk, "Squarified
//! Treemaps", 2000.
//!
//! Rows are laid along the shorter side of what is free, the largest first, and each row takes one more for as long as
//! that brings its worst rectangle nearer to a square. What is free is known by its area and by one of its sides, and
//! both are exact to the last digits, whatever was taken before: an area is true however small it is beside the rest.

use planish_sorted::SortSmall as _;

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rect {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Rect {
    pub(super) fn area(&self) -> f64 {
        self.width * self.height
    }
}

/// A rectangle within `within` for each weight, in the order of the weights. They fill it, each by its share. What is
/// not above zero, or no number, gets an empty one.
pub(super) fn squarified(weights: &[f64], within: Rect) -> Vec<Rect> {
    let mut placed = vec![Rect { width: 0.0, height: 0.0, ..within }; weights.len()];
    let is_some = |index: &usize| weights[*index].is_finite() && weights[*index] > 0.0;
    let mut order: Vec<usize> = (0..weights.len()).filter(is_some).collect();
    order.sort_small_by(|one, other| weights[*other].total_cmp(&weights[*one]));
    // What is left from each on, summed from the smallest: no rest is a small difference of large sums.
    let mut left = vec![0.0; order.len() + 1];
    for (place, index) in order.iter().enumerate().rev() {
        left[place] = left[place + 1] + weights[*index];
    }
    let scale = within.area() / left[0];
    let areas: Vec<f64> = order.iter().map(|index| weights[*index] * scale).collect();
    let mut free = within;
    let mut first = 0;
    while first < order.len() {
        let side = free.width.min(free.height);
        let mut end = first + 1;
        while end < order.len() && worst(&areas[first..=end], side) <= worst(&areas[first..end], side) {
            end += 1;
        }
        let thickness = areas[first..end].iter().sum::<f64>() / side;
        let is_upright = free.width >= free.height;
        let mut from = if is_upright { free.top } else { free.left };
        for place in first..end {
            let length = areas[place] / thickness;
            placed[order[place]] = match is_upright {
                true => Rect { left: free.left, top: from, width: thickness, height: length },
                false => Rect { left: from, top: free.top, width: length, height: thickness },
            };
            from += length;
        }
        free = behind(free, is_upright, left[end] * scale, within);
        first = end;
    }
    placed
}

/// What is free behind a row: its area is known, and so is the side that the row stood along.
fn behind(free: Rect, is_upright: bool, area: f64, within: Rect) -> Rect {
    if is_upright {
        let width = area / free.height;
        Rect { left: within.left + within.width - width, width, ..free }
    } else {
        let height = area / free.width;
        Rect { top: within.top + within.height - height, height, ..free }
    }
}

/// How far the worst rectangle of a row is from a square: its longer side by its shorter one. Areas fall.
fn worst(areas: &[f64], side: f64) -> f64 {
    let row: f64 = areas.iter().sum();
    let [largest, .., smallest] = areas else { return ratio(row, row, side) };
    ratio(*largest, row, side).max(ratio(*smallest, row, side))
}

fn ratio(area: f64, row: f64, side: f64) -> f64 {
    let ratio = side * side * area / (row * row);
    ratio.max(1.0 / ratio)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WITHIN: Rect = Rect { left: 3.0, top: -2.0, width: 1100.0, height: 560.0 };

    #[test]
    fn the_example_of_the_paper_comes_out_as_in_the_paper() {
        // 6 by 4, areas 6 6 4 3 2 2 1: figure 3 of the paper.
        let within = Rect { left: 0.0, top: 0.0, width: 6.0, height: 4.0 };
        let told = squarified(&[6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0], within);
        let near = |rect: &Rect, left: f64, top: f64, width: f64, height: f64| {
            let pairs = [(rect.left, left), (rect.top, top), (rect.width, width), (rect.height, height)];
            pairs.into_iter().all(|(found, wanted)| (found - wanted).abs() < 1e-9)
        };
        assert!(near(&told[0], 0.0, 0.0, 3.0, 2.0) && near(&told[1], 0.0, 2.0, 3.0, 2.0), "{told:?}");
        assert!(near(&told[2], 3.0, 0.0, 12.0 / 7.0, 7.0 / 3.0), "{told:?}");
        assert!(near(&told[3], 3.0 + 12.0 / 7.0, 0.0, 9.0 / 7.0, 7.0 / 3.0), "{told:?}");
    }

    #[test]
    fn what_has_no_weight_has_no_area() {
        let told = squarified(&[0.0, 2.0, f64::NAN, -1.0, f64::INFINITY, 2.0], WITHIN);
        for index in [0, 2, 3, 4] {
            assert_eq!(told[index].area(), 0.0, "{index}");
        }
        assert!((told[1].area() - WITHIN.area() / 2.0).abs() < 1e-6);
        assert!(squarified(&[], WITHIN).is_empty());
        assert_eq!(squarified(&[0.0], WITHIN)[0].area(), 0.0);
    }

    #[test]
    fn equal_weights_are_near_to_squares() {
        for count in [4, 9, 40, 300] {
            let told = squarified(&vec![7.0; count], WITHIN);
            let worst = told.iter().map(|rect| (rect.width / rect.height).max(rect.height / rect.width));
            let worst = worst.fold(0.0, f64::max);
            assert!(worst < 3.0, "{count}: {worst}");
        }
    }

    prop_compose! {
        /// Weights of samples, and of exact costs: from one to more than fifty bits, some of them none.
        fn any_weights()(
            weights in prop::collection::vec((0_u32..50, 1.0..2.0_f64, prop::bool::weighted(0.9)), 0..120),
        ) -> Vec<f64> {
            let one = |(bits, part, is_some): (u32, f64, bool)| {
                if is_some { (part * f64::from(bits).exp2()).floor() } else { 0.0 }
            };
            weights.into_iter().map(one).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn areas_are_as_the_weights(weights in any_weights()) {
            let total: f64 = weights.iter().sum();
            for (weight, rect) in weights.iter().zip(squarified(&weights, WITHIN)) {
                let wanted = if *weight > 0.0 { weight / total * WITHIN.area() } else { 0.0 };
                prop_assert!((rect.area() - wanted).abs() <= 1e-9 * wanted, "{}: {:?}", weight, rect);
            }
        }

        #[test]
        fn every_rectangle_lies_inside_and_over_no_other(weights in any_weights()) {
            let told = squarified(&weights, WITHIN);
            let slack = 1e-9 * WITHIN.width;
            for (index, one) in told.iter().enumerate() {
                prop_assert!(one.left >= WITHIN.left - slack && one.top >= WITHIN.top - slack, "{:?}", one);
                prop_assert!(one.left + one.width <= WITHIN.left + WITHIN.width + slack, "{:?}", one);
                prop_assert!(one.top + one.height <= WITHIN.top + WITHIN.height + slack, "{:?}", one);
                for other in &told[..index] {
                    let across = (one.left + one.width).min(other.left + other.width) - one.left.max(other.left);
                    let down = (one.top + one.height).min(other.top + other.height) - one.top.max(other.top);
                    prop_assert!(across <= slack || down <= slack, "{:?} {:?}", one, other);
                }
            }
        }
    }
}
