//! Steps of devices whose names changed since: of cards and disks, that are called after the order in which they
//! appeared.
//!
//! A step is of the device that it was made for. Where another one has the name now, the step is looked at, and taken
//! back, by the name that its own device has; where that is not here any more, by a name that nothing has, so that no
//! other device is read or written for it. The journal keeps the name of then.

use planish_host::Host;
use planish_model::{DeviceId, Entry, EntryStep, place};

use crate::rules;

/// Where places of cards and disks are. A card has two folders.
const CARDS: [&str; 2] = [place::CARDS, "/sys/class/net/"];
const DISKS: &str = "/sys/block/";

/// The folder that a place is in, and the name of its device.
fn named(place: &str) -> Option<(&'static str, &str)> {
    [CARDS[0], CARDS[1], DISKS].into_iter().find_map(|folder| {
        let (name, _) = place.strip_prefix(folder)?.split_once('/')?;
        Some((folder, name))
    })
}

/// What the device of a place is told by; `None` for a place that is of no such device, and for one that nothing tells.
pub(crate) fn id(host: &Host, place: &str) -> Option<DeviceId> {
    let (folder, name) = named(place)?;
    if folder == DISKS { id_of_disk(host, name) } else { id_of_card(host, name) }
}

fn id_of_card(host: &Host, name: &str) -> Option<DeviceId> {
    let folder = format!("{}{name}", CARDS[1]);
    let port = host.read(&format!("{folder}/dev_port")).unwrap_or_default();
    let bus = bus(host, &folder).map(|bus| format!("{bus}/{}", port.trim().parse::<u32>().unwrap_or(0)));
    DeviceId::new([rules::own_address(host, name), None, None, bus])
}

fn id_of_disk(host: &Host, name: &str) -> Option<DeviceId> {
    let folder = format!("{DISKS}{name}");
    let file = |file: &&str| {
        let text = host.read(&format!("{folder}/{file}")).ok()?;
        let told = text.trim();
        // A recording has none of them.
        (!told.is_empty() && told != "redacted").then(|| format!("{file}={told}"))
    };
    let own = ["wwid", "device/wwid", "serial"].iter().find_map(file);
    let id = rules::unique(host, name).map(|(key, value)| format!("{key}={value}"));
    DeviceId::new([None, id, own, bus(host, &folder)])
}

/// Where on the PCI bus a device is. Disks of one controller are in one place, and not told by it.
fn bus(host: &Host, folder: &str) -> Option<String> {
    let path = host.canonical(&format!("{folder}/device"))?;
    if path.contains("/host") {
        return None;
    }
    let is_slot = |part: &&str| {
        let digits =
            |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_hexdigit());
        let parts: Vec<&str> = part.split([':', '.']).collect();
        matches!(parts.as_slice(), [domain, bus, slot, function]
            if digits(domain, 4) && digits(bus, 2) && digits(slot, 2) && digits(function, 1))
    };
    path.rsplit('/').find(is_slot).map(str::to_owned)
}

/// The entries with their steps at the places where the devices of these are now.
pub(crate) fn follow(host: &Host, entries: &mut [Entry]) {
    for step in entries.iter_mut().flat_map(|entry| &mut entry.steps) {
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
    let folders = if folder == DISKS { DISKS } else { CARDS[1] };
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
        Some((folder, name)) if name == before && (folder == DISKS) == (same == DISKS) => {
            format!("{folder}{now}{}", &place[folder.len() + name.len()..])
        }
        _ => place.to_owned(),
    }
}
