//! The server that is measured: a child, on loopback, with ports that the kernel chose.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use planish_host::Host;
use rustix::process::{Pid, Signal, kill_process};

/// How long it may take to end; it is killed then.
const END_TIME: Duration = Duration::from_secs(30);

/// A server; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    /// Kept, so that nothing that it tells meets a closed pipe.
    _told: BufReader<ChildStderr>,
    pub(super) http: SocketAddr,
    pub(super) lines: SocketAddr,
}

impl Server {
    /// Starts it; else what it told.
    pub(super) fn start(data: &Path, options: &[String]) -> Result<Self, String> {
        let failed = |error| format!("cannot start a server: {error}");
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg("serve").arg("--data").arg(data);
        command.args(["--listen", "127.0.0.1:0", "--line-protocol", "127.0.0.1:0"]).args(options);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(failed)?;
        let stderr = child.stderr.take().expect("it was asked for");
        let mut told = BufReader::new(stderr);
        let mut text = String::new();
        while !text.contains(" listening on ") {
            if !matches!(told.read_line(&mut text), Ok(1..)) {
                let _ = child.wait();
                return Err(format!("the server did not start: {}", text.trim_end()));
            }
        }
        let address = |scheme: &str| -> Option<SocketAddr> {
            let rest = text.split(scheme).nth(1)?;
            rest.split([',', '\n']).next()?.trim().parse().ok()
        };
        let addresses = address("http://").zip(address("tcp://"));
        let Some((http, lines)) = addresses else {
            let _ = (child.kill(), child.wait());
            return Err(format!(
                "it is not measured with these options; the server told: {}",
                text.trim_end()
            ));
        };
        Ok(Self { child, _told: told, http, lines })
    }

    /// CPU time that it took so far, in user and kernel mode, of all its threads.
    pub(super) fn cpu_s(&self) -> Result<f64, String> {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = Host::live().read(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
        let ticks = ticks_of(&text).ok_or_else(|| format!("{path} is not what it was"))?;
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }
}

/// Fields 14 and 15 of proc(5), behind a name that may have blanks and parentheses.
fn ticks_of(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended has not to be told.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < END_TIME {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = (self.child.kill(), self.child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_stands_behind_the_name_whatever_that_is() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 9 9 20 0 4 0 100";
        assert_eq!(ticks_of(stat), Some(300));
        assert_eq!(ticks_of("7 (a S 1"), None);
    }
}
