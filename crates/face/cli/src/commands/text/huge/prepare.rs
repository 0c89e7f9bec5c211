//! `--prepare`: room for huge pages, made before a route is gone.
//!
//! What it does no undo takes back, as nothing of it holds a value: memory that lies closer together, and caches that
//! are read again. Each is an entry of the journal that says so, and is closed at once.

use clap::ValueEnum;
use planish_host::{Access, Host};
use planish_model::{BuddyRow, KnobId, fitting};
use planish_pipeline::{deed_access, do_once};
use planish_report::{TextActionRow, TextPrepared};

use crate::context::Context;
use crate::failure::Failure;

/// What makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Prepare {
    /// The kernel moves memory together
    Compact,
    /// It empties its caches first, of everybody's files
    DropCaches,
}

impl Prepare {
    /// The actions, with what is written. The page cache alone is dropped: names and inodes are small, and everybody's.
    fn actions(self) -> &'static [(&'static str, &'static str)] {
        const COMPACT: (&str, &str) = ("vm.compact_memory", "1");
        match self {
            Self::Compact => &[COMPACT],
            // What is free cannot be in the way of what is moved.
            Self::DropCaches => &[("vm.drop_caches", "1"), COMPACT],
        }
    }
}

/// Makes room, or tells on a dry run by what it would be made. Either all of it can be had here, or nothing is done.
pub(super) fn prepare(
    wanted: Prepare,
    huge_bytes: u64,
    (reason, dry_run): (Option<&str>, bool),
    context: &Context,
) -> Result<TextPrepared, Failure> {
    let session = context.session()?;
    let actions = || wanted.actions().iter().map(|(knob, value)| (KnobId::new(*knob), *value));
    for (knob, _) in actions() {
        let access = deed_access(&session, &knob)?;
        if !access.is_writable() {
            let failed =
                Failure::refused(format!("memory cannot be prepared here: {knob} {}", kept(&access)));
            return Err(
                failed.hint("leave --prepare out, or have it done outside of this container, by root")
            );
        }
    }
    let before = blocks(session.host());
    let mut done = Vec::new();
    for (knob, value) in actions() {
        let entry = (!dry_run).then(|| do_once(&session, &knob, value, reason)).transpose()?;
        done.push(TextActionRow { knob, value: value.to_owned(), entry });
    }
    let after = if dry_run { before.clone() } else { blocks(session.host()) };
    let free = |blocks: &[BuddyRow]| fitting(blocks, None, huge_bytes, session.host().page_bytes());
    Ok(TextPrepared { actions: done, pages_before: free(&before), pages_after: free(&after), before, after })
}

fn blocks(host: &Host) -> Vec<BuddyRow> {
    BuddyRow::parse_all(&host.read("/proc/buddyinfo").unwrap_or_default())
}

fn kept(access: &Access) -> String {
    match access {
        Access::Absent => "is not there: the kernel has none, or this container shows none".to_owned(),
        Access::ReadOnlyMount => "lies on a mount that is read-only, as in a container".to_owned(),
        Access::Denied(why) => why.clone(),
        Access::ReadOnly | Access::WriteOnly | Access::Writable => "has no right to be written".to_owned(),
    }
}
