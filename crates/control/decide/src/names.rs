//! Words, nodes and devices of a wanted value that this host does not have, and most likely no host.
//!
//! What cannot be here is skipped, and never red: a governor that this kernel was built without, the disks of another
//! machine. A typing error looks the same to the host, and must not be green. The two are told apart by the words of
//! the row, and by what the host offers.

use std::collections::BTreeSet;

use planish_model::{
    Access, Case, Catalogue, Knob, Nodes, Observation, ValueType, Verdict, VerdictKind, Want, edits, nearest,
    place,
};
use planish_sorted::SortSmall as _;

use crate::error::DecideError;

/// Refuses a word or a pattern that is most likely a typing error, and a node that this host does not have.
///
/// # Errors
/// The word with the one that it is near to; the pattern and the node with those that there are.
pub fn refuse(
    knob: &Knob,
    want: &Want,
    catalogue: &Catalogue,
    observation: &Observation,
) -> Result<(), DecideError> {
    want.literals().iter().try_for_each(|value| refuse_word(knob, value, observation))?;
    let patterns = patterns(want);
    // The path of a mount may have any sign.
    for only in patterns.iter().filter(|only| !only.starts_with('/')) {
        if let Some(why) = place::in_vain(only) {
            return Err(DecideError::NoPattern { knob: knob.id.clone(), only: (*only).to_owned(), why });
        }
    }
    // Who names several services of one kind means whichever of them a host has.
    let means_one = || patterns.iter().any(|only| is_here(only, &observation.services));
    patterns.iter().try_for_each(|only| match is_of_services(knob) {
        true if means_one() => Ok(()),
        true => refuse_service(knob, only, observation),
        false => refuse_pattern(knob, only, observation),
    })?;
    match want {
        Want::Need { nodes: Nodes::Each(each), .. }
        | Want::Needs { nodes: each, .. }
        | Want::Total { nodes: Nodes::Each(each), .. }
        | Want::Totals { nodes: each, .. } => refuse_node(knob, each, catalogue, observation),
        _ => Ok(()),
    }
}

/// The patterns of a wanted value.
pub(crate) fn patterns(want: &Want) -> Vec<&str> {
    let cases = match want {
        Want::Case(case) => std::slice::from_ref(case.as_ref()),
        Want::Cases(cases) => cases,
        _ => &[],
    };
    cases.iter().filter_map(|case| case.only.as_deref()).collect()
}

fn refuse_word(knob: &Knob, value: &str, observation: &Observation) -> Result<(), DecideError> {
    // The words of a choice are checked with its type.
    if !matches!(knob.r#type, ValueType::Text { .. }) {
        return Ok(());
    }
    let word = knob.r#type.normal(value);
    let readings = observation.knobs.get(&knob.id).into_iter().flatten();
    let offered: BTreeSet<&str> = readings.flat_map(|reading| &reading.offered).map(String::as_str).collect();
    let known: BTreeSet<&str> = knob.words.iter().map(String::as_str).collect();
    if offered.contains(word.as_str()) || known.contains(word.as_str()) {
        return Ok(());
    }
    let id = || knob.id.clone();
    // What is offered here is meant before what is offered elsewhere. The kernel compares letter by letter.
    let cased = offered.iter().find(|other| other.eq_ignore_ascii_case(&word)).copied();
    let cased = cased.or_else(|| knob.word_in_other_case(&word));
    let near = cased
        .or_else(|| nearest(&word, offered.iter().copied()))
        .or_else(|| nearest(&word, known.iter().copied()));
    if let Some(near) = near {
        return Err(DecideError::Word { knob: id(), near: near.to_owned(), word });
    }
    // A kernel that lists its words takes no other. Where it lists none, ours may be behind it (`mitigations=`), and
    // one that loads a module by the word has more than it lists (`net/ipv4/tcp_cong.c`).
    let is_closed = knob.offered.is_some() && !known.is_empty() && knob.modules.is_empty();
    if !is_closed || word.parse::<u32>().is_ok() {
        return Ok(());
    }
    let words = known.union(&offered).map(|word| (*word).to_owned()).collect();
    Err(DecideError::NoWord { knob: id(), word, words })
}

