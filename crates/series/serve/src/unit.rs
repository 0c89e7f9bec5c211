//! The text of a unit, and whether a text is one of ours.
//!
//! The first line has a hash of the rest: a unit that somebody has changed is theirs.

use std::fmt::Write as _;
use std::path::{Component, Path};

use sha2::{Digest, Sha256};

use crate::serving::ServeOptions;

const TITLE: &str = "# Written by planish-series install; a change makes it yours. ";

/// Options of `serve` that name a file which the service must read.
const FILES: [&str; 3] = ["--tokens", "--tls-cert", "--tls-key"];

/// What no server of tables needs. It has no right of root's, sees no homes, writes its tables and nothing else, and
/// makes no call of the kernel that services do not make. io_uring is `@aio`, pages of a node are `@resources`: both
/// are of `@system-service`. Memory is never written and executed.
const FENCES: &str = "\
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
UMask=0077
";

/// What a service does not see, or sees empty.
const HIDDEN: [&str; 5] = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

/// Whether a service does not see a file.
pub(crate) fn is_hidden(path: &Path) -> bool {
    HIDDEN.iter().any(|folder| path.starts_with(folder))
}

/// A unit that is to be written.
#[derive(Debug)]
pub(crate) struct Unit<'a> {
    pub(crate) program: &'a Path,
    pub(crate) user: Option<&'a str>,
    /// What follows `serve`.
    pub(crate) arguments: &'a [String],
}

impl Unit<'_> {
    /// The text; `options` are what the arguments mean.
    ///
    /// # Errors
    /// What keeps the server from being a service.
    pub(crate) fn text(&self, options: &ServeOptions) -> Result<String, String> {
        for path in options.paths() {
            if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
                return Err(format!("{}: say the whole path, a service is in no folder", path.display()));
            }
            if is_hidden(path) {
                return Err(format!(
                    "{}: a service sees no homes, and has a /tmp of its own",
                    path.display()
                ));
            }
        }
        let data = options.data();
        let mut body = String::new();
        let mut line = |text: &str| {
            body.push_str(text);
            body.push('\n');
        };
        line("[Unit]");
        line(&format!("Description=planish-series, tables of {}", plain(data)?.replace('%', "%%")));
        match options.is_loopback() {
            true => line("After=network.target"),
            false => line("After=network-online.target\nWants=network-online.target"),
        }
        line("\n[Service]\nType=notify");
        let mut arguments = self.arguments.to_vec();
        match self.user {
            Some(user) => {
                line(&format!("User={user}"));
                // Nothing is to be written by one that follows.
                let paths = if options.is_writer() { "ReadWritePaths" } else { "ReadOnlyPaths" };
                line(&format!("{paths}={}", word(plain(data)?)));
                if options.has_tls() {
                    // A renewed certificate.
                    line("ExecReload=/bin/kill -HUP $MAINPID");
                }
            }
            None if !options.is_writer() => {
                return Err("tables of another instance belong to its user; say --user".to_owned());
            }
            None => {
                line("DynamicUser=yes");
                line(&format!("StateDirectory={}\nStateDirectoryMode=0700", state_folder(data)?));
                // Of files that only root reads the service gets a copy.
                for (option, path) in credentials(&mut arguments) {
                    line(&format!("LoadCredential={option}:{}", path.replace('%', "%%")));
                }
            }
        }
        if let Some(files) = options.files().filter(|files| !files.starts_with(data)) {
            line(&format!("ReadOnlyPaths={}", word(plain(files)?)));
        }
        let words = arguments.iter().map(|argument| format!(" {}", argument_word(argument)));
        let program = plain(self.program)?;
        line(&format!("ExecStart={} serve{}", word(program), words.collect::<String>()));
        // Usage, and what is refused, is so each time.
        line("Restart=on-failure\nRestartSec=1\nRestartPreventExitStatus=2 3");
        line(&format!("TimeoutStopSec={}", options.grace().as_secs().saturating_add(10)));
        line("LimitNOFILE=65536");
        if options.is_loopback() {
            line("IPAddressDeny=any\nIPAddressAllow=localhost");
        }
        line(FENCES.trim_end());
        line("\n[Install]\nWantedBy=multi-user.target");
        Ok(titled(&body))
    }
}

fn titled(body: &str) -> String {
    format!("{TITLE}{}\n{body}", hash(body))
}

