//! Programs, by what they do with the files and names that they are given.

/// What a program does with its words.
pub(super) enum Program {
    /// It sets nothing by them.
    Reads,
    /// Nothing is known of it.
    Unknown,
    /// It is a file of this name, or a shell that reads one: what stands there is done.
    File { name: String, way: Way },
    /// It writes files: what it was told (`cp`), or what it reads (`tee`).
    Writes { files: Vec<String>, copies: bool },
    /// `run-parts`: the files of a folder are run, one after another; whether all that is known of which.
    Parts { folder: String, is_sure: bool },
    /// `tuned-adm profile`: these profiles are made the active ones.
    Profile(String),
    /// `sysctl`, with its words.
    Sysctl(Vec<String>),
    /// A shell of its own; one that runs at a signal may not come to it.
    Shell { text: String, is_doubtful: bool },
    /// It runs this program with words that it reads.
    Gets(Vec<String>),
    /// `find`: where, by which name, and what it runs on what it finds; without that it only tells of it.
    Finds { folders: Vec<String>, name: String, runs: Option<Vec<String>> },
    /// The folder that names without one are of from here on.
    Folder(String),
    /// A text that a shell runs at its end, whichever way it comes to it; an empty one for none.
    AtExit(String),
}

/// How a file is come by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It is run by its name.
    Run,
    /// So it is by its path alone, and no shell takes up what does not say by what it is run.
    Part,
    /// Another shell reads it.
    Shell,
    /// The shell itself does.
    Source,
}

/// Programs, and words of the shell, that change no file which they are given.
const READING: [&str; 72] = [
    ":",
    "[",
    "alias",
    "awk",
    "basename",
    "break",
    "cat",
    "chgrp",
    "chmod",
    "chown",
    "cmp",
    "continue",
    "cut",
    "date",
    "declare",
    "diff",
    "dirname",
    "echo",
    "egrep",
    "exit",
    "export",
    "expr",
    "false",
    "fgrep",
    "file",
    "find",
    "gawk",
    "getconf",
    "grep",
    "head",
    "hexdump",
    "id",
    "less",
    "local",
    "logger",
    "ls",
    "lscpu",
    "lsof",
    "mapfile",
    "mawk",
    "md5sum",
    "mkdir",
    "mktemp",
    "more",
    "mountpoint",
    "nproc",
    "od",
    "printf",
    "read",
    "readlink",
    "readonly",
    "realpath",
    "return",
    "sed",
    "set",
    "sha256sum",
    "shift",
    "sleep",
    "sort",
    "stat",
    "strings",
    "tail",
    "test",
    "touch",
    "tr",
    "true",
    "typeset",
    "uniq",
    "unset",
    "wait",
    "wc",
    "zgrep",
];

/// Programs that run another one, whose name is the first word behind their options.
const RUNNING: [&str; 22] = [
    "builtin",
    "busybox",
    "chroot",
    "chrt",
    "command",
    "doas",
    "env",
    "exec",
    "flock",
    "ionice",
    "nice",
    "nohup",
    "setsid",
    "stdbuf",
    "sudo",
    "systemd-cat",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "toybox",
    "unshare",
];

/// Options of one of those that a word follows.
fn with_a_word(name: &str) -> &'static [&'static str] {
    match name {
        "chroot" => &["--groups", "--userspec"],
        "doas" | "sudo" => &["-u", "-g", "--user", "--group"],
        "env" => &["-u", "-C"],
        "exec" => &["-a"],
        "flock" => &["-w", "--wait", "--timeout", "-E", "--conflict-exit-code"],
        "ionice" => &["-c", "-n"],
        "nice" => &["-n"],
        "stdbuf" => &["-i", "-o", "-e"],
        "systemd-cat" => &["-t", "-p"],
        "systemd-run" => &OF_SYSTEMD_RUN,
        "time" => &["-f", "-o"],
        "timeout" => &["-k", "-s"],
        "unshare" => &["-R", "-w", "-S", "-G", "--root", "--wd", "--setuid", "--setgid", "--propagation"],
        "xargs" => &["-I", "-n", "-P", "-d", "-L"],
        _ => &[],
    }
}

/// Those of `systemd-run`, where a word follows without a sign.
const OF_SYSTEMD_RUN: [&str; 20] = [
    "-E",
    "-H",
    "-M",
    "-p",
    "-u",
    "--description",
    "--gid",
    "--nice",
    "--on-active",
    "--on-boot",
    "--on-calendar",
    "--on-startup",
    "--on-unit-active",
    "--property",
    "--service-type",
    "--setenv",
    "--slice",
    "--uid",
    "--unit",
    "--working-directory",
];

