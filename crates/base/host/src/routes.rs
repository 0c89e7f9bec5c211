//! Through which cards this machine is reached: what must not be taken down under somebody's feet.
//!
//! They are those of the default routes, and those of the routes back to whoever has a session of the secure shell
//! here. Of a bond, a bridge or a VLAN the cards below it count. Addresses are read and not kept: what is told, and
//! recorded, is names of cards.
//!
//! Where that cannot be told, every card that is up is one of them: with routes in tables of rules of policy or of a
//! VRF, behind tunnels and switches in software, with a disk of the system over the network, and where nothing is
//! found.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use planish_sys::file;

use crate::host::Host;
use crate::{shell, storage};

/// Interfaces on top of each other that are followed: no sane stack is deeper, and links in /sys may go in circles.
const DEPTH_MAX: usize = 8;

/// A route: where to, and through which interface.
#[derive(Debug, PartialEq, Eq)]
struct Route {
    to: IpAddr,
    /// Leading bits that count.
    bits: u32,
    interface: String,
}

/// Names of the cards.
pub(crate) fn session_nics(host: &Host) -> Vec<String> {
    found(host).unwrap_or_else(|| all_cards(host))
}

/// The text of a file; `None` where it cannot be read. Not by `Host::read`, which remembers: addresses belong into no
/// recording.
pub(crate) fn text(host: &Host, path: &str) -> Option<String> {
    file::read_text(&host.real_path(path).ok()?).ok()
}

/// Names in a folder; none where there is none. Not by `Host::list`, which remembers what a recording is to hold.
#[expect(clippy::disallowed_methods, reason = "reads the host, and keeps nothing of it")]
pub(crate) fn names(host: &Host, folder: &str) -> Vec<String> {
    let entries = host.real_path(folder).and_then(std::fs::read_dir);
    let entries = entries.into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name != ".keep").collect()
}

/// The text of a file that a kernel without this part does not have; `None` where it is there and cannot be read.
fn text_if_there(host: &Host, path: &str) -> Option<String> {
    match file::read_text(&host.real_path(path).ok()?) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(String::new()),
        read => read.ok(),
    }
}

/// The cards, where it can be told which they are.
fn found(host: &Host) -> Option<Vec<String>> {
    let mut routes = routes_v4(&text(host, "/proc/net/route")?);
    routes.extend(routes_v6(&text_if_there(host, "/proc/net/ipv6_route")?));
    if has_other_tables(&text_if_there(host, "/proc/net/fib_trie")?) || storage::is_on_network(host) {
        return None;
    }
    let usual = cards_below(host, reached_through(&routes, &[]))?;
    // The kernel walks its whole table of connections for a list of them, which takes longer than all the rest.
    let others =
        names(host, "/sys/class/net").into_iter().filter(|name| name != "lo" && !usual.contains(name));
    if !usual.is_empty() && others.into_iter().all(|name| !is_up(host, &name)) {
        return Some(usual.into_iter().collect());
    }
    let sockets = text(host, "/proc/net/tcp")? + &text_if_there(host, "/proc/net/tcp6")?;
    let cards = cards_below(host, reached_through(&routes, &shell::peers(host, &sockets)))?;
    (!cards.is_empty()).then(|| cards.into_iter().collect())
}

/// These interfaces and those below them. `None` for a switch in software or a tunnel: which card is below it, no link
/// tells.
fn cards_below(host: &Host, interfaces: BTreeSet<String>) -> Option<BTreeSet<String>> {
    let mut cards = BTreeSet::new();
    for interface in interfaces {
        let mut found = BTreeSet::new();
        below(host, &interface, DEPTH_MAX, &mut found);
        if !found.iter().any(|name| is_card(host, name)) {
            return None;
        }
        cards.extend(found);
    }
    Some(cards)
}

/// Whether routes are in tables besides the usual ones, by /proc/net/fib_trie: rules of policy or a VRF choose among
/// them, and /proc/net/route shows none of those. (/proc/net/ipv6_route shows all tables.)
fn has_other_tables(tries: &str) -> bool {
    let mut other = false;
    for line in tries.lines() {
        if !line.starts_with(' ') {
            other = line.starts_with("Id ");
        } else if other && line.trim_start().starts_with("|--") {
            return true;
        }
    }
    false
}

/// Every card that hangs on a device and is up: one that is down carries nobody.
fn all_cards(host: &Host) -> Vec<String> {
    let mut names = host.list("/sys/class/net");
    names.retain(|name| is_card(host, name) && is_up(host, name));
    names
}

/// One whose flags cannot be read counts. Routes of one that is down are gone.
fn is_up(host: &Host, name: &str) -> bool {
    let flags = text(host, &format!("/sys/class/net/{name}/flags"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).ok());
    // `IFF_UP` is the lowest bit.
    flags.is_none_or(|flags| flags & 1 == 1)
}

