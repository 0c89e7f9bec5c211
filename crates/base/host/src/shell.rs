//! Who has a session of the secure shell here.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use planish_sys::file;

use crate::host::Host;
use crate::routes::{names, text};

/// The port of the secure shell, where nothing says otherwise.
const SSH: u16 = 22;
/// `TCP_ESTABLISHED` and `TCP_LISTEN` of include/net/tcp_states.h.
const ESTABLISHED: u8 = 1;
const LISTENING: u8 = 10;
/// Files that say where the shell listens: its own, and those with options for its program.
const FILES: [&str; 5] = [
    "/etc/ssh/sshd_config",
    "/etc/default/ssh",
    "/etc/sysconfig/sshd",
    "/etc/systemd/system/ssh.socket",
    "/etc/systemd/system/sshd.socket",
];
/// Folders with more of them.
const FOLDERS: [&str; 4] = [
    "/etc/ssh/sshd_config.d",
    "/etc/systemd/system/ssh.socket.d",
    "/etc/systemd/system/sshd.socket.d",
    "/run/systemd/generator/ssh.socket.d",
];
/// Settings in them that name a port.
const NAMES: [&str; 3] = ["Port", "ListenAddress", "ListenStream"];
/// Programs that serve a shell over the network, by how their names begin.
const PROGRAMS: [&str; 4] = ["sshd", "dropbear", "tinysshd", "telnetd"];
/// More ancestors than any session has.
const ANCESTORS_MAX: usize = 64;

/// Who is connected to the secure shell of this machine, of the rows of `/proc/net/tcp` and `tcp6`.
pub(crate) fn peers(host: &Host, rows: &str) -> Vec<IpAddr> {
    let rows: Vec<Row> = rows.lines().filter_map(Row::read).collect();
    let (ports, own) = (ports(host), own_sockets(host));
    let is_listening =
        |row: &Row| rows.iter().any(|other| other.state == LISTENING && other.port == row.port);
    let is_session = |row: &&Row| {
        let by_port = match &ports {
            Some(ports) => ports.contains(&row.port),
            // Nobody says where the shell listens: whoever came to this machine may have come through it.
            None => is_listening(row),
        };
        row.state == ESTABLISHED && (by_port || own.contains(&row.socket))
    };
    rows.iter().filter(is_session).filter_map(|row| row.peer).collect()
}

/// A socket: its own port, its state, who is at the other end, and its number.
struct Row {
    port: u16,
    state: u8,
    peer: Option<IpAddr>,
    socket: String,
}

impl Row {
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (_, port) = words.get(1)?.split_once(':')?;
        let (peer, _) = words.get(2)?.split_once(':')?;
        Some(Self {
            port: u16::from_str_radix(port, 16).ok()?,
            state: u8::from_str_radix(words.get(3)?, 16).ok()?,
            peer: address_of_socket(peer),
            socket: (*words.get(9).unwrap_or(&"")).to_owned(),
        })
    }
}

/// Ports of the shell: 22, and those of its configuration and of the sockets of systemd that start it. `None` where
/// there is a configuration that may not be read.
fn ports(host: &Host) -> Option<BTreeSet<u16>> {
    let mut ports = BTreeSet::from([SSH]);
    let mut files: Vec<String> = FILES.iter().map(|path| (*path).to_owned()).collect();
    for folder in FOLDERS {
        files.extend(names(host, folder).into_iter().map(|name| format!("{folder}/{name}")));
    }
    for file in files {
        match host.real_path(&file).and_then(|real| file::read_text(&real)) {
            Ok(text) => ports.extend(text.lines().flat_map(ports_of)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    Some(ports)
}

/// The ports in a line: `Port 2222`, `ListenAddress [::]:2222`, `ListenStream=0.0.0.0:2222`, `SSHD_OPTS="-p 2222"`.
fn ports_of(line: &str) -> Vec<u16> {
    let line = line.trim();
    let number = |text: &str| text.rsplit(':').next()?.trim_matches(['"', '\'', ']']).parse().ok();
    let words: Vec<&str> = line.split([' ', '\t', '=', '"', '\'']).filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        [name, values @ ..] if NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)) => {
            values.iter().filter_map(|value| number(value)).collect()
        }
        // `#` and whatever else it is: a word of it that says `-p` gives a port too many at worst.
        words => words
            .iter()
            .zip(words.iter().skip(1).map(Some).chain([None]))
            .filter_map(|(word, next)| match word.strip_prefix("-p")? {
                "" => number(next?),
                joined => number(joined),
            })
            .collect(),
    }
}