/// The folders that programs lie in. What lies elsewhere may be anything.
pub(super) const FOLDERS: [&str; 6] =
    ["/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"];

fn bare(word: &str) -> &str {
    let name = FOLDERS.iter().find_map(|folder| word.strip_prefix(folder));
    name.filter(|name| !name.contains('/')).unwrap_or(word)
}

/// What a command does, by its first word and those that only change how it is run.
pub(super) fn program(fields: &[String]) -> Program {
    let mut rest = fields;
    while let Some((first, words, skipped)) = in_front(rest) {
        if skipped == words.len() {
            // `exec > FILE`, `env`.
            return Program::Reads;
        }
        if first == "flock" && skipped > 0 && ["-c", "--command"].contains(&words[skipped - 1].as_str()) {
            return Program::Shell { text: words[skipped].clone(), is_doubtful: false };
        }
        rest = &words[skipped..];
    }
    let Some((first, words)) = rest.split_first() else { return Program::Reads };
    let plain = || words.iter().filter(|word| !word.starts_with('-') || word.len() == 1);
    let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    match bare(first) {
        "tee" | "sponge" => Program::Writes { files: plain().cloned().collect(), copies: false },
        "dd" => {
            let to = words.iter().filter_map(|word| word.strip_prefix("of="));
            Program::Writes { files: to.map(str::to_owned).collect(), copies: false }
        }
        "cp" | "mv" | "install" if !has(&["-t", "-d", "--directory"]) && plain().count() > 1 => {
            Program::Writes { files: plain().next_back().cloned().into_iter().collect(), copies: true }
        }
        "sysctl" => Program::Sysctl(words.to_vec()),
        "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh" => {
            let is_c =
                |word: &String| !word.starts_with("--") && word.starts_with('-') && word.ends_with('c');
            let text = words.iter().position(is_c).and_then(|at| words.get(at + 1));
            match text {
                _ if only_reads(words) => Program::Reads,
                Some(text) => Program::Shell { text: text.clone(), is_doubtful: false },
                None => of_shell(words),
            }
        }
        "." | "source" => match plain().next() {
            Some(name) => Program::File { name: name.clone(), way: Way::Source },
            None => Program::Reads,
        },
        "su" | "runuser" => {
            let at = words.iter().position(|word| word == "-c" || word == "--command");
            match at.and_then(|at| words.get(at + 1)) {
                Some(text) => Program::Shell { text: text.clone(), is_doubtful: false },
                None => Program::Unknown,
            }
        }
        "eval" => Program::Shell { text: words.join(" "), is_doubtful: false },
        "trap" => trapped(&plain().cloned().collect::<Vec<_>>(), has(&["-p", "-l"])),
        "xargs" => Program::Gets(words[options_of("xargs", words)..].to_vec()),
        "cd" | "pushd" => Program::Folder(plain().next().cloned().unwrap_or_default()),
        "awk" | "gawk" | "mawk" if words.iter().any(|word| word.contains(['>', '|'])) => Program::Unknown,
        "sed" if words.iter().any(|word| word.starts_with("-i") || word.starts_with("--in-place")) => {
            Program::Unknown
        }
        "find" => found(words),
        "start-stop-daemon" => daemon(words),
        "run-parts" => parts(words),
        "tuned-adm" => tuned(words),
        name if READING.contains(&name) => Program::Reads,
        _ => Program::File { name: first.clone(), way: Way::Run },
    }
}

/// A program that only changes how another one is run, what it is given, and how many words of that are its own.
fn in_front(fields: &[String]) -> Option<(&str, &[String], usize)> {
    let (first, words) = fields.split_first()?;
    let name = bare(first);
    let own = match name {
        "ip" => exec_of_ip(words)?,
        name if RUNNING.contains(&name) => options_of(name, words),
        _ => return None,
    };
    Some((name, words, own))
}

/// How many words of `ip netns exec NAME CMD` and `ip vrf exec NAME CMD` stand before the command (`ip-netns(8)`).
fn exec_of_ip(words: &[String]) -> Option<usize> {
    let options = words.iter().take_while(|word| word.starts_with('-')).count();
    let [what, exec, ..] = &words[options..] else { return None };
    let is_exec = ["netns", "vrf"].contains(&what.as_str()) && exec == "exec";
    // In all of them none is named.
    let is_all = words[..options].iter().any(|option| ["-a", "-all", "--all"].contains(&option.as_str()));
    is_exec.then(|| (options + 2 + usize::from(!is_all)).min(words.len()))
}

