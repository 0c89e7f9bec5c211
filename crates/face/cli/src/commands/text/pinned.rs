//! What `text publish`, `text fetch` and `text prune` share of pins: the names of the files, and the gates.

use std::path::{Path, PathBuf};

use planish_profile::pin::{Gates, Pin};
use planish_store::StoreError;

use crate::failure::Failure;

/// The file of the pin where none is named.
pub(super) const PIN: &str = "planish.text.toml";

/// What a pin must hold to be followed without a word.
#[derive(Debug, clap::Args)]
pub(super) struct GateOptions {
    /// The last sample may be so many days old
    #[arg(long, value_name = "DAYS", default_value_t = 28.0, value_parser = days)]
    max_age: f64,
    /// So much of its weight must be where it was in the profile before, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50.0, value_parser = percent)]
    min_overlap: f64,
}

impl GateOptions {
    pub fn gates(&self) -> Gates {
        Gates { age_days_max: self.max_age, overlap_min: self.min_overlap / 100.0 }
    }
}

pub(super) fn days(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a number of days above 0".to_owned())
}

pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "a number from 0 to 100".to_owned())
}

/// A share as people read it.
pub(super) fn share(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Where a copy of the order lies in a repository that has one: `planish.text.order`.
pub(super) fn copy_beside(pin: &Path) -> PathBuf {
    pin.with_extension("order")
}

/// The folder that a pin lies in, below which its relative folders are.
pub(super) fn folder_of(pin: &Path) -> PathBuf {
    let folder = pin.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// Reads a pin.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Pin, Failure> {
    Pin::parse(&String::from_utf8_lossy(bytes)).map_err(|error| {
        let failed = Failure::usage(format!("{}: {error}", path.display()));
        failed.hint("planish text publish writes one; git log tells who changed it")
    })
}

/// A store that did not give or take something.
pub(super) fn in_store(error: StoreError) -> Failure {
    let cure = error.cure();
    let failed = match error {
        StoreError::Location { .. } | StoreError::Handle { .. } => Failure::usage(error),
        _ => Failure::refused(error),
    };
    cure.into_iter().fold(failed, Failure::hint)
}
