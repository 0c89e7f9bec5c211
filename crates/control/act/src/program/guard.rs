//! Programs whose file is not replaced, and how that is found out.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use planish_host::Host;
use planish_sys::code::uprobe_of;
use planish_sys::file::{attributes, open_unless_link, who_may_replace};
use rustix::fs::{IFlags, ioctl_getflags};
use rustix::io::Errno;

/// Why a program's file is not replaced.
#[derive(Debug, thiserror::Error)]
pub enum ProgramRefusal {
    /// It cannot be looked at.
    #[error("cannot look at {path}")]
    Unread {
        /// The file.
        path: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A folder, a link, a device.
    #[error("{path} is no plain file")]
    NotAFile {
        /// What it is called.
        path: String,
    },
    /// It runs with the rights of its owner or group.
    #[error("{path} runs with the rights of its owner or group (setuid, setgid)")]
    Setuid {
        /// The file.
        path: String,
    },
    /// It has other names, which would keep the old content.
    #[error("{path} has {names} names (hard links): the others would keep the old file")]
    SeveralNames {
        /// The file.
        path: String,
        /// How many.
        names: u64,
    },
    /// The loader or the libc: what every other program needs to start.
    #[error("{path} is {what}: every program needs it to start")]
    Loader {
        /// The file.
        path: String,
        /// Which of them.
        what: &'static str,
    },
    /// The program of process 1.
    #[error("{path} is the program of process 1")]
    Init {
        /// The file.
        path: String,
    },
    /// Attributes of the file system forbid changes, or vouch for its content.
    #[error("{path} is {what}")]
    Sealed {
        /// The file.
        path: String,
        /// How.
        what: &'static str,
    },
    /// A signature of its content lies with it.
    #[error("{path} has a signature of its content with it ({attribute})")]
    Signed {
        /// The file.
        path: String,
        /// The attribute.
        attribute: String,
    },
    /// Others may give its name to another file at any moment.
    #[error("{path} lies in {folder}, in which {who} may put another file in its place")]
    Foreign {
        /// The file.
        path: String,
        /// The folder, or one above it.
        folder: String,
        /// Who may.
        who: String,
    },
    /// Somebody listens at it: a uprobe belongs to the file, and not to its name.
    #[error(
        "{path} has a uprobe at offset {at:#x}{}: whoever set it would hear nothing of the new file",
        event.as_ref().map(|event| format!(" ({event})")).unwrap_or_default()
    )]
    Probed {
        /// The file.
        path: String,
        /// Where in the file.
        at: u64,
        /// Its name among the events of tracefs, where it has one.
        event: Option<String>,
    },
    /// A package has it.
    #[error("{path} is a file of a package ({package})")]
    Packaged {
        /// The file.
        path: String,
        /// The package.
        package: String,
    },
}

impl ProgramRefusal {
    /// What to do instead.
    #[must_use]
    pub fn cure(&self) -> String {
        match self {
            Self::Unread { .. } | Self::NotAFile { .. } => "name the program's own file".to_owned(),
            Self::Packaged { .. } => {
                "planish ... --packaged replaces it all the same: checks of the package (dpkg -V) name it until \
                 planish undo, and its next upgrade brings a file of its own"
                    .to_owned()
            }
            Self::Setuid { .. } | Self::Init { .. } | Self::Loader { .. } => {
                "leave it as it is: planish text verify tells what it has".to_owned()
            }
            Self::SeveralNames { path, .. } => {
                format!("give it a file of its own first: cp -p {path} {path}.own && mv {path}.own {path}")
            }
            Self::Foreign { folder, .. } => format!(
                "run it as the owner of {folder}, or see that root alone may write there: chown root {folder} && \
                 chmod go-w {folder}"
            ),
            Self::Probed { .. } => {
                "take it off first, and set it afresh afterwards: perf probe --del; those of bpftrace and its like end \
                 with them"
                    .to_owned()
            }
            Self::Sealed { .. } | Self::Signed { .. } => {
                "who sealed it has to lift that first, or build the program so that it fits: planish text check"
                    .to_owned()
            }
        }
    }
}

