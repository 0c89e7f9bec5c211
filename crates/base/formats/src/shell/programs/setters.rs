//! Programs that set what has a place by words of their own: `cpupower`, `cpufreq-set`, `x86_energy_perf_policy`,
//! `hugeadm`, `ethtool` and `blockdev`.
//!
//! What they do is told as commands of a shell that would do the same, so that each place has its own value, in the
//! units of the kernel: of `blockdev --setra 8192 /dev/sda`, `echo 4096 > /sys/dev/block/sda/queue/read_ahead_kb`. The
//! places of cards are those of the catalogue, which is not known here: a test of `observe` holds them against it. Nor
//! are the disks of the host: `observe` tells whose a name in `/dev` may be (`writers/disks.rs`).

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
        "hugeadm" => of_hugeadm(words),
        "x86_energy_perf_policy" => of_policy(words),
        _ => return None,
    };
    let line = |(place, value): &Write| format!("echo {} > {place}\n", plain(value));
    (!writes.is_empty())
        .then(|| Program::Shell { text: writes.iter().map(line).collect(), is_doubtful: false })
}

/// A word that a shell leaves as it is; of another one nobody can tell what it is.
fn plain(word: &str) -> &str {
    if !word.is_empty() && word.chars().all(is_plain) { word } else { "*" }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._:+-*?[]".contains(c)
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
        _ => of_turbo(value),
    };
    given.into_iter().flat_map(write).collect()
}

/// Which of the two there is depends on the driver.
fn of_turbo(value: &str) -> Vec<Write> {
    let reverse = match value {
        "0" => "1",
        "1" => "0",
        _ => "*",
    };
    let place = |name: &str| format!("/sys/devices/system/cpu/{name}");
    vec![(place("cpufreq/boost"), value.to_owned()), (place("intel_pstate/no_turbo"), reverse.to_owned())]
}

/// `x86_energy_perf_policy`: the bias by a word or a number, behind an option or alone. What it writes to the hint of
/// the driver goes by the processor.
fn of_policy(words: &[String]) -> Vec<Write> {
    let mut given = options(words, &[('a', "all"), ('E', "epb"), ('P', "hwp-epp"), ('t', "turbo-enable")]);
    if let Some((last, before)) = words.split_last()
        && !last.starts_with('-')
        && before.last().is_none_or(|word| !word.starts_with('-'))
    {
        given.push(('a', last));
    }
    let bias = |value: &str| {
        let number = match value {
            "performance" => "0",
            "balance-performance" => "4",
            "default" | "normal" => "6",
            "balance-power" => "8",
            "power" | "powersave" => "15",
            number if number.parse::<u8>().is_ok() => number,
            _ => "*",
        };
        of_cpu("power/energy_perf_bias", number)
    };
    let hint = || of_cpu("cpufreq/energy_performance_preference", "*");
    let write = |(letter, value): (char, &str)| match letter {
        'a' => vec![bias(value), hint()],
        'E' => vec![bias(value)],
        'P' => vec![hint()],
        _ => of_turbo(value),
    };
    given.into_iter().flat_map(write).collect()
}

/// `hugeadm` (libhugetlbfs): pools by the size of their pages, `2MB:512`, and transparent huge pages.
fn of_hugeadm(words: &[String]) -> Vec<Write> {
    let pool = |(letter, value): (char, &str)| {
        let (size, count) = value.split_once(':').unwrap_or(("", value));
        // What is added, or told as memory, comes to another number.
        let is_number = letter == 'N' && count.bytes().all(|byte| byte.is_ascii_digit());
        let file = if letter == 'N' { "nr_hugepages" } else { "nr_overcommit_hugepages" };
        let place = match kib_of_page(size) {
            Some(kib) => format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/{file}"),
            // `DEFAULT`.
            None => format!("/proc/sys/vm/{file}"),
        };
        (place, if is_number { count } else { "*" }.to_owned())
    };
    let pools = options(words, &[('N', "pool-pages-min"), ('X', "pool-pages-max")]);
    let huge = words.iter().filter_map(|word| word.strip_prefix("--thp-"));
    let huge = huge.filter(|word| ["always", "madvise", "never"].contains(word));
    let huge = huge.map(|word| ("/sys/kernel/mm/transparent_hugepage/enabled".to_owned(), word.to_owned()));
    pools.into_iter().map(pool).chain(huge).collect()
}

