//! What was achieved, as the value that is printed and written.

use std::ffi::OsString;
use std::time::Duration;

use planish_placement::{Achieved, Launch, Libc, PrivateAt, SegmentAt, Share};
use planish_report::{RunInstance, RunPrivate, RunReport, RunSegment, RunShare, RunText, RunVariable};

/// The report of all instances.
pub(super) fn whole(command: &[OsString], launch: &Launch, instances: Vec<RunInstance>) -> RunReport {
    let libc = match launch.program.libc {
        Some(Libc::Glibc { minor: Some(minor) }) => format!("glibc 2.{minor}"),
        Some(Libc::Glibc { minor: None }) => "glibc".to_owned(),
        Some(Libc::Musl) => "musl".to_owned(),
        Some(Libc::Other) => "other".to_owned(),
        None => "none".to_owned(),
    };
    RunReport {
        command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        program: launch.program.path.display().to_string(),
        libc,
        instances,
    }
}

/// The report of one instance; of one that was not looked at, what the preload `answered`.
pub(super) fn instance(
    node: Option<u32>,
    pid: u32,
    exit: Option<u8>,
    launch: &Launch,
    seen: Option<&(Duration, Achieved)>,
    text: Option<RunText>,
    answered: &[SegmentAt],
) -> RunInstance {
    let variables = launch.variables.iter().map(|(name, value)| RunVariable {
        name: (*name).to_owned(),
        value: value.to_string_lossy().into_owned(),
    });
    let achieved = seen.map(|(_, achieved)| achieved);
    RunInstance {
        node,
        pid,
        exit,
        seen: achieved.is_some(),
        looked_after_s: seen.map(|(after, _)| after.as_secs_f64()),
        segments: achieved.map_or(answered, |achieved| &achieved.segments[..]).iter().map(segment).collect(),
        private: achieved.map(|achieved| achieved.private.iter().map(private).collect()).unwrap_or_default(),
        thp_bytes: achieved.map_or(0, |achieved| achieved.thp_bytes),
        text,
        unseen: achieved.map(|achieved| achieved.unseen.clone()).unwrap_or_default(),
        drop_in: launch.drop_in(),
        variables: variables.collect(),
    }
}

fn segment(at: &SegmentAt) -> RunSegment {
    RunSegment {
        pid: at.pid,
        kind: at.kind.to_owned(),
        name: at.name.clone(),
        bytes: at.bytes,
        shares: at.shares.iter().map(share).collect(),
        seconds: at.seconds,
        threads: at.threads,
        short: at.short.clone(),
    }
}

fn private(at: &PrivateAt) -> RunPrivate {
    RunPrivate {
        pid: at.pid,
        shares: at.shares.iter().map(share).collect(),
        ran_on: at.ran_on.clone(),
        local_share: at.local_share,
        short: at.short.clone(),
    }
}

fn share(at: &Share) -> RunShare {
    RunShare {
        node: at.node,
        backing: at.backing.into(),
        page_bytes: at.page_bytes,
        resident_bytes: at.bytes,
    }
}
