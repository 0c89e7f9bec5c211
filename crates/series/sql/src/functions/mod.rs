//! Functions that SQL does not have: `xbar`, `time_bucket`, `ema`, `vwap`.

mod bucket;
mod ema;
mod vwap;
mod zone;

use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

pub(crate) use bucket::{Bucket, units_of, width_of};
pub(crate) use ema::{EmaFunction, average_of};
pub(crate) use vwap::VwapFunction;

/// Functions of single rows.
pub(crate) fn scalar() -> Vec<Arc<ScalarUDF>> {
    [Bucket::xbar(), Bucket::time_bucket()].map(|function| Arc::new(ScalarUDF::from(function))).to_vec()
}

/// Functions of groups.
pub(crate) fn aggregate() -> Vec<Arc<AggregateUDF>> {
    vec![Arc::new(AggregateUDF::from(VwapFunction::new()))]
}

/// Functions of windows.
pub(crate) fn window() -> Vec<Arc<WindowUDF>> {
    vec![Arc::new(WindowUDF::from(EmaFunction::new()))]
}
