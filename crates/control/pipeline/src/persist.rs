//! `--persist`: what brings the values back at the next boot.
//!
//! Each place is either written, or named with the reason and what to do instead: nothing that somebody wants to keep
//! is left out in silence. `/proc/sys` values go into `sysctl.d`; those of `/sys`, and the one of `/proc/irq` that
//! keeps its name, into `tmpfiles.d`. systemd reads both at boot, and so do others. Boot parameters go to the boot
//! loader: see [`crate::boot`].

use planish_act::Sink;
use planish_model::{Class, EntryStep, KnobId, Observation, Plan, Undo, Unpersisted};

use crate::boot;
use crate::error::PipelineError;
use crate::session::Session;

/// Where lines for `/proc/sys` go.
const SYSCTL_FILE: &str = "/etc/sysctl.d/90-planish.conf";
/// Where lines for `/sys` go.
const TMPFILES_FILE: &str = "/etc/tmpfiles.d/90-planish.conf";

/// What brings one value back.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Route {
    /// A line of `sysctl.d`.
    Sysctl(String),
    /// A line of `tmpfiles.d`.
    Tmpfiles(String),
    /// An argument of the kernel, from the boot loader.
    Boot,
    /// Nothing more: it is a file that is read at boot.
    Itself,
    /// Nothing that planish writes.
    Nothing {
        /// Why.
        reason: &'static str,
        /// What to do instead.
        cure: &'static str,
    },
}

/// What `--persist` comes to for a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Persistence {
    /// One step for each file that gets lines.
    pub steps: Vec<EntryStep>,
    /// What no file brings back.
    pub left_out: Vec<Unpersisted>,
    /// Arguments that the next boot gives the kernel.
    pub pending: Option<String>,
}

impl Persistence {
    /// Of everything that a plan writes, of what is as it wants already, and of the boot parameters that it wants.
    ///
    /// # Errors
    /// A boot loader that is not known or whose files may not be read, and a file of it that is cut off or odd.
    pub fn of(session: &Session, plan: &Plan, sink: &dyn Sink) -> Result<Self, PipelineError> {
        let planned = plan.steps.iter().map(|step| (&step.knob, &step.place, step.wanted.as_str()));
        let there = plan.skipped.iter().filter(|skipped| skipped.satisfied);
        let there = there.filter_map(|row| Some((&row.knob, &row.place, row.wanted.as_deref()?)));
        let at_boot = plan.boot.iter().map(|step| (&step.knob, &step.place, step.wanted.as_str()));
        let mut wishes = boot::Wishes::default();
        let (mut sysctl, mut tmpfiles) = (String::new(), String::new());
        let mut left_out = Vec::new();
        let mut observation: Option<Observation> = None;
        for (knob, place, value) in planned.chain(there).chain(at_boot) {
            let route = if plan.boot.iter().any(|step| step.place == *place) {
                Route::Boot
            } else {
                route(place, value)
            };
            match route {
                Route::Sysctl(line) => sysctl += &line,
                Route::Tmpfiles(line) => tmpfiles += &line,
                Route::Boot => {
                    let observation = observation.get_or_insert_with(|| session.observe());
                    wishes.add(session.sound_catalogue()?.knob(knob)?, place, value, observation);
                }
                Route::Itself => {}
                Route::Nothing { reason, cure } => left_out.push(Unpersisted {
                    knob: knob.clone(),
                    place: place.clone(),
                    value: value.to_owned(),
                    reason: reason.to_owned(),
                    cure: cure.to_owned(),
                }),
            }
        }
        let files = [("persist.sysctl", SYSCTL_FILE, sysctl), ("persist.tmpfiles", TMPFILES_FILE, tmpfiles)];
        let files = files.into_iter().filter(|(_, _, lines)| !lines.is_empty());
        let mut steps: Vec<EntryStep> =
            files.map(|(knob, path, lines)| file_step(knob, path, lines)).collect();
        let mut pending = None;
        if let Some(observation) = observation {
            pending = wishes.arguments();
            let (written, outside) = wishes.into_steps(&observation.boot, sink)?;
            pending = pending.filter(|_| !written.is_empty());
            steps.extend(written);
            left_out.extend(outside);
        }
        Ok(Self { steps, left_out, pending })
    }
}

