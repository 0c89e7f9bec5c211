//! Windows in the place of groups over a join.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::distribution_requirements::InputDistributionRequirements;
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::TryStreamExt;
use planish_kernels::{Crew, Keys, Times, WindowJoin};

use crate::SqlError;
use crate::join::exec::all_rows;
use crate::join::range::groups::{Groups, Sums, counts};
use crate::join::range::values::floats_of;
use crate::join::range::{Of, RangeJoin, Wanted};
use crate::join::sides::{SideKeys, SideTimes};
use crate::kernel::Threads;
use crate::scan::exec::{batch, memory_of, one_partition};

/// A join by a range of times and its groups.
#[derive(Debug)]
pub(crate) struct RangeJoinExec {
    join: Arc<RangeJoin>,
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    otherwise: Arc<dyn ExecutionPlan>,
    threads: Arc<Threads>,
    properties: Arc<PlanProperties>,
}

impl RangeJoinExec {
    /// In the place of a plan; `None` where it is another one. `under` makes of a side what is to run.
    pub(crate) fn of(
        plan: &Arc<dyn ExecutionPlan>,
        threads: &Arc<Threads>,
        under: impl Fn(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>,
    ) -> Result<Option<Self>> {
        let Some((join, left, right)) = RangeJoin::of(plan) else { return Ok(None) };
        // Groups are in the order of their first rows, which are in order of time, those without one first.
        let time = join.on.times.0.downcast_ref::<datafusion::physical_expr::expressions::Column>();
        let ordered = join.groups.iter().position(|group| time.is_some_and(|time| time.index() == *group));
        let properties = one_partition(plan.schema(), ordered);
        let (left, right, otherwise) = (under(left)?, under(right)?, Arc::clone(plan));
        let (join, threads) = (Arc::new(join), Arc::clone(threads));
        Ok(Some(Self { join, left, right, otherwise, threads, properties }))
    }
}

impl RangeJoin {
    /// The groups of all rows, or `None` where they would not be SQL's.
    fn run(
        &self,
        schema: &SchemaRef,
        (left, right): (&RecordBatch, &RecordBatch),
        threads: &Threads,
    ) -> Result<Option<RecordBatch>> {
        let times = (SideTimes::of(&self.on.times.0, left)?, SideTimes::of(&self.on.times.1, right)?);
        if !self.stays_in_time(times.0.known()) || !self.stays_in_time(times.1.known()) {
            return Ok(None);
        }
        let keys = SideKeys::of(&self.on, (left, times.0.nulls), (right, times.1.nulls))?;
        let is_each_alone =
            self.by_time && times.0.nulls < 2 && times.0.known().is_sorted_by(|one, other| one < other);
        let rows = left.num_rows();
        let windows = |values: &[f64], wanted: &[Of]| -> Result<Sums> {
            let mut sums = Sums::new(rows, wanted);
            let run = |crew: &mut Crew| {
                let mut join = WindowJoin::new(self.from, self.to)?;
                let left = (Times::new(times.0.known())?, Keys::new(&keys.left, keys.count)?);
                let right = (Times::new(times.1.known())?, Keys::new(&keys.right, keys.count)?);
                join.run_by_key(crew, left, right, values, sums.columns(times.0.nulls))
            };
            threads.with(run)?.map_err(SqlError::from)?;
            Ok(sums)
        };
        let (mut sums, mut pairs) = (Vec::new(), None);
        for (place, value) in self.on.values.iter().enumerate() {
            let wanted: Vec<Of> = self.wanted_of(place).collect();
            let values = value.evaluate(right)?.into_array(right.num_rows())?;
            let values = values.slice(times.1.nulls, right.num_rows() - times.1.nulls);
            let Some(floats) = floats_of(&values, &wanted, if is_each_alone { 1 } else { rows }) else {
                return Ok(None);
            };
            let found = windows(&floats, &wanted)?;
            if values.logical_null_count() == 0 {
                // Each pair has a value.
                pairs = Some(found.count.clone());
            }
            sums.push(found);
        }
        let pairs = match pairs {
            _ if self.keeps_left && !self.wanted.contains(&Wanted::Pairs) => Vec::new(),
            Some(pairs) => pairs,
            None => windows(&vec![0.0; right.num_rows() - times.1.nulls], &[])?.count,
        };
        let columns = self.groups.iter().map(|&group| Arc::clone(left.column(group))).collect();
        let mut groups = Groups { columns, sums, pairs };
        if self.keeps_left {
            // A row without a partner stands there with nulls beside it.
            groups.pairs.iter_mut().for_each(|pairs| *pairs = (*pairs).max(1));
        } else {
            groups.keep_pairs()?;
        }
        if !is_each_alone {
            groups.merge(Arc::new(Schema::new(schema.fields()[..self.groups.len()].to_vec())))?;
        }
        self.batch(schema, groups).map(Some)
    }

