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
/// `bootcmd: [ sh, -c, .. ]`, and blocks (`- |`) of which each is one script. What else a line names may be set.
#[must_use]
pub fn effects_of_data(text: &str, ask: Option<Ask<'_>>) -> Vec<Effect> {
    if text.starts_with("#!") || text.starts_with("#cloud-boothook") {
        return effects(text, ask);
    }
    effects_of(ran_by_data(text).into_iter().map(|what| Run::new(what, true)), ask)
}

/// What lines of YAML have run.
fn ran_by_data(text: &str) -> Vec<Ran> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut rest, mut ran) = (lines.as_slice(), Vec::new());
    while let Some((line, behind)) = rest.split_first() {
        rest = behind;
        let Some(block) = Block::of(line) else {
            ran.extend(of_line(line));
            continue;
        };
        let (own, behind) = behind.split_at(block.count(behind));
        rest = behind;
        let script = block.text(own);
        // Not all that stands in one is for a shell.
        match parse(&script).broken {
            None => ran.push(Ran::Script(script)),
            Some(_) => ran.extend(own.iter().flat_map(|line| of_line(line))),
        }
    }
    ran
}

fn of_line(line: &str) -> Vec<Ran> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') { Vec::new() } else { commands(line) }
}

/// The head of a block of YAML, whose lines stand below it: `- |`, `content: >-`, `- |2`.
struct Block {
    /// The column of what the block belongs to: its lines stand behind that.
    column: usize,
    /// Ends of its lines are blanks (`>`).
    is_folded: bool,
    /// How much deeper its lines begin, where that is told; else as deep as the first one.
    deeper: Option<usize>,
}

impl Block {
    fn of(line: &str) -> Option<Self> {
        let mut bare = line.split_once(" #").map_or(line, |(bare, _)| bare).trim();
        let (mut column, mut is_item) = (indent(line), false);
        while let Some(rest) = bare.strip_prefix("- ") {
            let inner = rest.trim_start();
            // A key in an item begins where it stands, while an item alone does so at its sign.
            column += if is_head(inner) { 0 } else { bare.len() - inner.len() };
            (bare, is_item) = (inner, true);
        }
        let head = match bare.rsplit_once(": ") {
            Some((key, head)) if is_key(unquoted(key)) => head.trim_start(),
            None if is_item => bare,
            _ => return None,
        };
        let deeper = head.bytes().find(u8::is_ascii_digit).map(|digit| usize::from(digit - b'0'));
        is_head(head).then(|| Self { column, is_folded: head.starts_with('>'), deeper })
    }

    /// How many lines are of the block.
    fn count(&self, lines: &[&str]) -> usize {
        let is_of = |line: &&&str| line.trim().is_empty() || indent(line) > self.column;
        lines.iter().take_while(is_of).count()
    }

    /// What the lines of the block say.
    fn text(&self, lines: &[&str]) -> String {
        let first = lines.iter().find(|line| !line.trim().is_empty());
        let told = self.deeper.map(|deeper| self.column + deeper);
        let begin = told.or(first.map(|line| indent(line))).unwrap_or_default();
        let (mut text, mut is_joined) = (String::new(), false);
        for line in lines {
            let line = line.get(begin.min(indent(line))..).unwrap_or_default().trim_end();
            // An empty line, and one that begins deeper than the others, is not joined to what is beside it.
            let joins = self.is_folded && !line.is_empty() && !line.starts_with([' ', '\t']);
            if !text.is_empty() {
                text.push(if is_joined && joins { ' ' } else { '\n' });
            }
            text.push_str(line);
            is_joined = joins;
        }
        text
    }
}

/// Whether a word begins a block: `|` or `>`, and how its lines begin and end.
fn is_head(word: &str) -> bool {
    word.strip_prefix(['|', '>'])
        .is_some_and(|signs| signs.len() < 3 && signs.chars().all(|c| "+-123456789".contains(c)))
}

