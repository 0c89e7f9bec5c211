//! The service and the timer of a publish of every week: as `planish text publish --timer` writes them for a user, and
//! read back by root. What root installs is rendered anew from what was read, so that nothing gets into a file of
//! systemd that this module does not write.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use crate::calendar;
use crate::error::PipelineError;
use crate::install::refuse_unless;

/// The times of a timer that nobody has edited.
const EVERY: &str = "weekly";
const SPREAD: &str = "6h";

/// What both units say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weekly {
    /// The program, by its absolute path.
    pub program: String,
    /// What it is called with, in turn: `text record ...` where a fresh profile is recorded first, `text publish ...`.
    pub commands: Vec<Vec<String>>,
    /// The folder in which it is called.
    pub folder: String,
    /// The folders that it writes into, by absolute paths: all else is read-only to it.
    pub writes: Vec<String>,
    /// The number of the user as whom it runs; root where there is none.
    pub user: Option<u32>,
    /// When, as a calendar event of systemd.
    pub every: String,
    /// The span over which the services of a fleet are spread.
    pub spread: String,
}

impl Weekly {
    /// Every week, some time within six hours.
    #[must_use]
    pub fn new(program: String, commands: Vec<Vec<String>>, folder: String, writes: Vec<String>) -> Self {
        let (every, spread) = (EVERY.to_owned(), SPREAD.to_owned());
        Self { program, commands, folder, writes, user: None, every, spread }
    }

    /// The text of the service. What it may do, and why not less: `docs/text-publish.md`.
    ///
    /// # Errors
    /// A word, or a folder, with control characters; a folder that systemd would read as another one; one of the system
    /// that root would write.
    pub fn service(&self) -> Result<String, PipelineError> {
        let mut text = format!(
            "[Unit]\nDescription=Publish a fresh text profile\nWants=network-online.target\n\
             After=network-online.target\n[Service]\nType=oneshot\nWorkingDirectory={}\n",
            folder(&self.folder)?
        );
        if let Some(user) = self.user {
            // Who publishes now: the repository and the keys are theirs.
            text += &format!("User={user}\n");
        }
        if self.records() {
            text += "# Recording a service takes this right and no other.\nAmbientCapabilities=CAP_PERFMON\n";
        }
        for command in &self.commands {
            let words = std::iter::once(&self.program).chain(command).map(|text| word(text));
            text += &format!("ExecStart={}\n", words.collect::<Result<Vec<_>, _>>()?.join(" "));
        }
        text += "# 1 says that it is pinned, and not pushed. 3 says that a gate refused it: the old pin stays.\n\
                 SuccessExitStatus=1\nTimeoutStartSec=3h\nNice=10\nUMask=0022\n";
        text += &format!("CapabilityBoundingSet={}\n{FENCE}", self.rights());
        // The program that is recorded is read by its path, and the unit that is named does not tell it.
        if !self.records() && !self.is_in_tmp() {
            text += "PrivateTmp=yes\n";
        }
        text += "# All that it writes; one that is not there is told by planish.\n";
        for path in &self.writes {
            refuse_unless(self.user.is_some() || !is_of_system(path), OF_THE_SYSTEM, path)?;
            text += &format!("ReadWritePaths={}\n", written(path)?);
        }
        Ok(text)
    }

