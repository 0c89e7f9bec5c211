//! Boot parameters for the next boot: from a plan to steps for the files of the boot loader.
//!
//! All of them go in as one run of arguments, so that an undo finds them again as one. Every file is read and the
//! edit is tried before anything is written: a file that is cut off refuses the whole apply.

use planish_act::Sink;
use planish_act::boot::{format_of, is_in};
use planish_boot::{fields, order};
use planish_host::Host;
use planish_model::{
    Astray, BootFile, BootFiles, BootFormat, BootLoader, CarriedOver, Class, Entry, EntryId, EntryStep, Knob,
    Observation, Original, Persisted, Undo, Unpersisted, ValueType,
};

pub(crate) mod earlier;
pub(crate) mod lost;
mod refuse;

use crate::copied;
use crate::error::PipelineError;
use crate::persist::file_step;
use crate::session::Session;

/// The knob that the steps of our own file of GRUB go by.
const OWN: &str = "persist.grub";

/// The tag of no entry needs more room than that of this one: which it will be is known at the write.
const TAG_MAX: u64 = 99_999;

/// Boot parameters that the next boot does not give yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    arguments: Vec<String>,
    rows: Vec<Unpersisted>,
    /// What files give, and a menu that was made before them does not.
    stale: Vec<Unpersisted>,
    /// The entry whose place is taken, and the boot parameters that go with it.
    going: Option<EntryId>,
    leaving: Vec<String>,
}

impl Wishes {
    /// None yet, of a plan that takes the place of this entry.
    pub fn instead_of(going: Option<EntryId>, entries: &[Entry]) -> Self {
        let steps = entries.iter().filter(|entry| Some(entry.id) == going).flat_map(|entry| &entry.steps);
        let leaving = steps.filter(|step| !step.is_undone()).flat_map(EntryStep::boot_parameters).collect();
        Self { going, leaving, ..Self::default() }
    }

    /// Adds a value, unless the next boot brings it anyway.
    pub fn add(&mut self, knob: &Knob, place: &str, value: &str, observation: &Observation) {
        let persisted = observation.persisted.get(place);
        // Where nobody can tell what the next boot gives, the running command line stands for it, and tells nothing.
        let is_of_file = |source: &str| !source.starts_with(planish_observe::RUNNING);
        let known = matches!(observation.boot, BootLoader::Known(_))
            && persisted.is_some_and(|found| is_of_file(&found.source));
        let argument = knob.argument(value);
        let leaves = argument.as_ref().is_some_and(|argument| self.leaving.contains(argument));
        if known && !leaves && persisted.is_some_and(|found| knob.r#type.same(&found.value, value)) {
            return self.add_stale(knob, place, value, observation);
        }
        let Some(argument) = argument else { return };
        self.rows.push(Unpersisted {
            knob: knob.id.clone(),
            place: place.to_owned(),
            value: value.to_owned(),
            reason: String::new(),
            cure: format!("give `{argument}` to whatever starts this kernel"),
        });
        self.arguments.push(argument);
    }

    /// Adds a value that is in a file already, where the menu was not made of it: no file lacks anything, and whether
    /// the rest of what was edited there is to come is to be said by whoever did.
    pub fn add_stale(&mut self, knob: &Knob, place: &str, value: &str, observation: &Observation) {
        let found = observation.persisted.get(place);
        let is_stale = |found: &&Persisted| found.at_boot.is_some() && knob.r#type.same(&found.value, value);
        let Some((found, cure)) = found.filter(is_stale).zip(observation.boot.menu_cure()) else { return };
        self.stale.push(Unpersisted {
            knob: knob.id.clone(),
            place: place.to_owned(),
            value: value.to_owned(),
            reason: format!("the boot loader's menu is older than {}, which gives it", found.source),
            cure,
        });
    }

    /// What stays out of the menu where none is made anew.
    pub fn stale(&self) -> &[Unpersisted] {
        &self.stale
    }

    /// All of them in one line, if there are any.
    pub fn arguments(&self) -> Option<String> {
        (!self.arguments.is_empty()).then(|| self.arguments.join(" "))
    }

