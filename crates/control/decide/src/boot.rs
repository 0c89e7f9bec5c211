//! Boot parameters with which a machine would not come up to any use: no CPU left to run on, no memory left.
//!
//! Whoever asks for that is refused at the plan. After the reboot it is too late: of too many huge pages the kernel
//! takes as many as there are, and process 1 gets none of the rest.

use planish_model::{BootCpus, Catalogue, HostFacts, Knob, KnobId, Plan, node_bytes};

use crate::budget::Budget;

/// Why a parameter must not be given. Pages are taken from `budget`, so that those of all sizes count together.
pub(crate) fn refusal(knob: &Knob, wanted: &str, host: &HostFacts, budget: &mut Budget) -> Option<String> {
    match knob.boot_parameter()? {
        (name @ ("isolcpus" | "nohz_full"), _) => no_boot_cpu_left(name, wanted, host.cpus_online),
        // It holds movable data until pages are made of it, and the kernel's own needs a place as well.
        ("hugetlb_cma", _) => budget.take(node_bytes(&knob.r#type.normal(wanted))?).err(),
        ("hugepages", Some(size)) => {
            let pages: u64 = knob.r#type.normal(wanted).parse().ok()?;
            budget.take(pages.saturating_mul(page_bytes(size)?)).err()
        }
        _ => None,
    }
}

/// Boot parameters of a plan with which the host of now would not come up to any use, each with the reason: the plan
/// was made for another moment of it, or the file that holds it by something else.
#[must_use]
pub fn unbootable(catalogue: &Catalogue, host: &HostFacts, plan: &Plan) -> Vec<(KnobId, String)> {
    let mut budget = Budget::at_boot(host);
    let mut refusal =
        |id: &KnobId, wanted: &str| refusal(catalogue.knob(id).ok()?, wanted, host, &mut budget);
    // Pages that come anyway count beside those that are added.
    for row in plan.skipped.iter().filter(|row| row.satisfied) {
        let _ = row.wanted.as_ref().and_then(|wanted| refusal(&row.knob, wanted));
    }
    let refused =
        plan.boot.iter().filter_map(|step| Some((step.knob.clone(), refusal(&step.knob, &step.wanted)?)));
    refused.collect()
}

/// `2M`, `1G`: as the rows of the catalogue write them.
pub(crate) fn page_bytes(size: &str) -> Option<u64> {
    let (digits, unit) = size.split_at_checked(size.len().checked_sub(1)?)?;
    let shift = match unit {
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Why a list must not hold CPU 0: it starts the machine, keeps its time while others sleep, and is what the kernel
/// falls back on for all that no other CPU may do (`kernel/sched/isolation.c`). One without it leaves it at least,
/// whatever is offline now. Of `nohz_full` for all of them the kernel leaves it out by itself, and says so
/// (`housekeeping_setup`).
fn no_boot_cpu_left(name: &str, wanted: &str, online: u32) -> Option<String> {
    let list = BootCpus::parse(wanted)?;
    let cpus = list.cpus(online.saturating_sub(1));
    if !cpus.contains(&0) {
        return None;
    }
    // Of one that takes some of each group (`0-15:2/4`) the others are left.
    let is_all = !list.leaves_some() && u32::try_from(cpus.len()).is_ok_and(|taken| taken >= online);
    if is_all && name == "nohz_full" {
        return None;
    }
    Some(match is_all {
        true => format!("`{wanted}` leaves none of the {online} CPUs to everything else"),
        false => format!("`{wanted}` takes CPU 0, which starts this host and keeps house"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST_GIB: u64 = 16;

    fn told(wants: &[(&str, &str)]) -> Vec<Option<String>> {
        let catalogue = Catalogue::embedded().expect("sound");
        let host = HostFacts { cpus_online: 4, memory_bytes: HOST_GIB << 30, ..HostFacts::default() };
        let mut budget = Budget::at_boot(&host);
        let knob = |id: &str| catalogue.knob(&KnobId::new(id)).expect("a row");
        wants.iter().map(|(id, wanted)| refusal(knob(id), wanted, &host, &mut budget)).collect()
    }

    #[test]
    fn somebody_must_keep_a_cpu() {
        for (id, list) in [
            ("boot.isolcpus", "0-3"),
            ("boot.isolcpus", "domain,managed_irq,0-1,2-7"),
            ("boot.isolcpus", "all"),
            ("boot.isolcpus", "0-N"),
        ] {
            let reason = format!("`{list}` leaves none of the 4 CPUs to everything else");
            assert_eq!(told(&[(id, list)]), [Some(reason)]);
        }
        for (id, list) in [
            ("boot.isolcpus", "1-3"),
            ("boot.isolcpus", "nohz,domain,3"),
            ("boot.isolcpus", "4-15:2/4"),
            ("boot.isolcpus", "2-15"),
            ("boot.nohz_full", "1-3"),
            ("boot.nohz_full", "1-N"),
            ("boot.nohz_full", "all"),
            ("boot.nohz_full", "0-N"),
            ("boot.rcu_nocbs", "all"),
        ] {
            assert_eq!(told(&[(id, list)]), [None], "{list}");
        }
    }

    #[test]
    fn the_cpu_that_starts_the_host_keeps_house() {
        for (id, list) in
            [("boot.isolcpus", "0"), ("boot.isolcpus", "domain,0-1"), ("boot.nohz_full", "0-7:1/2")]
        {
            let reason = format!("`{list}` takes CPU 0, which starts this host and keeps house");
            assert_eq!(told(&[(id, list)]), [Some(reason)]);
        }
        assert_eq!(told(&[("boot.rcu_nocbs", "0-2")]), [None]);
    }

    #[test]
    fn pages_of_all_sizes_leave_the_host_its_reserve() {
        assert_eq!(told(&[("boot.hugepages.1g", "14"), ("boot.hugepages.2m", "100")]), [None, None]);
        let both = told(&[("boot.hugepages.1g", "14"), ("boot.hugepages.2m", "600")]);
        assert!(both[0].is_none() && both[1].as_ref().is_some_and(|why| why.contains("the host keeps")));
        let many = told(&[("boot.hugepages.1g", "18446744073709551615")]);
        assert!(many[0].as_ref().is_some_and(|why| why.contains("is more than the 16 GiB")), "{many:?}");
        let cma = told(&[("boot.hugetlb_cma", "0:8G,1:6G"), ("boot.hugepages.1g", "2")]);
        assert!(cma[0].is_none() && cma[1].is_some(), "{cma:?}");
        let many = told(&[("boot.hugetlb_cma", "900G")]);
        assert!(
            many[0].as_ref().is_some_and(|why| why.contains("900 GiB is more than the 16 GiB")),
            "{many:?}"
        );
        assert_eq!(page_bytes("x"), None);
        assert_eq!(page_bytes(""), None);
    }
}
