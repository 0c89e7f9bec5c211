//! What units of systemd give their services: the files that say so, and what runs.
//!
//! A setting of a unit is the last assignment in its file and its drop-ins. Those are sorted by name over all folders,
//! and of one name only the file of the first folder counts (`systemd.unit(5)`). Aliases and templates are passed over:
//! the unit that they stand for has the settings.
//!
//! What the files of a unit do not say systemd may be told for all of them, in `system.conf` and its drop-ins.
//!
//! Non-goals: `service.d` for all services.

use std::collections::{BTreeMap, BTreeSet};

use planish_host::Host;
use planish_model::{
    Access, BootValue, Catalogue, KnobId, NOT_GIVEN, Observation, Persisted, Reading, UnitSetting, ValueType,
    Want, place,
};

use crate::persisted::files;
use crate::writers::is_systemd;
use crate::writers::unit::FOLDERS;

/// Adds what the units have that a profile means: a place for each file that may be written, with what the unit has
/// without it.
pub fn unit_settings(
    host: &Host,
    catalogue: &Catalogue,
    want: &BTreeMap<KnobId, Want>,
    observation: &mut Observation,
) {
    let mut names: Option<Vec<String>> = None;
    for (id, want) in want {
        let Ok(knob) = catalogue.knob(id) else { continue };
        let ValueType::Setting { directive, .. } = &knob.r#type else { continue };
        let names = names.get_or_insert_with(|| services(host));
        let patterns = patterns(want);
        let readings = observation.knobs.entry(id.clone()).or_default();
        for name in names.iter() {
            let path = place::fill(&knob.path, &[("unit", name)]);
            if !patterns.iter().any(|only| place::is_meant(&knob.path, &path, only)) {
                continue;
            }
            let unit = format!("{name}.service");
            let given = given(host, &unit, directive, |file| file != path);
            let running = running(host, &unit, directive);
            let default = default(host, directive);
            observation.units.insert(path.clone(), UnitSetting { given, running, default });
            readings.retain(|reading| reading.place != knob.path);
            if !readings.iter().any(|reading| reading.place == path) {
                readings.push(not_given(path, observation.host.root));
            }
        }
    }
}

/// A file of ours that is not there yet.
fn not_given(place: String, root: bool) -> Reading {
    let access = if root { Access::Writable } else { Access::NeedsRoot };
    Reading { place, value: Some(NOT_GIVEN.to_owned()), unread: None, offered: Vec::new(), max: None, access }
}

/// Which units a wanted value is for.
fn patterns(want: &Want) -> Vec<&str> {
    match want {
        Want::Case(case) => case.only.as_deref().into_iter().collect(),
        Want::Cases(cases) => cases.iter().filter_map(|case| case.only.as_deref()).collect(),
        _ => Vec::new(),
    }
}

/// Services of a host by name, without their kind: those of which there is a file, and of one with several names the
/// real one. None where process 1 is no systemd.
fn services(host: &Host) -> Vec<String> {
    let mut names = BTreeSet::new();
    for folder in FOLDERS.iter().filter(|_| is_systemd(host)) {
        for file in host.list(folder) {
            let Some(name) = file.strip_suffix(".service").filter(|name| !name.ends_with('@')) else {
                continue;
            };
            let target = host.read_link(&format!("{folder}/{file}"));
            if target.is_none_or(|target| target.rsplit('/').next() == Some(&file)) {
                names.insert(name.to_owned());
            }
        }
    }
    names.into_iter().collect()
}

/// What the files of a unit give, and the file and line. `counts` leaves files out.
fn given(
    host: &Host,
    unit: &str,
    directive: &str,
    counts: impl Fn(&str) -> bool,
) -> Option<(String, String)> {
    let own = FOLDERS.iter().map(|folder| format!("{folder}/{unit}")).find(|path| host.exists(path));
    let folders: Vec<String> = FOLDERS.iter().map(|folder| format!("{folder}/{unit}.d")).collect();
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let mut found = None;
    for path in own.into_iter().chain(files(host, &folders, ".conf")).filter(|path| counts(path)) {
        let text = host.read(&path).unwrap_or_default();
        if let Some((line, value)) = last(&text, "[Service]", directive) {
            // An empty value takes back what was said before.
            found = (!value.is_empty()).then(|| (value.to_owned(), format!("{path}:{line}")));
        }
    }
    found
}

