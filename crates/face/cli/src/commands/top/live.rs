//! The loop around a screen: samples come, keys are pressed, lines are shown.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice, adapter::strip_str};
use planish_host::Host;
use planish_model::Catalogue;
use planish_report::{MapReport, Page, PageOptions, Report, TopReport, TopSort, units};
use planish_residency::top::{Budget, Reader, Sample};
use planish_residency::{Map, Who};

use super::keys::keys;
use super::recording::{Player, Recorder, Recording};
use super::screen::{painted, screen};
use super::terminal::Terminal;
use super::view::{View, Wish};
use super::{Args, budget, told_damage};
use crate::answer::Answer;
use crate::commands::map;
use crate::context::Context;
use crate::failure::Failure;
use crate::signals;

/// So long a signal or a new size of the window may wait.
const GLANCE: Duration = Duration::from_millis(200);
/// A key that asks for a sample gets one no sooner after the last.
const HASTE: Duration = Duration::from_millis(500);

/// Where samples come from.
enum Feed {
    Machine { reader: Reader, interval: Duration, recorder: Option<Recorder> },
    File { recording: Recording, player: Player },
}

/// The screen and what feeds it.
struct Loop<'a> {
    context: &'a Context,
    feed: Feed,
    view: View,
    sample: Sample,
    before: Option<Sample>,
    /// When the last sample was shown.
    since: Instant,
    /// Milliseconds from it to the next one of a recording.
    apart_ms: u64,
    asked: bool,
}

/// Shows this machine until somebody ends it.
pub(super) fn watch(args: &Args, context: &Context, recorder: Option<Recorder>) -> Result<Answer, Failure> {
    let mut feed = Feed::Machine { reader: Reader::default(), interval: args.interval, recorder };
    let sample = feed.take(context, &[], args.sort, false)?;
    Ok(match run(args, context, feed, sample)? {
        Feed::Machine { recorder: Some(recorder), .. } => recorder.end(context),
        _ => Answer::printed("top").next(context.line("doctor")),
    })
}