fn is_card(host: &Host, name: &str) -> bool {
    host.exists(&format!("/sys/class/net/{name}/device"))
}

/// Interfaces of the default routes, and of the routes to these peers.
fn reached_through(routes: &[Route], peers: &[IpAddr]) -> BTreeSet<String> {
    let default = routes.iter().filter(|route| route.bits == 0);
    let longest = |peer: &IpAddr| {
        let fitting: Vec<&Route> = routes.iter().filter(|route| route.covers(peer)).collect();
        let bits = fitting.iter().map(|route| route.bits).max();
        fitting.into_iter().filter(move |route| Some(route.bits) == bits)
    };
    let to_peers = peers.iter().flat_map(longest);
    default.chain(to_peers).map(|route| route.interface.clone()).filter(|name| name != "lo").collect()
}

impl Route {
    fn covers(&self, address: &IpAddr) -> bool {
        match (self.to, address) {
            (IpAddr::V4(to), IpAddr::V4(address)) => {
                let host_bits = 32_u32.saturating_sub(self.bits);
                u64::from(to.to_bits()) >> host_bits == u64::from(address.to_bits()) >> host_bits
            }
            (IpAddr::V6(to), IpAddr::V6(address)) => {
                let host_bits = 128_u32.saturating_sub(self.bits);
                // A shift by all 128 bits leaves nothing: the default route.
                to.to_bits().checked_shr(host_bits) == address.to_bits().checked_shr(host_bits)
            }
            _ => false,
        }
    }
}

/// Rows of `/proc/net/route`: interface, destination and, eighth, mask, as the bytes of an address in memory.
fn routes_v4(text: &str) -> Vec<Route> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let address = |word: &str| Some(u32::from_str_radix(word, 16).ok()?.swap_bytes());
        let (to, mask) = (address(words.get(1)?)?, address(words.get(7)?)?);
        let interface = (*words.first()?).to_owned();
        Some(Route { to: Ipv4Addr::from_bits(to).into(), bits: mask.count_ones(), interface })
    };
    text.lines().filter_map(row).collect()
}

/// Rows of `/proc/net/ipv6_route`: destination, its prefix length, and last the interface.
fn routes_v6(text: &str) -> Vec<Route> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let to = Ipv6Addr::from_bits(u128::from_str_radix(words.first()?, 16).ok()?);
        let bits = u32::from_str_radix(words.get(1)?, 16).ok().filter(|bits| *bits <= 128)?;
        Some(Route { to: to.into(), bits, interface: (*words.get(9)?).to_owned() })
    };
    text.lines().filter_map(row).collect()
}

