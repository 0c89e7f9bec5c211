//! The line of a file of rules for udev that brings a setting of a network card back whenever the card appears.

use planish_host::Host;
use planish_model::cards;
use planish_model::place::CARDS;
use planish_model::udev::{self, Card};

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
    if !["/run/udev", "/etc/udev", "/usr/lib/udev", "/lib/udev"].iter().any(|folder| host.exists(folder)) {
        return Err(("there is no udev here to set it when the card appears", AGAIN));
    }
    let program = PROGRAMS.iter().find(|program| host.exists(program)).ok_or((
        "the rule that sets it when the card appears starts ethtool, which is not installed",
        "install the package ethtool, and apply again",
    ))?;
    let card = card(host, command.card)
        .ok_or(("nothing tells its card from others: its address was set, or it has no driver", AGAIN))?;
    Ok(udev::rule(&card, program, &command))
}

/// What to do where no rule helps.
const AGAIN: &str = "apply again after each boot, from a unit of your own";

/// What a card is told by: the address that it was made with, and its driver.
fn card(host: &Host, name: &str) -> Option<Card> {
    let read = |file: &str| {
        let text = host.read(&format!("/sys/class/net/{name}/{file}")).ok()?;
        Some(text.trim().to_ascii_lowercase()).filter(|text| !text.is_empty())
    };
    // A card of a bond shows the address of the bond, and its own here.
    let own = || read("address").filter(|_| read("addr_assign_type").as_deref() == Some("0"));
    let address = read("bonding_slave/perm_hwaddr").or_else(own)?;
    let driver = host.read_link(&format!("/sys/class/net/{name}/device/driver"))?;
    let driver = driver.rsplit('/').next()?.to_owned();
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || ":_-.".contains(c));
    (is_plain(&address) && is_plain(&driver)).then(|| Card { name: name.to_owned(), address, driver })
}

/// Whether a place is a setting of a card.
pub(crate) fn is_for(place: &str) -> bool {
    place.starts_with(CARDS)
}
