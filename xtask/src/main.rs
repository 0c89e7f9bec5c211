//! The tasks behind `./x`: one module a task, and this file only says which.
//!
//! xtask may not link any crate of the product: it must build in seconds, and it must still run when
//! the product does not compile.

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "tasks work on the checkout, not on the host that planish tunes"
)]

mod bench;
mod builds;
mod ci;
mod dist;
mod docs;
mod edges;
mod fuzz;
mod ground;
mod licences;
mod lock;
mod order;
mod ordered;
mod prove;
mod setup;
mod shell;
mod soak;
mod suite;
mod tally;
mod target;
mod tidy;
mod tree;
mod vm;

use clap::Parser;
use std::process::ExitCode;

/// The one door to this checkout
#[derive(Parser)]
#[command(name = "x", bin_name = "./x", disable_help_subcommand = true)]
enum Task {
    /// Build planish and prove on this machine what pays (planish prove)
    Prove(prove::Options),
    /// Run every test, one boot of each test guest included
    Test(suite::SuiteOptions),
    /// Check everything that a change must pass
    Ci(ci::Options),
    /// Measure what planish must keep, beside the limits
    Bench(bench::Options),
    /// Write the generated references: command line, knobs, man pages, completions, schemas
    Docs(docs::Options),
    /// Fuzz the parsers
    Fuzz(fuzz::Options),
    /// Apply, kill, undo and prove for minutes, and look for what is left behind
    Soak(soak::Options),
    /// Pack a release: tar, Debian package, checksums
    Dist(dist::Options),
    /// Make the order anew in which the functions of our own programs are linked
    Order(order::Options),
    /// Boot test guests: real kernels, NUMA nodes, real writes
    Vm(vm::Options),
}

fn main() -> ExitCode {
    match run(&Task::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("x: {error:#}");
            // The codes of the product (`planish_model::Exit`): 3 refused, 1 found something wrong.
            ExitCode::from(if error.is::<setup::Refused>() { 3 } else { 1 })
        }
    }
}

/// Runs a task, and holds the build folder for as long.
fn run(task: &Task) -> anyhow::Result<ExitCode> {
    let held = lock::Held::take()?;
    match task {
        Task::Prove(options) => prove::run(options, held.as_ref()),
        Task::Test(options) => suite::test(options),
        Task::Ci(options) => ci::run(options),
        Task::Bench(options) => bench::run(options),
        Task::Docs(options) => docs::run(options),
        Task::Fuzz(options) => fuzz::run(options),
        Task::Soak(options) => soak::run(options),
        Task::Dist(options) => dist::run(options),
        Task::Order(options) => order::run(options),
        Task::Vm(options) => vm_alone(options),
    }
}

fn vm_alone(options: &vm::Options) -> anyhow::Result<ExitCode> {
    const QEMU: setup::Need = setup::QEMU.required();
    setup::ensure(&[&QEMU], setup::Without::Refused)?;
    let mut tally = vm::run(options)?;
    tally.print();
    Ok(suite::code(&tally))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn command_line_is_consistent() {
        super::Task::command().debug_assert();
    }
}
