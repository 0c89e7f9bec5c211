//! Ctrl-C and kill: they ask a command to stop, and never cut a write of the host in two.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// The signals by which a person, a terminal or a service manager ends a program.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// A flag that is set when the command should stop.
///
/// Once is enough and more changes nothing: the command then puts the host back, which must not be cut short.
pub(crate) fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in ENDING {
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Keeps those signals from ending the program: a write of the host that was begun comes to its end.
pub(crate) fn hold() {
    // A flag that nobody reads. Where even that cannot be had, the journal still makes an interrupted entry undoable.
    let _ = stop_flag();
}
