//! Rules of udev that set a network card when it appears, as lines of text: what `--persist` writes for settings that
//! have no file, and what others wrote.
//!
//! A rule tells the card by its address and its driver, never by its name: names are given while rules are read, and a
//! VLAN or a bond on top of a card has its address and not its driver. The program that the rule starts gets the name
//! that the card has in the end (`$name`).

use crate::cards::{self, Command, Said};

/// What a card is told by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its name.
    pub name: String,
    /// The address that it was made with: `52:54:00:12:34:56`.
    pub address: String,
    /// The driver of its device.
    pub driver: String,
}

/// The line that sets a setting of a card, by the program `ethtool`.
#[must_use]
pub fn rule(card: &Card, program: &str, command: &Command<'_>) -> String {
    let (Card { address, driver, .. }, Command { option, words, .. }) = (card, command);
    format!(
        "ACTION==\"add\", SUBSYSTEM==\"net\", DRIVERS==\"{driver}\", ATTR{{address}}==\"{address}\", \
         RUN+=\"{program} {option} $name {words}\"\n"
    )
}

/// Whether a line is a rule of ours: another one for the same card and setting differs in its last word alone.
#[must_use]
pub fn is_rule(line: &str) -> bool {
    line.starts_with("ACTION==\"add\", SUBSYSTEM==\"net\", ")
}

/// What a line of a file of rules sets of a card: knobs and values. Nothing where a part of the line means no card, or
/// asks for something that is not known here.
#[must_use]
pub fn settings(line: &str, card: &Card) -> Vec<(&'static str, String)> {
    let Some(pairs) = pairs(line) else { return Vec::new() };
    let means_a_card = pairs.iter().any(|(key, _, value)| *key == "SUBSYSTEM" && *value == "net");
    let is_met = |(key, operator, value): &(&str, &str, &str)| match *operator {
        "==" => holds(key, value, card),
        "!=" => !holds(key, value, card),
        _ => true,
    };
    if !means_a_card || !pairs.iter().all(is_met) {
        return Vec::new();
    }
    let runs = pairs.iter().filter(|(key, operator, _)| (*key, *operator) == ("RUN", "+="));
    runs.flat_map(|(_, _, command)| of_command(command, card)).collect()
}

/// Whether a condition of a rule holds for a card that appears. What is not known does not.
fn holds(key: &str, value: &str, card: &Card) -> bool {
    let is = |actual: &str| value.split('|').any(|wanted| crate::place::matches(wanted, actual));
    match key {
        "ACTION" => is("add"),
        "SUBSYSTEM" => is("net"),
        "ATTR{address}" => is(&card.address),
        // `1` is Ethernet.
        "ATTR{type}" => is("1"),
        "DRIVERS" => is(&card.driver),
        "KERNEL" | "NAME" | "ENV{INTERFACE}" => is(&card.name),
        _ => false,
    }
}

/// What a command that a rule starts sets of a card: `/usr/sbin/ethtool -G $name rx 4096`.
fn of_command(command: &str, card: &Card) -> Vec<(&'static str, String)> {
    let mut words = command.split_whitespace();
    let program = words.next().and_then(|program| program.rsplit('/').next());
    let option = words.next().and_then(cards::option).filter(|_| program == Some("ethtool"));
    let target = words.next().filter(|name| ["$name", "%k", "$kernel", card.name.as_str()].contains(name));
    let (Some(option), Some(_)) = (option, target) else { return Vec::new() };
    let words: Vec<String> = words.map(str::to_owned).collect();
    let said = cards::settings(option, &words).into_iter();
    said.filter_map(|said| match said {
        Said::Value { knob, value, .. } => Some((knob, value)),
        Said::Refused { .. } => None,
    })
    .collect()
}

/// `KEY=="value", KEY+="value"`: keys, operators and values; `None` for a comment and what is no rule.
fn pairs(line: &str) -> Option<Vec<(&str, &str, &str)>> {
    let mut rest = line.trim();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let at = rest.find(['=', '!', '+', '-', ':']).filter(|_| !rest.starts_with('#'))?;
        let (key, after) = rest.split_at(at);
        let quote = after.find('"')?;
        let (operator, value) = (after[..quote].trim(), &after[quote + 1..]);
        if !["==", "!=", "=", "+=", "-=", ":="].contains(&operator) {
            return None;
        }
        let (value, after) = value.split_once('"')?;
        found.push((key.trim(), operator, value));
        rest = after.trim_start_matches([',', ' ', '\t']);
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn card() -> Card {
        let own = |text: &str| text.to_owned();
        Card { name: own("ens3"), address: own("52:54:00:00:00:01"), driver: own("igb") }
    }

    #[test]
    fn what_is_written_is_read() {
        for (knob, value, word) in [("rings_rx", "4096", "4096"), ("feature_lro", "0", "off")] {
            let place = format!("/planish/ethtool/ens3/{knob}");
            let line = rule(&card(), "/usr/sbin/ethtool", &cards::command(&place, value).expect("a card"));
            assert!(is_rule(&line), "{line}");
            let read = settings(&line, &card());
            assert_eq!(read.len(), 1, "{line}");
            assert_eq!((format!("net.{knob}"), word), (read[0].0.to_owned(), read[0].1.as_str()));
            let other = Card { driver: "8021q".to_owned(), ..card() };
            assert_eq!(settings(&line, &other), [], "a VLAN has the address of its card");
        }
    }

    #[test]
    fn rules_of_others_are_read_as_far_as_they_are_known() {
        let set = |line: &str| settings(line, &card()).iter().map(|(knob, _)| *knob).collect::<Vec<_>>();
        let ring = "net.rings_rx";
        assert_eq!(
            set(r#"SUBSYSTEM=="net", KERNEL=="ens*|eth*", RUN+="/sbin/ethtool -G %k rx 512""#),
            [ring]
        );
        assert_eq!(
            set(r#"ACTION=="add|change",SUBSYSTEM=="net",RUN+="ethtool --set-ring ens3 rx 512""#),
            [ring]
        );
        for none in [
            r#"# SUBSYSTEM=="net", RUN+="/sbin/ethtool -G %k rx 512""#,
            r#"SUBSYSTEM=="net", KERNEL=="eth*", RUN+="/sbin/ethtool -G %k rx 512""#,
            r#"SUBSYSTEM=="net", KERNEL!="ens3", RUN+="/sbin/ethtool -G %k rx 512""#,
            r#"SUBSYSTEM=="net", ENV{ID_PATH}=="pci-0", RUN+="/sbin/ethtool -G %k rx 512""#,
            r#"SUBSYSTEM=="net", RUN+="/sbin/ethtool -G eth1 rx 512""#,
            r#"SUBSYSTEM=="block", RUN+="/sbin/ethtool -G %k rx 512""#,
            r#"SUBSYSTEM=="net", RUN+="/bin/true -G %k rx 512""#,
            r#"SUBSYSTEM=="net", RUN+="/sbin/ethtool"#,
            "",
        ] {
            assert_eq!(set(none), [""; 0], "{none}");
        }
    }

    proptest! {
        #[test]
        fn odd_lines_set_nothing(line in r#"[A-Z{}=+"!, a-z$%:#é-]{0,120}"#) {
            let _ = settings(&line, &card());
        }
    }
}
