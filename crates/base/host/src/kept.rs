//! What a record keeps of units of systemd and of rules of udev: what planish reads of them, and nothing else.
//!
//! Both kinds of files are for programs that run with all rights, and administrators write passwords and serial numbers
//! into them. Every other line is left empty, so that a line has the number that it has on the host.

use planish_sys::hold;

/// Directives of units that an observation reads. Their values are numbers and words.
const UNIT_DIRECTIVES: [&str; 17] = [
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
];

/// How names of directives begin that are amounts throughout: rows of users may name each of them.
const UNIT_AMOUNTS: [&str; 4] = ["DefaultLimit", "DefaultTasksMax", "Limit", "Memory"];

/// What a rule of udev may ask of a card, for planish to know whether it means the card.
const RULE_CONDITIONS: [&str; 8] =
    ["ACTION", "ATTR{address}", "ATTR{type}", "DRIVERS", "ENV{INTERFACE}", "KERNEL", "NAME", "SUBSYSTEM"];

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

/// Whether a record keeps the lines of a directive in a unit of systemd or a drop-in.
#[must_use]
pub fn is_unit_directive(name: &str) -> bool {
    UNIT_DIRECTIVES.contains(&name) || UNIT_AMOUNTS.iter().any(|amount| name.starts_with(amount))
}

/// Whether a file is one of systemd: a unit, a drop-in, or its own configuration.
pub(crate) fn is_unit_file(path: &str) -> bool {
    ["/systemd/system/", "/systemd/system.conf"].iter().any(|part| path.contains(part))
}

/// Of a unit what is read of it: its sections, its limits and places, where its program takes variables from, and which
/// of them it is handed. `Environment=` and the arguments of programs may hold passwords, and nobody asks for them.
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

fn of_unit_line(line: &str) -> Option<String> {
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
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " \t,-.:%_~\\".contains(c);
    (is_unit_directive(name.trim()) && value.chars().all(is_plain)).then(|| line.to_owned())
}

