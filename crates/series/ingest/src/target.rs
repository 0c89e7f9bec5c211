//! The table that rows are for, as decoders see it.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use planish_table::{Kind, Schema};

use crate::cell::{Cell, Form, cell};
use crate::error::{IngestError, What, shown};
use crate::moment::{Clock, Unit};

/// A column.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// What stands where nothing came.
    pub(crate) fill: Fill,
}

/// What stands in a column where nothing came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fill {
    /// Nothing can: the column knows no null.
    Refuse,
    Whole(i64),
    Float(f64),
    Text(Box<[u8]>),
}

/// A table that an input may have rows for.
#[derive(Debug, Clone)]
pub struct Target {
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) time: usize,
    pub(crate) unit: Unit,
    pub(crate) kept_from: i64,
    names: HashMap<Box<[u8]>, usize, RandomState>,
}

impl Target {
    /// The table `name` (in line protocol: its measurement), whose times count `unit`.
    ///
    /// Where nothing comes for a column of floats, its null stands; for any other column that is a fault, unless
    /// [`fill`](Self::fill) says what stands there.
    #[must_use]
    pub fn new(name: &str, schema: &Schema, unit: Unit) -> Self {
        let field = |column: &planish_table::Column| Field {
            name: column.name.clone(),
            kind: column.kind,
            fill: if column.kind == Kind::Float { Fill::Float(f64::NAN) } else { Fill::Refuse },
        };
        let fields: Vec<Field> = schema.columns().iter().map(field).collect();
        let names = fields.iter().enumerate().map(|(index, field)| (field.name.as_bytes().into(), index));
        let names = names.collect();
        Self { name: name.to_owned(), fields, time: schema.time(), unit, kept_from: i64::MIN, names }
    }

    /// What stands in a column where nothing came, as text that is read as a field of CSV would be, times in the
    /// table's unit.
    ///
    /// # Errors
    /// [`IngestError::Fill`] when there is no such column, or the text is no value of it.
    pub fn fill(mut self, column: &str, text: &str) -> Result<Self, IngestError> {
        let unknown = || IngestError::Fill(What::NoColumn { name: shown(column.as_bytes()) });
        let index = self.column(column.as_bytes()).ok_or_else(unknown)?;
        let field = &self.fields[index];
        let fill = match field.kind {
            Kind::Symbol => Fill::Text(text.as_bytes().into()),
            _ => {
                let clock = Clock::new(self.unit, self.unit);
                match cell(field, clock, Form::Field, text.as_bytes()).map_err(IngestError::Fill)? {
                    Cell::Whole(whole) => Fill::Whole(whole),
                    Cell::Float(float) => Fill::Float(float),
                    Cell::Missing | Cell::Key(_) => unreachable!("of a column that is not of symbols"),
                }
            }
        };
        self.fields[index].fill = fill;
        Ok(self)
    }

    /// Rows from before this time, in the table's unit, are faults of theirs. A durable table refuses whole batches for
    /// one of them, so give what [`Durable::kept_from`](planish_table::Durable::kept_from) says.
    #[must_use]
    pub fn kept_from(mut self, time: i64) -> Self {
        self.kept_from = time;
        self
    }

    /// The column of a name.
    pub(crate) fn column(&self, name: &[u8]) -> Option<usize> {
        self.names.get(name).copied()
    }
}
