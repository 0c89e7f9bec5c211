//! What keeps a value from a network card: its own limit, and the sessions that run through it.

use planish_model::{Class, Knob, Observation, Reading, Verdict, VerdictKind, place};

use crate::Options;

/// Why a value is not set at a place that could be set: the device takes no number as large, or the machine is reached
/// through the card and may lose it.
pub(crate) fn refusal(
    knob: &Knob,
    reading: &Reading,
    wanted: &str,
    observation: &Observation,
    options: &Options,
) -> Option<Verdict> {
    if let Some(max) = reading.max
        && wanted.trim().parse::<i64>().is_ok_and(|wanted| wanted > max)
    {
        return Some(Verdict::new(VerdictKind::Absent, format!("this device takes {max} at most")));
    }
    let nic = reading.place.strip_prefix(place::CARDS)?.split('/').next()?;
    let named = options.allow_knobs.contains(&knob.id);
    let reached = observation.host.session_nics.iter().any(|own| own == nic);
    (knob.class != Class::Safe && reached && !named).then(|| {
        let reason =
            format!("this machine is reached through {nic}, which may go down: --allow-knob {}", knob.id);
        Verdict::new(VerdictKind::Blocked, reason)
    })
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
        refusal(&knob, &reading, "512", &observation, &options).map(|verdict| verdict.reason)
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
    fn a_device_takes_no_more_than_it_says() {
        let why = refused(Class::Safe, &[], &[], Some(511)).expect("refused");
        assert_eq!(why, "this device takes 511 at most");
        assert_eq!(refused(Class::Safe, &[], &[], Some(512)), None);
    }
}
