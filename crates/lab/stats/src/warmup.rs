//! Where a start becomes steady: change-points of its windows, and what all starts have in common.
//!
//! Fewer than half of the pairs of virtual machine and benchmark that Barrett et al. looked at became steady as
//! everyone assumes (OOPSLA 2017), so a warm-up is looked for and never assumed. Each start is told apart into pieces
//! of one level by optimal partitioning (Jackson et al. 2005; PELT of Killick, Fearnhead and Eckley 2012 is the same
//! program with pruning, which a few hundred windows do not need), by the absolute deviations from the median of each
//! piece, so that a spike buys no piece. A straight line (Theil-Sen) competes with the pieces: what drifts has no
//! warm-up, however well a staircase fits it.
//!
//! ```text
//!   cost   ▇▇▅▃▂▂▁▂▁▁▂▁▁▂▁▁        pieces: |▇▇|▅▃|▂▂▁▂▁▁▂▁▁▂▁▁|
//!                ^ steady from here: the first piece whose level is that of all later ones
//! ```
//!
//! Levels of one start also change for what the machine does, so a warm-up of a phase is only what its starts share:
//! their first windows must lie on the same side of what follows more often than coins would (a sign test, exact
//! whatever the noise looks like as long as it does not know how old the start is). Then the 90th percentile of the
//! lengths is what is cut, of both arms alike.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};

use crate::error::{StatsError, positive};
use crate::summary::{median, quantile};

/// Fewest windows in which a warm-up can be told from noise and from drift.
pub const WINDOWS_MIN: usize = 16;

/// Share of the starts whose warm-up the cut must hold.
pub const CUT_SHARE: f64 = 0.90;

/// Two-sided error of the sign test: one false warm-up in a hundred phases.
pub const SHARED_LEVEL: f64 = 0.01;

/// Share of the starts that must show a warm-up each by itself: a slow drift that all share looks like one in a few.
const COMMON_SHARE: f64 = 1.0 / 3.0;

/// Levels that differ by less are one, on the scale of logs: half of the smallest gain that anyone asks for.
const TRIFLE: f64 = 0.0025;

/// Windows that are looked at one by one; more are first put together in groups of equal size.
const POINTS_MAX: usize = 200;

/// Windows of a piece at least, so that one or two odd ones in a row make none. The first piece may be one window:
/// many programs are slow in their first slice only.
const PIECE_MIN: usize = 4;

/// Price of one more piece, in units of the deviance: a fixed part, since the scale itself is an estimate, and one that
/// grows with the log of the number of windows, as there are more places for it.
const PRICE: f64 = 6.0;
const PRICE_PER_LOG: f64 = 2.5;

/// Price of a slope, as a share of that of a piece: it has no place to be chosen.
const SLOPE_SHARE: f64 = 0.5;

/// Costs that differ by a smaller share than this are the same, but for rounding.
const TIE: f64 = 1e-9;

/// How the windows of one start went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "course")]
pub enum Course {
    /// One level from the first window on.
    Level,
    /// A warm-up, and then one level for at least half of the windows.
    Steady {
        /// Windows before it.
        from: usize,
    },
    /// The last level is reached in the second half only, or there is none: it drifts.
    Unsteady,
}

/// What a phase says of the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Starts are level from their first window on.
    None,
    /// There is one, and it can be cut.
    Found,
    /// Levels change within starts, but not alike in all of them: that is the machine, and nothing is cut.
    Unshared,
    /// Most starts never become steady, and all of them alike: nothing that is cut would help.
    NeverSteady,
}

/// The warm-up of a phase of starts that are alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WarmUp {
    /// What is concluded.
    pub finding: Finding,
    /// Windows to be cut from each start: 0 unless it was found.
    pub cut: usize,
    /// Each start, in the order given.
    pub courses: Vec<Course>,
    /// Probability that coins put the first windows of so many starts on one side; 1 where no start changes.
    pub p: f64,
}

