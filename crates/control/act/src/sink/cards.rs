//! Settings of network cards, which have no files: asked and set over netlink.

use std::io;

use planish_host::devices;
use planish_sys::ethtool::Ethtool;
use rustix::io::Errno;

/// The text of a setting of a card; `None` for a place that is none.
pub(super) fn read(place: &str) -> Option<io::Result<String>> {
    let (nic, setting) = devices::setting_at(place)?;
    Some(Ethtool::open().and_then(|ethtool| {
        let values = ethtool.get(nic, setting.group)?;
        let value = values.get(setting.name).ok_or(Errno::NOENT)?;
        Ok(value.value.to_string())
    }))
}

/// Sets a setting of a card; `None` for a place that is none.
pub(super) fn write(place: &str, value: &str) -> Option<io::Result<()>> {
    let (nic, setting) = devices::setting_at(place)?;
    let number = value.trim().parse::<u32>().ok().filter(|number| !setting.is_switch() || *number <= 1);
    let Some(number) = number else { return Some(Err(Errno::INVAL.into())) };
    Some(Ethtool::open().and_then(|ethtool| ethtool.set(nic, setting, number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_set_and_only_at_settings_of_cards() {
        // A device that cannot be: nothing of this machine is set, whatever comes of it.
        let place = |name: &str| format!("/planish/ethtool/planish-has-no-such-card/{name}");
        for (name, value) in [("rings_rx", "many"), ("rings_rx", "-1"), ("feature_gro", "2")] {
            let error = write(&place(name), value).expect("a setting").expect_err("no number");
            assert_eq!(Errno::from_io_error(&error), Some(Errno::INVAL), "{name} {value}");
        }
        assert!(write(&place("rings_rx"), "1").expect("a setting").is_err(), "no such card");
        assert!(read(&place("rings_rx")).expect("a setting").is_err(), "no such card");
        assert!(write("/proc/sys/vm/swappiness", "1").is_none() && read(&place("rings_rx_max")).is_none());
    }
}
