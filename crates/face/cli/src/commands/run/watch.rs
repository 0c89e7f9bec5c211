//! While the program runs: its segments are looked at as they are placed, signals are passed on, its end is awaited.

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use planish_host::Host;
use planish_model::Catalogue;
use planish_placement::{Achieved, Event, Launch, Listener, Machine, Notice, Running, next_event};
use planish_report::{Message, RunReport, RunText};
use planish_residency::{Map, ResidencyError, Who};

use super::text::OwnText;
use super::{Args, Stopped, own, report, warning, write_envelope};
use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::signals::{Forward, code};

/// Once a segment is placed, others often follow at once.
const SETTLE: Duration = Duration::from_millis(300);
/// How long a program has to map its first segment.
const PATIENCE: Duration = Duration::from_secs(2);
/// Segments that are told apart; the rest are counted.
const NOTICES_MAX: usize = 4096;

/// An instance that runs.
pub(super) struct Started {
    pub node: Option<u32>,
    pub launch: Launch,
    pub running: Running,
}

/// What the watch needs.
pub(super) struct Around {
    pub host: Host,
    pub machine: Machine,
    pub listener: Option<Listener>,
    pub signals: Forward,
    pub text: Option<OwnText>,
}

/// Everything that is known of a run.
struct Watch<'a> {
    args: &'a Args,
    context: &'a Context,
    host: Host,
    machine: Machine,
    nodes: Vec<Option<u32>>,
    launches: Vec<Launch>,
    running: Vec<Running>,
    notices: Vec<Notice>,
    achieved: Vec<Option<Achieved>>,
    text: Option<OwnText>,
    on_huge: Vec<Option<RunText>>,
    messages: Vec<Message>,
}

/// Watches until every instance has ended; its answer has the exit code of the first that failed.
pub(super) fn run(
    args: &Args,
    context: &Context,
    started: Vec<Started>,
    around: Around,
) -> Result<Answer, Stopped> {
    let Around { host, machine, listener, signals, text } = around;
    let failed = |error: io::Error| own(Failure::refused(error));
    let handles: io::Result<Vec<OwnedFd>> = started.iter().map(|one| one.running.handle()).collect();
    signals.begin(handles.map_err(failed)?).map_err(failed)?;
    let mut watch = Watch {
        args,
        context,
        host,
        machine,
        nodes: started.iter().map(|one| one.node).collect(),
        achieved: started.iter().map(|_| None).collect(),
        text,
        on_huge: started.iter().map(|_| None).collect(),
        messages: Vec::new(),
        notices: Vec::new(),
        launches: Vec::new(),
        running: Vec::new(),
    };
    for Started { launch, running, .. } in started {
        for note in &launch.notes {
            watch.tell(Message::new(planish_report::Level::Note, note));
        }
        watch.launches.push(launch);
        watch.running.push(running);
    }
    watch.until_ended(listener.as_ref()).map_err(failed)?;
    let code =
        watch.running.iter().map(|one| one.ended().map_or(0, code)).find(|code| *code != 0).unwrap_or(0);
    watch.write(code).map_err(own)?;
    Ok(Answer::printed("run").code(code))
}

