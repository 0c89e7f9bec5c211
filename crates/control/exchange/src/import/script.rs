//! A shell script, as far as it sets values by plain lines: `sysctl -w`, `echo VALUE > FILE`, `echo VALUE | tee FILE`,
//! and loops over words around them.
//!
//! Nothing is run. Words of a loop and plain assignments are put in for their variables; what would need a shell (a
//! command substitution, a condition, another program) is refused.

use std::collections::BTreeMap;

use super::collect::Collector;
use super::drop_in;
use crate::threads;
use planish_model::{cards, mounts};

/// Statements that the loops around one line may come to: no tuning script has more, and a hostile one must end.
const EXPANSIONS_MAX: usize = 4096;

/// A loop that is open, or a block that is.
struct Block {
    /// The variable and its words, for a loop over words.
    words: Option<(String, Vec<String>)>,
}

/// What is known of the script at a line.
#[derive(Default)]
struct Shell {
    variables: BTreeMap<String, String>,
    blocks: Vec<Block>,
}

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    let mut shell = Shell::default();
    for (number, line) in logical_lines(text) {
        for statement in statements(&line) {
            shell.statement(number, statement.trim(), collector);
        }
    }
}

/// Programs whose lines are read, or refused for what they are known to do.
const KNOWN: [&str; 16] = [
    "blockdev",
    "chrt",
    "cpupower",
    "echo",
    "ethtool",
    "ip",
    "mkdir",
    "mount",
    "printf",
    "service",
    "swapoff",
    "swapon",
    "sysctl",
    "systemctl",
    "tc",
    "ulimit",
];

/// A program without the folder that rc.local and crontabs name it by. What lies elsewhere may be anything.
fn program(word: &str) -> &str {
    let folders = ["/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"];
    let bare = folders.iter().find_map(|folder| word.strip_prefix(folder));
    bare.filter(|name| !name.contains('/')).unwrap_or(word)
}

/// A command without `sudo` and without the folders of both.
fn plain_command(text: &str) -> String {
    let mut bare = text.trim();
    while let Some((first, rest)) = bare.split_once(char::is_whitespace) {
        if program(first) != "sudo" {
            return format!("{} {}", program(first), rest.trim_start());
        }
        bare = rest.trim_start();
    }
    program(bare).to_owned()
}

/// Whether a line begins as no file but a script does.
pub(super) fn is_command_of_one(line: &str) -> bool {
    let bare = plain_command(line);
    let Some((first, _)) = bare.split_once(' ') else { return false };
    KNOWN.contains(&first)
        || ["for", "if", "[", "[[", "set", "while"].contains(&first)
        || line.starts_with("sudo ")
}

/// Whether a line says something that is understood, be it refused: a program that is known, a loop or a condition, a
/// variable.
pub(super) fn is_known(line: &str) -> bool {
    let is_known = |statement: &str| {
        let bare = plain_command(statement.trim().trim_start_matches("do "));
        let first = bare.split_whitespace().next().unwrap_or_default();
        KNOWN.contains(&first)
            || ["for", "while", "until", "if", "case"].contains(&first)
            || first.split_once('=').is_some_and(|(name, _)| is_name(name))
    };
    statements(line)
        .into_iter()
        .flat_map(|part| part.split("&&"))
        .flat_map(|part| part.split("||"))
        .any(is_known)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Lines with their numbers; one that ends in a backslash goes on in the next.
pub(super) fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let continued = line.strip_suffix('\\');
        let part = continued.unwrap_or(line);
        match lines.last_mut().filter(|_| open) {
            Some((_, whole)) => *whole += part,
            None => lines.push((index + 1, part.to_owned())),
        }
        open = continued.is_some();
    }
    lines
}

