//! `xbar`, `time_bucket` and `time_bucket_gapfill`: the start of the bucket that a time lies in.

use std::sync::Arc;

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;

use crate::functions::zone::LocalBuckets;

/// The start of the bucket of a width that a time lies in, floored: times -1 and +1 never share one.
///
/// - `xbar(time, width)`
/// - `time_bucket(width, time)`, `time_bucket(width, time, 'Europe/Berlin')`
/// - `time_bucket_gapfill(width, time)`, `time_bucket_gapfill(width, time, start, finish)`, whose borders are those of
///   what `crate::fill` makes of the groups
///
/// A width is a number in the unit of the time, or an interval without months. The result is of the type of the time.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    kind: Kind,
    signature: Signature,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Xbar,
    TimeBucket,
    Gapfill,
}

impl Bucket {
    pub(crate) fn xbar() -> Self {
        Self { kind: Kind::Xbar, signature: Signature::user_defined(Volatility::Immutable) }
    }

    pub(crate) fn time_bucket() -> Self {
        Self { kind: Kind::TimeBucket, signature: Signature::user_defined(Volatility::Immutable) }
    }

    pub(crate) fn time_bucket_gapfill() -> Self {
        Self { kind: Kind::Gapfill, signature: Signature::user_defined(Volatility::Immutable) }
    }

    /// Whether groups by it are to be filled.
    pub(crate) fn is_gapfill(&self) -> bool {
        self.kind == Kind::Gapfill
    }

    /// Whether buckets are as wide as is said, whatever the clock of a place shows.
    pub(crate) fn is_even(&self, arguments: usize) -> bool {
        arguments == 2 || self.is_gapfill()
    }

    /// Where the time is among the arguments, and where the width.
    pub(crate) fn places(&self) -> (usize, usize) {
        match self.kind {
            Kind::Xbar => (0, 1),
            Kind::TimeBucket | Kind::Gapfill => (1, 0),
        }
    }
}

impl ScalarUDFImpl for Bucket {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Xbar => "xbar",
            Kind::TimeBucket => "time_bucket",
            Kind::Gapfill => "time_bucket_gapfill",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let usage = match self.kind {
            Kind::Xbar => "xbar(time, width)",
            Kind::TimeBucket => "time_bucket(width, time) or time_bucket(width, time, zone)",
            Kind::Gapfill => {
                "time_bucket_gapfill(width, time) or time_bucket_gapfill(width, time, start, finish)"
            }
        };
        let counts: &[usize] = match self.kind {
            Kind::Xbar => &[2],
            Kind::TimeBucket => &[2, 3],
            Kind::Gapfill => &[2, 4],
        };
        if !counts.contains(&types.len()) {
            return plan_err!("{} has {} arguments; write {usage}", self.name(), types.len());
        }
        let (time, width) = self.places();
        let time_type = match &types[time] {
            DataType::Timestamp(..) => types[time].clone(),
            of if of.is_integer() => DataType::Int64,
            of => {
                return plan_err!(
                    "{}: the time is of type {of}, not a timestamp or whole number",
                    self.name()
                );
            }
        };
        let width_type = match &types[width] {
            DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
            of if of.is_integer() => DataType::Int64,
            of => {
                return plan_err!(
                    "{}: the width is of type {of}, not an interval or whole number",
                    self.name()
                );
            }
        };
        let other = if self.is_gapfill() { time_type.clone() } else { DataType::Utf8 };
        let mut wanted = vec![other; types.len()];
        (wanted[time], wanted[width]) = (time_type, width_type);
        Ok(wanted)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[self.places().0].clone())
    }

    /// A border that is null is said by WHERE.
    fn is_strict(&self) -> bool {
        !self.is_gapfill()
    }

    /// Buckets ascend with time, so that groups of them come one after another.
    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        let (time, width) = self.places();
        let is_one = |index: usize| matches!(inputs[index].sort_properties, SortProperties::Singleton);
        // Of local time that is not so: a bucket begins earlier where the clock is set back.
        let is_kept = self.is_even(inputs.len()) && is_one(width);
        Ok(if is_kept { inputs[time].sort_properties } else { SortProperties::Unordered })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (time, width) = self.places();
        let rows = args.number_rows;
        let (ColumnarValue::Scalar(width), times) = (&args.args[width], &args.args[time]) else {
            return exec_err!("{}: the width must be one for all rows", self.name());
        };
        let is_of = times.data_type();
        let Some(width) = width_of(width, &is_of)? else {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(&is_of)?));
        };
        let local = match args.args.get(2).filter(|_| !self.is_gapfill()) {
            None => None,
            Some(ColumnarValue::Scalar(zone)) => match text(zone) {
                None => return Ok(ColumnarValue::Scalar(ScalarValue::try_from(&is_of)?)),
                Some(zone) => Some(local_buckets(zone, width, &is_of)?),
            },
            Some(ColumnarValue::Array(_)) => {
                return exec_err!("{}: the time zone must be one for all rows", self.name());
            }
        };
        let is_scalar = matches!(times, ColumnarValue::Scalar(_));
        let times = times.to_array(if is_scalar { 1 } else { rows })?;
        let starts = starts(&times, width, local)?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&starts, 0)?),
            false => ColumnarValue::Array(starts),
        })
    }
}

