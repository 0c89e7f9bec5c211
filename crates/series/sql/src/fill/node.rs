//! A fill in a logical plan.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::Field;
use datafusion::common::{DFSchema, DFSchemaRef, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, UserDefinedLogicalNodeCore};

use crate::fill::marks::How;

/// Groups by buckets of time, and rows for the buckets between them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct GapFill {
    /// Groups: the columns that they go by come first.
    pub(super) input: LogicalPlan,
    /// Columns that they go by.
    pub(super) groups: usize,
    /// Which of them is the bucket.
    pub(super) bucket: usize,
    /// The time that the buckets are of, in the rows below the groups.
    pub(super) time: Expr,
    pub(super) width: Expr,
    /// Where the buckets begin, and before what they end, if that is said.
    pub(super) borders: Option<(Expr, Expr)>,
    pub(super) fills: Vec<Fill>,
    schema: DFSchemaRef,
}

/// A column that is filled, beside the one that is not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Fill {
    pub(super) how: How,
    /// Of the groups.
    pub(super) value: Expr,
    /// The name of the column.
    pub(super) name: String,
}

/// All but the schema, which follows.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) input: LogicalPlan,
    pub(super) groups: usize,
    pub(super) bucket: usize,
    pub(super) time: Expr,
    pub(super) width: Expr,
    pub(super) borders: Option<(Expr, Expr)>,
    pub(super) fills: Vec<Fill>,
}

impl GapFill {
    pub(super) fn new(parts: Parts) -> Result<Self> {
        let Parts { input, groups, bucket, time, width, borders, fills } = parts;
        let known = input.schema().iter().enumerate();
        let known = known.map(|(index, (table, field))| {
            // What is of no row is null.
            let is_nullable = index >= groups || field.is_nullable();
            (table.cloned(), Arc::new(field.as_ref().clone().with_nullable(is_nullable)))
        });
        let filled = |fill: &Fill| {
            let is_of = fill.how.data_type(fill.value.get_type(input.schema())?);
            Ok((None, Arc::new(Field::new(&fill.name, is_of, true))))
        };
        let filled = fills.iter().map(filled).collect::<Result<Vec<_>>>()?;
        let metadata = input.schema().metadata().clone();
        let schema = DFSchema::new_with_metadata(known.chain(filled).collect(), metadata)?;
        Ok(Self { input, groups, bucket, time, width, borders, fills, schema: Arc::new(schema) })
    }

    pub(super) fn parts(&self) -> Parts {
        let Self { input, groups, bucket, time, width, borders, fills, .. } = self.clone();
        Parts { input, groups, bucket, time, width, borders, fills }
    }
}

impl PartialOrd for GapFill {
    fn partial_cmp(&self, _: &Self) -> Option<Ordering> {
        None
    }
}

impl UserDefinedLogicalNodeCore for GapFill {
    fn name(&self) -> &'static str {
        "GapFill"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// The width, both borders if there are any, then the values.
    fn expressions(&self) -> Vec<Expr> {
        let borders = self.borders.iter().flat_map(|(start, finish)| [start, finish]);
        let values = self.fills.iter().map(|fill| &fill.value);
        [&self.width].into_iter().chain(borders).chain(values).cloned().collect()
    }

    fn fmt_for_explain(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.fills.iter().map(|fill| fill.name.as_str()).collect();
        write!(out, "GapFill: width={}, fills=[{}]", self.width, names.join(", "))
    }

    fn with_exprs_and_inputs(&self, expressions: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let [input] = <[_; 1]>::try_from(inputs).or_else(|_| internal_err!("a fill has one input"))?;
        if expressions.len() != self.expressions().len() {
            return internal_err!("a fill got {} expressions", expressions.len());
        }
        let mut expressions = expressions.into_iter();
        let mut next = || expressions.next().expect("as many as there were");
        let mut parts = Parts { input, ..self.parts() };
        parts.width = next();
        if let Some((start, finish)) = &mut parts.borders {
            (*start, *finish) = (next(), next());
        }
        parts.fills.iter_mut().for_each(|fill| fill.value = next());
        Self::new(parts)
    }
}
