//! What a record keeps of units of systemd and of rules of udev: what planish reads of them, and nothing else.
//!
//! Both kinds of files are for programs that run with all rights, and administrators write passwords and serial numbers
//! into them. Every other line is left empty, so that a line has the number that it has on the host.

use planish_sys::hold;
use planish_udev::{Command, DISK_KEYS, Operator, Part, Rule};

/// Directives of units that an observation reads. Their values are numbers and words.
const UNIT_DIRECTIVES: [&str; 18] = [
    "AllowedCPUs",
    "CPUAffinity",
    "CPUQuota",
    "CPUSchedulingPolicy",
    "CPUSchedulingPriority",
    "CPUSetPartition",
    "CPUWeight",
    "IOSchedulingClass",
    "IOSchedulingPriority",
    "IOWeight",
    "NUMAMask",
    "NUMAPolicy",
    "Nice",
    "OOMScoreAdjust",
    "Slice",
    "TasksMax",
    "TimerSlackNSec",
    "UnsetEnvironment",
];

/// How names of directives begin that are amounts throughout: rows of users may name each of them.
const UNIT_AMOUNTS: [&str; 4] = ["DefaultLimit", "DefaultTasksMax", "Limit", "Memory"];

/// Variables of services whose values are numbers and words of the library that reads them.
const UNIT_VARIABLES: [&str; 2] = ["GLIBC_TUNABLES", "MALLOC_ARENA_MAX"];

/// Directives that give variables, each word of a line one.
const UNIT_ENVIRONMENTS: [&str; 2] = ["Environment", "DefaultEnvironment"];

/// What a rule of udev may ask of a device that holds no secret: names, kinds and settings of the kernel.
const RULE_CONDITIONS: [&str; 20] = [
    "ACTION",
    "ATTR{address}",
    "ATTR{removable}",
    "ATTR{ro}",
    "ATTR{type}",
    "CONST{arch}",
    "CONST{virt}",
    "DRIVERS",
    "ENV{DEVTYPE}",
    "ENV{ID_BUS}",
    "ENV{ID_MODEL}",
    "ENV{ID_NET_DRIVER}",
    "ENV{ID_TYPE}",
    "ENV{ID_VENDOR}",
    "ENV{INTERFACE}",
    "KERNEL",
    "KERNELS",
    "NAME",
    "SUBSYSTEM",
    "SUBSYSTEMS",
];

/// What stands for a condition that a record does not keep: nobody can tell whether it is met.
const UNKNOWN_CONDITION: &str = "ENV{redacted}==\"redacted\"";

/// Properties that udev has given a device, of which a record keeps the value. Those of [`planish_udev::DISK_KEYS`] are
/// kept, too, and replaced.
const PROPERTIES: [&str; 6] = ["DEVTYPE", "ID_BUS", "ID_MODEL", "ID_NET_DRIVER", "ID_TYPE", "ID_VENDOR"];

/// How the files are called that a rule sets and that may be knobs, from the folder of its device on.
const RULE_ATTRIBUTES: [&str; 16] = [
    "bdi/read_ahead_kb",
    "cache_type",
    "cpufreq/",
    "cpuidle/",
    "device/queue_depth",
    "gro_flush_timeout",
    "mtu",
    "napi_defer_hard_irqs",
    "online",
    "parameters/",
    "power/energy_perf_bias",
    "power/pm_qos_resume_latency_us",
    "queue/",
    "queues/",
    "threaded",
    "tx_queue_len",
];

/// Options of ethtool that set what planish reads of a card. Another one, `-s`, takes a password.
const RULE_OPTIONS: [&str; 11] = [
    "-A",
    "-C",
    "-G",
    "-K",
    "-L",
    "--coalesce",
    "--features",
    "--offload",
    "--pause",
    "--set-channels",
    "--set-ring",
];

