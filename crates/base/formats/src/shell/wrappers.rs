//! Programs that run another one: which of their words are their own, and what those say of where that one is run, and
//! whether it is at all.
//!
//! An option that no row knows may mean anything, and a word may belong to it: what such a program starts *may* be run,
//! and so may what stands one word further on. A false alarm is one of the monitoring, so that a row is to name what is
//! known to be harmless, and never the other way round.

use super::programs::{Program, Way, bare, program};

/// Where a command is run, by those that only change that.
#[derive(Default)]
pub(super) struct Place {
    /// As another user than root, where other settings are seen, or in a way that nobody here knows. What the kernel
    /// lets that user write is another question.
    pub(super) is_of_another: bool,
    /// Where another network is seen, and all the rest of this machine.
    pub(super) has_other_network: bool,
    /// Below a root of its own.
    pub(super) root: Option<String>,
    /// In another folder.
    pub(super) folder: Option<String>,
}

/// What a command comes to.
pub(super) struct Started<'w> {
    pub(super) place: Place,
    pub(super) program: Program,
    /// It is given more words, which `xargs` reads.
    pub(super) gets: bool,
    /// Where the command may stand as well: behind an option that nobody knows.
    pub(super) other: Option<&'w [String]>,
    /// More programs start each other than are followed.
    pub(super) is_cut: bool,
    /// Words that were looked at.
    pub(super) looked_at: usize,
}

/// Programs of a command of which each starts the next one: nobody writes more of them.
const LEVELS_MAX: usize = 64;

/// What an option says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    /// Nothing of what is set, alone or with a value.
    Alone,
    Valued,
    /// Nothing is run: it looks up, tests, lists or ends something.
    Nothing,
    /// It is run where or as nobody here knows, alone or by the value.
    Apart,
    ApartValued,
    Network,
    User,
    Root,
    Folder,
    /// A property of a unit.
    Property,
    /// What a shell is given.
    Text,
    /// The program itself.
    Exec,
    StartAs,
    Start,
}

impl Says {
    fn takes_a_word(self) -> bool {
        !matches!(self, Self::Alone | Self::Nothing | Self::Apart | Self::Network | Self::Start)
    }
}

/// Words of a program that stand behind its options and before the command.
#[derive(Clone, Copy)]
enum Own {
    None,
    /// One, whatever it is.
    One,
    /// One, where it is a number.
    Number,
    /// Others may stand before options, too.
    Between,
}

struct Row {
    names: &'static [&'static str],
    says: &'static [(Says, &'static str)],
    own: Own,
    /// Whether words with a sign are variables.
    assigns: bool,
}

const fn row(names: &'static [&'static str], own: Own, says: &'static [(Says, &'static str)]) -> Row {
    Row { names, says, own, assigns: false }
}

use Says::{
    Alone, Apart, ApartValued, Exec, Folder, Network, Nothing, Property, Root, Start, StartAs, Text, User,
    Valued,
};

