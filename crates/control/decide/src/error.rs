//! Why no plan can be made. What a host cannot do is no error: it is skipped, with a verdict.

use planish_model::CatalogueError;
use thiserror::Error;

use crate::placement::PlacementError;

/// Why no plan can be made from what was asked.
#[derive(Debug, Error)]
pub enum DecideError {
    /// A profile or an option names a knob that does not exist.
    #[error("the plan names what the catalogue does not have")]
    Catalogue(#[from] CatalogueError),
    /// Services and interrupts cannot be placed as asked.
    #[error("services and interrupts cannot be placed so")]
    Placement(#[from] PlacementError),
}

impl DecideError {
    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> String {
        match self {
            Self::Catalogue(error) => error.cure(),
            Self::Placement(error) => error.cure(),
        }
    }
}