/// What `run-parts` runs (`run-parts(8)` of Debian; Red Hat's and that of busybox take fewer options).
fn parts(words: &[String]) -> Program {
    let has = |names: &[&str]| words.iter().any(|word| names.iter().any(|name| word.starts_with(name)));
    if has(&["--test", "--list", "--help", "--version", "-t", "-l", "-V"]) {
        return Program::Reads;
    }
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-a" | "-u" | "--arg" | "--umask" | "--regex" => _ = rest.next(),
            word if word.starts_with('-') => {}
            folder => {
                let is_sure = !has(&["--regex", "--lsbsysinit"]);
                return Program::Parts { folder: folder.to_owned(), is_sure };
            }
        }
    }
    Program::Reads
}

/// What `tuned-adm` makes active (`tuned-adm(8)`).
fn tuned(words: &[String]) -> Program {
    let mut rest = words.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        match word {
            "-t" | "--timeout" | "-l" | "--loglevel" => _ = rest.next(),
            "profile" => {
                let names: Vec<&str> = rest.filter(|word| !word.starts_with('-')).collect();
                return if names.is_empty() { Program::Reads } else { Program::Profile(names.join(" ")) };
            }
            // By what it takes the machine for.
            "auto_profile" => return Program::Unknown,
            word if word.starts_with('-') => {}
            _ => return Program::Reads,
        }
    }
    Program::Reads
}

/// Whether a shell is told to run nothing of what it reads (`sh -n FILE`).
fn only_reads(words: &[String]) -> bool {
    let options = words.iter().zip(words.iter().skip(1).map(Some).chain([None]));
    let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--");
    let mut own = options.take_while(|(word, _)| word.starts_with(['-', '+']) || *word == "noexec");
    own.any(|(word, next)| {
        is_short(word)
            && (word.contains('n') || word.ends_with('o') && next.is_some_and(|next| next == "noexec"))
    })
}

/// What `start-stop-daemon` starts (`start-stop-daemon(8)`).
fn daemon(words: &[String]) -> Program {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (own, given) = words.split_at(end);
    let starts = own.iter().any(|word| ["-S", "--start"].contains(&word.as_str()));
    let named = ["-a", "--startas", "-x", "--exec"].iter().find_map(|option| value_of(own, option));
    match named.filter(|_| starts) {
        Some(name) => {
            let given = given.iter().skip(1).cloned();
            program(&std::iter::once(name).chain(given).collect::<Vec<_>>())
        }
        None => Program::Reads,
    }
}

/// The value of an option: behind it, behind a sign, or, of a letter, joined to it.
fn value_of(words: &[String], option: &str) -> Option<String> {
    words.iter().enumerate().find_map(|(at, word)| {
        let rest = word.strip_prefix(option)?;
        match (rest, option.starts_with("--")) {
            ("", _) => words.get(at + 1).cloned(),
            (rest, true) => rest.strip_prefix('=').map(str::to_owned),
            (rest, false) => Some(rest.to_owned()),
        }
    })
}

/// Where a command is run, by those that only change that.
#[derive(Default)]
pub(super) struct Place {
    /// As another user than root, or where other settings are seen. What the kernel lets that user write is another
    /// question.
    pub(super) is_of_another: bool,
    /// Where another network is seen, and all the rest of this machine.
    pub(super) has_other_network: bool,
    /// Below a root of its own.
    pub(super) root: Option<String>,
}

/// Where a command is run.
pub(super) fn place_of(fields: &[String]) -> Place {
    let mut place = Place::default();
    let is_root = |user: &str| ["root", "0", "#0"].contains(&user.split(':').next().unwrap_or_default());
    let mut rest = fields;
    while let Some((first, words)) = rest.split_first() {
        let skipped = match bare(first) {
            "start-stop-daemon" => words.iter().position(|word| word == "--").unwrap_or(words.len()),
            "su" | "runuser" => words.len(),
            _ => match in_front(rest) {
                Some((.., own)) => own,
                None => return place,
            },
        };
        let own = &words[..skipped];
        let any = |options: &[&str]| options.iter().find_map(|option| value_of(own, option));
        let user = match bare(first) {
            "sudo" | "doas" => any(&["-u", "--user"]),
            "start-stop-daemon" => any(&["-c", "--chuid"]),
            "systemd-run" => any(&["--uid"]),
            "unshare" => any(&["-S", "--setuid"]),
            "chroot" => any(&["--userspec"]),
            "su" | "runuser" => user_of_su(own),
            _ => None,
        };
        let is_apart = match bare(first) {
            "systemd-run" => own.iter().any(|word| word.contains("User=") || word.contains("ProtectKernel")),
            "unshare" => own.iter().any(|word| is_net_or_user(word)),
            _ => false,
        };
        place.is_of_another |= is_apart || user.is_some_and(|user| !is_root(&user));
        match bare(first) {
            "ip" => place.has_other_network |= own.iter().any(|word| word == "netns"),
            "chroot" => {
                let root = own.last().cloned().unwrap_or_default();
                let root = root.trim_end_matches('/');
                if !root.is_empty() {
                    place.root = Some(place.root.map_or(root.to_owned(), |above| format!("{above}/{root}")));
                }
            }
            _ => {}
        }
        rest = &words[skipped..];
    }
    place
}