/// The programs, by their manuals of 2022 to 2025.
const ROWS: [Row; 28] = [
    row(&["builtin", "nohup"], Own::None, &[(Nothing, "--help --version")]),
    row(&["busybox", "toybox"], Own::None, &[(Nothing, "--help --list --list-full --install --long")]),
    row(
        &["chroot"],
        Own::One,
        &[(Valued, "--groups"), (User, "--userspec"), (Alone, "--skip-chdir"), (Nothing, "--help --version")],
    ),
    row(
        &["chrt"],
        Own::Number,
        &[
            (
                Alone,
                "-a -b -d -f -i -o -r -v -R --all-tasks --batch --deadline --fifo --idle --other --rr --verbose",
            ),
            (Alone, "--reset-on-fork --ext"),
            (Valued, "-T -P -D --sched-runtime --sched-period --sched-deadline"),
            (Nothing, "-p --pid -m --max -h --help -V --version"),
        ],
    ),
    row(&["command"], Own::None, &[(Alone, "-p"), (Nothing, "-v -V")]),
    row(&["doas"], Own::None, &[(Alone, "-n"), (Valued, "-a"), (User, "-u"), (Nothing, "-C -L -s")]),
    Row {
        names: &["env"],
        own: Own::None,
        says: &[
            (Alone, "- -i -0 -v --ignore-environment --null --debug --block-signal --default-signal"),
            (Alone, "--ignore-signal --list-signal-handling"),
            (Valued, "-u -a --unset --argv0"),
            (Folder, "-C --chdir"),
            (Nothing, "--help --version"),
        ],
        assigns: true,
    },
    row(&["exec"], Own::None, &[(Alone, "-c -l"), (Valued, "-a")]),
    row(
        &["flock"],
        Own::One,
        &[
            (
                Alone,
                "-s -x -e -u -n -o -F --shared --exclusive --unlock --nb --nonblock --close --no-fork --verbose",
            ),
            (Alone, "--fcntl"),
            (Valued, "-w -E --wait --timeout --conflict-exit-code"),
            (Nothing, "-h -V --help --version"),
        ],
    ),
    row(
        &["ionice"],
        Own::None,
        &[
            (Alone, "-t --ignore"),
            (Valued, "-c -n --class --classdata"),
            (Nothing, "-p -P -u --pid --pgid --uid -h -V --help --version"),
        ],
    ),
    row(
        &["nice"],
        Own::None,
        &[
            (Alone, "-0 -1 -2 -3 -4 -5 -6 -7 -8 -9"),
            // Its older form of `-n -5`.
            (
                Alone,
                "--1 --2 --3 --4 --5 --6 --7 --8 --9 --10 --11 --12 --13 --14 --15 --16 --17 --18 --19 --20",
            ),
            (Valued, "-n --adjustment"),
            (Nothing, "--help --version"),
        ],
    ),
    row(
        &["nsenter"],
        Own::None,
        &[
            (Alone, "-F -Z -e --no-fork --follow-context --preserve-credentials --keep-caps --env"),
            (
                Apart,
                "-a -m -u -i -n -p -C -U -T --all --mount --uts --ipc --net --pid --cgroup --user --time",
            ),
            (Apart, "-r -w --root --wd"),
            (ApartValued, "-t -S -G -N -W --target --setuid --setgid --net-socket --wdns"),
            (Nothing, "-h -V --help --version"),
        ],
    ),
    row(
        &["numactl"],
        Own::None,
        &[
            (Alone, "-l -a -b --localalloc --all --balancing"),
            (Valued, "-i -N -C -m -p -P -w --interleave --cpunodebind --physcpubind --membind --preferred"),
            (Valued, "--preferred-many --weighted-interleave"),
            (Nothing, "-s -H --show --hardware"),
        ],
    ),
    row(
        &["prlimit"],
        Own::None,
        &[
            (
                Alone,
                "-c -d -e -f -i -l -m -n -q -r -s -t -u -v -x -y --core --data --nice --fsize --sigpending",
            ),
            (
                Alone,
                "--memlock --rss --nofile --msgqueue --rtprio --stack --cpu --nproc --as --locks --rttime",
            ),
            (Alone, "--noheadings --raw --verbose"),
            (Valued, "-o --output"),
            (Nothing, "-p --pid -h -V --help --version"),
        ],
    ),
    row(&["setpriv"], Own::None, &[(Alone, "--nnp --no-new-privs"), (User, "--reuid --ruid --euid")]),
    row(
        &["setsid"],
        Own::None,
        &[(Alone, "-c -f -w --ctty --fork --wait"), (Nothing, "-h -V --help --version")],
    ),
    row(
        &["start-stop-daemon"],
        Own::Between,
        &[
            (Start, "-S --start"),
            (Exec, "-x --exec"),
            (StartAs, "-a --startas"),
            (
                Alone,
                "-o -q -b -C -m -v --oknodo --quiet --background --no-close --make-pidfile --remove-pidfile",
            ),
            (Alone, "--verbose --notify-await"),
            (
                Valued,
                "-p -n -u -g -s -O -N -P -I -k -R --pidfile --name --user --ppid --group --signal --output",
            ),
            (Valued, "--nicelevel --procsched --iosched --umask --retry --notify-timeout"),
            (User, "-c --chuid"),
            (Root, "-r --chroot"),
            (Folder, "-d --chdir"),
            (Nothing, "-K -T -t -H -V --stop --status --test --help --version"),
        ],
    ),
    row(
        &["stdbuf"],
        Own::None,
        &[(Valued, "-i -o -e --input --output --error"), (Nothing, "--help --version")],
    ),
    row(
        &["su", "runuser"],
        Own::Between,
        &[
            (Alone, "- -l -f -m -p -P -T --login --fast --preserve-environment --pty --no-pty"),
            (Valued, "-s -g -G -w --shell --group --supp-group --whitelist-environment"),
            (User, "-u --user"),
            (Text, "-c --command --session-command"),
            (Nothing, "-h -V --help --version"),
        ],
    ),
    Row {
        names: &["sudo"],
        own: Own::None,
        says: &[
            (
                Alone,
                "-A -B -b -E -H -k -n -N -P -S -i -s --askpass --bell --background --preserve-env --set-home",
            ),
            (
                Alone,
                "--reset-timestamp --non-interactive --no-update --preserve-groups --stdin --login --shell",
            ),
            (Valued, "-C -g -p -T -a -c -r -t --close-from --group --prompt --command-timeout --auth-type"),
            (Valued, "--login-class --role --type"),
            (User, "-u --user"),
            (Root, "-R --chroot"),
            (Folder, "-D --chdir"),
            (ApartValued, "-h -U --host --other-user"),
            (Nothing, "-l -e -K -V -v --list --edit --remove-timestamp --version --validate --help"),
        ],
        assigns: true,
    },
    row(
        &["systemd-cat"],
        Own::None,
        &[
            (Valued, "-t -p --identifier --priority --stderr-priority --level-prefix --namespace"),
            (Nothing, "-h --help --version"),
        ],
    ),
    row(
        &["systemd-inhibit"],
        Own::None,
        &[
            (Alone, "--no-pager --no-legend --no-ask-password"),
            (Valued, "--what --who --why --mode"),
            (Nothing, "--list -h --help --version"),
        ],
    ),
    row(
        &["systemd-run"],
        Own::None,
        &[
            (
                Alone,
                "-r -t -T -P -q -G -d -v --no-ask-password --scope --slice-inherit --remain-after-exit --pty",
            ),
            (
                Alone,
                "--pty-late --pipe --quiet --collect --same-dir --no-block --wait --send-sighup --system",
            ),
            (Alone, "--on-clock-change --on-timezone-change --ignore-failure --verbose"),
            (
                Valued,
                "-u -E --unit --description --slice --service-type --gid --nice --setenv --expand-environment",
            ),
            (Valued, "--on-active --on-boot --on-startup --on-unit-active --on-unit-inactive --on-calendar"),
            (Valued, "--path-property --socket-property --timer-property --background --job-mode --json"),
            (Property, "-p --property"),
            (User, "--uid"),
            (Folder, "--working-directory"),
            (Apart, "--user"),
            (ApartValued, "-H -M -C --host --machine --capsule"),
            (Nothing, "-h -S --help --version --shell"),
        ],
    ),
    row(
        &["taskset"],
        Own::One,
        &[(Alone, "-a -c --all-tasks --cpu-list"), (Nothing, "-p -h -V --pid --help")],
    ),
    row(
        &["time"],
        Own::None,
        &[
            (Alone, "-p -v -a -q --portability --verbose --append --quiet"),
            (Valued, "-f -o --format --output"),
            (Nothing, "-V --help --version"),
        ],
    ),
    row(
        &["timeout"],
        Own::One,
        &[
            (Alone, "-f -p -v --foreground --preserve-status --verbose"),
            (Valued, "-k -s --kill-after --signal"),
            (Nothing, "--help --version"),
        ],
    ),
    row(
        &["unshare"],
        Own::None,
        &[
            (
                Alone,
                "-i -m -p -u -f -C -T --ipc --mount --pid --uts --fork --cgroup --time --mount-proc --kill-child",
            ),
            (Alone, "--keep-caps"),
            (Valued, "-G --setgid --propagation --monotonic --boottime"),
            (Network, "-n --net"),
            (Apart, "-U -r -c --user --map-root-user --map-current-user --map-auto"),
            (ApartValued, "--map-user --map-group --map-users --map-groups --setgroups --owner"),
            (User, "-S --setuid"),
            (Root, "-R --root"),
            (Folder, "-w --wd"),
            (Nothing, "-h -V --help --version"),
        ],
    ),
    row(
        &["xargs"],
        Own::None,
        &[
            (
                Alone,
                "-0 -r -t -x -p -o -i -e -l --null --no-run-if-empty --verbose --exit --interactive --open-tty",
            ),
            (
                Valued,
                "-I -n -P -d -L -a -E -s --max-args --max-procs --delimiter --max-lines --arg-file --max-chars",
            ),
            (Nothing, "--help --version --show-limits"),
        ],
    ),
];

