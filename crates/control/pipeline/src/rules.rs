//! The lines of a file of rules for udev that bring a setting of a network card or a disk back whenever it appears.
//!
//! A card is told by its address. A disk is told by what udev itself tells it by, as far as no other disk here has the
//! same; where there is no such thing, by its name in the kernel, and the line says so (`KERNEL==`).

use planish_host::Host;
use planish_model::cards;
use planish_model::place::CARDS;
use planish_udev::{DISK_KEYS, DiskKey, Nic};

/// Where the lines go.
pub(crate) const RULES_FILE: &str = "/etc/udev/rules.d/90-planish.rules";

/// Where distributions keep the program that a rule starts.
const PROGRAMS: [&str; 4] = ["/usr/sbin/ethtool", "/sbin/ethtool", "/usr/bin/ethtool", "/bin/ethtool"];

/// Why nothing brings a value back, and what to do instead.
type Left = (&'static str, &'static str);

/// The line for a value at a place.
///
/// # Errors
/// What is missing on this host.
pub(crate) fn rule(host: &Host, place: &str, value: &str) -> Result<String, Left> {
    let command = cards::command(place, value).ok_or((
        "it is no setting of a card that a rule could set",
        "apply again after each boot, from a unit of your own",
    ))?;
    if !has_udev(host) {
        return Err(("there is no udev here to set it when the card appears", AGAIN));
    }
    let program = PROGRAMS.iter().find(|program| host.exists(program)).ok_or((
        "the rule that sets it when the card appears starts ethtool, which is not installed",
        "install the package ethtool, and apply again",
    ))?;
    let card = card(host, command.card)
        .ok_or((
            "nothing tells its card from others: its address was set, another one has it, too, or it has no driver",
            AGAIN,
        ))?;
    Ok(planish_udev::card_rule(&card, program, command.option, &command.words))
}

fn has_udev(host: &Host) -> bool {
    ["/run/udev", "/etc/udev", "/usr/lib/udev", "/lib/udev"].iter().any(|folder| host.exists(folder))
}

/// Where disks are.
const DISKS: &str = "/sys/block";

/// The line for a value of a file in the folder of a disk; `None` where there is no udev, and where a rule would not
/// say what is meant.
pub(crate) fn disk_rule(host: &Host, place: &str, value: &str) -> Option<String> {
    let (name, file) = place.strip_prefix(DISKS)?.strip_prefix('/')?.split_once('/')?;
    let rule = |key| planish_udev::disk_rule(&key, file, value);
    if !has_udev(host) {
        return None;
    }
    let property = unique(host, name).map(|(key, value)| DiskKey::Property(key, value));
    property.and_then(rule).or_else(|| rule(DiskKey::Name(name.to_owned())))
}

/// What udev tells a disk by, and no other disk of this host has.
pub(crate) fn unique(host: &Host, name: &str) -> Option<(&'static str, String)> {
    let properties = |name: &str| host.udev_properties(&format!("{DISKS}/{name}")).unwrap_or_default();
    let own = properties(name);
    let others: Vec<_> =
        host.list(DISKS).iter().filter(|other| *other != name).map(|other| properties(other)).collect();
    DISK_KEYS.iter().find_map(|key| {
        let value = own.get(*key)?;
        let is_its_own = others.iter().all(|other| other.get(*key) != Some(value));
        is_its_own.then(|| (*key, value.clone()))
    })
}

/// What to do where no rule helps.
const AGAIN: &str = "apply again after each boot, from a unit of your own";

/// What a card is told by: the address that it was made with, and its driver.
fn card(host: &Host, name: &str) -> Option<Nic> {
    let told = |name: &str| {
        let driver = host.read_link(&format!("/sys/class/net/{name}/device/driver"))?;
        Some((own_address(host, name)?, driver.rsplit('/').next()?.to_owned()))
    };
    let own = told(name)?;
    // The line would set that one, too.
    if host.list("/sys/class/net").iter().any(|other| other != name && told(other).as_ref() == Some(&own)) {
        return None;
    }
    let (address, driver) = own;
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || ":_-.".contains(c));
    (is_plain(&address) && is_plain(&driver)).then_some(Nic { address, driver })
}

/// The address that a card was made with.
pub(crate) fn own_address(host: &Host, name: &str) -> Option<String> {
    let read = |file: &str| {
        let text = host.read(&format!("/sys/class/net/{name}/{file}")).ok()?;
        Some(text.trim().to_ascii_lowercase()).filter(|text| !text.is_empty())
    };
    // A card of a bond shows the address of the bond, and its own here.
    let own = || read("address").filter(|_| read("addr_assign_type").as_deref() == Some("0"));
    read("bonding_slave/perm_hwaddr").or_else(own)
}

/// Whether a place is a file of a disk.
pub(crate) fn is_of_disk(place: &str) -> bool {
    place.strip_prefix(DISKS).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a place is a setting of a card.
pub(crate) fn is_for(place: &str) -> bool {
    place.starts_with(CARDS)
}
