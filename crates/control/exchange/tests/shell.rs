//! What is taken of a script is what a shell does by it: scripts that are made up are given to real shells, in a world
//! where each write leaves a line, and to the import.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use planish_exchange::{ImportFormat, Imported, import};
use planish_model::Catalogue;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::embedded().expect("sound"));

/// Each takes any number below a million.
const KEYS: [&str; 8] = [
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
    "vm.stat_interval",
    "vm.vfs_cache_pressure",
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
    "net.ipv4.tcp_max_syn_backlog",
];

fn path(key: &str) -> String {
    format!("/proc/sys/{}", key.replace('.', "/"))
}

/// Makes up scripts out of a row of numbers.
struct Maker {
    state: u64,
    /// Values, each of which stands in one place of the script.
    values: u32,
    functions: u32,
}

impl Maker {
    fn below(&mut self, end: usize) -> usize {
        // splitmix64, whose low bits are as good as the others.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn value(&mut self) -> u32 {
        self.values += 1;
        1000 + self.values
    }

    fn write_to(&mut self, key: &str) -> String {
        let (value, path) = (self.value(), path(key));
        match self.below(7) {
            0 | 1 => format!("sysctl -w {key}={value}"),
            2 | 3 => format!("echo {value} > {path}"),
            4 => format!("echo \"{value}\" | tee {path} >/dev/null"),
            5 => format!("printf '%s\\n' {value} > {path}"),
            _ => format!("V={value}; echo $V > {path}"),
        }
    }

    /// A write that is one command.
    fn write(&mut self) -> String {
        let key = self.one(&KEYS);
        loop {
            let text = self.write_to(key);
            if !text.contains(';') {
                return text;
            }
        }
    }

    fn question(&mut self) -> String {
        let key = self.one(&KEYS);
        match self.below(10) {
            0 => "true".to_owned(),
            1 => "false".to_owned(),
            2 => "test -f /nowhere".to_owned(),
            3 => format!("[ -e {} ]", path(key)),
            4 => format!("[ ! -e {} ]", path(key)),
            5 => "[ \"$(echo 3)\" -gt 64 ]".to_owned(),
            6 => format!("! {}", self.write()),
            7 => "[ -z \"$V\" ]".to_owned(),
            8 => "echo x | grep -q y".to_owned(),
            _ => self.write(),
        }
    }

