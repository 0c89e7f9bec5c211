//! The one error of this crate.

/// Why bytes did not become a profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// None of the formats that are known starts like this.
    #[error("this is no profile of a known format")]
    UnknownFormat,
    /// The input breaks its format.
    #[error("{format}: {what} at {unit} {at}")]
    Malformed {
        /// Name of the format.
        format: &'static str,
        /// What is wrong.
        what: String,
        /// What `at` counts: `line` or `byte`.
        unit: &'static str,
        /// Where, from 1 for lines and from 0 for bytes.
        at: usize,
    },
    /// A recording of which records may be missing.
    #[error("{format}: {cut}")]
    Cut {
        /// Name of the format.
        format: &'static str,
        /// How it is not whole.
        cut: crate::perf_data::Cut,
    },
    /// The input uses something of its format that is not read here.
    #[error("{format}: {what} is not supported")]
    Unsupported {
        /// Name of the format.
        format: &'static str,
        /// What was found.
        what: String,
    },
    /// A profile of a version that a later planish wrote.
    #[error("the profile has version {found}, this planish reads up to {known}")]
    Version {
        /// The version in the file.
        found: u32,
        /// The last version that is known here.
        known: u32,
    },
    /// A profile whose end is missing or whose bytes changed.
    #[error("the profile is torn or was edited: {what}")]
    Torn {
        /// What does not fit.
        what: String,
    },
    /// The program is no ELF file that can be read.
    #[error("not an ELF program that can be read")]
    Elf(#[source] object::Error),
    /// The program's debug information breaks its format.
    #[error("debug information that cannot be read")]
    Dwarf(#[source] gimli::Error),
    /// The samples are of another build of the program.
    #[error("the samples are of build {sampled}, the program is build {program}")]
    BuildId {
        /// Build id in the samples.
        sampled: String,
        /// Build id of the program.
        program: String,
    },
    /// Addresses can only be named with the program at hand.
    #[error("{format} holds addresses only: the program is needed")]
    NeedsProgram {
        /// Name of the format.
        format: &'static str,
    },
    /// No sample of the program is in the input.
    #[error("no sample of {program} among {samples} samples")]
    NoSamples {
        /// The program that was asked for.
        program: String,
        /// Samples of everything.
        samples: u64,
    },
    /// There is no such event in the input.
    #[error("no event {wanted}; there is {present}")]
    NoEvent {
        /// The event that was asked for.
        wanted: String,
        /// The events of the input.
        present: String,
    },
    /// Profiles whose weights mean different things.
    #[error("{left} cannot be merged with {right}")]
    Unlike {
        /// What the first profile counts.
        left: String,
        /// What the other one counts.
        right: String,
    },
    /// Nothing to merge.
    #[error("no profile was given")]
    Nothing,
}

impl ProfileError {
    /// A broken line, counted from 1.
    pub(crate) fn line(format: &'static str, at: usize, what: impl Into<String>) -> Self {
        Self::Malformed { format, what: what.into(), unit: "line", at }
    }

    /// A broken byte.
    pub(crate) fn byte(format: &'static str, at: usize, what: impl Into<String>) -> Self {
        Self::Malformed { format, what: what.into(), unit: "byte", at }
    }
}
