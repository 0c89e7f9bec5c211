//! What keeps a value from a network card: its own limit, and the sessions that run through it.

use planish_model::{Class, Knob, Observation, Reading, Step, Verdict, VerdictKind, place};

use crate::Options;

/// The knob that takes the flow rules of a card along when it is switched off.
const FLOW_RULES: &str = "net.feature_ntuple";

/// Where interrupts begin that are made anew.
const NEW_INTERRUPTS: &str = "/proc/irq/default_smp_affinity";

/// How the ids of knobs begin that have a card make its queues and their interrupts anew.
const QUEUES: &str = "net.channels_";

/// The size of the packets of a card.
const MTU: &str = "net.mtu";

/// The card of a place of `ethtool`.
fn nic(place: &str) -> Option<&str> {
    place.strip_prefix(place::CARDS)?.split('/').next()
}

/// The card of a place of /sys, of a knob whose value a session may be lost by: with another size of packets many
/// drivers start anew, and one that is too large for the way, or too small for IPv6, lets nothing through.
fn of_link<'a>(knob: &Knob, place: &'a str) -> Option<&'a str> {
    if knob.id.as_str() != MTU {
        return None;
    }
    place.strip_prefix("/sys/class/net/")?.split('/').next()
}

/// Why a value for cards leaves a place alone: the loopback carries packets of any size and is no card, so that its own
/// is set where `only` names it, and by no pattern.
pub(crate) fn beside_cards(knob: &Knob, place: &str, only: Option<&str>) -> Option<Verdict> {
    let is_spared = of_link(knob, place) == Some(LOOPBACK) && !is_loopback(only);
    is_spared.then(|| Verdict::new(VerdictKind::Moot, BESIDE_CARDS))
}

/// Why the loopback is left alone.
pub const BESIDE_CARDS: &str = "the loopback is no card: `only = \"lo\"` sets its own";

const LOOPBACK: &str = "lo";

/// Whether a value is for the loopback by its name.
fn is_loopback(only: Option<&str>) -> bool {
    only.is_some_and(|only| only.split_once('=').map_or(only, |(_, name)| name) == LOOPBACK)
}

/// Whether a plan spares the loopback though the pattern of a value means it. A file has the pattern alone.
#[must_use]
pub fn spares_loopback(knob: &Knob, only: Option<&str>) -> bool {
    let its_own = knob.path.replace("{nic}", LOOPBACK);
    let means = || only.is_none_or(|only| place::is_meant(&knob.path, &its_own, only));
    beside_cards(knob, &its_own, only).is_some() && means()
}

/// Whether a step makes the queues of a card anew.
pub(crate) fn makes_queues(step: &Step) -> bool {
    step.knob.as_str().starts_with(QUEUES)
}

/// Why steps cannot be in one plan with those that make queues anew: they were planned for the queues and interrupts
/// that are there now. `None` for each step that may stay.
pub(crate) fn beside_new_queues(steps: &[Step]) -> Vec<Option<String>> {
    let anew = |step: &&Step| step.is_written() && makes_queues(step);
    // A placement is whole or not at all, so that the queues wait for it and not the other way round.
    // Those that come after are for the mask of new ones, and are no reason to wait.
    let is_moved = |step: &Step| step.place.starts_with("/proc/irq/") && step.place != NEW_INTERRUPTS;
    let moves_interrupts = steps.iter().any(is_moved);
    let waits = |step: &Step| {
        if anew(&step) {
            return moves_interrupts.then(|| {
                "this plan sets irq.affinity, and the interrupts of queues that are made anew are new: apply this knob \
                 alone first"
                    .to_owned()
            });
        }
        let own = step.place.strip_prefix("/sys/class/net/")?;
        let (own, _) = own.split_once("/queues/")?;
        let first = steps.iter().filter(anew).find(|other| nic(&other.place) == Some(own))?;
        (!moves_interrupts)
            .then(|| format!("{} makes the queues of {own} anew: apply once more when it is set", first.knob))
    };
    steps.iter().map(waits).collect()
}

/// Why no value as large can be set at a place: the file beside it says the most, and the kernel refuses more.
pub(crate) fn beyond_limit(knob: &Knob, reading: &Reading, wanted: &str) -> Option<String> {
    let max = reading.max.filter(|max| wanted.trim().parse::<i64>().is_ok_and(|wanted| wanted > *max))?;
    let limit = knob.limit.as_deref().unwrap_or_default();
    Some(match knob.has_holes() {
        true => format!("this device takes {max} at most"),
        // It is a setting of its own, and no property of the kernel.
        false => format!("it is {max} at most, which is what {limit} is set to"),
    })
}

