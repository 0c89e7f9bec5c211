//! What ran before the recording began: names of threads, and code that was mapped, from /proc.
//!
//! Told after the side band is on: what is mapped between the two is told twice, and never missed.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use planish_host::Host;
use planish_profile::build_id;
use planish_profile::perf_data::{MappedCode, Stream};
use planish_residency::{Area, parse_maps};

use super::target::Who;

/// Tells the stream of every process of the target. One that ends meanwhile is left out.
pub(crate) fn tell(who: &Who, host: &Host, stream: &mut Stream) {
    let mut build_ids = HashMap::new();
    for pid in who.processes(host) {
        let threads = host.list(&format!("/proc/{pid}/task"));
        for tid in threads.iter().filter_map(|name| name.parse().ok()) {
            let name = host.read_lossy(&format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
            stream.thread(pid, tid, name.trim_end());
        }
        let maps = host.read_lossy(&format!("/proc/{pid}/maps")).unwrap_or_default();
        let areas = parse_maps(&maps).unwrap_or_default();
        for area in areas.iter().filter(|area| area.permissions[2] == b'x' && !area.name.is_empty()) {
            let key = (area.device, area.inode);
            let id = build_ids.entry(key).or_insert_with(|| read_build_id(pid, area));
            stream.code(&MappedCode {
                pid,
                start: area.range.start,
                bytes: area.bytes(),
                offset: area.offset,
                device: area.device,
                inode: area.inode,
                path: &area.name,
                build_id: id.as_deref(),
            });
        }
    }
}

/// The build id of the file that is really mapped: through the mapping itself, which needs a right, else by its path
/// as the process sees it, if that is still the same file.
fn read_build_id(pid: u32, area: &Area) -> Option<Vec<u8>> {
    if area.inode == 0 {
        return None;
    }
    let mapped = format!("/proc/{pid}/map_files/{:x}-{:x}", area.range.start, area.range.end);
    if let Ok(file) = File::open(mapped) {
        return build_id(file);
    }
    // The name may be that of something else by now, such as a FIFO.
    let file = planish_sys::file::open(Path::new(&format!("/proc/{pid}/root{}", area.name))).ok()?;
    let is_same = file.metadata().is_ok_and(|found| found.is_file() && found.ino() == area.inode);
    if is_same { build_id(file) } else { None }
}