    /// All of them as left out, for what keeps the boot loader from giving them. Where that is some of them by name,
    /// the others are told so: the reason is none of theirs.
    pub fn left_out(self, refusal: &PipelineError) -> Vec<Unpersisted> {
        let (reason, cure) = match refusal {
            PipelineError::BootLoader { reason, cure, .. } => (reason.clone(), cure.clone()),
            other => (other.in_full(), other.hints().join("; ")),
        };
        let is_in_word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let words: Vec<&str> =
            reason.split(|c| !is_in_word(c)).chain(cure.split(|c| !is_in_word(c))).collect();
        let named = self.rows.iter().map(|row| row.knob.as_str());
        let named: Vec<String> = named.filter(|id| words.contains(id)).map(str::to_owned).collect();
        let told = |row: &Unpersisted| {
            if named.is_empty() || named.iter().any(|id| id == row.knob.as_str()) {
                return reason.clone();
            }
            format!("refused with {}: the boot loader is given all of a plan or none", named.join(", "))
        };
        let rows = self.rows.into_iter();
        rows.map(|row| Unpersisted { reason: told(&row), cure: cure.clone(), ..row }).collect()
    }

    /// The steps that bring them, or why nothing here can.
    pub fn into_steps(
        self,
        session: &Session,
        loader: &BootLoader,
        entries: &[Entry],
        sink: &dyn Sink,
    ) -> Result<(Vec<EntryStep>, Vec<Unpersisted>), PipelineError> {
        let Some(arguments) = self.arguments() else { return Ok((Vec::new(), Vec::new())) };
        match loader {
            BootLoader::Known(files) => {
                refuse::in_vain(session, loader, (&self.rows, &arguments), (entries, self.going), sink)?;
                let copies = copied::in_check(session, loader, entries);
                let running = session.host().read_lossy("/proc/cmdline").unwrap_or_default();
                let going = entries.iter().find(|entry| Some(entry.id) == self.going);
                Ok((steps(files, &arguments, (&copies, going, &running), sink)?, Vec::new()))
            }
            BootLoader::Outside { reason } => {
                let left_out = |row: Unpersisted| Unpersisted { reason: reason.clone(), ..row };
                Ok((Vec::new(), self.rows.into_iter().map(left_out).collect()))
            }
            BootLoader::Unknown { reason, cure } => {
                let (reason, cure) = (reason.clone(), cure.clone());
                Err(PipelineError::BootLoader { arguments, reason, cure })
            }
        }
    }
}

/// Why nothing of this host gives arguments to the next boot, and what does; `None` where its boot loader may.
#[must_use]
pub fn ungiven(session: &Session) -> Option<String> {
    let told = |reason: String, cure: String| Some(format!("apply --persist is refused: {reason}; {cure}"));
    match session.boot_loader() {
        BootLoader::Known(files) => {
            files.unproven.or(files.astray).and_then(|Astray { reason, cure }| told(reason, cure))
        }
        BootLoader::Outside { reason } => {
            Some(format!("apply --persist keeps none: {reason}; give them to whatever starts this kernel"))
        }
        BootLoader::Unknown { reason, cure } => told(reason, cure),
    }
}

/// Refuses a file that is cut off, or is not understood where it would be changed.
fn refuse_odd_file(format: BootFormat, path: &str, text: &str, arguments: &str) -> Result<(), PipelineError> {
    planish_boot::insert_tagged(format_of(format), text, arguments, TAG_MAX)
        .map(drop)
        .map_err(|source| PipelineError::BootFile { path: path.to_owned(), source })
}