/// Records this machine until a signal ends it, with nobody to show it to.
pub(super) fn record(args: &Args, context: &Context, mut recorder: Recorder) -> Result<Answer, Failure> {
    let refused = |error| Failure::refused(format!("signals cannot be waited for: {error}"));
    let stop = signals::stop_flag().map_err(refused)?;
    let (mut reader, mut shown) = (Reader::default(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let since = Instant::now();
        let sample = reader.step(&context.host()?, &shown, budget(args.sort, Budget::STEP));
        recorder.add(&sample)?;
        shown = super::shown(&TopReport::of(&sample, None, args.sort, &args.filter));
        while !stop.load(Ordering::Relaxed) && since.elapsed() < args.interval {
            std::thread::sleep(GLANCE.min(args.interval.saturating_sub(since.elapsed())));
        }
    }
    Ok(recorder.end(context))
}

/// Plays a recording.
pub(super) fn replay(args: &Args, context: &Context, mut recording: Recording) -> Result<Answer, Failure> {
    let (_, sample) = recording.nearest(0, false)?;
    let player = Player::new(recording.len());
    let feed = run(args, context, Feed::File { recording, player }, sample)?;
    let answer = Answer::printed("top");
    Ok(match feed {
        Feed::File { recording, .. } => told_damage(answer, &recording),
        Feed::Machine { .. } => answer,
    }
    .next(context.line("top")))
}

fn run(args: &Args, context: &Context, feed: Feed, sample: Sample) -> Result<Feed, Failure> {
    let refused = |error: io::Error| {
        Failure::refused(format!("this terminal cannot be used: {error}")).hint("planish ... --once")
    };
    let stop = signals::stop_flag().map_err(refused)?;
    let colour = !matches!(AutoStream::choice(&io::stdout()), ColorChoice::Never);
    let view = View::new(args.sort, &args.filter, &sample);
    let mut this =
        Loop { context, feed, view, sample, before: None, since: Instant::now(), apart_ms: 0, asked: true };
    this.look_ahead();
    this.view.update(&this.sample, None);
    let terminal = Terminal::enter().map_err(refused)?;
    let mut last = (String::new(), (0, 0));
    while !stop.load(Ordering::Relaxed) {
        let size = terminal.size();
        this.tell_place();
        let text = painted(&screen(&mut this.view, size.0, size.1), colour);
        if last != (text.clone(), size) {
            if terminal.show(&text).is_err() {
                break;
            }
            last = (text, size);
        }
        // The rest of this turn: a key, or the next sample. A terminal that is gone ends it.
        let Ok(bytes) = terminal.pressed(this.wait().min(GLANCE)) else { break };
        for key in keys(&bytes) {
            let wish = this.view.press(key);
            if wish == Wish::Quit {
                return Ok(this.feed);
            }
            if let Wish::Map(pid) = wish {
                this.view.show_one(pid, vec![format!("looking at process {pid} ...")]);
                let _ = terminal.show(&painted(&screen(&mut this.view, size.0, size.1), colour));
                let lines = this.map_of(pid, size.0);
                this.view.show_one(pid, lines);
            } else {
                this.obey(wish)?;
            }
        }
        if this.wait().is_zero() {
            this.advance()?;
        }
    }
    Ok(this.feed)
}

impl Feed {
    /// The next sample of the machine, or the one of a recording that its player stands at, which went `back` to it.
    fn take(
        &mut self,
        context: &Context,
        shown: &[u32],
        sort: TopSort,
        back: bool,
    ) -> Result<Sample, Failure> {
        match self {
            Self::Machine { reader, recorder, .. } => {
                // A host of its own for each: it remembers the path of every process that ever was.
                let sample = reader.step(&context.host()?, shown, budget(sort, Budget::STEP));
                recorder.as_mut().map_or(Ok(()), |recorder| recorder.add(&sample))?;
                Ok(sample)
            }
            Self::File { recording, player } => {
                // What is damaged is stepped over.
                let (index, sample) = recording.nearest(player.index, back)?;
                player.index = index;
                Ok(sample)
            }
        }
    }
}

impl Loop<'_> {
    /// How long until the next sample; for ever, as far as a key goes, while nothing is due.
    fn wait(&self) -> Duration {
        let passed = self.since.elapsed();
        match &self.feed {
            Feed::Machine { .. } if self.asked => HASTE.saturating_sub(passed),
            Feed::Machine { .. } if self.view.paused => Duration::MAX,
            Feed::Machine { interval, .. } => interval.saturating_sub(passed),
            Feed::File { player, .. } => {
                let wait = player.wait_ms(self.apart_ms).map(Duration::from_millis);
                wait.map_or(Duration::MAX, |wait| wait.saturating_sub(passed))
            }
        }
    }

    /// Goes to the next sample.
    fn advance(&mut self) -> Result<(), Failure> {
        if let Feed::File { player, .. } = &mut self.feed {
            player.step(1);
        }
        self.show(false)
    }

    /// Shows the sample that the feed has now, which it went `back` to or on, beside the one before it.
    fn show(&mut self, back: bool) -> Result<(), Failure> {
        let sample = self.feed.take(self.context, &self.view.shown_pids(), self.view.sort, back)?;
        self.before = match &mut self.feed {
            Feed::Machine { .. } => Some(std::mem::replace(&mut self.sample, sample)),
            Feed::File { recording, player } => {
                self.sample = sample;
                let before = player.index.checked_sub(1).and_then(|index| recording.at_or_before(index));
                before.map(|(_, sample)| sample)
            }
        };
        (self.since, self.asked) = (Instant::now(), false);
        self.look_ahead();
        self.view.update(&self.sample, self.before.as_ref());
        Ok(())
    }

    /// How far the next sample of a recording is. Where none is left that can be read, it ends here.
    fn look_ahead(&mut self) {
        let Feed::File { recording, player } = &mut self.feed else { return };
        match recording.at_or_after(player.index + 1) {
            Some((_, next)) => self.apart_ms = next.at_ms.saturating_sub(self.sample.at_ms),
            None => player.len = player.index + 1,
        }
    }

    fn obey(&mut self, wish: Wish) -> Result<(), Failure> {
        let now = Instant::now();
        match (wish, &mut self.feed) {
            (Wish::Pause, Feed::Machine { .. }) => self.view.paused = !self.view.paused,
            (Wish::Pause, Feed::File { player, .. }) => {
                player.paused = !player.paused;
                self.since = now;
            }
            (Wish::Faster(by), Feed::File { player, .. }) => player.faster(by),
            (Wish::Step(by), Feed::File { player, .. }) => {
                player.paused = true;
                player.step(by);
                return self.show(by < 0);
            }
            (Wish::Now, Feed::Machine { .. }) => self.asked = !self.view.paused,
            (Wish::Step(1), Feed::Machine { .. }) => self.asked = true,
            _ => {}
        }
        self.view.update(&self.sample, self.before.as_ref());
        Ok(())
    }

    /// What the first line says of a replay or a recording.
    fn tell_place(&mut self) {
        match &self.feed {
            Feed::File { recording, player } => {
                self.view.place = player.told();
                if recording.odd_count() > 0 {
                    self.view.place += &format!(", {} cannot be read", recording.odd_count());
                }
            }
            Feed::Machine { recorder: Some(recorder), .. } => {
                self.view.recorded = format!("{} recorded", units::count(recorder.taken, "sample"));
            }
            Feed::Machine { .. } => {}
        }
    }

    /// The map of a process as lines.
    fn map_of(&self, pid: u32, width: usize) -> Vec<String> {
        if matches!(self.feed, Feed::File { .. }) {
            return vec![
                "A recording holds what the table shows, and no map: it would be of another moment."
                    .to_owned(),
                format!("Of a process that still runs: planish map {pid}"),
            ];
        }
        let (host, begun) = (Host::live(), Instant::now());
        let who = Who::Pid(pid);
        let text = match Map::read(&host, &who, false) {
            Ok(found) => {
                let took = units::seconds(begun.elapsed().as_secs_f64());
                let report = MapReport::from(&found);
                let catalogue = Catalogue::default();
                let mut page = Page::new(PageOptions { width, detailed: false }, &catalogue);
                report.text(&mut page);
                report.threads_text(&mut page);
                page.gap();
                page.fact("cost", &format!("this map took {took}; enter makes it anew"));
                page.into_text()
            }
            Err(error) => {
                let again = self.context.root_line(&format!("map {pid}"));
                let message =
                    map::failure(error, &who, &host, &again, self.context).message("", "planish map --help");
                format!("{}\n{}", message.text, message.hint.unwrap_or_default())
            }
        };
        strip_str(&text).to_string().lines().map(str::to_owned).collect()
    }
}
