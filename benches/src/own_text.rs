//! What it takes a process to put its own text on huge pages: this program has enough of it, and asks.

#![expect(unsafe_code, reason = "code that is never run, as text of this program")]

use crate::row::Figure;
use anyhow::{Context, Result, bail, ensure};
use planish_hugify::hugify_self;
use rustix::time::{ClockId, clock_gettime};
use std::arch::global_asm;
use std::process::{Command, Stdio};

// 16 MiB of code that nobody runs: 100,000 functions of 168 bytes, with names as long as those of Rust and C++ are. The
// linker keeps it, though nobody names it (SHF_GNU_RETAIN).
global_asm!(
    ".macro planish_bench_function",
    "_ZN13planish_bench8own_text27of_a_hundred_thousand_\\@17h0123456789abcdefE:",
    ".type _ZN13planish_bench8own_text27of_a_hundred_thousand_\\@17h0123456789abcdefE,%function",
    ".fill 168, 1, 0x90",
    ".size _ZN13planish_bench8own_text27of_a_hundred_thousand_\\@17h0123456789abcdefE,168",
    ".endm",
    ".pushsection .text.planish_bench_large,\"axR\",%progbits",
    ".p2align 12",
    ".rept 100000",
    "planish_bench_function",
    ".endr",
    ".popsection"
);

/// Runs of which the median counts, and before them one that has the file read. Of 9 the interval ends with the slowest
/// one, of 41 with the fourteenth from there: a run now and then has to wait until the kernel has made huge pages free.
const RUNS: usize = 41;

/// The part of the process that is measured: says the time, the bytes and the route. The time is that of the CPU, the
/// kernel's for it included: it waits for nobody, and others may be at work.
pub fn serve() -> Result<()> {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let start = now();
    let own = hugify_self()?;
    let took = now() - start;
    println!("{took} {} {} {}", own.huge_bytes - own.before_bytes, own.route.word(), own.why_not.join("; "));
    Ok(())
}

/// Milliseconds for each MiB of text by a route, with all looks before and after it.
pub fn milliseconds_a_mib(route: &str) -> Result<Figure> {
    let own = std::env::current_exe().context("find this program")?;
    let mut figures = Vec::with_capacity(RUNS);
    for run in 0..=RUNS {
        let mut command = Command::new(&own);
        command.args(["server", "--role", "text"]).env("PLANISH_HUGIFY", route);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("start it")?;
        let names = format!("/tmp/perf-{}.map", child.id());
        let output = child.wait_with_output().context("wait for it")?;
        // What it has written for perf is a part of what is measured, and of no use afterwards.
        let _ = std::fs::remove_file(names);
        ensure!(output.status.success(), "it left with {}", output.status);
        let told = String::from_utf8_lossy(&output.stdout);
        let mut words = told.trim().splitn(4, ' ');
        let mut word = || words.next().context("four words");
        let (took, bytes, by): (f64, f64, _) = (word()?.parse()?, word()?.parse()?, word()?);
        if by != route {
            bail!("nothing of that route was had: {}", told.trim());
        }
        if run > 0 {
            figures.push(took / (bytes / f64::from(1 << 20)));
        }
    }
    Ok(crate::process::median(&mut figures))
}
