//! The `planish` binary.

#![forbid(unsafe_code)]

/// The static program's: musl's own takes a third of the CPU time of a plan.
#[cfg(target_env = "musl")]
#[global_allocator]
static HEAP: planish_sys::Heap = planish_sys::Heap::new();

fn main() -> std::process::ExitCode {
    planish_cli::main()
}