/// Refuses a program's file by what it is and whose it is.
pub(super) fn refuse(
    host: &Host,
    path: &str,
    real: &Path,
    metadata: &Metadata,
    packaged: bool,
) -> Result<(), ProgramRefusal> {
    let own = || path.to_owned();
    if !metadata.is_file() {
        return Err(ProgramRefusal::NotAFile { path: own() });
    }
    if metadata.mode() & super::rights::SETUID != 0 {
        return Err(ProgramRefusal::Setuid { path: own() });
    }
    if metadata.nlink() > 1 {
        return Err(ProgramRefusal::SeveralNames { path: own(), names: metadata.nlink() });
    }
    if let Some(what) = needed_by_all(path) {
        return Err(ProgramRefusal::Loader { path: own(), what });
    }
    let named = |link: &str| host.read_link(link).is_some_and(|program| program == path);
    if named("/proc/1/exe") || INIT.iter().any(|init| host.canonical(init).as_deref() == Some(path)) {
        return Err(ProgramRefusal::Init { path: own() });
    }
    refuse_sealed(path, real)?;
    refuse_foreign(path, real)?;
    refuse_probed(host, path, real)?;
    match package_of(host, path) {
        Some(package) if !packaged => Err(ProgramRefusal::Packaged { path: own(), package }),
        _ => Ok(()),
    }
}

/// Where the program of process 1 is, for those who may not ask process 1.
const INIT: [&str; 3] = ["/sbin/init", "/usr/lib/systemd/systemd", "/lib/systemd/systemd"];

fn needed_by_all(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let begins = |names: &[&str]| names.iter().any(|begin| name.starts_with(begin));
    if begins(&["ld-linux", "ld-musl", "ld64.so", "ld.so", "ld-2."]) {
        Some("the loader")
    } else if begins(&["libc.so", "libc-2.", "libc.musl"]) {
        Some("the libc")
    } else {
        None
    }
}

/// Refuses what the file system does not let anybody change, or whose content somebody vouches for.
fn refuse_sealed(path: &str, real: &Path) -> Result<(), ProgramRefusal> {
    let unread = |source: io::Error| ProgramRefusal::Unread { path: path.to_owned(), source };
    let file = File::open(real).map_err(unread)?;
    let flags = match ioctl_getflags(&file) {
        Ok(flags) => flags,
        Err(Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => IFlags::empty(),
        Err(errno) => return Err(unread(errno.into())),
    };
    let sealed = [
        (IFlags::IMMUTABLE, "immutable (chattr +i)"),
        (IFlags::APPEND, "append-only (chattr +a)"),
        (IFlags::from_bits_retain(FS_VERITY_FL), "sealed by fs-verity"),
    ];
    if let Some((_, what)) = sealed.into_iter().find(|(flag, _)| flags.intersects(*flag)) {
        return Err(ProgramRefusal::Sealed { path: path.to_owned(), what });
    }
    let names = attributes(&file).map_err(unread)?;
    let vouches = |name: &&String| matches!(name.as_str(), "security.ima" | "security.evm");
    match names.iter().find(vouches) {
        Some(name) => Err(ProgramRefusal::Signed { path: path.to_owned(), attribute: name.clone() }),
        None => Ok(()),
    }
}

/// Refuses what lies where somebody else than root and us decides which file has a name: what is made there, and given
/// an owner, would be theirs to move about.
fn refuse_foreign(path: &str, real: &Path) -> Result<(), ProgramRefusal> {
    let (own, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let found = real.parent().and_then(|folder| who_may_replace(folder, &[0, own], &[0, group]));
    found.map_or(Ok(()), |(who, folder)| {
        Err(ProgramRefusal::Foreign { path: path.to_owned(), folder: folder.display().to_string(), who })
    })
}

/// Refuses a file that somebody has set a uprobe on: one that is armed is seen in a mapping of it, and one that is only
/// defined yet in the list of tracefs.
fn refuse_probed(host: &Host, path: &str, real: &Path) -> Result<(), ProgramRefusal> {
    let listed = EVENTS.iter().find_map(|list| {
        let events = host.read_lossy(list).ok()?;
        let is_it = |named: &str| named == path || host.canonical(named).as_deref() == Some(path);
        event_on(&events, is_it).map(|(event, at)| (event.to_owned(), at))
    });
    let unread = |source| ProgramRefusal::Unread { path: path.to_owned(), source };
    let found = match listed {
        Some((event, at)) => Some((Some(event), at)),
        None => armed(real).map_err(unread)?.map(|at| (None, at)),
    };
    found.map_or(Ok(()), |(event, at)| Err(ProgramRefusal::Probed { path: path.to_owned(), at, event }))
}

/// Where in a file a uprobe is armed for everybody.
pub(super) fn armed(real: &Path) -> io::Result<Option<u64>> {
    uprobe_of(&open_unless_link(real)?).map_err(io::Error::other)
}

/// Where tracefs lists uprobes that have names.
const EVENTS: [&str; 2] = ["/sys/kernel/tracing/uprobe_events", "/sys/kernel/debug/tracing/uprobe_events"];

/// The first event of a list that is set on a program, and where in its file: `p:group/name /program:0x1234 arguments`,
/// as `trace_uprobe_show` of kernel/trace/trace_uprobe.c writes it.
fn event_on(events: &str, is_it: impl Fn(&str) -> bool) -> Option<(&str, u64)> {
    events.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (_, event) = words.next()?.split_once(':')?;
        let (program, at) = words.next()?.rsplit_once(":0x")?;
        // Behind it the offset of a counter may stand: 0x1234(0x5678).
        let digits = at.split(|digit: char| !digit.is_ascii_hexdigit()).next()?;
        is_it(program).then_some((event, u64::from_str_radix(digits, 16).ok()?))
    })
}

