//! The pin: the small file in a service's repository that says which profile and which order its builds follow.
//!
//! `planish text publish` writes it, `planish text fetch` reads it, `git revert` undoes it. It holds names and digests,
//! and what a person who reviews it asks: of which builds and hosts, from when, how much it changed. Text in a fixed
//! order, so that the difference of two weeks is the lines that differ.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use serde::Deserialize;

use crate::profile::{CallProfile, Window};

/// The version that is written. Every older one is read.
const FORMAT: u32 = 1;
const DAY_SECONDS: f64 = 86_400.0;

const HEAD: &str = "\
# The profile and the order of functions that builds of this program are pinned to.
# planish text publish writes this file, planish text fetch gets what it names. Undo: git revert.
";

/// What is pinned, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// Where the blobs are: a folder or a URL.
    pub store: String,
    /// Path or name of the program.
    pub program: String,
    /// Its build ids.
    pub build_ids: Vec<String>,
    /// Where it was sampled.
    pub hosts: Vec<String>,
    /// What was sampled.
    pub event: String,
    /// Weight of all that was sampled.
    pub total: u64,
    /// When, where it is known.
    pub window: Option<Window>,
    /// How much of its weight the profile shares with the one that was pinned before, from 0 to 1.
    pub overlap: Option<f64>,
    /// The trial that shows what it gains.
    pub proof: Option<String>,
    /// The call profile.
    pub profile: Blob,
    /// The order: a symbol a line.
    pub order: Blob,
    /// What was pinned before.
    pub previous: Option<Previous>,
}

/// A file in a store.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blob {
    /// Its name there.
    pub handle: String,
    /// Its SHA-256, as hexadecimal.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
}

/// The digests of what was pinned before: a copy of it is better than none.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Previous {
    /// Of the call profile.
    pub profile: String,
    /// Of the order.
    pub order: String,
}

/// Why a text is no pin.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// It is no TOML, or lacks something.
    #[error("this is no pin of planish: {0}")]
    Malformed(String),
    /// A later planish wrote it.
    #[error("the pin has format {found}, this planish reads up to {FORMAT}")]
    Format {
        /// The format in the file.
        found: u32,
    },
}

impl Pin {
    /// What there is to say of a profile, with both blobs.
    #[must_use]
    pub fn of(profile: &CallProfile, store: &str, blobs: (Blob, Blob)) -> Self {
        let (profile_blob, order) = blobs;
        Self {
            store: store.to_owned(),
            program: profile.program.clone(),
            build_ids: profile.build_ids.clone(),
            hosts: profile.hosts.clone(),
            event: profile.event.clone(),
            total: profile.total,
            window: profile.window,
            overlap: None,
            proof: None,
            profile: profile_blob,
            order,
            previous: None,
        }
    }

