//! The routes, each tried as far as what it takes is there, and judged by what is mapped afterwards.

use std::path::Path;

use planish_hugify::{Cached, HugifyError, Image, Probe, coverage, try_program};
use planish_model::EntryId;
use planish_pipeline::{
    NewProgram, PipelineError, Session, check_replacement, kept_original, replace_program, replaced_before,
};
use planish_report::TextRouteRow;
use planish_sys::{Error, code, process};

use super::subject::{Subject, refused};
use super::{Args, Route};
use crate::context::Context;
use crate::failure::{Failure, chain};

/// What was tried so far.
pub(super) struct Attempt<'a> {
    subject: &'a Subject,
    args: &'a Args,
    context: &'a Context,
    /// Every route so far.
    pub rows: Vec<TextRouteRow>,
    /// The one that won.
    pub route: Option<&'static str>,
    /// What the page cache has now.
    pub after: Option<Cached>,
    /// The entry of a file that was replaced.
    pub entry: Option<EntryId>,
    /// Where the original of such a file lies.
    pub original: Option<String>,
    /// Whether a dry run has come by a route that would be tried.
    pub would_try: bool,
    /// Why the file may not be replaced.
    pub refusal: Option<Failure>,
}

/// How a route ended: what it came to, or why it was not gone.
enum Ended {
    Won,
    Short(String),
    Failed(String),
    Skipped(String),
}

impl<'a> Attempt<'a> {
    pub fn new(subject: &'a Subject, args: &'a Args, context: &'a Context) -> Self {
        Self {
            subject,
            args,
            context,
            rows: Vec::new(),
            route: None,
            after: None,
            entry: None,
            original: None,
            would_try: false,
            refusal: None,
        }
    }

    pub fn told(&mut self, route: &'static str, outcome: &str, why: Option<String>) {
        if outcome == "won" {
            self.route = Some(route);
        }
        self.rows.push(TextRouteRow { route: route.to_owned(), outcome: outcome.to_owned(), why });
    }

    /// Goes a route, unless one before it has won.
    pub fn try_route(&mut self, route: Route) -> Result<(), Failure> {
        let ended = if let Some(won) = self.route {
            Ended::Skipped(format!("{won} has won"))
        } else {
            match route {
                Route::Warm => self.warm(),
                Route::Copy => self.copy()?,
                Route::Collapse => self.collapse(),
            }
        };
        let (outcome, why) = match ended {
            Ended::Won => ("won", None),
            Ended::Short(why) => ("short", Some(why)),
            Ended::Failed(why) => ("failed", Some(why)),
            Ended::Skipped(why) => ("skipped", Some(why)),
        };
        self.told(route.word(), outcome, why);
        Ok(())
    }

    fn warm(&mut self) -> Ended {
        if !self.subject.remake.image().is_ready(self.subject.huge_bytes) {
            return Ended::Skipped("its offsets or its p_align fit no huge page".to_owned());
        }
        if let Some(pid) = self.subject.running.first() {
            return Ended::Skipped(format!("process {pid} runs it, and what is in use stays as it is"));
        }
        if self.args.dry_run {
            return self.would("would be tried first");
        }
        self.judge(self.subject.probe.warm())
    }

    fn judge(&mut self, cached: Result<Cached, HugifyError>) -> Ended {
        match cached {
            Ok(cached) => {
                self.after = Some(cached);
                if cached.is_at_least(self.args.least) { Ended::Won } else { Ended::Short(short(cached)) }
            }
            Err(error) => Ended::Failed(chain(&error)),
        }
    }

    fn copy(&mut self) -> Result<Ended, Failure> {
        let subject = self.subject;
        let session = self.context.session()?;
        if let Some(why) = replaced_before(&session, &subject.path)? {
            return Ok(Ended::Skipped(why));
        }
        let bytes = subject.remake.make(&subject.bytes).map_err(|error| refused(&subject.path, error))?;
        let image = Image::parse(&bytes).map_err(|error| refused(&subject.path, error))?;
        if self.args.dry_run {
            return self.would_copy(&session, bytes.len() as u64);
        }
        let (huge_bytes, least) = (subject.huge_bytes, self.args.least);
        let mut trial = |path: &Path| tried(path, &image, huge_bytes, least);
        let new = NewProgram {
            path: &subject.path,
            original: &subject.bytes,
            bytes: &bytes,
            packaged: self.args.packaged,
            reason: self.args.reason.clone(),
        };
        let replaced = match replace_program(&session, &new, &mut trial) {
            // What may not be replaced may be collapsed; where nothing else wins, this is the answer.
            Err(error @ PipelineError::Guarded(_)) => return Ok(self.guarded(error)),
            replaced => replaced?,
        };
        self.entry = replaced.entry;
        self.original = kept_original(&session, &subject.path)?.map(|(_, original)| original);
        if let Some(why) = replaced.why_not {
            return Ok(Ended::Failed(why));
        }
        // A fresh look at the name, and not at what was tried.
        let probe = Probe::open(Path::new(&subject.path), image, huge_bytes);
        Ok(self.judge(probe.and_then(|probe| probe.cached())))
    }

