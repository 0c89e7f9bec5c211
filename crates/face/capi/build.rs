//! Gives the shared library its name for the loader. Before version 1 each minor version may change the interface, so
//! that programs are bound to the one that they were linked with.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let number = |part: &str| env::var(format!("CARGO_PKG_VERSION_{part}")).expect("cargo sets it");
    let (major, minor) = (number("MAJOR"), number("MINOR"));
    let version = if major == "0" { format!("0.{minor}") } else { major };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libplanish.so.{version}");
}