    /// Whether nothing that the condition computes lies beyond the ends of all times. SQL's own sum is wrapped there,
    /// or an error.
    fn stays_in_time(&self, times: &[i64]) -> bool {
        let first = times.first().is_none_or(|time| time.checked_sub(self.reach).is_some());
        first && times.last().is_none_or(|time| time.checked_add(self.reach).is_some())
    }

    fn batch(&self, schema: &SchemaRef, groups: Groups) -> Result<RecordBatch> {
        let Groups { columns, sums, pairs } = groups;
        let rows = columns.first().map_or(0, |column| column.len());
        let results = self.wanted.iter().enumerate().map(|(index, wanted)| -> ArrayRef {
            match *wanted {
                Wanted::Pairs => counts(&pairs),
                Wanted::Of(of, value) => {
                    sums[value].array(of, schema.field(columns.len() + index).data_type())
                }
            }
        });
        let results: Vec<ArrayRef> = results.collect();
        Ok(batch(schema, columns.into_iter().chain(results).collect(), rows)?)
    }
}

impl DisplayAs for RangeJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RangeJoinExec: {}, otherwise the third:", self.join)
    }
}

impl ExecutionPlan for RangeJoinExec {
    fn name(&self) -> &'static str {
        "RangeJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right, &self.otherwise]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition; 3])
    }

    /// Both sides in order of their times, which for tables they are.
    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let order = |time: &Arc<dyn PhysicalExpr>| {
            let order = [PhysicalSortExpr::new_default(Arc::clone(time))];
            LexOrdering::new(order).map(OrderingRequirements::from)
        };
        let (left, right) = &self.join.on.times;
        vec![order(left), order(right), None]
    }

    fn apply_expressions(
        &self,
        work: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expression in self.join.on.all() {
            if work(expression)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [left, right, otherwise] =
            <[_; 3]>::try_from(children).or_else(|_| internal_err!("a join by a range has three inputs"))?;
        let (join, threads) = (Arc::clone(&self.join), Arc::clone(&self.threads));
        let properties = Arc::clone(&self.properties);
        Ok(Arc::new(Self { join, left, right, otherwise, threads, properties }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (left, right) = (Arc::clone(&self.left), Arc::clone(&self.right));
        let (join, threads, schema) = (Arc::clone(&self.join), Arc::clone(&self.threads), self.schema());
        let otherwise = Arc::clone(&self.otherwise);
        let memory = memory_of(self.name(), &context);
        let joined = async move {
            let found = {
                let left = all_rows(left, Arc::clone(&context), &memory).await?;
                let right = all_rows(right, Arc::clone(&context), &memory).await?;
                join.run(&schema, (&left, &right), &threads)?
            };
            memory.free();
            let Some(groups) = found else { return otherwise.execute(partition, context) };
            memory.try_grow(groups.get_array_memory_size())?;
            let stream = MemoryStream::try_new(vec![groups], schema, None)?;
            Ok(Box::pin(stream.with_reservation(memory)) as SendableRecordBatchStream)
        };
        let stream = futures::stream::once(joined).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}
