//! Programs that set what has a place by words of their own: `cpupower`, `cpufreq-set`, `ethtool` and `blockdev`.
//!
//! What they do is told as commands of a shell that would do the same, so that each place has its own value, in the
//! units of the kernel: of `blockdev --setra 8192 /dev/sda`, `echo 4096 > /sys/block/sda/queue/read_ahead_kb`. The
//! places of cards are those of the catalogue, which is not known here: a test of `observe` holds them against it.

use std::ops::Range;

use super::Program;

/// A place and what it is set to.
type Write = (String, String);

/// The folder of the places of cards.
const CARDS: &str = "/planish/ethtool";

/// Words of `ethtool -K` for each feature that a place is for. The short word of TSO is for both protocols.
const FEATURES: [(&str, [&str; 3]); 6] = [
    ("gro", ["gro", "rx-gro", "generic-receive-offload"]),
    ("gso", ["gso", "tx-generic-segmentation", "generic-segmentation-offload"]),
    ("tso", ["tso", "tx-tcp-segmentation", "tcp-segmentation-offload"]),
    ("tso6", ["tso", "tx-tcp6-segmentation", "tcp-segmentation-offload"]),
    ("lro", ["lro", "rx-lro", "large-receive-offload"]),
    ("ntuple", ["ntuple", "rx-ntuple-filter", "ntuple-filters"]),
];

/// What one of these programs does by its words; `None` for another one, and for what sets nothing that is known here.
pub(super) fn program(name: &str, words: &[String]) -> Option<Program> {
    let writes = match name {
        "blockdev" => of_blockdev(words)?,
        "cpufreq-set" => of_frequency(words),
        "cpupower" => of_cpupower(words)?,
        "ethtool" => of_ethtool(words)?,
        _ => return None,
    };
    let line = |(place, value): &Write| format!("echo {} > {place}\n", plain(value));
    (!writes.is_empty())
        .then(|| Program::Shell { text: writes.iter().map(line).collect(), is_doubtful: false })
}

/// A word that a shell leaves as it is; of another one nobody can tell what it is.
fn plain(word: &str) -> &str {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:+-*?[]".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word } else { "*" }
}

/// `cpupower`, whose own options stand before what it is to do (`cpupower(1)`).
fn of_cpupower(words: &[String]) -> Option<Vec<Write>> {
    let at = words.iter().position(|word| ["frequency-set", "idle-set", "set"].contains(&word.as_str()))?;
    let rest = &words[at + 1..];
    Some(match words[at].as_str() {
        "frequency-set" => of_frequency(rest),
        "idle-set" => of_idle(rest),
        _ => of_set(rest),
    })
}

/// `cpupower frequency-set`, which has the options of `cpufreq-set`. Which CPUs are meant is left open.
fn of_frequency(words: &[String]) -> Vec<Write> {
    let given = options(words, &[('g', "governor"), ('d', "min"), ('u', "max"), ('f', "freq")]);
    let write = |(letter, value): (char, &str)| match letter {
        'g' => of_cpu("cpufreq/scaling_governor", value),
        'd' => of_cpu("cpufreq/scaling_min_freq", &khz(value)),
        'u' => of_cpu("cpufreq/scaling_max_freq", &khz(value)),
        // One frequency is kept by this governor, which is set for it (`cpufreq_set_frequency` of cpupower).
        _ => of_cpu("cpufreq/scaling_governor", "userspace"),
    };
    given.into_iter().map(write).collect()
}

/// `cpupower idle-set`: states by their numbers, or by how long it takes to leave them.
fn of_idle(words: &[String]) -> Vec<Write> {
    let of_state = |state: &str, value| of_cpu(&format!("cpuidle/state{}/disable", plain(state)), value);
    let given = options(words, &[('d', "disable"), ('e', "enable"), ('D', "disable-by-latency")]);
    let mut writes: Vec<Write> = given
        .into_iter()
        .map(|(letter, value)| match letter {
            'd' => of_state(value, "1"),
            'e' => of_state(value, "0"),
            // Some are disabled, and the others enabled.
            _ => of_state("*", "*"),
        })
        .collect();
    if words.iter().any(|word| ["-E", "--enable-all"].contains(&word.as_str())) {
        writes.push(of_state("*", "0"));
    }
    writes
}

/// `cpupower set`.
fn of_set(words: &[String]) -> Vec<Write> {
    let given = options(words, &[('b', "perf-bias"), ('e', "epp"), ('t', "turbo-boost")]);
    let write = |(letter, value): (char, &str)| match letter {
        'b' => vec![of_cpu("power/energy_perf_bias", value)],
        'e' => vec![of_cpu("cpufreq/energy_performance_preference", value)],
        // Which of the two there is depends on the driver.
        _ => {
            let reverse = match value {
                "0" => "1",
                "1" => "0",
                _ => "*",
            };
            let place = |name: &str| format!("/sys/devices/system/cpu/{name}");
            vec![
                (place("cpufreq/boost"), value.to_owned()),
                (place("intel_pstate/no_turbo"), reverse.to_owned()),
            ]
        }
    };
    given.into_iter().flat_map(write).collect()
}

