//! The way of a query: text, plan, batches; and the plans that are kept.
//!
//! Planning costs more than many a query over a million rows. So a plan is kept under the text that it was made for,
//! and used again as long as the tables are the same ones. Plans hold no rows and no symbols' numbers: a query that
//! runs by a plan of yesterday sees the rows of today. What is a constant only while one query runs (`now()`) would be
//! wrong tomorrow; such plans are not kept, and neither are those of files, which others may change.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::source_as_provider;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::scalar::ScalarValue;
use planish_table::TimeUnit;

use crate::SqlError;
use crate::files::{Files, FilesSchema};
use crate::fill::{self, Fills};
use crate::functions;
use crate::give_way::GiveWay;
use crate::join::{self, Planner, TimeJoins};
use crate::kernel::{KernelRule, Threads};
use crate::scan::{Provider, SeriesTable, Source};
use crate::view::{Definition, View, ViewProvider};

/// Plans that are kept; then all are let go of.
const PLANS_MAX: usize = 1024;

/// Tables by name, and queries of them. May be shared by threads.
pub struct Engine {
    session: SessionContext,
    schema: Arc<FilesSchema>,
    context: Arc<TaskContext>,
    plans: Mutex<HashMap<Box<str>, Arc<dyn ExecutionPlan>>>,
    tables: Mutex<HashMap<String, Arc<SeriesTable>>>,
    views: Mutex<BTreeMap<String, Arc<View>>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Engine").field("plans", &self.plans().len()).finish_non_exhaustive()
    }
}

/// A query with its answer.
#[derive(Debug)]
pub struct Answer {
    /// The columns, also where there is no row.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

impl Answer {
    /// How many rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

impl Engine {
    /// An engine without tables, whose kernels and operators use so many threads.
    ///
    /// # Errors
    /// [`SqlError::Threads`].
    pub fn new(threads: NonZeroUsize) -> Result<Self, SqlError> {
        let threads = Arc::new(Threads::new(threads)?);
        let config = SessionConfig::new()
            .with_target_partitions(threads.count())
            .with_information_schema(true)
            .set_bool("datafusion.catalog.create_default_catalog_and_schema", true);
        let mut builder = SessionStateBuilder::new().with_config(config).with_default_features();
        let mut rules = datafusion::physical_optimizer::optimizer::PhysicalOptimizer::new().rules;
        // First of all, while an aggregate still lies on its scan, without exchanges and sorts between them.
        rules.insert(0, Arc::new(KernelRule::new(Arc::clone(&threads))));
        // Last of all: what is to give way is then as it will run.
        rules.push(Arc::new(GiveWay));
        builder = builder
            .with_analyzer_rule(Arc::new(Fills))
            .with_analyzer_rule(Arc::new(TimeJoins))
            .with_physical_optimizer_rules(rules)
            .with_query_planner(Arc::new(Planner::new(threads)));
        let session = SessionContext::new_with_state(builder.build());
        let schema = Arc::new(FilesSchema::new(SessionStateBuilder::new().build()));
        let catalog = session.catalog("datafusion").expect("the default catalog was asked for");
        catalog.register_schema("public", Arc::clone(&schema) as _).map_err(SqlError::query("plan"))?;
        let scalar = functions::scalar().into_iter().chain(join::functions()).chain(fill::functions());
        scalar.for_each(|function| session.register_udf(function.as_ref().clone()));
        functions::aggregate()
            .into_iter()
            .for_each(|function| session.register_udaf(function.as_ref().clone()));
        functions::window().into_iter().for_each(|function| session.register_udwf(function.as_ref().clone()));
        let context = session.task_ctx();
        let (plans, tables, views) = (Mutex::default(), Mutex::default(), Mutex::default());
        Ok(Self { session, schema, context, plans, tables, views })
    }

    /// Lets queries read files of others by their paths; without this they read none.
    ///
    /// # Errors
    /// [`SqlError::Files`] where the folder is not there, or is none.
    pub fn allow_files(&self, files: Files) -> Result<(), SqlError> {
        let told = files.clone();
        self.schema.allow(files.resolved().map_err(|source| SqlError::Files { files: told, source })?);
        Ok(())
    }

