//! The `planish` binary.

#![forbid(unsafe_code)]

/// The allocator of musl gives pages back to the kernel and asks for them again hundreds of times within one command: a
/// third of the CPU time of a plan.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> std::process::ExitCode {
    planish_cli::main()
}
