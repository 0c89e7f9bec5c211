//! Which version of a program this host has: by the path of a process, and by the database of packages.
//!
//! No program is asked (`--version` would run somebody else's code as root), and the database of rpm is none that can
//! be read without it (SQLite, whose newest pages may lie in a log beside it): on such hosts the path alone tells, as
//! `/usr/pgsql-16/bin/postgres` does.

use planish_host::Host;
use planish_model::{Catalogue, ProgramVersion, version_numbers};

use crate::writers::unremembered;

/// The database of dpkg (`dpkg(1)`, `deb-control(5)`).
const DPKG: &str = "/var/lib/dpkg/status";
/// Arguments of `java` whose value is the next word.
const WITH_VALUE: [&str; 6] = ["-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules"];

/// Versions of those of some packages that are installed, in the order of the database.
#[must_use]
pub fn installed(host: &Host, packages: &[String]) -> Vec<ProgramVersion> {
    if packages.is_empty() {
        return Vec::new();
    }
    let text = host.read_lossy(DPKG).unwrap_or_default();
    // One pass by lines: the database has hundreds of kilobytes, and few paragraphs are asked for.
    let (mut found, mut begins, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        if line == "\n" {
            begins = at + line.len();
        }
        let name = line.strip_prefix("Package:").map(str::trim);
        if name.is_some_and(|name| packages.iter().any(|package| package == name)) {
            let paragraph = text[begins..].split("\n\n").next();
            found.extend(paragraph.and_then(|paragraph| of_package(paragraph, packages)));
        }
        at += line.len();
    }
    found
}

fn of_package(paragraph: &str, packages: &[String]) -> Option<ProgramVersion> {
    let field = |name: &str| {
        paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let name = field("Package").filter(|name| packages.iter().any(|package| package == name))?;
    // A package that was removed keeps its files of settings, and its paragraph.
    field("Status").filter(|status| status.ends_with(" installed"))?;
    Some(ProgramVersion { version: field("Version")?.to_owned(), by: format!("{DPKG}: package {name}") })
}

/// The version that the path of a program tells, as in `/usr/lib/postgresql/16/bin/postgres`,
/// `/usr/pgsql-16/bin/postgres` and `/u01/app/oracle/product/19.0.0/dbhome_1/bin/oracle`: the last folder that is a
/// version below one that names the program, or that ends with one behind such a name. Any other number may be of a
/// user, a release or a disk. A path of Java is that of Java, whatever runs in it.
#[must_use]
pub(crate) fn of_path(path: &str) -> Option<ProgramVersion> {
    let (folders, program) = path.rsplit_once('/')?;
    // A folder of a snap is a number of its own.
    if program == "java" || folders.starts_with("/snap/") {
        return None;
    }
    let folders: Vec<&str> = folders.split('/').collect();
    let version = (1..folders.len()).rev().find_map(|at| {
        let above = &folders[..at];
        let (name, last) = match folders[at].rsplit_once('-') {
            Some((name, last)) => (name, last),
            // Oracle's rule for its folders has a word between.
            None if above.last() == Some(&"product") => (above.iter().rev().nth(1).copied()?, folders[at]),
            None => (above.last().copied()?, folders[at]),
        };
        let is_version = last.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let is_told = is_version && names(name, program) && !version_numbers(last).is_empty();
        is_told.then(|| last.to_owned())
    })?;
    Some(ProgramVersion { version, by: path.to_owned() })
}

/// Whether the name of a folder names a program: it has the first letters of it, as `mongodb` has those of `mongod`.
fn names(folder: &str, program: &str) -> bool {
    const LETTERS: usize = 5;
    let folder = folder.to_ascii_lowercase();
    let start: String = program.chars().take(LETTERS).collect();
    let is_postgres = ["postgres", "postmaster"].contains(&program);
    (start.len() >= LETTERS && folder.contains(&start.to_ascii_lowercase()))
        || (is_postgres && ["pgsql", "postgres"].iter().any(|name| folder.contains(name)))
}

/// Versions of running programs that are asked for, by their paths. Nobody but root sees the path of another one's.
#[must_use]
pub fn running(host: &Host, is_meant: &dyn Fn(&str) -> bool) -> Vec<ProgramVersion> {
    let pids = host.list("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    let meant = pids.filter(|pid| {
        let name = host.read_lossy(&format!("/proc/{pid}/comm")).unwrap_or_default();
        is_meant(&program(host, *pid, name.trim()))
    });
    let paths = meant.filter_map(|pid| host.read_link(&format!("/proc/{pid}/exe")));
    paths.filter_map(|path| of_path(&path)).collect()
}

/// Looks at the programs that profiles are for, so that a recording of the host tells their versions, and nothing of
/// what else runs or is installed. Programs in Java are known by their arguments, which a recording has none of.
pub fn look_at_programs(host: &Host, catalogue: &Catalogue) {
    // What is read is what a recording has; the answer is not asked for here.
    let _ = installed(host, &catalogue.packages());
    for pid in host.list("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok()) {
        let path = format!("/proc/{pid}/comm");
        let name = unremembered(host, &path).unwrap_or_default();
        if catalogue.has_profile_for(name.trim()) {
            host.exists(&path);
            host.read_link(&format!("/proc/{pid}/exe"));
        }
    }
}

