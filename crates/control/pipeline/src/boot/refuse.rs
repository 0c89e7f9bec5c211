//! What refuses arguments for the boot loader before a file is written: no boot would bring them, or something of
//! another's would be lost.

use planish_act::Sink;
use planish_model::{
    Astray, BootFile, BootFiles, BootFormat, BootLoader, Entry, EntryId, EntryStep, KnobId, Persisted,
    Several, Unpersisted, bootline,
};
use planish_observe::Around;

use super::earlier::{self, Asked};
use crate::error::PipelineError;
use crate::session::Session;

/// Refuses arguments, all of them in one line, that files which are known would not bring.
pub(super) fn in_vain(
    session: &Session,
    loader: &BootLoader,
    (rows, arguments): (&[Unpersisted], &str),
    (entries, going): (&[Entry], Option<EntryId>),
    sink: &dyn Sink,
) -> Result<(), PipelineError> {
    let BootLoader::Known(files) = loader else { return Ok(()) };
    let wanted: Vec<(&KnobId, &str)> = rows.iter().map(|row| (&row.knob, row.value.as_str())).collect();
    let asked = Asked { wanted: &wanted, arguments, entries, going };
    if let Some(Astray { reason, cure }) = files.unproven.clone().or_else(|| files.astray.clone()) {
        return Err(PipelineError::BootLoader { arguments: arguments.to_owned(), reason, cure });
    }
    if let Some(own) = &files.own {
        overruled(session, rows, own, &asked, sink)?;
    }
    earlier::in_lines(session, loader, &asked)?;
    lost(session, files, arguments, entries, sink)?;
    linked(session, files, arguments)?;
    around(session, rows, loader, arguments)
}

/// Refuses arguments that a file which is read behind ours would take away again, or give another value: it would
/// be written, and no boot would bring it.
fn overruled(
    session: &Session,
    rows: &[Unpersisted],
    own: &str,
    asked: &Asked<'_>,
    sink: &dyn Sink,
) -> Result<(), PipelineError> {
    let arguments = asked.arguments;
    let text = sink.look_at_file(own).map_err(PipelineError::Before)?.unwrap_or_default();
    let text = asked.without_lines(&text) + &planish_boot::drop_in_line(arguments);
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
    for row in rows {
        let knob = session.sound_catalogue()?.knob(&row.knob)?;
        let found = bootline::found(&words, knob, bootline::Kernel::default());
        let Some((value, index)) = found.filter(|_| knob.several() == Several::Last) else { continue };
        let (argument, source) = &sources.given[index];
        if knob.r#type.same(&value, &row.value) || Persisted::own_file(source).is_some() {
            continue;
        }
        return refused(
            format!("{source} gives `{argument}` behind {own}, and of two the kernel takes the last"),
            format!("take `{argument}` out of {source}, or give its file a name that sorts before {name}"),
        );
    }
    earlier::in_words(session, &planish_observe::with_variables(session.host(), &sources.given), asked)
}

/// Refuses a menu that has arguments which are in nothing that it is made from: made anew, it would be without them.
fn lost(
    session: &Session,
    files: &BootFiles,
    arguments: &str,
    entries: &[Entry],
    sink: &dyn Sink,
) -> Result<(), PipelineError> {
    let Some(generator) = files.generator else { return Ok(()) };
    // What a file lacks that was cut off is in its menu still, and a menu made anew would lose it, too: the file is to
    // be mended first, and not the menu made.
    for BootFile { path, format } in files.edited.iter().filter(|_| files.own.is_none()) {
        let text = sink.read_file(path).map_err(PipelineError::Before)?.unwrap_or_default();
        super::refuse_odd_file(*format, path, &text, arguments)?;
    }
    let known = entries.iter().flat_map(|entry| &entry.steps).flat_map(EntryStep::boot_parameters);
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

/// Refuses a file of several names: the new one would have one of them, and the others keep the old text, which no undo
/// brings together again. GRUB's environment block is written where it lies.
fn linked(session: &Session, files: &BootFiles, arguments: &str) -> Result<(), PipelineError> {
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

/// Refuses arguments that an entry which asks for `$kernelopts` would not give the kernel, or give another value
/// behind it.
fn around(
    session: &Session,
    rows: &[Unpersisted],
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
        for row in rows {
            let knob = session.sound_catalogue()?.knob(&row.knob)?;
            let Some((value, index)) = bootline::found(&words, knob, bootline::Kernel::default()) else {
                continue;
            };
            if knob.several() == Several::Last && !knob.r#type.same(&value, &row.value) {
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

/// What helps where nothing that is put in behind the others would reach the kernel.
const OUT_OF_REACH: &str = "give what is behind `--` in some other way, or close the quote, and apply again";