    /// The rights that it may have at most. Root's are for files of others: what a store, or a repository, has of
    /// other users, with their groups and times. To record other users' processes takes reading what they have mapped.
    fn rights(&self) -> &'static str {
        match (self.user, self.records()) {
            (Some(_), false) => OF_A_USER,
            (Some(_), true) => OF_A_USER_WHO_RECORDS,
            (None, false) => OF_ROOT,
            (None, true) => OF_ROOT_WHO_RECORDS,
        }
    }

    /// Whether something that is named lies in what `PrivateTmp=` would replace by an empty folder.
    fn is_in_tmp(&self) -> bool {
        let is_in = |path: &str| {
            let path = Path::new(path.strip_prefix("file://").unwrap_or(path));
            path.starts_with("/tmp") || path.starts_with("/var/tmp")
        };
        let names_one =
            |word: &String| is_in(word) || word.split_once('=').is_some_and(|(_, value)| is_in(value));
        let words = self.commands.iter().flatten().chain(&self.writes);
        words.chain([&self.folder, &self.program]).any(names_one)
    }

    /// The text of the timer.
    #[must_use]
    pub fn timer(&self) -> String {
        let Self { every, spread, .. } = self;
        format!(
            "[Unit]\nDescription=Publish a fresh text profile, every week\n[Timer]\nOnCalendar={every}\n\
             # Not all services of a fleet at once; and after a week off, soon.\nRandomizedDelaySec={spread}\n\
             Persistent=true\n[Install]\nWantedBy=timers.target\n"
        )
    }

    /// What the texts of both units say.
    ///
    /// # Errors
    /// The first line that neither is one of [`Self::service`] and [`Self::timer`] nor differs from it in a value that
    /// may be edited; a service without a command; a time that is none.
    pub fn read(service: &str, timer: &str) -> Result<Self, PipelineError> {
        let mut read = Self::new(String::new(), Vec::new(), String::new(), Vec::new());
        for Line { section, key, value, text } in lines(service)? {
            let is_sound = match (section, key) {
                ("[Service]", "WorkingDirectory") => take(&mut read.folder, folder_of(value)),
                ("[Service]", "User") => match value.parse() {
                    // Root is whoever is not named.
                    Ok(user) if user > 0 && value.chars().all(|c| c.is_ascii_digit()) => {
                        read.user = Some(user);
                        true
                    }
                    _ => false,
                },
                ("[Service]", "ExecStart") => read.add(value),
                ("[Service]", "ReadWritePaths") => {
                    let path = written_of(value);
                    let is_sound = path.is_some();
                    read.writes.extend(path);
                    is_sound
                }
                _ => is_fixed(OF_SERVICE, section, key, value),
            };
            refuse_unless(is_sound, "line", text)?;
        }
        let ends_with = |verb: &str| read.commands.last().is_some_and(|command| command[1] == verb);
        refuse_unless(ends_with("publish"), "line", "(no ExecStart= that publishes, as the last one)")?;
        refuse_unless(!read.folder.is_empty(), "line", "(no WorkingDirectory=)")?;
        // One of an earlier version: nobody else knows what it writes.
        refuse_unless(!read.writes.is_empty(), "line", "(no ReadWritePaths=)")?;
        let mut has_time = false;
        for Line { section, key, value, text } in lines(timer)? {
            let is_sound = match (section, key) {
                ("[Timer]", "OnCalendar") => {
                    let not_a_time = |reason| PipelineError::NotATime { text: value.to_owned(), reason };
                    calendar::check(value).map_err(not_a_time)?;
                    value.clone_into(&mut read.every);
                    has_time = true;
                    true
                }
                ("[Timer]", "RandomizedDelaySec") => {
                    value.clone_into(&mut read.spread);
                    is_span(value)
                }
                _ => is_fixed(OF_TIMER, section, key, value),
            };
            refuse_unless(is_sound, "line", text)?;
        }
        refuse_unless(has_time, "line", "(no OnCalendar=)")?;
        Ok(read)
    }

    fn records(&self) -> bool {
        self.commands.iter().any(|command| command.get(1).is_some_and(|verb| verb == "record"))
    }

    /// Adds a command; false for one that no publish has.
    fn add(&mut self, line: &str) -> bool {
        let Some(mut words) = words_of(line).filter(|words| words.len() > 2) else { return false };
        let program = words.remove(0);
        let is_verb = words[0] == "text" && ["publish", "record"].contains(&words[1].as_str());
        self.commands.push(words);
        is_verb && program.starts_with('/') && (self.commands.len() == 1 || program == self.program) && {
            self.program = program;
            true
        }
    }
}