/// The name of a program as profiles have it: that of the kernel, and of Java the main class behind `java:`.
#[must_use]
pub fn program(host: &Host, pid: u32, name: &str) -> String {
    if name != "java" {
        return name.to_owned();
    }
    let text = host.read_lossy(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    main_class(&text).map_or_else(|| name.to_owned(), |class| format!("java:{class}"))
}

/// The main class of the arguments of `java`: behind `-m` in a module, else the first word that is no option.
fn main_class(cmdline: &str) -> Option<&str> {
    let mut words = cmdline.split('\0').skip(1);
    while let Some(word) = words.next() {
        match word {
            "-m" | "--module" => {
                let module = words.next()?;
                return Some(module.rsplit('/').next().unwrap_or(module));
            }
            "-jar" => return None,
            _ if WITH_VALUE.contains(&word) => {
                words.next();
            }
            _ if word.starts_with('-') || word.is_empty() => {}
            class => return Some(class),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_a_version_by_a_folder_that_names_the_program() {
        for (path, version) in [
            ("/usr/lib/postgresql/16/bin/postgres", Some("16")),
            ("/usr/pgsql-16/bin/postgres", Some("16")),
            ("/opt/mongodb-linux-x86_64-ubuntu2204-7.0.14/bin/mongod", Some("7.0.14")),
            ("/u01/app/oracle/product/19.0.0/dbhome_1/bin/oracle", Some("19.0.0")),
            ("/opt/mongodb/7.0.14/bin/mongod", Some("7.0.14")),
            ("/usr/lib/postgresql/9.6/bin/postmaster", Some("9.6")),
            ("/usr/bin/mongod", None),
            ("/home/user-1/bin/mongod", None),
            ("/srv/releases/2025.11.3/bin/mongod", None),
            ("/srv/oracle/product/19.0.0/bin/mongod", None),
            ("/snap/redis/1023/usr/bin/redis-server", None),
            ("/usr/lib/jvm/java-17/bin/java", None),
            ("/usr/bin/redis-7", None),
            ("/opt/a-/./bin/x", None),
        ] {
            assert_eq!(of_path(path).map(|found| found.version), version.map(str::to_owned), "{path}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test writes the tree that it reads")]
    fn what_is_installed_is_told_and_what_was_removed_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["proc", "var/lib/dpkg"] {
            std::fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        std::fs::write(folder.path().join("proc/version"), "Linux\n").expect("a file");
        let text = "Package: mongodb-org-server\nStatus: install ok installed\nVersion: 7.0.14\n\n\
                    Package: redis-server\nStatus: deinstall ok config-files\nVersion: 5:7.0.1-4\n\n\
                    Package: other\nStatus: install ok installed\nVersion: 1\n";
        std::fs::write(folder.path().join("var/lib/dpkg/status"), text).expect("a file");
        let host = Host::open(folder.path()).expect("a tree");
        let found = installed(&host, &["redis-server".to_owned(), "mongodb-org-server".to_owned()]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].version, "7.0.14");
        assert!(found[0].by.ends_with("package mongodb-org-server"), "{}", found[0].by);
        assert!(installed(&host, &[]).is_empty());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test writes the tree that it reads")]
    fn a_record_has_the_versions_that_the_machine_has_and_no_other_program() {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, dest) = (folder.path().join("root"), folder.path().join("copy"));
        for (path, text) in [
            ("proc/version", "Linux version 6.12.0 x\n"),
            ("proc/7/comm", "postgres\n"),
            ("proc/8/comm", "secret-agent\n"),
            (
                "var/lib/dpkg/status",
                "Package: mongodb-org-server\nStatus: install ok installed\nVersion: 7.0.14\n\n\
                 Package: secret-agent\nStatus: install ok installed\nVersion: 1\n",
            ),
        ] {
            std::fs::create_dir_all(root.join(path).parent().expect("below it")).expect("ours");
            std::fs::write(root.join(path), text).expect("ours");
        }
        std::os::unix::fs::symlink("/usr/lib/postgresql/16/bin/postgres", root.join("proc/7/exe"))
            .expect("ours");
        let (host, catalogue) = (Host::open(&root).expect("a tree"), Catalogue::embedded().expect("sound"));
        assert!(catalogue.packages().iter().any(|name| name == "mongodb-org-server"));
        look_at_programs(&host, &catalogue);
        let (redactions, meta) = (planish_host::Redactions::default(), planish_host::Meta::default());
        planish_host::record(&host, &host.reads(), &dest, redactions, &catalogue.packages(), meta)
            .expect("recorded");
        let copy = Host::open(&dest).expect("a record");
        let is_meant = |program: &str| catalogue.has_profile_for(program);
        for found in [&host, &copy] {
            let of_path: Vec<String> =
                running(found, &is_meant).into_iter().map(|found| found.version).collect();
            let of_package = installed(found, &catalogue.packages());
            assert_eq!((of_path, of_package[0].version.as_str()), (vec!["16".to_owned()], "7.0.14"));
        }
        assert!(!dest.join("proc/8").exists());
        let kept = std::fs::read_to_string(dest.join("var/lib/dpkg/status")).expect("kept");
        assert!(!kept.contains("secret"), "{kept}");
    }

    #[test]
    fn java_is_known_by_its_main_class() {
        for (words, class) in [
            (
                "java -Xms1g -cp a.jar org.apache.cassandra.service.CassandraDaemon x",
                Some("org.apache.cassandra.service.CassandraDaemon"),
            ),
            (
                "java -Des.path.home=/e --module-path /e/lib --add-modules=jdk.net \
                 -m org.elasticsearch.server/org.elasticsearch.bootstrap.Elasticsearch",
                Some("org.elasticsearch.bootstrap.Elasticsearch"),
            ),
            ("java -jar some.jar", None),
            ("java", None),
        ] {
            let cmdline = words.split_whitespace().collect::<Vec<_>>().join("\0");
            assert_eq!(main_class(&cmdline), class, "{words}");
        }
    }
}