/// What there is on this host in the hole of a knob's path that a pattern is for.
pub(crate) fn here<'a>(knob: &'a Knob, only: &str, observation: &'a Observation) -> BTreeSet<&'a str> {
    let hole = only.split_once('=').map(|(hole, _)| hole);
    let readings = observation.knobs.get(&knob.id).into_iter().flatten();
    let filled = readings.filter(|reading| reading.access != Access::Absent).filter_map(|reading| {
        let mut captures = place::captures(&knob.path, &reading.place)?.into_iter();
        captures.find(|(name, _)| hole.is_none_or(|hole| hole == *name)).map(|(_, value)| value)
    });
    filled.collect()
}

/// Families of device names that the kernel has, and that are near to another one.
const FAMILIES: [&str; 4] = ["ram", "zram", "vlan", "wlan"];

/// A family of names that is shorter is near to too many: `sd`, `vd`, `eth`, `ens`.
const FAMILY_BYTES_MIN: usize = 4;

/// Refuses a pattern that means no device of this host and is near to the names of some: `nmve*` beside `nvme0n1`. One
/// that means the devices of another host (`nvme*` beside `sda`) is no error: a profile is for many hosts.
fn refuse_pattern(knob: &Knob, only: &str, observation: &Observation) -> Result<(), DecideError> {
    let here = here(knob, only, observation);
    let family = |name: &str| {
        let end = name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(name.len());
        name[..end].to_owned()
    };
    let (hole, pattern) = only.split_once('=').map_or((None, only), |(hole, pattern)| (Some(hole), pattern));
    let is_device = hole.map_or_else(
        || ["/{disk}/", "/{nic}/"].iter().any(|hole| knob.path.contains(hole)),
        |hole| hole == "disk" || hole == "nic",
    );
    let meant = family(pattern);
    let families: BTreeSet<String> = here.iter().map(|name| family(name)).collect();
    let is_known = families.contains(&meant) || FAMILIES.contains(&meant.as_str());
    let matches = here.iter().any(|name| place::matches(pattern, name));
    if !is_device || matches || is_known || meant.len() < FAMILY_BYTES_MIN {
        return Ok(());
    }
    match nearest(&meant, families.iter().map(String::as_str)) {
        None => Ok(()),
        Some(near) => Err(DecideError::Pattern {
            knob: knob.id.clone(),
            only: only.to_owned(),
            near: only.replacen(&meant, near, 1),
            places: here.into_iter().map(str::to_owned).collect(),
        }),
    }
}

