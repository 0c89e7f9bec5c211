//! `planish text publish` and `planish text fetch`: what a build is pinned to.

use planish_profile::pin::{Blob, Pin};
use schemars::JsonSchema;
use serde::Serialize;

use super::text::percent;
use crate::page::{Page, Report};
use crate::units;

/// What is pinned.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextPinFacts {
    /// Where the files are stored: a folder or a URL.
    pub store: String,
    /// Path or name of the program.
    pub program: String,
    /// Its build ids.
    pub build_ids: Vec<String>,
    /// Where it was sampled.
    pub hosts: Vec<String>,
    /// When, in seconds since 1970: the first sample.
    pub window_start: Option<u64>,
    /// When: the last sample.
    pub window_end: Option<u64>,
    /// Days since the last sample; null where nobody knows when that was.
    pub age_days: Option<f64>,
    /// The share of its weight that the profile has in common with the one before, from 0 to 1.
    pub overlap: Option<f64>,
    /// The trial that shows what it gains.
    pub proof: Option<String>,
    /// The call profile.
    pub profile: TextBlob,
    /// The order.
    pub order: TextBlob,
}

/// A file in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextBlob {
    /// Its name there.
    pub handle: String,
    /// Its SHA-256.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
}

impl From<&Blob> for TextBlob {
    fn from(blob: &Blob) -> Self {
        Self { handle: blob.handle.clone(), sha256: blob.sha256.clone(), bytes: blob.bytes }
    }
}

impl TextPinFacts {
    /// The facts of a pin at a moment, in seconds since 1970.
    #[must_use]
    pub fn new(pin: &Pin, now: u64) -> Self {
        Self {
            store: pin.store.clone(),
            program: pin.program.clone(),
            build_ids: pin.build_ids.clone(),
            hosts: pin.hosts.clone(),
            window_start: pin.window.map(|window| window.start),
            window_end: pin.window.map(|window| window.end),
            age_days: pin.age_days(now),
            overlap: pin.overlap,
            proof: pin.proof.clone(),
            profile: (&pin.profile).into(),
            order: (&pin.order).into(),
        }
    }

    fn text(&self, page: &mut Page<'_>) {
        page.fact("program", &self.program);
        page.fact("build id", &self.build_ids.join(", "));
        page.fact("hosts", &named(&self.hosts));
        if let Some((start, end)) = self.window_start.zip(self.window_end) {
            page.fact("window", &format!("{} to {}", units::moment(start), units::moment(end)));
        }
        page.fact("age", &self.age_days.map_or("unknown".to_owned(), |days| format!("{days:.1} days")));
        let overlap = self
            .overlap
            .map(|overlap| format!("{} of its weight is that of the one before", percent(overlap)));
        page.fact(
            "overlap",
            &overlap.unwrap_or_else(|| "unknown: no profile before it is at hand".to_owned()),
        );
        if let Some(proof) = &self.proof {
            page.fact("proof", proof);
        }
        page.fact("store", &self.store);
        for (name, blob) in [("profile", &self.profile), ("order", &self.order)] {
            page.fact(name, &format!("{}, {}", blob.handle, units::bytes(blob.bytes)));
        }
    }
}

/// Hosts by their names, or how many there are where that would fill a page.
fn named(hosts: &[String]) -> String {
    const NAMED: usize = 8;
    if hosts.len() <= NAMED { hosts.join(", ") } else { units::count(hosts.len(), "host") }
}

/// A commit that holds the pin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextPinCommit {
    /// The branch.
    pub branch: String,
    /// The commit.
    pub commit: String,
    /// Where it was pushed to.
    pub pushed: Option<String>,
}

/// What `text publish` did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextPublishReport {
    /// The file of the pin.
    pub file: String,
    /// Whether it is another pin than before.
    pub changed: bool,
    /// What is pinned.
    pub pin: TextPinFacts,
    /// Functions that the order names.
    pub functions: usize,
    /// How the order was made: given, or cdsort.
    pub order_by: String,
    /// Gates that it does not pass.
    pub doubts: Vec<String>,
    /// The commit, where one was asked for.
    pub commit: Option<TextPinCommit>,
    /// Units of systemd that were written.
    pub units: Vec<String>,
}

impl Report for TextPublishReport {
    const COMMAND: &'static str = "text-publish";

    fn text(&self, page: &mut Page<'_>) {
        let state = if self.changed { "pinned" } else { "pinned already" };
        page.fact(state, &self.file);
        if let Some(TextPinCommit { branch, commit, pushed }) = &self.commit {
            let pushed = pushed.as_ref().map(|remote| format!(", pushed to {remote}")).unwrap_or_default();
            page.fact("commit", &format!("{commit} on {branch}{pushed}"));
        }
        self.pin.text(page);
        page.fact("functions", &format!("{}, ordered by {}", self.functions, self.order_by));
        for unit in &self.units {
            page.fact("unit", unit);
        }
    }
}

/// A file that `text fetch` was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextFetched {
    /// What it is: order or profile.
    pub what: String,
    /// The file.
    pub file: String,
    /// Where its content is from: there (it was as pinned), beside (the copy beside the pin), cache, store; earlier (a
    /// last good copy, of another pin), none (there is no such file, or none that can be used).
    pub from: String,
    /// Its SHA-256; null for none.
    pub sha256: Option<String>,
}

/// What `text fetch` got.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextFetchReport {
    /// The file of the pin.
    pub pin_file: String,
    /// What is pinned; null where the pin cannot be read.
    pub pin: Option<TextPinFacts>,
    /// The files that were asked for.
    pub files: Vec<TextFetched>,
    /// Gates that the pin does not pass.
    pub doubts: Vec<String>,
}

impl Report for TextFetchReport {
    const COMMAND: &'static str = "text-fetch";

    fn text(&self, page: &mut Page<'_>) {
        for TextFetched { what, file, from, .. } in &self.files {
            let told = match from.as_str() {
                "there" => "there already, as it is pinned",
                "beside" => "from the copy beside the pin",
                "cache" => "from the cache",
                "store" => "from the store",
                "earlier" => "of an earlier pin: the last good copy",
                _ => "none",
            };
            page.fact(what, &format!("{file}: {told}"));
        }
        if let Some(pin) = &self.pin {
            pin.text_short(page);
        }
    }
}

impl TextPinFacts {
    /// What a log of a build should have.
    fn text_short(&self, page: &mut Page<'_>) {
        if page.is_detailed() {
            return self.text(page);
        }
        let age = self.age_days.map_or("of unknown age".to_owned(), |days| format!("{days:.1} days old"));
        let hosts = units::count(self.hosts.len(), "host");
        let program = if self.program.is_empty() { "a profile" } else { &self.program };
        page.fact("pinned", &format!("{program} of {hosts}, {age}"));
    }
}
