//! Why something cannot be written for another tool.

use planish_model::KnobId;
use thiserror::Error;

/// Why something cannot be written for another tool.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ExchangeError {
    /// The name would have to be quoted in file names and in other languages.
    #[error("`{name}` cannot name a file: letters, digits, dots, dashes and underscores can")]
    Name {
        /// The profile's name.
        name: String,
    },
    /// A value with characters that mean something to a shell, a template or a configuration parser.
    #[error("{knob}: the value `{value}` has characters that other tools would take for their own")]
    Value {
        /// The knob.
        knob: KnobId,
        /// The value.
        value: String,
    },
    /// A later line of the format does not win over an earlier one that means the same place.
    #[error("{knob}: one value for all places and another for some cannot be said in this format")]
    Overlap {
        /// The knob.
        knob: KnobId,
    },
}