/// Whether a record keeps the lines of a directive in a unit of systemd or a drop-in, and of lines of variables
/// (`Environment=NAME`) this one.
#[must_use]
pub fn is_unit_directive(name: &str) -> bool {
    if let Some((list, variable)) = name.split_once('=') {
        return UNIT_ENVIRONMENTS.contains(&list) && UNIT_VARIABLES.contains(&variable);
    }
    UNIT_DIRECTIVES.contains(&name) || UNIT_AMOUNTS.iter().any(|amount| name.starts_with(amount))
}

/// Whether a file is one of systemd: a unit, a drop-in, or its own configuration.
pub(crate) fn is_unit_file(path: &str) -> bool {
    ["/systemd/system/", "/systemd/system.conf", "/systemd/system.control/", "/systemd/transient/"]
        .iter()
        .any(|part| path.contains(part))
}

/// Of a unit what is read of it: its sections, its limits and places, where its program takes variables from, and which
/// of them it is handed. Variables and the arguments of programs may hold passwords, and nobody asks for them but for a
/// few that are numbers.
pub(crate) fn of_unit(text: &str) -> String {
    // The lines of a command that goes on are arguments, whatever they look like.
    let mut goes_on = false;
    let mut out = String::with_capacity(text.len());
    for line in text.lines().map(str::trim) {
        let is_comment = line.starts_with(['#', ';']);
        if !goes_on && !is_comment {
            out += &of_unit_line(line).unwrap_or_default();
        }
        out.push('\n');
        // A comment between the lines of a command ends nothing.
        goes_on = if is_comment { goes_on } else { line.ends_with('\\') };
    }
    out
}

/// Options of mounts that name nobody.
const MOUNT_OPTIONS: [&str; 9] =
    ["defaults", "discard", "lazytime", "noatime", "nodiratime", "relatime", "ro", "rw", "strictatime"];

/// Of the options of a mount those that facts and knobs are told from. The others hold passwords, users and addresses.
pub(crate) fn of_mount(options: &str, with_size: bool) -> String {
    let is_kept = |option: &&str| {
        let sized = ["size=", "huge="].iter().find_map(|key| option.strip_prefix(*key)).filter(|_| with_size);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '%' || c == '_';
        MOUNT_OPTIONS.contains(option) || sized.is_some_and(|value| value.chars().all(plain))
    };
    options.split(',').filter(is_kept).collect::<Vec<_>>().join(",")
}

/// Where boot loaders have their files: whether they are mounted is what an edit of them hangs on.
pub(crate) const BOOT_MOUNTS: [&str; 3] = ["/boot", "/boot/efi", "/efi"];

/// /etc/fstab without anybody's disks, servers and folders: the lines of the root, of /dev/shm and of boot loaders.
pub(crate) fn of_fstab(text: &str) -> String {
    let told = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [source, folder, kind, options, ..]
                if !source.starts_with('#')
                    && (["/", "/dev/shm"].contains(folder) || BOOT_MOUNTS.contains(folder)) =>
            {
                let options = of_mount(options, *folder == "/dev/shm");
                // A line without options would be none.
                let options = if options.is_empty() { "defaults" } else { &options };
                format!("redacted {folder} {kind} {options} 0 0\n")
            }
            _ => "\n".to_owned(),
        }
    };
    text.lines().map(told).collect()
}