fn hash(body: &str) -> String {
    Sha256::digest(body).iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether a unit is as this program has written it, now or in another version.
pub(crate) fn is_ours(text: &str) -> bool {
    let split = text.strip_prefix(TITLE).and_then(|rest| rest.split_once('\n'));
    split.is_some_and(|(title, body)| title == hash(body))
}

/// The folder of a unit's own below /var/lib, which systemd makes for a user that it makes up.
fn state_folder(data: &Path) -> Result<&str, String> {
    let below = data.strip_prefix("/var/lib").ok().and_then(Path::to_str);
    let below = below.map(|name| name.trim_end_matches('/')).filter(|name| !name.is_empty());
    let is_plain =
        |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    below
        .filter(is_plain)
        .ok_or_else(|| format!("{}: tables outside of /var/lib belong to a user; say --user", data.display()))
}

/// Has files of the arguments read from where systemd puts copies of them; says which.
fn credentials(arguments: &mut [String]) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for index in 0..arguments.len() {
        for option in FILES {
            let copy = format!("${{CREDENTIALS_DIRECTORY}}/{}", &option[2..]);
            let next = arguments[index].strip_prefix(option).map(str::to_owned);
            match next.as_deref() {
                Some("") if index + 1 < arguments.len() => {
                    found.push((&option[2..], std::mem::replace(&mut arguments[index + 1], copy)));
                }
                Some(value) if value.starts_with('=') => {
                    found.push((&option[2..], value[1..].to_owned()));
                    arguments[index] = format!("{option}={copy}");
                }
                _ => {}
            }
        }
    }
    found
}

fn plain(path: &Path) -> Result<&str, String> {
    let text = path.to_str().filter(|text| !text.contains(|it: char| it.is_control()));
    text.ok_or_else(|| format!("{}: a unit cannot name it", path.display()))
}

/// An argument; the variable that systemd is to put in stays one.
fn argument_word(text: &str) -> String {
    match text.split_once("${CREDENTIALS_DIRECTORY}") {
        Some((before, behind)) => format!("{before}${{CREDENTIALS_DIRECTORY}}{behind}"),
        None => word(text).replace('$', "$$"),
    }
}

/// A word of a line, as systemd.syntax(7) and systemd.service(5) have it.
fn word(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('\n', "\\n");
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:=,+@%".contains(it);
    if !text.is_empty() && text.chars().all(is_plain) { escaped } else { format!("\"{escaped}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_systemd_reads_as_one() {
        for (text, wanted) in [
            ("--data=/a-b_c", "--data=/a-b_c"),
            ("a b", "\"a b\""),
            ("", "\"\""),
            ("50%", "50%%"),
            ("a\"b\\", "\"a\\\"b\\\\\""),
            ("$HOME", "\"$$HOME\""),
            ("a;b", "\"a;b\""),
        ] {
            assert_eq!(argument_word(text), wanted);
        }
    }

    #[test]
    fn a_unit_that_was_changed_is_not_ours() {
        let text = titled("[Unit]\nDescription=a\n");
        assert!(is_ours(&text));
        for other in [text.replace("=a", "=b"), format!("{text}x"), text[1..].to_owned(), String::new()] {
            assert!(!is_ours(&other), "{other}");
        }
    }

    #[test]
    fn files_of_root_are_read_from_copies() {
        let mut arguments: Vec<String> =
            ["--tokens", "/a b", "--tls-key=/k", "--tls-cert", "/c", "--threads", "2"]
                .map(str::to_owned)
                .into();
        let found = credentials(&mut arguments);
        let wanted = [("tokens", "/a b"), ("tls-key", "/k"), ("tls-cert", "/c")];
        assert_eq!(found, wanted.map(|(option, path)| (option, path.to_owned())));
        let of = |name: &str| format!("${{CREDENTIALS_DIRECTORY}}/{name}");
        let key = format!("--tls-key={}", of("tls-key"));
        assert_eq!(
            arguments,
            ["--tokens", &of("tokens"), &key, "--tls-cert", &of("tls-cert"), "--threads", "2"]
        );
        assert_eq!(argument_word(&arguments[1]), "${CREDENTIALS_DIRECTORY}/tokens");
    }

    #[test]
    fn the_folder_of_a_made_up_user_is_below_var_lib() {
        assert_eq!(state_folder(Path::new("/var/lib/planish/a")), Ok("planish/a"));
        assert_eq!(state_folder(Path::new("/var/lib/a/")), Ok("a"));
        for path in ["/var/lib", "/srv/x", "/var/lib/a b", "/var/lib/%n"] {
            assert!(state_folder(Path::new(path)).is_err(), "{path}");
        }
    }
}
