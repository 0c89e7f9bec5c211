//! What the files of a unit say that a placement must know before it writes a drop-in: whether the unit is one at all,
//! and which CPUs and memory nodes it may use at most.

use planish_host::Host;
use planish_model::{PARTS, Persisted, UnitFiles, UnitLimit};

use crate::units;
use crate::writers::unit::{BEFORE, FOLDERS, is_mask};

/// Commands that end at once: a unit that runs nothing else stands for others, which it pulls in.
const NOTHING: [&str; 4] = ["/bin/true", "/usr/bin/true", "true", ":"];

/// What the files of a unit say.
pub(crate) fn unit_files(host: &Host, unit: &str) -> UnitFiles {
    let stands_for = file_of(host, unit).and_then(|path| units::alias_of(host, &path));
    UnitFiles {
        masked: masked(host, unit),
        runs_nothing: runs_nothing(host, unit),
        pins_itself: pins_itself(host, unit),
        limits: if stands_for.is_none() { limits(host, unit) } else { Vec::new() },
        stands_for,
    }
}

/// The file of a unit that counts, also where it is a link to nothing.
fn file_of(host: &Host, unit: &str) -> Option<String> {
    let mut paths = BEFORE.iter().chain(&FOLDERS).map(|folder| format!("{folder}/{unit}"));
    paths.find(|path| host.exists(path) || host.read_link(path).is_some())
}

/// The file by which a unit is masked, until the next boot or for longer: nobody can start it.
pub fn masked(host: &Host, unit: &str) -> Option<String> {
    file_of(host, unit).filter(|path| is_mask(host, path) == Some(true))
}

/// The line of the only command of a unit, where that ends at once.
fn runs_nothing(host: &Host, unit: &str) -> Option<String> {
    let commands = units::all(host, unit, "ExecStart");
    let is_nothing = |(command, _): &(String, String)| {
        let program = command.trim_start_matches(['-', '@', ':', '+', '!']).split_whitespace().next();
        command == ":" || program.is_some_and(|program| NOTHING.contains(&program))
    };
    let source = commands.first().map(|(_, source)| source.clone());
    source.filter(|_| commands.iter().all(is_nothing))
}

/// Programs that give what they start, or a process that runs, other CPUs or another memory policy.
const PINNERS: [&str; 2] = ["taskset", "numactl"];

/// The program by which a command of a unit places itself, whatever its files say, and the line.
fn pins_itself(host: &Host, unit: &str) -> Option<(String, String)> {
    let commands = ["ExecStart", "ExecStartPost"].map(|directive| units::all(host, unit, directive));
    commands.into_iter().flatten().find_map(|(command, source)| {
        let mut words = command.split(|c: char| c.is_whitespace() || "'\"-@:+!;&|(".contains(c));
        let is_meant = |word: &&str| PINNERS.contains(&word.rsplit('/').next().unwrap_or(word));
        words.find(is_meant).map(|word| (word.to_owned(), source))
    })
}