/// What a folder is called that root's service is not to write.
pub(crate) const OF_THE_SYSTEM: &str = "folder to write as root";

/// Whether root who may write there may do anything: a fence around that is none. Sources of this machine lie there by
/// custom. What leads up again could lead anywhere.
fn is_of_system(path: &str) -> bool {
    const SYSTEM: [&str; 11] =
        ["/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr"];
    let path = Path::new(path);
    let is_in = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    let leads_up = path.components().any(|part| part == Component::ParentDir);
    leads_up || path == Path::new("/") || (is_in(&SYSTEM) && !is_in(&["/usr/local/src", "/usr/src"]))
}

/// Takes a value that comes once.
fn take(place: &mut String, value: Option<String>) -> bool {
    let is_first = place.is_empty();
    *place = value.unwrap_or_default();
    is_first && !place.is_empty()
}

/// Whether a text is a span of time of numbers and units that are common (`systemd.time(7)`).
fn is_span(text: &str) -> bool {
    const UNITS: [&str; 13] =
        ["", "ms", "s", "sec", "second", "seconds", "m", "min", "minutes", "h", "hr", "hours", "d"];
    let mut rest = text.trim();
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = rest.len() - unit.len();
        let unit = unit.trim_start();
        let behind = unit.trim_start_matches(|c: char| c.is_ascii_lowercase());
        if !(1..10).contains(&digits) || !UNITS.contains(&&unit[..unit.len() - behind.len()]) {
            return false;
        }
        rest = behind.trim_start();
    }
    !text.trim().is_empty()
}

/// The rights of a service, by its user and by whether it records.
const OF_A_USER: &str = "";
const OF_A_USER_WHO_RECORDS: &str = "CAP_PERFMON";
const OF_ROOT: &str = "CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER";
const OF_ROOT_WHO_RECORDS: &str =
    "CAP_CHECKPOINT_RESTORE CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_PERFMON CAP_SYS_PTRACE";

/// What every service is fenced by. What is not there is missing on purpose: `docs/text-publish.md`.
const FENCE: &str = "\
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native
";

/// What other lines say, by section.
const OF_SERVICE: &[(&str, &str, &str)] = &[
    ("[Unit]", "Description", "Publish a fresh text profile"),
    ("[Unit]", "Wants", "network-online.target"),
    ("[Unit]", "After", "network-online.target"),
    ("[Service]", "Type", "oneshot"),
    ("[Service]", "AmbientCapabilities", "CAP_PERFMON"),
    ("[Service]", "SuccessExitStatus", "1"),
    ("[Service]", "TimeoutStartSec", "3h"),
    ("[Service]", "Nice", "10"),
    ("[Service]", "UMask", "0022"),
    ("[Service]", "CapabilityBoundingSet", OF_A_USER),
    ("[Service]", "CapabilityBoundingSet", OF_A_USER_WHO_RECORDS),
    ("[Service]", "CapabilityBoundingSet", OF_ROOT),
    ("[Service]", "CapabilityBoundingSet", OF_ROOT_WHO_RECORDS),
    ("[Service]", "PrivateTmp", "yes"),
];
const OF_TIMER: &[(&str, &str, &str)] = &[
    ("[Unit]", "Description", "Publish a fresh text profile, every week"),
    ("[Timer]", "Persistent", "true"),
    ("[Install]", "WantedBy", "timers.target"),
];

fn is_fixed(known: &[(&str, &str, &str)], section: &str, key: &str, value: &str) -> bool {
    let is_fence = || FENCE.lines().any(|line| line.split_once('=') == Some((key, value)));
    known.contains(&(section, key, value)) || (section == "[Service]" && is_fence())
}

/// An assignment, with its section and its line as it stands.
struct Line<'a> {
    section: &'a str,
    key: &'a str,
    value: &'a str,
    text: &'a str,
}

/// Keys that may come again.
const MANY: [&str; 2] = ["ExecStart", "ReadWritePaths"];

