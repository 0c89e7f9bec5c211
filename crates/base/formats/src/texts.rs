//! Texts that hold commands among other things: tables of cron, and data that an instance is made from.

use crate::shell::{Ask, Effect, Ran, Run, What, effects, effects_of, parse};

/// Words in front of the command of a line: minute, hour, day, month and day of the week (`crontab(5)`).
const TIMES: usize = 5;

/// What the lines of a table of cron do; in those of the system a user stands before each command.
#[must_use]
pub fn effects_of_table(text: &str, has_user: bool, ask: Option<Ask<'_>>) -> Vec<Effect> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let commands = lines.filter_map(|line| {
        let is_time = line.starts_with(|c: char| c.is_ascii_digit() || c == '*');
        let times = match line.starts_with('@') {
            true => 1,
            false if is_time => TIMES,
            // A variable.
            false => return None,
        };
        let mut command = line;
        for _ in 0..times {
            command = behind_a_word(command);
        }
        // What another user is let write is another question.
        let user = command.split([' ', '\t', ':']).next();
        let is_root = !has_user || user == Some("root");
        if has_user {
            command = behind_a_word(command);
        }
        // What stands behind the sign is read by the command.
        let end = command.match_indices('%').find(|(at, _)| !command[..*at].ends_with('\\'));
        let command = &command[..end.map_or(command.len(), |(at, _)| at)];
        Some(Run::new(Ran::Script(command.replace("\\%", "%")), is_root))
    });
    effects_of(commands, ask)
}

fn behind_a_word(text: &str) -> &str {
    text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start())
}

/// What data of cloud-init does: a script, or lines of which some are commands, such as `- sysctl -w NAME=VALUE` and
/// `bootcmd: [ sh, -c, .. ]`. What else a line names may be set.
#[must_use]
pub fn effects_of_data(text: &str, ask: Option<Ask<'_>>) -> Vec<Effect> {
    if text.starts_with("#!") || text.starts_with("#cloud-boothook") {
        return effects(text, ask);
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    effects_of(lines.flat_map(commands).map(|what| Run::new(what, true)), ask)
}

/// What the lines of `/etc/sysfs.conf` set: `kernel/mm/ksm/run = 1`, while `mode` and `owner` set no value.
#[must_use]
pub fn effects_of_sysfs(text: &str) -> Vec<Effect> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let set = lines.filter_map(|line| {
        let (path, value) = line.split_once('=')?;
        let path = path.trim().trim_start_matches('/');
        let path = path.strip_prefix("sys/").unwrap_or(path);
        let is_other = path.is_empty() || path.contains(char::is_whitespace);
        (!is_other).then(|| written(format!("/sys/{path}"), value.trim()))
    });
    set.collect()
}

/// What variables of `cpufrequtils` and `cpupower` set: `GOVERNOR="performance"`, or options of `cpupower` such as
/// `frequency-set -g performance`.
#[must_use]
pub fn effects_of_frequency(text: &str) -> Vec<Effect> {
    let lines = text.lines().map(str::trim).filter_map(|line| line.split_once('='));
    let mut words: Vec<(String, String)> = Vec::new();
    for (name, value) in lines {
        let value = unquoted(value.trim());
        let mut options = value.split_whitespace().peekable();
        while let Some(option) = options.next().filter(|_| name.ends_with("_OPTS")) {
            let next = options.peek().map(|next| (*next).to_owned());
            let joined = option.split_once('=').map(|(option, value)| (option.to_owned(), value.to_owned()));
            words.extend(joined.or_else(|| Some((option.to_owned(), next?))));
        }
        words.push((name.to_ascii_uppercase(), value.to_owned()));
    }
    if words.iter().any(|(name, value)| name == "ENABLE" && value != "true") {
        return Vec::new();
    }
    let file = |name: &str| match name {
        "GOVERNOR" | "-g" | "--governor" => Some("cpufreq/scaling_governor"),
        "MIN_SPEED" | "MIN_FREQ" | "-d" | "--min" => Some("cpufreq/scaling_min_freq"),
        "MAX_SPEED" | "MAX_FREQ" | "-u" | "--max" => Some("cpufreq/scaling_max_freq"),
        "PERF_BIAS" | "-b" | "--perf-bias" => Some("power/energy_perf_bias"),
        _ => None,
    };
    let set = words.iter().filter(|(_, value)| !["", "0"].contains(&value.as_str()));
    set.filter_map(|(name, value)| Some(written(format!("/sys/devices/system/cpu/*/{}", file(name)?), value)))
        .collect()
}

fn written(path: String, value: &str) -> Effect {
    Effect { what: What::File(path), says: value.to_owned(), is_sure: true, from: String::new() }
}

/// The commands of a line of YAML.
fn commands(line: &str) -> Vec<Ran> {
    let mut bare = line;
    while let Some(rest) = bare.strip_prefix("- ") {
        bare = rest.trim_start();
    }
    let is_key = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if let Some((_, value)) = bare.split_once(": ").filter(|(key, _)| is_key(key)) {
        bare = value.trim();
    }
    if let Some(inner) = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return of_list(inner);
    }
    vec![of_text(unquoted(bare))]
}

