//! The unit of ours that has a boot start the process which holds a limit. It counts where the target of every boot
//! pulls it in.

use planish_host::Host;
use planish_model::place;

use super::Setting;

const SERVICE: &str = "/etc/systemd/system/planish-hold.service";
const PULLED_IN: &str = "/etc/systemd/system/multi-user.target.d/90-planish-hold.conf";

/// What the unit will hold.
pub(crate) fn settings(host: &Host) -> Vec<Setting> {
    let Ok(text) = host.read(SERVICE) else { return Vec::new() };
    if !host.read(PULLED_IN).is_ok_and(|text| text.lines().any(|line| line == "Wants=planish-hold.service")) {
        return Vec::new();
    }
    let lines = text.lines().enumerate().filter(|(_, line)| line.starts_with("ExecStart="));
    let set = lines.filter_map(|(index, line)| Some((index, place::of_line(line)?)));
    set.map(|(index, (place, limit))| Setting::new(place, &limit, &format!("{SERVICE}:{}", index + 1)))
        .collect()
}
