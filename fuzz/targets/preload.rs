//! The settings that the preload reads in the middle of anybody's program, and the datagrams by which it answers:
//! anybody may set the one and send the other, and neither may end a program.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_placement::Listener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

#[path = "../../crates/memory/placement/preload/settings.rs"]
mod settings;
#[expect(dead_code, reason = "what settings.rs wants of it is a name")]
#[path = "../../crates/memory/placement/preload/wire.rs"]
mod wire;

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    let listener = Listener::open(&std::env::temp_dir()).expect("a socket");
    let address = SocketAddr::from_abstract_name(listener.name()).expect("a name");
    let sender = UnixDatagram::unbound().expect("a socket");
    let sent = sender.send_to_addr(bytes, &address).is_ok();
    let notice = listener.next().map(|told| told.notice);
    assert!(notice.is_none() || sent && bytes.len() == 64 && bytes.starts_with(b"\x01hsinalp"), "{notice:?}");
});

/// Reads settings out of an environment, between variables of others.
fn read(bytes: &[u8]) {
    let mut text = b"PLANISH_SHM=".to_vec();
    text.extend(bytes.iter().take_while(|byte| **byte != 0));
    text.push(0);
    let variables = [c"PATH=/bin".as_ptr().cast(), text.as_ptr(), std::ptr::null()];
    // SAFETY: texts that end with a zero byte, and a null pointer behind them; all of them outlive the call.
    let found = unsafe { settings::find(variables.as_ptr()) };
    let mut settings = settings::Settings::NONE;
    settings.read(found.expect("it is there"));

    assert!(settings.name_bytes <= settings.answer.name.len(), "{} bytes of a name", settings.name_bytes);
    assert!(settings.weights_count <= settings.weights.len());
    assert!(settings.pool_shift < 64);
    assert!(!settings.takes(0) && settings.group.ends_with(&[0]), "{} bytes least", settings.bytes_min);
    let known = || settings.weights.iter().take(settings.weights_count);
    for chunk in [0, 1, 63, usize::MAX] {
        let node = settings.node_of(chunk);
        let is_known = |(own, weight): &(u16, u8)| usize::from(*own) == node && *weight > 0;
        assert!(known().any(is_known) || known().all(|(_, weight)| *weight == 0), "{node}");
    }
}
