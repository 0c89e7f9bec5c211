//! The limit that a process of ours holds: no file has it, so that setting it starts and ends such processes.

use std::io;
use std::path::Path;

use planish_host::devices;
use planish_sys::hold;
use rustix::io::Errno;

/// The limit that is held for us; `None` for another place.
pub(super) fn read(place: &str) -> Option<io::Result<String>> {
    (place == devices::DMA_LATENCY).then(|| hold::held_us(Path::new("/proc")).map(|limit| limit.to_string()))
}

/// Has a limit held; `None` for another place.
pub(super) fn write(place: &str, value: &str) -> Option<io::Result<()>> {
    if place != devices::DMA_LATENCY {
        return None;
    }
    let limit = value.trim().parse::<u32>().ok().filter(|limit| *limit <= hold::NO_LIMIT_US);
    let Some(limit) = limit else { return Some(Err(Errno::INVAL.into())) };
    Some(std::env::current_exe().and_then(|program| hold::set(&program, limit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limits_are_held_and_only_at_their_place() {
        for value in ["", "many", "-1", "2000000001"] {
            let error = write(devices::DMA_LATENCY, value).expect("the place").expect_err("no limit");
            assert_eq!(Errno::from_io_error(&error), Some(Errno::INVAL), "{value}");
        }
        assert!(write("/planish/held/cpu_dma_latency", "20").is_none());
        assert!(read("/proc/sys/vm/swappiness").is_none());
    }
}