/// The assignments of a text, each key once in its section save for lists. Only the line feed ends a line here, and
/// of control characters nothing else is let through: systemd takes a carriage return for the end of a line, too.
fn lines(text: &str) -> Result<Vec<Line<'_>>, PipelineError> {
    let (mut section, mut found, mut seen) = ("", Vec::new(), BTreeSet::new());
    for text in text.split('\n') {
        refuse_unless(!text.contains(char::is_control) && !text.ends_with('\\'), "line", text)?;
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if text.starts_with('[') {
            section = text;
            continue;
        }
        let set = text.split_once('=').filter(|(key, _)| MANY.contains(key) || seen.insert((section, *key)));
        let Some((key, value)) = set else {
            return Err(PipelineError::NotForAUnit { what: "line", text: text.to_owned() });
        };
        found.push(Line { section, key, value, text });
    }
    Ok(found)
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+@:=,".contains(c))
}

/// A word of a command line of systemd, which knows quotes, `%` and `$` of its own (`systemd.service(5)`).
fn word(text: &str) -> Result<String, PipelineError> {
    refuse_unless(!text.contains(char::is_control), "word", text)?;
    if is_plain(text) {
        return Ok(text.to_owned());
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    Ok(format!("\"{escaped}\""))
}

/// The words of a line that [`word`] has made; `None` of any other line.
fn words_of(line: &str) -> Option<Vec<String>> {
    let (mut words, mut rest) = (Vec::new(), line);
    loop {
        let (word, behind) = match rest.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (word, _) = rest.split_once(' ').unwrap_or((rest, ""));
                (Some(word).filter(|word| is_plain(word))?.to_owned(), &rest[word.len()..])
            }
        };
        words.push(word);
        match behind.strip_prefix(' ') {
            Some(behind) => rest = behind,
            None => return behind.is_empty().then_some(words),
        }
    }
}

/// The word up to the quote that ends it, and what stands behind that.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let (mut word, mut chars) = (String::new(), quoted.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((word, &quoted[at + 1..])),
            '\\' => word.push(chars.next().map(|(_, c)| c).filter(|c| "\\\"".contains(*c))?),
            '%' | '$' => word.push(chars.next().map(|(_, next)| next).filter(|next| *next == c)?),
            _ => word.push(c),
        }
    }
    None
}

/// A folder as a unit has it, which stands without quotes, and blanks mean themselves in it.
fn folder(path: &str) -> Result<String, PipelineError> {
    let is_sound = path.starts_with('/')
        && !path.contains(char::is_control)
        && !path.ends_with(char::is_whitespace)
        && !path.ends_with('\\');
    refuse_unless(is_sound, "folder", path)?;
    Ok(path.replace('%', "%%"))
}

fn folder_of(value: &str) -> Option<String> {
    let path = value.replace("%%", "\u{0}");
    let path = Some(path).filter(|path| !path.contains('%'))?.replace('\u{0}', "%");
    folder(&path).is_ok_and(|again| again == value).then_some(path)
}

/// A folder that is written, as a unit has it: with quotes where it has to have some, and no harm where there is none.
/// A `$` means itself there.
fn written(path: &str) -> Result<String, PipelineError> {
    let is_sound = path.starts_with('/') && !path.contains(char::is_control);
    refuse_unless(is_sound, "folder", path)?;
    if is_plain(path) {
        return Ok(format!("-{path}"));
    }
    let escaped = path.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    Ok(format!("\"-{escaped}\""))
}