impl Row {
    fn of(name: &str) -> Option<&'static Self> {
        ROWS.iter().find(|row| row.names.contains(&name))
    }

    fn says(&self, option: &str) -> Option<Says> {
        let has = |(_, options): &&(Says, &str)| options.split(' ').any(|known| known == option);
        self.says.iter().find(has).map(|(says, _)| *says)
    }

    /// Whether a word that is no option is one of the program's own.
    fn is_own(&self, word: &str, owned: usize) -> bool {
        let is_number = || word.starts_with(|c: char| c.is_ascii_digit() || c == '*');
        match self.own {
            Own::None | Own::Between => false,
            Own::One => owned == 0,
            Own::Number => owned == 0 && is_number(),
        }
    }

    /// What the words of the program say, up to the command.
    fn read<'w>(&self, words: &'w [String]) -> Told<'w> {
        let mut told = Told::default();
        let (mut at, mut is_over) = (0, false);
        while let Some(word) = words.get(at) {
            if is_over || !word.starts_with('-') || word.len() == 1 {
                let is_told = self.assigns && word.contains('=') || word == "-" && self.says("-").is_some();
                let is_own = !is_told && self.is_own(word, told.own.len());
                let is_between = matches!(self.own, Own::Between) && told.user_of_option.is_none();
                if !(is_told || is_own || is_between) {
                    break;
                }
                if is_own || is_between && !is_told {
                    told.own.push(at);
                }
                at += 1;
                // What stands behind it is the command, or of it.
                if is_own {
                    break;
                }
                continue;
            }
            at += 1;
            if word == "--" {
                (is_over, told.is_ended) = (true, true);
                if matches!(self.own, Own::Between) {
                    break;
                }
            } else if word.starts_with("--") {
                let (name, value) = word.split_once('=').map_or((&**word, None), |(name, v)| (name, Some(v)));
                told.option(self.says(name), value, words, &mut at);
            } else {
                self.letters(word, words, &mut at, &mut told);
            }
        }
        told.count = at.min(words.len());
        told
    }

    /// Options of a letter each, joined to one word: behind one that takes a value, the rest is that.
    fn letters<'w>(&self, word: &'w str, words: &'w [String], at: &mut usize, told: &mut Told<'w>) {
        for (begin, letter) in word.char_indices().skip(1) {
            let says = self.says(&format!("-{letter}"));
            let rest = &word[begin + letter.len_utf8()..];
            let takes_a_word = says.is_some_and(Says::takes_a_word);
            told.option(says, Some(rest).filter(|rest| takes_a_word && !rest.is_empty()), words, at);
            if takes_a_word || says.is_none() {
                return;
            }
        }
    }
}