/// The statements of a line: apart at `;` outside of quotes, up to a comment.
fn statements(line: &str) -> Vec<&str> {
    let (mut from, mut quote, mut before) = (0, None, ' ');
    let mut found = Vec::new();
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') if before.is_whitespace() => {
                found.push(&line[from..at]);
                return found;
            }
            (None, ';') => {
                found.push(&line[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    found.push(&line[from..]);
    found
}

impl Shell {
    fn statement(&mut self, line: usize, text: &str, collector: &mut Collector<'_>) {
        let text = text.strip_prefix("do ").unwrap_or(text).trim();
        match text.split_whitespace().next().unwrap_or_default() {
            "" | "do" | "set" | "exit" | "true" | ":" => {}
            "for" => self.open_loop(line, text, collector),
            "while" | "until" | "if" | "case" => {
                self.blocks.push(Block { words: None });
                collector.refuse(line, text, "a condition: what it does depends on the host");
            }
            "done" | "fi" | "esac" => drop(self.blocks.pop()),
            "then" | "else" | "elif" => {}
            _ if self.blocks.iter().any(|block| block.words.is_none()) => {
                collector.refuse(line, text, "inside a condition or a loop that depends on the host");
            }
            _ if self.assign(text) => {}
            _ => self.expand(line, text, collector),
        }
    }

    /// `for place in /sys/block/sd*/queue/scheduler`: over words, or over what only a shell can tell.
    fn open_loop(&mut self, line: usize, text: &str, collector: &mut Collector<'_>) {
        let rest = text.strip_prefix("for ").unwrap_or_default().trim();
        if let Some((name, Some(threads))) =
            rest.split_once(" in ").map(|(name, words)| (name, threads::of_pgrep(words)))
        {
            let words = Some((name.trim().to_owned(), vec![threads]));
            return self.blocks.push(Block { words });
        }
        let words = rest.split_once(" in ").filter(|(_, words)| !words.contains(['$', '`', '(']));
        let words = words.map(|(name, words)| {
            (name.trim().to_owned(), words.split_whitespace().map(|word| unquoted(word).to_owned()).collect())
        });
        if words.is_none() {
            collector.refuse(line, text, "a loop over what only a shell can tell");
        }
        self.blocks.push(Block { words });
    }

    /// `name=value` with a plain value.
    fn assign(&mut self, text: &str) -> bool {
        let Some((name, value)) = text.split_once('=') else { return false };
        if !is_name(name) || value.contains(['$', '`', '(', ' ']) {
            return false;
        }
        self.variables.insert(name.to_owned(), unquoted(value).to_owned());
        true
    }

    /// The statement once for each word of the loops around it whose variable it names.
    fn expand(&self, line: usize, text: &str, collector: &mut Collector<'_>) {
        let mut texts = vec![text.to_owned()];
        for (name, words) in self.blocks.iter().filter_map(|block| block.words.as_ref()) {
            if texts.len().saturating_mul(words.len()) > EXPANSIONS_MAX {
                return collector.refuse(line, text, "loops over more words than any script of settings has");
            }
            if texts.iter().any(|text| names(text, name)) {
                let each = |text: String| words.iter().map(move |word| put_in(&text, name, word));
                texts = texts.into_iter().flat_map(each).collect();
            }
        }
        for text in texts {
            let text = self.variables.iter().fold(text, |text, (name, value)| put_in(&text, name, value));
            command(line, &text, collector);
        }
    }
}

fn names(text: &str, name: &str) -> bool {
    put_in(text, name, "") != text
}

/// `$name`, `${name}` and `${name##*/}`, what follows its last slash, replaced by a value.
fn put_in(text: &str, name: &str, value: &str) -> String {
    let last = value.rsplit('/').next().unwrap_or_default();
    let text = &text.replace(&format!("${{{name}##*/}}"), last);
    let text = text.replace(&format!("${{{name}}}"), value);
    let pattern = format!("${name}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(&pattern) {
        let after = &rest[at + pattern.len()..];
        let longer = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        out += &rest[..at];
        out += if longer { &pattern } else { value };
        rest = after;
    }
    out + rest
}

/// One line of commands without variables that are known: those that do something, without their guards.
fn command(line: usize, text: &str, collector: &mut Collector<'_>) {
    let parts: Vec<&str> = text.split("&&").flat_map(|part| part.split("||")).map(str::trim).collect();
    let doing: Vec<&str> = parts.iter().copied().filter(|part| !is_guard(part)).collect();
    match doing.as_slice() {
        [] if text.contains("echo ") => collector.refuse(line, text, "only talks"),
        [] => {}
        [one] => single(line, text, one, collector),
        _ if text.contains("||") => {
            collector.refuse(line, text, "one of several commands: which, a shell tells")
        }
        several => several.iter().for_each(|one| single(line, one, one, collector)),
    }
}

/// A test, a word of the shell, or a message: what stands around the command that counts.
fn is_guard(part: &str) -> bool {
    let part = part.strip_prefix("! ").unwrap_or(part);
    let first = program(part.split_whitespace().next().unwrap_or_default());
    let talk = first == "echo" && !part.contains(['>', '|']);
    let assignment = part.split_once('=').is_some_and(|(name, value)| is_name(name) && !value.contains(' '));
    talk || assignment
        || ["", "[", "[[", "test", "mountpoint", "true", ":", "exit", "continue", "break"].contains(&first)
}

/// One command, what becomes of its messages left out.
fn single(line: usize, text: &str, command: &str, collector: &mut Collector<'_>) {
    let bare = ["2>/dev/null", "2> /dev/null", "2>&1", ">/dev/null", "> /dev/null"]
        .iter()
        .fold(command.to_owned(), |text, talk| text.replace(talk, ""));
    let bare = plain_command(&bare);
    let bare = bare.as_str();
    if bare.contains(['$', '`']) {
        return collector.refuse(line, text, "a variable or command that only a shell can tell");
    }
    let words: Vec<&str> = bare.split_whitespace().collect();
    match words.first().copied().unwrap_or_default() {
        "sysctl" => sysctl(line, text, &bare["sysctl".len()..], collector),
        "echo" | "printf" => echo(line, text, bare, collector),
        "cpupower" if words.get(1) == Some(&"frequency-set") => match words.as_slice() {
            [.., "-g" | "--governor", governor] => collector.knob(line, text, "cpu.governor", None, governor),
            _ => collector.refuse(line, text, "only cpupower frequency-set -g GOVERNOR is known"),
        },
        "ethtool" => ethtool(line, text, bare, collector),
        "chrt" => match threads::of_chrt(&words) {
            Ok((id, only, value)) => collector.knob(line, text, id, only.as_deref(), &value),
            Err(why) => collector.refuse(line, text, why),
        },
        "tc" | "ip" => collector.refuse(line, text, "an interface that planish does not set"),
        "mkdir" if drop_in::makes_folder(&words) => {}
        "systemctl" if drop_in::reloads(&words) => {}
        "systemctl" | "service" => collector.refuse(line, text, "starts or stops a service"),
        "mount" => mount(line, text, bare, collector),
        "swapoff" | "swapon" => collector.refuse(line, text, "turns swap on or off"),
        "blockdev" => blockdev(line, text, &words[1..], collector),
        "ulimit" => collector.refuse(
            line,
            text,
            "a limit of this shell and of what it starts: of a service it is a knob such as unit.nofile",
        ),
        other => collector.refuse(line, text, unknown(other)),
    }
}

/// Why a program is refused that nothing is known of.
fn unknown(program: &str) -> String {
    if program.contains('/') {
        return "a program or script of its own: what it sets is in that file".to_owned();
    }
    format!(
        "of `{program}` planish does not know what it sets; read are sysctl, echo, tee, printf, ethtool, blockdev, \
             chrt, cpupower and mount -o remount"
    )
}

/// `blockdev --setra 4096 /dev/sda`, in sectors of 512 bytes whatever the disk has (`BLKRASET`).
fn blockdev(line: usize, text: &str, words: &[&str], collector: &mut Collector<'_>) {
    let [given, sectors, devices @ ..] = words else { return collector.refuse(line, text, "sets nothing") };
    if *given != "--setra" {
        return collector.refuse(line, text, "of blockdev only --setra is known");
    }
    // The kernel keeps whole pages of it, and rounds down.
    let Some(kib) = sectors.parse::<u64>().ok().filter(|sectors| sectors % 8 == 0).map(|sectors| sectors / 2)
    else {
        return collector.refuse(line, text, format!("`{sectors}` sectors of 512 bytes are no whole pages"));
    };
    if devices.is_empty() {
        return collector.refuse(line, text, "names no disk");
    }
    for device in devices {
        let told = format!("blockdev --setra {sectors} {device}");
        match device
            .strip_prefix("/dev/")
            .filter(|name| !name.contains(['/', '[', '{', '=']) && !is_partition(name))
        {
            Some(disk) => collector.knob(line, &told, "block.read_ahead_kb", Some(disk), &kib.to_string()),
            None => collector.refuse(line, &told, "names no disk as /sys/block has it, such as /dev/sda"),
        }
    }
}

/// Whether a name of a device is that of a part of a disk: `sda1`, `nvme0n1p1`.
fn is_partition(name: &str) -> bool {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_numbered = bare.len() < name.len();
    let of_letters = ["sd", "vd", "xvd", "hd"].iter().any(|kind| {
        bare.strip_prefix(kind)
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_lowercase()))
    });
    let before = bare.strip_suffix('p').filter(|disk| disk.ends_with(|c: char| c.is_ascii_digit()));
    is_numbered && (of_letters || before.is_some())
}

