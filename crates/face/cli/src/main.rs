//! The `planish` binary.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    planish_cli::main()
}