    fn guarded(&mut self, error: PipelineError) -> Ended {
        let why = chain(&error);
        self.refusal = Some(error.into());
        Ended::Failed(why)
    }

    fn would(&mut self, what: &str) -> Ended {
        self.would_try = true;
        Ended::Skipped(what.to_owned())
    }

    /// What would become of a copy, as far as that is known without a write. Where the route is come by, it is refused
    /// as then; but whether one before it wins nobody knows.
    fn would_copy(&mut self, session: &Session, bytes: u64) -> Result<Ended, Failure> {
        match check_replacement(session, &self.subject.path, bytes, self.args.packaged) {
            Ok(None) => Ok(self.would("would be tried")),
            Ok(Some(why)) => Ok(Ended::Failed(why)),
            Err(error @ PipelineError::Guarded(_)) => Ok(self.guarded(error)),
            Err(error) if self.would_try => Ok(Ended::Failed(chain(&error))),
            Err(error) => Err(error.into()),
        }
    }

    fn collapse(&mut self) -> Ended {
        if !self.subject.remake.image().is_ready(self.subject.huge_bytes) {
            return Ended::Skipped("its offsets or its p_align fit no huge page".to_owned());
        }
        if self.args.dry_run {
            return self.would("would be tried");
        }
        let ended = self.judge(self.subject.probe.collapse());
        // What runs has its own page tables, and a kernel that collapses files does so through them as well.
        let running = self.subject.running.iter().filter_map(|pid| self.collapse_of(*pid).err());
        match (ended, running.reduce(|_, error| error)) {
            (Ended::Won, _) => Ended::Won,
            (Ended::Short(why), Some(error)) => Ended::Short(format!("{why}; {}", chain(&error))),
            (ended, _) => ended,
        }
    }

    fn collapse_of(&self, pid: u32) -> Result<(), HugifyError> {
        let subject = self.subject;
        let image = subject.remake.image();
        let Some(seen) = coverage(&subject.host, pid, &subject.path, image, subject.huge_bytes)? else {
            return Ok(());
        };
        let Some(raw) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else {
            return Ok(());
        };
        let handle = process::pidfd(raw)?;
        for range in image.text().filter_map(|segment| segment.whole(subject.huge_bytes)) {
            let at = |address: u64| seen.base.wrapping_add(address);
            code::collapse_of(&handle, at(range.start)..at(range.end))?;
        }
        Ok(())
    }
}

fn short(cached: Cached) -> String {
    let mib = |bytes: u64| bytes >> 20;
    format!("{} of {} MiB on huge pages", mib(cached.huge_bytes), mib(cached.whole_bytes))
}

/// Whether a file is what it was made for: in the page cache by huge pieces, loaded by the kernel, and mapped so.
fn tried(path: &Path, image: &Image, huge_bytes: u64, least: f64) -> Result<(), String> {
    let told = |error: HugifyError| chain(&error);
    let probe = Probe::open(path, image.clone(), huge_bytes).map_err(told)?;
    let mut cached = probe.cached().map_err(told)?;
    if !cached.is_at_least(least) {
        // A file system may cache in huge pieces what is read, and not what is written: xfs before Linux 6.6.
        cached = probe.warm().map_err(told)?;
    }
    if !cached.is_at_least(least) {
        return Err(short(cached));
    }
    match try_program(path, image, huge_bytes) {
        Ok(None) => Ok(()),
        Ok(Some(seen)) if seen.is_at_least(least) => Ok(()),
        Ok(Some(seen)) => {
            let (huge, whole) = (seen.huge_bytes >> 20, seen.whole_bytes >> 20);
            Err(format!("as the kernel loads it, {huge} of {whole} MiB are on huge pages"))
        }
        // Nobody may trace here; what the page cache has was looked at all the same.
        Err(HugifyError::System(Error::Forbidden { call: "ptrace", .. })) => Ok(()),
        Err(error) => Err(format!("the kernel does not load it: {}", chain(&error))),
    }
}