/// Why a value is not set at a place that could be set: the machine is reached through the card and may lose it.
pub(crate) fn refusal(
    knob: &Knob,
    reading: &Reading,
    wanted: &str,
    observation: &Observation,
    options: &Options,
) -> Option<Verdict> {
    let nic = nic(&reading.place).or_else(|| of_link(knob, &reading.place))?;
    let named = options.allow_knobs.contains(&knob.id);
    let drops = knob.id.as_str() == FLOW_RULES && wanted.trim() == "0";
    if drops && !named && reading.value.as_deref().is_some_and(|now| now.trim() == "1") {
        let reason = format!(
            "flow rules of {nic} would be dropped, and no undo brings them back: --allow-knob {}",
            knob.id
        );
        return Some(Verdict::new(VerdictKind::Blocked, reason));
    }
    waits_for_its_name(knob, &reading.place, observation, options).then(|| {
        let reason =
            format!("this machine is reached through {nic}, which may go down: --allow-knob {}", knob.id);
        Verdict::new(VerdictKind::Blocked, reason)
    })
}

/// Whether a place is a setting of the card that the machine is reached through, which may take its link down, and
/// nobody named its knob. It is not set, and no file that a boot reads sets it.
#[must_use]
pub fn waits_for_its_name(knob: &Knob, place: &str, observation: &Observation, options: &Options) -> bool {
    let reached = |nic: &str| observation.host.session_nics.iter().any(|own| own == nic);
    let named = options.allow_knobs.contains(&knob.id);
    let nic = nic(place).or_else(|| of_link(knob, place));
    knob.class != Class::Safe && !named && nic.is_some_and(reached)
}

#[cfg(test)]
mod tests {
    use planish_model::KnobId;

    use super::*;
    use crate::testing::{knob, observation, reading};

    const RINGS: &str = "/planish/ethtool/eth0/rings_rx";

    fn refused(class: Class, allow: &[&str], nics: &[&str], max: Option<i64>) -> Option<String> {
        let knob = Knob { class, ..knob("net.rings_rx", "/planish/ethtool/{nic}/rings_rx") };
        let mut observation = observation();
        observation.host.session_nics = nics.iter().map(|nic| (*nic).to_owned()).collect();
        let allow_knobs = allow.iter().copied().map(KnobId::new).collect();
        let options = Options { allow_classes: vec![Class::Availability], allow_knobs, ..Options::default() };
        let reading = Reading { max, ..reading(RINGS, "256") };
        let refused = refusal(&knob, &reading, "512", &observation, &options).map(|verdict| verdict.reason);
        beyond_limit(&knob, &reading, "512").or(refused)
    }

    #[test]
    fn a_size_of_packets_is_of_cards_and_of_the_loopback_by_name_alone() {
        use planish_model::{Case, Catalogue, Conditions, Want};
        let catalogue = Catalogue::embedded().expect("sound");
        let mtu = catalogue.knob(&KnobId::new(MTU)).expect("a row");
        assert!(mtu.validate("1280").is_ok() && mtu.validate("1279").is_err(), "IPv6 would be taken off");
        let place = |nic: &str| format!("/sys/class/net/{nic}/mtu");
        let mut observation = observation();
        let readings = vec![reading(&place("lo"), "65536"), reading(&place("ens3f0"), "1500")];
        observation.knobs.insert(mtu.id.clone(), readings);
        let set = |only: Option<&str>| {
            let only = only.map(str::to_owned);
            let case = Case { value: "9000".to_owned(), only, needs: Conditions::default() };
            let profile = crate::testing::profile(&[(MTU, Want::Case(Box::new(case)))]);
            let options = Options { allow_classes: vec![Class::Availability], ..Options::default() };
            let plan = crate::plan(&catalogue, &observation, &profile, &[], &options).expect("known");
            plan.steps.into_iter().map(|step| step.place).collect::<Vec<_>>()
        };
        for only in [None, Some("*"), Some("e*"), Some("nic=*")] {
            assert_eq!(set(only), [place("ens3f0")], "{only:?}");
        }
        for only in ["lo", "nic=lo"] {
            assert_eq!(set(Some(only)), [place("lo")]);
        }
        assert_eq!(set(Some("l?")), [""; 0]);
    }

    #[test]
    fn the_card_of_a_session_is_left_alone_until_the_knob_is_named() {
        let why = refused(Class::Availability, &[], &["eth0"], None).expect("refused");
        assert!(why.ends_with("--allow-knob net.rings_rx"), "{why}");
        assert_eq!(refused(Class::Availability, &["net.rings_rx"], &["eth0"], None), None);
        assert_eq!(refused(Class::Availability, &[], &["eth1"], None), None, "another card");
        assert_eq!(refused(Class::Safe, &[], &["eth0"], None), None, "nothing is lost by it");
    }

    #[test]
    fn the_size_of_the_packets_of_a_session_waits_for_its_name_too() {
        let knob = Knob { class: Class::Availability, ..knob("net.mtu", "/sys/class/net/{nic}/mtu") };
        let mut observation = observation();
        observation.host.session_nics = vec!["eth0".to_owned()];
        let refused = |place: &str, allow: &[&str]| {
            let allow_knobs = allow.iter().copied().map(KnobId::new).collect();
            let options =
                Options { allow_classes: vec![Class::Availability], allow_knobs, ..Options::default() };
            let refused = refusal(&knob, &reading(place, "1500"), "9000", &observation, &options);
            refused.map(|verdict| verdict.reason)
        };
        let why = refused("/sys/class/net/eth0/mtu", &[]).expect("refused");
        assert_eq!(why, "this machine is reached through eth0, which may go down: --allow-knob net.mtu");
        assert_eq!(refused("/sys/class/net/eth0/mtu", &["net.mtu"]), None);
        assert_eq!(refused("/sys/class/net/eth1/mtu", &[]), None, "another card");
    }