impl WarmUp {
    /// Looks at the windows of several starts; all have the same number of them, oldest first, each above zero.
    ///
    /// # Errors
    /// [`StatsError::TooFewWindows`] below [`WINDOWS_MIN`], [`StatsError::Length`] when starts differ in their number,
    /// [`StatsError::NotPositive`] or [`StatsError::NotFinite`] for a window without a logarithm.
    pub fn of(starts: &[Vec<f64>]) -> Result<WarmUp, StatsError> {
        let wanted = starts.first().map_or(0, Vec::len);
        if let Some(odd) = starts.iter().find(|windows| windows.len() != wanted) {
            return Err(StatsError::Length { what: "windows of a start", given: odd.len(), wanted });
        }
        let courses = starts.iter().map(|windows| course(windows)).collect::<Result<Vec<_>, _>>()?;
        let unsteady = courses.iter().filter(|course| **course == Course::Unsteady).count();
        let lengths: Vec<f64> = courses.iter().filter_map(|course| course.length()).collect();
        if courses.is_empty() || lengths.iter().all(|length| *length == 0.0) && unsteady == 0 {
            return Ok(WarmUp { finding: Finding::None, cut: 0, courses, p: 1.0 });
        }
        if 2 * unsteady > courses.len() {
            let p = shared(starts, wanted / 2);
            let finding = if p <= SHARED_LEVEL { Finding::NeverSteady } else { Finding::Unshared };
            return Ok(WarmUp { finding, cut: 0, courses, p });
        }
        // Between two starts the longer one counts: a share of the starts must be warm by then.
        let cut = quantile(&lengths, CUT_SHARE).ceil() as usize;
        if cut == 0 {
            return Ok(WarmUp { finding: Finding::None, cut: 0, courses, p: 1.0 });
        }
        let p = shared(starts, cut);
        let with_one = lengths.iter().filter(|length| **length > 0.0).count();
        let is_found = p <= SHARED_LEVEL && with_one as f64 >= COMMON_SHARE * courses.len() as f64;
        let finding = if is_found { Finding::Found } else { Finding::Unshared };
        Ok(WarmUp { finding, cut: if is_found { cut } else { 0 }, courses, p })
    }

    /// Share of the starts that never became steady.
    pub fn unsteady_share(&self) -> f64 {
        let unsteady = self.courses.iter().filter(|course| **course == Course::Unsteady).count();
        unsteady as f64 / self.courses.len().max(1) as f64
    }
}

impl Course {
    /// Windows before it became steady; none where it never did.
    pub fn length(self) -> Option<f64> {
        match self {
            Course::Level => Some(0.0),
            Course::Steady { from } => Some(from as f64),
            Course::Unsteady => None,
        }
    }
}

/// How the windows of one start went, oldest first, each above zero.
///
/// # Errors
/// As [`WarmUp::of`].
pub fn course(windows: &[f64]) -> Result<Course, StatsError> {
    if windows.len() < WINDOWS_MIN {
        return Err(StatsError::TooFewWindows { windows: windows.len(), needed: WINDOWS_MIN });
    }
    let logs =
        windows.iter().map(|&value| Ok(positive("window", value)?.ln())).collect::<Result<Vec<_>, _>>()?;
    let group = logs.len().div_ceil(POINTS_MAX);
    let points: Vec<f64> = logs.chunks(group).map(median).collect();
    let scale = scale(&points);
    let pieces = Pieces::best(&points, scale);
    if pieces.ends.len() == 1 {
        return Ok(Course::Level);
    }
    if line_deviance(&points, scale) + SLOPE_SHARE * price(points.len()) <= pieces.deviance {
        return Ok(Course::Unsteady);
    }
    let from = group * pieces.steady_from(&points);
    Ok(match from {
        0 => Course::Level,
        _ if 2 * from > logs.len() => Course::Unsteady,
        from => Course::Steady { from },
    })
}

