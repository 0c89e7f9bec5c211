//! `udev(7)`: rules that start `ethtool` when a network card appears.
//!
//! Only the folders of an administrator are read, since what packages ship for their own devices sets no rings, and is
//! long. Files are sorted by name over both folders. The commands of all rules that mean a card run in their order, so
//! that the last one counts.

use planish_host::Host;
use planish_model::udev::{self, Card};
use planish_model::{Observation, cards, place};

use super::{Setting, files};

const FOLDERS: [&str; 2] = ["/etc/udev/rules.d", "/run/udev/rules.d"];

/// The settings of cards that were seen.
pub(crate) fn settings(host: &Host, observation: &Observation) -> Vec<Setting> {
    let texts: Vec<(String, String)> = files(host, &FOLDERS, ".rules")
        .into_iter()
        .filter_map(|file| host.read(&file).ok().map(|text| (file, text)))
        .filter(|(_, text)| text.contains("ethtool"))
        .collect();
    if texts.is_empty() {
        return Vec::new();
    }
    let mut settings = Vec::new();
    for card in seen(host, observation) {
        for (file, text) in &texts {
            for (index, line) in text.lines().enumerate() {
                let source = format!("{file}:{}", index + 1);
                for (knob, value) in udev::settings(line, &card) {
                    let place = cards::place_of(knob, &card.name);
                    settings.extend(place.map(|place| Setting::new(place, &value, &source)));
                }
            }
        }
    }
    settings
}

/// The cards that settings were seen of.
fn seen(host: &Host, observation: &Observation) -> Vec<Card> {
    let readings = observation.knobs.values().flatten();
    let names = readings.filter_map(|reading| reading.place.strip_prefix(place::CARDS)?.split('/').next());
    let mut names: Vec<&str> = names.filter(|name| !name.starts_with('{')).collect();
    names.sort_unstable();
    names.dedup();
    let card = |name: &str| {
        let read = |file: &str| host.read(&format!("/sys/class/net/{name}/{file}")).ok();
        let address = read("bonding_slave/perm_hwaddr").or_else(|| read("address")).unwrap_or_default();
        let driver = host.read_link(&format!("/sys/class/net/{name}/device/driver")).unwrap_or_default();
        Card {
            name: name.to_owned(),
            address: address.trim().to_ascii_lowercase(),
            driver: driver.rsplit('/').next().unwrap_or_default().to_owned(),
        }
    };
    names.into_iter().map(card).collect()
}

#[cfg(test)]
mod tests {
    use planish_host::{Redactions, Redactor};
    use planish_model::Persisted;

    use super::*;

    /// What a record keeps of a file of rules.
    fn kept(file: &str, text: &str) -> String {
        let redactions = Redactions { macs: false, ..Redactions::default() };
        Redactor::new(redactions, "orion").redact(&format!("{}/{file}", FOLDERS[0]), text)
    }

    #[test]
    fn a_record_keeps_of_rules_what_is_read_of_them_and_no_secret() {
        let own = |text: &str| text.to_owned();
        let card = Card { name: own("ens3"), address: own("52:54:00:00:00:01"), driver: own("igb") };
        let mut text = own("# hunter2\n");
        let options = ["-G", "-L", "-C", "-K", "-A", "--set-ring", "--set-channels", "--coalesce"];
        let options = options.iter().chain(&["--features", "--offload", "--pause"]);
        for option in options {
            assert!(cards::option(option).is_some(), "{option}");
            for word in ["rx 512", "rx-usecs 3", "gro off"] {
                text += &format!("SUBSYSTEM==\"net\", RUN+=\"/sbin/ethtool {option} $name {word}\"\n");
            }
        }
        let set = "RUN+=\"/sbin/ethtool -G $name rx 512\"";
        for condition in [
            "ACTION==\"add|change\"",
            "ATTR{address}==\"52:54:00:00:00:01\"",
            "ATTR{address}!=\"52:54:00:00:00:01\"",
            "ATTR{type}==\"1\"",
            "DRIVERS==\"i*\"",
            "KERNEL!=\"eth*\"",
            "NAME==\"ens3\"",
            "ENV{INTERFACE}==\"ens3\"",
            "ENV{ID_SERIAL}==\"hunter2\"",
            "ATTRS{serial}!=\"hunter2\"",
            "PROGRAM=\"/bin/hunter2\"",
            "RUN+=\"/bin/mail --pass hunter2\"",
        ] {
            text += &format!("SUBSYSTEM==\"net\", {condition}, {set}\n");
        }
        let read = |text: &str| text.lines().map(|line| udev::settings(line, &card)).collect::<Vec<_>>();
        let kept = kept("70-own.rules", &text);
        assert_eq!(read(&kept), read(&text));
        assert!(read(&kept).iter().flatten().count() > 12);
        assert!(!kept.contains("hunter2"), "{kept}");
    }

    #[test]
    fn a_record_keeps_the_rules_of_planish_whole() {
        let text = "# By planish\nACTION==\"add\", SUBSYSTEM==\"net\"\n";
        assert_eq!(kept(Persisted::OWN_RULES, text), text);
    }
}