/// What the words of a program say that runs another one.
#[derive(Default)]
struct Told<'w> {
    /// How many words are its own.
    count: usize,
    /// Which of those are no options.
    own: Vec<usize>,
    /// `--` ends them.
    is_ended: bool,
    has_unknown: bool,
    runs_nothing: bool,
    is_apart: bool,
    has_network: bool,
    starts: bool,
    user_of_option: Option<&'w str>,
    root: Option<&'w str>,
    folder: Option<&'w str>,
    text: Option<&'w str>,
    exec: Option<&'w str>,
    start_as: Option<&'w str>,
}

impl<'w> Told<'w> {
    fn option(&mut self, says: Option<Says>, joined: Option<&'w str>, words: &'w [String], at: &mut usize) {
        let Some(says) = says else {
            self.has_unknown = true;
            return;
        };
        let mut value = joined;
        if says.takes_a_word() && joined.is_none() {
            value = words.get(*at).map(String::as_str);
            *at += 1;
        }
        match says {
            Alone | Valued => {}
            Nothing => self.runs_nothing = true,
            Apart | ApartValued => self.is_apart = true,
            Network => self.has_network = true,
            User => self.user_of_option = value,
            Root => self.root = value,
            Folder => self.folder = value,
            Property => self.is_apart |= value.is_none_or(|value| !is_harmless(value)),
            Text => self.text = value,
            Exec => self.exec = value,
            StartAs => self.start_as = value,
            Start => self.starts = true,
        }
    }
}

/// Whether a property of a unit keeps its command from nothing and moves it nowhere (`systemd.resource-control(5)`).
fn is_harmless(property: &str) -> bool {
    const KINDS: [&str; 24] = [
        "After",
        "Before",
        "BlockIO",
        "CPU",
        "CollectMode",
        "Description",
        "Environment=",
        "IO",
        "Kill",
        "Limit",
        "LogLevel",
        "Memory",
        "Nice",
        "OOM",
        "RemainAfterExit",
        "Requires",
        "Restart",
        "RuntimeMaxSec",
        "Slice",
        "StandardError",
        "SyslogIdentifier",
        "Tasks",
        "Timeout",
        "Wants",
    ];
    match property.split_once('=') {
        Some(("User", user)) => is_root(user),
        Some(("Type", _)) => true,
        _ => KINDS.iter().any(|kind| property.starts_with(kind)),
    }
}

fn is_root(user: &str) -> bool {
    ["root", "0", "#0"].contains(&user.split(':').next().unwrap_or_default())
}