    /// The digests of all that it names: what is pinned, and what was pinned before.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let before = self.previous.iter().flat_map(|previous| [&previous.profile, &previous.order]);
        [&self.profile.sha256, &self.order.sha256].into_iter().chain(before).map(String::as_str)
    }

    /// Days since the last sample; `None` where nobody knows when that was. A clock that is behind makes it 0.
    #[must_use]
    pub fn age_days(&self, now: u64) -> Option<f64> {
        self.window.map(|window| now.saturating_sub(window.end) as f64 / DAY_SECONDS)
    }

    /// The pin as a file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{HEAD}format = {FORMAT}\n");
        let mut line = |key: &str, value: String| text.push_str(&format!("{key} = {value}\n"));
        line("store", quoted(&self.store));
        line("program", quoted(&self.program));
        line("build_ids", list(&self.build_ids));
        line("hosts", list(&self.hosts));
        line("event", quoted(&self.event));
        line("total", self.total.to_string());
        if let Some(Window { start, end }) = self.window {
            line("window", format!("[{}, {}]", quoted(&moment(start)), quoted(&moment(end))));
        }
        if let Some(overlap) = self.overlap {
            // Four digits: what differs behind them is no news.
            line("overlap", format!("{overlap:.4}"));
        }
        if let Some(proof) = &self.proof {
            line("proof", quoted(proof));
        }
        for (name, blob) in [("profile", &self.profile), ("order", &self.order)] {
            let (handle, sha256) = (quoted(&blob.handle), quoted(&blob.sha256));
            let bytes = blob.bytes;
            text.push_str(&format!("\n[{name}]\nhandle = {handle}\nsha256 = {sha256}\nbytes = {bytes}\n"));
        }
        if let Some(Previous { profile, order }) = &self.previous {
            let (profile, order) = (quoted(profile), quoted(order));
            text.push_str(&format!("\n[previous]\nprofile = {profile}\norder = {order}\n"));
        }
        text
    }

    /// Reads a pin of any format up to ours.
    ///
    /// # Errors
    /// [`PinError`]
    pub fn parse(text: &str) -> Result<Self, PinError> {
        // By itself first: a later format may have keys that are unknown here.
        let told = |error: toml::de::Error| PinError::Malformed(error.to_string().trim().replace('\n', " "));
        let OnlyFormat { format } = toml::from_str(text).map_err(told)?;
        if format > FORMAT {
            return Err(PinError::Format { found: format });
        }
        let file: File = toml::from_str(text).map_err(told)?;
        let window =
            file.window.map(|[start, end]| Ok(Window { start: seconds(&start)?, end: seconds(&end)? }));
        if file.overlap.is_some_and(|overlap| !(0.0..=1.0).contains(&overlap)) {
            return Err(PinError::Malformed("an overlap is from 0 to 1".to_owned()));
        }
        Ok(Self {
            store: file.store,
            program: file.program,
            build_ids: file.build_ids,
            hosts: file.hosts,
            event: file.event,
            total: file.total,
            window: window.transpose()?,
            overlap: file.overlap,
            proof: file.proof,
            profile: file.profile,
            order: file.order,
            previous: file.previous,
        })
    }
}

#[derive(Deserialize)]
struct OnlyFormat {
    format: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "format")]
    _format: u32,
    store: String,
    program: String,
    #[serde(default)]
    build_ids: Vec<String>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    event: String,
    #[serde(default)]
    total: u64,
    window: Option<[String; 2]>,
    overlap: Option<f64>,
    proof: Option<String>,
    profile: Blob,
    order: Blob,
    previous: Option<Previous>,
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A list; one a line where there are several: fleets change by a host at a time.
fn list(words: &[String]) -> String {
    match words {
        [] => "[]".to_owned(),
        [word] => format!("[{}]", quoted(word)),
        words => {
            let lines: String = words.iter().map(|word| format!("  {},\n", quoted(word))).collect();
            format!("[\n{lines}]")
        }
    }
}

fn moment(unix: u64) -> String {
    // Beyond the year 9999 there is no such text.
    let unix = unix.min(253_402_300_799);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(unix)).to_string()
}

fn seconds(text: &str) -> Result<u64, PinError> {
    let moment =
        humantime::parse_rfc3339(text).ok().and_then(|moment| moment.duration_since(UNIX_EPOCH).ok());
    let moment =
        moment.ok_or_else(|| PinError::Malformed(format!("`{text}` is no moment as 2026-01-31T12:00:00Z")));
    moment.map(|since| since.as_secs())
}

/// What a pin must hold to be followed without a word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gates {
    /// Days since the last sample, at most.
    pub age_days_max: f64,
    /// The share of its weight that it has in common with the one before, at least: below, another workload ran.
    pub overlap_min: f64,
}

/// A gate that a pin does not pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// It is too old.
    Stale {
        /// Days since its last sample.
        days: f64,
        /// Days that it may have.
        max: f64,
    },
    /// Nobody knows how old it is.
    Undated,
    /// It is of another workload than the one before.
    Unlike {
        /// The weight that they share.
        overlap: f64,
        /// The weight that they should share.
        min: f64,
    },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { days, max } => {
                write!(
                    f,
                    "its last sample is {days:.1} days old, more than {max}: code and load may have moved on"
                )
            }
            Self::Undated => {
                write!(f, "it does not say when it was sampled, so that nobody knows how old it is")
            }
            Self::Unlike { overlap, min } => {
                let (overlap, min) = (overlap * 100.0, min * 100.0);
                write!(
                    f,
                    "it shares {overlap:.0} % of its weight with the one before, less than {min:.0} %: another \
                     workload?"
                )
            }
        }
    }
}

