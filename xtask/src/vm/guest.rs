//! One boot: QEMU is started, its serial console read, and its end judged.
//!
//! Success needs two independent words: the closing line on the console and the exit status through
//! the exit device. A guest that panics, hangs, or is killed gives at most one of them.

use super::kernel::Kernel;
use super::shape::Shape;
use crate::shell;
use crate::tally::Tally;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// All checks of a guest take five to eight minutes where nothing else runs, and three times as long on a busy machine;
/// beyond this it hangs.
const TIMEOUT_SECONDS: u32 = 2400;
/// Boots of a guest whose kernel dies before planish runs.
const BOOTS: u32 = 3;
/// `(0x10 << 1) | 1`: what QEMU leaves with when the guest wrote 0x10 to the exit device.
const EXIT_PASSED: i32 = 0x21;
/// The same for 0x11: the guest came to its end and a check failed.
const EXIT_FAILED: i32 = 0x23;

/// A boot to be done.
pub struct Boot<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The machine.
    pub shape: &'a Shape,
    /// The first root, packed.
    pub initramfs: &'a Path,
    /// Where the console log goes.
    pub folder: &'a Path,
    /// Whether the guest sends its kernel trees; they arrive in [`Boot::record_file`].
    pub record: bool,
    /// The only checks that the guest makes, by their name; all that it can where there is none.
    pub only: Option<&'static str>,
}

impl Boot<'_> {
    /// Name of this boot in results, logs and recorded guests.
    pub fn name(&self) -> String {
        format!("guest-{}-{}", self.kernel.version, self.shape.name)
    }

    /// The tar that the guest sent.
    pub fn record_file(&self) -> PathBuf {
        self.folder.join(format!("{}.tar", self.name()))
    }

    /// Boots, prints the results as they come, and counts them.
    ///
    /// One thread emulates all CPUs. With one for each, QEMU now and then ran an instruction that the kernel was just
    /// rewriting, at boot or where a setting switches code on and off: `Oops: int3`, which no program of the guest can
    /// cause. Such a guest is booted again, and so is one whose kernel dies before the first word of planish: nothing
    /// of ours ran in it. What kills every boot fails all the same.
    pub fn run(&self) -> Result<Tally> {
        let log_path = self.folder.join(format!("{}.log", self.name()));
        let mut end = self.boot(&log_path)?;
        for boot in 1..BOOTS {
            let Some(why) = end.died_by_itself() else { break };
            let kept = log_path.with_extension(format!("died-{boot}.log"));
            fs::rename(&log_path, &kept).with_context(|| format!("rename {}", log_path.display()))?;
            println!("{} died {why}, boot {boot} of {BOOTS}; see {}", self.name(), kept.display());
            end = self.boot(&log_path)?;
        }
        Ok(end.judged(&self.name(), &log_path))
    }

    /// One boot, to its end.
    fn boot(&self, log_path: &Path) -> Result<End> {
        let start = Instant::now();
        let mut command = self.command();
        let mut log = File::create(log_path).with_context(|| format!("make {}", log_path.display()))?;
        writeln!(log, "$ {}", shell::line(&command))?;
        let mut child = command.spawn().context("start qemu-system-x86_64 under timeout")?;
        let console = child.stdout.take().expect("stdout was asked for as a pipe");

        let mut end = End::default();
        for line in BufReader::new(console).split(b'\n') {
            let line = line.context("read the serial console")?;
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches('\r');
            writeln!(log, "{line}").with_context(|| format!("write {}", log_path.display()))?;
            end.hear(&self.name(), line);
        }
        end.exit = child.wait().context("wait for QEMU")?.code();
        eprintln!("{} took {:.1} s", self.name(), start.elapsed().as_secs_f64());
        Ok(end)
    }

    fn command(&self) -> Command {
        let words = format!(
            "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check {} planish.record={} \
             planish.only={}",
            self.shape.kernel_words(),
            u8::from(self.record),
            self.only.unwrap_or("all"),
        );
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", &TIMEOUT_SECONDS.to_string(), "qemu-system-x86_64"]);
        // Emulated on purpose: /dev/kvm may exist and still hang the guest (nested, no MSRs).
        command.args([
            "-accel",
            "tcg,thread=single",
            "-cpu",
            "max",
            "-nographic",
            "-nodefaults",
            "-no-reboot",
        ]);
        command.args(self.shape.qemu_args());
        // Two cards on a hub of their own: nothing of this machine's network reaches the guest.
        for (id, model) in [("n0", "virtio-net-pci"), ("n1", "vmxnet3")] {
            command.args(["-netdev", &format!("hubport,id={id},hubid=0")]);
            command.args(["-device", &format!("{model},netdev={id},romfile=")]);
        }
        command.arg("-kernel").arg(&self.kernel.image).arg("-initrd").arg(self.initramfs);
        command.args(["-append", &words, "-serial", "stdio", "-serial"]);
        command.arg(if self.record {
            format!("file:{}", self.record_file().display())
        } else {
            "null".into()
        });
        command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }
}

