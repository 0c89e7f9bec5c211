//! Options of mounts: a size in percent is one of this machine's memory, a container's mounts are its runtime's, and
//! what a unit has of the host's are copies.

use planish_model::{
    Form, HostFacts, Knob, KnobId, Observation, ValueType, Verdict, VerdictKind, place, tmpfs_bytes,
    units::bytes,
};

/// Huge pages of all shared memory of the host.
const SHMEM: &str = "thp.shmem_enabled";

/// Why no access time is set where planish has mounts of its own.
const COPIES: &str = "cannot be set from here: planish runs with mounts of its own (a unit with PrivateTmp= or \
                      ProtectSystem=, a login by pam_namespace, unshare), and would set its copy alone; as root: \
                      nsenter --target 1 --mount planish ...";

/// A size of a tmpfs in bytes, as this machine counts it: whole pages, and percent of its memory. Any other value as it
/// is.
pub(crate) fn in_bytes(kind: &ValueType, wanted: String, host: &HostFacts) -> String {
    let ValueType::Form { form: Form::TmpfsSize } = kind else { return wanted };
    let bytes = tmpfs_bytes(&kind.normal(&wanted), host.memory_bytes, host.page_bytes);
    bytes.map_or(wanted, |bytes| bytes.to_string())
}

/// Why an option of a mount is not this system's to set, although it could be: what a container has mounted was made
/// for it by its runtime, which makes it anew at the next start, and the access time of a copy is the copy's alone.
/// What a tmpfs may hold and its huge pages are the file system's, the same in every copy.
pub(crate) fn of_others(knob: &Knob, host: &HostFacts) -> Option<Verdict> {
    if !knob.path.starts_with(place::MOUNTS) {
        return None;
    }
    if let Some(container) = &host.container {
        let reason = format!(
            "the mounts of this container ({container}) are made where it is started: --shm-size, or an emptyDir of \
             medium Memory"
        );
        return Some(Verdict::new(VerdictKind::Host, reason));
    }
    (host.mounts_apart && knob.path.ends_with("/atime")).then(|| Verdict::new(VerdictKind::Blocked, COPIES))
}

/// Why huge pages of one tmpfs are not its own to say: two words for all shared memory of the host overrule what any
/// mount says (mm/shmem.c, `shmem_huge_global_enabled`).
pub(crate) fn overruled(knob: &Knob, observation: &Observation) -> Option<String> {
    let is_huge = knob.path.starts_with(place::MOUNTS) && knob.path.ends_with("/huge");
    let of_all = observation.knobs.get(&KnobId::new(SHMEM)).filter(|_| is_huge)?;
    let told = of_all.first()?.value.as_deref()?;
    let word = told.split_once('[').and_then(|(_, rest)| rest.split(']').next()).unwrap_or(told).trim();
    match word {
        "deny" => Some(format!("{SHMEM} is deny, and keeps huge pages from every tmpfs: set that one first")),
        "force" => Some(format!("{SHMEM} is force, and gives huge pages to every tmpfs: set that one first")),
        _ => None,
    }
}

/// Why a tmpfs cannot have a size, by what its files take and by the memory that there is.
pub(crate) fn beyond_room(wanted: u64, [used, memory]: [u64; 2]) -> Option<String> {
    let shown = bytes(wanted);
    if wanted < used {
        return Some(format!("files in it take {}, and {shown} would not hold them", bytes(used)));
    }
    (wanted > memory).then(|| format!("{shown} are more than the memory of this machine, {}", bytes(memory)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{knob, observation, reading};

    #[test]
    fn what_all_shared_memory_has_overrules_what_a_mount_says() {
        let huge = knob("tmpfs.huge", "/planish/mounts/{mount}/huge");
        let said = |knob: &Knob, text: &str| {
            let mut observation = observation();
            let shmem = reading("/sys/kernel/mm/transparent_hugepage/shmem_enabled", text);
            observation.knobs.insert(KnobId::new(SHMEM), vec![shmem]);
            let place = reading("/planish/mounts/dev-shm/huge", "never");
            let verdict = crate::verdict(knob, &observation, &place);
            (verdict.verdict, verdict.reason)
        };
        for word in ["deny", "force"] {
            let told = said(&huge, &format!("always within_size advise never [{word}]"));
            assert_eq!(told.0, VerdictKind::Moot);
            assert!(told.1.starts_with(&format!("{SHMEM} is {word}")), "{}", told.1);
        }
        assert_eq!(said(&huge, "always within_size advise [never] deny force").0, VerdictKind::Settable);
        let size = knob("tmpfs.size", "/planish/mounts/{mount}/size");
        assert_eq!(said(&size, "deny").0, VerdictKind::Settable);
    }

    #[test]
    fn percent_are_those_of_the_memory_in_whole_pages() {
        let host = HostFacts { memory_bytes: (1 << 30) + 4096, page_bytes: 4096, ..HostFacts::default() };
        let size = ValueType::Form { form: Form::TmpfsSize };
        let bytes = |text: &str| in_bytes(&size, text.to_owned(), &host);
        assert_eq!(["50%", "1G", "5000"].map(bytes), ["536875008", "1073741824", "8192"]);
        let text = ValueType::Text { text: true };
        assert_eq!(in_bytes(&text, "50%".to_owned(), &host), "50%");
    }

    #[test]
    fn a_size_holds_what_is_there_and_memory_holds_the_size() {
        let refused = |wanted| beyond_room(wanted, [4 << 20, 1 << 30]);
        assert_eq!([4 << 20, 1 << 30].map(refused), [None, None]);
        let small = refused((4 << 20) - 4096).expect("too small");
        assert!(small.starts_with("files in it take 4 MiB"), "{small}");
        assert_eq!(
            refused(2 << 30).expect("too large"),
            "2 GiB are more than the memory of this machine, 1 GiB"
        );
    }

    #[test]
    fn a_container_has_its_mounts_from_its_runtime() {
        let docker = HostFacts { container: Some("docker".to_owned()), ..HostFacts::default() };
        let size = knob("tmpfs.size", "/planish/mounts/{mount}/size");
        let verdict = of_others(&size, &docker).expect("not here");
        assert_eq!(verdict.verdict, VerdictKind::Host);
        assert!(verdict.reason.contains("(docker)"), "{}", verdict.reason);
        assert_eq!(of_others(&size, &HostFacts::default()), None);
        assert_eq!(of_others(&knob("vm.swappiness", "/proc/sys/vm/swappiness"), &docker), None);
    }

    #[test]
    fn the_access_time_of_a_copy_is_not_set_and_what_all_copies_share_is() {
        let unit = HostFacts { mounts_apart: true, ..HostFacts::default() };
        let verdict =
            of_others(&knob("mount.atime", "/planish/mounts/{mount}/atime"), &unit).expect("a copy");
        assert_eq!(verdict.verdict, VerdictKind::Blocked);
        assert!(verdict.reason.contains("nsenter --target 1 --mount"), "{}", verdict.reason);
        for (id, file) in [("tmpfs.size", "size"), ("tmpfs.huge", "huge")] {
            assert_eq!(of_others(&knob(id, &format!("/planish/mounts/{{mount}}/{file}")), &unit), None);
        }
    }
}
