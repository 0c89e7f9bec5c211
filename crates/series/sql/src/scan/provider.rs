//! A table under its name in SQL.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use planish_table::{Dictionary, Schema, TimeUnit};

use crate::scan::arrays::{schema_of, texts_of};
use crate::scan::exec::ScanExec;
use crate::scan::pushdown::Pushdown;
use crate::scan::source::{Source, Wanted};

/// A table of the series engine for DataFusion.
///
/// Times are timestamps without a time zone where their unit is given, else whole numbers; symbols are a dictionary of
/// texts; decimals keep their scale; of floats, NaN is null.
#[derive(Debug)]
pub struct SeriesTable {
    source: Source,
    columns: Schema,
    schema: SchemaRef,
    /// Texts of each column of symbols, made once for as long as there is no new one.
    texts: Mutex<Vec<Option<ArrayRef>>>,
}

impl SeriesTable {
    /// A table whose times count `unit`; without one they are numbers.
    #[must_use]
    pub fn new(source: Source, unit: Option<TimeUnit>) -> Self {
        let columns = source.schema();
        let schema = schema_of(&columns, unit);
        let texts = Mutex::new(vec![None; columns.columns().len()]);
        Self { source, columns, schema, texts }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn columns(&self) -> &Schema {
        &self.columns
    }

    pub(crate) fn arrow_schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The texts of a column's symbols. A dictionary only grows while it can be read, so its length tells whether these
    /// are all.
    pub(crate) fn texts(&self, column: usize, dictionary: &Dictionary) -> ArrayRef {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        match &texts[column] {
            Some(known) if known.len() == dictionary.len() => Arc::clone(known),
            _ => {
                let new = texts_of(dictionary);
                texts[column] = Some(Arc::clone(&new));
                new
            }
        }
    }
}

/// What of a table DataFusion is given: shared by all plans that read it.
#[derive(Debug)]
pub(crate) struct Provider(pub(crate) Arc<SeriesTable>);

#[async_trait]
impl TableProvider for Provider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let is_exact = |filter: &&Expr| Pushdown::of(&self.0).add(&mut Wanted::all(), filter);
        let answer = |is_exact| match is_exact {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(is_exact).map(answer).collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut wanted = Wanted::all();
        for filter in filters {
            let is_exact = Pushdown::of(&self.0).add(&mut wanted, filter);
            assert!(is_exact, "DataFusion keeps the filters that were called unsupported: {filter}");
        }
        let columns = projection.cloned().unwrap_or_else(|| (0..self.0.schema.fields().len()).collect());
        Ok(Arc::new(ScanExec::new(Arc::clone(&self.0), columns, wanted, limit)))
    }
}
