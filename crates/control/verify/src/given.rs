//! What the running kernel was given on its command line, against what it made of that.

use planish_model::{
    Astray, BootCpus, BootFiles, BootLoader, DriftState, Entry, EntryStep, Knob, NOT_GIVEN, Reading, Step,
    given_in_vain,
};

use crate::compare::{Bench, Judgement};
use crate::wish::is_in_boot_file;

impl Bench<'_> {
    /// A value that files of the boot loader have for the next kernel.
    pub(crate) fn to_come(&self) -> Judgement {
        let why = match self.unproven() {
            Some(reason) => format!("takes effect at the next boot, where that is by GRUB: {reason}"),
            None => "takes effect at the next boot".to_owned(),
        };
        (DriftState::PendingReboot, Some(why))
    }

    /// The same of a value that an open entry had the boot loader give, where the machine was started since and this
    /// kernel was not given it: whatever started it passed the files over, and may do so for ever. Waited for, it would
    /// never be told. What was written in this boot is still to come, and so is all of it in a trial boot, whose own
    /// entry was copied before.
    pub(crate) fn not_brought(&self, knob: &Knob, value: &str) -> Option<Judgement> {
        let now = self.observation.host.boot_id.as_str();
        let gives = |step: &&EntryStep| {
            let arguments = step.boot_arguments().filter(|_| is_in_boot_file(step));
            arguments.is_some_and(|arguments| self.gives(arguments, knob, value))
        };
        let given =
            self.open.iter().filter(|entry| entry.is_open() && entry.steps.iter().any(|step| gives(&step)));
        let entry = given.max_by_key(|entry| entry.id)?;
        let is_of_earlier = |step: &EntryStep| {
            let then = step.written_in(&entry.boot_id);
            !then.is_empty() && !now.is_empty() && then != now
        };
        if !entry.steps.iter().filter(gives).all(is_of_earlier) || self.trial_boot().is_some() {
            return None;
        }
        let by = match self.unproven() {
            Some(reason) => format!("; {reason}"),
            None => ": another entry of the loader, another loader or kexec started it".to_owned(),
        };
        let told =
            format!("the machine was started since entry {}, and this kernel was not given it{by}", entry.id);
        Some((DriftState::Drift, Some(told)))
    }

    /// Why nobody can tell that the loader whose files are here started this kernel.
    fn unproven(&self) -> Option<&str> {
        match &self.observation.boot {
            BootLoader::Known(BootFiles { unproven: Some(Astray { reason, .. }), .. }) => Some(reason),
            _ => None,
        }
    }

    /// The open entry whose trial boot this is, by the mark on the command line.
    fn trial_boot(&self) -> Option<&Entry> {
        let marks = &self.observation.trial_marks;
        let is_it =
            |entry: &&Entry| entry.trial_boot().is_some_and(|name| marks.iter().any(|mark| mark == name));
        self.open.iter().find(is_it)
    }

    /// What this boot alone was given, on trial, and shows: no file gives it, and none ever did.
    pub(crate) fn on_trial(&self, knob: &Knob, reading: &Reading, running: &str) -> Option<Judgement> {
        let entry = self.trial_boot()?;
        let is_it = |step: &Step| step.place == reading.place && knob.r#type.same(&step.wanted, running);
        let given = entry.on_confirm.iter().flat_map(|plan| &plan.boot).any(is_it);
        let id = entry.id;
        given.then(|| {
            let told = format!("given to this boot alone, the trial boot of entry {id}");
            (DriftState::Ok, Some(told))
        })
    }

    /// Why the kernel did not take a list of CPUs: one that stands beside it is for others. Before Linux 5.18, but for
    /// distributions that took its rule over, all of isolcpus= and nohz_full= is for one list (`nohz_full= must match
    /// isolcpus=` in the kernel log).
    pub(crate) fn not_taken_with(&self, knob: &Knob, given: &str) -> Option<String> {
        let (name, _) = knob.boot_parameter()?;
        let beside = match name {
            "isolcpus" => "nohz_full",
            "nohz_full" => "isolcpus",
            _ => return None,
        };
        let place = format!("cmdline:{beside}");
        let Some(other) = self.observation.knobs.values().flatten().find(|other| other.place == place) else {
            // Who asks of the one alone has not read the other.
            return Some(format!(
                "this kernel was given it and did not take it, and another boot of it will not, either: a CPU is not \
                 there, or {beside}= beside it is for other CPUs"
            ));
        };
        let other =
            other.value.as_deref().filter(|value| *value != NOT_GIVEN && given_in_vain(value).is_none())?;
        let (own, list) = (BootCpus::parse(given)?, BootCpus::parse(other)?);
        if own.same_cpus(&list) {
            return None;
        }
        Some(format!(
            "this kernel was given it and did not take it: {beside}={other} is for other CPUs, and it takes one \
             list for both; give both the same CPUs"
        ))
    }
}