/// The column in which a line begins.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_key(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
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
/// `frequency-set -g performance`. Each is an option of that program.
#[must_use]
pub fn effects_of_frequency(text: &str) -> Vec<Effect> {
    let lines = text.lines().map(str::trim).filter_map(|line| line.split_once('='));
    let lines: Vec<(String, &str)> =
        lines.map(|(name, value)| (name.to_ascii_uppercase(), unquoted(value.trim()))).collect();
    if lines.iter().any(|(name, value)| name == "ENABLE" && *value != "true") {
        return Vec::new();
    }
    let set = lines.iter().filter(|(_, value)| !value.is_empty()).filter_map(|(name, value)| {
        let options = match name.as_str() {
            name if name.ends_with("_OPTS") => "",
            "GOVERNOR" => "frequency-set -g",
            // No speed is told.
            "MIN_SPEED" | "MIN_FREQ" | "MAX_SPEED" | "MAX_FREQ" if *value == "0" => return None,
            "MIN_SPEED" | "MIN_FREQ" => "frequency-set -d",
            "MAX_SPEED" | "MAX_FREQ" => "frequency-set -u",
            "PERF_BIAS" => "set -b",
            _ => return None,
        };
        let words =
            ["cpupower"].into_iter().chain(options.split_whitespace()).chain(value.split_whitespace());
        Some(Run::new(Ran::Words(words.map(str::to_owned).collect()), true))
    });
    effects_of(set, None)
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

    /// What data is sure to write.
    fn sure(data: &str) -> Vec<String> {
        told(effects_of_data(data, None)).into_iter().filter(|line| !line.starts_with('?')).collect()
    }

    #[test]
    fn a_block_of_several_lines_is_one_script() {
        let loop_of = "for d in /proc/a /proc/b; do\n  echo 1 > $d/x\ndone\n";
        let block = |head: &str, by: usize, text: &str| {
            let lines = text.lines().map(|line| format!("{}{line}\n", " ".repeat(by)));
            format!("#cloud-config\nruncmd:\n{head}\n{}  - echo 2 > /proc/z\n", lines.collect::<String>())
        };
        for (head, by) in [
            ("  - |", 4),
            ("  - |-  # the loop", 4),
            ("  - |", 3),
            ("  - |2", 4),
            ("  - >", 4),
            ("  -   |+", 8),
            ("  - - |", 6),
            ("  - content: |", 6),
            ("  \"content\": |-", 4),
        ] {
            let found = sure(&block(head, by, loop_of));
            assert_eq!(found, ["/proc/a/x", "/proc/b/x", "/proc/z"], "{head}");
        }
        // A variable of one line counts in the next, and an end of the script is one of the block alone.
        let text = "D=/proc/a\n\n# echo 1 > /proc/no\necho 1 > $D\nexit 0\necho 1 > /proc/no\n";
        assert_eq!(sure(&block("  - |", 4, text)), ["/proc/a", "/proc/z"]);
        // Ends of lines are blanks, but not beside one that begins deeper.
        let folded = |text: &str| Block::of("- >").expect("a head").text(&text.lines().collect::<Vec<_>>());
        assert_eq!(folded("  a\n  b\n\n  c\n    d\n  e\n"), "a b\n\nc\n  d\ne");
    }

    #[test]
    fn what_is_no_block_is_read_line_by_line() {
        for line in
            ["- echo 1 > x", "cat x |", "- cat x |", "|", "a: b |", "- >x", "- |23x", "a b: |", "- a", ""]
        {
            assert!(Block::of(line).is_none(), "{line}");
        }
        // None for a shell, and one without lines.
        let text = "write_files:\n- content: |\n    if x {\n    echo 1 > /proc/x\n  path: /etc/x\n\
                    runcmd:\n- |\n- echo 1 > /proc/y\n";
        assert_eq!(sure(text), ["/proc/x", "/proc/y"]);
    }

    #[test]
    fn values_of_other_boot_tools_are_found() {
        let text = "# a = b\nkernel/mm/t/enabled = always\nmode kernel/x = 0660\n/sys/block/sda/y=1\n";
        assert_eq!(told(effects_of_sysfs(text)), ["/sys/kernel/mm/t/enabled", "/sys/block/sda/y"]);
        let governor = ["/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"];
        for text in [
            "ENABLE=\"true\"\nGOVERNOR=\"performance\"\nMAX_SPEED=\"0\"\n",
            "CPUPOWER_START_OPTS=\"frequency-set -g performance\"\n",
            "CPUPOWER_START_OPTS='frequency-set --governor=performance'\n",
            "governor='performance'\n#min_freq=1\n",
        ] {
            assert_eq!(told(effects_of_frequency(text)), governor, "{text}");
        }
        assert_eq!(told(effects_of_frequency("ENABLE=false\nGOVERNOR=x\n")), [""; 0]);
        let bias = ["/sys/devices/system/cpu/cpu*/power/energy_perf_bias"];
        assert_eq!(told(effects_of_frequency("perf_bias=0\n")), bias, "it is the fastest");
    }

    proptest! {
        #[test]
        fn odd_text_is_passed_over(text in "([\\PC\n '\"\\[\\],:%@*-]|- [|>][+-]?[1-9]?\n {0,3}){0,200}") {
            let _ = effects_of_data(&text, None);
            let _ = effects_of_table(&text, true, None);
            let _ = crate::unit::effects(&text, None);
        }
    }
}