impl Gates {
    /// The gates that a pin does not pass at a moment, in seconds since 1970.
    #[must_use]
    pub fn doubts(&self, pin: &Pin, now: u64) -> Vec<Doubt> {
        let age = match pin.age_days(now) {
            None => Some(Doubt::Undated),
            Some(days) if days > self.age_days_max => Some(Doubt::Stale { days, max: self.age_days_max }),
            Some(_) => None,
        };
        let unlike = pin.overlap.filter(|overlap| *overlap < self.overlap_min);
        let unlike = unlike.map(|overlap| Doubt::Unlike { overlap, min: self.overlap_min });
        age.into_iter().chain(unlike).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A pin as format 1 wrote it. It must be read for ever: never change this text.
    const V1: &str = include_str!("../tests/v1.pin.toml");

    #[test]
    fn a_pin_of_format_1_is_read_and_written_the_same() {
        let pin = Pin::parse(V1).unwrap();
        assert_eq!(pin.window, Some(Window { start: 1_800_000_000, end: 1_800_003_600 }));
        assert_eq!((pin.overlap, pin.hosts.len()), (Some(0.9312), 2));
        assert_eq!(pin.previous.as_ref().unwrap().order, "d".repeat(64));
        assert_eq!(pin.text(), V1);
    }

    #[test]
    fn what_is_no_pin_says_why() {
        for (from, to, told) in [
            ("format = 1", "format = 2\nnew = 1", "format 2, this planish reads up to 1"),
            ("[order]", "[orders]", "orders"),
            ("overlap = 0.9312", "overlap = 7", "from 0 to 1"),
            ("2027-01-15T08:00:00Z", "yesterday", "`yesterday` is no moment"),
            ("total = 21691", "total = -1", "invalid value"),
        ] {
            let error = Pin::parse(&V1.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        assert!(Pin::parse("").is_err() && Pin::parse("\0").is_err());
    }

    #[test]
    fn gates_are_of_age_and_of_likeness() {
        let gates = Gates { age_days_max: 28.0, overlap_min: 0.5 };
        let mut pin = Pin::parse(V1).unwrap();
        let now = 1_800_003_600 + 28 * 86_400;
        assert_eq!(gates.doubts(&pin, now), []);
        assert!(matches!(gates.doubts(&pin, now + 1)[..], [Doubt::Stale { .. }]));
        pin.overlap = Some(0.49);
        assert!(matches!(gates.doubts(&pin, now + 1)[..], [Doubt::Stale { .. }, Doubt::Unlike { .. }]));
        (pin.window, pin.overlap) = (None, None);
        assert_eq!(gates.doubts(&pin, now), [Doubt::Undated]);
        pin.window = Some(Window { start: 0, end: u64::MAX });
        assert_eq!(gates.doubts(&pin, now), [], "a clock that is behind makes nothing old");
        assert!(pin.text().contains("9999-12-31"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            words in prop::collection::vec(any::<String>(), 5),
            lists in prop::collection::vec(any::<String>(), 0..4),
            total in 0_u64..(1 << 60),
            window in prop::option::of((0_u64..4_000_000_000, 0_u64..4_000_000_000)),
            overlap in prop::option::of(0_u32..=10_000),
        ) {
            let blob = || Blob { handle: words[0].clone(), sha256: words[1].clone(), bytes: total };
            let mut pin = Pin::parse(V1).unwrap();
            (pin.store, pin.program, pin.event) = (words[2].clone(), words[3].clone(), words[4].clone());
            (pin.profile, pin.order, pin.total) = (blob(), blob(), total);
            (pin.build_ids, pin.hosts) = (lists.clone(), lists);
            pin.window = window.map(|(start, end)| Window { start, end });
            pin.overlap = overlap.map(|parts| f64::from(parts) / 10_000.0);
            prop_assert_eq!(Pin::parse(&pin.text()).unwrap(), pin);
        }
    }
}
