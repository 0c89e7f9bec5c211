//! What is said of files and journals that are not as planish left them, or not of this host, and the way out.

use std::io::ErrorKind;

use planish_act::SinkError;
use planish_model::{EntryId, place};

use super::{PipelineError, listed};

/// What a link leads to by which a file of that name is forbidden.
const MASK: &str = "/dev/null";

/// What to do about a journal of another host.
pub(super) const OTHER_HOST: &str = "give each host a journal of its own: --state DIR, or none; what is in this one \
                                     is undone on its own host (planish log tells it). Where this is that host and \
                                     /etc/machine-id was made anew since, put the old one back for the undo: it is a \
                                     name in /var/log/journal. Where this disk is a copy of that host's, \
                                     docs/journal.md says what to remove";

/// What is wrong with a file of ours that is not as planish left it.
pub(super) fn what(holders: &[EntryId], link: Option<&str>) -> String {
    match link {
        // systemd and its kin call that a mask: whoever made it forbids the file.
        Some(MASK) => format!("is masked: it is a link to {MASK}, and was not made by planish"),
        Some(target) => format!("is a link to {target}, and was not made by planish"),
        None if holders.is_empty() => "exists, and no open entry of this journal wrote it".to_owned(),
        None => "is not as planish left it: someone edited or removed it".to_owned(),
    }
}

/// What is told of others behind the first.
pub(super) fn and(others: &[PipelineError]) -> String {
    others.iter().map(|other| format!("; {other}")).collect()
}

/// The cure of a file of ours that is not as planish left it, with the entries that have lines in it.
pub(super) fn way_out(path: &str, holders: &[EntryId], is_link: bool) -> String {
    match holders {
        // The undo keeps the link, and so leaves nothing that stands for a file of ours.
        [.., newest] if is_link => format!(
            "put the file back in its place; or take what it held back, which leaves the link: planish undo {newest}, \
             and then move the link away: mv {path} {path}.mine"
        ),
        [] if is_link => format!("move it away first: mv {path} {path}.mine"),
        [] => format!("move it away first: {}", move_aside(path)),
        [.., newest] => {
            let older = if holders.len() > 1 { " and older ones" } else { "" };
            format!("it holds lines of entry {newest}{older}: take them back first: planish undo {newest}")
        }
    }
}

/// The command that moves a file away which others wrote lines into and which is in the way of one of ours. In a folder
/// of files that are read one after the other what they wrote counts under another name too, as far as ours and others
/// between, which are read later, do not say otherwise. A file of that name may be there from the last time: `-n`
/// leaves it, whose lines are in force, and the file to be moved stays in the way.
#[must_use]
pub fn move_aside(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, name)) if folder.ends_with(".d") => {
            format!(
                "mv -n {path} {folder}/50-was-{name} (which keeps in force what others wrote, save where a later file \
                 says otherwise; to {name}.mine ends that)"
            )
        }
        _ => format!("mv -n {path} {path}.mine"),
    }
}

/// The entries that something is said of.
pub(super) fn are(entries: &[EntryId]) -> String {
    let is = if entries.len() == 1 { "is entry" } else { "are entries" };
    format!("{is} {}", listed(entries))
}

/// The cure of what cannot be read before the first write: the place went, or a file is in another encoding.
pub(super) fn of_unread(error: &SinkError) -> String {
    let is_odd = error.source.kind() == ErrorKind::InvalidData;
    if is_odd && !place::is_of_the_kernel(&error.place) {
        return format!(
            "have that line in UTF-8, or without the byte: {} is text for whoever changes it",
            error.place
        );
    }
    "make the plan again: planish plan PROFILE".to_owned()
}

/// The cure of a file of a boot loader that was edited since it was shown.
pub(super) fn of_unshown(path: &str, entry: EntryId) -> String {
    format!(
        "take the entry back and apply anew, to see what {path} becomes now: planish undo {entry}; \
         or put {path} back as it was, then once more: planish confirm"
    )
}

/// The cure of a file that went between an apply and its confirm.
pub(super) fn of_gone(entry: EntryId) -> String {
    format!("take the entry back and apply anew, to the files that are there now: planish undo {entry}")
}