    /// Adds a table under a name. Its times count `unit`; without one they are whole numbers.
    ///
    /// # Errors
    /// [`SqlError::Exists`].
    pub fn add(&self, name: &str, source: Source, unit: Option<TimeUnit>) -> Result<(), SqlError> {
        let table = Arc::new(SeriesTable::new(source, unit));
        self.register(name, Arc::new(Provider(Arc::clone(&table))))?;
        locked(&self.tables).insert(name.to_owned(), table);
        Ok(())
    }

    fn register(&self, name: &str, provider: Arc<dyn TableProvider>) -> Result<(), SqlError> {
        let reference = TableReference::bare(name);
        if self.session.table_exist(reference.clone()).map_err(SqlError::query("plan"))? {
            return Err(SqlError::Exists { name: name.to_owned() });
        }
        self.session.register_table(reference, provider).map_err(SqlError::query("plan"))?;
        self.plans().clear();
        Ok(())
    }

    /// Takes a table or a view out; queries that run keep it until they end, and views of a table keep it. `false`
    /// where there is none.
    ///
    /// # Errors
    /// What DataFusion says.
    pub fn remove(&self, name: &str) -> Result<bool, SqlError> {
        let reference = TableReference::bare(name);
        let removed = self.session.deregister_table(reference).map_err(SqlError::query("plan"))?;
        locked(&self.tables).remove(name);
        locked(&self.views).remove(name);
        self.plans().clear();
        Ok(removed.is_some())
    }

    /// Plans a view of a table that is there. Nothing is read, and nothing is added yet.
    ///
    /// # Errors
    /// [`SqlError::NotKept`] with what of it cannot be kept; what a query of the same text is refused for.
    pub async fn plan_view(&self, definition: Definition) -> Result<View, SqlError> {
        let table = locked(&self.tables).get(definition.table()).cloned();
        let table = table.ok_or_else(|| SqlError::NoTable { name: definition.table().to_owned() })?;
        let statement = crate::parse::query(definition.query())?;
        let state = self.session.state();
        let logical = state.statement_to_plan(statement).await.map_err(SqlError::query("plan"))?;
        if depends_on_the_moment(&logical).map_err(SqlError::query("plan"))? {
            return Err(SqlError::OfTheMoment);
        }
        let plan = state.create_physical_plan(&logical).await.map_err(SqlError::query("plan"))?;
        View::of(definition, table, plan)
    }

    /// Adds a view that was planned here.
    ///
    /// # Errors
    /// [`SqlError::Exists`].
    pub fn add_view(&self, view: View) -> Result<(), SqlError> {
        let view = Arc::new(view);
        let name = view.definition().name();
        self.register(name, Arc::new(ViewProvider::new(Arc::clone(&view))))?;
        locked(&self.views).insert(name.to_owned(), view);
        Ok(())
    }

    /// The views, by name.
    #[must_use]
    pub fn views(&self) -> Vec<Arc<View>> {
        locked(&self.views).values().cloned().collect()
    }

    /// Answers a query.
    ///
    /// # Errors
    /// [`SqlError::Query`] with what is wrong with the text or went wrong on the way; [`SqlError::NotAQuery`] and
    /// [`SqlError::Statements`].
    pub async fn query(&self, sql: &str) -> Result<Answer, SqlError> {
        self.answer(self.plan(sql, &[]).await?).await
    }

    /// Answers a query batch by batch.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn stream(&self, sql: &str) -> Result<SendableRecordBatchStream, SqlError> {
        let plan = self.plan(sql, &[]).await?;
        execute_stream(plan, Arc::clone(&self.context)).map_err(SqlError::query("execute"))
    }