/// What brings a value back at a place.
fn route(place: &str, value: &str) -> Route {
    if value.contains('\n') {
        return Route::Nothing {
            reason: "a value of several lines fits into no line of sysctl.d or tmpfiles.d",
            cure: "apply again after each boot, from a unit of your own",
        };
    }
    if let Some(name) = place.strip_prefix("/proc/sys/") {
        // Both readers take slashes; dots would be ambiguous in names such as eth0.100.
        let name = if name.contains('.') { name.to_owned() } else { name.replace('/', ".") };
        return Route::Sysctl(format!("{name} = {value}\n"));
    }
    if place.starts_with("/sys/") || place == "/proc/irq/default_smp_affinity" {
        return tmpfiles(place, value);
    }
    if place.starts_with("/proc/irq/") {
        return Route::Nothing {
            reason: "the kernel numbers interrupts anew at each boot: a file would mean another device",
            cure: "apply again after each boot; the boot parameter irqaffinity= (boot.irqaffinity) holds for all",
        };
    }
    if place.starts_with("cmdline:") {
        return Route::Boot;
    }
    if place.starts_with("/etc/systemd/system/") {
        return Route::Itself;
    }
    Route::Nothing {
        reason: "no file that is read at boot sets this place",
        cure: "apply again after each boot, from a unit of your own",
    }
}

/// A line of `tmpfiles.d`, which takes paths for shell patterns, and takes specifiers and escapes apart.
fn tmpfiles(place: &str, value: &str) -> Route {
    if place.contains(|c: char| c.is_whitespace() || "*?[]{}\"'\\".contains(c)) {
        return Route::Nothing {
            reason: "tmpfiles.d would take the name of the place for a pattern",
            cure: "apply again after each boot, from a unit of your own",
        };
    }
    let literal = |text: &str| text.replace('\\', "\\\\").replace('%', "%%");
    Route::Tmpfiles(format!("w {} - - - - {}\n", literal(place), literal(value)))
}

/// A step for a file of ours that gets these lines.
pub(crate) fn file_step(knob: &str, path: &str, lines: String) -> EntryStep {
    EntryStep::new(KnobId::new(knob), path.to_owned(), lines, Class::Safe, Undo::File)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_one_way() {
        let line = |place, value| match route(place, value) {
            Route::Sysctl(line) | Route::Tmpfiles(line) => line,
            Route::Boot => "boot".to_owned(),
            Route::Itself => "itself".to_owned(),
            Route::Nothing { reason, cure } => {
                assert!(!reason.is_empty() && !cure.is_empty());
                String::new()
            }
        };
        assert_eq!(line("/proc/sys/vm/swappiness", "10"), "vm.swappiness = 10\n");
        let vlan = "/proc/sys/net/ipv4/conf/eth0.1/rp_filter";
        assert_eq!(line(vlan, "0"), "net/ipv4/conf/eth0.1/rp_filter = 0\n");
        let default = "/proc/irq/default_smp_affinity";
        assert_eq!(line(default, "f"), format!("w {default} - - - - f\n"));
        assert_eq!(line("/sys/x", "50%"), "w /sys/x - - - - 50%%\n");
        for place in ["/proc/irq/24/smp_affinity_list", "/dev/cpu_dma_latency", "/sys/a b"] {
            assert_eq!(line(place, "1"), "", "{place}");
        }
        assert_eq!(line("cmdline:nosmt", "1"), "boot");
        assert_eq!(line("/etc/systemd/system/a.service.d/zz-planish.conf", "CPUAffinity=1"), "itself");
        assert_eq!(line("/proc/sys/kernel/core_pattern", "a\nb"), "");
    }
}