/// Probability that fair coins put the first windows of the starts on one side of their rest as often as here.
///
/// The median of an odd number of windows lies above the middle of their distribution exactly as often as below it,
/// however skewed that is; so it is one window, or three.
fn shared(starts: &[Vec<f64>], cut: usize) -> f64 {
    let first = if cut < 3 { 1 } else { 3 };
    let sides: Vec<bool> = starts
        .iter()
        .map(|windows| median(&windows[..first]) - median(&windows[cut..]))
        .filter(|difference| *difference != 0.0)
        .map(|difference| difference > 0.0)
        .collect();
    let above = sides.iter().filter(|side| **side).count();
    let more = above.max(sides.len() - above) as u64;
    if more == 0 {
        return 1.0;
    }
    let coins = Binomial::new(0.5, sides.len() as u64).expect("a coin is fair");
    (2.0 * coins.sf(more - 1)).min(1.0)
}

/// Noise of single windows, from the differences of neighbours: neither steps nor drift move their median.
fn scale(points: &[f64]) -> f64 {
    let differences: Vec<f64> = points.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    // Windows that never differ, such as those of a counter, would make every bit a change.
    (1.4826 * median(&differences) / 2f64.sqrt()).max(TRIFLE / 2.0)
}

/// What one more piece must save.
fn price(points: usize) -> f64 {
    PRICE + PRICE_PER_LOG * (points as f64).ln()
}

/// Twice the negative log likelihood of deviations of this sum, of a Laplace distribution as wide as a normal one of
/// this scale.
fn deviance(sum: f64, scale: f64) -> f64 {
    2.0 * sum / (scale * (2.0 / std::f64::consts::PI).sqrt())
}

/// A partition into pieces of one level.
struct Pieces {
    /// The end of each piece, exclusive; the last one is the number of windows.
    ends: Vec<usize>,
    /// With the price of all pieces but the first.
    deviance: f64,
}

impl Pieces {
    /// The cheapest partition: for each end the cheapest begin of its last piece, from short ends to long ones.
    fn best(points: &[f64], scale: f64) -> Pieces {
        let count = points.len();
        let price = price(count);
        // Cheapest partition of the windows before each end, and where its last piece begins.
        let mut cheapest = vec![f64::INFINITY; count + 1];
        let mut begins = vec![0; count + 1];
        cheapest[0] = -price;
        for begin in 0..count {
            if !cheapest[begin].is_finite() {
                continue;
            }
            for (end, sum) in (begin + 1..).zip(deviations(&points[begin..])) {
                if begin > 0 && end - begin < PIECE_MIN {
                    continue;
                }
                let cost = cheapest[begin] + deviance(sum, scale) + price;
                // A window between two levels often costs the same in either piece, up to the last bit; it goes to
                // the later one then, or the unit of the metric would decide.
                if cost < cheapest[end] - TIE * cost.abs() {
                    (cheapest[end], begins[end]) = (cost, begin);
                }
            }
        }
        let mut ends = vec![count];
        while begins[ends[0]] > 0 {
            ends.insert(0, begins[ends[0]]);
        }
        Pieces { ends, deviance: cheapest[count] }
    }

    /// The begin of the first piece whose level is that of all later ones.
    fn steady_from(&self, points: &[f64]) -> usize {
        let begins: Vec<usize> =
            std::iter::once(0).chain(self.ends.iter().copied()).take(self.ends.len()).collect();
        let level = |piece: usize| median(&points[begins[piece]..self.ends[piece]]);
        let last = level(self.ends.len() - 1);
        let others = (0..self.ends.len()).rev();
        let steady = others.take_while(|&piece| (level(piece) - last).abs() < TRIFLE).last();
        steady.map_or(0, |piece| begins[piece])
    }
}

/// Sums of the absolute deviations from the median, of the first one, two, three ... points.
fn deviations(points: &[f64]) -> impl Iterator<Item = f64> {
    let mut sorted: Vec<f64> = Vec::with_capacity(points.len());
    points.iter().map(move |&point| {
        let place = sorted.partition_point(|&other| other < point);
        sorted.insert(place, point);
        // The upper half less the lower half; a middle one counts for neither.
        let half = sorted.len() / 2;
        let upper: f64 = sorted[sorted.len() - half..].iter().sum();
        upper - sorted[..half].iter().sum::<f64>()
    })
}

