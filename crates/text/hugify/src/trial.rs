//! What the kernel makes of a program, asked without running it.

use std::path::Path;

use planish_host::Host;
use planish_sys::loaded::Loaded;

use crate::coverage::{Coverage, coverage};
use crate::error::HugifyError;
use crate::image::{Image, Kind};

/// Has the kernel load a program, touches every whole huge page of its text, and looks at what maps them. Not one
/// instruction of it runs. `None` for a library, which no kernel loads.
///
/// # Errors
/// The kernel does not load it, or not as its image says; nobody may trace here.
pub fn try_program(path: &Path, image: &Image, huge_bytes: u64) -> Result<Option<Coverage>, HugifyError> {
    if image.kind == Kind::Library {
        return Ok(None);
    }
    let host = Host::live();
    let loaded = Loaded::new(path)?;
    let pid = loaded.pid();
    let name = host.read_link(&format!("/proc/{pid}/exe")).unwrap_or_default();
    let odd = || HugifyError::Unmovable { why: "it is not mapped as its headers say" };
    let look = || coverage(&host, pid, &name, image, huge_bytes)?.ok_or_else(odd);
    let before = look()?;
    // Kernels before Linux 5.18 took the offset of the program headers for their address: a loader that starts by
    // what lies there would crash.
    if let Some(address) = image.programs_address()
        && loaded.program_headers()? != before.base.wrapping_add(address)
    {
        return Err(HugifyError::Unmovable { why: "this kernel looks for its program headers elsewhere" });
    }
    for range in image.text().filter_map(|segment| segment.whole(huge_bytes)) {
        let mut at = before.base.wrapping_add(range.start);
        let end = before.base.wrapping_add(range.end);
        while at < end {
            loaded.touch(at)?;
            at += huge_bytes;
        }
    }
    look().map(Some)
}
