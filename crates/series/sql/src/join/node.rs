//! A join by time in a logical plan.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::Field;
use datafusion::common::{DFSchema, DFSchemaRef, JoinType, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::builder::build_join_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, UserDefinedLogicalNodeCore};

use crate::join::marks::Of;

/// Which join by time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// For each left row the nearest right row of its key.
    Asof {
        /// How the left time is to the right one: `>=`, `>`, `<=`, `<`.
        op: Operator,
        /// Whether left rows without a partner stay.
        is_left: bool,
    },
    /// For each left row at `t` what the right rows of its key in `[t + from, t + to]` add up to.
    Window {
        from: i64,
        to: i64,
        /// What is wanted of each value, and the name of the column that it becomes.
        wanted: Vec<(Of, String)>,
    },
}

/// A join by time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TimeJoin {
    pub(super) left: LogicalPlan,
    pub(super) right: LogicalPlan,
    pub(super) on: On<Expr>,
    pub(super) kind: Kind,
    schema: DFSchemaRef,
}

/// What is compared, and what of the right rows is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct On<E> {
    /// Left and right time.
    pub(super) times: (E, E),
    /// Left and right sides of equalities.
    pub(super) keys: Vec<(E, E)>,
    /// Of a window join: expressions of the right side, one for each that is wanted.
    pub(super) values: Vec<E>,
}

impl<E> On<E> {
    /// All expressions, left and right in turn, then the values.
    pub(super) fn all(&self) -> impl Iterator<Item = &E> {
        let keys = self.keys.iter().flat_map(|(left, right)| [left, right]);
        [&self.times.0, &self.times.1].into_iter().chain(keys).chain(&self.values)
    }

    /// The same with other expressions in their places. `of` gets the side too: whether it is the left one.
    pub(super) fn try_map<T>(&self, mut of: impl FnMut(&E, bool) -> Result<T>) -> Result<On<T>> {
        let mut pair = |(left, right): &(E, E)| Ok((of(left, true)?, of(right, false)?));
        let times = pair(&self.times)?;
        let keys = self.keys.iter().map(&mut pair).collect::<Result<_>>()?;
        let values = self.values.iter().map(|value| of(value, false)).collect::<Result<_>>()?;
        Ok(On { times, keys, values })
    }
}

impl TimeJoin {
    pub(super) fn new(left: LogicalPlan, right: LogicalPlan, on: On<Expr>, kind: Kind) -> Result<Self> {
        let schema = match &kind {
            Kind::Asof { is_left, .. } => {
                let join = if *is_left { JoinType::Left } else { JoinType::Inner };
                build_join_schema(left.schema(), right.schema(), &join)?
            }
            Kind::Window { wanted, .. } => {
                let lefts = left.schema().iter().map(|(table, field)| (table.cloned(), Arc::clone(field)));
                let field = |(of, name): &(Of, String)| Field::new(name, of.data_type(), *of != Of::Count);
                let wanted = wanted.iter().map(|it| (None, Arc::new(field(it))));
                DFSchema::new_with_metadata(lefts.chain(wanted).collect(), left.schema().metadata().clone())?
            }
        };
        Ok(Self { left, right, on, kind, schema: Arc::new(schema) })
    }
}

impl PartialOrd for TimeJoin {
    fn partial_cmp(&self, _: &Self) -> Option<Ordering> {
        None
    }
}

impl<E: fmt::Display> fmt::Display for On<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "times=({}, {})", self.times.0, self.times.1)?;
        self.keys.iter().try_for_each(|(left, right)| write!(out, ", {left} = {right}"))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asof { op, is_left } => {
                write!(out, "kernel=asof_join, {}, {op}", if *is_left { "left" } else { "inner" })
            }
            Self::Window { from, to, wanted } => {
                let names: Vec<_> = wanted.iter().map(|(_, name)| name.as_str()).collect();
                write!(out, "kernel=window_join, from={from}, to={to}, wanted=[{}]", names.join(", "))
            }
        }
    }
}

impl UserDefinedLogicalNodeCore for TimeJoin {
    fn name(&self) -> &'static str {
        "TimeJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.on.all().cloned().collect()
    }

    fn fmt_for_explain(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TimeJoin: {}, {}", self.kind, self.on)
    }

    fn with_exprs_and_inputs(&self, expressions: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let [left, right] =
            <[_; 2]>::try_from(inputs).or_else(|_| internal_err!("a join by time has two inputs"))?;
        if expressions.len() != self.on.all().count() {
            return internal_err!("a join by time got {} expressions", expressions.len());
        }
        let mut expressions = expressions.into_iter();
        let on = self.on.try_map(|_, _| Ok(expressions.next().expect("as many as there were")))?;
        Self::new(left, right, on, self.kind.clone())
    }

    fn necessary_children_exprs(&self, columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let lefts = self.left.schema().fields().len();
        let (left, others): (Vec<usize>, Vec<usize>) = columns.iter().partition(|&&column| column < lefts);
        let right = match self.kind {
            Kind::Asof { .. } => others.into_iter().map(|column| column - lefts).collect(),
            // Of right columns there are the values alone, which are expressions.
            Kind::Window { .. } => Vec::new(),
        };
        Some(vec![left, right])
    }
}
