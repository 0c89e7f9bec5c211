//! A shell script, as far as it sets values by programs that are known: `sysctl -w`, `echo VALUE > FILE`, `ethtool` and
//! their like. Nothing is run: what a shell would come by, and with which words, `shell` tells.

use super::collect::Collector;
use super::shell::{Field, Place, Plain, walk};
use super::{arguments, written};
use crate::threads;
use planish_model::{cards, mounts, place};

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    let foreign = text.split('\n').enumerate().find(|(_, line)| line.ends_with('\r'));
    if let Some((index, line)) = foreign {
        let why =
            "has the line ends of another system, which a shell takes for a part of the last word: dos2unix";
        return collector.refuse(index + 1, line.trim_end(), why);
    }
    walk(text, collector);
    written::read(collector);
    // Variables are no settings, and a text of nothing else is hardly meant as a script.
    let plain = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let is_variable = |line: &str| line.split_once('=').is_some_and(|(name, _)| is_name(name.trim()));
    let lines = || text.lines().filter(plain);
    if collector.count() == 0 && lines().next().is_some() && lines().all(is_variable) {
        let (index, line) = text.lines().enumerate().find(|(_, line)| plain(line)).unwrap_or_default();
        collector.refuse(
            index + 1,
            line.trim(),
            "a variable of a shell, which sets nothing, nor does any other line",
        );
    }
}