/// The steps for each file. One that has a copy of what an earlier entry gave gets it no second time. Others do: of two
/// that give the same each takes its own along. Where all give the arguments, there is nothing to do.
fn steps(
    files: &BootFiles,
    arguments: &str,
    (copies, going, running): (&[CarriedOver], Option<&Entry>, &str),
    sink: &dyn Sink,
) -> Result<Vec<EntryStep>, PipelineError> {
    let odd = |path: &str, source| PipelineError::BootFile { path: path.to_owned(), source };
    if let Some(own) = &files.own {
        planish_boot::refuse_odd(arguments).map_err(|source| odd(own, source))?;
        let lines = planish_boot::drop_in_line(arguments);
        return Ok(vec![EntryStep { generator: files.generator, ..file_step(OWN, own, lines) }]);
    }
    let mut steps = Vec::new();
    let mut is_missing = false;
    for BootFile { path, format } in &files.edited {
        let text = sink.read_file(path).map_err(PipelineError::Before)?.unwrap_or_default();
        // What an entry gives whose place is taken goes with that.
        let goes = |step: &&EntryStep| step.undo == Undo::Edit && step.place == *path && !step.is_undone();
        let going = going.and_then(|entry| Some((entry.id, entry.steps.iter().find(goes)?)));
        let stays = going.and_then(|(id, step)| {
            planish_boot::remove_tagged(format_of(*format), &text, &step.wanted, id.0)
        });
        if planish_boot::gives(format_of(*format), stays.as_deref().unwrap_or(&text), arguments) {
            let is_it = |copy: &CarriedOver| {
                copy.arguments == arguments
                    && copy.source.rsplit_once(':').is_some_and(|(file, _)| file == path)
            };
            if copies.iter().any(is_it) {
                continue;
            }
        } else {
            is_missing = true;
        }
        refuse_odd_file(*format, path, &text, arguments)?;
        if *format == BootFormat::KernelCmdline {
            planish_boot::refuse_rootless(&text, running).map_err(|source| odd(path, source))?;
        }
        let step = file_step(format.knob(), path, arguments.to_owned());
        let original = Original {
            knob: step.knob.clone(),
            place: path.clone(),
            r#type: ValueType::Text { text: true },
            value: text,
            coupling: None,
            over: None,
        };
        let (originals, generator) = (vec![original], files.generator);
        steps.push(EntryStep { class: Class::Availability, undo: Undo::Edit, originals, generator, ..step });
    }
    Ok(if is_missing { steps } else { Vec::new() })
}

/// What the file of an entry is called now that is not there under its name: systemd-boot counts the tries of an entry
/// in it, and takes the count off once a boot was good. `None` where it is there, and where it is gone.
///
/// The rest of the name is the entry's own, and it starts the same kernel as at the apply. Of several that are so it is
/// the one that has what was put in.
pub(crate) fn recounted(host: &Host, step: &EntryStep) -> Option<String> {
    if BootFormat::of_knob(step.knob.as_str()) != Some(BootFormat::Entry) || host.exists(&step.place) {
        return None;
    }
    let (folder, name) = step.place.rsplit_once('/')?;
    let id = |name: &str| Some(order::uncounted(name.strip_suffix(".conf")?).to_owned());
    let own = id(name)?;
    let kernel =
        |text: &str| fields(text).find(|(_, key, _)| *key == "linux").map(|(.., value)| value.to_owned());
    let at_apply = kernel(&step.original()?.value);
    let names = host.list(folder).into_iter().filter(|other| id(other).as_ref() == Some(&own));
    let files = names.filter_map(|name| {
        let path = format!("{folder}/{name}");
        let text = host.read(&path).ok()?;
        (kernel(&text) == at_apply).then_some((path, text))
    });
    let mut found: Vec<(String, String)> = files.collect();
    if found.len() > 1 {
        found.retain(|(_, text)| is_in(step, text));
    }
    match found.as_slice() {
        [(one, _)] => Some(one.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use planish_model::KnobId;

    use super::*;

    #[test]
    fn a_parameter_that_is_refused_with_another_is_told_that() {
        let row = |id: &str| Unpersisted {
            knob: KnobId::new(id),
            place: String::new(),
            value: String::new(),
            reason: String::new(),
            cure: String::new(),
        };
        let rows = vec![row("boot.hugepages.1g"), row("boot.skew_tick")];
        let wishes = Wishes { rows, ..Wishes::default() };
        let refused = |reason: &str, cure: &str| {
            let (arguments, reason, cure) = (String::new(), reason.to_owned(), cure.to_owned());
            let error = PipelineError::BootLoader { arguments, reason, cure };
            wishes.clone().left_out(&error).into_iter().map(|row| row.reason).collect::<Vec<_>>()
        };
        let first = "/etc/default/grub:6 gives `hugepages=4` first";
        let with = "refused with boot.hugepages.1g: the boot loader is given all of a plan or none";
        assert_eq!(refused(first, "or leave it out: --exclude boot.hugepages.1g"), [first, with]);
        assert_eq!(refused("no loader is known", "say which"), ["no loader is known"; 2]);
    }
}
