//! `planish text prune`: what a store holds, and what of it nothing keeps any more.
//!
//! ```text
//! pins ──> digests ─┐
//!                   ├──> fate of each blob ──> told; with --delete, taken away, the oldest first
//! store ──> list ───┘
//! ```
//!
//! A store does not know who builds by it. So nothing goes without a pin that shows what builds follow, nothing goes
//! while a pin names what the store has not, since then it is another pin or another store that was meant, and what
//! is young stays for the pin that is to come.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use planish_model::{Catalogue, Exit};
use planish_profile::pin::Pin;
use planish_report::{TextPruneReport, TextPruneRow};
use planish_store::{Digest, Fate, Held, Keep, Listing, Store, StoreError, fates};

use super::pinned::{PIN, days, folder_of, in_store, parse};
use crate::answer::Answer;
use crate::commands::read_file;
use crate::context::Context;
use crate::failure::Failure;

const DAY_SECONDS: f64 = 86_400.0;

/// Tell what a store holds, and take away what nothing keeps
///
/// Kept is what a pin names, now or as what was pinned before it, what is among the newest, and what was stored not
/// long ago. Nothing is taken away without --delete. Name the pin of every repository that builds by this store: a
/// store does not know them. A web server tells no names: prune the store that it hands out.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The store; without it, the one that the first pin names
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// Keep what this pin names; without it, the pin of this folder, where there is one
    #[arg(long = "pin", value_name = "F")]
    pins: Vec<PathBuf>,
    /// Keep so many of the newest files: a publish stores two
    #[arg(long, value_name = "N", default_value_t = 20)]
    keep: usize,
    /// Keep what was stored in the last days: a pin that names it may be on its way
    #[arg(long, value_name = "DAYS", default_value_t = 14.0, value_parser = days)]
    min_age: f64,
    /// Take away what nothing keeps; without it, nothing is changed
    #[arg(long)]
    delete: bool,
}

/// A pin and its file.
type Named = (PathBuf, Pin);

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let pins = pins(args)?;
    let store = store(args, &pins)?;
    let listing = store.list().map_err(in_store)?;
    let missing = missing(&pins, &listing);
    if args.delete {
        refuse_blind(&pins, &missing, &store)?;
    }
    let now = super::now(context);
    let pinned = pinned(&pins)?;
    let since = now.saturating_sub((args.min_age * DAY_SECONDS) as u64);
    let fates = fates(&listing.blobs, &Keep { pinned: &pinned, newest: args.keep, since });
    let mut rows: Vec<TextPruneRow> =
        listing.blobs.iter().zip(&fates).map(|(blob, fate)| row(blob, *fate, now)).collect();
    let trouble = if args.delete { delete(&store, &listing.blobs, &mut rows)? } else { None };

    let report = TextPruneReport {
        store: store.location().to_string(),
        pins: pins.iter().map(|(path, _)| path.display().to_string()).collect(),
        blobs: rows,
        foreign: listing.foreign,
    };
    let mut answer = context.answer(&report, &Catalogue::default());
    for told in missing.iter().filter(|_| !args.delete) {
        answer = answer.warning(told.clone());
    }
    if pins.is_empty() {
        answer = answer.note("no pin is named, so what builds follow is not known: --pin F");
    }
    if let Some(error) = trouble {
        let failure = in_store(error);
        answer = answer.message(failure.message(&context.again(""), "")).exit(Exit::Findings);
    }
    Ok(answer.next(next(args, &report, context)))
}

/// The pins that are named, or the one of this folder.
fn pins(args: &Args) -> Result<Vec<Named>, Failure> {
    let own = Path::new(PIN);
    let here = args.pins.is_empty() && own.symlink_metadata().is_ok();
    let paths = if here { vec![own.to_owned()] } else { args.pins.clone() };
    paths.into_iter().map(|path| parse(&path, &read_file(&path)?).map(|pin| (path, pin))).collect()
}