fn of_cpu(file: &str, value: &str) -> Write {
    (format!("/sys/devices/system/cpu/cpu*/{file}"), value.to_owned())
}

/// A frequency in kHz, as the kernel has it: `2.4GHz`, `800MHz`, `800000`.
fn khz(word: &str) -> String {
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let zeros = match word[number.len()..].to_ascii_lowercase().as_str() {
        "" | "khz" => 0,
        "mhz" => 3,
        "ghz" => 6,
        "thz" => 9,
        _ => return "*".to_owned(),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{part:0<zeros$}");
    let value = digits.parse::<u64>().ok().filter(|_| part.len() <= zeros);
    value.map_or_else(|| "*".to_owned(), |value| value.to_string())
}

/// Options and their values, each by its letter: `-g X`, `-gX`, `--governor X`, `--governor=X`, and `-rg X`, where the
/// first letter is one that takes none.
fn options<'w>(words: &'w [String], names: &[(char, &str)]) -> Vec<(char, &'w str)> {
    let mut given = Vec::new();
    let mut rest = words.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        let long = |name: &str| {
            let behind = word.strip_prefix("--")?.strip_prefix(name)?;
            if behind.is_empty() { Some(behind) } else { behind.strip_prefix('=') }
        };
        let short = |letter: char| word.strip_prefix('-')?.trim_start_matches('r').strip_prefix(letter);
        let is_meant =
            |(letter, name): &(char, &str)| Some((*letter, long(name).or_else(|| short(*letter))?));
        let Some((letter, joined)) = names.iter().find_map(is_meant) else { continue };
        let value = if joined.is_empty() { rest.next() } else { Some(joined) };
        given.extend(value.map(|value| (letter, value)));
    }
    given
}

/// `ethtool OPTION CARD` with words and their values (`ethtool(8)`).
fn of_ethtool(words: &[String]) -> Option<Vec<Write>> {
    let [option, card, rest @ ..] = words else { return None };
    let kind = match option.as_str() {
        "-L" | "--set-channels" => "channels",
        "-G" | "--set-ring" => "rings",
        "-C" | "--coalesce" => "coalesce",
        "-K" | "--features" | "--offload" => "feature",
        "-A" | "--pause" => "pause",
        _ => return None,
    };
    let mut writes: Vec<Write> = Vec::new();
    // What the next value is for: what a variable holds may be one, or several words with theirs.
    let mut waiting: Option<Range<usize>> = None;
    for word in rest {
        let is_value =
            ["on", "off"].contains(&word.as_str()) || word.starts_with(|c: char| c.is_ascii_digit());
        if is_value || word == "*" && waiting.is_some() {
            let value = match word.as_str() {
                "on" => "1",
                "off" => "0",
                other => other,
            };
            for (_, told) in &mut writes[waiting.take().unwrap_or_default()] {
                value.clone_into(told);
            }
            continue;
        }
        let begin = writes.len();
        let place = |name: &str| (format!("{CARDS}/{}/{kind}_{}", plain(card), plain(name)), "*".to_owned());
        if kind == "feature" && word != "*" {
            let meant = FEATURES.iter().filter(|(_, words)| words.contains(&word.as_str()));
            writes.extend(meant.map(|(name, _)| place(name)));
        } else {
            writes.push(place(&word.replace('-', "_")));
        }
        waiting = Some(begin..writes.len());
    }
    Some(writes)
}

/// The disk that a partition is of, by the names of the kernel (`disk_name`): it reads ahead as its disk does.
fn whole(name: String) -> String {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_by_letters = ["sd", "hd", "vd", "xvd"].iter().any(|kind| stem.starts_with(kind));
    let by_number = stem.strip_suffix('p').filter(|disk| disk.ends_with(|c: char| c.is_ascii_digit()));
    match by_number {
        _ if stem.len() == name.len() => name,
        _ if is_by_letters => stem.to_owned(),
        Some(disk) => disk.to_owned(),
        None => name,
    }
}

/// `blockdev --setra SECTORS DEVICE`, in sectors of 512 bytes whatever the disk has (`BLKRASET`); that of the file
/// system is the same one by now.
fn of_blockdev(words: &[String]) -> Option<Vec<Write>> {
    let at = words.iter().position(|word| ["--setra", "--setfra"].contains(&word.as_str()))?;
    let kib = words
        .get(at + 1)?
        .parse::<u64>()
        .map_or_else(|_| "*".to_owned(), |sectors| (sectors / 2).to_string());
    let devices = words[at + 2..].iter().filter(|word| !word.starts_with('-'));
    // A name such as `/dev/disk/by-id/X` or `/dev/mapper/X` is that of any.
    let disk = |device: &String| plain(device.strip_prefix("/dev/").unwrap_or_default()).to_owned();
    let mut disks: Vec<String> = devices.map(disk).map(whole).collect();
    // `xargs` tells them.
    if disks.is_empty() {
        disks.push("*".to_owned());
    }
    Some(disks.iter().map(|disk| (format!("/sys/block/{disk}/queue/read_ahead_kb"), kib.clone())).collect())
}
