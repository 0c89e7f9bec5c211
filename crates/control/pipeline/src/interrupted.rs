//! Entries that are half way on the host: planish was killed amid an apply or an undo, or an undo could not put
//! something back. One that is at work right now is no matter of anybody's.

use std::fmt;

use planish_model::{Cpus, Entry, EntryId, EntryState, EntryStep, KnobId, Undo, bootline};

use crate::session::Session;
use crate::{gone, transition};

/// An entry that is neither whole on the host nor off it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The entry.
    pub entry: EntryId,
    /// How it came to that.
    pub how: Half,
    /// The entry whose place it was to take: that one is open still.
    pub old: Option<EntryId>,
}

/// How an entry came to be half way on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Half {
    /// A kill amid the apply.
    Applied,
    /// A kill amid the undo.
    Undone,
    /// The undo went to its end, and could not put all of it back.
    Left,
    /// A placement whose unit files hold, while a reboot took what it had placed with them.
    Placed,
    /// A placement that is undone, but for this drop-in: somebody had changed it, and it pins its service still.
    Kept(String),
}

impl Interrupted {
    /// What to type, behind `planish`.
    #[must_use]
    pub fn cure(&self) -> String {
        let force = if matches!(self.how, Half::Kept(_)) { " --force" } else { "" };
        format!("undo {}{force}", self.entry)
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, how, old } = self;
        match how {
            Half::Undone => {
                write!(f, "the undo of entry {entry} was interrupted, which is half way on the host")?
            }
            Half::Applied => write!(f, "entry {entry} was interrupted and is half way on the host")?,
            Half::Placed => write!(
                f,
                "entry {entry} keeps services on CPUs of their own, and a reboot took the interrupts, partitions or \
                 pools that it placed with them: apply its profile again, or take it back"
            )?,
            Half::Left => write!(f, "entry {entry} is undone in part, and the rest could not be put back")?,
            Half::Kept(file) => write!(
                f,
                "entry {entry} is undone, and {file}, which somebody had changed, keeps its service where it was \
                 placed, without the rest of the placement: take the lines of planish out of it, or all of it"
            )?,
        }
        match old {
            Some(old) => write!(f, " (it was to take the place of entry {old}, which stays)"),
            None => Ok(()),
        }
    }
}

/// All of them, oldest first, as a reboot since would have left them. What [`transition::unfinished`] names is told
/// there: it goes because another entry is whole.
pub(crate) fn all(session: &Session, entries: &[Entry]) -> Vec<Interrupted> {
    let mut seen = entries.to_vec();
    let boot_id = session.host().boot_id();
    gone::show(&mut seen, &boot_id);
    let is_told = |id: EntryId| transition::unfinished(entries).iter().any(|left| left.old == id);
    let of = |entry: &Entry| {
        let how = match (entry.state, entry.undo_begun) {
            (EntryState::Interrupted, false) => Half::Applied,
            (EntryState::Interrupted, true) => Half::Undone,
            _ if entry.is_undone_in_part() => Half::Left,
            _ if is_half_placed(session, entry, entries, &boot_id) => Half::Placed,
            _ => Half::Kept(pinned_by_what_is_left(session, entry, entries)?),
        };
        let is_open = |old: &EntryId| seen.iter().any(|other| other.id == *old && other.is_open());
        let old = entry.instead_of.filter(is_open).filter(|_| !entry.undo_begun);
        Some(Interrupted { entry: entry.id, how, old })
    };
    let all: Vec<Interrupted> = seen.iter().filter(|entry| !is_told(entry.id)).filter_map(of).collect();
    // Asked last: what was half way when the journal was read may be whole by now, and is then no news either.
    if !all.is_empty() && session.is_written_now() { Vec::new() } else { all }
}

/// The knob of which a step pins a service.
const PINS: &str = "unit.placement";

