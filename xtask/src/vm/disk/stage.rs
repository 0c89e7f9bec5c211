//! One boot of the guest with a disk: QEMU is started, the guest's second serial port read, its end judged.

use super::NAME;
use crate::tally::Tally;
use crate::vm::guest::count;
use crate::{setup, shell};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// From one word of the guest to the next. A boot and a check take a minute or two under emulation each, and ten times
/// as long on a busy machine; beyond this it hangs. A stage has as long as its checks take: that of every knob has
/// more than a hundred.
const SILENCE: Duration = Duration::from_secs(2400);
/// Stages whose name begins so get [`TWO_NODES`] (`tests/vm/src/disk/services.rs` and `drop_in.rs`).
const OF_TWO_NODES: &str = "services";

/// Three CPUs, since isolating one leaves no host on two.
const ONE_NODE: &[&str] = &["-smp", "3"];
/// Four, so that each node has one beside the one that keeps house.
const TWO_NODES: &[&str] = &[
    "-smp",
    "4",
    "-object",
    "memory-backend-ram,id=m0,size=1152M",
    "-object",
    "memory-backend-ram,id=m1,size=1152M",
    "-numa",
    "node,nodeid=0,cpus=0-1,memdev=m0",
    "-numa",
    "node,nodeid=1,cpus=2-3,memdev=m1",
];

/// A machine with a disk.
pub struct Machine<'a> {
    /// The disk that it starts from, and writes.
    pub disk: &'a Path,
    /// Where QEMU logs what the guest writes to it, if at all.
    pub writes: Option<&'a Path>,
    /// The disk with the programs; only read.
    pub tools: Option<&'a Path>,
    /// What the EFI firmware keeps, where the machine has one.
    pub variables: Option<&'a Path>,
    /// Where the first serial port goes: loader, kernel, systemd.
    pub log: &'a Path,
}

/// How a boot ended.
pub enum End {
    /// It did its stage; this one is next.
    Next(String),
    /// It did its stage, and its power was cut; this one is next.
    Cut(String),
    /// It did its stage, and there is none after it.
    Last,
    /// It did not come to the end of its stage.
    Lost(String),
}

/// What the guest has said so far.
#[derive(Default)]
struct Said {
    next: Option<String>,
    /// The power is to be cut now, and then comes this.
    cut: Option<String>,
    failed_count: Option<usize>,
    prepared: bool,
}