    /// Answers a query batch by batch, by no more than so many bytes of memory for the rows that it holds at once: the
    /// one that needs more ends with an error. Nothing goes to files.
    ///
    /// A query ends, too, when the stream is dropped: at the next batch of whichever operator is at work. Kernels, and
    /// copies of what a scan reads, are done first.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn stream_within(
        &self,
        sql: &str,
        memory_bytes: usize,
    ) -> Result<SendableRecordBatchStream, SqlError> {
        let plan = self.plan(sql, &[]).await?;
        let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
        let pool = Arc::new(GreedyMemoryPool::new(memory_bytes));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).with_disk_manager_builder(disk);
        let runtime = runtime.build_arc().map_err(SqlError::query("execute"))?;
        let context = TaskContext::from(&self.session).with_runtime(runtime);
        execute_stream(plan, Arc::new(context)).map_err(SqlError::query("execute"))
    }

    /// A query with places `$1`, `$2`, .. for values, checked now.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn prepare(&self, sql: &str) -> Result<Prepared<'_>, SqlError> {
        let plan = self.logical_plan(sql).await?;
        let names = plan.get_parameter_names().map_err(SqlError::query("plan"))?;
        Ok(Prepared { engine: self, sql: sql.to_owned(), places: names.len() })
    }

    async fn answer(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Answer, SqlError> {
        let schema = plan.schema();
        let batches = collect(plan, Arc::clone(&self.context)).await.map_err(SqlError::query("execute"))?;
        Ok(Answer { schema, batches })
    }

    /// The plan of a text and its values, ready to be executed once.
    async fn plan(&self, sql: &str, values: &[ScalarValue]) -> Result<Arc<dyn ExecutionPlan>, SqlError> {
        let key = key_of(sql, values);
        let known = self.plans().get(key.as_ref()).cloned();
        if let Some(plan) = known {
            // Operators keep what they have done: each execution has its own.
            return reset_plan_states(plan).map_err(SqlError::query("plan"));
        }
        let mut logical = self.logical_plan(sql).await?;
        if !values.is_empty() {
            logical = logical.with_param_values(values.to_vec()).map_err(SqlError::query("plan"))?;
        }
        let may_be_kept = !depends_on_the_moment(&logical).map_err(SqlError::query("plan"))?;
        let plan =
            self.session.state().create_physical_plan(&logical).await.map_err(SqlError::query("plan"))?;
        if may_be_kept {
            let mut plans = self.plans();
            if plans.len() >= PLANS_MAX {
                plans.clear();
            }
            plans.insert(key.into(), Arc::clone(&plan));
            return reset_plan_states(plan).map_err(SqlError::query("plan"));
        }
        Ok(plan)
    }

    async fn logical_plan(&self, sql: &str) -> Result<LogicalPlan, SqlError> {
        let statement = crate::parse::statement(sql)?;
        let state = self.session.state();
        state.statement_to_plan(statement).await.map_err(SqlError::query("plan"))
    }

    fn plans(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<dyn ExecutionPlan>>> {
        locked(&self.plans)
    }
}

/// Nothing that is locked here is half changed when a thread panics.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A query that was checked, with places for values.
#[derive(Debug)]
pub struct Prepared<'e> {
    engine: &'e Engine,
    sql: String,
    places: usize,
}

impl Prepared<'_> {
    /// Places for values.
    #[must_use]
    pub fn places(&self) -> usize {
        self.places
    }

    /// Answers the query for some values, `$1` first. The plan is kept for these very values.
    ///
    /// # Errors
    /// [`SqlError::Values`]; as [`Engine::query`].
    pub async fn query(&self, values: &[ScalarValue]) -> Result<Answer, SqlError> {
        if values.len() != self.places {
            return Err(SqlError::Values { want: self.places, got: values.len() });
        }
        self.engine.answer(self.engine.plan(&self.sql, values).await?).await
    }
}

/// What a plan is kept under.
fn key_of<'s>(sql: &'s str, values: &[ScalarValue]) -> std::borrow::Cow<'s, str> {
    if values.is_empty() {
        return sql.into();
    }
    let mut key = sql.to_owned();
    for value in values {
        // With the type, and with quotes and escapes: no two lists of values have one text.
        let _ = write!(key, "\0{:?}", value);
    }
    key.into()
}

/// Whether a plan holds what has another value in every query: the time of day above all, and which files there are.
fn depends_on_the_moment(plan: &LogicalPlan) -> datafusion::error::Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && source_as_provider(&scan.source).is_ok_and(|table| table.is::<ListingTable>())
        {
            found = true;
            return Ok(TreeNodeRecursion::Stop);
        }
        node.apply_expressions(|expression| {
            expression.apply(|expression| {
                found |= matches!(expression, Expr::ScalarFunction(call)
                    if call.func.signature().volatility != Volatility::Immutable);
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    })?;
    Ok(found)
}