/// Whether an option of `unshare` makes a network or users of its own.
fn is_net_or_user(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => ["net", "user", "map-"].iter().any(|name| long.starts_with(name)),
        None => option.starts_with('-') && option.contains(['n', 'U', 'r', 'c']),
    }
}

/// The user of `su USER -c TEXT` and `runuser -u USER PROGRAM`.
fn user_of_su(words: &[String]) -> Option<String> {
    let of_option = value_of(words, "-u").or_else(|| value_of(words, "--user"));
    let mut rest = words.iter();
    let mut plain = None;
    while let Some(word) = rest.next().filter(|_| plain.is_none()) {
        match word.as_str() {
            "-c" | "--command" | "-s" | "--shell" | "-g" | "--group" | "-G" | "--supp-group" => {
                _ = rest.next()
            }
            word if word.starts_with('-') => {}
            word => plain = Some(word.to_owned()),
        }
    }
    of_option.or(plain)
}

/// What a shell does that is given no text: it reads a file, or what it is told.
fn of_shell(words: &[String]) -> Program {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix(['-', '+']) {
            // `-o pipefail`.
            Some(option) if option.ends_with('o') && !option.starts_with('-') => _ = words.next(),
            Some(option) if !option.is_empty() => {}
            _ => return Program::File { name: word.clone(), way: Way::Shell },
        }
    }
    Program::Unknown
}

/// What a `trap` has run. One signal alone, or a number in front, takes back what was said of them.
fn trapped(words: &[String], only_tells: bool) -> Program {
    let Some((text, rest)) = words.split_first().filter(|_| !only_tells) else { return Program::Reads };
    let takes_back = rest.is_empty() || text.parse::<u32>().is_ok();
    let signals = if takes_back { words } else { rest };
    match signals.iter().any(|signal| ["EXIT", "0"].contains(&signal.as_str())) {
        true if takes_back || text == "-" => Program::AtExit(String::new()),
        true => Program::AtExit(text.clone()),
        false if takes_back => Program::Reads,
        false => Program::Shell { text: text.clone(), is_doubtful: true },
    }
}

/// What a `find` finds, and what it does with that.
fn found(words: &[String]) -> Program {
    let is_test = |word: &&String| word.starts_with(['-', '(', '!']);
    let folders = words.iter().take_while(|word| !is_test(word)).cloned().collect();
    let behind = |names: &[&str]| {
        let at = words.iter().position(|word| names.contains(&word.as_str()))?;
        Some(&words[at + 1..])
    };
    let name = behind(&["-name"]).and_then(|rest| rest.first());
    let does = |word: &String| ["-exec", "-ok", "-f", "-delete"].iter().any(|act| word.starts_with(act));
    let runs = behind(&["-exec", "-execdir", "-ok", "-okdir"]).unwrap_or_default();
    let runs = runs.iter().take_while(|word| ![";", "\\;", "+"].contains(&word.as_str())).cloned().collect();
    let runs = words.iter().any(does).then_some(runs);
    Program::Finds { folders, name: name.map_or("*", |name| name.as_str()).to_owned(), runs }
}

/// How many words of a program that runs another one are its own.
fn options_of(name: &str, words: &[String]) -> usize {
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let takes_one = ["chroot", "chrt", "flock", "taskset", "timeout"].contains(&name);
    let mut at = 0;
    let mut has_one = false;
    while let Some(word) = words.get(at) {
        let is_option = word.starts_with('-') && word.len() > 1;
        // A lock is a file, or the number of one that is open; a root is a folder.
        let is_any = ["chroot", "flock"].contains(&name) && !is_option;
        let is_own = takes_one && !has_one && (is_number(word) || is_any);
        has_one |= is_own;
        at += match () {
            () if word == "--" => return at + 1,
            () if with_a_word(name).contains(&word.as_str()) => 2,
            () if is_option || is_own || ["env", "sudo"].contains(&name) && word.contains('=') => 1,
            () => return at,
        };
    }
    words.len()
}
