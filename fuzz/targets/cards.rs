//! What a kernel says of a network card over netlink, and rules of udev that others wrote.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_sys::ethtool::{Group, decode};
use planish_udev::{Action, Device, File, Holds, Known, Parent, follow, rules};

fuzz_target!(|bytes: &[u8]| {
    for group in Group::ALL {
        for (name, value) in decode(group, bytes) {
            let setting = planish_sys::ethtool::Setting::by_name(name).expect("one that is known");
            assert_eq!(setting.group, group);
            assert!(!setting.is_switch() || value.value <= 1);
        }
    }
    let text = String::from_utf8_lossy(bytes);
    let file = File { name: "/etc/udev/rules.d/x.rules".to_owned(), rules: rules(&text) };
    for action in [Action::Add, Action::Change] {
        for effect in follow(std::slice::from_ref(&file), &Card, action) {
            assert!(effect.source.starts_with(&file.name));
        }
    }
});

/// A card of which some things are known.
struct Card;

impl Device for Card {
    fn subsystem(&self) -> Known {
        Known::Is("net".to_owned())
    }
    fn kernel(&self) -> Known {
        Known::Is("eth0".to_owned())
    }
    fn name(&self) -> Known {
        self.kernel()
    }
    fn attribute(&self, path: &str) -> Known {
        match path {
            "address" => Known::Is("52:54:00:00:00:01".to_owned()),
            "type" => Known::Absent,
            _ => Known::Unknown,
        }
    }
    fn property(&self, key: &str) -> Known {
        Known::or_unknown((key == "INTERFACE").then(|| "eth0".to_owned()))
    }
    fn parents(&self) -> Vec<Parent> {
        let driver = Known::Is("igb".to_owned());
        vec![Parent { kernel: Known::Unknown, subsystem: Known::Unknown, driver }]
    }
    fn has_all_parents(&self) -> bool {
        false
    }
    fn sysctl(&self, _: &str) -> Known {
        Known::Unknown
    }
    fn has_file(&self, _: &str) -> Holds {
        Holds::Maybe
    }
    fn constant(&self, _: &str) -> Known {
        Known::Unknown
    }
    fn folder(&self) -> Option<String> {
        Some("/class/net/eth0".to_owned())
    }
}