/// `sysctl -w a.b=1 c.d="2 3"`.
fn sysctl(line: usize, text: &str, rest: &str, collector: &mut Collector<'_>) {
    // Where its output goes, and what comes behind it, is none of it.
    let ends = |word: &String| {
        word.starts_with(['|', '&', '>']) || ["1>", "2>"].iter().any(|stream| word.starts_with(stream))
    };
    let words: Vec<String> = quoted_words(rest).into_iter().take_while(|word| !ends(word)).collect();
    let mut settings = 0;
    // `sysctl -w vm.swappiness = 3` sets nothing, and `tcp_rmem=4096 87380` the first of its numbers.
    let is_key = |word: &String| word.split_once('=').is_some_and(|(key, _)| !key.is_empty());
    let is_odd = |word: &&String| !word.starts_with('-') && !is_key(word);
    if let Some(odd) = words.iter().find(is_odd).filter(|_| words.iter().any(|word| word.contains('='))) {
        let why = format!("sysctl takes `name=value` as one word, or in quotes: `{odd}` is none");
        return collector.refuse(line, text, why);
    }
    for word in words {
        if word.starts_with('-') {
            if ["-p", "--load", "--system"].iter().any(|load| word.starts_with(load)) {
                return collector.refuse(line, text, "reads other files: import those");
            }
            continue;
        }
        if let Some((key, value)) = word.split_once('=') {
            collector.sysctl(line, key.trim(), value.trim());
            settings += 1;
        }
    }
    if settings == 0 {
        collector.refuse(line, text, "sets nothing");
    }
}