/// The drop-in that pins a service still, of an entry that is undone: its undo had found it changed, and left it.
/// `None` where nothing of ours is in it any more, or where a newer entry pins by it.
fn pinned_by_what_is_left(session: &Session, entry: &Entry, entries: &[Entry]) -> Option<String> {
    let kind = &session.catalogue().knob(&KnobId::new(PINS)).ok()?.r#type;
    let is_pinned_anew = |place: &str| {
        let mut steps = entries.iter().filter(|other| other.is_open()).flat_map(|other| &other.steps);
        steps.any(|step| step.place == place && !step.is_undone())
    };
    let holds = |step: &&EntryStep| {
        let text = session.host().read(&step.place).unwrap_or_default();
        let (now, ours) = (kind.normal(&text), kind.normal(&step.wanted));
        ours.split_whitespace().any(|own| now.split_whitespace().any(|line| line == own))
    };
    let left = entry.steps.iter().filter(|step| step.knob.as_str() == PINS && step.left_theirs());
    let mut left = left.filter(|step| !is_pinned_anew(&step.place)).filter(holds);
    left.next().filter(|_| !entry.is_open()).map(|step| step.place.clone())
}

/// Whether a reboot took a part of what an entry had placed, and neither the boot loader brings it nor did a newer
/// entry of the profile, or anybody else.
fn is_half_placed(session: &Session, entry: &Entry, entries: &[Entry], boot_id: &str) -> bool {
    let pins = |step: &EntryStep| step.knob.as_str() == PINS && !step.is_undone();
    if !entry.is_open() || entry.boot_id == boot_id || !entry.steps.iter().any(pins) {
        return false;
    }
    let in_boot = planish_model::in_boot(entries, boot_id, &|_| None);
    let Some(own) = in_boot.iter().find(|other| other.id == entry.id) else { return false };
    // The profile applied once more: its name alone is no placement.
    let is_of_now =
        |other: &&Entry| other.is_open() && other.boot_id == boot_id && other.profile == entry.profile;
    let newer: Vec<&EntryStep> = entries.iter().filter(is_of_now).flat_map(|other| &other.steps).collect();
    let has_arguments = entry.steps.iter().any(|step| step.boot_arguments().is_some());
    let is_lost = |step: &&EntryStep| {
        // Isolation, and the masks of what is bound to no CPU, come by the arguments.
        let comes = has_arguments && step.knob.as_str() != ONE_INTERRUPT;
        let is_again = || newer.iter().any(|other| other.knob == step.knob && !other.is_undone());
        gone::is_gone(step) && !comes && !is_again() && !is_as_placed(session, entry, step)
    };
    own.steps.iter().any(|step| is_lost(&step))
}

/// The knob of which each place is one interrupt.
const ONE_INTERRUPT: &str = "irq.affinity";

/// Whether a place has what an entry of an earlier boot had set there. An interrupt that was to keep off the CPUs of
/// services does so wherever it is among those that keep house; one that no number means any more tells nothing.
fn is_as_placed(session: &Session, entry: &Entry, step: &EntryStep) -> bool {
    let now = session.host().read(&step.place);
    if step.knob.as_str() == ONE_INTERRUPT {
        let Ok(now) = now else { return true };
        let (now, wanted) = (Cpus::parse(now.trim()), Cpus::parse(step.wanted.trim()));
        let Some((now, wanted)) = now.zip(wanted) else { return false };
        let keeps_house = |kept: Cpus| wanted.is_within(&kept) && now.is_within(&kept);
        return now.is_within(&wanted) || housekeeping(entry).is_some_and(keeps_house);
    }
    let Ok(now) = now else { return false };
    let pages = |text: &str| text.trim().parse::<u64>().ok();
    match session.catalogue().knob(&step.knob) {
        _ if step.undo == Undo::Subtract => pages(&now) >= pages(&step.wanted),
        Ok(knob) => knob.r#type.same(&now, &step.wanted),
        Err(_) => false,
    }
}

/// The CPUs that an entry of a placement has keep house.
fn housekeeping(entry: &Entry) -> Option<Cpus> {
    let arguments = entry.steps.iter().filter_map(EntryStep::boot_arguments).flat_map(bootline::arguments);
    let mut lists = arguments.filter_map(|argument| Cpus::parse(argument.strip_prefix("irqaffinity=")?));
    let mask = || {
        let default = entry.steps.iter().find(|step| step.knob.as_str() == "irq.default_affinity")?;
        Cpus::parse_mask(default.wanted.trim())
    };
    lists.next().or_else(mask)
}
