//! Boot parameters of huge pages that this kernel has nothing of: it says so in its log alone, and a machine would be
//! booted for nothing. Of an argument with a size that it does not have, the pages behind it are passed over as well
//! (`hugepagesz_setup` and `hugepages_setup` of `mm/hugetlb.c`).
//!
//! What a kernel has is in /sys/kernel/mm. Its sizes are all there on x86-64 and on Arm; elsewhere a boot may bring one
//! that is not listed until then.

use planish_model::{HostFacts, Knob, bootline, units::bytes};

/// Where a kernel lists the sizes of all pages that a boot can ask for (`gigantic_pages_init` of
/// `arch/x86/mm/hugetlbpage.c`, `hugetlbpage_init` of `arch/arm64/mm/hugetlbpage.c`).
const LISTED_ON: [&str; 2] = ["x86_64", "aarch64"];

/// Why no value of a boot parameter would come to anything.
pub(crate) fn unknown_to_kernel(knob: &Knob, host: &HostFacts) -> Option<String> {
    let (name, size) = knob.boot_parameter()?;
    if name.starts_with("transparent_hugepage") || name.starts_with("thp_") {
        return (host.has_thp == Some(false)).then(|| "this kernel has no transparent huge pages".to_owned());
    }
    if !["hugepages", "default_hugepagesz", "hugetlb_cma", "hugetlb_free_vmemmap"].contains(&name) {
        return None;
    }
    match (host.has_hugetlb, size) {
        (Some(false), _) => Some("this kernel has no pools of huge pages".to_owned()),
        (_, Some(size)) => without_size(size, host),
        _ => None,
    }
}

/// Why this value of one would not.
pub(crate) fn unknown_size(knob: &Knob, wanted: &str, host: &HostFacts) -> Option<String> {
    let (name, _) = knob.boot_parameter()?;
    if name == "default_hugepagesz" { without_size(wanted.trim(), host) } else { None }
}

fn without_size(size: &str, host: &HostFacts) -> Option<String> {
    let wanted = bootline::size(size)?;
    let is_listed = host.has_hugetlb == Some(true) && LISTED_ON.contains(&host.arch.as_str());
    (is_listed && !host.huge_page_bytes.contains(&wanted)).then(|| {
        let here: Vec<String> = host.huge_page_bytes.iter().map(|size| bytes(*size)).collect();
        format!("this kernel has no huge pages of {}: it has those of {}", bytes(wanted), here.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use planish_model::{Catalogue, Class, KnobId, NOT_GIVEN, Reading, VerdictKind, Want};

    use super::*;
    use crate::testing::{observation, profile, reading};
    use crate::{Options, plan, verdict};

    /// What becomes of a wanted boot parameter, by verdict and reason, and whether a loader would give it.
    fn wished(id: &str, value: &str, change: impl Fn(&mut HostFacts)) -> (VerdictKind, String, bool) {
        let catalogue = Catalogue::embedded().expect("sound");
        let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
        let mut observation = observation();
        observation.host.kernel = "6.17.0".to_owned();
        observation.host.has_thp = Some(true);
        observation.host.has_hugetlb = Some(true);
        change(&mut observation.host);
        let shown: Vec<Reading> = vec![reading(&knob.path, NOT_GIVEN)];
        let told = verdict(knob, &observation, &shown[0]);
        observation.knobs.insert(knob.id.clone(), shown);
        let wanted = value.parse().map_or_else(|_| Want::Text(value.to_owned()), Want::Int);
        let options = Options { allow_classes: vec![Class::Availability], ..Options::default() };
        let plan = plan(&catalogue, &observation, &profile(&[(id, wanted)]), &[], &options).expect("known");
        let row = plan.skipped.first().expect("a boot parameter is no step");
        assert!(told.verdict == row.verdict.verdict || id == "boot.default_hugepagesz", "{told:?} {row:?}");
        (row.verdict.verdict, row.verdict.reason.clone(), !plan.boot.is_empty())
    }

    #[test]
    fn a_size_that_the_kernel_does_not_have_is_given_by_no_loader() {
        let arm = |host: &mut HostFacts| {
            host.arch = "aarch64".to_owned();
            host.huge_page_bytes = vec![2 << 20, 512 << 20, 16 << 30];
        };
        let reason = "this kernel has no huge pages of 1 GiB: it has those of 2 MiB, 512 MiB, 16 GiB";
        for (id, value) in [("boot.hugepages.1g", "2"), ("boot.default_hugepagesz", "1G")] {
            assert_eq!(wished(id, value, arm), (VerdictKind::Absent, reason.to_owned(), false));
            assert_eq!(wished(id, value, |_| ()).0, VerdictKind::Reboot, "{id} where the size is there");
            let unlisted = |host: &mut HostFacts| {
                arm(host);
                host.arch = "s390x".to_owned();
            };
            assert!(wished(id, value, unlisted).2, "{id}: a boot may bring it");
        }
        assert!(wished("boot.hugepages.2m", "100", arm).2 && wished("boot.default_hugepagesz", "2M", arm).2);
    }

    #[test]
    fn a_kernel_without_huge_pages_is_given_no_parameter_of_them() {
        let without = |host: &mut HostFacts| {
            (host.has_thp, host.has_hugetlb) = (Some(false), Some(false));
            host.huge_page_bytes.clear();
        };
        for (id, value) in [
            ("boot.hugepages.2m", "100"),
            ("boot.default_hugepagesz", "1G"),
            ("boot.transparent_hugepage", "never"),
            ("boot.transparent_hugepage_shmem", "never"),
            ("boot.thp_anon", "64K:always"),
        ] {
            let (verdict, reason, is_given) = wished(id, value, without);
            assert_eq!((verdict, is_given), (VerdictKind::Absent, false), "{id}: {reason}");
            assert!(reason.starts_with("this kernel has no "), "{id}: {reason}");
            let unknown = |host: &mut HostFacts| (host.has_thp, host.has_hugetlb) = (None, None);
            assert!(wished(id, value, unknown).2, "{id}: nobody looked");
        }
    }
}
