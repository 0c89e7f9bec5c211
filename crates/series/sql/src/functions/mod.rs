//! Functions that SQL does not have: `xbar`, `time_bucket`, `ema`, `vwap`, and some that others have.

mod bucket;
mod ema;
mod extreme;
mod int_div;
mod vwap;
mod zone;

use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

pub(crate) use bucket::{Bucket, units_of, width_of};
pub(crate) use ema::{EmaFunction, average_of};
pub(crate) use int_div::INT_DIV;
pub(crate) use vwap::VwapFunction;

/// Functions of single rows.
pub(crate) fn scalar() -> Vec<Arc<ScalarUDF>> {
    let buckets = [Bucket::xbar(), Bucket::time_bucket(), Bucket::time_bucket_gapfill()];
    let mut functions = buckets.map(|function| Arc::new(ScalarUDF::from(function))).to_vec();
    functions.push(Arc::new(ScalarUDF::from(int_div::IntDiv::new())));
    functions
}

/// Functions of groups.
pub(crate) fn aggregate() -> Vec<Arc<AggregateUDF>> {
    let mut functions = extreme::functions();
    functions.push(Arc::new(AggregateUDF::from(VwapFunction::new())));
    functions
}

/// Functions of windows.
pub(crate) fn window() -> Vec<Arc<WindowUDF>> {
    vec![Arc::new(WindowUDF::from(EmaFunction::new()))]
}
