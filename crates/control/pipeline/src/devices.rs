//! Steps of what has another name since: of cards and disks, that are called after the order in which they appeared,
//! and of entries of a boot loader that counts the tries of each in the name of its file.
//!
//! A step is of the device that it was made for. Where another one has the name now, the step is looked at, and taken
//! back, by the name that its own device has; where that is not here any more, by a name that nothing has, so that no
//! other device is read or written for it. The journal keeps the name of then.

use planish_host::Host;
use planish_model::{DeviceId, Entry, EntryStep, place};
use planish_udev::DISK_KEYS;

use crate::{boot, rules};

/// Where places of cards and disks are. A card has two folders.
const CARDS: [&str; 2] = [place::CARDS, "/sys/class/net/"];
const DISKS: &str = "/sys/block/";
/// SCSI disks by their host, channel, target and unit: hosts are counted in the order in which they appear.
const SCSI_DISKS: &str = "/sys/class/scsi_disk/";

/// The folder that a place is in, and the name of its device.
fn named(place: &str) -> Option<(&'static str, &str)> {
    [CARDS[0], CARDS[1], DISKS, SCSI_DISKS].into_iter().find_map(|folder| {
        let (name, _) = place.strip_prefix(folder)?.split_once('/')?;
        Some((folder, name))
    })
}

