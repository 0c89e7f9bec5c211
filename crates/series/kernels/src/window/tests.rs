use super::*;
use crate::testing::{assert_close, crews, magnitude, null_or_value, sorted_times};
use proptest::prelude::*;

/// All seven results of a join.
#[derive(Default)]
struct All {
    floats: [Vec<f64>; 6],
    count: Vec<u64>,
}

impl All {
    fn of(rows: usize, join: impl FnOnce(WindowColumns<'_>)) -> Self {
        let mut all = Self { floats: std::array::from_fn(|_| vec![9.0; rows]), count: vec![9; rows] };
        let [sum, avg, min, max, first, last] = &mut all.floats;
        join(WindowColumns {
            sum: Some(sum),
            avg: Some(avg),
            min: Some(min),
            max: Some(max),
            first: Some(first),
            last: Some(last),
            count: Some(&mut all.count),
        });
        all
    }

    /// Compares with the nested loop; `is_inside` says which right rows a left row sees.
    #[track_caller]
    fn check(&self, values: &[f64], is_inside: impl Fn(usize, usize) -> bool) {
        for (left, &count) in self.count.iter().enumerate() {
            let inside = (0..values.len()).filter(|&right| is_inside(left, right));
            let known: Vec<f64> = inside.map(|row| values[row]).filter(|value| !value.is_nan()).collect();
            let scale = magnitude(&known);
            let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
            let sum: f64 = known.iter().sum();
            assert_eq!(count, known.len() as u64);
            let [got_sum, avg, min, max, first, last] = self.floats.each_ref().map(|column| column[left]);
            assert_close(got_sum, sum, scale);
            assert_close(avg, sum / known.len() as f64, scale);
            assert_close(min, or_nan(known.iter().copied().reduce(f64::min)), 0.0);
            assert_close(max, or_nan(known.iter().copied().reduce(f64::max)), 0.0);
            assert_close(first, or_nan(known.first().copied()), 0.0);
            assert_close(last, or_nan(known.last().copied()), 0.0);
        }
    }
}

fn check_against_naive(left: &[i64], right: &[i64], values: &[f64], from: i64, to: i64) {
    let (left_times, right_times) = (Times::new(left).unwrap(), Times::new(right).unwrap());
    let is_inside = |row: usize, other: usize| {
        (left[row].saturating_add(from)..=left[row].saturating_add(to)).contains(&right[other])
    };
    for isa in Isa::all() {
        let mut join = WindowJoin::new(from, to).unwrap().with_isa(isa);
        for _again in 0..2 {
            let got = All::of(left.len(), |out| join.run(left_times, right_times, values, out).unwrap());
            got.check(values, is_inside);
        }
        for crew in &mut crews() {
            let run =
                |out: WindowColumns<'_>| join.run_on(crew, left_times, right_times, values, out).unwrap();
            All::of(left.len(), run).check(values, is_inside);
        }
    }
}

fn climb(begin: i64, steps: &[i64]) -> Vec<i64> {
    let climb = |time: &mut i64, step: &i64| {
        *time += step;
        Some(*time)
    };
    steps.iter().scan(begin, climb).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn equals_the_nested_loop(
        left in sorted_times(40), right in sorted_times(150),
        values in prop::collection::vec(null_or_value(), 150), from in -20i64..20, span in 0i64..30,
    ) {
        check_against_naive(&left, &right, &values[..right.len()], from, from + span);
    }

    /// Dense rows, so that windows are long and short in turn and both ways of adding up are crossed.
    #[test]
    fn equals_the_nested_loop_on_bursts(
        steps in prop::collection::vec(0i64..3, 1..300), skip in prop::collection::vec(0i64..9, 1..60),
        values in prop::collection::vec(null_or_value(), 300), nulls in any::<bool>(),
        from in -30i64..10, span in 0i64..60,
    ) {
        let (left, right) = (climb(-50, &skip), climb(-50, &steps));
        let known = |value: &f64| if value.is_nan() && !nulls { 0.5 } else { *value };
        let values: Vec<f64> = values.iter().take(right.len()).map(known).collect();
        check_against_naive(&left, &right, &values, from, from + span);
    }

    #[test]
    fn by_key_equals_the_nested_loop_either_way(
        steps in prop::collection::vec(0i64..3, 0..300), skip in prop::collection::vec(0i64..9, 0..60),
        cells in prop::collection::vec((null_or_value(), 0u32..5), 300), key_count in 5usize..7,
        from in -30i64..10, span in 0i64..60,
    ) {
        let (left, right) = (climb(-50, &skip), climb(-50, &steps));
        let values: Vec<f64> = cells.iter().take(right.len()).map(|cell| cell.0).collect();
        let keys: Vec<u32> = cells.iter().map(|cell| cell.1).collect();
        let (left_keys, right_keys) = (&keys[..left.len()], &keys[keys.len() - right.len()..]);
        let side = |times, keys| (Times::new(times).unwrap(), Keys::new(keys, key_count).unwrap());
        let (left_side, right_side) = (side(&left, left_keys), side(&right, right_keys));
        let is_inside = |row: usize, other: usize| {
            let is_near = (left[row] + from..=left[row] + from + span).contains(&right[other]);
            is_near && left_keys[row] == right_keys[other]
        };
        for isa in Isa::all() {
            let mut join = WindowJoin::new(from, from + span).unwrap().with_isa(isa);
            for crew in &mut crews() {
                let swept = All::of(left.len(), |out| {
                    join.run_by_key(crew, left_side, right_side, &values, out).unwrap();
                });
                swept.check(&values, is_inside);
                let sorted = All::of(left.len(), |mut out| {
                    join.sorted(crew, left_side, right_side, &values, &mut out).unwrap();
                });
                sorted.check(&values, is_inside);
            }
        }
    }
}

#[test]
fn many_rows_in_a_window_are_sorted_by_key() {
    let times: Vec<i64> = (0..3000).collect();
    let keys: Vec<u32> = (0..3000).map(|row| row * 7 % 3).collect();
    let values: Vec<f64> = (0..3000).map(f64::from).collect();
    let side = (Times::new(&times).unwrap(), Keys::new(&keys, 3).unwrap());
    let mut join = WindowJoin::new(-400, 400).unwrap();
    assert!(join.rows_per_window(side.0, side.0) > SWEEP_ROWS);
    for crew in &mut crews() {
        let mut count = vec![0; 3000];
        let out = WindowColumns { count: Some(&mut count), ..WindowColumns::default() };
        join.run_by_key(crew, side, side, &values, out).unwrap();
        assert_eq!((count[1500], count[0]), (267, 134));
    }
}

#[test]
fn one_huge_value_does_not_spoil_the_windows_after_it() {
    let right: Vec<i64> = (0..200).collect();
    let times = Times::new(&right).unwrap();
    let mut values = vec![0.1; 200];
    values[10] = 1e300;
    values[11] = f64::INFINITY;
    let mut join = WindowJoin::new(-40, 0).unwrap();
    let got = All::of(200, |out| join.run(times, times, &values, out).unwrap());
    assert!((got.floats[0][100] - 4.1).abs() < 1e-12);
    let mut join = WindowJoin::new(-20, 0).unwrap();
    let got = All::of(200, |out| join.run(times, times, &values, out).unwrap());
    assert!((got.floats[0][150] - 2.1).abs() < 1e-12);
    assert_eq!(got.floats[0][15], f64::INFINITY);
}

#[test]
fn nothing_on_either_side() {
    check_against_naive(&[], &[1], &[1.0], -5, 5);
    check_against_naive(&[3], &[], &[], -5, 5);
    check_against_naive(&[3, 4], &[3], &[f64::NAN], -5, 5);
}

#[test]
fn windows_stop_at_the_ends_of_time() {
    let ends = [i64::MIN, i64::MAX];
    check_against_naive(&ends, &ends, &[1.0, 2.0], -i64::MAX, i64::MAX);
    check_against_naive(&ends, &ends, &[1.0, 2.0], i64::MIN, -1);
    check_against_naive(&ends, &ends, &[1.0, 2.0], 1, i64::MAX);
}

#[test]
fn room_is_made_once() {
    let right: Vec<i64> = (0..100).collect();
    let times = Times::new(&right).unwrap();
    let mut join = WindowJoin::new(-30, 0).unwrap().with_window_rows(31);
    let room = join.scratch[0].suffixes.capacity();
    let mut sum = [0.0; 100];
    for value in [1.0, 2.0] {
        let out = WindowColumns { sum: Some(&mut sum), ..WindowColumns::default() };
        join.run(times, times, &[value; 100], out).unwrap();
    }
    assert_eq!((sum[0], sum[99]), (2.0, 62.0));
    assert_eq!(join.scratch[0].suffixes.capacity(), room);
}

#[test]
fn refuses_what_it_cannot_answer() {
    assert!(matches!(WindowJoin::new(1, 0), Err(KernelError::Parameter { name: "window end", .. })));
    let times = Times::new(&[1, 2]).unwrap();
    let mut join = WindowJoin::new(0, 0).unwrap();
    let wrong = join.run(times, times, &[1.0], WindowColumns::default());
    assert_eq!(wrong, Err(KernelError::Length { column: "value", want: 2, got: 1 }));
    let mut short = [0.0];
    let out = WindowColumns { max: Some(&mut short), ..WindowColumns::default() };
    let wrong = join.run(times, times, &[1.0, 2.0], out);
    assert_eq!(wrong, Err(KernelError::Length { column: "max", want: 2, got: 1 }));
}

/// More rows than borders are found for at once; blocks of short windows alone, of long ones, and of both.
#[test]
fn blocks_of_rows_are_joined_at_their_seams() {
    let left: Vec<i64> = (0..2 * BORDER_ROWS as i64 + 77).map(|row| row * 3).collect();
    let dense = |time: i64| if (time / 4096) % 3 == 1 { 1 } else { 4 };
    let right: Vec<i64> = std::iter::successors(Some(-9), |time| Some(time + dense(*time)))
        .take_while(|time| *time < 3 * left.len() as i64)
        .collect();
    for nulls in [false, true] {
        let value = |row: usize| if nulls && row.is_multiple_of(50) { f64::NAN } else { (row % 1000) as f64 };
        let values: Vec<f64> = (0..right.len()).map(value).collect();
        let times = (Times::new(&left).unwrap(), Times::new(&right).unwrap());
        for isa in Isa::all() {
            let mut join = WindowJoin::new(-20, 15).unwrap().with_isa(isa);
            let got = All::of(left.len(), |out| join.run(times.0, times.1, &values, out).unwrap());
            for (row, &time) in left.iter().enumerate() {
                let low = right.partition_point(|&other| other < time - 20);
                let high = right.partition_point(|&other| other <= time + 15);
                let known: Vec<f64> =
                    values[low..high].iter().copied().filter(|value| !value.is_nan()).collect();
                let highest = known.iter().copied().fold(f64::NAN, f64::max);
                assert_eq!((got.count[row], got.floats[0][row]), (known.len() as u64, known.iter().sum()));
                assert_close(got.floats[3][row], highest, 0.0);
                assert_close(got.floats[4][row], known.first().copied().unwrap_or(f64::NAN), 0.0);
            }
        }
    }
}
