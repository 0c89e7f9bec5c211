//! Why something cannot be written for another tool, or read as what one left.

use planish_model::{KnobId, NameError};
use thiserror::Error;

use crate::import::ImportFormat;

/// Why something cannot be written for another tool, or read as what one left.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ExchangeError {
    /// The name would have to be quoted in file names and in other languages.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A value with characters that mean something to a shell, a template or a configuration parser.
    #[error("{knob}: the value `{value}` has characters that other tools would take for their own")]
    Value {
        /// The knob.
        knob: KnobId,
        /// The value.
        value: String,
    },
    /// The name of a place with characters that mean something to a shell or to the pattern of another tool.
    #[error("{knob}: the place `{place}` has characters that other tools would take for their own")]
    Place {
        /// The knob.
        knob: KnobId,
        /// The place.
        place: String,
    },
    /// Bytes, or the text of another encoding.
    #[error("it is no text")]
    NotText,
    /// Comments at most.
    #[error("it sets nothing: no line of it says anything")]
    Empty,
    /// A file of a kind that is known, and not read.
    #[error("it is {what}, and no file of a format that is read")]
    OtherKind {
        /// The kind, with its article.
        what: &'static str,
        /// What to do instead.
        cure: &'static str,
    },
    /// Files of different formats, one behind the other, as `planish export` prints them.
    #[error("it is several files of different formats, each behind a comment with its path: {}", paths.join(", "))]
    Several {
        /// Where their tools look for them.
        paths: Vec<String>,
    },
    /// Files of a folder that are no one profile.
    #[error(
        "{path} is a file of {kind}, and read together are one of sysctl.d, one of tmpfiles.d, one of udev's rules, \
         units and one drop-in of each"
    )]
    NotTogether {
        /// Where it lies in the folder.
        path: String,
        /// Its format.
        kind: &'static str,
    },
    /// A script that says by its first line that no shell runs it which is read.
    #[error("by its first line {interpreter} runs it, whose language is not read")]
    OtherLanguage {
        /// The program, without its folder.
        interpreter: String,
    },
    /// No YAML, or more than is read of it.
    #[error("it is no YAML that is read: {0}")]
    Yaml(String),
    /// Most of its lines have another shape.
    #[error("it is no file of {}: of {all} lines that say something {fit} are of that format", format.name())]
    OtherFormat {
        /// The format that was named, or guessed.
        format: ImportFormat,
        /// Lines of the shape of that format.
        fit: usize,
        /// Lines that say something.
        all: usize,
    },
    /// Neither its name nor its lines say what it is.
    #[error(
        "no format was recognised: read as {}, the likeliest, {fit} of {all} lines that say something fit",
        format.name()
    )]
    Unrecognised {
        /// The format that was tried.
        format: ImportFormat,
        /// Lines of the shape of that format.
        fit: usize,
        /// Lines that say something.
        all: usize,
    },
    /// A later line of the format does not win over an earlier one that means the same place.
    #[error("{knob}: one value for all places and another for some cannot be said in this format")]
    Overlap {
        /// The knob.
        knob: KnobId,
    },
}

/// The formats that are read, in a sentence.
const READ: &str = "a shell script, a file of sysctl.d or tmpfiles.d, rules of udev, a profile of tuned, a note of \
     saptune, a unit of systemd or a drop-in, tasks of Ansible, an object of the Node Tuning operator or kernel \
     arguments";

impl ExchangeError {
    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> String {
        match self {
            Self::Name(error) => error.cure(),
            Self::Value { .. } | Self::Overlap { .. } => {
                "the script format takes most: planish export script PROFILE".to_owned()
            }
            Self::Place { .. } => {
                "name it in `only` by *, ? and brackets of few characters ([0-3]), or planish apply".to_owned()
            },
            Self::NotText | Self::Empty => format!("name {READ}"),
            Self::Yaml(_) => {
                "mend that line; of anchors and deep nesting write out what they come to".to_owned()
            }
            Self::OtherKind { cure, .. } => (*cure).to_owned(),
            Self::Several { .. } => {
                "planish export FORMAT PROFILE --output DIR saves them one by one: import DIR, or each by itself"
                    .to_owned()
            }
            Self::NotTogether { .. } => {
                "import each by itself, or name a folder with what one `planish export sysctl PROFILE -o FOLDER` wrote"
                    .to_owned()
            }
            Self::OtherLanguage { .. } => {
                "read are scripts of sh, ash, dash, ksh and bash; of another import what it writes, such as a file of \
                 sysctl.d"
                    .to_owned()
            }
            Self::OtherFormat { .. } | Self::Unrecognised { .. } => {
                format!("read are {READ}; where the text does not tell: --from FORMAT")
            }
        }
    }
}
