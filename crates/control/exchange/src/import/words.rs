//! Words that tuned and saptune share.

/// Why a line with `>2048` is no setting: what is more already stays.
pub const AT_LEAST: &str = "at least or at most so much: a profile wants one value";
/// Why the lines of a section that asks what host it is on are none.
pub const OF_SOME: &str = "a section for some hosts only: make a profile of your own with `needs`";

/// The number of a bias of the CPU, where both have a word for it.
pub fn energy_perf_bias(word: &str) -> &str {
    match word {
        "performance" => "0",
        "normal" => "6",
        "powersave" | "power" => "15",
        other => other,
    }
}
