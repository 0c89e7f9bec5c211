//! What is about to be pinned.

use std::path::Path;

use planish_order::pinned;
use planish_profile::pin::{Blob, Pin};
use planish_profile::{CallProfile, file, overlap};
use planish_store::{Digest, Store};

use crate::commands::read_file;
use crate::commands::text::order::{SAMPLES_LOW, few_samples};
use crate::failure::{Failure, chain};

/// A profile and its order, as they will be stored.
pub(super) struct Draft {
    known: CallProfile,
    /// The profile's file.
    pub profile: String,
    /// The order's file.
    pub order: String,
    /// How the order was made.
    pub order_by: &'static str,
    /// How many functions it names.
    pub functions: usize,
}

impl Draft {
    /// Reads both, or makes the order of the profile.
    pub fn make(profile: &Path, order: Option<&Path>) -> Result<Self, Failure> {
        let known = super::super::profile(profile, None)?;
        let no_order = |path: &Path, error: pinned::NoOrder| {
            Failure::usage(format!("{}: {error}", path.display()))
                .hint("planish text order BIN --profile F -o order.txt")
        };
        let (symbols, order_by) = match order {
            Some(path) => {
                let text = String::from_utf8_lossy(&read_file(path)?).into_owned();
                (pinned::symbols(&text).map_err(|error| no_order(path, error))?, "the order that was given")
            }
            None => (pinned::of_profile(&known).map_err(|error| no_order(profile, error))?, "cdsort"),
        };
        let functions = symbols.len();
        let order = symbols.iter().map(|symbol| format!("{symbol}\n")).collect();
        Ok(Self { profile: file::write(&known), known, order, order_by, functions })
    }

    /// The pin of both in a store.
    pub fn pin(&self, store: &str) -> Pin {
        Pin::of(&self.known, store, (blob(&self.profile), blob(&self.order)))
    }

    /// How much of its weight the profile shares with the one that is pinned, and what to say where that cannot be
    /// told.
    pub fn overlap(&self, before: Option<&Pin>, folder: &Path) -> (Option<f64>, Vec<String>) {
        let Some(before) = before else { return (None, Vec::new()) };
        let mine = Digest::of(self.profile.as_bytes()).to_string();
        if before.profile.sha256 == mine {
            return (Some(1.0), Vec::new());
        }
        match earlier(before, folder) {
            Ok(earlier) => (Some(overlap(&earlier, &self.known)), Vec::new()),
            Err(why) => {
                let told = format!("how alike the profile before is cannot be told: {why}");
                (None, vec![told])
            }
        }
    }

    /// What to look at, whatever the gates say.
    pub fn warnings(&self) -> Option<String> {
        (self.known.total < SAMPLES_LOW).then(|| few_samples(self.known.total))
    }
}

/// The profile that is pinned.
fn earlier(pin: &Pin, folder: &Path) -> Result<CallProfile, String> {
    let digest: Digest = pin.profile.sha256.parse().map_err(|error| format!("{error}"))?;
    let store = Store::open(&pin.store, folder).map_err(|error| chain(&error))?;
    let bytes = store.get(&pin.profile.handle, &digest).map_err(|error| chain(&error))?;
    file::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| chain(&error))
}

fn blob(text: &str) -> Blob {
    let digest = Digest::of(text.as_bytes());
    Blob { handle: digest.handle(), sha256: digest.to_string(), bytes: text.len() as u64 }
}