/// `ethtool -G eth0 rx 4096 tx 4096`.
fn ethtool(line: usize, text: &str, bare: &str, collector: &mut Collector<'_>) {
    let words = quoted_words(bare);
    let (Some(given), Some(card)) = (words.get(1), words.get(2)) else {
        return collector.refuse(line, text, "sets nothing");
    };
    let Some(option) = cards::option(given) else {
        return collector.refuse(line, text, "of ethtool only -A, -C, -G, -K and -L are known");
    };
    let told = format!("ethtool {option} {card}");
    collector.cards(line, &told, option, std::slice::from_ref(card), &words[3..]);
}

/// `mount -o remount,noatime /data`: each option that a knob is for. Nothing else is taken of it: what a remount names
/// besides stays as it is, or is lost by it.
fn mount(line: usize, text: &str, bare: &str, collector: &mut Collector<'_>) {
    let words = quoted_words(bare);
    let (mut options, mut points, mut rest) = (Vec::new(), Vec::new(), words.iter().skip(1));
    while let Some(word) = rest.next() {
        if word.starts_with(['|', '&', '>']) || word.starts_with("1>") || word.starts_with("2>") {
            break;
        }
        match word.as_str() {
            "-o" | "--options" => options.extend(rest.next().into_iter().flat_map(|given| given.split(','))),
            "-t" | "--types" | "--options-source" => drop(rest.next()),
            word => match word.strip_prefix("-o").or_else(|| word.strip_prefix("--options=")) {
                Some(given) => options.extend(given.split(',')),
                None if word.starts_with('-') => {}
                None => points.push(word),
            },
        }
    }
    if !options.contains(&"remount") {
        return collector.refuse(line, text, "mounts: planish changes options of mounts that are there");
    }
    let Some(point) = points.last().filter(|point| point.starts_with('/')) else {
        return collector.refuse(line, text, "names no mount by its path");
    };
    let point = if point.len() > 1 { point.trim_end_matches('/') } else { point };
    let mut any = false;
    for option in options.into_iter().filter(|option| !["remount", "bind", "rw"].contains(option)) {
        any = true;
        let told = format!("mount -o remount,{option} {point}");
        match mounts::setting(option) {
            Some((knob, value)) => collector.knob(line, &told, knob, Some(point), value),
            None => collector.refuse(line, &told, "an option of mounts that no knob is for"),
        }
    }
    if !any {
        collector.refuse(line, text, "sets nothing");
    }
}

/// `echo VALUE > FILE`, `echo VALUE | tee FILE`, `printf '%s\n' VALUE > FILE`.
fn echo(line: usize, text: &str, bare: &str, collector: &mut Collector<'_>) {
    if bare.contains(">>") || bare.contains("tee -a") {
        return collector.refuse(line, text, "appends to a file: import that one");
    }
    let parts = bare.rsplit_once('>').map(|(value, path)| (value, path.to_owned())).or_else(|| {
        let (value, tee) = bare.rsplit_once('|')?;
        Some((value, plain_command(tee).strip_prefix("tee ")?.to_owned()))
    });
    let Some((value, path)) = parts else {
        return collector.refuse(line, text, "only talks");
    };
    let path = unquoted(path.trim());
    if drop_in::is_one(path) {
        return drop_in::written(line, path, &quoted_words(value), collector);
    }
    if !(path.starts_with("/proc/") || path.starts_with("/sys/") || path.starts_with("/dev/")) {
        return collector.refuse(line, text, "writes to a file that is none of the kernel's");
    }
    let mut words = quoted_words(value).into_iter().skip(1).peekable();
    while words.next_if(|word| word == "-n" || word == "-e" || word.contains("%s")).is_some() {}
    let value: Vec<String> = words.collect();
    collector.path(line, path, value.join(" ").trim());
}

/// Words as a shell takes them: quotes hold blanks together and fall away.
pub(super) fn quoted_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut any) = (Vec::new(), String::new(), None, false);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => (quote, any) = (Some(c), true),
            (None, c) if c.is_whitespace() => {
                if any || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            (None, c) => word.push(c),
        }
    }
    if any || !word.is_empty() {
        words.push(word);
    }
    words
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}
