//! While the program runs: its segments are looked at as they are placed, signals are passed on, its end is awaited.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use planish_host::Host;
use planish_model::Catalogue;
use planish_placement::{
    Achieved, Event, Launch, Left, Listener, Machine, Notice, Notices, Running, Runtimes, SegmentAt,
    filled_bytes, left, may_hold, next_event,
};
use planish_report::{Message, RunReport, RunText};
use planish_residency::{Map, Who, members, stat_of};

use super::looks::{Fills, Looks};
use super::text::OwnText;
use super::{Args, OWN_FAILURE, report, warning, write_envelope};
use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::signals::{Forward, code};

/// A later look at processes that were looked at already, if the one before took no longer.
const CHEAP: Duration = Duration::from_millis(100);
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
    notices: Notices,
    /// Segments that are being filled, by how far they are.
    progress: Fills,
    /// What the preload answers to.
    listener: Option<Listener>,
    /// The last look at each, and how long after the start it was.
    achieved: Vec<Option<(Duration, Achieved)>>,
    /// What the preload told of those that ended before a look.
    answered: Vec<Vec<SegmentAt>>,
    begun: Instant,
    /// Whether there was a look, and how long the last one took.
    has_looked: bool,
    took: Duration,
    text: Option<OwnText>,
    on_huge: Vec<Option<RunText>>,
    /// Processes of whose private memory something was told.
    told_private: BTreeSet<u32>,
    /// Processes that had segments of which nothing was told, and whether another look has confirmed it.
    untold: BTreeMap<u32, bool>,
    /// Runtimes of which was told what they need besides.
    runtimes: Runtimes,
    messages: Vec<Message>,
}