fn text(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8(text) => text.as_deref(),
        _ => None,
    }
}

fn local_buckets(zone: &str, width: i64, is_of: &DataType) -> Result<LocalBuckets> {
    let Some(per_second) = per_second(is_of) else {
        return exec_err!("a time zone needs a timestamp; these times are numbers without a unit");
    };
    let zone: Tz = match zone.parse() {
        Ok(zone) => zone,
        Err(_) => return exec_err!("no time zone {zone}; write a name such as Europe/Berlin, or +02:00"),
    };
    Ok(LocalBuckets::new(zone, width, per_second))
}

/// How many of the unit of a type a second has; `None` for numbers.
fn per_second(is_of: &DataType) -> Option<i64> {
    match is_of {
        DataType::Timestamp(TimeUnit::Second, _) => Some(1),
        DataType::Timestamp(TimeUnit::Millisecond, _) => Some(1_000),
        DataType::Timestamp(TimeUnit::Microsecond, _) => Some(1_000_000),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(1_000_000_000),
        _ => None,
    }
}

/// A width in the unit of times of a type; `None` for null.
///
/// # Errors
/// When it is not above 0, has months, is not a whole number of units, or is an interval for times without a unit.
pub(crate) fn width_of(width: &ScalarValue, is_of: &DataType) -> Result<Option<i64>> {
    match units_of(width, is_of)? {
        Some(width) if width <= 0 => exec_err!("a bucket of {width}; a width is above 0"),
        width => Ok(width),
    }
}

/// A span of time in the unit of times of a type; `None` for null.
///
/// # Errors
/// When it has months, is not a whole number of units, or is an interval for times without a unit.
pub(crate) fn units_of(span: &ScalarValue, is_of: &DataType) -> Result<Option<i64>> {
    Ok(match span {
        ScalarValue::Int64(span) => *span,
        ScalarValue::IntervalMonthDayNano(None) => None,
        ScalarValue::IntervalMonthDayNano(Some(interval)) => {
            let (months, days, nanos) = IntervalMonthDayNanoType::to_parts(*interval);
            let Some(per_second) = per_second(is_of) else {
                return exec_err!("an interval for times without a unit; write a number");
            };
            if months != 0 {
                return exec_err!("a span of months, which differ in length; write days, or use date_trunc");
            }
            let nanos = i128::from(days) * 86_400_000_000_000 + i128::from(nanos);
            let nanos_per_unit = 1_000_000_000 / i128::from(per_second);
            if nanos % nanos_per_unit != 0 {
                return exec_err!("a span of {nanos} ns for times in units of {nanos_per_unit} ns");
            }
            Some(i64::try_from(nanos / nanos_per_unit).map_err(|_| {
                DataFusionError::Execution(format!("a span of {nanos} ns, which is too long"))
            })?)
        }
        other => return exec_err!("{other} is not a span of time"),
    })
}

/// The start of the bucket of each time.
fn starts(times: &ArrayRef, width: i64, local: Option<LocalBuckets>) -> Result<ArrayRef> {
    let is_of = times.data_type().clone();
    let numbers = cast(times, &DataType::Int64)?;
    let numbers = numbers.as_primitive::<datafusion::arrow::datatypes::Int64Type>();
    let starts: Int64Array = match local {
        // Where a bucket would begin before the first of all times it begins there, as in the kernels.
        None => numbers.unary(|time| time.saturating_sub(time.rem_euclid(width))),
        Some(local) => numbers.try_unary(|time| {
            let beyond =
                || DataFusionError::Execution(format!("{time} is beyond the years that time zones know"));
            local.start(time).ok_or_else(beyond)
        })?,
    };
    Ok(cast(&(Arc::new(starts) as ArrayRef), &is_of)?)
}