/// What systemd is told to give to units that say nothing, and the file and line (`systemd-system.conf(5)`).
fn default(host: &Host, directive: &str) -> Option<(String, String)> {
    let folders = ["/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"];
    let main = folders.iter().map(|folder| format!("{folder}/system.conf")).find(|path| host.exists(path));
    let drop_ins = folders.map(|folder| format!("{folder}/system.conf.d"));
    let drop_ins: Vec<&str> = drop_ins.iter().map(String::as_str).collect();
    let directive = format!("Default{directive}");
    let mut found = None;
    for path in main.into_iter().chain(files(host, &drop_ins, ".conf")) {
        let text = host.read(&path).unwrap_or_default();
        if let Some((line, value)) = last(&text, "[Manager]", &directive) {
            found = (!value.is_empty()).then(|| (value.to_owned(), format!("{path}:{line}")));
        }
    }
    found
}

/// The last assignment in a section, with its line.
fn last<'a>(text: &'a str, section: &str, directive: &str) -> Option<(usize, &'a str)> {
    let (mut within, mut found) = (false, None);
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.starts_with('[') {
            within = text == section;
        } else if let (true, Some((name, value))) = (within, text.split_once('='))
            && name.trim() == directive
        {
            found = Some((line, value.trim()));
        }
    }
    found
}

/// What a setting of a unit comes to at the next start, where a file of ours sets it and one that is read later wins.
pub(crate) fn winner(host: &Host, place: &str, directive: &str, ours: &str) -> Option<Persisted> {
    let (unit, _) = place.strip_prefix("/etc/systemd/system/")?.split_once(".d/")?;
    let (value, source) = given(host, unit, directive, |_| true)?;
    if source.rsplit_once(':').is_some_and(|(path, _)| path == place) {
        return None;
    }
    let overridden = vec![BootValue::new(ours, place)];
    Some(Persisted { value, source, at_boot: None, overridden })
}

/// What the first process of a unit runs with, and its number.
fn running(host: &Host, unit: &str, directive: &str) -> Option<(String, u32)> {
    let slices = [
        "/sys/fs/cgroup/system.slice",
        "/sys/fs/cgroup/planish.slice",
        "/sys/fs/cgroup/systemd/system.slice",
    ];
    let group = slices.iter().map(|slice| format!("{slice}/{unit}")).find(|group| host.exists(group))?;
    let procs = host.read(&format!("{group}/cgroup.procs")).ok()?;
    let pid: u32 = procs.lines().next()?.trim().parse().ok()?;
    let text = |path: String| host.read(&path).ok().map(|text| text.trim().to_owned());
    let value = match directive {
        "LimitNOFILE" => limit(host, pid, "Max open files"),
        "LimitNPROC" => limit(host, pid, "Max processes"),
        "LimitMEMLOCK" => limit(host, pid, "Max locked memory"),
        "LimitCORE" => limit(host, pid, "Max core file size"),
        "OOMScoreAdjust" => text(format!("/proc/{pid}/oom_score_adj")),
        "TasksMax" => text(format!("{group}/pids.max")),
        "MemoryMin" => text(format!("{group}/memory.min")),
        "MemoryLow" => text(format!("{group}/memory.low")),
        "MemorySwapMax" => text(format!("{group}/memory.swap.max")),
        "CPUWeight" => text(format!("{group}/cpu.weight")),
        "IOWeight" => text(format!("{group}/io.weight")),
        _ => None,
    };
    value.map(|value| (value, pid))
}