/// Watches until every instance has ended; its answer has the exit code of the first that failed.
pub(super) fn run(args: &Args, context: &Context, started: Vec<Started>, around: Around) -> Answer {
    let Around { host, machine, listener, signals, text } = around;
    signals.begin(started.iter().map(|one| one.running.handle()).collect());
    let mut watch = Watch {
        args,
        context,
        host,
        machine,
        nodes: started.iter().map(|one| one.node).collect(),
        achieved: started.iter().map(|_| None).collect(),
        answered: started.iter().map(|_| Vec::new()).collect(),
        begun: Instant::now(),
        has_looked: false,
        took: Duration::ZERO,
        text,
        on_huge: started.iter().map(|_| None).collect(),
        told_private: BTreeSet::new(),
        untold: BTreeMap::new(),
        runtimes: Runtimes::told_by(started.iter().map(|one| &one.launch)),
        messages: Vec::new(),
        notices: Notices::default(),
        progress: Fills::default(),
        listener,
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
    // After this point a program runs: what fails here is told, and changes nothing of how it ends.
    if let Err(error) = watch.until_ended() {
        watch.only_wait(&error);
    }
    watch.tell_drop_in();
    // Of one that nobody could wait for no code is known.
    let codes = watch.running.iter().map(|one| one.ended().map_or(OWN_FAILURE, code));
    let code = codes.into_iter().find(|code| *code != 0).unwrap_or(0);
    watch.try_write(code);
    Answer::printed("run").code(code)
}

impl Watch<'_> {
    fn until_ended(&mut self) -> io::Result<()> {
        let fixed = self.args.verify_after.map(Duration::from_secs);
        let mut looks = Looks::new(self.begun, fixed);
        loop {
            let left = looks.left(Instant::now());
            if left == Some(Duration::ZERO) {
                if self.waits_for_fills() && looks.put_off(Instant::now()) {
                    self.tell_filling("it is looked at then");
                    continue;
                }
                self.look();
                looks.looked(Instant::now(), self.waits_for_another());
                continue;
            }
            match next_event(&self.host, self.listener.as_ref(), &mut self.running, left)? {
                Event::Placed(notice) => {
                    // Asked at once, and by the one file that tells: others wait in a short queue.
                    let stat = stat_of(&self.host, notice.pid);
                    self.notices.add(notice, stat.ok().map(|stat| stat.start_ticks));
                    looks.placed(Instant::now());
                }
                Event::Ended(index, status) => {
                    self.ended(index, status);
                    if self.running.iter().all(|one| one.ended().is_some()) {
                        self.tell_detached();
                        self.tell_since();
                        return Ok(());
                    }
                }
                Event::Quiet => {}
            }
        }
    }

    /// Waits for the ends of all, where they cannot be watched.
    fn only_wait(&mut self, error: &io::Error) {
        self.tell(warning(format!("the program runs on, and is not looked at any more: {error}")));
        for index in 0..self.running.len() {
            if self.running[index].ended().is_none()
                && let Err(error) = self.running[index].wait()
            {
                let pid = self.running[index].pid;
                self.tell(warning(format!("how pid {pid} has ended is not known: {error}")));
            }
        }
    }

    /// Takes note of how far segments are that processes fill; true where a look waits for one. One that gets no page
    /// more is told, and waited for no longer.
    fn waits_for_fills(&mut self) -> bool {
        self.notices.forget_ended(|pid| begun(&self.host, pid));
        let filling: Vec<Notice> = self.notices.filling().to_vec();
        let far = |notice: &Notice| ((notice.pid, notice.address), filled_bytes(&self.host, notice));
        let far: Vec<_> = filling.iter().map(far).collect();
        for (index, waited) in self.progress.stalled(&far, Instant::now()) {
            let notice = &filling[index];
            self.notices.give_up(notice);
            let bytes = planish_report::units::bytes(notice.bytes);
            self.tell(warning(format!(
                "pid {} was to fill a shared segment of {bytes}, which has got no page for {} s: a handler of a signal \
                 runs or has left it for good (siglongjmp), or memory is short; what is missing then lies where first \
                 use puts it",
                notice.pid,
                waited.as_secs()
            )));
        }
        !self.notices.filling().is_empty()
    }

    fn tell_filling(&mut self, consequence: &str) {
        let told = |notice: &Notice| {
            let bytes = planish_report::units::bytes(notice.bytes);
            let text = format!("pid {} fills a shared segment of {bytes}: {consequence}", notice.pid);
            Message::new(planish_report::Level::Note, text)
        };
        let told: Vec<Message> = self.notices.filling().iter().map(told).collect();
        told.into_iter().for_each(|message| self.tell(message));
    }

    /// Looks at the memory of every instance, and tells what was achieved: the first time, and when there are processes
    /// or segments that were not there the last time.
    fn look(&mut self) {
        let begun = Instant::now();
        let mut is_new = !self.has_looked;
        for index in 0..self.running.len() {
            is_new |= self.look_at(index);
        }
        self.has_looked = true;
        self.took = begun.elapsed();
        self.notices.looked();
        if is_new {
            self.tell_detached();
            let report = self.report();
            if !self.context.globals.quiet && self.achieved.iter().any(Option::is_some) {
                output::print_talk(&self.context.text(&report, &Catalogue::default()));
            }
        }
        self.try_write(0);
    }

    /// Looks at one instance; true where there is something new to tell.
    fn look_at(&mut self, index: usize) -> bool {
        if self.running[index].ended().is_some() {
            return false;
        }
        let who = Who::Pid(self.running[index].pid);
        let family = members(&self.host, &who, true).unwrap_or_default();
        let pids: Vec<u32> = family.into_iter().map(|(pid, _)| pid).collect();
        self.tell_runtimes(index, &pids);
        if !self.is_worth_a_look(index, &pids) {
            return false;
        }
        let text = self.text.as_ref();
        self.on_huge[index] = text.and_then(|text| text.seen(&self.host, self.running[index].pid));
        match Map::read(&self.host, &who, true) {
            Ok(map) => {
                let after = self.begun.elapsed();
                self.notices.keep_mapped(&map);
                let achieved = Achieved::of(&map, &self.notices, &self.launches[index], &self.machine);
                let is_new = self.achieved[index].as_ref().is_none_or(|(_, known)| {
                    let mut pids = achieved.pids();
                    let mut segments = achieved.segments.iter().map(|segment| (segment.pid, segment.address));
                    pids.any(|pid| known.pids().all(|known| known != pid))
                        || segments
                            .any(|new| known.segments.iter().all(|known| (known.pid, known.address) != new))
                });
                if is_new {
                    self.judge(index, &achieved);
                }
                self.judge_private(index, &achieved);
                self.judge_untold(&achieved);
                self.achieved[index] = Some((after, achieved));
                return is_new;
            }
            // It has ended, which the next event tells.
            Err(error) if error.is_gone() => {}
            Err(error) => {
                let chain = crate::failure::chain(&error);
                self.tell(warning(format!("its memory cannot be looked at: {chain}")));
            }
        }
        false
    }

    /// Tells what a runtime needs besides that runs now: the command named what has executed or started it.
    fn tell_runtimes(&mut self, index: usize, pids: &[u32]) {
        for (pid, note) in self.runtimes.look(&self.host, pids, &self.launches[index]) {
            self.tell(Message::new(planish_report::Level::Note, format!("pid {pid}: {note}")));
        }
    }

    /// Whether an instance that was looked at is looked at again: a large one takes a while, and is as it was unless it
    /// has started something since, or mapped a segment; and so where something is wanted of its heap, which grows, and
    /// where another look has to confirm what the last one saw.
    fn is_worth_a_look(&self, index: usize, pids: &[u32]) -> bool {
        let Some((_, known)) = &self.achieved[index] else { return true };
        let is_known = |pid: u32| known.pids().any(|known| known == pid);
        let grows = self.launches[index].wish.heap_pages.is_some();
        let confirms = known.untold.iter().any(|pid| self.untold.get(pid) == Some(&false));
        let is_new = pids.iter().any(|pid| !is_known(*pid)) || self.notices.since() > 0;
        self.took < CHEAP || grows || confirms || is_new
    }

    /// Names processes that placed segments or have some that were, and are below no instance any more.
    fn tell_detached(&mut self) {
        let is_below = |pid: u32| {
            let looks = self.achieved.iter().flatten();
            looks.flat_map(|(_, achieved)| achieved.pids()).any(|known| known == pid)
        };
        self.notices.forget_ended(|pid| begun(&self.host, pid));
        let mut pids: Vec<u32> = self.notices.list().iter().map(|notice| notice.pid).collect();
        // A program that ends at this moment has no memory to look at, and is nobody who left.
        let is_program = |pid: u32| self.running.iter().any(|running| running.pid == pid);
        let wish = &self.launches[0].wish;
        pids.retain(|pid| !is_program(*pid) && may_hold(&self.host, *pid, wish));
        let left = self.left();
        let is_unreached = |pid: u32| left.iter().any(|left| left.pid == pid && !left.is_reached);
        pids.extend(left.iter().map(|left| left.pid));
        pids.retain(|pid| !is_below(*pid));
        pids.sort_unstable();
        pids.dedup();
        for pid in pids {
            let has = match is_unreached(pid) {
                true => {
                    "shared segments and not the preload (placed only where another process has placed them)"
                }
                false => "segments that were placed",
            };
            let text = format!(
                "pid {pid} has {has}, and is no child of the program any more: its memory is not in what is told here"
            );
            self.tell(warning(text).hint(format!("planish map {pid} --tree")));
        }
    }

    /// Processes that have left the program with segments: also those of one that has ended since it placed them.
    fn left(&self) -> Vec<Left> {
        let programs: Vec<u32> = self.running.iter().map(|running| running.pid).collect();
        match &self.listener {
            Some(listener) if self.notices.total() > 0 || !self.notices.filling().is_empty() => {
                left(&self.host, listener.name(), &programs, &self.launches[0].wish)
            }
            _ => Vec::new(),
        }
    }

    /// Tells what fell short, once.
    fn judge(&mut self, index: usize, achieved: &Achieved) {
        let pid = self.running[index].pid;
        let short = achieved.segments.iter().flat_map(|segment| &segment.short);
        let mut told: Vec<Message> = short.map(|why| warning(format!("pid {pid}: {why}"))).collect();
        told.extend(achieved.unreached.iter().map(|pid| {
            let text = format!(
                "pid {pid} has shared segments and not the preload, so that they lie where first use has put them: its \
                 loader ignored LD_PRELOAD, or what started it took that out of its environment"
            );
            let cure = "name the program itself behind --, and not what starts it; --numa heap=... is inherited";
            warning(text).hint(cure)
        }));
        let own = self.filters("self");
        let closed = achieved.untold.iter().filter(|pid| self.filters(&pid.to_string()) > own);
        let closed = closed.map(|pid| {
            let text = format!(
                "pid {pid} is under a seccomp filter that was put upon it after the start: where it did so itself, its \
                 shared segments are left alone, since the filter may end it at a call that is not its own; where what \
                 started it did, the filter may refuse what the preload needs"
            );
            warning(text).hint("--numa heap=..., --node and --huge heap are set before; docs/run.md has the calls")
        });
        told.extend(closed);
        let is_filling = !self.notices.filling().is_empty();
        let has_none = achieved.segments.is_empty() && achieved.untold.is_empty() && told.is_empty();
        if self.launches[index].wish.wants_shared() && has_none && !is_filling {
            told.extend(self.without_segments(pid));
        }
        told.into_iter().for_each(|message| self.tell(message));
        if is_filling {
            self.tell_filling("what it gets is not in what is told here");
        }
    }

    /// What is told of a program that has no segment to be placed now.
    fn without_segments(&self, pid: u32) -> Option<Message> {
        let min = planish_report::units::bytes(self.args.min as u64);
        if self.notices.total() > 0 {
            // Who has left with them is named instead.
            if !self.left().is_empty() {
                return None;
            }
            let text =
                format!("no shared segment of {min} or more is mapped now: those that were placed are gone");
            return Some(Message::new(planish_report::Level::Note, text));
        }
        let text = format!("pid {pid} has mapped no shared segment of {min} or more yet");
        Some(
            warning(text).hint("--min SIZE, if its segments are smaller; --verify-after SECS, if it is slow"),
        )
    }

    /// Whether there are segments of which another look has to tell whether the preload saw them.
    fn waits_for_another(&self) -> bool {
        self.untold.values().any(|is_confirmed| !is_confirmed)
    }

    /// Tells who has segments that its preload did not see. At the second look: at the first one what tells of them may
    /// be under way.
    fn judge_untold(&mut self, achieved: &Achieved) {
        let own = self.filters("self");
        let looked_at: BTreeSet<u32> = achieved.pids().collect();
        self.untold.retain(|pid, is_confirmed| {
            *is_confirmed || !looked_at.contains(pid) || achieved.untold.contains(pid)
        });
        for pid in &achieved.untold {
            // That was told at the first look.
            if self.filters(&pid.to_string()) > own {
                continue;
            }
            let is_confirmed = self.untold.contains_key(pid) || self.args.verify_after.is_some();
            if self.untold.insert(*pid, is_confirmed) != Some(true) && is_confirmed {
                self.tell(self.without_answer(*pid));
            }
        }
    }

    /// What is told of a process whose preload told nothing of its segments.
    fn without_answer(&self, pid: u32) -> Message {
        let is_reached =
            |listener: &Listener| self.notices.has_told(pid) || listener.is_reached_from(&self.host, pid);
        if !self.listener.as_ref().is_some_and(is_reached) {
            let text = format!(
                "pid {pid} is in another network namespace and sees other files, so that its preload could tell \
                 nothing here: what its shared segments got is not known"
            );
            return warning(text).hint(format!("planish map {pid} --tree"));
        }
        let text = format!(
            "pid {pid} has shared segments of which its preload has told nothing: it did not see them, so that they \
             lie where first use has put them (the program calls the kernel itself, or a library of LD_PRELOAD does so \
             for it, or they grew or became writable after they were mapped), or it could not tell of them (no file \
             descriptor was left, or too many came at once)"
        );
        warning(text).hint(format!(
            "planish map {pid} shows where they lie; leave that library out, or map them whole and writable; --numa \
             heap=... is inherited"
        ))
    }

    /// How many seccomp filters a process is under; 0 where nobody tells.
    fn filters(&self, pid: &str) -> u32 {
        let status = self.host.read_lossy(&format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// Tells what fell short of private memory, once a process: a heap grows, and each look has another number.
    fn judge_private(&mut self, index: usize, achieved: &Achieved) {
        for private in achieved.private.iter().filter(|private| !private.short.is_empty()) {
            if self.told_private.insert(private.pid) {
                let whose = match self.running[index].pid {
                    pid if pid == private.pid => format!("pid {pid}"),
                    pid => format!("pid {} below pid {pid}", private.pid),
                };
                private.short.iter().for_each(|why| self.tell(warning(format!("{whose}: {why}"))));
            }
        }
    }

    fn ended(&mut self, index: usize, status: ExitStatus) {
        if self.achieved[index].is_none() && self.launches[index].wish.wants_memory() {
            let pid = self.running[index].pid;
            self.answered[index] = self.answers_of(index);
            let mut text = format!("pid {pid} ended with {} before its memory was looked at", code(status));
            text += &answers(&self.answered[index]);
            self.tell(Message::new(planish_report::Level::Note, text));
            let short = self.answered[index].iter();
            let short: Vec<String> = short
                .flat_map(|at| at.short.iter().map(move |why| format!("pid {}: {why}", at.pid)))
                .collect();
            short.into_iter().for_each(|text| self.tell(warning(text)));
        }
    }

    /// What the preload told of an instance that nobody has looked at. Who its children were nobody knows any more:
    /// they are its own where it is the only one.
    fn answers_of(&self, index: usize) -> Vec<SegmentAt> {
        let pid = self.running[index].pid;
        let is_alone = self.running.len() == 1;
        let notices = self.notices.list().iter().filter(|notice| is_alone || notice.pid == pid);
        Achieved::answered(notices, &self.launches[index], &self.machine)
    }

    /// Counts the segments that no look came after.
    fn tell_since(&mut self) {
        let count = self.notices.since();
        if self.has_looked && count > 0 {
            let text = format!(
                "{} placed after its memory was looked at: what they got is not in what is told here",
                planish_report::units::count(usize::try_from(count).unwrap_or(usize::MAX), "segment")
            );
            self.tell(Message::new(planish_report::Level::Note, text));
        }
    }

    /// Of a program that ended before a look the drop-in is told all the same, where it is asked for.
    fn tell_drop_in(&self) {
        let globals = &self.context.globals;
        if globals.verbose && !globals.quiet && self.achieved.iter().all(Option::is_none) {
            output::print_talk(&self.context.text(&self.report(), &Catalogue::default()));
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
            let answered = &self.answered[index];
            report::instance(self.nodes[index], running.pid, exit, launch, achieved, text, answered)
        });
        report::whole(&self.args.command, &self.launches[0], instances.collect())
    }

    /// Writes the report; a full disk is told, and is no reason to end as if the program had failed.
    fn try_write(&mut self, code: u8) {
        if let Err(failure) = self.write(code) {
            self.tell(failure.message("", "planish run --help"));
        }
    }

    fn write(&self, code: u8) -> Result<(), Failure> {
        let Some(path) = &self.args.report else { return Ok(()) };
        write_envelope(path, Some(&self.report()), code, self.messages.clone())
    }
}

/// `; its preload has placed 1 segment of 64 MiB, filled in 31.2 ms by 2 threads`: more of them by their sums.
fn answers(answered: &[SegmentAt]) -> String {
    use planish_report::units;
    if answered.is_empty() {
        return String::new();
    }
    let all: u64 = answered.iter().map(|segment| segment.bytes).sum();
    let filled: Vec<&SegmentAt> = answered.iter().filter(|segment| segment.threads > 0).collect();
    let filled_bytes: u64 = filled.iter().map(|segment| segment.bytes).sum();
    let seconds = units::seconds(filled.iter().map(|segment| segment.seconds).sum());
    let threads = filled.iter().map(|segment| segment.threads).max().unwrap_or(0);
    let threads = units::count(threads as usize, "thread");
    let how = match (filled.len(), answered.len()) {
        (0, _) => ", and filled none".to_owned(),
        (some, count) if some == count => format!(", filled in {seconds} by {threads}"),
        _ => format!(", {} of it filled in {seconds} by {threads}", units::bytes(filled_bytes)),
    };
    let in_all = if answered.len() > 1 { " in all" } else { "" };
    format!(
        "; by its preload {} of {}{in_all} placed{how}",
        units::count(answered.len(), "shared segment"),
        units::bytes(all)
    )
}

/// When the process of this PID began, in ticks of the clock; `None` where there is none any more.
fn begun(host: &Host, pid: u32) -> Option<u64> {
    let found = members(host, &Who::Pid(pid), false).ok()?;
    found.first().map(|(_, stat)| stat.start_ticks)
}
