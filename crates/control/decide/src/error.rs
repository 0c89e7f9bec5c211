//! Why no plan can be made. What a host cannot do is no error: it is skipped, with a verdict.

use planish_model::CatalogueError;
use thiserror::Error;

/// Why no plan can be made from what was asked.
#[derive(Debug, Error)]
pub enum DecideError {
    /// A profile or an option names a knob that does not exist.
    #[error("the plan names what the catalogue does not have")]
    Catalogue(#[from] CatalogueError),
}
