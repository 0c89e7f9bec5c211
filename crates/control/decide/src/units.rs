//! What a unit has of a setting before a file of ours gives it something else, in words.

use planish_model::UnitSetting;

/// What the files of the unit say, and what it runs with.
pub(crate) fn told(unit: &UnitSetting) -> String {
    let given = match &unit.given {
        Some((value, source)) => format!("{source} gives {value}"),
        None => "its files give nothing".to_owned(),
    };
    let running = unit.running.as_ref();
    running.map_or(given.clone(), |(value, pid)| format!("{given}; process {pid} runs with {value}"))
}
