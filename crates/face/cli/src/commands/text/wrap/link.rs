//! A link that follows an order; where that cannot be, the link that the user asked for.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output as Captured, Stdio};
use std::sync::Arc;
use std::time::Duration;

use planish_order::command_line::{FUNCTION_SECTIONS, Link, LinkerFound, Machine, Needs, Unusable, Wanted};
use planish_report::{Level, Message};
use planish_sys::process::{pidfd, usage_children, usage_self};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Pid;

use super::options::Options;
use super::{Tool, Wrapped};
use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;
use crate::signals::{Forward, code};

/// What is added to a link.
struct Added {
    words: Vec<String>,
    /// Memory that the linker reads as files: it is there as long as this process.
    _files: Vec<File>,
}

pub(super) fn run(
    wrapped: &Wrapped<'_>,
    (link, all): (&Link, &[String]),
    options: &Options,
    adds_sections: bool,
    context: &Context,
) -> Result<Answer, Failure> {
    let added = match added(wrapped, (link, all), options, adds_sections) {
        Ok(added) => added,
        Err(failure) if options.strict => return Err(failure),
        Err(failure) => return Ok(without(wrapped, &failure, context)),
    };
    if added.words.is_empty() {
        return Ok(wrapped.become_it(&[]));
    }
    let linking = Linking { wrapped, link, added: &added, strict: options.strict };
    let linked = Forward::catch()
        .and_then(|signals| if options.time { linking.twice(&signals) } else { linking.once(&signals) });
    match linked {
        Ok(answer) => Ok(answer),
        Err(error) if options.strict => Ok(wrapped.not_started(&error)),
        // With our words it may be too long for the kernel.
        Err(error) => Ok(without(wrapped, &Failure::refused(error), context)),
    }
}

/// Becomes the link that the user asked for, and tells why the order is left out.
fn without(wrapped: &Wrapped<'_>, failure: &Failure, context: &Context) -> Answer {
    let Message { text, hint, .. } = failure.message("", "planish text cc --help");
    let message = Message::new(Level::Warning, format!("linked without the order: {text}"));
    let message = hint.into_iter().fold(message, Message::hint);
    // Now: this process is about to be another program.
    Output { json: false, quiet: context.globals.quiet }.talk(&message);
    wrapped.become_it(&[])
}

/// A link and what is added to it.
struct Linking<'a> {
    wrapped: &'a Wrapped<'a>,
    link: &'a Link,
    added: &'a Added,
    strict: bool,
}

impl Linking<'_> {
    /// Links with the order. A link that fails is tried as the user asked for it: only then is it known why it failed.
    fn once(&self, signals: &Forward) -> io::Result<Answer> {
        let ordered = status(self.wrapped.with(&self.added.words), signals)?;
        // A signal is somebody's wish to end, whatever code the linker makes of it.
        let ended = ordered.code().is_none() || signals.is_asked_to_end();
        if ordered.success() || self.strict || ended {
            return Ok(self.answer(ordered));
        }
        let plain = captured(self.wrapped.with(&[]), signals)?;
        // Also where it fails: the reason of the first may be one that nobody typed, and is not always the user's.
        pass_on(&plain);
        if !plain.status.success() {
            let text = format!(
                "{} is linked neither with the order nor without: what is told last is told without it",
                self.link.output
            );
            return Ok(self.answer(plain.status).note(text));
        }
        let text = format!(
            "{} is linked without the order: with it the link fails, as told above",
            self.link.output
        );
        let hint = format!("added were: {}", self.added.words.join(" "));
        Ok(self.answer(plain.status).message(Message::new(Level::Warning, text).hint(hint)))
    }

    /// Links without and then with the order, and tells what each has cost.
    fn twice(&self, signals: &Forward) -> io::Result<Answer> {
        // Questions to the linker, and the making of the order, are a part of what is added.
        let preparation = cpu_time();
        let plain = captured(self.wrapped.with(&[]), signals)?;
        if !plain.status.success() {
            pass_on(&plain);
            return Ok(self.answer(plain.status));
        }
        let without = cpu_time().saturating_sub(preparation);
        let answer = self.once(signals)?;
        if answer.code != Some(0) || !answer.messages.is_empty() {
            return Ok(answer);
        }
        let with = cpu_time().saturating_sub(without);
        let (with, without) = (with.as_secs_f64(), without.as_secs_f64());
        let percent = (with / without.max(f64::MIN_POSITIVE) - 1.0) * 100.0;
        Ok(answer.note(format!(
            "{}: {percent:+.1} % of CPU time by the order ({with:.3} s; {without:.3} s without; each linked once)",
            self.link.output
        )))
    }

    fn answer(&self, status: ExitStatus) -> Answer {
        Answer::printed(self.wrapped.tool.name()).code(code(status))
    }
}

/// What was kept back of a link goes where it would have gone, also where nobody is left to read it.
fn pass_on(told: &Captured) {
    let _ = io::stdout().write_all(&told.stdout);
    let _ = io::stderr().write_all(&told.stderr);
}

/// What this process and all that it waited for have used; zero where the kernel does not tell.
fn cpu_time() -> Duration {
    let all = [usage_self(), usage_children()];
    all.into_iter().flatten().map(|usage| usage.cpu()).sum()
}

/// Runs a command to its end: it has our streams, and the signals that are sent to us.
fn status(mut command: Command, signals: &Forward) -> io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    pass_signals(signals, &child);
    let ended = child.wait();
    signals.end();
    ended
}

