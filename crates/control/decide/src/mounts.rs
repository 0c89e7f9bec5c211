//! Options of mounts: a size in percent is one of this machine's memory, and a container's mounts are its runtime's.

use planish_model::{
    Form, HostFacts, Knob, ValueType, Verdict, VerdictKind, place, tmpfs_bytes, units::bytes,
};

/// A size of a tmpfs in bytes, as this machine counts it: whole pages, and percent of its memory. Any other value as it
/// is.
pub(crate) fn in_bytes(kind: &ValueType, wanted: String, host: &HostFacts) -> String {
    let ValueType::Form { form: Form::TmpfsSize } = kind else { return wanted };
    let bytes = tmpfs_bytes(&kind.normal(&wanted), host.memory_bytes, host.page_bytes);
    bytes.map_or(wanted, |bytes| bytes.to_string())
}

/// Why an option of a mount is not this system's to set, although it could be: what a container has mounted was made
/// for it by its runtime, which makes it anew at the next start.
pub(crate) fn of_container(knob: &Knob, host: &HostFacts) -> Option<Verdict> {
    let container = host.container.as_ref().filter(|_| knob.path.starts_with(place::MOUNTS))?;
    let reason = format!(
        "the mounts of this container ({container}) are made where it is started: --shm-size, or an emptyDir of medium \
         Memory"
    );
    Some(Verdict::new(VerdictKind::Host, reason))
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
    use crate::testing::knob;

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
        let verdict = of_container(&size, &docker).expect("not here");
        assert_eq!(verdict.verdict, VerdictKind::Host);
        assert!(verdict.reason.contains("(docker)"), "{}", verdict.reason);
        assert_eq!(of_container(&size, &HostFacts::default()), None);
        assert_eq!(of_container(&knob("vm.swappiness", "/proc/sys/vm/swappiness"), &docker), None);
    }
}