fn written_of(value: &str) -> Option<String> {
    let path = match value.strip_prefix("\"-").and_then(|quoted| quoted.strip_suffix('"')) {
        // A dollar is the one thing that means itself here and not on a command line.
        Some(escaped) => match unquoted(&format!("{}\"", escaped.replace('$', "$$")))? {
            (path, "") => path,
            _ => return None,
        },
        None => value.strip_prefix('-')?.to_owned(),
    };
    written(&path).is_ok_and(|again| again == value).then_some(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn weekly() -> Weekly {
        let record = owned(&["text", "record", "--unit", "a.service", "-o", "a b.planish"]);
        let publish = owned(&["text", "publish", "a b.planish", "--store", "s3://b/p,x=1"]);
        let writes = owned(&["/srv/50% a", "/srv/store"]);
        let program = "/opt/my tools/planish".to_owned();
        let weekly = Weekly::new(program, vec![record, publish], "/srv/50% a".to_owned(), writes);
        Weekly { user: Some(1000), ..weekly }
    }

    fn read(service: &str) -> Result<Weekly, PipelineError> {
        Weekly::read(service, &weekly().timer())
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = weekly().service().expect("sound");
        assert!(text.contains("WorkingDirectory=/srv/50%% a\nUser=1000\n"), "{text}");
        assert_eq!(read(&text).expect("ours"), weekly());
        let edited = weekly().timer().replace("weekly", "Mon 03:00").replace("6h", "90 min");
        let read = Weekly::read(&text, &edited).expect("times may be edited");
        assert_eq!((read.every.as_str(), read.spread.as_str()), ("Mon 03:00", "90 min"));
        assert_eq!(read.timer(), edited);
    }

    #[test]
    fn words_of_a_unit_mean_themselves() {
        for (text, told) in [
            ("s3://b/p,x=1", "s3://b/p,x=1"),
            ("a b", "\"a b\""),
            ("50%$x\"\\", "\"50%%$$x\\\"\\\\\""),
            ("", "\"\""),
        ] {
            assert_eq!(word(text).expect("sound"), told);
        }
        assert!(word("a\nExecStart=x").is_err());
    }

    /// Each of these would have systemd do something that no publish does, or is not read by it as it is here.
    #[test]
    fn a_line_that_no_publish_has_is_refused() {
        let text = weekly().service().expect("sound");
        let change = |old: &str, new: &str| {
            assert!(text.contains(old), "{old}");
            text.replacen(old, new, 1)
        };
        for forged in [
            change("[Service]\n", "[X-Service]\n"),
            change("User=1000\n", "[Unit]\nUser=1000\n[Service]\n"),
            change("User=1000\n", "User=root\n"),
            change("User=1000\n", "User=+0\n"),
            change("User=1000\n", "User=0000\n"),
            change("User=1000\n", "User=1000\nUser=0\n"),
            change("User=1000\n", "User=1000\n# x\rUser=0\n"),
            change("User=1000\n", "\u{a0}User=1000\n"),
            change("User=1000\n", " User=1000\n"),
            change("User=1000\n", "User=1000\n; x \\\n"),
            change("Wants=network-online.target", "Wants=debug-shell.service"),
            change("After=network-online.target", "OnFailure=debug-shell.service"),
            change("\"/opt/my tools/planish\" text record", "/bin/sh -c \"id # text record\""),
            change("\"/opt/my tools/planish\" text record", "/bin/sh text record"),
            change("ExecStart=\"/opt", "ExecStart=+\"/opt"),
            change("\"a b.planish\"", "\"a $x.planish\""),
            change("\"a b.planish\"", "\"a %i.planish\""),
            change("\"a b.planish\"", "'a b.planish'"),
            change("\"a b.planish\"", "a ; /bin/sh"),
            change("CAP_PERFMON", "CAP_SYS_ADMIN"),
            change("Nice=10", "Environment=LD_PRELOAD=/tmp/x"),
            change("Nice=10", "ExecStartPre=/bin/true"),
            change("WorkingDirectory=/", "WorkingDirectory=-/"),
            change("CapabilityBoundingSet=CAP_PERFMON", "CapabilityBoundingSet=~CAP_PERFMON"),
            change("NoNewPrivileges=yes", "NoNewPrivileges=no"),
            change("ProtectHome=read-only", "ProtectHome=no"),
            change("ReadWritePaths=-/srv/store", "ReadWritePaths=/srv/store"),
            change("ReadWritePaths=-/srv/store", "ReadWritePaths=-/srv/store /etc"),
            change("ReadWritePaths=-/srv/store", "ReadWritePaths=-+/srv/store"),
            change("ReadWritePaths=-/srv/store", "ReadWritePaths=-/srv/%i"),
            change("ReadWritePaths=-/srv/store", "BindPaths=/srv/store:/etc"),
            change("Nice=10", "PrivateTmp=disconnected"),
            text.lines().filter(|line| !line.starts_with("ReadWrite")).collect::<Vec<_>>().join("\n"),
            text.replace(" text publish ", " text record "),
            text.lines().filter(|line| !line.starts_with("ExecStart")).collect::<Vec<_>>().join("\n"),
            String::new(),
        ] {
            assert!(read(&forged).is_err(), "{forged}");
        }
        let service = |timer: &str| Weekly::read(&text, timer).is_err();
        assert!(service(&weekly().timer().replace("[Timer]\n", "[Timer]\nUnit=debug-shell.service\n")));
        assert!(service(&weekly().timer().replace("weekly", "some day")));
        assert!(service(""));
        for span in ["zzz", "", "6", "6h 5", "90 min", "1h30m", "h"] {
            let is_span = ["6", "6h 5", "90 min", "1h30m"].contains(&span);
            assert_eq!(service(&weekly().timer().replace("6h", span)), !is_span, "{span}");
        }
        assert!(service(&weekly().timer().replace("timers.target", "x.target")));
    }

    const OF_ROOT_WHOLE: &str = "[Unit]
Description=Publish a fresh text profile
Wants=network-online.target
After=network-online.target
[Service]
Type=oneshot
WorkingDirectory=/srv/repo
ExecStart=/usr/bin/planish text publish a.planish --branch bot --push origin
# 1 says that it is pinned, and not pushed. 3 says that a gate refused it: the old pin stays.
SuccessExitStatus=1
TimeoutStartSec=3h
Nice=10
UMask=0022
CapabilityBoundingSet=CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native
PrivateTmp=yes
# All that it writes; one that is not there is told by planish.
ReadWritePaths=-/srv/repo
ReadWritePaths=\"-/srv/the store\"
";

    /// A directive that is there or gone by chance is a hole that nobody sees: the whole texts, by who runs them.
    #[test]
    fn a_service_may_do_what_it_has_to_and_no_more() {
        let publish = owned(&["text", "publish", "a.planish", "--branch", "bot", "--push", "origin"]);
        let writes = owned(&["/srv/repo", "/srv/the store"]);
        let of_root =
            Weekly::new("/usr/bin/planish".to_owned(), vec![publish], "/srv/repo".to_owned(), writes);
        let of_a_user = Weekly { user: Some(1000), ..of_root.clone() };
        let recording = |weekly: &Weekly| {
            let record = owned(&["text", "record", "--unit", "a.service", "-o", "a.planish"]);
            Weekly { commands: [vec![record], weekly.commands.clone()].concat(), ..weekly.clone() }
        };
        let text = |weekly: &Weekly| weekly.service().expect("sound");
        assert_eq!(text(&of_root), OF_ROOT_WHOLE);
        let who_records = "User=1000\n# Recording a service takes this right and no other.\n\
                           AmbientCapabilities=CAP_PERFMON\n\
                           ExecStart=/usr/bin/planish text record --unit a.service -o a.planish\nExecStart=";
        let expected = OF_ROOT_WHOLE.replacen("ExecStart=", who_records, 1).replace("PrivateTmp=yes\n", "");
        assert_eq!(text(&recording(&of_a_user)), expected.replace(OF_ROOT, OF_A_USER_WHO_RECORDS));
        let bounded = |weekly: &Weekly| {
            let text = text(weekly);
            let line = text.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
            line.expect("every service is bounded").to_owned()
        };
        assert_eq!(bounded(&of_a_user), "");
        assert_eq!(bounded(&of_root), "CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER");
        assert!(bounded(&recording(&of_root)).contains(" CAP_PERFMON CAP_SYS_PTRACE"));
        for weekly in [&of_root, &of_a_user, &recording(&of_root), &recording(&of_a_user)] {
            assert_eq!(&read(&text(weekly)).expect("ours"), weekly);
        }
    }

    /// Each of these lines is as ours are, and leaves nothing of the fence.
    #[test]
    fn a_service_of_root_may_not_write_the_system() {
        let of_root = |path: &str| Weekly { user: None, writes: vec![path.to_owned()], ..weekly() };
        for path in ["/", "//", "/etc", "/etc/systemd/system", "/usr/bin/.", "/boot", "/srv/../etc"] {
            assert!(of_root(path).service().is_err(), "{path}");
            // What a user may not write anyway does no harm.
            assert!(Weekly { user: Some(1000), ..of_root(path) }.service().is_ok(), "{path}");
        }
        for path in ["/srv/etc", "/etcetera", "/root/repo", "/usr/local/src/repo", "/var/lib/store"] {
            assert!(of_root(path).service().is_ok(), "{path}");
        }
        let text = of_root("/srv").service().expect("sound").replace("=-/srv\n", "=-/etc\n");
        let edited = read(&text).expect("each line is one of ours");
        assert!(edited.service().is_err(), "and it is not written anew");
    }

    #[test]
    fn a_private_tmp_hides_nothing_that_the_service_needs() {
        let has = |weekly: &Weekly| weekly.service().expect("sound").contains("PrivateTmp=yes\n");
        assert!(!has(&weekly()), "what it records may lie anywhere");
        let publishing = || Weekly { commands: weekly().commands.split_off(1), ..weekly() };
        assert!(has(&publishing()));
        assert!(has(&Weekly { folder: "/tmpfs/x".to_owned(), ..publishing() }));
        let with = |word: &str| {
            let mut weekly = publishing();
            weekly.commands[0].push(word.to_owned());
            weekly
        };
        let in_tmp = [
            Weekly { folder: "/tmp/x".to_owned(), ..publishing() },
            Weekly { program: "/var/tmp/planish".to_owned(), ..publishing() },
            Weekly { writes: vec!["/tmp".to_owned()], ..publishing() },
            with("/tmp/order.txt"),
            with("--order=/tmp/order.txt"),
            with("file:///tmp/remote.git"),
        ];
        in_tmp.iter().for_each(|weekly| assert!(!has(weekly), "{weekly:?}"));
    }

    #[test]
    fn folders_that_are_written_mean_themselves() {
        for (path, told) in [
            ("/srv/store", "-/srv/store"),
            ("/srv/my store", "\"-/srv/my store\""),
            ("/a\"b\\c%d$e", "\"-/a\\\"b\\\\c%%d$e\""),
        ] {
            assert_eq!(written(path).expect("sound"), told);
            assert_eq!(written_of(told).as_deref(), Some(path));
        }
        for wrong in ["store", "", "/a\nb"] {
            assert!(written(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_words_come_back(
            words in prop::collection::vec("[^\\p{Cc}]{0,12}", 1..6),
            folder in "/[^\\p{Cc}]{0,12}",
            writes in prop::collection::vec("/[^\\p{Cc}]{0,12}", 1..4),
        ) {
            let mut command = owned(&["text", "publish"]);
            command.extend(words);
            let wanted = Weekly::new("/p".to_owned(), vec![command], folder, writes);
            if let Ok(text) = wanted.service() {
                prop_assert_eq!(read(&text).expect("ours"), wanted);
            }
        }

        #[test]
        fn what_is_read_of_any_text_is_written_as_it_is_read(edit in 0..1600_usize, text in "[\\PC\\n\\r=%$\"]{0,6}") {
            let mut service = weekly().service().expect("sound");
            let at = (edit.min(service.len())..=service.len()).find(|at| service.is_char_boundary(*at)).unwrap_or(0);
            service.insert_str(at, &text);
            if let Ok(found) = read(&service) {
                let again = found.service().expect("sound");
                prop_assert_eq!(read(&again).expect("ours"), found);
            }
        }
    }
}
