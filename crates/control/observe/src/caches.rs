//! How the caches of a machine can be shared out, and who does: asked for by itself, since most profiles do not.

use std::collections::BTreeMap;

use planish_host::{Host, resctrl};
use planish_model::{CacheControl, CacheGroup, CacheResource, Cpus, OtherGroup, Schemata, place};

/// What resctrl tells (Documentation/filesystems/resctrl.rst).
#[must_use]
pub fn caches(host: &Host) -> CacheControl {
    let l3_cpus = l3_cpus(host);
    if !resctrl::is_there(host) {
        return CacheControl { hindered: Some(hindrance(host)), l3_cpus, ..CacheControl::default() };
    }
    let text = |place: &str| host.read(place).map(|text| text.trim().to_owned()).unwrap_or_default();
    let default = text(resctrl::DEFAULT);
    let names = Schemata::parse(&default).map(|schemata| schemata.0.into_keys().collect::<Vec<_>>());
    let resources = names.unwrap_or_default().into_iter().map(|name| {
        let resource = resource(host, &name);
        (name, resource)
    });
    let others = resctrl::groups(host).into_iter().filter(|name| !place::is_own_group(name)).map(|name| {
        let group = group(host, &name);
        (name, group)
    });
    // By their places: of a recording those are what is written.
    let ours = host.list(resctrl::GROUPS).into_iter().filter_map(|name| {
        let group = own(&text(&format!("{}/{name}", resctrl::GROUPS)))?;
        Some((name, group))
    });
    let groups = others.chain(ours).collect();
    CacheControl { hindered: None, resources: resources.collect(), groups, default, l3_cpus }
}

/// A group of ours from its text; `None` for one that there is not.
fn own(text: &str) -> Option<OtherGroup> {
    let CacheGroup { cpus, mode, schemata, tasks, monitors } = CacheGroup::parse(text)?;
    // A group for monitoring is somebody's, as tasks are.
    Some(OtherGroup { cpus, mode, schemata: schemata.to_string(), tasks: tasks + monitors })
}

/// Why nothing can be shared out here, and what to do about it.
fn hindrance(host: &Host) -> (String, String) {
    let known = host
        .read("/proc/filesystems")
        .is_ok_and(|text| text.lines().any(|line| line.split_whitespace().last() == Some("resctrl")));
    let (why, cure) = if host.exists(&format!("{}/info", resctrl::MOUNT)) {
        ("this CPU counts the use of its caches, and shares out nothing", "leave `cache` out of the profile")
    } else if known {
        (
            "resctrl is not mounted at /sys/fs/resctrl",
            "mount -t resctrl resctrl /sys/fs/resctrl, and again at each boot (a line of /etc/fstab)",
        )
    } else {
        ("this kernel has no resctrl, or this CPU shares out no cache", "leave `cache` out of the profile")
    };
    (why.to_owned(), cure.to_owned())
}

fn resource(host: &Host, name: &str) -> CacheResource {
    let text = |file: &str| host.read(&format!("{}/info/{name}/{file}", resctrl::MOUNT)).unwrap_or_default();
    let mask = |file| u64::from_str_radix(text(file).trim(), 16).unwrap_or(0);
    let number = |file| text(file).trim().parse::<u64>().unwrap_or(0);
    // Mounted so, bandwidth is told in MB/s, and the kernel holds it to no step (fs/resctrl/ctrlmondata.c,
    // `bw_validate`).
    let in_mb_per_s = name == "MB" && is_mounted_with(host, "mba_MBps");
    let of_bandwidth = |file| if in_mb_per_s { 0 } else { number(file) };
    CacheResource {
        closids: number("num_closids").try_into().unwrap_or(0),
        mask: mask("cbm_mask"),
        bits_min: number("min_cbm_bits").try_into().unwrap_or(1),
        shareable: mask("shareable_bits"),
        sparse: number("sparse_masks") == 1,
        bandwidth_min: of_bandwidth("min_bandwidth"),
        bandwidth_step: of_bandwidth("bandwidth_gran"),
    }
}

/// Whether resctrl is mounted with an option.
fn is_mounted_with(host: &Host, option: &str) -> bool {
    let text = host.read_lossy("/proc/mounts").unwrap_or_default();
    text.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some(resctrl::MOUNT)
            && words.next() == Some("resctrl")
            && words.next().is_some_and(|options| options.split(',').any(|one| one == option))
    })
}

fn group(host: &Host, name: &str) -> OtherGroup {
    let folder = format!("{}/{name}", resctrl::MOUNT);
    let text = |file: &str| host.read(&format!("{folder}/{file}")).unwrap_or_default();
    OtherGroup {
        cpus: Cpus::parse(text("cpus_list").trim()).unwrap_or_default(),
        mode: text("mode").trim().to_owned(),
        schemata: resctrl::schemata(host, &folder).unwrap_or_default(),
        tasks: resctrl::tasks(host, &folder).unwrap_or(0),
    }
}

/// CPUs of each third-level cache by its `id`, which is the number of its domain.
fn l3_cpus(host: &Host) -> BTreeMap<u32, Cpus> {
    const FOLDER: &str = "/sys/devices/system/cpu";
    let mut found: BTreeMap<u32, Cpus> = BTreeMap::new();
    let cpus = host.list(FOLDER).into_iter().filter_map(|name| name.strip_prefix("cpu")?.parse::<u32>().ok());
    for cpu in cpus {
        let caches = format!("{FOLDER}/cpu{cpu}/cache");
        for index in host.list(&caches).iter().filter(|name| name.starts_with("index")) {
            let number =
                |file: &str| host.read(&format!("{caches}/{index}/{file}")).ok()?.trim().parse::<u32>().ok();
            if let (Some(3), Some(id)) = (number("level"), number("id")) {
                let one: Cpus = std::iter::once(cpu).collect();
                let all = found.entry(id).or_default();
                *all = all.union(&one);
            }
        }
    }
    found
}
