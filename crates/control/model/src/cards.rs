//! Settings of network cards in the words of `ethtool(8)`, which scripts, rules of udev and tuned use alike.
//!
//! A card has no file for them: their places are below [`CARDS`], such as `/planish/ethtool/eth0/rings_rx`.

use crate::place::CARDS;

/// A knob of a card, the option of ethtool that sets it, tuned's key for that option, and the word before the value.
struct Word {
    knob: &'static str,
    option: &'static str,
    key: &'static str,
    word: &'static str,
}

const fn word(knob: &'static str, option: &'static str, key: &'static str, word: &'static str) -> Word {
    Word { knob, option, key, word }
}

/// Where one knob has several words, the first is the one that is written.
const WORDS: &[Word] = &[
    word("net.channels_combined", "-L", "channels", "combined"),
    word("net.channels_rx", "-L", "channels", "rx"),
    word("net.channels_tx", "-L", "channels", "tx"),
    word("net.rings_rx", "-G", "ring", "rx"),
    word("net.rings_tx", "-G", "ring", "tx"),
    word("net.coalesce_rx_usecs", "-C", "coalesce", "rx-usecs"),
    word("net.coalesce_rx_frames", "-C", "coalesce", "rx-frames"),
    word("net.coalesce_tx_usecs", "-C", "coalesce", "tx-usecs"),
    word("net.coalesce_tx_frames", "-C", "coalesce", "tx-frames"),
    word("net.coalesce_adaptive_rx", "-C", "coalesce", "adaptive-rx"),
    word("net.coalesce_adaptive_tx", "-C", "coalesce", "adaptive-tx"),
    word("net.feature_gro", "-K", "features", "gro"),
    word("net.feature_gro", "-K", "features", "rx-gro"),
    word("net.feature_gro", "-K", "features", "generic-receive-offload"),
    word("net.feature_gso", "-K", "features", "gso"),
    word("net.feature_gso", "-K", "features", "tx-generic-segmentation"),
    word("net.feature_gso", "-K", "features", "generic-segmentation-offload"),
    word("net.feature_tso", "-K", "features", "tx-tcp-segmentation"),
    word("net.feature_tso", "-K", "features", "tso"),
    word("net.feature_tso", "-K", "features", "tcp-segmentation-offload"),
    word("net.feature_tso6", "-K", "features", "tx-tcp6-segmentation"),
    // The short word is for both protocols.
    word("net.feature_tso6", "-K", "features", "tso"),
    word("net.feature_tso6", "-K", "features", "tcp-segmentation-offload"),
    word("net.feature_lro", "-K", "features", "lro"),
    word("net.feature_lro", "-K", "features", "rx-lro"),
    word("net.feature_lro", "-K", "features", "large-receive-offload"),
    word("net.feature_ntuple", "-K", "features", "ntuple"),
    word("net.feature_ntuple", "-K", "features", "rx-ntuple-filter"),
    word("net.feature_ntuple", "-K", "features", "ntuple-filters"),
    word("net.pause_autoneg", "-A", "pause", "autoneg"),
    word("net.pause_rx", "-A", "pause", "rx"),
    word("net.pause_tx", "-A", "pause", "tx"),
];

/// Long options of ethtool, and their short ones.
const LONG: [(&str, &str); 6] = [
    ("--set-channels", "-L"),
    ("--set-ring", "-G"),
    ("--coalesce", "-C"),
    ("--features", "-K"),
    ("--offload", "-K"),
    ("--pause", "-A"),
];

/// The knobs that a word of an option sets: one, several, or none.
fn knobs(option: &str, word: &str) -> Vec<&'static str> {
    let fits = |row: &&Word| (row.option == option || row.key == option) && row.word == word;
    WORDS.iter().filter(fits).map(|row| row.knob).collect()
}

/// One setting of a card, or why a word is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A value for a knob.
    Value {
        /// The id of the knob.
        knob: &'static str,
        /// The value, as it was written.
        value: String,
        /// The words.
        text: String,
    },
    /// Words that set nothing here.
    Refused {
        /// The words.
        text: String,
        /// Why.
        reason: &'static str,
    },
}