    fn end(&mut self) -> &'static str {
        self.one(&["true", "F=1", "echo no", "exit 1", ":", "continue", "break", "return", "false"])
    }

    fn statement(&mut self, depth: usize) -> String {
        let nested = depth < 3;
        match self.below(if nested { 34 } else { 17 }) {
            0..=4 => {
                let key = self.one(&KEYS);
                self.write_to(key)
            }
            5 => format!("{} && {}", self.question(), self.write()),
            6 => format!("{} || {}", self.question(), self.write()),
            7 => {
                let key = self.one(&KEYS);
                let write = self.write_to(key);
                match write.contains(';') {
                    true => write,
                    false => format!("[ ! -e {} ] || {write} || {}", path(key), self.end()),
                }
            }
            8 => format!("{} || {}", self.question(), self.end()),
            9 => format!("{} && {} || {}", self.question(), self.write(), self.write()),
            10 => {
                let (value, key) = (self.value(), self.one(&KEYS));
                let odd = self.one(&[
                    "W=$((W+1))",
                    "unset W",
                    "read W </dev/null",
                    "W=$(echo 88007)",
                    ":",
                    "export W=88005",
                ]);
                format!("W={value}\n{odd}\necho $W > {}", path(key))
            }
            11 => format!("# {}", self.write()),
            12 => format!("cat <<EOF >/dev/null\n{}\nEOF", self.write()),
            13 => format!("{} | cat", self.write()),
            14 => {
                let write = self.write();
                let frame = self.one(&["eval \"@\"", "@ &", "sh -c '@'", ": \"@\"", "X=$(@)"]);
                // Between quotes of its own kind `%s\n` would be bare, and the line without its end.
                let write = if frame.contains('\'') { write.replace('\'', "\"") } else { write };
                frame.replace('@', &write)
            }
            15 => {
                let odd = [
                    "set -e", "set +e", "set -u", "set +u", "V=88009", "unset V", "exit 0", "sleep 0", "true",
                ];
                self.one(&odd).to_owned()
            }
            16 => {
                let (key, first) = (self.one(&KEYS), self.value());
                format!("N=$(({first}*2)); sysctl -w {key}=$N")
            }
            kind => self.compound(kind, depth),
        }
    }

    /// What holds other statements.
    fn compound(&mut self, kind: usize, depth: usize) -> String {
        match kind {
            17..=21 => self.condition(depth),
            22..=25 => {
                let (value, one, two) = (self.value(), self.one(&KEYS), self.one(&KEYS));
                let (inner, ask) = (self.list(depth + 1), self.question());
                let end = self.one(&["continue", "break", "true"]);
                match self.below(3) {
                    0 => format!(
                        "for p in {} {}; do\n{ask} || {end}\necho {value} > \"$p\"\ndone",
                        path(one),
                        path(two)
                    ),
                    1 => format!("for v in {value} 7{value}; do sysctl -w {one}=$v; {inner}\ndone"),
                    _ => format!("for x in 1 2; do\n{ask} && {end}\n{inner}\ndone"),
                }
            }
            26 => {
                // Each of them ends whatever stands in it.
                let head =
                    self.one(&["while false", "while [ -f /nowhere ]", "until true", "while [ -z \"$L\" ]"]);
                format!("{head}; do\nL=1\n{}\ndone", self.list(depth + 1))
            }
            27 => format!(
                "case \"$1\" in\nstart) {}\n;;\n*) {}\n;;\nesac",
                self.list(depth + 1),
                self.list(depth + 1)
            ),
            28..=30 => {
                self.functions += 1;
                let name = format!("f{}", self.functions);
                let body = self.list(depth + 1);
                let call = match self.below(6) {
                    4 => {
                        // With a word that it uses, or one too few.
                        let (word, value, key) = (self.one(&["$1", "${2}"]), self.value(), self.one(&KEYS));
                        let shift = self.one(&[":", ":", "shift"]);
                        return format!(
                            "{name}() {{\n{shift}\nsysctl -w {key}={word}\n{body}\n}}\n{name} {value}"
                        );
                    }
                    5 => {
                        let (ask, one) = (
                            self.question(),
                            self.one(&["echo \"$L\"", "echo $1", "for x in $M; do :; done"]),
                        );
                        return format!("{name}() {{\n{body}\n}}\n{ask} && L=1\n{one}");
                    }
                    0 => String::new(),
                    1 => name.clone(),
                    2 => format!("{} && {name}", self.question()),
                    _ => format!("{name} a; {name}"),
                };
                format!("{name}() {{\n{body}\n}}\n{call}")
            }
            31 => format!("(\n{}\n)", self.list(depth + 1)),
            32 => format!("{{ {}\n}}", self.list(depth + 1)),
            _ => format!("( {}\n) || {}", self.list(depth + 1), self.end()),
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let ask = self.question();
        let mut text = match self.below(3) {
            0 => {
                let key = self.one(&KEYS);
                format!("if [ -f {} ]; then {}; ", path(key), self.write_to(key))
            }
            1 => format!("if {ask}\nthen\n{}\n", self.list(depth + 1)),
            _ => format!("if {ask}; then {}\n", self.list(depth + 1)),
        };
        if self.below(3) == 0 {
            let _ = write!(text, "elif {}; then\n{}\n", self.question(), self.list(depth + 1));
        }
        if self.below(2) == 0 {
            let _ = writeln!(text, "else {}", self.list(depth + 1));
        }
        text + "fi"
    }

    fn list(&mut self, depth: usize) -> String {
        let count = 1 + self.below(if depth == 0 { 7 } else { 3 });
        (0..count).map(|_| self.statement(depth)).collect::<Vec<_>>().join("\n")
    }
}

/// Runs a script by a shell; each write leaves its value as a line of its place's file below the folder.
#[expect(clippy::disallowed_methods, reason = "it writes below a folder of its own")]
fn run(shell: &str, script: &str, root: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for key in KEYS {
        let file = root.join(&path(key)[1..]);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        std::fs::write(file, "").expect("written");
    }
    let bin = root.join("bin");
    std::fs::create_dir_all(&bin).expect("made");
    let shown = root.display();
    let sysctl = format!(
        "#!/bin/sh\nfor a do case $a in *=*) k=${{a%%=*}}\n\
         while :; do case $k in *.*) k=${{k%%.*}}/${{k#*.}};; *) break;; esac; done\n\
         echo \"${{a#*=}}\" >> {shown}/proc/sys/$k;; esac; done\n"
    );
    let tee = "#!/bin/sh\nread x; echo \"$x\" >> \"$1\"\n";
    for (name, text) in [("sysctl", sysctl.as_str()), ("tee", tee)] {
        std::fs::write(bin.join(name), text).expect("written");
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).expect("set");
    }
    let text = script
        .replace("> /proc/sys/", ">> /proc/sys/")
        .replace("> \"$p\"", ">> \"$p\"")
        .replace("/proc/sys/", &format!("{shown}/proc/sys/"));
    let mut child = Command::new(shell)
        .arg("-c")
        .arg(text + "\nwait\n")
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let started = std::time::Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if started.elapsed().as_secs() > 20 {
            let _ = child.kill();
            panic!("{shell} does not come to an end:\n{script}");
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // What runs in the background may outlast the script that ends early.
    std::thread::sleep(std::time::Duration::from_millis(if script.contains(" &\n") { 60 } else { 0 }));
}

/// Every write that a shell did, in order for each place.
#[expect(clippy::disallowed_methods, reason = "it reads below a folder of its own")]
fn done(root: &Path) -> Vec<(&'static str, Vec<String>)> {
    let of = |key: &'static str| {
        let text = std::fs::read_to_string(root.join(&path(key)[1..])).expect("a file");
        (key, text.lines().map(str::to_owned).collect())
    };
    KEYS.into_iter().map(of).collect()
}