/// The same with what it tells kept back.
pub(in crate::commands::text) fn captured(mut command: Command, signals: &Forward) -> io::Result<Captured> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    pass_signals(signals, &child);
    let ended = child.wait_with_output();
    signals.end();
    ended
}

/// Where no handle can be had, the link goes on: it just cannot be ended through us.
fn pass_signals(signals: &Forward, child: &Child) {
    let Ok(handle) = pidfd(Pid::from_child(child)) else { return };
    signals.begin(vec![Arc::new(handle)]);
}

/// What makes the link follow the order.
fn added(
    wrapped: &Wrapped<'_>,
    (link, all): (&Link, &[String]),
    options: &Options,
    adds_sections: bool,
) -> Result<Added, Failure> {
    let symbols = options.symbols()?;
    let target = machine(wrapped, link);
    if let Some(machine) = target.as_ref().filter(|machine| !machine.contains("linux")) {
        let failed = Failure::refused(format!("it links for {machine}, and orders are for Linux"));
        return Err(failed.hint("leave this wrapper out for that machine"));
    }
    let found = linker(wrapped, link).ok_or_else(|| {
        Failure::refused("the linker does not say that it is GNU ld, gold, lld or mold")
            .hint("link by one of them, such as -fuse-ld=lld")
    })?;
    let machine = symbols.is_some().then(|| marked(target.as_deref(), all)).flatten();
    let wanted = Wanted { symbols: symbols.as_deref(), huge_bytes: options.huge_bytes(), machine };
    let needs = Needs::of(link, &found, wanted).map_err(unusable)?;
    let mut files = Vec::new();
    let mut in_memory = |bytes: &[u8]| {
        let (file, path) = in_memory(bytes).map_err(Failure::refused)?;
        files.push(file);
        Ok::<_, Failure>(path)
    };
    let path = match (&needs.file, &options.order) {
        (None, _) => String::new(),
        // As it was named: what a build is pinned to can be seen in its command lines.
        (Some(file), Some(path)) if file.is_symbols && path.to_str().is_some() => {
            path.to_string_lossy().into_owned()
        }
        (Some(file), _) => in_memory(file.text.as_bytes())?,
    };
    let marks = needs.file.as_ref().and_then(|file| file.marks.as_deref()).map(in_memory).transpose()?;
    let mut words: Vec<String> =
        if link.compiles && adds_sections { vec![FUNCTION_SECTIONS.to_owned()] } else { Vec::new() };
    for word in needs.words(&path, marks.as_deref()) {
        // Unlike -Wl, it takes words with commas.
        words.extend((wrapped.tool == Tool::Compiler).then(|| "-Xlinker".to_owned()));
        words.push(word);
    }
    Ok(Added { words, _files: files })
}

/// What the output is for, where its hot range can be marked: what the first object file among the inputs is for, else
/// what the compiler makes code for.
fn marked(target: Option<&str>, all: &[String]) -> Option<Machine> {
    let object = |word: &String| {
        let path = Some(Path::new(word)).filter(|path| !word.starts_with('-') && path.is_file())?;
        let mut head = [0; 20];
        // A file of a build, that is read once more by the linker.
        File::open(path).and_then(|mut file| file.read_exact(&mut head)).ok()?;
        head.starts_with(b"\x7fELF").then_some(head)
    };
    match all.iter().find_map(object) {
        Some(head) => Machine::of_object(&head),
        None => Machine::of_target(target?, all.iter().map(String::as_str)),
    }
}

fn unusable(why: Unusable) -> Failure {
    let hint = match &why {
        Unusable::OwnOrder => "leave that one out, or this wrapper",
        Unusable::OwnScript => {
            "where its script does not name .text.*, build with --link-only: objects stay as they are"
        }
        Unusable::TakesNone { .. } => "link by lld: -fuse-ld=lld",
    };
    Failure::refused(why).hint(hint)
}

/// The linker that this command line would use, asked by the command itself.
fn linker(wrapped: &Wrapped<'_>, link: &Link) -> Option<LinkerFound> {
    let told = match wrapped.tool {
        Tool::Compiler => asked(wrapped, link, "-Wl,--version"),
        Tool::Linker => asked(wrapped, link, "--version"),
    };
    LinkerFound::parse(&told?)
}

/// What a compiler makes code for, such as `x86_64-linux-gnu`, where it is one that is known to tell.
fn machine(wrapped: &Wrapped<'_>, link: &Link) -> Option<String> {
    let is_known = wrapped.tool == Tool::Compiler && wrapped.is_known();
    let told = is_known.then(|| asked(wrapped, link, "-dumpmachine")).flatten()?;
    Some(told.trim().to_owned()).filter(|machine| !machine.is_empty())
}

/// What the command answers to a question.
fn asked(wrapped: &Wrapped<'_>, link: &Link, question: &str) -> Option<String> {
    let mut command = wrapped.asking(&link.selects);
    // In the words of this machine's language no linker would be known by its name.
    command.arg(question).env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null());
    Some(String::from_utf8_lossy(&command.output().ok()?.stdout).into_owned())
}

/// A file in memory, and the name by which the programs that we start can read it.
fn in_memory(bytes: &[u8]) -> io::Result<(File, String)> {
    const NAME: &str = "planish-order";
    // Kernels before 6.3 do not know the seal, and newer ones may refuse to do without.
    let sealed = memfd_create(NAME, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL);
    let mut file = File::from(sealed.or_else(|_| memfd_create(NAME, MemfdFlags::CLOEXEC))?);
    file.write_all(bytes)?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Ok((file, path))
}
