//! `planish text publish`: a profile and its order into a store, and the pin that names them into a repository.
//!
//! ```text
//! profile ──> order ──> overlap with what is pinned ──> gates ──> store, read back ──> pin ──> commit ──> push
//! ```
//!
//! After each arrow a kill leaves what builds follow as it was: the pin comes last, by one rename or one ref, and names
//! only what can be read by then. Blobs that no pin names are in nobody's way.

mod draft;
mod git;
mod place;
mod timer;

use std::path::{Path, PathBuf};

use planish_model::{Catalogue, Exit, quoted};
use planish_profile::pin::{Pin, Previous};
use planish_report::{TextPinCommit, TextPinFacts, TextPublishReport};
use planish_store::{Location, Store};

use super::pinned::{GateOptions, PIN, copy_beside, folder_of, in_store, share};
use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;
use draft::Draft;
use place::{Place, Written};

/// Below this share of common weight somebody should look, also where the gate lets it pass.
const OVERLAP_LOW: f64 = 0.7;

/// Store a call profile with its order, and pin the builds of a repository to it
///
/// Both are stored under the hash of their content; the pin is a small file of text for the repository of the service.
/// Builds get what it names by `planish text fetch`. Refused is a profile that is too old, or of another workload than
/// the one before. `git revert` undoes it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A call profile, as `planish text record` and `planish text merge` write it
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,
    /// Where to: a folder, or s3://BUCKET/PREFIX by planish-store-s3; without it, where the pin says
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// The pin
    #[arg(long, value_name = "F", default_value = PIN)]
    pin: PathBuf,
    /// The order of it, as `planish text order` writes it (symbols); without it, one is made (CDSort)
    #[arg(long, value_name = "F")]
    order: Option<PathBuf>,
    /// Keep a copy of the order beside the pin: builds have it without any store. One that is there is kept up to date
    #[arg(long)]
    copy: bool,
    /// Name the trial that shows what it gains
    #[arg(long, value_name = "ID", value_parser = proof)]
    proof: Option<String>,
    #[command(flatten)]
    gates: GateOptions,
    /// Pin it although it does not pass a gate
    #[arg(long)]
    force: bool,
    /// Commit the pin on this branch, which is made where it is not there; nothing else is committed
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Push that branch to this remote
    #[arg(long, value_name = "REMOTE", requires = "branch")]
    push: Option<String>,
    /// Write units of systemd to DIR that do the same every week, for `planish install publish`
    #[arg(long, value_name = "DIR")]
    timer: Option<PathBuf>,
    /// In those units, record PROFILE of this service first
    #[arg(long, value_name = "NAME.service", requires = "timer")]
    record_unit: Option<String>,
}