/// The interface itself, and those below it: `/sys/class/net/bond0/lower_eth0`, or the ports of a bridge.
fn below(host: &Host, interface: &str, depth: usize, cards: &mut BTreeSet<String>) {
    if depth == 0 || !cards.insert(interface.to_owned()) {
        return;
    }
    for name in host.list(&format!("/sys/class/net/{interface}")) {
        if let Some(lower) = name.strip_prefix("lower_") {
            below(host, lower, depth - 1, cards);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V4: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                      eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                      eth1\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n\
                      eth2\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
    const V6: &str = "20010db8000000000000000000000000 20 00000000000000000000000000000000 00 \
                      00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth3\n\
                      00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                      00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";

    fn through(peers: &[&str]) -> Vec<String> {
        let mut routes = routes_v4(V4);
        routes.extend(routes_v6(V6));
        assert_eq!(routes.len(), 5);
        let peers: Vec<IpAddr> = peers.iter().map(|peer| peer.parse().expect("an address")).collect();
        reached_through(&routes, &peers).into_iter().collect()
    }

    #[test]
    fn the_default_route_and_the_way_back_to_a_session_count() {
        assert_eq!(through(&[]), ["eth0"], "the loopback is no card");
        assert_eq!(through(&["10.2.3.4"]), ["eth0", "eth1"]);
        assert_eq!(through(&["10.1.3.4"]), ["eth0", "eth2"], "the longest prefix counts");
        assert_eq!(through(&["2001:db8::7"]), ["eth0", "eth3"]);
        assert_eq!(through(&["192.0.2.1"]), ["eth0"]);
    }

    /// A machine with cards and files.
    #[expect(clippy::disallowed_methods, reason = "makes a machine to read")]
    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let real = root.path().join(path);
            std::fs::create_dir_all(real.parent().expect("below")).expect("ours");
            std::fs::write(real, text).expect("ours");
        };
        for (nic, flags) in [("eth0", "0x1003"), ("eth1", "0x1003"), ("eth2", "0x1002")] {
            put(&format!("sys/class/net/{nic}/device/vendor"), "0x8086");
            put(&format!("sys/class/net/{nic}/flags"), flags);
        }
        put("proc/net/route", V4);
        put("proc/net/tcp", "  sl  local_address\n");
        files.iter().for_each(|(path, text)| put(path, text));
        let host = Host::open(root.path()).expect("a machine");
        (root, host)
    }

    #[test]
    fn of_a_bond_the_cards_below_count() {
        let route = "bond0\t00000000\t0\t3\t0\t0\t0\t00000000\t0\n";
        let (_root, host) = machine(&[
            ("proc/net/route", route),
            ("sys/class/net/bond0/lower_eth0/x", ""),
            ("sys/class/net/bond0/lower_eth1/x", ""),
            ("sys/class/net/eth0/lower_bond0/x", ""),
        ]);
        assert_eq!(session_nics(&host), ["bond0", "eth0", "eth1"], "a circle of links ends");
    }

    #[test]
    fn where_the_way_cannot_be_told_every_card_that_is_up_counts() {
        let (_root, host) = machine(&[]);
        assert_eq!(session_nics(&host), ["eth0"]);
        let usual = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n\
                     Local:\n  +-- 0.0.0.0/0 2 0 2\n     |-- 127.0.0.0\n";
        let (_root, host) = machine(&[("proc/net/fib_trie", &format!("{usual}Id 200:\n"))]);
        assert_eq!(session_nics(&host), ["eth0"], "a table without a route");
        let policy = format!("Id 200:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n{usual}");
        let tunnel = "wg0\t00000000\t0\t3\t0\t0\t0\t00000000\t0\n";
        for (path, text) in [
            ("proc/net/fib_trie", policy.as_str()),
            ("proc/net/route", tunnel),
            ("proc/net/route", ""),
            ("proc/self/mounts", "/dev/sda1 / ext4 rw 0 0\n10.0.0.1:/r /usr nfs4 rw 0 0\n"),
            ("sys/class/nvme/nvme0/transport", "tcp\n"),
            ("sys/class/iscsi_session/session1/x", ""),
        ] {
            let (_root, host) = machine(&[(path, text)]);
            assert_eq!(session_nics(&host), ["eth0", "eth1"], "{path}: {text}");
        }
        let (root, host) = machine(&[]);
        std::fs::remove_file(root.path().join("proc/net/tcp")).expect("it was there");
        assert_eq!(session_nics(&host), ["eth0", "eth1"], "sessions that cannot be seen");
        let local = "/dev/sda1 / ext4 rw 0 0\n10.0.0.1:/r /mnt/data nfs4 rw 0 0\n";
        let (_root, host) =
            machine(&[("proc/self/mounts", local), ("sys/class/nvme/nvme0/transport", "pcie\n")]);
        assert_eq!(session_nics(&host), ["eth0"], "the system stays without it");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "makes a machine to read")]
    fn connections_are_not_looked_at_where_they_could_add_nothing() {
        let down = ("sys/class/net/eth1/flags", "0x1002");
        let lo = ("sys/class/net/lo/flags", "0x9");
        for (files, seen) in [(vec![down, lo], vec!["eth0"]), (vec![lo], vec!["eth0", "eth1"])] {
            let (root, host) = machine(&files);
            // Whoever reads it now takes every card that is up for one of a session.
            std::fs::remove_file(root.path().join("proc/net/tcp")).expect("it was there");
            assert_eq!(session_nics(&host), seen, "{files:?}");
        }
        let bridge = ("sys/class/net/br0/flags", "0x1003");
        let (root, host) = machine(&[down, lo, bridge]);
        assert_eq!(session_nics(&host), ["eth0"], "nobody came through the bridge");
        std::fs::write(
            root.path().join("proc/net/route"),
            format!("{V4}br0\t000010AC\t0\t1\t0\t0\t0\t0000FFFF\t0\n"),
        )
        .expect("ours");
        std::fs::create_dir_all(root.path().join("sys/class/net/br0/lower_eth0")).expect("ours");
        let row = "0: 010010AC:0016 020010AC:C001 01 0:0 0:0 0 0 0 7\n";
        std::fs::write(root.path().join("proc/net/tcp"), row).expect("ours");
        assert_eq!(session_nics(&host), ["br0", "eth0"], "a session through it is seen");
    }

    proptest! {
        #[test]
        fn odd_tables_are_passed_over(text in "[ \t\n0-9A-F:a-z]{0,300}") {
            let mut routes = routes_v4(&text);
            routes.extend(routes_v6(&text));
            let _ = (reached_through(&routes, &[]), has_other_tables(&text));
        }
    }
}