    #[test]
    fn flow_rules_are_dropped_for_no_class() {
        let knob = Knob {
            class: Class::Availability,
            ..knob("net.feature_ntuple", "/planish/ethtool/{nic}/feature_ntuple")
        };
        let refused = |now: &str, wanted: &str, allow: &[&str]| {
            let allow_knobs = allow.iter().copied().map(KnobId::new).collect();
            let options =
                Options { allow_classes: vec![Class::Availability], allow_knobs, ..Options::default() };
            let reading = reading("/planish/ethtool/eth1/feature_ntuple", now);
            refusal(&knob, &reading, wanted, &observation(), &options).map(|verdict| verdict.reason)
        };
        let why = refused("1\n", "0", &[]).expect("refused");
        assert!(why.contains("eth1") && why.ends_with("--allow-knob net.feature_ntuple"), "{why}");
        assert_eq!(refused("1\n", "0", &["net.feature_ntuple"]), None);
        assert_eq!((refused("0\n", "1", &[]), refused("1\n", "1", &[])), (None, None));
    }

    #[test]
    fn what_is_set_for_queues_waits_for_them_and_they_wait_for_interrupts() {
        let catalogue = planish_model::Catalogue::embedded().expect("sound");
        let step = |id: &str, place: &str| {
            let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
            let verdict = Verdict::new(VerdictKind::Settable, String::new());
            Step::of(knob, place, "1".to_owned(), "2".to_owned(), verdict)
        };
        let queues = step("net.channels_combined", "/planish/ethtool/eth1/channels_combined");
        let own = step("net.rps_cpus", "/sys/class/net/eth1/queues/rx-0/rps_cpus");
        let other = step("net.rps_cpus", "/sys/class/net/eth2/queues/rx-0/rps_cpus");
        let irq = step("irq.affinity", "/proc/irq/24/smp_affinity_list");
        let waits =
            |steps: &[Step]| -> Vec<bool> { beside_new_queues(steps).iter().map(Option::is_some).collect() };
        let all = [queues, own, other, irq];
        assert_eq!(waits(&all[..3]), [false, true, false]);
        assert_eq!(waits(&all), [true, false, false, false]);
        assert_eq!(waits(&all[1..]), [false; 3]);
        // The mask of interrupts that come is for just those.
        let to_come = step("irq.default_affinity", NEW_INTERRUPTS);
        assert_eq!(waits(&[all[0].clone(), all[1].clone(), to_come]), [false, true, false]);
        let held = Step { part: Some(planish_model::Part::TakenOver), ..all[0].clone() };
        assert_eq!(waits(&[held, all[1].clone()]), [false; 2], "none is made");
    }

    #[test]
    fn a_device_takes_no_more_than_it_says() {
        let why = refused(Class::Safe, &[], &[], Some(511)).expect("refused");
        assert_eq!(why, "this device takes 511 at most");
        assert_eq!(refused(Class::Safe, &[], &[], Some(512)), None);
    }

    #[test]
    fn more_than_a_device_or_a_setting_beside_it_takes_is_refused_and_not_called_absent() {
        use planish_model::{Catalogue, Want};
        let catalogue = Catalogue::embedded().expect("sound");
        let period = "it is 1000000 at most, which is what /proc/sys/kernel/sched_rt_period_us is set to";
        let device = "this device takes 512 at most";
        for (id, place, max, wanted, told) in [
            ("net.rings_rx", RINGS, 512, 513, device),
            ("net.channels_combined", "/planish/ethtool/eth0/channels_combined", 512, 1000, device),
            ("block.max_sectors_kb", "/sys/block/sda/queue/max_sectors_kb", 512, 99_999_999, device),
            (
                "kernel.sched_rt_runtime_us",
                "/proc/sys/kernel/sched_rt_runtime_us",
                1_000_000,
                5_000_000,
                period,
            ),
        ] {
            let mut observation = observation();
            let reading = Reading { max: Some(max), ..reading(place, "256") };
            observation.knobs.insert(KnobId::new(id), vec![reading]);
            let of = |wanted: i64| {
                let profile = crate::testing::profile(&[(id, Want::Int(wanted))]);
                let options = Options { allow_classes: vec![Class::Availability], ..Options::default() };
                crate::plan(&catalogue, &observation, &profile, &[], &options).expect("known")
            };
            let plan = of(wanted);
            let [row] = &plan.skipped[..] else { panic!("{id}: {:?}", plan.skipped) };
            assert_eq!((row.impossible, row.verdict.verdict), (true, VerdictKind::Blocked), "{id}");
            assert_eq!(row.verdict.reason, told, "{id}");
            assert_eq!(of(max).steps.len(), 1, "{id}: {:?}", of(max).skipped);
        }
    }
}
