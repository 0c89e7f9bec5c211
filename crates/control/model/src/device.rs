//! What tells a device from others, whatever it is called: names are given anew at each boot, and may swap.

use std::collections::BTreeMap;

use planish_sorted::CollectMap as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a device is told by: its address, what udev tells it by, where it is plugged in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DeviceId(pub BTreeMap<String, String>);

/// The facts, the best first: of two that both devices have, the better one decides. A card may move to another slot,
/// and another one may be put into its own.
const FACTS: [&str; 4] = ["address", "id", "serial", "bus"];

impl DeviceId {
    /// With what is known of a device: its address, what udev tells it by, its number, and where it is plugged in.
    #[must_use]
    pub fn new(facts: [Option<String>; 4]) -> Option<Self> {
        let known = FACTS.into_iter().zip(facts);
        let known: BTreeMap<String, String> =
            known.filter_map(|(fact, value)| Some((fact.to_owned(), value?))).collect_map();
        (!known.is_empty()).then_some(Self(known))
    }

    /// Whether two are of one device; `None` where they have nothing in common that would tell.
    #[must_use]
    pub fn is(&self, other: &Self) -> Option<bool> {
        FACTS.iter().find_map(|fact| {
            let (own, others) = (self.0.get(*fact)?, other.0.get(*fact)?);
            // `ID_WWN=..` and `ID_SERIAL=..` may be of one disk: udev tells more of it since, or another has it, too.
            let key = |text: &str| text.split_once('=').map(|(key, _)| key.to_owned());
            (key(own) == key(others)).then_some(own == others)
        })
    }
}

impl std::fmt::Display for DeviceId {
    /// By the best fact that there is.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        FACTS.iter().find_map(|fact| self.0.get(*fact)).map_or("unknown", String::as_str).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_fact_decides() {
        let of = |address: Option<&str>, bus: Option<&str>| {
            DeviceId::new([address.map(str::to_owned), None, None, bus.map(str::to_owned)])
        };
        let card = of(Some("52:54:00:00:00:01"), Some("0000:03:00.0")).expect("told");
        assert_eq!(card.is(&card), Some(true));
        let moved = of(Some("52:54:00:00:00:01"), Some("0000:04:00.0")).expect("told");
        assert_eq!(card.is(&moved), Some(true));
        let in_its_slot = of(Some("52:54:00:00:00:02"), Some("0000:03:00.0")).expect("told");
        assert_eq!(card.is(&in_its_slot), Some(false));
        let addressed = of(None, Some("0000:03:00.0")).expect("told");
        assert_eq!(card.is(&addressed), Some(true), "its address was set");
        assert_eq!(card.is(&of(None, Some("0000:04:00.0")).expect("told")), Some(false));
        assert_eq!(of(Some("x"), None).expect("told").is(&addressed), None);
        assert_eq!(of(None, None), None);
        let disk = |id: &str, serial: &str| {
            DeviceId::new([None, Some(id.to_owned()), Some(serial.to_owned()), None]).expect("told")
        };
        let before = disk("ID_WWN=0x5000", "wwid=naa.5000");
        assert_eq!(
            before.is(&disk("ID_SERIAL=x", "wwid=naa.5000")),
            Some(true),
            "another key is no fact of both"
        );
        assert_eq!(before.is(&disk("ID_SERIAL=x", "wwid=naa.6000")), Some(false));
        assert_eq!(before.is(&disk("ID_SERIAL=x", "serial=1")), None);
        assert_eq!(card.to_string(), "52:54:00:00:00:01");
    }
}
