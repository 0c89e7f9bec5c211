//! Tells systemd when the server is there: who starts after it starts then, and not before.
//!
//! Source: sd_notify(3).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Where systemd listens, in the environment of a service that is said to notify.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Says a state, as `READY=1`, to whoever asked for it; nobody did where the variable is not there.
///
/// # Errors
/// The system's.
pub(crate) fn notify(state: &str) -> io::Result<()> {
    let Some(path) = std::env::var_os(SOCKET) else { return Ok(()) };
    let bytes = path.as_encoded_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(&path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}
