//! Whether the address of a service is free before the service is started.
//!
//! A service is ready as soon as somebody answers at its address, whoever that is. If that were another program, left
//! by an earlier run or the user's own, the load would be put on it for all arms alike, and its figures would stand
//! under the names of the arms: a server that finds its port taken may try again for seconds before it ends.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::file::ServiceSpec;
use crate::kernel;
use crate::sample::ArmError;

/// How long an address may take to accept a connection.
const LIMIT: Duration = Duration::from_secs(1);

/// The state of a listening socket in `/proc/net/tcp` (TCP_LISTEN in the kernel's net/tcp_states.h).
const LISTENING: &str = "0A";

/// The address that accepts a connection, of those that this one stands for.
pub(crate) fn answering(address: &str) -> Option<SocketAddr> {
    let mut addresses = address.to_socket_addrs().ok()?;
    addresses.find(|at| TcpStream::connect_timeout(at, LIMIT).is_ok())
}

/// Refuses to start the service while somebody else answers where it is to be.
pub(crate) fn check_free(spec: &ServiceSpec) -> Result<(), ArmError> {
    let taken = |place: &str, sockets: &[String]| ArmError::Refused {
        what: format!("{place} answers before the service is started: it is taken by {}", holders(sockets)),
        cure: format!("stop that, or have the service and its load use another place than {place}"),
    };
    if let Some((address, at)) = spec.ready_tcp.as_ref().and_then(|it| Some((it, answering(it)?))) {
        return Err(taken(address, &listening(at.port())));
    }
    // A socket file that a killed server left behind answers nobody.
    match &spec.ready_path {
        Some(path) if UnixStream::connect(path).is_ok() => {
            Err(taken(&path.display().to_string(), &bound(path)))
        }
        _ => Ok(()),
    }
}

/// The inodes of the sockets that listen on a port (Documentation/networking/proc_net_tcp.rst).
fn listening(port: u16) -> Vec<String> {
    let hex = format!("{port:04X}");
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = fields.get(1)?.ends_with(&format!(":{hex}")) && *fields.get(3)? == LISTENING;
        is_it.then(|| fields.get(9).map(|inode| (*inode).to_owned())).flatten()
    };
    let texts = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| kernel::read(path).unwrap_or_default());
    texts.iter().flat_map(|text| text.lines().filter_map(inode)).collect()
}

/// The inodes of the sockets of a path, as `/proc/net/unix` tells them.
fn bound(path: &Path) -> Vec<String> {
    let text = kernel::read("/proc/net/unix").unwrap_or_default();
    let inode = |line: &str| {
        let mut fields = line.split_whitespace().skip(6);
        let inode = fields.next()?.to_owned();
        (fields.next().map(Path::new) == Some(path)).then_some(inode)
    };
    text.lines().filter_map(inode).collect()
}

/// The processes that have these sockets open, by name and number.
fn holders(sockets: &[String]) -> String {
    let wanted: Vec<String> = sockets.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let holds =
        |pid: &u32| kernel::links(&format!("/proc/{pid}/fd")).iter().any(|link| wanted.contains(link));
    let named = |pid: u32| {
        let name = kernel::read(&format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("{} (pid {pid})", name.trim())
    };
    let names: Vec<String> = kernel::processes().into_iter().filter(holds).map(named).collect();
    if names.is_empty() {
        return "a process that this user cannot see: as root, `ss -ltnp` names it".to_owned();
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn service(ready: &str) -> ServiceSpec {
        toml::from_str(&format!("command = [\"true\"]\n{ready}\n")).expect("a good table")
    }

    fn refusal(spec: &ServiceSpec) -> String {
        let error = check_free(spec).expect_err("somebody listens");
        assert!(matches!(&error, ArmError::Refused { cure, .. } if !cure.is_empty()), "{error:?}");
        error.to_string()
    }

    #[test]
    fn a_port_that_answers_is_refused_with_its_holder_and_a_free_one_is_not() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                planish_skip::skip("a_port_that_answers_is_refused: IPv6", "this machine has no ::1");
                continue;
            };
            let address = listener.local_addr().expect("it is bound").to_string();
            let spec = service(&format!("ready_tcp = \"{address}\""));
            let said = refusal(&spec);
            assert!(said.starts_with(&format!("{address} answers before")), "{said}");
            assert!(said.contains(&format!("(pid {})", std::process::id())), "{said}");
            drop(listener);
            assert_eq!(check_free(&spec), Ok(()));
        }
    }

    #[test]
    fn a_socket_that_answers_is_refused_and_a_file_that_was_left_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let spec = service(&format!("ready_path = \"{}\"", path.display()));
        assert_eq!(check_free(&spec), Ok(()), "there is nothing");
        let listener = UnixListener::bind(&path).expect("a path that is free");
        let said = refusal(&spec);
        assert!(said.contains(&format!("(pid {})", std::process::id())), "{said}");
        drop(listener);
        assert!(path.exists());
        assert_eq!(check_free(&spec), Ok(()), "nobody listens");
    }

    #[test]
    fn a_service_without_an_address_has_nothing_to_be_taken() {
        assert_eq!(check_free(&service("")), Ok(()));
    }
}