/// Whether a line that may have done a write was refused: one that has its value, else one that names its place.
fn is_refused(imported: &Imported, script: &str, key: &str, value: &str) -> bool {
    let refused = |words: &[&str]| {
        imported.lines.iter().filter(|row| row.knob.is_none() && row.overridden_by.is_none()).any(|row| {
            let own = script.lines().nth(row.line - 1).unwrap_or_default();
            words.iter().any(|word| own.contains(word) || row.text.contains(word))
        })
    };
    let path = path(key);
    // Its value may come by a variable from another line.
    let of_place = [key, path.as_str(), "\"$p\""];
    let is_one_line = |line: &str| line.contains(value) && of_place.iter().any(|word| line.contains(word));
    refused(&[value]) || !script.lines().any(is_one_line) && refused(&of_place)
}

fn compare(script: &str, shell: &str, root: &Path) -> Result<(), TestCaseError> {
    run(shell, script, root);
    let imported = import(&CATALOGUE, "mine", script, ImportFormat::Script);
    for (key, values) in done(root) {
        let told = |value: &str| format!("{} = {value}", path(key));
        let rows = |text: &str| {
            imported
                .lines
                .iter()
                .any(|row| row.text == text && (row.is_accepted() || row.overridden_by.is_some()))
        };
        for row in imported.lines.iter().filter(|row| row.is_accepted() || row.overridden_by.is_some()) {
            if let Some(value) = row.text.strip_prefix(&told("")) {
                let is_done = values.iter().any(|own| own == value);
                prop_assert!(
                    is_done,
                    "{shell} never sets {key} to {value}:\n{script}\n{:#?}",
                    imported.lines
                );
            }
        }
        for value in &values {
            let is_told = rows(&told(value)) || is_refused(&imported, script, key, value);
            prop_assert!(is_told, "{shell} sets {key} to {value}, unsaid:\n{script}\n{:#?}", imported.lines);
        }
        let wanted =
            imported.profile.want.get(&planish_model::KnobId::new(key)).and_then(|want| want.literal());
        if let (Some(wanted), Some(last)) = (wanted, values.last()) {
            let is_last = *last == wanted || is_refused(&imported, script, key, last);
            prop_assert!(
                is_last,
                "{key} is {last} behind {shell}, and not {wanted}:\n{script}\n{:#?}",
                imported.lines
            );
        }
    }
    Ok(())
}

/// Shells that are here: `sh` always is.
fn shells() -> Vec<&'static str> {
    ["/bin/sh", "/bin/bash"].into_iter().filter(|shell| Path::new(shell).exists()).collect()
}

/// Else the comparison below would be one of nothing.
#[test]
fn of_made_up_scripts_many_lines_are_taken_and_many_refused() {
    let (mut taken, mut refused, mut by_reason) = (0, 0, std::collections::BTreeMap::new());
    for state in 0..400 {
        let script = Maker { state, values: 0, functions: 0 }.list(0) + "\n";
        for row in import(&CATALOGUE, "mine", &script, ImportFormat::Script).lines {
            let is_taken = row.is_accepted() || row.overridden_by.is_some();
            *(if is_taken { &mut taken } else { &mut refused }) += 1;
            let why = row.reason.filter(|_| !is_taken).unwrap_or_default();
            *by_reason.entry(why.chars().take(12).collect::<String>()).or_insert(0) += 1;
        }
    }
    assert!(taken > 500 && refused > 1000, "{taken} taken, {refused} refused: {by_reason:?}");
    for why in
        ["runs only if", "never runs: ", "in the body ", "text of the ", "runs in the ", "inside a loo"]
    {
        assert!(by_reason.get(why).is_some_and(|count| *count > 5), "{why}: {by_reason:?}");
    }
}

#[test]
fn the_places_of_made_up_scripts_are_knobs_that_take_any_number() {
    for key in KEYS {
        for value in [1001_u32, 71_400] {
            let imported =
                import(&CATALOGUE, "mine", &format!("sysctl -w {key}={value}\n"), ImportFormat::Script);
            assert!(imported.lines[0].is_accepted(), "{key}: {:?}", imported.lines);
        }
    }
}

/// More of them, and others each time, where somebody has the time to look for what is still read otherwise.
fn config() -> ProptestConfig {
    let more = std::env::var("PLANISH_SCRIPTS").ok().and_then(|count| count.parse().ok());
    ProptestConfig {
        cases: more.unwrap_or(96),
        rng_seed: if more.is_some() { RngSeed::Random } else { RngSeed::Fixed(1) },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_taken_of_a_script_is_what_a_shell_does(state in any::<u64>()) {
        let script = Maker { state, values: 0, functions: 0 }.list(0) + "\n";
        for shell in shells() {
            let root = tempfile::tempdir().expect("a folder");
            compare(&script, shell, root.path())?;
        }
    }
}
