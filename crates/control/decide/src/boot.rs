//! Boot parameters with which a machine would not come up to any use: no CPU left to run on, no memory left.
//!
//! Whoever asks for that is refused at the plan. After the reboot it is too late: of too many huge pages the kernel
//! takes as many as there are, and process 1 gets none of the rest.

use planish_model::units::bytes;
use planish_model::{
    BootCpus, Catalogue, Form, HostFacts, Knob, KnobId, Plan, ValueType, leaves_guards_out, node_bytes,
    node_numbers, page_sizes,
};

use crate::budget::Budget;
use crate::pages;
use crate::verdict::is_older;

/// Why a parameter must not be given. Pages are taken from `budget`, so that those of all sizes count together.
pub(crate) fn refusal(knob: &Knob, wanted: &str, host: &HostFacts, budget: &mut Budget) -> Option<String> {
    match knob.boot_parameter()? {
        ("isolcpus" | "nohz_full", _) => no_boot_cpu_left(wanted, host.cpus_online),
        // It holds movable data until pages are made of it, and the kernel's own needs a place as well.
        ("hugetlb_cma", _) => {
            let wanted = knob.r#type.normal(wanted);
            no_such_node(&wanted, host).or_else(|| budget.take(node_bytes(&wanted)?).err())
        }
        (name @ ("thp_anon" | "thp_shmem"), _) => no_such_sizes(name, &knob.r#type.normal(wanted), host),
        ("hugepages", Some(size)) => {
            let pages: u64 = knob.r#type.normal(wanted).parse().ok()?;
            budget.take(pages.saturating_mul(page_bytes(size)?)).err()
        }
        _ => None,
    }
}

/// Why this kernel, which has the parameter, takes no such value of it.
pub(crate) fn unread(knob: &Knob, wanted: &str, host: &HostFacts) -> Option<String> {
    const GUARDS_LEFT_OUT_SINCE: &str = "6.17";
    let is_guards = matches!(knob.r#type, ValueType::Form { form: Form::Mitigations });
    let is_too_old = is_guards && leaves_guards_out(wanted) && is_older(&host.kernel, GUARDS_LEFT_OUT_SINCE);
    let told = || format!("`{wanted}` is read since Linux {GUARDS_LEFT_OUT_SINCE}, this is {}", host.kernel);
    is_too_old.then(told).or_else(|| pages::unknown_size(knob, wanted, host))
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

/// Nodes that the memory cannot lie on: the kernel passes over them (`hugetlb_cma_reserve` of `mm/hugetlb.c`).
fn no_such_node(wanted: &str, host: &HostFacts) -> Option<String> {
    let here = &host.nodes;
    let absent = node_numbers(wanted).into_iter().find(|node| !here.contains(node))?;
    (!here.is_empty()).then(|| {
        let here: Vec<String> = here.iter().map(ToString::to_string).collect();
        format!("this host has no memory on node {absent}: it has some on {}", here.join(", "))
    })
}

/// Sizes that the kernel does not make transparent huge pages of: for one of them it passes over the whole argument
/// (`setup_thp_anon` of `mm/huge_memory.c`, `setup_thp_shmem` of `mm/shmem.c`). Pages of programs are four small ones
/// at least (`THP_ORDERS_ALL_ANON`), and those of files no more than the page cache can look up at once
/// (`MAX_XAS_ORDER` of `include/linux/xarray.h`).
fn no_such_sizes(name: &str, wanted: &str, host: &HostFacts) -> Option<String> {
    const FILE_ORDER_MAX: u32 = 11;
    let (base, most) = (host.page_bytes, host.thp_bytes?);
    let (least, most) = match name {
        "thp_anon" => (base << 2, most),
        _ => (base << 1, most.min(base << FILE_ORDER_MAX)),
    };
    let absent = page_sizes(wanted).into_iter().find(|size| !(least..=most).contains(size))?;
    let [absent, least, most] = [absent, least, most].map(bytes);
    Some(format!(
        "this kernel has no such pages of {absent}, and takes none of `{wanted}`: {least} to {most}"
    ))
}

/// What is left to do by hand for a value that only a boot can bring.
pub(crate) fn cure(knob: &Knob, wanted: &str) -> Option<String> {
    match (knob.argument(wanted), knob.boot_parameter()) {
        (Some(argument), _) => Some(format!("boot with `{argument}` on the kernel command line")),
        (None, Some((name, _))) => Some(format!("boot without `{name}` on the kernel command line")),
        (None, None) => None,
    }
}

/// Whether a list takes every CPU. Of one that takes some of each group (`0-15:2/4`) the others are left.
fn takes_all(list: &BootCpus, online: u32) -> bool {
    let taken = list.cpus(online.saturating_sub(1)).len();
    !list.leaves_some() && u32::try_from(taken).is_ok_and(|taken| taken >= online)
}

/// Why a list must not hold CPU 0: it starts the machine, keeps its time while others sleep, and is what the kernel
/// falls back on for all that no other CPU may do (`kernel/sched/isolation.c`). One without it leaves it at least,
/// whatever is offline now. Of `nohz_full` for all of them the kernel leaves it out by itself (`housekeeping_setup`):
/// then no list says what runs, and who wants that names the others.
fn no_boot_cpu_left(wanted: &str, online: u32) -> Option<String> {
    let list = BootCpus::parse(wanted)?;
    if !list.cpus(online.saturating_sub(1)).contains(&0) {
        return None;
    }
    Some(match takes_all(&list, online) {
        true => format!("`{wanted}` leaves none of the {online} CPUs to everything else"),
        false => format!("`{wanted}` takes CPU 0, which starts this host and keeps house"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST_GIB: u64 = 16;

    fn told(wants: &[(&str, &str)]) -> Vec<Option<String>> {
        let host = HostFacts {
            cpus_online: 4,
            memory_bytes: HOST_GIB << 30,
            nodes: vec![0, 1],
            page_bytes: 4096,
            thp_bytes: Some(2 << 20),
            ..HostFacts::default()
        };
        told_on(&host, wants)
    }

    fn told_on(host: &HostFacts, wants: &[(&str, &str)]) -> Vec<Option<String>> {
        let catalogue = Catalogue::embedded().expect("sound");
        let mut budget = Budget::at_boot(host);
        let knob = |id: &str| catalogue.knob(&KnobId::new(id)).expect("a row");
        wants.iter().map(|(id, wanted)| refusal(knob(id), wanted, host, &mut budget)).collect()
    }

    #[test]
    fn somebody_must_keep_a_cpu() {
        for (id, list) in [
            ("boot.isolcpus", "0-3"),
            ("boot.isolcpus", "domain,managed_irq,0-1,2-7"),
            ("boot.isolcpus", "all"),
            ("boot.isolcpus", "0-N"),
            ("boot.nohz_full", "all"),
            ("boot.nohz_full", "0-3"),
            ("boot.nohz_full", "0-N"),
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
    fn memory_is_set_aside_on_nodes_that_are_there() {
        let told = told(&[("boot.hugetlb_cma", "0:1G,9:1G"), ("boot.hugetlb_cma", "0:1G,1:1G")]);
        let reason = "this host has no memory on node 9: it has some on 0, 1".to_owned();
        assert_eq!(told, [Some(reason), None]);
        let unknown = HostFacts { memory_bytes: HOST_GIB << 30, ..HostFacts::default() };
        assert_eq!(told_on(&unknown, &[("boot.hugetlb_cma", "0:1G,9:1G")]), [None], "no node is told");
    }

    #[test]
    fn sizes_of_transparent_pages_are_those_of_the_kernel() {
        let anon = |words: &str| told(&[("boot.thp_anon", words)]).remove(0);
        for good in ["16K-2M:always", "64K:always;2M:inherit"] {
            assert_eq!(anon(good), None, "{good}");
        }
        let reason = "this kernel has no such pages of 1 GiB, and takes none of `64K:always;1G:always`: 16 KiB to \
                      2 MiB";
        assert_eq!(anon("64K:always;1G:always").as_deref(), Some(reason));
        assert!(anon("8K:always").is_some() && anon("1M-4M:always").is_some());
        let shmem = told(&[("boot.thp_shmem", "8K:always"), ("boot.thp_shmem", "4M:always")]);
        assert!(shmem[0].is_none() && shmem[1].is_some(), "{shmem:?}");
        // Small pages of 64 KiB, on Arm.
        let large = HostFacts { page_bytes: 65536, thp_bytes: Some(512 << 20), ..HostFacts::default() };
        let both = [
            ("boot.thp_anon", "512M:always"),
            ("boot.thp_shmem", "256M:always"),
            ("boot.thp_anon", "64K:always"),
        ];
        let told = told_on(&large, &both);
        assert!(told[0].is_none() && told[1].is_some() && told[2].is_some(), "{told:?}");
        let unknown = HostFacts { page_bytes: 4096, ..HostFacts::default() };
        assert_eq!(told_on(&unknown, &[("boot.thp_anon", "1G:always")]), [None], "no size is told");
    }

    #[test]
    fn guards_are_left_out_where_the_kernel_reads_that() {
        let catalogue = Catalogue::embedded().expect("sound");
        let knob = catalogue.knob(&KnobId::new("boot.mitigations")).expect("a row");
        let told = |wanted: &str, kernel: &str| {
            unread(knob, wanted, &HostFacts { kernel: kernel.to_owned(), ..HostFacts::default() })
        };
        let reason = "`auto,no_user_kernel` is read since Linux 6.17, this is 6.12.57+deb13-amd64";
        assert_eq!(told("auto,no_user_kernel", "6.12.57+deb13-amd64").as_deref(), Some(reason));
        assert!(told("auto,nosmt,no_guest_host", "6.16.9").is_some());
        assert_eq!(told("auto,no_user_kernel", "6.17.0"), None);
        assert_eq!(told("auto,nosmt", "5.14.0"), None);
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