fn of_unit_line(line: &str) -> Option<String> {
    if let Some(options) = line.strip_prefix("Options=") {
        return Some(format!("Options={}", of_mount(options, true)));
    }
    if ["Type=tmpfs", "Type=ext4", "Type=xfs"].contains(&line) {
        return Some(line.to_owned());
    }
    if line.starts_with('[') || line.starts_with("EnvironmentFile=") || line == hold::WANTED {
        return Some(line.to_owned());
    }
    if let Some(command) = line.strip_prefix("ExecStart=") {
        if hold::limit_in_unit(command).is_some() {
            return Some(line.to_owned());
        }
        let mut words = command.split_whitespace();
        let program = words.next().unwrap_or_default();
        let variables: String =
            words.filter(|word| is_variable(word)).map(|word| format!(" {word}")).collect();
        return Some(format!("ExecStart={program}{variables}"));
    }
    let (name, value) = line.split_once('=')?;
    if UNIT_ENVIRONMENTS.contains(&name.trim()) {
        return of_environment(name, value);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " \t,-.:%_~\\".contains(c);
    (is_unit_directive(name.trim()) && value.chars().all(is_plain)).then(|| line.to_owned())
}

/// Of a line of variables those whose values are known to be harmless. An empty one takes back what was said before.
fn of_environment(name: &str, value: &str) -> Option<String> {
    let words = assignments(value)?;
    let kept: Vec<&str> = words.into_iter().filter(|word| is_known_variable(word)).collect();
    (value.trim().is_empty() || !kept.is_empty()).then(|| format!("{name}={}", kept.join(" ")))
}

/// The assignments of a line, as far as they are quoted as a whole or not at all: what else a quote holds may be of a
/// password.
fn assignments(value: &str) -> Option<Vec<&str>> {
    let quote = value.chars().find(|c| ['"', '\''].contains(c)).unwrap_or('"');
    let parts: Vec<&str> = value.split(quote).collect();
    let is_odd = |part: &&str| part.contains(['"', '\'', '\\']);
    let is_parted = |part: &str| part.is_empty() || part.starts_with(' ') && part.ends_with(' ');
    let last = parts.len() - 1;
    let bare = parts.iter().enumerate().step_by(2);
    let are_parted = bare.clone().all(|(at, part)| match at {
        0 => last == 0 || part.is_empty() || part.ends_with(' '),
        at if at == last => part.is_empty() || part.starts_with(' '),
        _ => !part.is_empty() && is_parted(part),
    });
    if last % 2 == 1 || parts.iter().any(is_odd) || !are_parted {
        return None;
    }
    let words = parts.iter().enumerate().flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().collect::<Vec<_>>(),
        _ => vec![*part],
    });
    Some(words.collect())
}

/// Whether a word gives one of the few variables that a record keeps, and nothing else: a number, or tunables of glibc.
pub(crate) fn is_known_variable(word: &str) -> bool {
    let is_number = |value: &str| !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    let is_tunable = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or_default();
        let is_name = name.bytes().all(|b| b.is_ascii_lowercase() || b"._".contains(&b));
        name.starts_with("glibc.") && is_name && is_number(value)
    };
    match word.trim().split_once('=') {
        Some(("MALLOC_ARENA_MAX", value)) => is_number(value),
        Some(("GLIBC_TUNABLES", value)) => value.split(':').all(is_tunable),
        _ => false,
    }
}