/// Whether a knob is a setting of services, each of which has a file of ours of its own.
fn is_of_services(knob: &Knob) -> bool {
    matches!(knob.r#type, ValueType::Setting { .. }) && !knob.r#type.is_cpus_of_a_unit()
}

/// A name that is shorter is one letter from too many: `sshd` and `sssd` are both on most hosts.
const SERVICE_BYTES_MIN: usize = 6;

/// Services of this host that are named before the others are only counted.
const SERVICES_NAMED_MAX: usize = 4;

/// The name of a service without its instance.
fn stem(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

/// What is left of a name where hosts call one service otherwise: `mysqld` and `mysql`, `mongod` and `mongos`,
/// `nfs-server` and `nfsserver`, `postgresql-16` and `postgresql-17`.
fn essence(name: &str) -> String {
    let letters: String = name.chars().filter(char::is_ascii_alphabetic).collect();
    letters.trim_end_matches(['d', 's']).to_owned()
}

/// The name that a pattern of services begins with, and whether anything may follow.
fn meant(only: &str) -> (&str, bool) {
    let pattern = only.split_once('=').map_or(only, |(_, pattern)| pattern);
    let end = pattern.find(['*', '?', '[']);
    (stem(&pattern[..end.unwrap_or(pattern.len())]), end.is_some())
}

/// What a name begins with, up to each of its signs, and all of it: `redis` and `redis-server`.
fn beginnings(name: &str) -> impl Iterator<Item = &str> {
    let signs = name.match_indices(|c: char| !c.is_ascii_alphanumeric()).map(|(at, _)| at);
    signs.chain([name.len()]).map(|end| &name[..end])
}

/// Whether a pattern means a service of this host.
fn is_here(only: &str, here: &BTreeSet<String>) -> bool {
    let pattern = only.split_once('=').map_or(only, |(_, pattern)| pattern);
    here.iter().any(|name| place::matches(pattern, name))
}

/// Whether a name is another one with something put behind it, or without what is put before that: `mongodb` beside
/// `mongod`, `syslog` beside `rsyslog` are services, each of them. A last letter that is missing is a typing error.
fn is_of_its_own(meant: &str, here: &str) -> bool {
    meant.starts_with(here) || here.ends_with(meant)
}

/// Refuses a pattern that means no service of this host and is a letter from one: `redis-sever` beside `redis-server`.
/// One that means services of another host is no error, as for devices.
fn refuse_service(knob: &Knob, only: &str, observation: &Observation) -> Result<(), DecideError> {
    let here = &observation.services;
    let (meant, is_open) = meant(only);
    if meant.len() < SERVICE_BYTES_MIN || is_here(only, here) {
        return Ok(());
    }
    let whole = |name| vec![stem(name)];
    let names = here.iter().map(String::as_str);
    let names: BTreeSet<&str> =
        names.flat_map(|name| if is_open { beginnings(name).collect() } else { whole(name) }).collect();
    if names.iter().any(|name| essence(name) == essence(meant) || is_of_its_own(meant, name)) {
        return Ok(());
    }
    match names.iter().find(|name| edits(meant, name) == 1) {
        None => Ok(()),
        Some(near) => Err(DecideError::Pattern {
            knob: knob.id.clone(),
            only: only.to_owned(),
            near: only.replacen(meant, near, 1),
            places: nearest_services(&[only], here),
        }),
    }
}

/// That no service of this host is meant, and the nearest ones that are here. `None` for other knobs, and where
/// nobody could look for services.
pub(crate) fn no_service(knob: &Knob, cases: &[Case], observation: &Observation) -> Option<Verdict> {
    let only: Vec<&str> = cases.iter().filter_map(|case| case.only.as_deref()).collect();
    if !is_of_services(knob) || only.is_empty() || observation.services.is_empty() {
        return None;
    }
    let called: Vec<String> = only.iter().map(|only| format!("`{only}`")).collect();
    let here = nearest_services(&only, &observation.services).join(", ");
    let reason = format!("no service of this host is called {}: it has {here}", called.join(" or "));
    Some(Verdict::new(VerdictKind::Absent, reason))
}

/// Services of a host, those first that are most like one of some patterns, and how many more there are.
fn nearest_services(only: &[&str], here: &BTreeSet<String>) -> Vec<String> {
    let far = |name: &str| {
        let each = only.iter().map(|only| edits(meant(only).0, name));
        each.min().unwrap_or_default()
    };
    let mut sorted: Vec<&String> = here.iter().collect();
    sorted.sort_small_by_cached_key(|name| far(name));
    let mut named: Vec<String> = sorted.into_iter().take(SERVICES_NAMED_MAX).cloned().collect();
    if here.len() > SERVICES_NAMED_MAX {
        named.push(format!("{} more", here.len() - SERVICES_NAMED_MAX));
    }
    named
}

fn refuse_node(
    knob: &Knob,
    each: &[u32],
    catalogue: &Catalogue,
    observation: &Observation,
) -> Result<(), DecideError> {
    let aliases = knob.alias.iter().filter_map(|id| catalogue.knob(id).ok());
    let is_own = |place: &str| place::captures(&knob.path, place).is_some();
    let is_alias = |place: &str| aliases.clone().any(|alias| place::captures(&alias.path, place).is_some());
    // Where there is no pool of this size at all, no node can have one.
    if !observation.pools.iter().any(|pool| is_own(&pool.place) || is_alias(&pool.place)) {
        return Ok(());
    }
    let nodes: BTreeSet<u32> =
        observation.pools.iter().filter(|pool| is_own(&pool.place)).filter_map(|pool| pool.node).collect();
    match each.iter().find(|node| !nodes.contains(node)) {
        None => Ok(()),
        Some(&node) => {
            let nodes = nodes.into_iter().collect();
            Err(DecideError::NoNode { knob: knob.id.clone(), node, nodes })
        }
    }
}

#[cfg(test)]
mod tests {
    use planish_model::PoolReading;

    use super::*;
    use crate::testing::{catalogue, knob, observation, reading};

    fn governor(offered: &[&str]) -> (Knob, Observation) {
        let words = ["performance", "powersave", "schedutil"].map(str::to_owned).to_vec();
        let list = Some("/sys/governors".to_owned());
        let governor = Knob { words, offered: list, ..knob("cpu.governor", "/sys/governor") };
        let mut observation = observation();
        let mut seen = reading("/sys/governor", "powersave");
        seen.offered = offered.iter().map(|word| (*word).to_owned()).collect();
        observation.knobs.insert(governor.id.clone(), vec![seen]);
        (governor, observation)
    }

    fn refused(word: &str, offered: &[&str]) -> Option<String> {
        let (governor, observation) = governor(offered);
        let want = Want::Text(word.to_owned());
        refuse(&governor, &want, &catalogue(), &observation).err().map(|error| error.to_string())
    }

    #[test]
    fn a_typing_error_is_told_from_a_word_of_another_host() {
        let offered = ["performance", "powersave"];
        let told = Some("`performanc` is no word of cpu.governor; did you mean `performance`?".to_owned());
        assert_eq!(refused("performanc", &offered), told);
        // Also where the host offers nothing by which it could be told.
        assert_eq!(refused("performanc", &[]), told);
        assert_eq!(refused("schedutil", &offered), None, "known, and not offered here");
        let none = "`perf` is no word of cpu.governor, which may be performance, powersave, schedutil";
        assert_eq!(refused("perf", &offered).as_deref(), Some(none), "near to nothing, and of no kernel");
        assert_eq!(
            refused("POWERSAVE", &[]).as_deref(),
            Some("`POWERSAVE` is no word of cpu.governor; did you mean `powersave`?")
        );
        assert_eq!(refused("ours_built_in", &["ours_built_in"]), None, "of a module that is loaded");
        assert_eq!(refused("128", &offered), None, "some drivers take a number beside their words");
        assert_eq!(refused("powersaved", &["powersaved"]), None, "offered, and near to another");
    }

    #[test]
    fn a_pattern_with_a_typing_error_is_told_from_the_disks_of_another_host() {
        let (catalogue, observation) = (catalogue(), observation());
        let knob = catalogue.knob(&planish_model::KnobId::new("block.scheduler")).expect("a row");
        let refused = |only: &str, observation: &Observation| {
            let (value, needs) = ("none".to_owned(), planish_model::Conditions::default());
            let case = Case { value, only: Some(only.to_owned()), needs };
            let want = Want::Cases(vec![case]);
            refuse(knob, &want, &catalogue, observation).err().map(|error| error.to_string())
        };
        let told = |only: &str, near: &str| {
            Some(format!(
                "no place of block.scheduler matches `{only}`; did you mean `{near}`? this host has nvme0n1, sda"
            ))
        };
        assert_eq!(refused("nmve*", &observation), told("nmve*", "nvme*"));
        assert_eq!(refused("disk=nvm0n1", &observation), None, "three letters are near to too much");
        assert_eq!(refused("disk=nvne0n1", &observation), told("disk=nvne0n1", "disk=nvme0n1"));
        for other in ["nvme*", "nvme7n1", "vd*", "xvd*", "mmcblk*", "sdb", "*"] {
            assert_eq!(refused(other, &observation), None, "{other}: of another host");
        }
        for odd in ["nvme{0,1}n1", "nvme[0-", "disk=nvme[1-0]n1"] {
            let told = refused(odd, &observation).unwrap_or_default();
            assert!(
                told.starts_with(&format!("`{odd}` of block.scheduler means nothing: ")),
                "{odd}: {told}"
            );
        }
        let mut other = observation;
        other.knobs.get_mut(&knob.id).expect("disks").retain(|reading| reading.place.contains("/sda/"));
        assert_eq!(refused("nvme*", &other), None);
        assert_eq!(refused("nmve*", &other), None, "near to nothing that is here");
        let ram = reading("/sys/block/ram0/queue/scheduler", "none");
        other.knobs.get_mut(&knob.id).expect("disks").push(ram);
        assert_eq!(refused("zram*", &other), None, "both are names of the kernel");
        other.knobs.clear();
        assert_eq!(refused("nmve*", &other), None, "no disk at all");
    }

    #[test]
    fn a_service_with_a_typing_error_is_told_from_one_of_another_host() {
        let r#type = ValueType::Setting {
            directive: "LimitNOFILE".to_owned(),
            unit: "files".to_owned(),
            min: None,
            max: None,
            words: Vec::new(),
            at_least: true,
        };
        let knob = Knob {
            r#type,
            ..knob("unit.nofile", "/etc/systemd/system/{unit}.service.d/zz-planish-nofile.conf")
        };
        let mut observation = observation();
        let here = "clickhouse-server console-setup mongod mysql postgresql-16 redis-server sssd";
        observation.services = here.split(' ').map(str::to_owned).collect();
        let case = |only: &str| Case {
            value: "65536".to_owned(),
            only: Some(only.to_owned()),
            needs: planish_model::Conditions::default(),
        };
        let refused = |only: &str, observation: &Observation| {
            let want = Want::Cases(vec![case(only)]);
            refuse(&knob, &want, &catalogue(), observation).err().map(|error| error.to_string())
        };
        for (only, near) in [
            ("redis-sever", "redis-server"),
            ("redis-serve", "redis-server"),
            ("unit=redis-srever", "unit=redis-server"),
            ("postgersql*", "postgresql*"),
        ] {
            let told = refused(only, &observation).expect(only);
            let start =
                format!("no place of unit.nofile matches `{only}`; did you mean `{near}`? this host has ");
            assert!(told.starts_with(&start) && told.ends_with(", 3 more"), "{told}");
        }
        for other in [
            "redis-server",
            "redis*",
            "redis-s?rver",
            "mysqld",
            "mongos",
            "postgresql-17",
            "redis-server@a",
            "sshd",
            "consul*",
            "clickhouse-keeper",
            "zeptodb",
            "valkey-server",
            "mongodb",
        ] {
            assert_eq!(refused(other, &observation), None, "{other}: of another host, or here");
        }
        let either = Want::Cases(vec![case("redis-sever"), case("redis-server")]);
        assert!(refuse(&knob, &either, &catalogue(), &observation).is_ok(), "whichever is here");
        let told =
            no_service(&knob, &[case("zeptodb"), case("redis-x")], &observation).expect("it is not here");
        let near = "no service of this host is called `zeptodb` or `redis-x`: it has mongod, mysql, \
                    redis-server, sssd, 3 more";
        assert_eq!((told.verdict, told.reason.as_str()), (VerdictKind::Absent, near));
        observation.services.clear();
        assert_eq!(refused("redis-sever", &observation), None, "nothing that it could be near to");
        assert_eq!(no_service(&knob, &[case("zeptodb")], &observation), None);
    }

    #[test]
    fn a_node_that_is_not_there_is_told_with_those_that_are() {
        let (catalogue, mut observation) = (catalogue(), observation());
        let knob = catalogue.knob(&planish_model::KnobId::new("hugepages.2m")).expect("a row");
        let node = |node, observation: &Observation| {
            let want = Want::Need { need_bytes: 1, nodes: Nodes::Each(vec![0, node]) };
            refuse(knob, &want, &catalogue, observation).err().map(|error| error.to_string())
        };
        assert_eq!(node(0, &observation), None);
        let told = node(9, &observation).expect("no such node");
        assert!(told.starts_with("hugepages.2m is wanted on node 9, and this host has "), "{told}");
        // A kernel without nodes has the pool of all of them.
        observation.pools = vec![PoolReading {
            node: None,
            page_bytes: 2 << 20,
            place: "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages".to_owned(),
            pages: 0,
            free: 0,
            surplus: 0,
        }];
        assert!(node(0, &observation).expect("no node").ends_with("and this host has no nodes"));
        observation.pools.clear();
        assert_eq!(node(9, &observation), None, "no pools: they cannot be here");
    }
}