impl Machine<'_> {
    /// Boots a stage from the disk by its loader; prints results as they come.
    pub fn run(&self, stage: &str, tally: &mut Tally) -> Result<End> {
        let begin = Instant::now();
        let mut command = self.command(if stage.starts_with(OF_TWO_NODES) { TWO_NODES } else { ONE_NODE })?;
        command.args(["-smbios", &format!("type=1,serial=planish-stage-{stage}")]);
        let before = tally.failed_count;
        let (said, status) = self.follow(&mut command, tally)?;
        eprintln!("{NAME} {stage} took {:.1} s", begin.elapsed().as_secs_f64());
        let failed_count = tally.failed_count - before;
        let next = || said.next.clone().map_or(End::Last, End::Next);
        Ok(match (&said, status) {
            (Said { cut: Some(name), failed_count: Some(told), .. }, _) => {
                if *told == failed_count {
                    End::Cut(name.clone())
                } else {
                    End::Lost(format!("{told} failures were told"))
                }
            }
            (_, None) => End::Lost(format!("no word for {} s", SILENCE.as_secs())),
            (Said { failed_count: Some(told), .. }, Some(status)) if status.success() => {
                if *told == failed_count { next() } else { End::Lost(format!("{told} failures were told")) }
            }
            (_, Some(status)) => End::Lost(format!("QEMU left with {status}, and there is no closing line")),
        })
    }

    /// Boots with a kernel that QEMU loads.
    pub fn prepare(&self, kernel: &[PathBuf; 2], words: &str) -> Result<End> {
        let mut command = self.command(ONE_NODE)?;
        command.arg("-kernel").arg(&kernel[0]).arg("-initrd").arg(&kernel[1]).args(["-append", words]);
        let (said, status) = self.follow(&mut command, &mut Tally::default())?;
        let ended = status.is_some_and(|status| status.success());
        Ok(if ended && said.prepared { End::Last } else { End::Lost("it did not say so".to_owned()) })
    }

    /// Memory above 4 GiB, so that a whole aligned GiB of it is free at boot for a page of that size, and another one
    /// for the host. One thread emulates all CPUs, as in the guests without a disk: with one for each, QEMU now and
    /// then runs code that the kernel is just rewriting.
    fn command(&self, cpus_and_nodes: &[&str]) -> Result<Command> {
        // A guest whose starter was killed must not stay.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
        command.args(["-machine", "pc,max-ram-below-4g=1G", "-accel", "tcg,thread=single", "-cpu", "max"]);
        command.args(["-m", "2304M", "-nodefaults", "-nographic", "-no-reboot", "-nic", "none"]);
        command.args(cpus_and_nodes);
        // The disk is thrown away with the last boot: this machine need not bring it to its own.
        let drive = |path: &Path, more: &str| format!("file={},format=raw,if=virtio,{more}", path.display());
        if let Some(variables) = self.variables {
            for (path, more) in [(Path::new(setup::OVMF_CODE), "unit=0,readonly=on"), (variables, "unit=1")] {
                command.args(["-drive", &format!("if=pflash,format=raw,file={},{more}", path.display())]);
            }
        }
        if let Some(writes) = self.writes {
            File::create(writes).with_context(|| format!("make {}", writes.display()))?;
            let file = |name: &str, path: &Path| {
                format!("driver=file,node-name={name},filename={},cache.no-flush=on", path.display())
            };
            command.args(["-blockdev", &file("live", self.disk), "-blockdev", &file("writes", writes)]);
            command.args(["-blockdev", "driver=blklogwrites,node-name=disk,file=live,log=writes"]);
            command.args(["-device", "virtio-blk-pci,drive=disk,write-cache=on,discard=off"]);
        } else {
            command.args(["-drive", &drive(self.disk, "cache=unsafe")]);
        }
        if let Some(tools) = self.tools {
            command.args(["-drive", &drive(tools, "readonly=on")]);
        }
        command.args(["-serial", &format!("file:{}", self.log.display()), "-serial", "stdio"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Ok(command)
    }

    /// Reads the guest to its end. No status: it hung, or asked for it, and was killed.
    fn follow(&self, command: &mut Command, tally: &mut Tally) -> Result<(Said, Option<ExitStatus>)> {
        let mut child = command.spawn().with_context(|| format!("start {}", shell::line(command)))?;
        let lines = lines_of(&mut child);
        let mut said = Said::default();
        loop {
            match lines.recv_timeout(SILENCE) {
                Ok(line) => said.hear(&line, tally),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return Ok((said, kill(&mut child)?)),
            }
            if said.cut.is_some() {
                return Ok((said, kill(&mut child)?));
            }
        }
        Ok((said, Some(child.wait().context("wait for QEMU")?)))
    }
}

/// Ends QEMU as a power cut does.
fn kill(child: &mut Child) -> Result<Option<ExitStatus>> {
    child.kill().context("kill QEMU")?;
    child.wait().context("wait for QEMU")?;
    Ok(None)
}

/// The lines of the guest as they come; the channel closes when QEMU does.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let port = child.stdout.take().expect("stdout was asked for as a pipe");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(port).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

impl Said {
    fn hear(&mut self, line: &str, tally: &mut Tally) {
        if let Some(result) = line.strip_prefix("PLANISH-RESULT ") {
            count(NAME, result, tally);
        } else if let Some(name) = line.strip_prefix("PLANISH-NEXT ") {
            self.next = Some(name.trim().to_owned());
        } else if let Some(name) = line.strip_prefix("PLANISH-CUT ") {
            self.cut = Some(name.trim().to_owned());
        } else if let Some(count) = line.strip_prefix("PLANISH-DONE ") {
            self.failed_count = count.trim().parse().ok();
        } else if line.starts_with("PLANISH-PREPARED prepared") {
            self.prepared = true;
        } else if !line.is_empty() {
            eprintln!("{NAME}: {line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Said;
    use crate::tally::Tally;

    #[test]
    fn results_are_counted_and_the_next_stage_is_heard() {
        let (mut said, mut tally) = (Said::default(), Tally::default());
        for line in
            ["PLANISH-RESULT a ok fine", "PLANISH-RESULT b fail no", "PLANISH-NEXT gone", "PLANISH-DONE 1"]
        {
            said.hear(line, &mut tally);
        }
        assert_eq!((said.next.as_deref(), said.failed_count), (Some("gone"), Some(1)));
        assert_eq!((tally.passed_count, tally.failed_count), (1, 1));
        assert_eq!(said.cut, None);
        said.hear("PLANISH-CUT after-0", &mut tally);
        assert_eq!(said.cut.as_deref(), Some("after-0"));
    }
}
