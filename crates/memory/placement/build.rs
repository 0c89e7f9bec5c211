//! Compiles the preload with the same compiler and for the same target, so that a plain `cargo build` gives the whole
//! program. It is a shared object without a libc, so the target's own libc does not matter, nor whether it is static.
#![expect(
    clippy::disallowed_methods,
    reason = "a build script reads and writes the checkout and its own folder"
)]

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Instruction sets that the preload is written for, and what each wants of the compiler. Atomics out of line bring an
/// initialiser that asks the libc for the instructions of this CPU, and a third more.
const ARCHITECTURES: [(&str, &str); 2] =
    [("x86_64", "-crt-static"), ("aarch64", "-crt-static,-outline-atomics")];

/// What every program that is started may pay for in its address space.
const BYTES_MAX: usize = 10 << 10;

/// What is in the warnings that we cannot do without: the compiler tells that it may name that feature otherwise one
/// day, which would fail the build.
const KNOWN_WARNING: &str = "outline-atomics";

/// Nothing but our own objects; no padding between segments; base pages of 64 KB at most. What is bound is data, so
/// that nothing is to be bound at once.
const LINKER: [&str; 12] = [
    "-nostdlib",
    "-nostartfiles",
    "-Wl,--gc-sections",
    "-Wl,--build-id=none",
    "-Wl,--hash-style=gnu",
    "-Wl,-z,norelro",
    "-Wl,-z,noseparate-code",
    "-Wl,-z,max-page-size=65536",
    "-Wl,-z,common-page-size=65536",
    "-Wl,-z,lazy",
    "-Wl,--no-eh-frame-hdr",
    "-Wl,-Tpreload/discard.ld",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=preload");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("planish-preload.so");
    let target = env::var("CARGO_CFG_TARGET_ARCH")?;
    let Some((_, features)) = ARCHITECTURES.iter().find(|(name, _)| *name == target) else {
        // `planish run` says so when a preload is wanted.
        fs::write(&out, [])?;
        return Ok(());
    };
    let mut rustc = Command::new(env::var("RUSTC")?);
    rustc.args(["--edition=2024", "--crate-name=planish_preload", "--crate-type=cdylib"]);
    rustc.args(["--target", &env::var("TARGET")?, "-o"]).arg(&out).arg("preload/lib.rs");
    rustc.args(["-Cpanic=abort", "-Copt-level=z", "-Ccodegen-units=1", "-Clto=fat", "-Cstrip=symbols"]);
    rustc.arg(format!("-Ctarget-feature={features}")).arg("-Cforce-unwind-tables=no");
    rustc.args(["-Coverflow-checks=off", "-Cdebug-assertions=off", "-Cjump-tables=no"]);
    rustc.args(LINKER.map(|flag| format!("-Clink-arg={flag}")));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    // The flags of the workspace may make our binary static; the preload never is.
    rustc.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let made = rustc.output()?;
    if !made.status.success() {
        return Err(format!("{rustc:?}: {}", String::from_utf8_lossy(&made.stderr)).into());
    }
    for warning in String::from_utf8_lossy(&made.stderr).split("\n\n") {
        if !warning.contains(KNOWN_WARNING) && !warning.trim_end().ends_with("emitted") {
            warning.lines().for_each(|line| println!("cargo::warning={line}"));
        }
    }
    let mut object = fs::read(&out)?;
    without_sections(&mut object).ok_or("the linker wrote no 64-bit little-endian object")?;
    if object.len() > BYTES_MAX {
        return Err(format!("the preload has {} bytes, more than {BYTES_MAX}", object.len()).into());
    }
    fs::write(&out, &object)?;
    Ok(())
}

/// Cuts off what no loader reads: all behind the last segment, and the word of it in the header.
fn without_sections(object: &mut Vec<u8>) -> Option<()> {
    const ELF_64_LITTLE: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
    const LOAD: u32 = 1;
    let long = |object: &[u8], at: usize| Some(u64::from_le_bytes(object.get(at..at + 8)?.try_into().ok()?));
    let short = |object: &[u8], at: usize| Some(u16::from_le_bytes(object.get(at..at + 2)?.try_into().ok()?));
    object.starts_with(&ELF_64_LITTLE).then_some(())?;
    let (first, bytes, count) = (long(object, 32)?, short(object, 54)?, short(object, 56)?);
    let mut end = first + u64::from(bytes) * u64::from(count);
    for number in 0..count {
        let at = usize::try_from(first).ok()? + usize::from(bytes) * usize::from(number);
        let kind = u32::from_le_bytes(object.get(at..at + 4)?.try_into().ok()?);
        if kind == LOAD {
            end = end.max(long(object, at + 8)? + long(object, at + 32)?);
        }
    }
    object.truncate(usize::try_from(end).ok()?);
    object.get_mut(40..48)?.fill(0); // e_shoff
    object.get_mut(60..64)?.fill(0); // e_shnum, e_shstrndx
    Some(())
}