impl Watch<'_> {
    fn until_ended(&mut self, listener: Option<&Listener>) -> io::Result<()> {
        let fixed = self.args.verify_after.map(Duration::from_secs);
        let mut due = Some(Instant::now() + fixed.unwrap_or(PATIENCE));
        loop {
            let left = due.map(|due| due.saturating_duration_since(Instant::now()));
            match next_event(listener, &mut self.running, left)? {
                Event::Placed(notice) => {
                    if self.notices.len() < NOTICES_MAX {
                        self.notices.push(notice);
                    }
                    let soon = Instant::now() + SETTLE;
                    due = Some(due.filter(|due| fixed.is_some() && *due > soon).unwrap_or(soon));
                }
                Event::Ended(index, status) => {
                    self.ended(index, status);
                    if self.running.iter().all(|one| one.ended().is_some()) {
                        return Ok(());
                    }
                }
                Event::Quiet => {
                    due = None;
                    self.look();
                }
            }
        }
    }

    /// Looks at the memory of every instance, and tells what was achieved.
    fn look(&mut self) {
        for index in 0..self.running.len() {
            if self.running[index].ended().is_some() {
                continue;
            }
            let launch = &self.launches[index];
            let pid = self.running[index].pid;
            self.on_huge[index] = self.text.as_ref().and_then(|text| text.seen(&self.host, pid));
            match Map::read(&self.host, &Who::Pid(self.running[index].pid), true) {
                Ok(map) => {
                    let achieved = Achieved::of(&map, &self.notices, &launch.wish, &self.machine);
                    self.judge(index, &achieved);
                    self.achieved[index] = Some(achieved);
                }
                // It has ended, which the next event tells.
                Err(ResidencyError::NoProcess { .. } | ResidencyError::Ended { .. }) => {}
                Err(error) => {
                    let chain = crate::failure::chain(&error);
                    self.tell(warning(format!("its memory cannot be looked at: {chain}")));
                }
            }
        }
        let report = self.report();
        if !self.context.globals.quiet && self.achieved.iter().any(Option::is_some) {
            output::print_talk(&self.context.text(&report, &Catalogue::default()));
        }
        if let Err(failure) = self.write(0) {
            self.tell(failure.message("", "planish run --help"));
        }
    }

    /// Tells what fell short, once.
    fn judge(&mut self, index: usize, achieved: &Achieved) {
        let pid = self.running[index].pid;
        let mut told: Vec<Message> =
            achieved.short().map(|why| warning(format!("pid {pid}: {why}"))).collect();
        told.extend(achieved.unreached.iter().map(|pid| {
            let text = format!(
                "pid {pid} has shared segments and not the preload, so that they lie where first use has put them: its \
                 loader ignored LD_PRELOAD, or what started it took that out of its environment"
            );
            let cure = "name the program itself behind --, and not what starts it; --numa heap=... is inherited";
            warning(text).hint(cure)
        }));
        let is_late = achieved.segments.is_empty() && achieved.unreached.is_empty();
        if self.launches[index].wish.wants_shared() && is_late {
            let min = planish_report::units::bytes(self.args.min as u64);
            let text = format!("pid {pid} has mapped no shared segment of {min} or more yet");
            told.push(
                warning(text)
                    .hint("--min SIZE, if its segments are smaller; --verify-after SECS, if it is slow"),
            );
        }
        told.into_iter().for_each(|message| self.tell(message));
    }

    fn ended(&mut self, index: usize, status: ExitStatus) {
        if self.achieved[index].is_none() && self.launches[index].wish.wants_shared() {
            let pid = self.running[index].pid;
            let text = format!("pid {pid} ended with {} before its memory was looked at", code(status));
            self.tell(Message::new(planish_report::Level::Note, text));
        }
    }

    fn tell(&mut self, message: Message) {
        if !self.messages.contains(&message) {
            Output { json: false, quiet: self.context.globals.quiet }.talk(&message);
            self.messages.push(message);
        }
    }

    fn report(&self) -> RunReport {
        let instances = self.running.iter().enumerate().map(|(index, running)| {
            let exit = running.ended().map(code);
            let (launch, achieved) = (&self.launches[index], self.achieved[index].as_ref());
            let text = self.on_huge[index].clone();
            report::instance(self.nodes[index], running.pid, exit, launch, achieved, text)
        });
        report::whole(&self.args.command, &self.launches[0], instances.collect())
    }

    fn write(&self, code: u8) -> Result<(), Failure> {
        let Some(path) = &self.args.report else { return Ok(()) };
        write_envelope(path, Some(&self.report()), code, self.messages.clone())
    }
}
