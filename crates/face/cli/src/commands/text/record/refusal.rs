//! What is said where nothing can be recorded.

use planish_sys::sampling::{Refusal, SamplingError};

use super::target::{Who, no_process};
use crate::failure::Failure;

/// The failure with its cure.
pub(crate) fn failure(error: SamplingError, who: &Who) -> Failure {
    let is_host_wide = matches!(who, Who::Group { .. } | Who::Host);
    let hints = match (&error, who) {
        (SamplingError::Gone, Who::Process { pid, .. }) => return no_process(*pid),
        (SamplingError::Refused(refused), _) => cures(refused, is_host_wide),
        (SamplingError::Files { needed, .. }, _) => {
            vec![format!("ulimit -Hn {needed}, as root, in this shell")]
        }
        (SamplingError::Rings(_), _) => {
            vec!["ulimit -l unlimited, as root, in this shell; or: sudo planish ...".to_owned()]
        }
        (SamplingError::Gone | SamplingError::Call(_), _) => Vec::new(),
    };
    hints.into_iter().fold(Failure::refused(error), Failure::hint)
}

/// Whether the machine has what was asked for, and this user may not have it.
pub(crate) fn is_of_rights(why: &Refusal) -> bool {
    matches!(why, Refusal::Paranoid { .. } | Refusal::Blocked { .. })
}

fn cures(refused: &[(planish_sys::sampling::Source, Refusal)], is_host_wide: bool) -> Vec<String> {
    let has = |wanted: fn(&Refusal) -> bool| refused.iter().any(|(_, why)| wanted(why));
    if has(|why| matches!(why, Refusal::Paranoid { .. })) {
        // 2 is enough for user code of one's own processes; a CPU as a whole, which a group needs too, wants 0.
        let wanted = if is_host_wide { 0 } else { 2 };
        let is_set = has_level(refused).is_some_and(|level| level <= wanted);
        // What the setting allows is refused by whose process it is.
        let other = "sudo planish ..., or as the user whose process it is".to_owned();
        let setting = format!("or let every user: sysctl -w kernel.perf_event_paranoid={wanted}");
        return if is_set { vec![other] } else { vec!["sudo planish ...".to_owned(), setting] };
    }
    if has(|why| matches!(why, Refusal::Blocked { .. })) {
        return vec![
            "sudo planish ...; in a container, with --cap-add PERFMON and a seccomp profile that allows it"
                .to_owned(),
        ];
    }
    // Without one all were tried.
    let is_asked_for = refused.len() == 1;
    if is_asked_for
        && has(|why| matches!(why, Refusal::NoPmu | Refusal::NoBranchStacks | Refusal::NoAccesses))
    {
        return vec!["leave --event out: the best that this machine has is taken".to_owned()];
    }
    vec!["record with perf elsewhere, and: planish text import F".to_owned()]
}

fn has_level(refused: &[(planish_sys::sampling::Source, Refusal)]) -> Option<i32> {
    refused.iter().find_map(|(_, why)| match why {
        Refusal::Paranoid { level } => Some(*level),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use planish_sys::Errno;
    use planish_sys::sampling::Source;

    use super::*;

    #[test]
    fn every_refusal_has_its_cure() {
        let cure = |why, host_wide| cures(&[(Source::CpuClock, why)], host_wide).join("\n");
        assert!(cure(Refusal::Paranoid { level: 4 }, false).contains("perf_event_paranoid=2"));
        assert!(cure(Refusal::Paranoid { level: 1 }, true).contains("perf_event_paranoid=0"));
        let set = cure(Refusal::Paranoid { level: 2 }, false);
        assert!(!set.contains("sysctl") && set.contains("the user whose process"), "it is 2 already: {set}");
        let all = [(Source::Branches, Refusal::NoPmu), (Source::CpuClock, Refusal::NoKernel)];
        assert!(!cures(&all, true).join("").contains("--event"), "none was given");
        assert!(cure(Refusal::Blocked { errno: Errno::PERM }, false).contains("PERFMON"));
        assert!(cure(Refusal::NoPmu, false).contains("--event"));
        assert!(cure(Refusal::NoKernel, false).contains("text import"));
    }
}
