//! Moving aggregates over a number of rows.
//!
//! Over a span of time they are a [`WindowJoin`] of a series with itself: rows of one time then see each
//! other, as peers do in SQL. Over rows it is the same join, with row numbers in place of times.

use crate::{Crew, Isa, KernelError, Times, WindowColumns, WindowJoin};

/// Aggregates of each row and the rows before it, a fixed number in all; fewer at the begin of the series.
#[derive(Debug)]
pub struct MovingRows {
    join: WindowJoin,
    numbers: Vec<i64>,
}

impl MovingRows {
    /// Windows of `rows` rows, the current one included.
    ///
    /// # Errors
    /// [`KernelError::Parameter`] when that is none, or more than 2^62.
    pub fn new(rows: usize) -> Result<Self, KernelError> {
        let is_allowed = rows > 0 && rows <= 1 << 62;
        KernelError::check_parameter("window rows", rows, is_allowed, "1 to 2^62")?;
        Ok(Self { join: WindowJoin::new(1 - rows as i64, 0)?, numbers: Vec::new() })
    }

    /// Uses these instructions.
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.join = self.join.with_isa(isa);
        self
    }

    /// Writes what is wanted of each row's window; the rows are shared out among a crew.
    ///
    /// # Errors
    /// As [`WindowJoin::run`].
    pub fn run(
        &mut self,
        crew: &mut Crew,
        values: &[f64],
        out: WindowColumns<'_>,
    ) -> Result<(), KernelError> {
        self.numbers.extend(self.numbers.len() as i64..values.len() as i64);
        let numbers = Times::new(&self.numbers[..values.len()])?;
        self.join.run_on(crew, numbers, numbers, values, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, column, crews, magnitude};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_the_window_of_every_row(values in column(120), rows in 1usize..60) {
            for isa in Isa::all() {
                let mut moving = MovingRows::new(rows).unwrap().with_isa(isa);
                for crew in &mut crews() {
                    let [mut avg, mut min, mut max] = [(); 3].map(|()| vec![7.0; values.len()]);
                    let (avg_out, min_out, max_out) = (Some(&mut avg[..]), Some(&mut min[..]), Some(&mut max[..]));
                    let out = WindowColumns { avg: avg_out, min: min_out, max: max_out, ..Default::default() };
                    moving.run(crew, &values, out).unwrap();
                    for row in 0..values.len() {
                        let window = &values[(row + 1).saturating_sub(rows)..=row];
                        let known: Vec<f64> = window.iter().copied().filter(|value| !value.is_nan()).collect();
                        let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
                        assert_close(avg[row], known.iter().sum::<f64>() / known.len() as f64, magnitude(&known));
                        assert_close(min[row], or_nan(known.iter().copied().reduce(f64::min)), 0.0);
                        assert_close(max[row], or_nan(known.iter().copied().reduce(f64::max)), 0.0);
                    }
                }
            }
        }
    }

    #[test]
    fn refuses_a_window_of_nothing() {
        assert!(matches!(MovingRows::new(0), Err(KernelError::Parameter { name: "window rows", .. })));
    }
}
