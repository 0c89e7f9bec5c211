//! `/init` of a test guest: mounts what a Linux userland expects, runs each check once, prints one
//! line per check on the serial console, and ends the machine with the verdict.
//!
//! The host side is `xtask/src/vm`. What the two agree on:
//!
//! ```text
//! kernel command line   planish.nodes=2 planish.cpus=4 ...     what QEMU was told to build
//! serial console        PLANISH-START                          the first line: from here on it is our doing
//!                       PLANISH-RESULT <name> ok|fail|skip <detail>
//!                       PLANISH-DONE <failed>                  the last line
//! second serial port    a tar of the recorded guest            raw bytes
//! port 0xf4             0x10 nothing failed, 0x11 otherwise    QEMU leaves with (v << 1) | 1
//! ```
//!
//! The guest with a disk has systemd as process 1, and runs this as a unit: see [`disk`].
//!
//! A guest is thrown away after one boot, so here, and only here, settings are really written that
//! would be a risk on a machine that someone uses.

#![expect(
    clippy::disallowed_methods,
    reason = "a test asks the kernel itself, not what planish thinks of it"
)]

mod cards;
mod check;
mod checks;
mod control;
mod disk;
mod held;
mod machine;
mod mapped;
mod mounted;
mod moved;
mod partition;
mod placed;
mod planish;
mod port;
mod record;
mod refused;
mod scanned;
mod servers;
mod settings;
mod swapped;
mod text;
mod threads;
mod tree;
mod zeroes;

use check::Report;

/// Written to the exit port when every check passed; 0x10 keeps QEMU's own exit codes (0, 1) apart.
const EXIT_PASSED: u32 = 0x10;
/// Written to the exit port when a check failed.
const EXIT_FAILED: u32 = 0x11;

fn main() {
    if std::env::args().nth(1).as_deref() == Some(zeroes::WORD) {
        return zeroes::stand();
    }
    if std::env::args().nth(1).as_deref() == Some(mapped::WORD) {
        return mapped::stand();
    }
    if std::env::args().nth(1).as_deref() == Some(swapped::WORD) {
        return swapped::stand();
    }
    if std::env::args().nth(1).as_deref() == Some(tree::WORD) {
        return tree::stand();
    }
    if std::process::id() != 1 {
        let Some(stage) = disk::stage() else {
            eprintln!("init: this is process 1 of a test guest; start it with ./x vm");
            std::process::exit(2);
        };
        return disk::run(&stage);
    }
    // The firmware leaves the console inside a line of escape codes.
    println!();
    let mut report = Report::start();
    match machine::prepare() {
        Ok(shape) => checks::run_all(&shape, &mut report),
        Err(error) => report.fail("prepare", &format!("{error:#}")),
    }
    let failed = report.finish();
    port::exit(if failed == 0 { EXIT_PASSED } else { EXIT_FAILED });
    // Without the exit device, process 1 must still not return: that would panic the kernel.
    machine::power_off();
}