/// The limits of a service, and of the slices that it lies in. Who is put into the slice of planish leaves those.
fn limits(host: &Host, unit: &str) -> Vec<UnitLimit> {
    let slice = units::slice(host, unit);
    let slices = units::slices_above(&slice).into_iter().filter(|name| name != Persisted::OWN_SLICE);
    // The CPUs of the parts of the system that a file of ours limits, and what their groups have, are looked at where a
    // plan may change them.
    let is_looked_at = |limit: &UnitLimit| {
        PARTS.contains(&limit.unit.as_str())
            && !limit.is_memory
            && (limit.directive == "cpuset.cpus" || Persisted::own_file(&limit.source).is_some())
    };
    let of_slices = slices.flat_map(|name| units::limits(host, &name)).filter(|limit| !is_looked_at(limit));
    units::limits(host, unit).into_iter().chain(of_slices).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        crate::testing::host(&[&[("/run/systemd/system/.keep", "")], files].concat())
    }

    fn told(limit: &UnitLimit) -> String {
        format!("{} {}={} {}", limit.unit, limit.directive, limit.list, limit.source)
    }

    #[test]
    fn limits_of_a_unit_and_of_the_slices_above_it_are_told_with_their_lines() {
        let unit = "/etc/systemd/system/a.service";
        let slice = "/etc/systemd/system/db.slice";
        let own = "/etc/systemd/system.control/db-fast.slice.d/50-AllowedMemoryNodes.conf";
        let (_folder, host) = host(&[
            (unit, "[Service]\nExecStart=/opt/a\nAllowedCPUs=2 \\\n 3\nSlice=db-fast.slice\n"),
            (slice, "[Slice]\nStartupAllowedCPUs=0-3\n"),
            (own, "[Slice]\nAllowedMemoryNodes=1\n"),
            ("/sys/fs/cgroup/db.slice/db-fast.slice/cpuset.cpus", "4-5\n"),
            ("/sys/fs/cgroup/db.slice/cpuset.cpus", "\n"),
        ]);
        let found = unit_files(&host, "a.service");
        assert_eq!(
            found.limits.iter().map(told).collect::<Vec<_>>(),
            [
                format!("a.service AllowedCPUs=2-3 {unit}:3"),
                format!("db.slice StartupAllowedCPUs=0-3 {slice}:2"),
                format!("db-fast.slice AllowedMemoryNodes=1 {own}:2"),
                "db-fast.slice cpuset.cpus=4-5 /sys/fs/cgroup/db.slice/db-fast.slice/cpuset.cpus".to_owned(),
            ]
        );
    }

    #[test]
    fn a_name_that_is_a_link_stands_for_another_unit() {
        let (folder, host) = host(&[
            ("/usr/lib/systemd/system/real.service", "[Service]\nExecStart=/opt/a\n"),
            ("/usr/lib/systemd/system/a@.service", "[Service]\nExecStart=/opt/a %i\n"),
        ]);
        let etc = folder.path().join("etc/systemd/system");
        std::fs::create_dir_all(&etc).expect("a folder");
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, etc.join(name)).expect("a link");
        };
        link("/usr/lib/systemd/system/real.service", "rt.service");
        link("/opt/units/linked.service", "linked.service");
        link("/usr/lib/systemd/system/a@.service", "a@1.service");
        link("/dev/null", "off.service");
        let of = |unit: &str| unit_files(&host, unit);
        assert_eq!(of("rt.service").stands_for.as_deref(), Some("real.service"));
        for unit in ["real.service", "linked.service", "a@1.service", "off.service"] {
            assert_eq!(of(unit).stands_for, None, "{unit}");
        }
        assert_eq!(of("off.service").masked.as_deref(), Some("/etc/systemd/system/off.service"));
        assert_eq!(of("real.service").masked, None);
        assert_eq!(units::names_of(&host, "real.service"), ["real.service", "rt.service"]);
    }

    #[test]
    fn a_command_that_places_itself_is_told() {
        let tool = |text: &str| {
            let (_folder, host) = host(&[("/lib/systemd/system/p.service", &format!("[Service]\n{text}\n"))]);
            unit_files(&host, "p.service").pins_itself
        };
        let told = |tool: &str| Some((tool.to_owned(), "/lib/systemd/system/p.service:2".to_owned()));
        assert_eq!(
            tool("ExecStart=-/usr/bin/numactl --interleave=all /usr/bin/mongod"),
            told("/usr/bin/numactl")
        );
        assert_eq!(tool("ExecStart=/bin/sh -c 'taskset -c 2,3 /opt/a'"), told("taskset"));
        assert_eq!(tool("ExecStartPost=taskset -p 4 $MAINPID"), told("taskset"));
        assert_eq!(tool("ExecStart=/opt/taskset/bin/a numactl.conf"), None);
    }

    #[test]
    fn a_unit_whose_command_ends_at_once_runs_nothing() {
        let nothing = |text: &str| {
            let (_folder, host) = host(&[("/lib/systemd/system/p.service", text)]);
            unit_files(&host, "p.service").runs_nothing
        };
        let line = Some("/lib/systemd/system/p.service:3".to_owned());
        assert_eq!(nothing("[Service]\nType=oneshot\nExecStart=/bin/true\nRemainAfterExit=on\n"), line);
        assert_eq!(nothing("[Service]\nType=oneshot\nExecStart=-/usr/bin/true\n"), line);
        for text in
            ["ExecStart=/bin/true\nExecStart=/opt/a", "ExecStart=/bin/true\nExecStart=\nExecStart=/opt/a", ""]
        {
            assert_eq!(nothing(&format!("[Service]\n{text}\n")), None, "{text}");
        }
    }
}
