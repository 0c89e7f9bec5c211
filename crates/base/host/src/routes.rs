//! Through which cards this machine is reached: what must not be taken down under somebody's feet.
//!
//! They are those of the default routes, and those of the routes back to whoever has a session of the secure shell
//! here. Of a bond, a bridge or a VLAN the cards below it count. Addresses are read and not kept: what is told, and
//! recorded, is names of cards.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use planish_sys::file;

use crate::host::Host;

/// The port of the secure shell, where nothing says otherwise.
const SSH: u16 = 22;
/// `ESTABLISHED` in `/proc/net/tcp`.
const ESTABLISHED: &str = "01";
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
    // Not by `Host::read`, which remembers: addresses belong into no recording.
    let text = |path: &str| {
        let real = host.real_path(path).ok();
        real.and_then(|real| file::read_text(&real).ok()).unwrap_or_default()
    };
    // Where nothing can be told, every card may be the one.
    if host.real_path("/proc/net/route").is_ok_and(|real| file::read_text(&real).is_err()) {
        return all_cards(host);
    }
    let mut routes = routes_v4(&text("/proc/net/route"));
    routes.extend(routes_v6(&text("/proc/net/ipv6_route")));
    let mut peers = peers(&text("/proc/net/tcp"));
    peers.extend(self::peers(&text("/proc/net/tcp6")));
    let reached = reached_through(&routes, &peers);
    let mut cards = BTreeSet::new();
    for interface in reached {
        let mut found = BTreeSet::new();
        below(host, &interface, DEPTH_MAX, &mut found);
        if !found.iter().any(|name| is_card(host, name)) {
            // A switch in software, a tunnel: which card is below it, no link tells.
            cards.extend(all_cards(host));
        }
        cards.extend(found);
    }
    cards.into_iter().collect()
}

/// Every card that hangs on a device.
fn all_cards(host: &Host) -> Vec<String> {
    let mut names = host.list("/sys/class/net");
    names.retain(|name| is_card(host, name));
    names
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

/// Who is connected to the secure shell of this machine: rows of `/proc/net/tcp` and `tcp6`.
fn peers(text: &str) -> Vec<IpAddr> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (_, port) = words.get(1)?.split_once(':')?;
        let is_session = u16::from_str_radix(port, 16).ok()? == SSH
            && words.get(3).is_some_and(|state| *state == ESTABLISHED);
        let (peer, _) = words.get(2)?.split_once(':').filter(|_| is_session)?;
        address_of_socket(peer)
    };
    text.lines().filter_map(row).collect()
}

/// An address as words of 32 bits, each as it lies in memory: `0100007F` is 127.0.0.1.
fn address_of_socket(hex: &str) -> Option<IpAddr> {
    let words: Vec<u32> = (0..hex.len() / 8)
        .map(|word| Some(u32::from_str_radix(hex.get(word * 8..word * 8 + 8)?, 16).ok()?.swap_bytes()))
        .collect::<Option<_>>()?;
    match words.as_slice() {
        [v4] => Some(Ipv4Addr::from_bits(*v4).into()),
        [_, _, _, _] => {
            let bits = words.iter().fold(0_u128, |bits, word| bits << 32 | u128::from(*word));
            let v6 = Ipv6Addr::from_bits(bits);
            Some(v6.to_ipv4_mapped().map_or(v6.into(), IpAddr::from))
        }
        _ => None,
    }
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

    #[test]
    fn sessions_are_the_connections_to_the_secure_shell() {
        let text = "  sl  local_address rem_address   st tx_queue\n\
                    \x20  0: 00000000:0016 00000000:0000 0A 00000000:00000000\n\
                    \x20  1: 0502A8C0:0016 0402030A:D431 01 00000000:00000000\n\
                    \x20  2: 0502A8C0:1F90 0402030A:D432 01 00000000:00000000\n";
        assert_eq!(peers(text), ["10.3.2.4".parse::<IpAddr>().expect("an address")]);
        let mapped = "   0: 0000000000000000FFFF00000502A8C0:0016 0000000000000000FFFF00000402030A:D431 01 x\n\
                      \x20  1: B80D0120000000000000000005000000:0016 B80D0120000000000000000007000000:D431 01 x\n";
        let wanted = ["10.3.2.4", "2001:db8::7"].map(|text| text.parse::<IpAddr>().expect("an address"));
        assert_eq!(peers(mapped), wanted);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "makes a machine to read")]
    fn of_a_bond_the_cards_below_count() {
        let root = tempfile::tempdir().expect("a folder");
        let net = root.path().join("sys/class/net");
        for folder in ["bond0/lower_eth0", "bond0/lower_eth1", "eth0/lower_bond0", "eth1"] {
            std::fs::create_dir_all(net.join(folder)).expect("ours");
        }
        let (route, name) = (root.path().join("proc/net"), "bond0\t00000000\t0\t3\t0\t0\t0\t00000000\t0\n");
        std::fs::create_dir_all(&route).expect("ours");
        std::fs::write(route.join("route"), name).expect("ours");
        let host = Host::open(root.path()).expect("a machine");
        assert_eq!(session_nics(&host), ["bond0", "eth0", "eth1"], "a circle of links ends");
    }

    proptest! {
        #[test]
        fn odd_tables_are_passed_over(text in "[ \t\n0-9A-F:a-z]{0,300}") {
            let mut routes = routes_v4(&text);
            routes.extend(routes_v6(&text));
            let _ = reached_through(&routes, &peers(&text));
        }
    }
}
