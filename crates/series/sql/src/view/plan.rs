//! Whether the plan of a definition is bars over a table and nothing else.

use std::sync::Arc;

use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;

use crate::SqlError;
use crate::kernel::{BarsExec, Obstacle, Width, obstacle};
use crate::view::define::{Definition, not_kept};

const BUCKETS: &str = "group by one bucket of time, xbar(time, width), time_bucket(width, time) or \
                       date_bin(width, time), and by the symbol or not";
const AGGREGATES: &str = "a view has first_value and last_value (ORDER BY time), max, min and vwap of one column of \
                          floats, sum and vwap of one column of sizes, sum(price * size) and count";

/// The bars of a plan in which nothing but expressions lies upon them.
pub(super) fn bars_of<'p>(
    definition: &Definition,
    plan: &'p Arc<dyn ExecutionPlan>,
) -> Result<&'p BarsExec, SqlError> {
    let mut node = plan;
    loop {
        if let Some(exec) = node.downcast_ref::<BarsExec>() {
            return match exec.bars().by_time() {
                Some(Width::Start(_)) => Ok(exec),
                Some(Width::Number(width)) => {
                    let what = format!("a division of the time by {width}");
                    Err(at_groups(definition, what, &format!("write xbar(time, {width})")))
                }
                None => Err(at_groups(definition, "bars without a bucket of time".to_owned(), BUCKETS)),
            };
        }
        node = match node.children().as_slice() {
            [child] if is_passed(node) => child,
            _ => return Err(why_not(definition, plan)),
        };
    }
}

/// Whether an operator hands on the rows that it gets, one by one.
fn is_passed(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<ProjectionExec>()
        || node.is::<RepartitionExec>()
        || node.is::<CoalescePartitionsExec>()
        || node.is::<CooperativeExec>()
}

fn at_groups(definition: &Definition, what: String, cure: &str) -> SqlError {
    let place = definition.group(0).map_or(definition.whole(), |(_, place)| place);
    not_kept(what, place, cure)
}

/// What keeps a plan from being bars.
fn why_not(definition: &Definition, plan: &Arc<dyn ExecutionPlan>) -> SqlError {
    let or_whole =
        |found: Option<_>, what: &str| found.unwrap_or_else(|| (what.to_owned(), definition.whole()));
    if let Some(found) = find(plan, &|node| obstacle(node)) {
        let ((what, place), cure) = match found {
            Obstacle::Group(index) => (or_whole(definition.group(index), "what it groups by"), BUCKETS),
            Obstacle::NoPrice => (or_whole(None, "a query without a price"), AGGREGATES),
            Obstacle::Aggregate(name) => (or_whole(definition.aggregate(&name), &name), AGGREGATES),
            Obstacle::Input => {
                let cure = "a view has ranges of the time and one symbol (=, <, BETWEEN, with AND); ask the table \
                            for other conditions";
                (or_whole(definition.condition(), "what lies between groups and table"), cure)
            }
        };
        return not_kept(what, place, cure);
    }
    if let Some(predicate) =
        find(plan, &|node| Some(node.downcast_ref::<FilterExec>()?.predicate().to_string()))
    {
        return not_kept(format!("the condition {predicate}"), definition.whole(), "leave it out");
    }
    let cure = "a view is bars of a table, and expressions of them";
    not_kept("a query that is no bars", definition.whole(), cure)
}

fn find<T>(node: &Arc<dyn ExecutionPlan>, of: &impl Fn(&Arc<dyn ExecutionPlan>) -> Option<T>) -> Option<T> {
    of(node).or_else(|| node.children().into_iter().find_map(|child| find(child, of)))
}

/// Which column of the bars a column of the plan is, if it is one as it is.
pub(super) fn origin(plan: &Arc<dyn ExecutionPlan>, index: usize) -> Option<usize> {
    if plan.is::<BarsExec>() {
        return Some(index);
    }
    let child = *plan.children().first()?;
    match plan.downcast_ref::<ProjectionExec>() {
        Some(projection) => {
            origin(child, projection.expr().get(index)?.expr.downcast_ref::<Column>()?.index())
        }
        None => origin(child, index),
    }
}
