//! `planish version`: which planish this is.

use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report};

/// This build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VersionReport {
    /// Version of planish.
    pub planish: String,
    /// Processor architecture that it was built for.
    pub arch: String,
    /// Whether it is a static binary.
    pub is_static: bool,
}

impl VersionReport {
    /// The build that is running.
    #[must_use]
    pub fn of_this_build() -> Self {
        Self {
            planish: env!("CARGO_PKG_VERSION").to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            is_static: cfg!(target_feature = "crt-static"),
        }
    }
}

impl Report for VersionReport {
    const COMMAND: &'static str = "version";

    fn text(&self, page: &mut Page<'_>) {
        let linked = if self.is_static { "static" } else { "dynamic" };
        page.line(format!("planish {} ({} {linked})", self.planish, self.arch));
    }
}