/// Deviance from the straight line through the points: the median of all slopes between two of them, and the median
/// of what is left (Theil 1950, Sen 1968).
fn line_deviance(points: &[f64], scale: f64) -> f64 {
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (index, first) in points.iter().enumerate() {
        slopes
            .extend((index + 1..points.len()).map(|other| (points[other] - first) / (other - index) as f64));
    }
    let slope = median(&slopes);
    let left: Vec<f64> =
        points.iter().enumerate().map(|(place, point)| point - slope * place as f64).collect();
    let middle = median(&left);
    deviance(left.iter().map(|point| (point - middle).abs()).sum(), scale)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Rng;

    /// Windows with 1 % of noise on a course in logs.
    fn windows(seed: u64, count: usize, log: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..count).map(|place| 50.0 * (0.01 * rng.normal() + log(place)).exp()).collect()
    }

    fn courses(reps: u64, count: usize, log: impl Fn(usize) -> f64) -> Vec<Course> {
        (0..reps).map(|seed| course(&windows(seed, count, &log)).expect("enough windows")).collect()
    }

    fn share(courses: &[Course], of: impl Fn(&Course) -> bool) -> f64 {
        courses.iter().filter(|course| of(course)).count() as f64 / courses.len() as f64
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        for (count, at, size) in
            [(16, 1, 0.15), (20, 5, 0.08), (40, 3, 0.08), (40, 17, 0.08), (200, 60, 0.05)]
        {
            let found = courses(200, count, |place| if place < at { size } else { 0.0 });
            let near = |course: &Course| matches!(course, Course::Steady { from } if from.abs_diff(at) <= 1);
            assert!(share(&found, near) > 0.93, "{count} {at}: {}", share(&found, near));
        }
    }

    #[test]
    fn a_start_that_becomes_slower_is_warming_up_too() {
        let found = courses(200, 30, |place| if place < 6 { -0.08 } else { 0.0 });
        let near = |course: &Course| matches!(course, Course::Steady { from: 5..=7 });
        assert!(share(&found, near) > 0.93, "{found:?}");
    }

    #[test]
    fn an_exponential_is_cut_where_it_has_sunk_into_the_noise() {
        // 30 % at first, a third of that every four windows: 1 %, the noise of a window, is left after 14.
        let found = courses(200, 60, |place| 0.3 * (-(place as f64) / 4.0).exp());
        let near = |course: &Course| matches!(course, Course::Steady { from: 8..=24 });
        assert!(share(&found, near) > 0.90, "{found:?}");
    }

    #[test]
    fn noise_drift_and_one_spike_are_no_warm_up() {
        let steady = |course: &Course| matches!(course, Course::Steady { .. });
        for count in [16, 24, 60] {
            let level = courses(500, count, |_| 0.0);
            assert!(share(&level, |course| *course != Course::Level) < 0.05, "{count}");
            for end in [0.03, 0.10, 0.50] {
                let drifts = courses(300, count, |place| end * place as f64 / count as f64);
                assert!(share(&drifts, steady) < 0.09, "{count} {end}: {}", share(&drifts, steady));
            }
            for at in [1, 2, count / 4, count / 2, count - 1] {
                let spiky = courses(300, count, |place| if place == at { 0.7 } else { 0.0 });
                let cut_long = |course: &Course| matches!(course, Course::Steady { from } if *from > at + 1);
                assert!(share(&spiky, cut_long) < 0.05, "{count} {at}: {}", share(&spiky, cut_long));
                assert!(at < 3 || share(&spiky, steady) < 0.05, "{count} {at}: {}", share(&spiky, steady));
            }
        }
        let fast = courses(100, 40, |place| 0.5 * place as f64 / 40.0);
        assert!(share(&fast, |course| *course == Course::Unsteady) > 0.95, "{fast:?}");
    }

    #[test]
    fn starts_that_drift_alike_are_no_warm_up_either() {
        for end in [0.03, 0.05, 0.10, 0.30] {
            let cuts =
                (0..40).filter(|&seed| phase(seed, |_, place| end * place as f64 / 24.0).cut > 0).count();
            assert!(cuts <= 2, "{end}: {cuts} of 40");
        }
    }

    #[test]
    fn what_changes_late_never_became_steady() {
        let late = courses(200, 40, |place| if place < 30 { 0.08 } else { 0.0 });
        assert!(share(&late, |course| *course == Course::Unsteady) > 0.95, "{late:?}");
    }

    fn phase(seed: u64, log: impl Fn(usize, usize) -> f64) -> WarmUp {
        let starts: Vec<Vec<f64>> =
            (0..16).map(|start| windows(100 * seed + start as u64, 24, |place| log(start, place))).collect();
        WarmUp::of(&starts).expect("whole starts")
    }

    #[test]
    fn the_cut_holds_nine_starts_of_ten() {
        let length = |start: usize| 2 + start / 3;
        let found = phase(1, |start, place| if place < length(start) { 0.1 } else { 0.0 });
        assert_eq!(found.finding, Finding::Found);
        assert!((6..=7).contains(&found.cut), "{found:?}");
        assert!(found.p < 1e-4 && found.unsteady_share() == 0.0);
    }

    #[test]
    fn levels_that_change_by_the_machine_alone_are_not_cut() {
        // Half of the starts begin slow, half begin fast.
        let found = phase(2, |start, place| match (place < 5, start % 2) {
            (true, 0) => 0.06,
            (true, _) => -0.06,
            _ => 0.0,
        });
        assert_eq!((found.finding, found.cut), (Finding::Unshared, 0), "{found:?}");
        assert!(found.p > 0.5);
    }

    #[test]
    fn a_program_that_never_becomes_steady_is_called_that() {
        let found = phase(3, |_, place| 0.2 * place as f64 / 24.0);
        assert_eq!((found.finding, found.cut), (Finding::NeverSteady, 0));
        assert!(found.unsteady_share() > 0.9);
        let level = phase(4, |_, _| 0.0);
        assert_eq!((level.finding, level.cut), (Finding::None, 0));
    }

    #[test]
    fn starts_that_cannot_be_judged_are_refused() {
        assert!(matches!(course(&[1.0; 15]), Err(StatsError::TooFewWindows { windows: 15, needed: 16 })));
        assert!(matches!(course(&[0.0; 16]), Err(StatsError::NotPositive { .. })));
        assert_eq!(course(&[3.0; 16]), Ok(Course::Level), "a counter does not vary");
        let uneven = [vec![1.0; 16], vec![1.0; 17]];
        assert!(matches!(WarmUp::of(&uneven), Err(StatsError::Length { given: 17, wanted: 16, .. })));
        assert_eq!(WarmUp::of(&[]).map(|found| found.finding), Ok(Finding::None));
    }

    #[test]
    fn a_window_that_costs_the_same_in_either_piece_goes_to_the_later_one() {
        let one = windows(61, 30, |place| if place < 3 { 0.024501250028209957 } else { 0.0 });
        for factor in [1.0, 0.001, 0.3, 7.0, 1000.0] {
            let other: Vec<f64> = one.iter().map(|window| window * factor).collect();
            assert_eq!(course(&other), Ok(Course::Steady { from: 4 }), "in units of {factor}");
        }
    }

    proptest! {
        #[test]
        fn the_unit_of_the_metric_does_not_matter(
            seed in 0..500u64, step in -0.2..0.2f64, at in 1..10usize, factor in 0.001..1000.0f64,
        ) {
            let one = windows(seed, 30, |place| if place < at { step } else { 0.0 });
            let other: Vec<f64> = one.iter().map(|window| window * factor).collect();
            prop_assert_eq!(course(&one), course(&other));
        }

        #[test]
        fn deviations_are_those_from_the_median(points in prop::collection::vec(-1.0..1.0f64, 1..30)) {
            for (count, sum) in (1..).zip(deviations(&points)) {
                let middle = median(&points[..count]);
                let direct: f64 = points[..count].iter().map(|point| (point - middle).abs()).sum();
                prop_assert!((sum - direct).abs() < 1e-9);
            }
        }
    }
}
