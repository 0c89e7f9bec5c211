//! The unit of systemd that has each boot start the process which holds a limit.
//!
//! Two files: the service, and a drop-in of `multi-user.target` that pulls it in, since the journal keeps originals
//! of files, and not of links. No file is run before the next boot: until then the process that apply started
//! holds the limit. The command line is the same, so that the one of a boot is known for ours, and ended by undo.

use planish_host::Host;
use planish_model::EntryStep;
use planish_model::place::{DMA_LATENCY, HOLDS};
use planish_sys::hold;

use crate::persist::file_step;

/// Where packages put the program: what a recorded host is taken to have.
const PACKAGED: &str = "/usr/bin/planish";

/// Whether a place is what a process holds.
pub(crate) fn is_for(place: &str) -> bool {
    place == DMA_LATENCY
}

/// Whether a value limits anything.
pub(crate) fn is_limit(value: &str) -> bool {
    value.trim().parse::<u32>().is_ok_and(|limit| limit < hold::NO_LIMIT_US)
}

/// The steps for a limit.
///
/// # Errors
/// What is missing on this host, and what to do instead.
pub(crate) fn steps(host: &Host, limit: &str) -> Result<[EntryStep; 2], (&'static str, &'static str)> {
    const AGAIN: &str = "apply again after each boot, from a unit of your own";
    if !planish_observe::is_systemd(host) {
        return Err(("no systemd is process 1 here, which would start the process that holds it", AGAIN));
    }
    let program = match host.is_live() {
        true => std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok()),
        false => Some(PACKAGED.to_owned()),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    let program = program.filter(|path| path.chars().all(is_plain)).ok_or((
        "the path of this program means something else in a unit, or nobody knows where it lies",
        "install planish as a package, and apply again",
    ))?;
    let service = format!(
        "[Unit]
Description=Keep CPUs out of sleep states that take longer to leave than planish was told
# A boot does not wait for every disk, and this program may lie on one of those.
RequiresMountsFor={program}
[Service]
Type=exec
ExecStart={program}{HOLDS}{limit}
# What undo ends stays ended; what was killed comes back.
Restart=on-failure
OOMScoreAdjust=-900
CapabilityBoundingSet=
NoNewPrivileges=yes
DevicePolicy=closed
DeviceAllow=/dev/cpu_dma_latency rw
"
    );
    let pulled_in = format!("[Unit]\n{}\n", hold::WANTED);
    let start = file_step("persist.hold_start", hold::PULLED_IN, pulled_in);
    Ok([file_step("persist.hold", hold::UNIT_FILE, service), start])
}

#[cfg(test)]
mod tests {
    use planish_model::Persisted;

    use super::*;

    /// Names and words of the holder stand in `planish_sys::hold`; the model, which links nothing, has two of them
    /// again.
    #[test]
    fn the_model_calls_the_holder_as_the_system_does() {
        assert_eq!(HOLDS, format!(" {} ", hold::WORDS.join(" ")));
        assert_eq!(Persisted::OWN_HOLDER, hold::UNIT);
        assert!(hold::UNIT_FILE.ends_with(&format!("/{}", hold::UNIT)));
        assert_eq!(hold::WANTED, format!("Wants={}", hold::UNIT));
        assert_eq!(hold::limit_in_unit(&format!("/usr/bin/planish{HOLDS}20")), Some("20"));
    }
}
