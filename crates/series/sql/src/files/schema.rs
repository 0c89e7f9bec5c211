//! The schema of an engine: its tables, and files under their paths.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::plan_datafusion_err;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use url::Url;

use crate::files::places::Files;
use crate::files::spec::Spec;

/// Tables by name, and files by path.
#[derive(Debug)]
pub(crate) struct FilesSchema {
    tables: MemorySchemaProvider,
    files: RwLock<Files>,
    /// By which files are looked into. It knows no tables, so that nothing holds itself.
    session: SessionState,
}

impl FilesSchema {
    pub(crate) fn new(session: SessionState) -> Self {
        Self { tables: MemorySchemaProvider::new(), files: RwLock::default(), session }
    }

    pub(crate) fn allow(&self, files: Files) {
        *self.files.write().unwrap_or_else(PoisonError::into_inner) = files;
    }

    async fn open(&self, spec: &Spec) -> Result<Arc<dyn TableProvider>> {
        let allowed = self.files.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut places = Vec::new();
        for path in &spec.paths {
            for file in allowed.of(path)? {
                let url = Url::from_file_path(&file)
                    .map_err(|()| plan_datafusion_err!("{} has no address", file.display()))?;
                places.push(ListingTableUrl::try_new(url, None)?);
            }
        }
        // What a file is was said by its path or by the call, so that its end says nothing more.
        let options = ListingOptions::new(spec.file_format()).with_file_extension("");
        let config = ListingTableConfig::new_with_multi_paths(places).with_listing_options(options);
        let config = config.infer_schema(&self.session).await?;
        Ok(Arc::new(ListingTable::try_new(config)?))
    }
}

#[async_trait]
impl SchemaProvider for FilesSchema {
    fn table_names(&self) -> Vec<String> {
        self.tables.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.tables.table(name).await? {
            return Ok(Some(table));
        }
        match Spec::of_name(name)? {
            Some(spec) => self.open(&spec).await.map(Some),
            None => Ok(None),
        }
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        self.tables.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.tables.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.table_exist(name)
    }
}
