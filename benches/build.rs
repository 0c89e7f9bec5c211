//! The text of this program is loaded on a boundary of a huge page: a row measures how it is put on some.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,-z,max-page-size=2097152");
}