fn store(args: &Args, pins: &[Named]) -> Result<Store, Failure> {
    let opened = match (&args.store, pins.first()) {
        (Some(store), _) => Store::open(store, Path::new(".")),
        (None, Some((path, pin))) => Store::open(&pin.store, &folder_of(path)),
        (None, None) => {
            let failed = format!("no store is named, and there is no {PIN} here");
            return Err(Failure::usage(failed).hint("planish text prune --pin F, or --store STORE"));
        }
    };
    opened.map_err(in_store)
}

/// What pins name, now and as what was pinned before.
fn pinned(pins: &[Named]) -> Result<HashSet<Digest>, Failure> {
    let named = pins.iter().flat_map(|(path, pin)| pin.named().map(move |text| (path, text)));
    let one = |(path, text): (&PathBuf, &str)| {
        // What cannot be read is not known to be kept.
        text.parse().map_err(|_| {
            Failure::usage(format!("{} names `{text}`, which is no sha256", path.display()))
                .hint("is it whole? planish text publish writes it, and git has the one before")
        })
    };
    named.map(one).collect()
}

/// What pins name and the store has not.
fn missing(pins: &[Named], listing: &Listing) -> Vec<String> {
    let held: HashSet<String> = listing.blobs.iter().map(|blob| blob.digest.to_string()).collect();
    let one = |(path, pin): &Named| {
        let gone = [("profile", &pin.profile), ("order", &pin.order)].into_iter();
        let gone: Vec<_> =
            gone.filter(|(_, blob)| !held.contains(&blob.sha256)).map(|(name, _)| name).collect();
        let told =
            || format!("the {} that {} names is not in the store", gone.join(" and the "), path.display());
        (!gone.is_empty()).then(told)
    };
    pins.iter().filter_map(one).collect()
}

/// Refuses to take anything away where what builds follow is not known.
fn refuse_blind(pins: &[Named], missing: &[String], store: &Store) -> Result<(), Failure> {
    if pins.is_empty() {
        let failed = "nothing is taken away without a pin: a store does not know who builds by it";
        return Err(Failure::refused(failed).hint("name the pin of each repository with --pin F"));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let failed = format!("nothing is taken away from {}: {}", store.location(), missing.join("; "));
    Err(Failure::refused(failed)
        .hint("is it the store of that pin? If so, publish the profile again, or leave that pin out"))
}

/// Takes away what nothing keeps, the oldest first. A failure ends it, and is told with what was done before it.
fn delete(store: &Store, blobs: &[Held], rows: &mut [TextPruneRow]) -> Result<Option<StoreError>, Failure> {
    let mut deleted = 0;
    for (blob, row) in blobs.iter().zip(rows).rev().filter(|(_, row)| row.fate == word(Fate::Unkept)) {
        match store.delete(blob) {
            Ok(true) => (row.deleted, deleted) = (true, deleted + 1),
            // Somebody has just published it again.
            Ok(false) => row.fate = word(Fate::Young).to_owned(),
            Err(error) if deleted == 0 => return Err(in_store(error)),
            Err(error) => return Ok(Some(error)),
        }
    }
    Ok(None)
}

fn row(blob: &Held, fate: Fate, now: u64) -> TextPruneRow {
    TextPruneRow {
        handle: blob.handle.clone(),
        bytes: blob.bytes,
        put_at: blob.put_at,
        age_days: now.saturating_sub(blob.put_at) as f64 / DAY_SECONDS,
        fate: word(fate).to_owned(),
        deleted: false,
    }
}

fn word(fate: Fate) -> &'static str {
    match fate {
        Fate::Pinned => "pinned",
        Fate::Newest => "newest",
        Fate::Young => "young",
        Fate::Unkept => "unkept",
    }
}

fn next(args: &Args, report: &TextPruneReport, context: &Context) -> String {
    let would_go = report.blobs.iter().any(|row| row.fate == word(Fate::Unkept) && !row.deleted);
    match would_go && !args.delete {
        true if report.pins.is_empty() => context.again("--pin F"),
        true => context.again("--delete"),
        false => "planish text publish PROFILE".to_owned(),
    }
}
