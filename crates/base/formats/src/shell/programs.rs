//! Programs, by what they do with the files and names that they are given.

mod setters;

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
    /// A shell of its own, or a program that does what one would; one that runs at a signal may not come to it.
    Shell { text: String, is_doubtful: bool },
    /// A shell that reads what it is to do, as others read data.
    Input,
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

/// The folders that programs lie in. What lies elsewhere may be anything.
pub(super) const FOLDERS: [&str; 6] =
    ["/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"];

pub(super) fn bare(word: &str) -> &str {
    let name = FOLDERS.iter().find_map(|folder| word.strip_prefix(folder));
    name.filter(|name| !name.contains('/')).unwrap_or(word)
}

/// Whether a program only reads, whatever it is told: of some others in [`READING`] their words decide, and some end a
/// shell or set its variables.
pub(super) fn only_reads(first: &str) -> bool {
    const BY_WORDS: [&str; 8] = ["awk", "exit", "find", "gawk", "mawk", "read", "return", "sed"];
    let name = bare(first);
    READING.contains(&name) && !BY_WORDS.contains(&name)
}

/// What a program does by its name and its words.
pub(super) fn program(first: &str, words: &[String]) -> Program {
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
        // Without a file it does what a boot did before.
        "/usr/lib/systemd/systemd-sysctl" | "/lib/systemd/systemd-sysctl" if plain().next().is_some() => {
            let option = if words.iter().any(|word| word.starts_with("--prefix")) { "-rp" } else { "-p" };
            Program::Sysctl(std::iter::once(option.to_owned()).chain(plain().cloned()).collect())
        }
        "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh" => of_shell(words),
        "." | "source" => match plain().next() {
            Some(name) => Program::File { name: name.clone(), way: Way::Source },
            None => Program::Reads,
        },
        "eval" => Program::Shell { text: words.join(" "), is_doubtful: false },
        "trap" => trapped(&plain().cloned().collect::<Vec<_>>(), has(&["-p", "-l"])),
        "cd" | "pushd" => Program::Folder(plain().next().cloned().unwrap_or_default()),
        "awk" | "gawk" | "mawk" if words.iter().any(|word| word.contains(['>', '|'])) => Program::Unknown,
        "sed" if words.iter().any(|word| word.starts_with("-i") || word.starts_with("--in-place")) => {
            Program::Unknown
        }
        "find" => found(words),
        "run-parts" => parts(words),
        "tuned-adm" => tuned(words),
        name if READING.contains(&name) => Program::Reads,
        name => setters::program(name, words)
            .unwrap_or_else(|| Program::File { name: first.to_owned(), way: Way::Run }),
    }
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

/// What a shell does, by its words (`sh(1)`): a text, a file, or what it reads. One that is told to run nothing (`-n`)
/// only reads.
pub(super) fn of_shell(words: &[String]) -> Program {
    let (mut is_text, mut only_reads, mut is_input) = (false, false, false);
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        let Some(letters) = word.strip_prefix(['-', '+']) else { break };
        rest = behind;
        let is_on = word.starts_with('-');
        match letters {
            "" | "-" => break,
            "-rcfile" | "-init-file" => rest = rest.get(1..).unwrap_or_default(),
            "-help" | "-version" => return Program::Reads,
            long if long.starts_with('-') => {}
            letters => {
                is_text |= is_on && letters.contains('c');
                is_input |= is_on && letters.contains('s');
                only_reads |= is_on && letters.contains('n');
                // `-o pipefail`, `-O nullglob`.
                if letters.contains(['o', 'O']) {
                    only_reads |= is_on && rest.first().is_some_and(|option| option == "noexec");
                    rest = rest.get(1..).unwrap_or_default();
                }
            }
        }
    }
    match rest.first() {
        _ if only_reads => Program::Reads,
        Some(text) if is_text => Program::Shell { text: text.clone(), is_doubtful: false },
        Some(name) if !is_input => Program::File { name: name.clone(), way: Way::Shell },
        _ => Program::Input,
    }
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
