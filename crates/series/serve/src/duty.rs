//! What an instance is for. Several may share a folder: one takes rows in, others follow it, each on its node.

use clap::ValueEnum;

use crate::failure::{Failure, Kind};

/// What an instance is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Duty {
    /// Take rows in, and answer no query
    Ingest,
    /// Answer queries over tables that another instance on this machine takes rows into
    Query,
    /// Both
    #[default]
    Both,
}

impl Duty {
    /// Whether the tables are its own.
    pub(crate) fn is_writer(self) -> bool {
        self != Self::Query
    }

    /// Asks whether it takes rows in, and makes tables.
    ///
    /// # Errors
    /// [`Kind::ReadOnly`].
    pub(crate) fn takes_rows(self) -> Result<(), Failure> {
        match self {
            Self::Ingest | Self::Both => Ok(()),
            Self::Query => {
                Err(Failure::new(Kind::ReadOnly, "this instance answers queries alone (--role query)"))
            }
        }
    }

    /// Asks whether it answers queries.
    ///
    /// # Errors
    /// [`Kind::Denied`].
    pub(crate) fn answers(self) -> Result<(), Failure> {
        match self {
            Self::Query | Self::Both => Ok(()),
            Self::Ingest => {
                Err(Failure::new(Kind::Denied, "this instance takes rows in alone (--role ingest)"))
            }
        }
    }
}
