//! Disks and network cards, and the node that each is near.

use planish_host::Host;
use serde::Serialize;

use crate::reader::Reader;

/// A disk or a network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Device {
    /// Kernel's name: `nvme0n1`, `eth0`.
    pub name: String,
    /// NUMA node that it is attached to; `None` where there is none or the firmware tells none.
    pub node: Option<u32>,
    /// PCI address of the device behind it.
    pub pci: Option<String>,
    /// It exists in the kernel only (loop, lo, veth).
    pub is_virtual: bool,
}

/// Disks and network interfaces, for who asks for nothing else of the topology.
#[must_use]
pub fn devices(host: &Host) -> (Vec<Device>, Vec<Device>) {
    let mut reader = Reader::new(host);
    (disks(&mut reader), nics(&mut reader))
}

/// All disks (whole ones, no partitions), in natural order.
pub(crate) fn disks(reader: &mut Reader) -> Vec<Device> {
    read(reader, "/sys/block")
}

/// All network interfaces, in natural order.
pub(crate) fn nics(reader: &mut Reader) -> Vec<Device> {
    read(reader, "/sys/class/net")
}

fn read(reader: &mut Reader, class: &str) -> Vec<Device> {
    let names = reader.host.list(class);
    // Files in /sys/class/net, such as `bonding_masters`, are no interfaces.
    let devices = names.into_iter().filter(|name| reader.host.exists(&format!("{class}/{name}/uevent")));
    devices.collect::<Vec<_>>().into_iter().map(|name| read_device(reader, class, name)).collect()
}

fn read_device(reader: &mut Reader, class: &str, name: String) -> Device {
    let path = reader.host.canonical(&format!("{class}/{name}")).unwrap_or_default();
    let is_virtual = path.starts_with("/sys/devices/virtual/");
    let pci = path.split('/').rfind(|component| is_pci_address(component)).map(str::to_owned);
    let node = if is_virtual { None } else { node_above(reader, &path) };
    Device { name, node, pci, is_virtual }
}

/// The node of the nearest device above that has one: a disk has none itself, its controller has.
fn node_above(reader: &mut Reader, path: &str) -> Option<u32> {
    let mut path = path;
    while path != "/sys/devices" {
        let file = format!("{path}/numa_node");
        if reader.host.exists(&file) {
            return reader.number(&file);
        }
        path = path.rsplit_once('/')?.0;
    }
    None
}

/// `0000:3b:00.0`: domain, bus, device and function.
fn is_pci_address(text: &str) -> bool {
    let hex = |part: &str, least: usize, most: usize| {
        (least..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let mut parts = text.split([':', '.']);
    let (domain, bus, device, function) = (parts.next(), parts.next(), parts.next(), parts.next());
    parts.next().is_none()
        && text.matches(':').count() == 2
        && domain.is_some_and(|part| hex(part, 4, 8))
        && bus.is_some_and(|part| hex(part, 2, 2))
        && device.is_some_and(|part| hex(part, 2, 2))
        && function.is_some_and(|part| hex(part, 1, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pci_addresses_and_what_is_none() {
        assert!(is_pci_address("0000:3b:00.0") && is_pci_address("10000:e1:00.0"));
        for other in ["pci0000:00", "0000:3b:00", "nvme0n1", "0000.3b.00.0", "1-1:1.0", ""] {
            assert!(!is_pci_address(other), "{other}");
        }
    }
}
