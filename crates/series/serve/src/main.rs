//! The `planish-series` binary.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    planish_serve::main()
}