/// Sockets of the shell that this program runs under, whatever its port: of those of its ancestors that are one.
fn own_sockets(host: &Host) -> BTreeSet<String> {
    let mut sockets = BTreeSet::new();
    let mut pid = "self".to_owned();
    for _ in 0..ANCESTORS_MAX {
        let Some(status) = text(host, &format!("/proc/{pid}/status")) else { break };
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.map(str::trim).unwrap_or_default().to_owned()
        };
        if PROGRAMS.iter().any(|program| field("Name").starts_with(program)) {
            sockets.extend(sockets_of(host, &pid));
        }
        pid = field("PPid");
        if ["", "0", "1"].contains(&pid.as_str()) {
            break;
        }
    }
    sockets
}

/// Numbers of the sockets that a process has open: `socket:[12345]`.
#[expect(clippy::disallowed_methods, reason = "reads the host, and keeps nothing of it")]
fn sockets_of(host: &Host, pid: &str) -> Vec<String> {
    let entries = host.real_path(&format!("/proc/{pid}/fd")).and_then(std::fs::read_dir);
    let links =
        entries.into_iter().flatten().flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let number = |link: std::path::PathBuf| {
        Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
    };
    links.filter_map(number).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a machine with these files the peers.
    #[expect(clippy::disallowed_methods, reason = "makes a machine to read")]
    fn seen(rows: &str, files: &[(&str, &str)], links: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(root.path().join("proc")).expect("ours");
        for (path, content) in files {
            let real = root.path().join(path);
            std::fs::create_dir_all(real.parent().expect("below")).expect("ours");
            std::fs::write(real, content).expect("ours");
        }
        for (path, target) in links {
            let real = root.path().join(path);
            std::fs::create_dir_all(real.parent().expect("below")).expect("ours");
            std::os::unix::fs::symlink(target, real).expect("ours");
        }
        let host = Host::open(root.path()).expect("a machine");
        peers(&host, rows).iter().map(ToString::to_string).collect()
    }

    const ROWS: &str = "  sl  local_address rem_address   st tx_queue\n\
        \x20  0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 10 1\n\
        \x20  1: 0502A8C0:0016 0402030A:D431 01 00000000:00000000 00:00000000 00000000 0 0 11 1\n\
        \x20  2: 0502A8C0:1F90 0502030A:D432 01 00000000:00000000 00:00000000 00000000 0 0 12 1\n\
        \x20  3: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 13 1\n\
        \x20  4: 0502A8C0:D433 0602030A:0016 01 00000000:00000000 00:00000000 00000000 0 0 14 1\n";

    #[test]
    fn sessions_are_the_connections_to_the_secure_shell() {
        assert_eq!(seen(ROWS, &[], &[]), ["10.3.2.4"]);
        let mapped = "   0: 0000000000000000FFFF00000502A8C0:0016 0000000000000000FFFF00000402030A:D431 01 x\n\
                      \x20  1: B80D0120000000000000000005000000:0016 B80D0120000000000000000007000000:D431 01 x\n";
        assert_eq!(seen(mapped, &[], &[]), ["10.3.2.4", "2001:db8::7"]);
    }

    #[test]
    fn a_shell_on_another_port_is_found_by_its_configuration() {
        let both = ["10.3.2.4", "10.3.2.5"];
        for (path, line) in [
            ("etc/ssh/sshd_config", "Port 8080"),
            ("etc/ssh/sshd_config.d/10-own.conf", "ListenAddress 192.168.2.5:8080"),
            (
                "etc/systemd/system/ssh.socket.d/own.conf",
                "[Socket]\nListenStream=\nListenStream=0.0.0.0:8080",
            ),
            ("etc/default/ssh", "SSHD_OPTS=\"-4 -p 8080\""),
            ("etc/sysconfig/sshd", "OPTIONS='-p8080'"),
        ] {
            assert_eq!(seen(ROWS, &[(path, line)], &[]), both, "{path}");
        }
        assert_eq!(
            seen(ROWS, &[("etc/ssh/sshd_config", "#Port 8080\nX11Forwarding yes\n")], &[]),
            ["10.3.2.4"]
        );
        // A configuration that cannot be read: whoever came in counts, and whom this machine called does not.
        assert_eq!(seen(ROWS, &[("etc/ssh/sshd_config/x", "")], &[]), both);
    }

    #[test]
    fn the_session_that_one_works_in_is_found_by_its_socket() {
        let status = |pid: &str, text: &str| (format!("proc/{pid}/status"), text.to_owned());
        let files = [
            status("self", "Name:\tplanish\nPPid:\t30\n"),
            status("30", "Name:\tbash\nPPid:\t20\n"),
            status("20", "Name:\tsshd-session\nPPid:\t1\n"),
        ];
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let fds = [("proc/20/fd/3", "socket:[12]"), ("proc/30/fd/0", "socket:[14]")];
        assert_eq!(seen(ROWS, &files, &fds), ["10.3.2.4", "10.3.2.5"]);
    }
}