/// `FS_VERITY_FL` of include/uapi/linux/fs.h.
const FS_VERITY_FL: u32 = 0x0010_0000;

/// The package that has a file, by the lists of the package managers that keep text. Those of rpm are a database: there
/// every file counts below the folders that belong to packages.
fn package_of(host: &Host, path: &str) -> Option<String> {
    // Where /bin leads to /usr/bin, lists have either.
    let short = path.strip_prefix("/usr").filter(|short| {
        ["/bin/", "/sbin/", "/lib/", "/lib64/"].iter().any(|folder| short.starts_with(folder))
    });
    let is_it = |line: &str| line == path || Some(line) == short;
    const DPKG: &str = "/var/lib/dpkg/info";
    for list in host.list(DPKG).iter().filter(|name| name.ends_with(".list")) {
        let text = host.read_lossy(&format!("{DPKG}/{list}")).unwrap_or_default();
        if text.lines().any(is_it) {
            return Some(list.trim_end_matches(".list").to_owned());
        }
    }
    const PACMAN: &str = "/var/lib/pacman/local";
    for package in host.list(PACMAN) {
        let text = host.read_lossy(&format!("{PACMAN}/{package}/files")).unwrap_or_default();
        if text.lines().any(|line| path.strip_prefix('/') == Some(line)) {
            return Some(package);
        }
    }
    if let Some(package) = of_apk(&host.read_lossy("/lib/apk/db/installed").unwrap_or_default(), path) {
        return Some(package);
    }
    let has_rpm =
        ["/var/lib/rpm", "/usr/lib/sysimage/rpm"].iter().any(|folder| !host.list(folder).is_empty());
    let is_of_packages = path.starts_with("/usr/") && !path.starts_with("/usr/local/");
    (has_rpm && is_of_packages).then(|| "one of rpm, most likely".to_owned())
}

/// `P:` names a package, `F:` a folder, `R:` a file in it.
fn of_apk(installed: &str, path: &str) -> Option<String> {
    let (folder, name) = path.strip_prefix('/')?.rsplit_once('/')?;
    let (mut package, mut in_folder) = ("", false);
    for line in installed.lines() {
        match line.split_once(':') {
            Some(("P", named)) => package = named,
            Some(("F", at)) => in_folder = at == folder,
            Some(("R", file)) if in_folder && file == name => return Some(package.to_owned()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_need_is_known_by_its_name() {
        for (path, is_needed) in [
            ("/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", true),
            ("/lib/ld-musl-x86_64.so.1", true),
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", true),
            ("/lib/libc-2.31.so", true),
            ("/usr/lib/llvm-19/bin/ld.lld", false),
            ("/usr/lib/libcairo.so.2", false),
            ("/usr/bin/ldd", false),
        ] {
            assert_eq!(needed_by_all(path).is_some(), is_needed, "{path}");
        }
    }

    #[test]
    fn an_event_of_tracefs_is_found_by_its_program() {
        let events = "p:uprobes/p_sh_0x10 /bin/sh:0x0000000000000010\n\
                      r:probe_engine/done__return /srv/engine:0x0000000000004a20(0x20) arg1=%ax\nodd\n";
        assert_eq!(
            event_on(events, |path| path == "/srv/engine"),
            Some(("probe_engine/done__return", 0x4a20))
        );
        assert_eq!(event_on(events, |path| path == "/bin/sh"), Some(("uprobes/p_sh_0x10", 0x10)));
        assert_eq!(event_on(events, |path| path == "/srv"), None);
    }

    #[test]
    fn a_file_of_apk_is_found() {
        let installed = "P:busybox\nF:bin\nR:sh\nR:busybox\n\nP:postgresql16\nF:usr/libexec\nR:postgres\n";
        assert_eq!(of_apk(installed, "/usr/libexec/postgres").as_deref(), Some("postgresql16"));
        assert_eq!(of_apk(installed, "/bin/postgres"), None);
    }
}
