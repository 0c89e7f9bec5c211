//! Memory of answers that are let go of, kept for those that follow.
//!
//! The kernel hands out a page by filling it with zeros. For a column of a million rows that is 2000 times, and takes
//! longer than a kernel needs to write the column. So columns of some size come back here when nobody has a share in
//! them any more, and the next answer is written over them. What is kept is bounded, and the oldest goes first.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use datafusion::arrow::buffer::{Buffer, ScalarBuffer};
use datafusion::arrow::datatypes::{ArrowNativeType, ToByteSlice};

/// Smaller columns are left to the allocator, which keeps such by itself.
const COLUMN_BYTES_MIN: usize = 1 << 17;
/// What is kept of each kind of cells.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Columns of one kind that nobody has a share in, the oldest first.
#[derive(Debug)]
pub(crate) struct Shelf<T>(Mutex<Vec<Vec<T>>>);

impl<T> Shelf<T> {
    fn lock(&self) -> MutexGuard<'_, Vec<Vec<T>>> {
        // A list of columns is whole after each step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cells that columns are kept of.
pub(crate) trait Cell: ArrowNativeType {
    /// Where they are kept.
    fn shelf() -> &'static Shelf<Self>;
}

macro_rules! cells {
    ($($cell:ty)*) => { $(
        impl Cell for $cell {
            fn shelf() -> &'static Shelf<Self> {
                static SHELF: Shelf<$cell> = Shelf(Mutex::new(Vec::new()));
                &SHELF
            }
        }
    )* };
}

cells!(i64 u64 f64 u32);

/// A column that is written once, and then shared.
#[derive(Debug)]
pub(crate) struct Spare<T: Cell> {
    /// All that was ever written, so that none of it need be filled again.
    cells: Vec<T>,
    rows: usize,
}

impl<T: Cell> Spare<T> {
    /// A column of so many rows, with anything in them.
    pub(crate) fn of(rows: usize) -> Self {
        let mut shelf = T::shelf().lock();
        // Not one that is much too large: it would be missing where it is needed.
        let fits = |(_, cells): &(usize, &Vec<T>)| cells.len() >= rows && cells.len() / 4 <= rows;
        let best = shelf.iter().enumerate().filter(fits).min_by_key(|(_, cells)| cells.len());
        let cells = best.map(|(index, _)| index).map(|index| shelf.remove(index));
        drop(shelf);
        Self { cells: cells.unwrap_or_else(|| vec![T::default(); rows]), rows }
    }

    /// The same with a value in each row.
    pub(crate) fn filled(rows: usize, value: T) -> Self {
        let mut column = Self::of(rows);
        column.fill(value);
        column
    }
}

impl<T: Cell> Deref for Spare<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.cells[..self.rows]
    }
}

impl<T: Cell> DerefMut for Spare<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.cells[..self.rows]
    }
}

impl<T: Cell> AsRef<[u8]> for Spare<T> {
    fn as_ref(&self) -> &[u8] {
        (**self).to_byte_slice()
    }
}

impl<T: Cell> From<Spare<T>> for ScalarBuffer<T> {
    fn from(column: Spare<T>) -> Self {
        let rows = column.rows;
        Self::new(Buffer::from(Bytes::from_owner(column)), 0, rows)
    }
}

impl<T: Cell> Drop for Spare<T> {
    fn drop(&mut self) {
        let bytes = |cells: &Vec<T>| size_of_val(cells.as_slice());
        if !(COLUMN_BYTES_MIN..=KEPT_BYTES_MAX).contains(&bytes(&self.cells)) {
            return;
        }
        let mut shelf = T::shelf().lock();
        shelf.push(std::mem::take(&mut self.cells));
        let (mut kept, mut first) = (0, shelf.len());
        while first > 0 && kept + bytes(&shelf[first - 1]) <= KEPT_BYTES_MAX {
            first -= 1;
            kept += bytes(&shelf[first]);
        }
        let oldest: Vec<Vec<T>> = shelf.drain(..first).collect();
        drop(shelf);
        // Without the lock: the kernel takes its time to take them back.
        drop(oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Float64Array;

    #[test]
    fn a_column_comes_back_when_nobody_has_a_share_in_it() {
        let rows = COLUMN_BYTES_MIN;
        let mut column = Spare::<f64>::filled(rows, 2.5);
        column[1] = 1.0;
        let place = column.as_ptr();
        let array = Float64Array::new(column.into(), None);
        assert_eq!((array.value(0), array.value(1), array.len()), (2.5, 1.0, rows));
        let part = array.slice(3, 4);
        drop(array);
        let other = Spare::<f64>::of(rows);
        assert_ne!(other.as_ptr(), place);
        drop(part);
        // Of those that are kept the smallest one that is large enough is taken.
        let again = [Spare::<f64>::of(rows - 7), Spare::<f64>::of(rows)];
        assert!(again.iter().any(|column| column.as_ptr() == place));
        assert_eq!((again[0].len(), again[0].as_ref().len()), (rows - 7, 8 * (rows - 7)));
    }

    #[test]
    fn no_more_is_kept_than_is_said_and_small_columns_are_not() {
        let rows = KEPT_BYTES_MAX / 4 / size_of::<u32>();
        drop((0..6).map(|_| Spare::<u32>::of(rows)).collect::<Vec<_>>());
        let kept = || u32::shelf().lock().iter().map(|cells| 4 * cells.len()).sum::<usize>();
        assert!(kept() <= KEPT_BYTES_MAX, "{}", kept());
        let before = u32::shelf().lock().len();
        drop(Spare::<u32>::filled(COLUMN_BYTES_MIN / 8, 1));
        assert_eq!(u32::shelf().lock().len(), before);
        assert_eq!(Spare::<u32>::of(0).as_ref(), [0u8; 0]);
    }
}