/// Whether a word of a command line is a variable and nothing else: `$OPTIONS`, `${OPTIONS}`.
fn is_variable(word: &str) -> bool {
    let name = word.strip_prefix('$').map(|name| name.trim_matches(['{', '}']));
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

/// The rules that planish writes.
const OWN_RULES: &str = "/etc/udev/rules.d/90-planish.rules";

/// Whether a file holds rules of udev.
pub(crate) fn is_rules(path: &str) -> bool {
    path.contains("/udev/rules.d/")
}

/// Whether it holds those that planish did not write.
pub(crate) fn is_foreign_rules(path: &str) -> bool {
    is_rules(path) && path != OWN_RULES
}

/// The database of dpkg.
pub(crate) const DPKG: &str = "/var/lib/dpkg/status";

/// Of the database of dpkg the versions of some packages, and whether they are installed. What else is on a machine is
/// told to nobody.
pub(crate) fn of_packages(text: &str, packages: &[String]) -> String {
    let mut out = String::new();
    for paragraph in text.split("\n\n") {
        let field = |name: &str| {
            paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let Some(name) = field("Package").filter(|name| packages.iter().any(|package| package == name))
        else {
            continue;
        };
        out += &format!("Package: {name}\n");
        for kept in ["Status", "Version"] {
            out += &field(kept).map(|value| format!("{kept}: {value}\n")).unwrap_or_default();
        }
        out.push('\n');
    }
    out
}

/// Whether a path is the link to the program of a process.
pub(crate) fn is_program_link(path: &str) -> bool {
    let pid = path.strip_prefix("/proc/").and_then(|rest| rest.strip_suffix("/exe"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a program lies where packages and their makers put it, so that its path names nobody.
pub(crate) fn is_program(target: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.+".contains(c);
    ["/usr/", "/opt/", "/u01/app/"].iter().any(|folder| target.starts_with(folder))
        && target.chars().all(is_plain)
        && !target.contains("..")
}

/// Whether a file is udev's own of what it gave a device.
pub(crate) fn is_properties(path: &str) -> bool {
    path.starts_with("/run/udev/data/")
}

/// Of such a file the properties that rules may ask for.
pub(crate) fn of_properties(text: &str) -> String {
    let is_kept = |line: &&str| {
        let property = line.strip_prefix("E:").and_then(|rest| rest.split_once('='));
        property.is_some_and(|(key, _)| PROPERTIES.contains(&key) || DISK_KEYS.contains(&key))
    };
    text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

/// Of rules the parts that set what a knob may be, and what they ask of a device. Whatever else a rule asks, runs or
/// sets may hold a serial number or a password: a condition that is not kept leaves it open whether the rule is met.
/// Each rule stays in its first line.
pub(crate) fn of_rules(text: &str) -> String {
    let mut lines = vec![String::new(); text.lines().count()];
    for rule in planish_udev::rules(text) {
        lines[rule.line - 1] = of_rule(&rule).unwrap_or_default();
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn of_rule(rule: &Rule) -> Option<String> {
    let (mut kept, mut sets, mut is_open): (Vec<String>, bool, bool) = (Vec::new(), false, false);
    for part in &rule.parts {
        let asks = !part.operator.is_given() || matches!(part.key.as_str(), "PROGRAM" | "IMPORT");
        if asks {
            let known = is_condition(part);
            is_open |= !known;
            kept.extend(known.then(|| part.text()));
        } else if let Some(text) = of_assignment(part) {
            is_open |= part.is_odd;
            sets = true;
            kept.push(text);
        }
    }
    if is_open {
        kept.insert(0, UNKNOWN_CONDITION.to_owned());
    }
    sets.then(|| kept.join(", "))
}

/// Whether a condition may be kept. A part of an address would not be replaced, and would match no replaced one; one in
/// capitals matches no card, and would match the replaced one. The same goes for what tells a disk from others.
fn is_condition(part: &Part) -> bool {
    let (name, value) = (part.name(), part.value.as_str());
    let is_address = |address: &str| {
        address.chars().all(|c| "*?".contains(c))
            || address.len() == 17 && address.bytes().all(|b| b":0123456789abcdef".contains(&b))
    };
    if part.is_odd || value.contains('"') {
        return false;
    }
    if DISK_KEYS.iter().any(|key| name == format!("ENV{{{key}}}")) {
        return !value.is_empty() && value.chars().all(is_plain);
    }
    if matches!(part.key.as_str(), "ATTR" | "TEST") && name != "ATTR{address}" {
        let file = if part.key == "TEST" { value } else { part.attribute.as_deref().unwrap_or_default() };
        let is_setting = file.starts_with("queue/") || RULE_CONDITIONS.contains(&name.as_str());
        return is_setting && value.chars().all(|c| is_plain(c) || "*?|[]".contains(c));
    }
    RULE_CONDITIONS.contains(&name.as_str()) && (name != "ATTR{address}" || value.split('|').all(is_address))
}

/// What a rule gives, as far as it is kept.
fn of_assignment(part: &Part) -> Option<String> {
    let value = part.value.as_str();
    let is_value = |extra: &str| value.len() <= 64 && value.chars().all(|c| is_plain(c) || extra.contains(c));
    let is_kept = match (part.key.as_str(), part.attribute.as_deref()) {
        ("GOTO" | "LABEL", None) => is_value(""),
        ("ENV", Some(key)) => PROPERTIES.contains(&key) && is_value(""),
        ("ATTR", Some(file)) => {
            RULE_ATTRIBUTES.iter().any(|known| file.starts_with(known)) && is_value(" *?$%{}")
        }
        ("SYSCTL", Some(key)) => key.chars().all(is_plain) && is_value(" $%{}"),
        ("RUN", kind) if kind != Some("builtin") => {
            // What ends all programs before it is told, whatever it starts itself.
            let ends = matches!(part.operator, Operator::Set | Operator::SetFinal);
            let command = of_command(value).or_else(|| ends.then(|| "/bin/x".to_owned()));
            return command.map(|command| format!("RUN{}\"{command}\"", part.operator.text()));
        }
        _ => false,
    };
    is_kept.then(|| Part { is_odd: false, ..part.clone() }.text())
}

/// Folders of the kernel that hold settings. Firmware takes passwords by files of others.
const SETTINGS: [&str; 10] = [
    "/proc/sys/",
    "/sys/block/",
    "/sys/class/block/",
    "/sys/class/net/",
    "/sys/class/scsi_disk/",
    "/sys/devices/system/",
    "/sys/devices/virtual/workqueue/",
    "/sys/kernel/debug/",
    "/sys/kernel/mm/",
    "/sys/module/",
];

/// Whether a path of a command is that of a setting of the kernel. Any other one may be a file of somebody, and what is
/// written to it a password.
fn is_setting(path: &str) -> bool {
    let of_device = || {
        let tail = ["/sys%p/", "/sys%k/"].iter().find_map(|device| path.strip_prefix(device));
        tail.is_some_and(|tail| RULE_ATTRIBUTES.iter().any(|known| tail.starts_with(known)))
    };
    !path.contains("..") && (SETTINGS.iter().any(|folder| path.starts_with(folder)) || of_device())
}

/// Of a command what sets a card by ethtool, or what it writes; where it may write it, that it may.
fn of_command(command: &str) -> Option<String> {
    if is_setting_of_card(command) {
        return Some(command.to_owned());
    }
    let is_word = |word: &str| word.len() <= 128 && word.chars().all(|c| is_plain(c) || "$%{} ".contains(c));
    // Names that udev and its shell fill in are known when it is followed.
    const NAMES: [&str; 5] = ["${DEVPATH}", "$DEVPATH", "$devpath", "$kernel", "$name"];
    let named = NAMES.iter().fold(command.to_owned(), |text, name| text.replace(name, "%k"));
    let named = named.replace("$sys", "/sys").replace("%S", "/sys");
    let (mut kept, mut is_known) = (Vec::new(), true);
    for one in planish_udev::commands(&named) {
        match one {
            Command::Sysctl(key, value) if is_word(&key) && is_word(&value) => {}
            Command::Write(path, value, true) if is_setting(&path) && is_word(&path) && is_word(&value) => {}
            Command::Write(path, value, false) => {
                is_known = false;
                if is_setting(&path) && is_word(&path) {
                    let value = if value != "?" && is_word(&value) { value } else { "`x`".to_owned() };
                    kept.push(format!("echo {value} > {path}"));
                }
            }
            _ => return None,
        }
    }
    if !kept.is_empty() {
        return Some(format!("/bin/sh -c 'may; {}'", kept.join("; ")));
    }
    // All that it does is known, and its words are settings of the kernel.
    let is_short = command.chars().all(|c| is_plain(c) || " \t$%{}'=>".contains(c));
    let does = !planish_udev::commands(&named).is_empty();
    (is_known && does && is_short && is_all(command)).then(|| command.to_owned())
}

/// Whether a command of which all that it does is known has no other words, and names nobody by its path.
fn is_all(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let is_known = ["/usr/", "/bin/", "/sbin/"].iter().any(|folder| program.starts_with(folder));
    let ends = match program.rsplit('/').next() {
        Some("sysctl") => words.all(|word| word.starts_with('-') || word.contains('=')),
        Some("blockdev") => true,
        // A shell, whose script is the last word.
        _ => command.matches('\'').count() == 2 && command.trim_end().ends_with('\''),
    };
    ends && (is_known || !program.contains('/'))
}

/// What names and values of the kernel are made of.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.,:/".contains(c)
}

/// Whether a command is ethtool's and sets what planish reads: `/usr/sbin/ethtool -G $name rx 4096`.
fn is_setting_of_card(command: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " \t$%-_./".contains(c);
    let mut words = command.split_whitespace();
    let program = words.next().and_then(|program| program.rsplit('/').next());
    let option = words.next();
    program == Some("ethtool")
        && option.is_some_and(|option| RULE_OPTIONS.contains(&option))
        && command.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_our_unit_holds_is_kept_and_nothing_that_looks_like_it() {
        let unit = "[Service]\nExecStart=/usr/bin/planish hold cpu-dma-latency 20\n";
        assert_eq!(of_unit(unit), unit);
        assert_eq!(
            of_unit("Wants=planish-hold.service\nWants=secret.service\n"),
            "Wants=planish-hold.service\n\n"
        );
        let others =
            "ExecStart=/x hold cpu-dma-latency hunter2\nExecStart=/x hold cpu-dma-latency 20 hunter2\n";
        assert_eq!(of_unit(others), "ExecStart=/x\nExecStart=/x\n");
    }

    #[test]
    fn of_a_unit_the_limits_stay_where_they_are_and_secrets_go() {
        let unit = "[Unit]\nDescription=of Ann\n\n[Service]\nEnvironment=TOKEN=hunter2\n\
                    Environment=\nEnvironment=A=hunter2 \"MALLOC_ARENA_MAX=2\" \"B=hunter2 hunter2\"\n\
                    Environment=\"PW=x MALLOC_ARENA_MAX=2\"\n\
                    ExecStart=/usr/bin/db --key=hunter2 \\\n  # hunter2\n  LimitNOFILE=hunter2 \\\n  [hunter2]\n\
                    LimitNOFILE = 1024:524288\n#LimitNPROC=9\nTasksMax=15%\nMemoryLow=4G\nNice=-5\n\
                    CPUAffinity=\nCPUAffinity=0-3,8 9\nNUMAPolicy=bind\nSlice=planish.slice\n\
                    LimitCORE=\"hunter2\"\nExecStop=/bin/stop hunter2\nOOMScoreAdjust=-900";
        let kept = "[Unit]\n\n\n[Service]\n\nEnvironment=\nEnvironment=MALLOC_ARENA_MAX=2\n\n\
                    ExecStart=/usr/bin/db\n\n\n\n\
                    LimitNOFILE = 1024:524288\n\nTasksMax=15%\nMemoryLow=4G\nNice=-5\n\
                    CPUAffinity=\nCPUAffinity=0-3,8 9\nNUMAPolicy=bind\nSlice=planish.slice\n\
                    \n\nOOMScoreAdjust=-900\n";
        assert_eq!(of_unit(unit), kept);
    }

    #[test]
    fn of_variables_those_are_kept_that_can_be_no_password() {
        for (line, kept) in [
            ("MALLOC_ARENA_MAX=2", Some("MALLOC_ARENA_MAX=2")),
            ("\"A=b c\" 'x' MALLOC_ARENA_MAX=2", None),
            (
                "A=hunter2 \"GLIBC_TUNABLES=glibc.pthread.rseq=0\" B=1",
                Some("GLIBC_TUNABLES=glibc.pthread.rseq=0"),
            ),
            ("\"PW=x MALLOC_ARENA_MAX=hunter2\"", None),
            ("MALLOC_ARENA_MAX=hunter2", None),
            ("GLIBC_TUNABLES=hunter2", None),
            ("GLIBC_TUNABLES=glibc.malloc.check=hunter2", None),
            ("A=\"x y\"MALLOC_ARENA_MAX=2", None),
            ("\"MALLOC_ARENA_MAX=2", None),
            ("\"B=\\\"x\" MALLOC_ARENA_MAX=2", None),
        ] {
            let expected = kept.map(|kept| format!("Environment={kept}"));
            assert_eq!(of_environment("Environment", line), expected, "{line}");
        }
    }

    #[test]
    fn files_of_systemd_are_known_by_their_folders() {
        for path in [
            "/etc/systemd/system/db.service",
            "/usr/lib/systemd/system/db.service.d/10-a.conf",
            "/etc/systemd/system/db.service.d/zz-planish-nofile.conf",
            "/etc/systemd/system/planish.slice",
            "/etc/systemd/system.conf.d/zz-planish.conf",
        ] {
            assert!(is_unit_file(path), "{path}");
        }
        assert!(!is_unit_file("/etc/systemd/timesyncd.conf"));
    }

    #[test]
    fn of_rules_what_sets_a_device_stays() {
        let ring = r#"RUN+="/usr/sbin/ethtool -G $name rx 512""#;
        let of_card = format!(r#"SUBSYSTEM=="net", KERNEL=="ens*|eth*", {ring}"#);
        let own = format!(r#"ACTION=="add", SUBSYSTEM=="net", ATTR{{address}}=="52:54:00:12:34:56", {ring}"#);
        let open = format!("{UNKNOWN_CONDITION}, {of_card}");
        let part = format!("{UNKNOWN_CONDITION}, SUBSYSTEM==\"net\", {ring}");
        let none = r#"ATTR{queue/scheduler}="none""#;
        let disk = r#"SUBSYSTEM=="block", ENV{ID_WWN}=="0x5000", ATTR{queue/rotational}=="0""#;
        let disk = &format!("{disk}, {none}");
        for (rule, kept) in [
            (of_card.clone(), of_card.as_str()),
            (own.clone(), &own),
            (format!(r#"{of_card},RUN+="/bin/mail --pass hunter2", ENV{{KEY}}="hunter2""#), &of_card),
            (format!(r#"{of_card}, PROGRAM="/bin/key hunter2", ATTRS{{serial}}!="hunter2""#), &open),
            (format!(r#"{of_card}, ENV{{OF_ANN}}=="hunter2""#), &open),
            (format!(r#"ATTRS{{serial}}=="hunter2", {of_card}"#), &open),
            (format!(r#"SUBSYSTEM=="net", ATTR{{address}}=="52:54:00:12:34:*", {ring}"#), &part),
            (format!("# {of_card}"), ""),
            (r#"SUBSYSTEM=="net", RUN+="/sbin/ethtool -s $name wol g sopass hunter2""#.to_owned(), ""),
            (r#"SUBSYSTEM=="block", ATTR{secret}="hunter2", ENV{ID_SERIAL}="hunter2""#.to_owned(), ""),
            (disk.clone(), disk),
            (format!(r#"{disk}, ENV{{ID_SERIAL}}="hunter2", OWNER="ann""#), disk),
            (
                r#"KERNEL=="sda", RUN+="/bin/sh -c 'key hunter2; echo none > /sys%p/queue/scheduler'""#
                    .to_owned(),
                r#"KERNEL=="sda", RUN+="/bin/sh -c 'may; echo none > /sys%p/queue/scheduler'""#,
            ),
            (
                r#"SUBSYSTEM!="block", IMPORT{program}="hunter2", GOTO="end""#.to_owned(),
                r#"ENV{redacted}=="redacted", SUBSYSTEM!="block", GOTO="end""#,
            ),
            (r#"SUBSYSTEM=="net", RUN+="/bin/sh -c 'ethtool -G $name rx 512 #hunter2'""#.to_owned(), ""),
            (r#"RUN="/bin/mail --pass hunter2""#.to_owned(), r#"RUN="/bin/x""#),
            (r#"RUN+="/bin/sh -c 'echo hunter2 > /root/.pass'""#.to_owned(), ""),
            (r#"RUN+="/bin/sh -c 'curl x; echo hunter2 > /home/ann/.tok'""#.to_owned(), ""),
            (
                r#"RUN+="/bin/sh -c 'echo hunter2 > /sys/class/firmware-attributes/x/current_password'""#
                    .to_owned(),
                "",
            ),
            (r#"RUN+="/bin/sh -c 'echo hunter2 > /sys%p/authentication/password'""#.to_owned(), ""),
            (r#"RUN+="/bin/sh -c 'echo hunter2 > /proc/sys/../../root/.pass'""#.to_owned(), ""),
            (r#"RUN+="/bin/sh -c 'echo 8 > /sys%p/queue/read_ahead_kb' hunter2""#.to_owned(), ""),
            (r#"RUN+="/home/ann/bin/sh -c 'echo 8 > /sys%p/queue/read_ahead_kb'""#.to_owned(), ""),
            (r#"RUN+="/sbin/sysctl vm.swappiness=1 hunter2""#.to_owned(), ""),
            (
                r#"RUN+="/sbin/sysctl -w vm.swappiness=1 vm.stat_interval=2""#.to_owned(),
                r#"RUN+="/sbin/sysctl -w vm.swappiness=1 vm.stat_interval=2""#,
            ),
            (
                r#"RUN+="/bin/sh -c 'echo hunter2 > /root/.a; echo none > $sys/block/%k/queue/scheduler'""#
                    .to_owned(),
                r#"RUN+="/bin/sh -c 'may; echo none > /sys/block/%k/queue/scheduler'""#,
            ),
            (String::new(), ""),
        ] {
            assert_eq!(of_rules(&rule).trim_end(), kept, "{rule}");
        }
    }

    #[test]
    fn of_packages_only_those_are_kept_that_are_asked_for() {
        let text = "Package: redis-server\nStatus: install ok installed\nMaintainer: ann\nVersion: 5:7.0.1-4\n\n\
                    Package: hunter2\nStatus: install ok installed\nVersion: 1\n\n\
                    Package: postgresql-16\nVersion: 16.4-1\nDescription: x\n Version: y\n";
        let names = ["redis-server".to_owned(), "postgresql-16".to_owned()];
        let kept = "Package: redis-server\nStatus: install ok installed\nVersion: 5:7.0.1-4\n\n\
                    Package: postgresql-16\nVersion: 16.4-1\n\n";
        assert_eq!(of_packages(text, &names), kept);
        assert_eq!(of_packages(kept, &names), kept);
        assert_eq!(of_packages(text, &[]), "");
    }

    #[test]
    fn a_program_of_somebody_is_not_told() {
        for (target, is_told) in [
            ("/usr/lib/postgresql/16/bin/postgres", true),
            ("/opt/mongodb-7.0.14/bin/mongod", true),
            ("/home/ann/bin/mongod", false),
            ("/usr/bin/x (deleted)", false),
            ("/opt/../home/ann/x", false),
        ] {
            assert_eq!(is_program(target), is_told, "{target}");
        }
        assert!(is_program_link("/proc/12/exe") && !is_program_link("/proc/self/exe"));
    }

    proptest! {
        #[test]
        fn lines_keep_their_numbers_and_nothing_more_goes(
            text in "([A-Z{}=+\"!, a-z$%:#\\\\\\[\\]é-]{0,30}\n|LimitCORE=1\n){0,8}",
        ) {
            for kept in [of_unit, of_rules] {
                let once = kept(&text);
                prop_assert_eq!(once.lines().count(), text.lines().count());
                prop_assert_eq!(kept(&once), once);
            }
        }
    }
}