/// What an option of ethtool (`-G`, or tuned's `ring`) with its words says: `rx 4096 tx 4096`.
#[must_use]
pub fn settings(option: &str, words: &[String]) -> Vec<Said> {
    let mut said = Vec::new();
    for pair in words.chunks(2) {
        let [word, value] = pair else {
            let (text, reason) = (pair.concat(), "a word without a value");
            said.push(Said::Refused { text, reason });
            continue;
        };
        let (knobs, text) = (knobs(option, word), format!("{word} {value}"));
        if knobs.is_empty() {
            let reason = "a setting of network cards that no knob is for";
            said.push(Said::Refused { text: text.clone(), reason });
        }
        for knob in knobs {
            said.push(Said::Value { knob, value: value.clone(), text: text.clone() });
        }
    }
    said
}

/// The short form of an option of ethtool that sets something which knobs are for.
#[must_use]
pub fn option(given: &str) -> Option<&'static str> {
    let short = LONG.iter().find(|(long, _)| *long == given).map_or(given, |(_, short)| *short);
    WORDS.iter().map(|row| row.option).find(|option| *option == short)
}

/// Whether tuned's plugin for network cards takes this key, and knobs are for it.
#[must_use]
pub fn is_key(key: &str) -> bool {
    WORDS.iter().any(|row| row.key == key)
}

/// A value for cards as the words of ethtool: what is written for a place of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The card, or a shell pattern of cards.
    pub card: &'a str,
    /// The option: `-G`.
    pub option: &'static str,
    /// The key of tuned for that option: `ring`.
    pub key: &'static str,
    /// What follows: `rx 4096`.
    pub words: String,
}

/// The place of a knob of a card.
#[must_use]
pub fn place_of(knob: &str, card: &str) -> Option<String> {
    Some(format!("{CARDS}{card}/{}", knob.strip_prefix("net.")?))
}

/// What sets a place of a card; `None` for a place that is none.
#[must_use]
pub fn command<'a>(place: &'a str, value: &str) -> Option<Command<'a>> {
    let (card, name) = place.strip_prefix(CARDS)?.split_once('/')?;
    let row = WORDS.iter().find(|row| row.knob.strip_prefix("net.") == Some(name))?;
    let is_switch = ["features", "pause"].contains(&row.key) || row.word.starts_with("adaptive");
    let value = match value {
        "1" if is_switch => "on",
        "0" if is_switch => "off",
        other => other,
    };
    Some(Command { card, option: row.option, key: row.key, words: format!("{} {value}", row.word) })
}

impl Command<'_> {
    /// A line of a shell script. Where many cards are meant, those that hang on a device.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { card, option, words, .. } = self;
        if card.contains(['*', '?', '[']) {
            return format!(
                "for nic in /sys/class/net/{card}; do [ ! -e \"$nic/device\" ] || \
                 ethtool {option} \"${{nic##*/}}\" {words} || failed=1; done\n"
            );
        }
        format!("[ ! -e /sys/class/net/{card} ] || ethtool {option} {card} {words} || failed=1\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalogue, KnobId};

    #[test]
    fn every_knob_of_a_card_has_words_and_every_word_a_knob() {
        let catalogue = Catalogue::embedded().expect("sound");
        for row in WORDS {
            let knob = catalogue.knob(&KnobId::new(row.knob)).expect("a row");
            let command = command(&knob.path, "1").expect("a card");
            assert_eq!(command.option, row.option, "{}", row.knob);
            assert_eq!(place_of(row.knob, "{nic}").as_deref(), Some(knob.path.as_str()));
        }
        for knob in catalogue.knobs().filter(|knob| knob.path.starts_with(CARDS)) {
            assert!(WORDS.iter().any(|row| row.knob == knob.id.as_str()), "{}", knob.id);
        }
    }

    #[test]
    fn words_are_those_of_ethtool() {
        let line = |place: &str, value| command(place, value).expect("a card").line();
        assert_eq!(
            line("/planish/ethtool/eth0/rings_rx", "4096"),
            "[ ! -e /sys/class/net/eth0 ] || ethtool -G eth0 rx 4096 || failed=1\n"
        );
        assert!(line("/planish/ethtool/en*/coalesce_adaptive_rx", "0").contains(
            "for nic in /sys/class/net/en*; do [ ! -e \"$nic/device\" ] || ethtool -C \"${nic##*/}\" adaptive-rx off"
        ));
        assert!(command("/proc/sys/vm/swappiness", "1").is_none());
        assert_eq!((option("--set-ring"), option("-G"), option("-s")), (Some("-G"), Some("-G"), None));
    }
}