/// `sh, -c, "echo 1 > FILE"`: the words of one command, or commands of which each is a text.
fn of_list(inner: &str) -> Vec<Ran> {
    if inner.contains(['[', ']']) {
        return vec![Ran::Untold(inner.to_owned())];
    }
    let items: Vec<&str> = items(inner).into_iter().map(unquoted).collect();
    match items.first().is_some_and(|first| first.contains(char::is_whitespace)) {
        true => items.into_iter().map(of_text).collect(),
        false => vec![Ran::Words(items.into_iter().map(str::to_owned).collect())],
    }
}

/// Items with commas between them, outside of quotes.
fn items(inner: &str) -> Vec<&str> {
    let (mut from, mut quote, mut found) = (0, None, Vec::new());
    for (at, c) in inner.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, ',') => {
                found.push(inner[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(inner[from..].trim());
    found
}

fn unquoted(text: &str) -> &str {
    let stripped =
        |quote: char| text.strip_prefix(quote)?.strip_suffix(quote).filter(|rest| !rest.contains(quote));
    stripped('"').or_else(|| stripped('\'')).unwrap_or(text)
}

/// A line that a shell can read is run by one, or is text that looks so.
fn of_text(text: &str) -> Ran {
    match parse(text).broken {
        None => Ran::Script(text.to_owned()),
        Some(_) => Ran::Untold(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(effects: Vec<Effect>) -> Vec<String> {
        let one = |effect: Effect| match (effect.what, effect.is_sure) {
            (What::Key(key), true) => key,
            (What::File(path), true) => path,
            (what, _) => format!("?{what:?}"),
        };
        effects.into_iter().map(one).collect()
    }

    #[test]
    fn a_table_of_cron_is_read_behind_times_and_user() {
        let text = "# sysctl -w no.no=1\nPATH=/bin\n@reboot root sysctl -w a.b=1\n*/5 * * * 1-5 root echo 1 > /proc/x\n\
                    0 0 * * * root cat /proc/y%sysctl -w no.no=1\n";
        assert_eq!(told(effects_of_table(text, true, None)), ["a.b", "/proc/x"]);
        let other = "@reboot www-data sysctl -w a.b=1\n* * * * *  nobody\techo 1 > /proc/x\n";
        let told_of = told(effects_of_table(other, true, None));
        assert_eq!(told_of, ["?Key(\"a.b\")", "?File(\"/proc/x\")"], "another user may not");
        assert_eq!(told(effects_of_table("@daily sysctl -w a.b=1\n", false, None)), ["a.b"]);
    }

    #[test]
    fn commands_among_data_are_found() {
        let text = "#cloud-config\npassword: hunter2\nbootcmd: [sysctl -w a.b=1]\nruncmd:\n  - echo 1 > /proc/x\n  \
                    - [ sysctl, -w, \"c.d=1\" ]\n  - [ sh, -c, \"echo 1, 2 > /proc/y\" ]\n  - cat /proc/z\n";
        let (sure, may): (Vec<String>, Vec<String>) =
            told(effects_of_data(text, None)).into_iter().partition(|line| !line.starts_with('?'));
        assert_eq!(sure, ["a.b", "/proc/x", "c.d", "/proc/y"]);
        assert!(!may.iter().any(|line| line.contains("/proc/z")), "{may:?}");
        assert_eq!(told(effects_of_data("#!/bin/sh\nsysctl -w a.b=1\n", None)), ["a.b"]);
    }

    #[test]
    fn values_of_other_boot_tools_are_found() {
        let text = "# a = b\nkernel/mm/t/enabled = always\nmode kernel/x = 0660\n/sys/block/sda/y=1\n";
        assert_eq!(told(effects_of_sysfs(text)), ["/sys/kernel/mm/t/enabled", "/sys/block/sda/y"]);
        let governor = ["/sys/devices/system/cpu/*/cpufreq/scaling_governor"];
        for text in [
            "ENABLE=\"true\"\nGOVERNOR=\"performance\"\nMAX_SPEED=\"0\"\n",
            "CPUPOWER_START_OPTS=\"frequency-set -g performance\"\n",
            "CPUPOWER_START_OPTS='frequency-set --governor=performance'\n",
            "governor='performance'\n#min_freq=1\n",
        ] {
            assert_eq!(told(effects_of_frequency(text)), governor, "{text}");
        }
        assert_eq!(told(effects_of_frequency("ENABLE=false\nGOVERNOR=x\n")), [""; 0]);
    }

    proptest! {
        #[test]
        fn odd_text_is_passed_over(text in "[\\PC\n '\"\\[\\],:%@*-]{0,200}") {
            let _ = effects_of_data(&text, None);
            let _ = effects_of_table(&text, true, None);
            let _ = crate::unit::effects(&text, None);
        }
    }
}
