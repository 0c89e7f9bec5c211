//! How far a segment is that its process fills.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use planish_host::Host;
use planish_residency::parse_status;

use crate::running::areas;
use crate::wire::Notice;

/// What tells whether pages come to the segment of a notice: a number of bytes that grows while they do. `None` where
/// nobody tells, and of a process that is stopped, in which nothing goes on.
#[must_use]
pub fn filled_bytes(host: &Host, notice: &Notice) -> Option<u64> {
    let pid = notice.pid;
    let text = host.read_lossy(&format!("/proc/{pid}/status")).ok()?;
    let state = text.lines().find_map(|line| line.strip_prefix("State:"))?.trim();
    if state.starts_with(['T', 't']) {
        return None;
    }
    // Of a segment that was full before, pages are moved, and it is mapped anew: then the process tells.
    let status = parse_status(&text);
    let of_all = status.shared_bytes + status.hugetlb_bytes;
    Some(file_bytes(host, notice).filter(|bytes| *bytes < notice.bytes).unwrap_or(of_all))
}

/// Bytes of the file in memory that a mapping is of, which every shared mapping has. Who may not look into it gets
/// `None` (`CAP_CHECKPOINT_RESTORE`, proc(5)).
fn file_bytes(host: &Host, notice: &Notice) -> Option<u64> {
    let range = areas(host, notice.pid)?
        .into_iter()
        .map(|area| area.range)
        .find(|range| range.contains(&notice.address))?;
    let link = format!("/proc/{}/map_files/{:x}-{:x}", notice.pid, range.start, range.end);
    let found = Path::new(&link).metadata().ok()?;
    found.blocks().checked_mul(512)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use super::*;

    /// Two segments, told by their addresses; each line of input has four MiB of one of them written.
    const WRITES: &str = "import ctypes, mmap, sys
both = [mmap.mmap(-1, 8 << 20) for _ in range(2)]
print(*[ctypes.addressof(ctypes.c_char.from_buffer(one)) for one in both], flush=True)
for line in sys.stdin:
    one = both[int(line)]
    for at in range(0, 4 << 20, 4096): one[at] = 1
    print('done', flush=True)
";

    #[test]
    fn pages_of_the_segment_count_and_those_of_others_do_not() {
        let mut python = Command::new("python3");
        python.args(["-c", WRITES]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut python) = python.spawn() else {
            return planish_skip::skip("pages_of_the_segment_count_and_those_of_others_do_not", "no python3");
        };
        let mut told = BufReader::new(python.stdout.take().unwrap()).lines();
        let addresses = told.next().unwrap().unwrap();
        let address = addresses.split(' ').next().unwrap().parse().unwrap();
        let notice = Notice { pid: python.id(), address, bytes: 8 << 20, ..Notice::default() };
        let host = Host::live();
        if file_bytes(&host, &notice).is_none() {
            let why = "we may not look into the files of mappings";
            planish_skip::skip("pages_of_the_segment_count_and_those_of_others_do_not", why);
        } else {
            for (which, bytes) in [("1", 0), ("0", 4 << 20), ("1", 4 << 20)] {
                let input = python.stdin.as_mut().unwrap();
                writeln!(input, "{which}").unwrap();
                assert_eq!(told.next().unwrap().unwrap(), "done");
                assert_eq!(filled_bytes(&host, &notice), Some(bytes), "{which}");
            }
        }
        python.kill().unwrap();
        python.wait().unwrap();
    }
}