fn proof(text: &str) -> Result<String, String> {
    let is_id = (8..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { Ok(text.to_owned()) } else { Err("an id of a proof is 8 to 64 hexadecimal digits".to_owned()) }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    // In a weekly unit the recording before this one has a right that git, its hooks and a store are not to get. Where
    // there are no such rights, there is nothing to take away.
    let _ = rustix::thread::clear_ambient_capability_set();
    let now = super::now(context);
    let place = Place::open(&args.pin, args.branch.as_deref())?;
    let before = place.pinned()?;
    let draft = Draft::make(&args.profile, args.order.as_deref())?;
    let (overlap, mut warnings) = draft.overlap(before.as_ref(), &folder_of(&args.pin));
    let location = location(args, before.as_ref())?;
    let store = Store::at(location.clone());

    let mut pin = draft.pin(&location.to_string());
    (pin.overlap, pin.proof) = (overlap, args.proof.clone());
    pin.previous = before.as_ref().map(|before| Previous {
        profile: before.profile.sha256.clone(),
        order: before.order.sha256.clone(),
    });
    let gates = args.gates.gates();
    let doubts: Vec<String> = gates.doubts(&pin, now).iter().map(ToString::to_string).collect();
    if !doubts.is_empty() && !args.force {
        return Err(refused(&doubts, context));
    }
    let copy = args.copy || place.has(&copy_beside(&args.pin))?;
    let same =
        before.filter(|before| is_same(before, &pin)).filter(|_| !copy || place.has_copy(&draft.order));

    // After this point builds may be pinned to it: it is in the store, and was read back.
    for text in [&draft.profile, &draft.order] {
        store.put(text.as_bytes()).map_err(in_store)?;
    }

    let mut commit = None;
    let changed = same.is_none();
    if changed {
        let written = Written { pin: pin.text(), order: copy.then_some(draft.order.as_str()) };
        commit = place.write(&written, &message(&pin))?;
    }
    warnings.extend(looked_at(&doubts, overlap));
    warnings.extend(draft.warnings());
    let pushed = args.push.as_deref().filter(|_| changed).map(|remote| place.push(remote));
    let units = match &args.timer {
        Some(folder) => {
            let written = written(args, &place, &location);
            timer::write(folder, &args.profile, args.record_unit.as_deref(), written, context)?
        }
        None => Vec::new(),
    };
    let remote = args.push.clone().filter(|_| matches!(pushed, Some(Ok(()))));
    let branch = args.branch.clone().unwrap_or_default();
    let report = TextPublishReport {
        file: args.pin.display().to_string(),
        changed,
        pin: TextPinFacts::new(same.as_ref().unwrap_or(&pin), now),
        functions: draft.functions,
        order_by: draft.order_by.to_owned(),
        doubts,
        commit: commit.map(|commit| TextPinCommit { branch, commit, pushed: remote }),
        units: units.iter().map(|unit| unit.display().to_string()).collect(),
    };
    let mut answer = context.answer(&report, &Catalogue::default());
    for warning in warnings {
        answer = answer.warning(warning);
    }
    if let Some(Err(failure)) = pushed {
        answer = answer.message(failure.message("", "git push")).exit(Exit::Findings);
    }
    Ok(answer.next(next(args, &report)))
}

/// The store that is asked for, as any folder of this machine can read it.
fn location(args: &Args, before: Option<&Pin>) -> Result<Location, Failure> {
    let Some(text) = &args.store else {
        let before = before.ok_or_else(|| {
            Failure::usage("nothing is pinned yet, and no store is named").hint("planish ... --store STORE")
        })?;
        return Location::parse(&before.store, &folder_of(&args.pin)).map_err(in_store);
    };
    let here = std::path::absolute(".").map_err(Failure::usage)?;
    // A folder is told to builds in other folders: without the `..` that it was typed with.
    let found = Location::parse(text, &here).map_err(in_store)?;
    Ok(match found {
        Location::Folder(path) => Location::Folder(std::fs::canonicalize(&path).unwrap_or(path)),
        beyond => beyond,
    })
}

/// The folders that a publish like this one writes into: of the pin, of the store, and of git and a remote on this
/// machine.
fn written(args: &Args, place: &Place, location: &Location) -> Vec<PathBuf> {
    let store = match location {
        Location::Folder(path) => Some(path.clone()),
        Location::Beyond { .. } => None,
    };
    let folders = std::iter::once(folder_of(&args.pin)).chain(store);
    folders.chain(place.folders(args.push.as_deref())).collect()
}

fn refused(doubts: &[String], context: &Context) -> Failure {
    Failure::refused(format!("this profile is not pinned: {}", doubts.join("; ")))
        .hint(format!("record a new one, or: {}", context.again("--force")))
}

/// What somebody should look at before the pin is merged.
fn looked_at(doubts: &[String], overlap: Option<f64>) -> Vec<String> {
    let low = overlap.filter(|overlap| doubts.is_empty() && *overlap < OVERLAP_LOW);
    let low = low.map(|overlap| {
        format!("the profile shares {} of its weight with the one before: look at it", share(overlap))
    });
    doubts.iter().map(|doubt| format!("pinned by --force: {doubt}")).chain(low).collect()
}

/// Whether the builds would follow the same as before, and know the same of it.
fn is_same(before: &Pin, pin: &Pin) -> bool {
    let is_proved = pin.proof.is_none() || pin.proof == before.proof;
    (&before.store, &before.profile, &before.order) == (&pin.store, &pin.profile, &pin.order) && is_proved
}

fn message(pin: &Pin) -> String {
    // Stacks alone do not name it.
    let name =
        Path::new(&pin.program).file_name().map_or("the program".into(), |name| name.to_string_lossy());
    let hosts = planish_report::units::count(pin.hosts.len(), "host");
    let overlap = match pin.overlap {
        Some(overlap) => format!("It shares {} of its weight with the profile before.", share(overlap)),
        None => "There is no profile before it to compare with.".to_owned(),
    };
    let proof = pin.proof.as_ref().map(|proof| format!("\nProof: {proof}")).unwrap_or_default();
    format!(
        "Pin {name} to a new text profile\n\n{overlap}\nSamples of {hosts}; order {}.{proof}\nUndo: git revert\n",
        pin.order.handle
    )
}

fn next(args: &Args, report: &TextPublishReport) -> String {
    let pin = quoted(&args.pin.to_string_lossy());
    if let Some(unit) = report.units.last() {
        return format!("sudo planish install publish {}", quoted(unit));
    }
    match (&report.commit, &args.branch) {
        (Some(made), Some(branch)) if made.pushed.is_none() => format!("git push REMOTE {}", quoted(branch)),
        (None, None) if report.changed => format!("git add {pin} && git commit"),
        _ => format!("planish text fetch --pin {pin} --order order.txt"),
    }
}