/// The folder that lists the devices of a kind, by one that has places of them.
fn list_of(folder: &'static str) -> &'static str {
    if CARDS.contains(&folder) { CARDS[1] } else { folder }
}

/// A fact of a device, by its name among those of [`DeviceId`].
type Fact = (&'static str, String);

/// What the device of a place is told by; `None` for a place that is of no such device, and for one that nothing tells.
///
/// What another device has, too, is no fact: two paths to one disk have its number, and a card of a virtual machine has
/// the address of the real one behind it.
pub(crate) fn id(host: &Host, place: &str) -> Option<DeviceId> {
    let (folder, name) = named(place)?;
    if folder == SCSI_DISKS {
        let disks = host.list(&format!("{folder}{name}/device/block"));
        return id(host, &format!("{DISKS}{}/x", disks.first()?));
    }
    let all = list_of(folder);
    let facts = if folder == DISKS { of_disk } else { of_card };
    let mut own = facts(host, name);
    for other in host.list(all.trim_end_matches('/')).iter().filter(|other| *other != name) {
        // What the kernel keeps of each path to a disk of several is the disk's own.
        let hidden = || host.read(&format!("{DISKS}{other}/hidden")).is_ok_and(|text| text.trim() == "1");
        if !(own.is_empty() || folder == DISKS && hidden()) {
            let theirs = facts(host, other);
            own.retain(|fact| !theirs.contains(fact));
        }
    }
    let best = |fact: &str| own.iter().find(|(name, _)| *name == fact).map(|(_, value)| value.clone());
    DeviceId::new([best("address"), best("id"), best("serial"), best("bus")])
}

fn of_card(host: &Host, name: &str) -> Vec<Fact> {
    let folder = format!("{}{name}", CARDS[1]);
    let port = host.read(&format!("{folder}/dev_port")).unwrap_or_default();
    let bus = bus(host, &folder).map(|bus| format!("{bus}/{}", port.trim().parse::<u32>().unwrap_or(0)));
    let address = rules::own_address(host, name).map(|address| ("address", address));
    address.into_iter().chain(bus.map(|bus| ("bus", bus))).collect()
}

/// The best first, of those of one name.
fn of_disk(host: &Host, name: &str) -> Vec<Fact> {
    let folder = format!("{DISKS}{name}");
    let properties = host.udev_properties(&folder).unwrap_or_default();
    let property = |key: &&str| Some(("id", format!("{key}={}", properties.get(*key)?)));
    let file = |file: &&str| {
        let text = host.read(&format!("{folder}/{file}")).ok()?;
        let told = text.trim();
        // A recording has none of them.
        (!told.is_empty() && told != "redacted").then(|| ("serial", format!("{file}={told}")))
    };
    let numbers = ["wwid", "device/wwid", "serial"].iter().filter_map(file);
    let bus = bus(host, &folder).map(|bus| ("bus", bus));
    DISK_KEYS.iter().filter_map(property).chain(numbers).chain(bus).collect()
}

/// Where on the bus a device is: its slot of PCI, or the channel that a hypervisor gave it. Disks of one controller are
/// in one place, and not told by it.
fn bus(host: &Host, folder: &str) -> Option<String> {
    let path = host.canonical(&format!("{folder}/device"))?;
    if path.contains("/host") {
        return None;
    }
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_hexdigit());
    let is_slot = |part: &&str| {
        let parts: Vec<&str> = part.split([':', '.']).collect();
        // A domain of five digits is that of a controller for disks of NVMe.
        matches!(parts.as_slice(), [domain, bus, slot, function]
            if (digits(domain, 4) || digits(domain, 5)) && digits(bus, 2) && digits(slot, 2) && digits(function, 1))
    };
    let is_channel = |part: &&str| {
        let parts: Vec<&str> = part.split('-').collect();
        parts.len() == 5 && parts.iter().zip([8, 4, 4, 4, 12]).all(|(part, count)| digits(part, count))
    };
    path.rsplit('/').find(|part| is_slot(part) || is_channel(part)).map(str::to_owned)
}

/// The entries with their steps at the places where the devices of these are now, and the entries of the boot loader.
pub(crate) fn follow(host: &Host, entries: &mut [Entry]) {
    for step in entries.iter_mut().flat_map(|entry| &mut entry.steps) {
        if let Some(now) = boot::recounted(host, step) {
            let before = std::mem::replace(&mut step.place, now.clone());
            let originals = step.originals.iter_mut().filter(|original| original.place == before);
            let outcomes = [&mut step.outcome, &mut step.undone].into_iter().flatten();
            let places = originals.map(|original| &mut original.place);
            places.chain(outcomes.map(|outcome| &mut outcome.place)).for_each(|place| place.clone_from(&now));
            continue;
        }
        for line in &mut step.rules {
            if let Some(now) = line.device.as_ref().and_then(|id| moved(host, id, &line.place)) {
                line.place = renamed(&line.place, &line.place.clone(), &now);
            }
        }
        let now = step.device.as_ref().and_then(|id| moved(host, id, &step.place));
        if let Some(now) = now {
            move_step(step, &now);
        }
    }
}

/// What the device of a place is called now, where that is not its name there.
fn moved(host: &Host, own: &DeviceId, place: &str) -> Option<String> {
    let (folder, name) = named(place)?;
    let folders = list_of(folder);
    let is_it =
        |name: &str| id(host, &format!("{folders}{name}/x")).and_then(|there| own.is(&there)) == Some(true);
    // What cannot be told from it is not it: another device would be written.
    if is_it(name) {
        return None;
    }
    let is_it = |other: &String| is_it(other);
    let found: Vec<String> = host.list(folders.trim_end_matches('/')).into_iter().filter(is_it).collect();
    match found.as_slice() {
        [one] => Some(one.clone()),
        _ => Some(format!("{name}({})", own.to_string().replace('/', "!"))),
    }
}

fn move_step(step: &mut EntryStep, now: &str) {
    let before = step.place.clone();
    let places = [&mut step.outcome, &mut step.undone].into_iter().flatten().flat_map(|outcome| {
        std::iter::once(&mut outcome.place).chain(outcome.caused.iter_mut().map(|caused| &mut caused.place))
    });
    let originals = step.originals.iter_mut().map(|original| &mut original.place);
    for place in places.chain(originals).chain([&mut step.place]) {
        *place = renamed(place, &before, now);
    }
}

/// A place with the new name of the device that another place is of; what is of no device stays.
fn renamed(place: &str, of: &str, now: &str) -> String {
    let Some((same, before)) = named(of) else { return place.to_owned() };
    match named(place) {
        Some((folder, name)) if name == before && list_of(folder) == list_of(same) => {
            format!("{folder}{now}{}", &place[folder.len() + name.len()..])
        }
        _ => place.to_owned(),
    }
}