/// Programs whose lines are read, or refused for what they are known to do.
const KNOWN: [&str; 17] = [
    "blockdev",
    "chrt",
    "cpupower",
    "echo",
    "ethtool",
    "grubby",
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

/// Whether a program sets what its words say, and changes no other file.
pub(super) fn sets_by_its_words(name: &str) -> bool {
    KNOWN.contains(&name)
}

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

/// Words without the folder of their program, and without `sudo` and what else only changes how it is run.
pub(super) fn bare(mut words: Vec<Field>) -> Vec<Field> {
    loop {
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let Some(first) = texts.first().map(|first| program(first)) else { return words };
        let is_one = |options: &[&str], word: &str| options.contains(&word);
        let skipped = match (first, &texts[1..]) {
            ("sudo" | "doas", rest) => {
                let options = ["-n", "-E", "-H", "-S", "-b", "-k", "--"];
                let skipped = rest.iter().take_while(|word| is_one(&options, word)).count();
                let is_root = rest.get(skipped..skipped + 2) == Some(&["-u", "root"]);
                1 + skipped + if is_root { 2 } else { 0 }
            }
            ("env", rest) => 1 + rest.iter().take_while(|word| word.contains('=')).count(),
            ("nice" | "ionice", ["-n" | "-c", _, ..]) => 3,
            ("nice" | "ionice", [option, ..]) if option.starts_with('-') => 2,
            ("nice" | "nohup" | "time", _) => 1,
            ("command", [next, ..]) if !next.starts_with('-') => 1,
            _ => 0,
        };
        // What comes then is an option that says who runs it, or nothing.
        let is_plain = texts.get(skipped).is_some_and(|word| !word.starts_with('-'));
        if skipped == 0 || !is_plain {
            let bare = first.to_owned();
            words[0].text = bare;
            return words;
        }
        words.drain(..skipped);
    }
}

/// Whether a program sets or does something, and asks nothing: a script is written for it to succeed.
pub(super) fn is_doing(words: &[&str]) -> bool {
    const DOING: [&str; 36] = [
        "awk",
        "basename",
        "cat",
        "chmod",
        "chown",
        "chrt",
        "cp",
        "cut",
        "date",
        "dirname",
        "echo",
        "free",
        "getconf",
        "grubby",
        "hostname",
        "id",
        "ln",
        "logger",
        "lscpu",
        "mkdir",
        "modprobe",
        "mount",
        "mv",
        "nproc",
        "printf",
        "rm",
        "sed",
        "sleep",
        "swapoff",
        "swapon",
        "sync",
        "systemd-tmpfiles",
        "touch",
        "tuned-adm",
        "udevadm",
        "uname",
    ];
    let Some((first, rest)) = words.split_first() else { return false };
    match program(first) {
        "sysctl" => {
            rest.iter().any(|word| word.contains('=') || word.starts_with("-p") || *word == "--system")
        }
        "systemctl" => {
            let verbs = [
                "daemon-reload",
                "disable",
                "enable",
                "mask",
                "reload",
                "restart",
                "start",
                "stop",
                "unmask",
            ];
            rest.iter().any(|word| verbs.contains(word))
        }
        "service" => rest.iter().any(|word| ["reload", "restart", "start", "stop"].contains(word)),
        "ethtool" => rest.first().is_some_and(|option| cards::option(option).is_some()),
        "blockdev" => rest.first().is_some_and(|option| option.starts_with("--set")),
        "ulimit" => rest.iter().any(|word| !word.starts_with('-')),
        "cpupower" => rest.contains(&"frequency-set"),
        "ip" | "tc" => rest.iter().any(|word| ["set", "add", "replace", "change", "del"].contains(word)),
        first => DOING.contains(&first),
    }
}

/// The places that a command sets; `None` where its words do not tell them.
pub(super) fn places(plain: &Plain<'_>) -> Option<Vec<Place>> {
    let words: Vec<&str> = plain.words.iter().map(|word| word.text.as_str()).collect();
    let path = |path: &str| Place::File(path.trim_end_matches('/').to_owned());
    Some(match words[0] {
        "sysctl" => {
            let keys = words.iter().filter_map(|word| word.split_once('='));
            keys.map(|(key, _)| path(&place::of_sysctl(key.trim()))).collect()
        }
        // A file that is not there is made: who asks whether it is asks for more than the folder.
        "cat" | "echo" | "printf" => {
            let above = |to: &'_ str| to.rsplit_once('/').map_or("/", |(above, _)| above).to_owned();
            let place = |to: &str| match written::reader_of(to) {
                Some(_) => Place::File(above(to)),
                None => path(to),
            };
            plain.to.iter().map(|to| place(&to.text)).collect()
        }
        "ethtool" => vec![path(&format!("/sys/class/net/{}/device", words.get(2)?))],
        "ip" => vec![path(&format!("/sys/class/net/{}", interface(&words)?.0))],
        "blockdev" => words.iter().skip(3).map(|device| path(device)).collect(),
        "chrt" => vec![path(words.last()?)],
        "mkdir" => {
            words.iter().skip(1).filter(|word| !word.starts_with('-')).map(|word| path(word)).collect()
        }
        "mount" => vec![Place::Mount(super::shell::bare_path(words.last()?))],
        // It sets nothing by itself.
        "systemctl" => Vec::new(),
        _ => return None,
    })
}

/// Reads one command; whether all of it became values.
pub(super) fn program_line(plain: &Plain<'_>, is_bash: bool, collector: &mut Collector<'_>) -> bool {
    let words: Vec<String> = plain.words.iter().map(|word| word.text.clone()).collect();
    if plain.document.is_some() {
        return document(plain, collector);
    }
    if let ("echo" | "printf", [to]) = (words[0].as_str(), plain.to.as_slice())
        && written::reader_of(&to.text).is_some()
    {
        let is_named = plain.words.iter().any(names_files);
        let said = if is_named { Err(NAMES) } else { written::said(plain.line, &words) };
        return written::write(plain.line, &to.text, said, plain.appends, collector);
    }
    let before = collector.count();
    single(plain, is_bash, collector);
    collector.all_accepted(before)
}

/// `cpupower frequency-set`: a governor. What it sets besides is told by itself.
fn cpupower(plain: &Plain<'_>, words: &[&str], collector: &mut Collector<'_>) {
    const KNOWN: &str = "of cpupower only frequency-set -g GOVERNOR is known";
    let (line, text) = (plain.line, plain.text);
    // That is what it does without.
    let of_all = |words: &[&str]| matches!(words, ["-c" | "--cpu", "all", ..]);
    let words = if of_all(words) { &words[2..] } else { words };
    match words {
        ["frequency-set", given @ ..] if !given.is_empty() && given.len().is_multiple_of(2) => {
            for pair in given.chunks(2) {
                match pair {
                    ["-g" | "--governor", governor] => {
                        collector.knob(line, text, "cpu.governor", None, governor);
                    }
                    _ => collector.refuse(line, &format!("cpupower frequency-set {}", pair.join(" ")), KNOWN),
                }
            }
        }
        _ => collector.refuse(line, text, KNOWN),
    }
}

fn single(plain: &Plain<'_>, is_bash: bool, collector: &mut Collector<'_>) {
    let (line, text) = (plain.line, plain.text);
    let words: Vec<&str> = plain.words.iter().map(|word| word.text.as_str()).collect();
    match words.first().copied().unwrap_or_default() {
        "echo" | "printf" => echo(plain, is_bash, collector),
        // What they say goes to a place in another form than the words have.
        _ if plain.to.iter().any(|to| is_of_kernel(&to.text) && to.text != "/dev/null") => {
            collector.refuse(line, text, "writes what it says to a place: only a shell can tell")
        }
        _ if written::reloads(&words, &collector.written) => {}
        "systemd-tmpfiles" => collector.refuse(line, text, OTHER_FILES),
        "sysctl" => sysctl(plain, collector),
        "cpupower" => cpupower(plain, &words[1..], collector),
        "ethtool" => ethtool(plain, collector),
        "grubby" if plain.words.iter().any(names_files) => collector.refuse(line, text, NAMES),
        "grubby" => {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            arguments::grubby(&words, line, text, collector);
        }
        "chrt" => match threads::of_chrt(&words) {
            Ok((id, only, value)) => collector.knob(line, text, id, only.as_deref(), &value),
            Err(why) => collector.refuse(line, text, why),
        },
        "ip" => ip(plain, collector),
        "tc" => collector.refuse(line, text, "a queue of an interface, which planish does not set"),
        "mkdir" if written::makes_folder(&words) => {}
        "systemctl" | "service" => collector.refuse(line, text, "starts or stops a service"),
        "mount" => mount(line, text, &words, collector),
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

/// Why a program is refused that sets what stands in files.
pub(super) const OTHER_FILES: &str = "reads other files: import those";

/// Why a program is refused that nothing is known of.
fn unknown(program: &str) -> String {
    if program.contains('/') {
        return "a program or script of its own: what it sets is in that file".to_owned();
    }
    format!(
        "of `{program}` planish does not know what it sets; read are sysctl, echo, tee, printf, ethtool, blockdev, \
         chrt, cpupower, grubby and mount -o remount"
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
fn sysctl(plain: &Plain<'_>, collector: &mut Collector<'_>) {
    let (line, text) = (plain.line, plain.text);
    let words = &plain.words[1..];
    let mut settings = 0;
    // `sysctl -w vm.swappiness = 3` sets nothing, and `tcp_rmem=4096 87380` the first of its numbers.
    let is_key = |word: &Field| word.text.split_once('=').is_some_and(|(key, _)| !key.is_empty());
    let is_odd = |word: &&Field| !word.text.starts_with('-') && !is_key(word);
    if let Some(odd) = words.iter().find(is_odd).filter(|_| words.iter().any(|word| word.text.contains('=')))
    {
        let why = format!("sysctl takes `name=value` as one word, or in quotes: `{}` is none", odd.text);
        return collector.refuse(line, text, why);
    }
    for word in words.iter().filter(|word| word.text.starts_with('-')) {
        let option = word.text.as_str();
        if ["-p", "--load", "--system", "-f"].iter().any(|load| option.starts_with(load)) {
            return collector.refuse(line, text, OTHER_FILES);
        }
        if ["--dry-run", "--help", "--version", "-h", "-V", "-r", "--pattern", "-a", "-A", "-X", "--all"]
            .contains(&option)
        {
            return collector.refuse(line, text, format!("sets nothing, or other places: {option}"));
        }
    }
    for word in words.iter().filter(|word| !word.text.starts_with('-')) {
        let Some((key, value)) = word.text.split_once('=') else { continue };
        settings += 1;
        if word.is_pattern && value.contains(['*', '?', '[']) {
            collector.refuse(line, text, NAMES);
        } else {
            collector.sysctl(line, key.trim(), value.trim());
        }
    }
    if settings == 0 {
        collector.refuse(line, text, "sets nothing");
    }
}

/// Why a value is refused that is a name of a loop over files.
const NAMES: &str = "the names of files are values here, which only a shell can tell";

/// `ethtool -G eth0 rx 4096 tx 4096`.
fn ethtool(plain: &Plain<'_>, collector: &mut Collector<'_>) {
    let (line, text) = (plain.line, plain.text);
    let words: Vec<String> = plain.words.iter().map(|word| word.text.clone()).collect();
    let (Some(given), Some(card)) = (words.get(1), words.get(2)) else {
        return collector.refuse(line, text, "sets nothing");
    };
    let Some(option) = cards::option(given) else {
        return collector.refuse(line, text, "of ethtool only -A, -C, -G, -K and -L are known");
    };
    if plain.words[2].is_glob {
        return collector.refuse(line, text, "a shell puts in names of files, and ethtool takes one card");
    }
    let told = format!("ethtool {option} {card}");
    collector.cards(line, &told, option, std::slice::from_ref(card), &words[3..]);
}

/// The interface of `ip link set eth0 mtu 9000`, and the words after it.
fn interface<'w>(words: &'w [&'w str]) -> Option<(&'w str, &'w [&'w str])> {
    match words {
        [_, "link" | "l", "set" | "s", "dev", name, rest @ ..]
        | [_, "link" | "l", "set" | "s", name, rest @ ..] => Some((name, rest)),
        _ => None,
    }
}

fn ip(plain: &Plain<'_>, collector: &mut Collector<'_>) {
    let (line, text) = (plain.line, plain.text);
    let words: Vec<&str> = plain.words.iter().map(|word| word.text.as_str()).collect();
    let Some((name, mut rest)) = interface(&words).filter(|_| !plain.words.iter().any(names_files)) else {
        return collector.refuse(
            line,
            text,
            "of ip only `ip link set INTERFACE mtu N txqueuelen N` is known",
        );
    };
    while let [option, after @ ..] = rest {
        let id = match *option {
            "mtu" => "net.mtu",
            "txqueuelen" | "txqlen" | "qlen" => "net.tx_queue_len",
            // That it is there and runs is no setting of it.
            "up" => {
                rest = after;
                continue;
            }
            _ => {
                return collector.refuse(
                    line,
                    text,
                    format!("what planish does not set of an interface: {option}"),
                );
            }
        };
        let [value, after @ ..] = after else {
            return collector.refuse(line, text, format!("{option} has no value"));
        };
        collector.knob(line, &format!("ip link set {name} {option} {value}"), id, Some(name), value);
        rest = after;
    }
}

/// `mount -o remount,noatime /data`: each option that a knob is for. Nothing else is taken of it: what a remount names
/// besides stays as it is, or is lost by it.
fn mount(line: usize, text: &str, words: &[&str], collector: &mut Collector<'_>) {
    let (mut options, mut points, mut rest) = (Vec::new(), Vec::new(), words.iter().skip(1));
    while let Some(word) = rest.next() {
        match *word {
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
fn echo(plain: &Plain<'_>, is_bash: bool, collector: &mut Collector<'_>) {
    let (line, text) = (plain.line, plain.text);
    let words: Vec<String> = plain.words.iter().map(|word| word.text.clone()).collect();
    // Files of the kernel have no end to write behind: what is written there sets them.
    let is_set = |to: &Field| ["/proc/", "/sys/"].iter().any(|folder| to.text.starts_with(folder));
    if plain.appends && !plain.to.iter().all(is_set) {
        return collector.refuse(line, text, "appends to a file: import that one");
    }
    let Some(value) = said(&words, is_bash) else {
        return collector.refuse(line, text, "says signs that shells do not agree about");
    };
    let is_named = plain.words.iter().any(names_files);
    for to in &plain.to {
        let path = to.text.as_str();
        if !is_of_kernel(path) {
            collector.written.doubt(line, std::iter::once(path));
            let why = match path.starts_with('/') {
                true => "writes to a file that is none of the kernel's",
                false => {
                    "names a file from the folder that a `cd` went to, which is not followed: write its whole path"
                }
            };
            collector.refuse(line, text, why);
        } else if to.is_glob {
            collector.refuse(
                line,
                text,
                "a shell writes to one file, and to none where a pattern names several",
            );
        } else if is_named {
            collector.refuse(line, text, NAMES);
        } else {
            collector.path(line, path, value.trim());
        }
    }
}

/// Whether a word may stand for several names of files.
fn names_files(word: &Field) -> bool {
    word.is_glob || word.is_pattern && word.text.contains(['*', '?', '['])
}

/// `cat > FILE <<END`, of a file that is read when the script has ended; whether it is followed.
fn document(plain: &Plain<'_>, collector: &mut Collector<'_>) -> bool {
    let Some((Some(document), to)) = plain.document.as_ref().map(|document| (document.lines(), &plain.to[0]))
    else {
        refuse_document(plain, "holds what only a shell can put in", collector);
        return false;
    };
    let text = written::Text { lines: document, is_ended: true };
    written::write(plain.line, &to.text, Ok(text), plain.appends, collector)
}

/// Refuses a here-document line by line.
fn refuse_document(plain: &Plain<'_>, why: &str, collector: &mut Collector<'_>) {
    for (number, text) in plain.document.iter().flat_map(|document| document.said) {
        if !text.trim().is_empty() {
            collector.refuse(*number, text, why);
        }
    }
    collector.written.doubt(plain.line, plain.to.iter().map(|to| to.text.as_str()));
}

fn is_of_kernel(path: &str) -> bool {
    path.starts_with("/proc/") || path.starts_with("/sys/") || path.starts_with("/dev/")
}

/// What echo or printf says; nothing where that depends on the shell.
fn said(words: &[String], is_bash: bool) -> Option<String> {
    let (program, mut rest) = words.split_first()?;
    let is_plain = |words: &[String]| !words.iter().any(|word| word.contains(['\\', '\n']));
    if program == "printf" {
        let (form, values) = rest.split_first()?;
        let (form, is_line) = form.strip_suffix("\\n").map_or((form.as_str(), false), |form| (form, true));
        return match form {
            // The form is said again for each value, and nothing else is between them.
            "%s" | "%d" | "%u" if !is_line && values.len() > 1 => None,
            "%s" | "%d" | "%s " | "%u" => is_plain(values).then(|| values.join(" ")),
            form => (values.is_empty() && !form.contains(['%', '\\', '\n'])).then(|| form.to_owned()),
        };
    }
    while let Some(option) = rest.first().filter(|word| ["-n", "-e", "-ne", "-en"].contains(&word.as_str())) {
        // Of others than bash it is the first word.
        if option != "-n" && !is_bash {
            return None;
        }
        rest = &rest[1..];
    }
    is_plain(rest).then(|| rest.join(" "))
}
