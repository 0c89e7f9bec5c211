//! How many open files the files of a host give to programs: those of units, and those of log-ins.
//!
//! The kernel gives no process more than `fs.nr_open` (`do_prlimit` of `kernel/sys.c`). Whoever lowers that has to know
//! what is given: of a service with more, systemd then tries what it has itself, and where that is more as well the
//! service does not start (`setrlimit_closest` of `src/basic/rlimit-util.c`); a user with more is not let in
//! (`pam_limits`). Only a plan that sets it asks of both: all units of a host are many files.

use std::collections::BTreeSet;

use planish_host::Host;
use planish_model::{FileLimits, LimitPair};

use crate::persisted::files;
use crate::units;
use crate::writers::is_systemd;
use crate::writers::unit::FOLDERS;

const DIRECTIVE: &str = "LimitNOFILE";

/// What the files of a host give to programs of open files.
#[must_use]
pub fn file_limits(host: &Host) -> FileLimits {
    let systemd = is_systemd(host);
    let given = of_units(host).into_iter().chain(log_in_limits(host));
    let hard = |(value, _): &(String, String)| LimitPair::parse(value).map(|pair| pair.hard);
    let highest = given.filter(|given| hard(given).is_some()).max_by_key(hard);
    let default = units::default(host, DIRECTIVE).filter(|_| systemd);
    FileLimits { systemd, default, highest }
}

/// What services are given, their templates among them; nothing where process 1 is no systemd.
fn of_units(host: &Host) -> Vec<(String, String)> {
    if !is_systemd(host) {
        return Vec::new();
    }
    let mut names: BTreeSet<String> = FOLDERS.iter().flat_map(|folder| host.list(folder)).collect();
    names.retain(|name| name.ends_with(".service"));
    names.extend(units::instances(host).into_iter().map(|name| format!("{name}.service")));
    names.iter().filter_map(|unit| units::given(host, unit, DIRECTIVE, |_| true)).collect()
}

/// The highest that users may have, by number, as `limits.conf(5)` says it: `@dba hard nofile 65536`. Each is with its
/// file and line; what is unlimited there is `fs.nr_open` itself.
#[must_use]
pub fn log_in_limits(host: &Host) -> Vec<(String, String)> {
    const MAIN: &str = "/etc/security/limits.conf";
    let mut found = Vec::new();
    for path in [MAIN.to_owned()].into_iter().chain(files(host, &["/etc/security/limits.d"], ".conf")) {
        let text = host.read_lossy(&path).unwrap_or_default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            if let [_, "hard" | "-", "nofile", value] = *line.split_whitespace().collect::<Vec<_>>()
                && value.parse::<u64>().is_ok()
            {
                found.push((value.to_owned(), format!("{path}:{number}")));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: &str = "/usr/lib/systemd/system";

    fn seen(files: &[(&str, &str)]) -> FileLimits {
        let (_folder, host) = crate::testing::host(files);
        file_limits(&host)
    }

    #[test]
    fn the_highest_limit_of_a_service_its_template_or_a_user_is_seen() {
        let systemd = ("/run/systemd/system/.keep", "");
        let (a, at) = (format!("{UNITS}/a.service"), format!("{UNITS}/b@.service"));
        let a = (a.as_str(), "[Service]\nLimitNOFILE=1024:600000\n");
        let more = ("/etc/systemd/system/a.service.d/9.conf", "[Service]\nLimitNOFILE=700000\n");
        let template = (at.as_str(), "[Service]\n\nLimitNOFILE=infinity\n");
        let users = ("/etc/security/limits.conf", "#* - nofile 9000000\n* hard nofile 800000 # all\n");
        let unlimited = ("/etc/security/limits.d/z.conf", "* - nofile unlimited\n* soft nofile 900000\n");
        let highest = |files: &[(&str, &str)]| {
            seen(files).highest.map(|(value, source)| format!("{source} {value}")).unwrap_or_default()
        };
        assert_eq!(highest(&[systemd, a]), format!("{UNITS}/a.service:2 1024:600000"));
        assert_eq!(
            highest(&[systemd, a, more]),
            format!("{} 700000", "/etc/systemd/system/a.service.d/9.conf:2")
        );
        let with_users = [systemd, a, more, users, unlimited];
        assert_eq!(highest(&with_users), "/etc/security/limits.conf:2 800000");
        assert_eq!(highest(&[systemd, template, users]), format!("{UNITS}/b@.service:3 infinity"));
        assert_eq!(highest(&[a, users]), "/etc/security/limits.conf:2 800000", "no systemd");
    }

    #[test]
    fn what_all_units_are_given_is_seen_where_systemd_runs() {
        let told = ("/etc/systemd/system.conf", "[Manager]\nDefaultLimitNOFILE=1024:4096\n");
        let found = seen(&[("/run/systemd/system/.keep", ""), told]);
        let source = "/etc/systemd/system.conf:2".to_owned();
        assert_eq!((found.systemd, found.default), (true, Some(("1024:4096".to_owned(), source))));
        assert_eq!(seen(&[told]), FileLimits::default());
    }
}