/// A row of /proc/PID/limits, as systemd writes it: one number, or the soft and the hard one.
fn limit(host: &Host, pid: u32, name: &str) -> Option<String> {
    let text = host.read(&format!("/proc/{pid}/limits")).ok()?;
    let mut words = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
    let mut word = || words.next().map(|word| if word == "unlimited" { "infinity" } else { word });
    let (soft, hard) = (word()?, word()?);
    Some(if soft == hard { soft.to_owned() } else { format!("{soft}:{hard}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with files of a host.
    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        crate::testing::host(&[&[("/run/systemd/system/.keep", "")], files].concat())
    }

    const UNIT: &str = "/usr/lib/systemd/system/redis.service";

    #[test]
    fn the_last_assignment_of_the_last_file_counts() {
        let (_folder, host) = host(&[
            (UNIT, "[Unit]\nLimitNOFILE=1\n[Service]\nLimitNOFILE=10\nLimitNOFILE = 1024:524288\n"),
            ("/usr/lib/systemd/system/redis.service.d/20-more.conf", "[Service]\n#LimitNOFILE=9\n"),
            ("/etc/systemd/system/redis.service.d/10-own.conf", "[Service]\nLimitNPROC=7\n"),
        ]);
        let all = |directive| given(&host, "redis.service", directive, |_| true);
        assert_eq!(all("LimitNOFILE"), Some(("1024:524288".to_owned(), format!("{UNIT}:5"))));
        let own = "/etc/systemd/system/redis.service.d/10-own.conf:2".to_owned();
        assert_eq!(all("LimitNPROC"), Some(("7".to_owned(), own)));
        assert_eq!(all("LimitCORE"), None);
    }

    #[test]
    fn systemd_is_told_a_default_in_its_own_files() {
        let main =
            ("/etc/systemd/system.conf", "[Manager]\n#DefaultTasksMax=9%\nDefaultLimitNOFILE=1024:4096\n");
        let more = "/usr/lib/systemd/system.conf.d/50-more.conf";
        let (_folder, host) = host(&[main, (more, "[Manager]\nDefaultLimitNOFILE=1024:1048576\n")]);
        let found = default(&host, "LimitNOFILE");
        assert_eq!(found, Some(("1024:1048576".to_owned(), format!("{more}:2"))));
        assert_eq!(default(&host, "TasksMax"), None);
    }

    #[test]
    fn an_empty_value_takes_back_and_a_file_of_the_administrator_masks_one_of_its_name() {
        let (_folder, host) = host(&[
            (UNIT, "[Service]\nLimitCORE=1\nNice=5\n"),
            ("/etc/systemd/system/redis.service.d/a.conf", "[Service]\nLimitCORE=\n"),
            ("/usr/lib/systemd/system/redis.service.d/a.conf", "[Service]\nNice=9\n"),
        ]);
        assert_eq!(given(&host, "redis.service", "LimitCORE", |_| true), None);
        let nice = given(&host, "redis.service", "Nice", |_| true).expect("given");
        assert_eq!(nice, ("5".to_owned(), format!("{UNIT}:3")));
    }

    #[test]
    fn a_later_file_wins_over_ours_and_an_earlier_one_does_not() {
        let ours = "/etc/systemd/system/redis.service.d/zz-planish-nofile.conf";
        let (_folder, other) = host(&[
            (UNIT, "[Service]\nLimitNOFILE=1\n"),
            (ours, "[Service]\nLimitNOFILE = 65536\n"),
            ("/etc/systemd/system/redis.service.d/override.conf", "[Service]\nLimitNOFILE=2\n"),
        ]);
        assert_eq!(winner(&other, ours, "LimitNOFILE", "65536"), None);
        let theirs = "/run/systemd/system/redis.service.d/zzz.conf";
        let (_folder, other) =
            host(&[(ours, "[Service]\nLimitNOFILE = 65536\n"), (theirs, "[Service]\n\nLimitNOFILE=3\n")]);
        let found = winner(&other, ours, "LimitNOFILE", "65536").expect("a later file");
        assert_eq!((found.value.as_str(), found.source), ("3", format!("{theirs}:3")));
    }

    #[test]
    fn services_are_those_with_a_file_and_by_their_real_name() {
        let (folder, host) = host(&[
            (UNIT, ""),
            ("/usr/lib/systemd/system/redis@.service", ""),
            ("/usr/lib/systemd/system/redis.socket", ""),
        ]);
        let etc = folder.path().join("etc/systemd/system");
        std::fs::create_dir_all(&etc).expect("ours");
        std::os::unix::fs::symlink("/usr/lib/systemd/system/redis.service", etc.join("alias.service"))
            .expect("ours");
        std::os::unix::fs::symlink("/dev/null", etc.join("masked.service")).expect("ours");
        assert_eq!(services(&host), ["redis"]);
    }

    #[test]
    fn a_record_keeps_every_directive_that_a_row_names() {
        for knob in Catalogue::embedded().expect("sound").knobs() {
            let named: &[String] = match &knob.r#type {
                ValueType::Setting { directive, .. } => std::slice::from_ref(directive),
                ValueType::Directives { directives } => directives,
                _ => continue,
            };
            for directive in named {
                assert!(planish_host::is_unit_directive(directive), "{}: {directive}", knob.id);
            }
        }
        for other in ["Environment", "ExecStartPre", "Description", "SetCredential"] {
            assert!(!planish_host::is_unit_directive(other), "{other}");
        }
    }

    #[test]
    fn a_record_of_a_host_gives_its_units_the_same_limits() {
        let ours = "/etc/systemd/system/redis.service.d/zz-planish-nofile.conf";
        let group = "/sys/fs/cgroup/system.slice/redis.service";
        let unit = "[Unit]\nDescription=of Ann\n[Service]\nEnvironment=TOKEN=hunter2\n\
                    ExecStart=/usr/bin/redis --key hunter2\nLimitNOFILE=1024:524288\nTasksMax=15%\n";
        let (_folder, live) = host(&[
            (UNIT, unit),
            ("/etc/systemd/system/redis.service.d/a.conf", "# hunter2\n\n[Service]\nMemoryLow=4G\n"),
            (ours, "[Service]\nLimitNOFILE = 65536\n"),
            (&format!("{group}/cgroup.procs"), "77\n"),
            (&format!("{group}/memory.low"), "4294967296\n"),
            (
                "/proc/77/limits",
                "Max open files            65536                65536                files\n",
            ),
        ]);
        let catalogue = Catalogue::embedded().expect("sound");
        let case = |value: &str| planish_model::Case {
            value: value.to_owned(),
            only: Some("redis".to_owned()),
            needs: planish_model::Conditions::default(),
        };
        let want = ["unit.nofile", "unit.memory_low", "unit.tasks_max", "unit.nice"]
            .map(|id| (KnobId::new(id), Want::Case(Box::new(case("1")))));
        let seen = |host: &Host| {
            let mut observation = crate::observe(host, &catalogue);
            unit_settings(host, &catalogue, &BTreeMap::from(want.clone()), &mut observation);
            let read = observation.knobs[&KnobId::new("unit.nofile")].iter().map(|r| r.value.clone());
            (read.collect::<Vec<_>>(), observation.units, winner(host, ours, "LimitNOFILE", "65536"))
        };
        let before = seen(&live);
        let low = before.1.values().filter_map(|unit| unit.given.clone()).collect::<Vec<_>>();
        assert!(low.contains(&("4G".to_owned(), "/etc/systemd/system/redis.service.d/a.conf:4".to_owned())));
        assert!(low.contains(&("1024:524288".to_owned(), format!("{UNIT}:6"))), "{low:?}");
        let folder = tempfile::tempdir().expect("a folder");
        let dest = folder.path().join("copy");
        let (redactions, meta) = (planish_host::Redactions::default(), planish_host::Meta::default());
        planish_host::record(&live, &live.reads(), &dest, redactions, &[], meta).expect("a copy");
        let copy = Host::open(&dest).expect("a tree");
        assert_eq!(seen(&copy), before);
        assert!(!copy.read(UNIT).expect("kept").contains("hunter2"));
    }
}