/// Whether a word of a command line is a variable and nothing else: `$OPTIONS`, `${OPTIONS}`.
fn is_variable(word: &str) -> bool {
    let name = word.strip_prefix('$').map(|name| name.trim_matches(['{', '}']));
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

/// The rules that planish writes.
const OWN_RULES: &str = "/etc/udev/rules.d/90-planish.rules";

/// Whether a file holds rules of udev that planish did not write.
pub(crate) fn is_foreign_rules(path: &str) -> bool {
    path.contains("/udev/rules.d/") && path != OWN_RULES
}

/// Of rules the parts that set a network card by `ethtool`, and what they ask of it. Whatever else a rule asks, runs or
/// sets may hold a serial number or a password.
pub(crate) fn of_rules(text: &str) -> String {
    text.lines().map(|line| of_rule(line).unwrap_or_default() + "\n").collect()
}

fn of_rule(line: &str) -> Option<String> {
    let (mut kept, mut is_for_cards, mut runs) = (Vec::new(), false, false);
    for (key, operator, value) in pairs(line)? {
        let known = RULE_CONDITIONS.contains(&key);
        match operator {
            "==" | "!=" if known => {
                is_for_cards |= key == "SUBSYSTEM" && value == "net";
                kept.push(condition(key, operator, value)?);
            }
            // What planish does not know of a card is never met, and the rule sets nothing.
            "==" => return None,
            "+=" if key == "RUN" && is_setting_of_card(value) => {
                runs = true;
                kept.push(format!("RUN+=\"{value}\""));
            }
            _ => {}
        }
    }
    (is_for_cards && runs).then(|| kept.join(", "))
}

/// A condition that may be kept. A part of an address would not be replaced, and would match no replaced one; one in
/// capitals matches no card, and would match the replaced one.
fn condition(key: &str, operator: &str, value: &str) -> Option<String> {
    let is_whole = |address: &str| {
        address.chars().all(|c| "*?".contains(c))
            || address.len() == 17 && address.bytes().all(|b| b":0123456789abcdef".contains(&b))
    };
    let may_stay = key != "ATTR{address}" || value.split('|').all(is_whole);
    may_stay.then(|| format!("{key}{operator}\"{value}\""))
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

/// `KEY=="value", KEY+="value"`: keys, operators and values; `None` for a comment and what is no rule.
fn pairs(line: &str) -> Option<Vec<(&str, &str, &str)>> {
    let mut rest = line.trim();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let at = rest.find(['=', '!', '+', '-', ':']).filter(|_| !rest.starts_with('#'))?;
        let (key, after) = rest.split_at(at);
        let (operator, after) = after.split_once('"')?;
        let (value, after) = after.split_once('"')?;
        if !["==", "!=", "=", "+=", "-=", ":="].contains(&operator.trim()) {
            return None;
        }
        found.push((key.trim(), operator.trim(), value));
        rest = after.trim_start_matches([',', ' ', '\t']);
    }
    Some(found)
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
                    ExecStart=/usr/bin/db --key=hunter2 \\\n  # hunter2\n  LimitNOFILE=hunter2 \\\n  [hunter2]\n\
                    LimitNOFILE = 1024:524288\n#LimitNPROC=9\nTasksMax=15%\nMemoryLow=4G\nNice=-5\n\
                    CPUAffinity=\nCPUAffinity=0-3,8 9\nNUMAPolicy=bind\nSlice=planish.slice\n\
                    LimitCORE=\"hunter2\"\nExecStop=/bin/stop hunter2\nOOMScoreAdjust=-900";
        let kept = "[Unit]\n\n\n[Service]\n\n\
                    ExecStart=/usr/bin/db\n\n\n\n\
                    LimitNOFILE = 1024:524288\n\nTasksMax=15%\nMemoryLow=4G\nNice=-5\n\
                    CPUAffinity=\nCPUAffinity=0-3,8 9\nNUMAPolicy=bind\nSlice=planish.slice\n\
                    \n\nOOMScoreAdjust=-900\n";
        assert_eq!(of_unit(unit), kept);
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
    fn of_rules_what_sets_a_card_stays() {
        let ring = r#"RUN+="/usr/sbin/ethtool -G $name rx 512""#;
        let of_card = format!(r#"SUBSYSTEM=="net", KERNEL=="ens*|eth*", {ring}"#);
        let own = format!(r#"ACTION=="add", SUBSYSTEM=="net", ATTR{{address}}=="52:54:00:12:34:56", {ring}"#);
        for (rule, kept) in [
            (of_card.clone(), of_card.as_str()),
            (own.clone(), &own),
            (format!(r#"{of_card},RUN+="/bin/mail --pass hunter2", ENV{{KEY}}="hunter2""#), &of_card),
            (format!(r#"{of_card}, PROGRAM="/bin/key hunter2", ATTRS{{serial}}!="hunter2""#), &of_card),
            (format!(r#"{of_card}, ENV{{ID_SERIAL}}=="hunter2""#), ""),
            (format!(r#"ATTRS{{serial}}=="hunter2", {of_card}"#), ""),
            (format!(r#"SUBSYSTEM=="net", ATTR{{address}}=="52:54:00:12:34:*", {ring}"#), ""),
            (format!("# {of_card}"), ""),
            (r#"SUBSYSTEM=="net", RUN+="/sbin/ethtool -s $name wol g sopass hunter2""#.to_owned(), ""),
            (r#"SUBSYSTEM=="block", ATTR{queue/scheduler}="none", ENV{ID_SERIAL}="hunter2""#.to_owned(), ""),
            (r#"SUBSYSTEM=="net", RUN+="/bin/sh -c 'ethtool -G $name rx 512 #hunter2'""#.to_owned(), ""),
            (String::new(), ""),
        ] {
            assert_eq!(of_rules(&rule).trim_end(), kept, "{rule}");
        }
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