impl Place {
    fn add(&mut self, told: &Told<'_>, user: Option<&str>, root: Option<&str>) {
        self.is_of_another |= told.is_apart || told.has_unknown || user.is_some_and(|user| !is_root(user));
        self.has_other_network |= told.has_network;
        let root = root.map_or("", |root| root.trim_end_matches('/'));
        if !root.is_empty() {
            let below = self.root.get_or_insert_default();
            if !below.is_empty() {
                below.push('/');
            }
            below.push_str(root);
            self.folder = None;
        }
        if let Some(folder) = told.folder {
            self.folder = Some(folder.to_owned());
        }
    }
}

/// What a command does, and where, by its first word and those that only change how it is run: one after the other, and
/// each word once.
pub(super) fn started(fields: &[String]) -> Option<Started<'_>> {
    let (first, mut words) = fields.split_first()?;
    let mut first = first.as_str();
    let (mut place, mut other, mut gets) = (Place::default(), None, false);
    let (mut levels, mut looked_at) = (0, 0);
    let program = loop {
        let name = bare(first);
        levels += 1;
        if levels > LEVELS_MAX {
            break Program::Unknown;
        }
        let rest = if name == "ip" {
            let Some((own, is_network)) = exec_of_ip(words) else { break program(first, words) };
            place.has_other_network |= is_network;
            &words[own..]
        } else {
            let Some(row) = Row::of(name) else { break program(first, words) };
            let told = row.read(words);
            looked_at += told.count;
            let word = |at: usize| words[at].as_str();
            let is_shell =
                matches!(name, "su" | "runuser") && (told.user_of_option.is_none() || told.text.is_some());
            let user =
                told.user_of_option.or_else(|| told.own.first().filter(|_| is_shell).map(|at| word(*at)));
            let root =
                told.root.or_else(|| told.own.first().filter(|_| name == "chroot").map(|at| word(*at)));
            place.add(&told, user, root);
            gets |= name == "xargs";
            if told.runs_nothing {
                break Program::Reads;
            }
            if is_shell {
                break of_su(&told, words);
            }
            if name == "start-stop-daemon" {
                let Some(exec) = told.start_as.or(told.exec).filter(|_| told.starts) else {
                    break Program::Reads;
                };
                // What stands in front of its options is told to it, too; the next one is to have fewer words.
                let behind = told.own.first().copied().filter(|at| *at > 0 && !told.is_ended);
                let begin = behind.unwrap_or(told.count);
                (first, words) = (exec, &words[begin..]);
                continue;
            }
            let rest = &words[told.count..];
            if let ("flock", [option, text, ..]) = (name, rest)
                && ["-c", "--command"].contains(&option.as_str())
            {
                break Program::Shell { text: text.clone(), is_doubtful: false };
            }
            if told.has_unknown && other.is_none() {
                other = rest.get(1..);
            }
            rest
        };
        // `exec > FILE`, `env`.
        let Some((next, behind)) = rest.split_first() else { break Program::Reads };
        (first, words) = (next, behind);
    };
    let other = other.filter(|other| !other.is_empty());
    Some(Started { place, program, gets, other, is_cut: levels > LEVELS_MAX, looked_at })
}

/// How many words of `ip netns exec NAME CMD` and `ip vrf exec NAME CMD` stand before the command, and whether it sees
/// another network (`ip-netns(8)`).
fn exec_of_ip(words: &[String]) -> Option<(usize, bool)> {
    let options = words.iter().take_while(|word| word.starts_with('-')).count();
    let [what, exec, ..] = &words[options..] else { return None };
    let is_exec = ["netns", "vrf"].contains(&what.as_str()) && exec == "exec";
    // In all of them none is named.
    let is_all = words[..options].iter().any(|option| ["-a", "-all", "--all"].contains(&option.as_str()));
    is_exec.then(|| ((options + 2 + usize::from(!is_all)).min(words.len()), what == "netns"))
}

/// What `su USER` runs: a text, or a shell with the words behind the user.
fn of_su(told: &Told<'_>, words: &[String]) -> Program {
    if let Some(text) = told.text {
        return Program::Shell { text: text.to_owned(), is_doubtful: false };
    }
    let given = told.own.get(1).copied().unwrap_or(told.count);
    match words.get(given) {
        Some(name) => Program::File { name: name.clone(), way: Way::Shell },
        None => Program::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row that has an option twice would tell by chance.
    #[test]
    fn each_option_of_a_row_says_one_thing() {
        for row in &ROWS {
            let mut all: Vec<&str> = row.says.iter().flat_map(|(_, options)| options.split(' ')).collect();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count, "{:?}", row.names);
            assert!(all.iter().all(|option| option.starts_with('-')), "{:?}", row.names);
        }
    }
}