/// How a boot ended.
#[derive(Default)]
struct End {
    /// What it printed.
    tally: Tally,
    /// Failures by its closing line.
    failed_said: Option<usize>,
    /// Whether planish said anything at all.
    heard: bool,
    /// Whether the kernel met a breakpoint that it was just putting into its own code.
    met_breakpoint: bool,
    /// What QEMU left with.
    exit: Option<i32>,
}

impl End {
    /// Takes in one line of the console.
    fn hear(&mut self, name: &str, line: &str) {
        self.heard |= line.starts_with("PLANISH-");
        self.met_breakpoint |= line.contains("Oops: int3");
        if let Some(result) = line.strip_prefix("PLANISH-RESULT ") {
            count(name, result, &mut self.tally);
        } else if let Some(count) = line.strip_prefix("PLANISH-DONE ") {
            self.failed_said = count.trim().parse::<usize>().ok();
        }
    }

    /// Why the kernel reset the machine, where that was no doing of ours: QEMU leaves with 0 then. A check that failed
    /// before has failed, whatever came after it: another boot may not wash it away.
    fn died_by_itself(&self) -> Option<&'static str> {
        match self {
            Self { tally, .. } if tally.failed_count > 0 => None,
            Self { exit: Some(0), met_breakpoint: true, .. } => {
                Some("of QEMU running code that was being rewritten")
            }
            Self { exit: Some(0), heard: false, .. } => Some("before planish ran"),
            _ => None,
        }
    }

    /// The results, and one failure more unless both words agree with them.
    fn judged(self, name: &str, log: &Path) -> Tally {
        let Self { mut tally, failed_said, exit, .. } = self;
        let agreed = match exit {
            Some(EXIT_PASSED) => failed_said == Some(0) && tally.failed_count == 0,
            Some(EXIT_FAILED) => failed_said == Some(tally.failed_count) && tally.failed_count > 0,
            _ => false,
        };
        if !agreed {
            let told =
                format!("boot fail exit {exit:?}, closing line {failed_said:?}; see {}", log.display());
            count(name, &told, &mut tally);
        }
        tally
    }
}

/// Prints one result of a guest and counts it.
pub fn count(guest: &str, result: &str, tally: &mut Tally) {
    println!("{guest} {result}");
    match result.split_whitespace().nth(1) {
        Some("ok") => tally.passed_count += 1,
        Some("skip") => tally.skips.push(format!("SKIP {guest}.{result}")),
        _ => tally.fail(format!("{guest}.{result}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_kernel_that_died_by_itself_is_booted_again() {
        let end = |console: &[&str], exit| {
            let mut end = End { exit: Some(exit), ..End::default() };
            console.iter().for_each(|line| end.hear("guest", line));
            end
        };
        assert!(end(&["Oops: 0000"], 0).died_by_itself().is_some());
        let slipped = "[  254.1] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI";
        assert!(end(&["PLANISH-START", "PLANISH-RESULT a ok fine", slipped], 0).died_by_itself().is_some());
        assert!(
            end(&["PLANISH-START", "PLANISH-RESULT a fail 1 of 2", slipped], 0).died_by_itself().is_none()
        );
        // Our first step may have killed the kernel. A hang that `timeout` ended and an exit that was asked for are
        // judged, too.
        assert!(end(&["PLANISH-START", "Oops: 0000"], 0).died_by_itself().is_none());
        assert!(end(&[], 124).died_by_itself().is_none());
        assert!(end(&[slipped], EXIT_FAILED).died_by_itself().is_none());
    }

    #[test]
    fn an_end_passes_by_two_words_that_agree() {
        let failures = |failed_count, failed_said, exit| {
            let tally = Tally { failed_count, ..Tally::default() };
            End { tally, failed_said, heard: true, exit, ..End::default() }
                .judged("guest", Path::new("log"))
                .failed_count
        };
        assert_eq!(failures(0, Some(0), Some(EXIT_PASSED)), 0);
        assert_eq!(failures(2, Some(2), Some(EXIT_FAILED)), 2, "and no more");
        for (failed_said, exit) in
            [(None, Some(EXIT_PASSED)), (Some(0), Some(0)), (Some(0), None), (Some(0), Some(EXIT_FAILED))]
        {
            assert_eq!(failures(0, failed_said, exit), 1, "{failed_said:?} {exit:?}");
        }
        assert_eq!(failures(1, Some(0), Some(EXIT_PASSED)), 2);
    }
}
