//! What a kernel says of a network card over netlink, and rules of udev that others wrote.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_model::udev::{Card, settings};
use planish_sys::ethtool::{Group, decode};

fuzz_target!(|bytes: &[u8]| {
    for group in Group::ALL {
        for (name, value) in decode(group, bytes) {
            let setting = planish_sys::ethtool::Setting::by_name(name).expect("one that is known");
            assert_eq!(setting.group, group);
            assert!(!setting.is_switch() || value.value <= 1);
        }
    }
    let card = || Card {
        name: "eth0".to_owned(),
        address: "52:54:00:00:00:01".to_owned(),
        driver: "igb".to_owned(),
    };
    for line in std::str::from_utf8(bytes).unwrap_or_default().lines() {
        for (knob, _) in settings(line, &card()) {
            assert!(knob.starts_with("net."));
        }
    }
});