/// The size of a page in KiB: `2MB`, `1G`, or in bytes.
fn kib_of_page(size: &str) -> Option<u64> {
    let unit = size.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = size[..size.len() - unit.len()].parse().ok()?;
    match unit.trim_end_matches(['b', 'B']) {
        "" => Some(number / 1024),
        "k" | "K" => Some(number),
        "m" | "M" => number.checked_mul(1024),
        "g" | "G" => number.checked_mul(1024 * 1024),
        _ => None,
    }
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

/// The disk that a partition is of, by the names of the kernel (`disk_name`): it reads ahead as its disk does. A
/// pattern of partitions (`nvme*n1p*`, `sd?[1-9]`) is one of their disks.
fn whole(name: String) -> String {
    let is_number =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || "*?[]-".contains(c));
    let by_number = name.rsplit_once('p').filter(|(disk, number)| {
        disk.ends_with(|c: char| c.is_ascii_digit() || "]*?".contains(c)) && is_number(number)
    });
    if let Some((disk, _)) = by_number {
        return disk.to_owned();
    }
    // `/dev/${disk}1` is a part of any.
    let is_by_letters = ["sd", "hd", "vd", "xvd"].iter().any(|kind| name.starts_with(kind))
        || without_number(&name) == Some("*");
    let mut stem = name.as_str();
    while let Some(before) = without_number(stem).filter(|_| is_by_letters) {
        stem = before;
    }
    stem.to_owned()
}

/// A name without the number that it ends in, or the brackets that stand for a digit of it.
fn without_number(name: &str) -> Option<&str> {
    let is_digit = |c: char| c.is_ascii_digit();
    let name = name.strip_suffix('*').unwrap_or(name);
    let (before, inner) = match name.strip_suffix(']') {
        Some(rest) => rest.rsplit_once('[')?,
        None => name.split_at(name.trim_end_matches(is_digit).len()),
    };
    let is_number = |c: char| is_digit(c) || c == '-';
    (!inner.is_empty() && inner.chars().all(is_number)).then_some(before)
}

/// What a text calls a disk in `/dev`, with a `!` for each `/`, as the kernel has such names (`cciss!c0d0`). A sign
/// that a shell takes for its own is told as any; of a word that is not below `/dev`, or has braces left, nobody can
/// tell which disk it is.
fn in_dev(device: &str) -> String {
    let below = device.strip_prefix("/dev/").filter(|name| !name.contains(['{', '}']));
    let parts: Vec<&str> =
        below.unwrap_or_default().split('/').filter(|part| !["", "."].contains(part)).collect();
    let name = match parts.as_slice() {
        [] => return "*".to_owned(),
        parts if parts.contains(&"..") => return "*".to_owned(),
        // By its numbers.
        ["block", numbers] => (*numbers).to_owned(),
        parts => parts.join("!"),
    };
    name.chars().map(|c| if is_plain(c) || c == '!' { c } else { '?' }).collect()
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
    // Which disk a name is of only the host tells: udev makes `/dev/sdf` of what the kernel calls `nvme1n1`.
    let mut disks: Vec<String> = devices.map(|device| whole(in_dev(device))).collect();
    // `xargs` tells them.
    if disks.is_empty() {
        disks.push("*".to_owned());
    }
    Some(
        disks
            .iter()
            .map(|disk| (format!("/sys/dev/block/{disk}/queue/read_ahead_kb"), kib.clone()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `check` was green beside these.
    #[test]
    fn what_hugeadm_and_the_policy_of_energy_set_is_told_as_places() {
        let told = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            match program(&words[0], &words[1..]) {
                Some(Program::Shell { text, .. }) => text.replace("/sys/devices/system/cpu/cpu*/", "C/"),
                _ => String::new(),
            }
        };
        let pool = |size: u64, file: &str| format!("/sys/kernel/mm/hugepages/hugepages-{size}kB/{file}");
        let (nr, most) = ("nr_hugepages", "nr_overcommit_hugepages");
        let (bias, hint) = ("C/power/energy_perf_bias", "C/cpufreq/energy_performance_preference");
        for (line, expected) in [
            ("hugeadm --pool-pages-min 2MB:512", format!("echo 512 > {}\n", pool(2048, nr))),
            ("hugeadm --pool-pages-min=1G:+2", format!("echo * > {}\n", pool(1 << 20, nr))),
            ("hugeadm --pool-pages-max 2097152:64", format!("echo * > {}\n", pool(2048, most))),
            ("hugeadm --pool-pages-min DEFAULT:8", format!("echo 8 > /proc/sys/vm/{nr}\n")),
            ("hugeadm --thp-never", "echo never > /sys/kernel/mm/transparent_hugepage/enabled\n".to_owned()),
            ("hugeadm --pool-list", String::new()),
            ("x86_energy_perf_policy performance", format!("echo 0 > {bias}\necho * > {hint}\n")),
            ("x86_energy_perf_policy --cpu 0-3 6", format!("echo 6 > {bias}\necho * > {hint}\n")),
            ("x86_energy_perf_policy --epb 7", format!("echo 7 > {bias}\n")),
            ("x86_energy_perf_policy --hwp-epp 128", format!("echo * > {hint}\n")),
            ("x86_energy_perf_policy -r", String::new()),
        ] {
            assert_eq!(told(line), expected, "{line}");
        }
    }
}
