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
pub(crate) fn way_out(
    path: &str,
    holders: &[EntryId],
    is_link: bool,
    is_there: &dyn Fn(&str) -> bool,
) -> String {
    let mine = free_name(&format!("{path}.mine"), is_there);
    match holders {
        // The undo keeps the link, and so leaves nothing that stands for a file of ours.
        [.., newest] if is_link => format!(
            "put the file back in its place; or take what it held back, which leaves the link: planish undo {newest}, \
             and then move the link away: mv {path} {mine}"
        ),
        [] if is_link => format!("move it away first: mv {path} {mine}"),
        [] => format!("move it away first: {}", move_aside(path, is_there)),
        [.., newest] => {
            let older = if holders.len() > 1 { " and older ones" } else { "" };
            format!(
                "it holds lines of entry {newest}{older}: take them back first: planish undo {newest} (with --force, \
                 what was written into it since goes, too)"
            )
        }
    }
}

/// The command that moves a file away which others wrote lines into and which is in the way of one of ours. In a folder
/// of files that are read one after the other what they wrote counts under another name too, as far as ours and others
/// between, which are read later, do not say otherwise. A file of that name may be there from the last time, and its
/// lines are in force: the name is one that is free, behind those of before, whose lines are older; in tmpfiles.d,
/// where the first line counts, it is before them. `-n` leaves what was made there meanwhile.
#[must_use]
pub fn move_aside(path: &str, is_there: &dyn Fn(&str) -> bool) -> String {
    let aside = path.rsplit_once('/').filter(|(folder, _)| folder.ends_with(".d"));
    if let Some((folder, name)) = aside
        && let Some(number) = free_number(folder, name, is_there)
    {
        return format!(
            "mv -n {path} {folder}/{number}-was-{name} (which keeps in force what others wrote, save where a later \
             file says otherwise; to {} ends that)",
            free_name(&format!("{name}.mine"), &|name| is_there(&format!("{folder}/{name}")))
        );
    }
    format!("mv -n {path} {}", free_name(&format!("{path}.mine"), is_there))
}

/// The number that the first file has which is moved aside.
const ASIDE: u8 = 50;

/// The number before the name of a file that is moved aside; `None` where no name of two digits is free that is read
/// on the right side of those of before, and before ours.
fn free_number(folder: &str, name: &str, is_there: &dyn Fn(&str) -> bool) -> Option<u8> {
    let is_taken = |number: &u8| is_there(&format!("{folder}/{number}-was-{name}"));
    if folder.ends_with("/tmpfiles.d") {
        let first = (10..=ASIDE).find(is_taken).map_or(ASIDE, |first| first - 1);
        return Some(first).filter(|number| *number >= 10);
    }
    let last = (ASIDE..90).rfind(is_taken).map_or(ASIDE, |last| last + 1);
    Some(last).filter(|number| *number < 90)
}

/// A name that is free, by a number at its end where it has to be.
fn free_name(name: &str, is_there: &dyn Fn(&str) -> bool) -> String {
    let numbered = (2..100).map(|number| format!("{name}{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_there(name));
    free.unwrap_or_else(|| format!("{name}.more"))
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
