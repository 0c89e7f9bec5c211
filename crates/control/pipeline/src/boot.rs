//! Boot parameters for the next boot: from a plan to steps for the files of the boot loader.
//!
//! All of them go in as one run of arguments, so that an undo finds them again as one. Every file is read and the
//! edit is tried before anything is written: a file that is cut off refuses the whole apply.

use planish_act::Sink;
use planish_act::boot::{format_of, is_in};
use planish_boot::{fields, order};
use planish_host::Host;
use planish_model::{
    Astray, BootFile, BootFiles, BootFormat, BootLoader, CarriedOver, Class, Entry, EntryStep, Knob,
    Observation, Original, Persisted, Undo, Unpersisted, ValueType, bootline, is_by_size,
};
use planish_observe::Around;

use crate::copied;
use crate::error::PipelineError;
use crate::persist::file_step;
use crate::session::Session;
use crate::transition;

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
}

impl Wishes {
    /// Adds a value, unless the next boot brings it anyway.
    pub fn add(&mut self, knob: &Knob, place: &str, value: &str, observation: &Observation) {
        let persisted = observation.persisted.get(place);
        // Where nobody can tell what the next boot gives, the running command line stands for it, and tells nothing.
        let is_of_file = |source: &str| !source.starts_with(planish_observe::RUNNING);
        let known = matches!(observation.boot, BootLoader::Known(_))
            && persisted.is_some_and(|found| is_of_file(&found.source));
        if known && persisted.is_some_and(|found| knob.r#type.same(&found.value, value)) {
            return self.add_stale(knob, place, value, observation);
        }
        let Some(argument) = knob.argument(value) else { return };
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
            reason: format!("{} gives it, and the boot loader's menu was not made anew since", found.source),
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

    /// All of them as left out, for what keeps the boot loader from giving them.
    pub fn left_out(self, refusal: &PipelineError) -> Vec<Unpersisted> {
        let (reason, cure) = match refusal {
            PipelineError::BootLoader { reason, cure, .. } => (reason.clone(), cure.clone()),
            other => (other.in_full(), other.hints().join("; ")),
        };
        let rows = self.rows.into_iter();
        rows.map(|row| Unpersisted { reason: reason.clone(), cure: cure.clone(), ..row }).collect()
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
                if let Some(Astray { reason, cure }) = files.astray.clone() {
                    return Err(PipelineError::BootLoader { arguments, reason, cure });
                }
                if let Some(own) = &files.own {
                    self.refuse_overruled(session, own, &arguments, sink)?;
                }
                refuse_lost(session, files, &arguments, entries)?;
                refuse_linked(session, files, &arguments)?;
                self.refuse_around(session, loader, &arguments)?;
                let copies = copied::in_check(session, loader, entries);
                Ok((steps(files, &arguments, &copies, sink)?, Vec::new()))
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

impl Wishes {
    /// Refuses arguments that a file which is read behind ours would take away again, or give another value: it would
    /// be written, and no boot would bring it.
    fn refuse_overruled(
        &self,
        session: &Session,
        own: &str,
        arguments: &str,
        sink: &dyn Sink,
    ) -> Result<(), PipelineError> {
        let mut text = sink.read_file(own).map_err(PipelineError::Before)?.unwrap_or_default();
        text += &planish_boot::drop_in_line(arguments);
        let sources = planish_observe::with_ours(session.host(), own, &text);
        let (_, name) = own.rsplit_once('/').unwrap_or_default();
        let refused = |reason: String, cure: String| {
            Err(PipelineError::BootLoader { arguments: arguments.to_owned(), reason, cure })
        };
        if let Some((_, by)) = sources.lost.first() {
            return refused(
                format!("{by} assigns GRUB_CMDLINE_LINUX_DEFAULT anew behind {own}, and takes them away"),
                format!(
                    "have {by} add to what is there, GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT ...\", \
                     or give its file a name that sorts before {name}"
                ),
            );
        }
        if let Some(by) = sources.unread.first() {
            return refused(
                format!(
                    "{by} names GRUB_CMDLINE_LINUX_DEFAULT behind {own} in a way that only a shell can tell, and \
                     may take them away"
                ),
                format!(
                    "have {by} be a plain assignment on a line of its own, \
                     GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT ...\", or give its file a name \
                     that sorts before {name}"
                ),
            );
        }
        // What stands before ours in the line of a menu decides whether ours reaches the kernel.
        let is_ours =
            |(_, source): &&(String, String)| source.rsplit_once(':').is_some_and(|(path, _)| path == own);
        let before: Vec<&(String, String)> = sources.given.iter().take_while(|word| !is_ours(word)).collect();
        let line: Vec<&str> = before.iter().map(|(argument, _)| argument.as_str()).collect();
        if let Err(odd) = planish_boot::refuse_out_of_reach(&line.join(" ")) {
            let is_it = |word: &&&(String, String)| word.0 == "--" || word.0.matches('"').count() % 2 == 1;
            let by = before.iter().find(is_it).map_or(own, |(_, source)| source.as_str());
            return refused(format!("{by}: {odd}"), OUT_OF_REACH.to_owned());
        }
        let words: Vec<&str> = sources.given.iter().map(|(argument, _)| argument.as_str()).collect();
        for row in &self.rows {
            let knob = session.sound_catalogue()?.knob(&row.knob)?;
            let Some((value, index)) = bootline::found(&words, knob, None) else { continue };
            let (argument, source) = &sources.given[index];
            if is_summed(knob)
                || knob.r#type.same(&value, &row.value)
                || Persisted::own_file(source).is_some()
            {
                continue;
            }
            return refused(
                format!("{source} gives `{argument}` behind {own}, and of two the kernel takes the last"),
                format!(
                    "take `{argument}` out of {source}, or give its file a name that sorts before {name}"
                ),
            );
        }
        Ok(())
    }
}

/// Refuses a file of several names: the new one would have one of them, and the others keep the old text, which no undo
/// brings together again. GRUB's environment block is written where it lies.
fn refuse_linked(session: &Session, files: &BootFiles, arguments: &str) -> Result<(), PipelineError> {
    let edited = files.edited.iter().filter(|file| files.own.is_none() && file.format != BootFormat::GrubEnv);
    let names = edited.map(|file| (&file.path, planish_observe::names_of(session.host(), &file.path)));
    let Some((path, names)) = names.into_iter().find(|(_, names)| *names > 1) else { return Ok(()) };
    Err(PipelineError::BootLoader {
        arguments: arguments.to_owned(),
        reason: format!("{path} has {names} names (hard links), and an edit would part it from the others"),
        cure: format!(
            "find the others by `find DIR -samefile {path}`; make it a file of its own: cp -p {path} {path}.new && mv \
             {path}.new {path}; then once more"
        ),
    })
}

/// Refuses a menu that has arguments which are in nothing that it is made from: made anew, it would be without them.
fn refuse_lost(
    session: &Session,
    files: &BootFiles,
    arguments: &str,
    entries: &[Entry],
) -> Result<(), PipelineError> {
    let Some(generator) = files.generator else { return Ok(()) };
    let known = entries.iter().flat_map(|entry| &entry.steps).flat_map(transition::arguments);
    let ours: Vec<String> = known.chain([arguments.to_owned()]).collect();
    let is_ours = |word: &str| ours.iter().any(|run| run.split(' ').any(|own| own == word));
    let mut alone = planish_observe::menu_alone(session.host(), files);
    alone.retain(|(word, _)| !is_ours(word));
    let Some((_, line)) = alone.first() else { return Ok(()) };
    let words = alone.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ");
    let program = generator.line();
    let reason =
        format!("{line} gives `{words}`, which no file gives that {program} makes it from: it would be lost");
    let cure = format!(
        "put `{words}` into GRUB_CMDLINE_LINUX of /etc/default/grub; or, where it is to go, type `{program}`; then \
         once more"
    );
    Err(PipelineError::BootLoader { arguments: arguments.to_owned(), reason, cure })
}

impl Wishes {
    /// Refuses arguments that an entry which asks for `$kernelopts` would not give the kernel, or give another value
    /// behind it.
    fn refuse_around(
        &self,
        session: &Session,
        loader: &BootLoader,
        arguments: &str,
    ) -> Result<(), PipelineError> {
        let refused = |reason: String, cure: String| {
            Err(PipelineError::BootLoader { arguments: arguments.to_owned(), reason, cure })
        };
        for Around { source, before, behind } in planish_observe::around_variable(session.host(), loader) {
            if let Err(odd) = planish_boot::refuse_out_of_reach(&before) {
                return refused(format!("{source}: {odd}"), OUT_OF_REACH.to_owned());
            }
            let words: Vec<&str> = bootline::arguments(&behind).collect();
            for row in &self.rows {
                let knob = session.sound_catalogue()?.knob(&row.knob)?;
                let Some((value, index)) = bootline::found(&words, knob, None) else { continue };
                if !is_summed(knob) && !knob.r#type.same(&value, &row.value) {
                    let argument = words[index];
                    return refused(
                        format!(
                            "{source} gives `{argument}` behind $kernelopts, and of two the kernel takes the last"
                        ),
                        format!("take `{argument}` out of {source}, or put it before $kernelopts"),
                    );
                }
            }
        }
        Ok(())
    }
}

/// What helps where nothing that is put in behind the others would reach the kernel.
const OUT_OF_REACH: &str = "give what is behind `--` in some other way, or close the quote, and apply again";

/// Whether what is said of each size is added up: none is the last word.
fn is_summed(knob: &Knob) -> bool {
    knob.boot_parameter().is_some_and(|(name, _)| is_by_size(name))
}

/// The steps for each file. One that has a copy of what an earlier entry gave gets it no second time. Others do: of two
/// that give the same each takes its own along. Where all give the arguments, there is nothing to do.
fn steps(
    files: &BootFiles,
    arguments: &str,
    copies: &[CarriedOver],
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
        if planish_boot::gives(format_of(*format), &text, arguments) {
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
        planish_boot::insert_tagged(format_of(*format), &text, arguments, TAG_MAX)
            .map_err(|source| odd(path, source))?;
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
