//! The unit of ours that has a boot start the process which holds a limit. It counts where the target of every boot
//! pulls it in.

use planish_host::Host;
use planish_model::place;
use planish_sys::hold::{PULLED_IN, UNIT_FILE, WANTED};

use super::Setting;

/// What the unit will hold.
pub(crate) fn settings(host: &Host) -> Vec<Setting> {
    let Ok(text) = host.read_lossy(UNIT_FILE) else { return Vec::new() };
    if !host.read_lossy(PULLED_IN).is_ok_and(|text| text.lines().any(|line| line == WANTED)) {
        return Vec::new();
    }
    let lines = text.lines().enumerate().filter(|(_, line)| line.starts_with("ExecStart="));
    let set = lines.filter_map(|(index, line)| Some((index, place::of_line(line)?)));
    set.map(|(index, (place, limit))| Setting::new(&place, &limit, &format!("{UNIT_FILE}:{}", index + 1)))
        .collect()
}
