//! The kernel command line: arguments that set a knob before anything else runs.

use planish_model::{Catalogue, Knob, bootline, place};

use super::Setting;
use crate::boot::{Given, RUNNING};

/// The rows that an argument of a command line may be for, picked once: each of several lines is held to them.
pub(crate) struct Rows<'c> {
    /// Knobs of a running kernel that an argument sets too.
    set: Vec<(&'c str, &'c Knob)>,
    /// Boot parameters, by their names; whether they count pages of one size, which another argument may say.
    given: Vec<(&'c str, bool, &'c Knob)>,
}

impl<'c> Rows<'c> {
    pub(crate) fn of(catalogue: &'c Catalogue) -> Self {
        let set = catalogue.knobs().filter_map(|knob| Some((knob.boot_arg.as_deref()?, knob)));
        let given = |knob: &'c Knob| {
            let (name, counted) = knob.boot_parameter()?;
            Some((name, counted.is_some(), knob))
        };
        Self { set: set.collect(), given: catalogue.knobs().filter_map(given).collect() }
    }

    /// Settings of a command line, as a kernel reads it.
    pub(crate) fn settings(&self, given: &[Given], kernel: bootline::Kernel) -> Vec<Setting> {
        let mut settings = Vec::new();
        for Given { argument, source } in given {
            let (name, value) = bootline::parts(argument);
            let Some(value) = value else { continue };
            match name.strip_prefix("sysctl.") {
                Some(key) => settings.push(Setting::new(&place::of_sysctl(key), value, source)),
                None => settings.extend(self.set_by(name, value, source)),
            }
        }
        let words: Vec<&str> = given.iter().map(|given| given.argument.as_str()).collect();
        let filled = bootline::pools(&words, kernel);
        settings.extend(
            filled.iter().flat_map(|pool| pools(&pool.pages, pool.page_bytes, &given[pool.index].source)),
        );
        settings.extend(self.parameters(&words, kernel).filter_map(|(knob, value, index)| {
            let source = match given[index].source.strip_prefix(RUNNING) {
                // The line itself is its only source: the argument is told with the page size that it counts in.
                Some(_) => format!("{RUNNING}{}", knob.boot_argument(&value)?),
                None => given[index].source.clone(),
            };
            Some(Setting::new(&knob.path, &value, &source))
        }));
        settings
    }

    /// Settings of knobs whose row names the argument.
    fn set_by(&self, name: &str, value: &str, source: &str) -> impl Iterator<Item = Setting> {
        let value = match value {
            "enable" => "1",
            "disable" => "0",
            // `nmi_watchdog=panic,1`
            list => list.rsplit(',').next().unwrap_or(list),
        };
        let named = self.set.iter().filter(move |(argument, _)| *argument == name);
        named.map(move |(_, knob)| Setting::new(&wild(&knob.path), value, source))
    }

    /// What a line gives each boot parameter, with the index of its word. What is passed over comes first: of the
    /// settings of a place the last one is told as what counts.
    fn parameters<'s>(
        &'s self,
        words: &'s [&str],
        kernel: bootline::Kernel,
    ) -> impl Iterator<Item = (&'c Knob, String, usize)> + 's {
        // Most parameters are not on the line: told by their names, without taking each argument apart for each.
        let names: Vec<&str> = words.iter().map(|word| bootline::parts(word).0).collect();
        let may_be_given = move |(name, is_counted, _): &&(&str, bool, &Knob)| {
            *is_counted || names.iter().any(|named| bootline::same_name(named, name))
        };
        self.given.iter().filter(may_be_given).flat_map(move |(_, _, knob)| {
            let taken = bootline::found(words, knob, kernel);
            let lost = taken.is_some().then(|| bootline::passed_over(words, knob, kernel));
            let all = lost.into_iter().flatten().chain(taken);
            all.map(|(value, index)| (*knob, value, index))
        })
    }
}

/// A pattern with a wildcard in the place of each hole.
fn wild(path: &str) -> String {
    let mut parts = path.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |wild, part| wild + "*" + part.split_once('}').map_or("", |(_, after)| after))
}

/// `hugepages=N` for the whole machine, `hugepages=0:1,1:2` by node.
fn pools(value: &str, page_bytes: u64, source: &str) -> Vec<Setting> {
    let folder = format!("hugepages/hugepages-{}kB/nr_hugepages", page_bytes / 1024);
    let setting = |path: String, value| Setting::new(&path, value, source);
    if !value.contains(':') {
        return vec![setting(format!("/sys/kernel/mm/{folder}"), value)];
    }
    value
        .split(',')
        .filter_map(|part| part.split_once(':'))
        .map(|(node, pages)| setting(format!("/sys/devices/system/node/node{node}/{folder}"), pages))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(cmdline: &str) -> Vec<(String, String)> {
        let catalogue = Catalogue::embedded().expect("sound");
        let kernel = bootline::Kernel::new("6.12.1", "x86_64", Some(2 << 20));
        let settings = Rows::of(&catalogue).settings(&Given::running(cmdline), kernel);
        settings.into_iter().map(|setting| (setting.path, setting.value)).collect()
    }

    fn pair(path: &str, value: &str) -> (String, String) {
        (path.to_owned(), value.to_owned())
    }

    #[test]
    fn arguments_lead_to_places() {
        assert_eq!(
            found(
                "quiet transparent_hugepage=never numa_balancing=disable sysctl.vm.swappiness=3 \
                 -- nmi_watchdog=1"
            ),
            [
                pair("/sys/kernel/mm/transparent_hugepage/enabled", "never"),
                pair("/proc/sys/kernel/numa_balancing", "0"),
                pair("/proc/sys/vm/swappiness", "3"),
                pair("cmdline:transparent_hugepage", "never"),
            ]
        );
        assert_eq!(
            found("cpufreq.default_governor=performance"),
            [
                pair("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "performance"),
                pair("cmdline:cpufreq.default_governor", "performance"),
            ]
        );
    }

    #[test]
    fn pools_count_in_the_size_before_them() {
        let two = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
        assert_eq!(found("hugepages=8"), [pair(two, "8"), pair("cmdline:hugepages@2M", "8")]);
        assert_eq!(
            found("hugepagesz=1G hugepages=0:1,1:2 hugepagesz=2M hugepages=16"),
            [
                pair("/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages", "1"),
                pair("/sys/devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages", "2"),
                pair(two, "16"),
                pair("cmdline:hugepages@1G", "0:1,1:2"),
                pair("cmdline:hugepages@2M", "16"),
            ]
        );
    }

    proptest! {
        #[test]
        fn odd_command_lines_are_passed_over(text in "\\PC{0,200}") {
            let _ = Rows::of(&Catalogue::default()).settings(&Given::running(&text), bootline::Kernel::default());
        }
    }

    #[test]
    fn a_recording_keeps_the_value_of_every_boot_parameter_that_we_know() {
        let catalogue = Catalogue::embedded().expect("sound");
        let named = catalogue.knobs().filter_map(|knob| knob.boot_parameter().map(|(name, _)| name));
        let more = catalogue.knobs().filter_map(|knob| knob.boot_arg.as_deref());
        let names: Vec<&str> = named.chain(more).collect();
        assert!(names.len() > 30, "{names:?}");
        for name in names {
            let line = format!("{name}=1\n");
            let mut redactor = planish_host::Redactor::new(planish_host::Redactions::default(), "orion");
            assert_eq!(redactor.redact("/proc/cmdline", &line), line);
        }
    }
}
