//! The recording itself: out of the rings, into the stream, in turns of on and off.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use planish_profile::perf_data::{Stream, Taken};
use planish_sys::Error;
use planish_sys::process::cpu_time;
use planish_sys::sampling::{Refusal, Sampler, Source};

/// How much of the time is sampled, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The share of time, above 0 and at most 1.
    pub duty: f64,
    pub limit: Option<Duration>,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The process or command did.
    Target,
    /// The time was up.
    Time,
    /// Ctrl-C, or a service manager.
    Asked,
    /// The stream reached its limit.
    Full,
}

impl End {
    pub fn word(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Time => "time",
            Self::Asked => "asked",
            Self::Full => "full",
        }
    }
}

/// What was recorded.
#[derive(Debug)]
pub(crate) struct Captured {
    pub stream: Stream,
    pub taken: Taken,
    pub source: Source,
    pub refused: Vec<(Source, Refusal)>,
    pub user_only: bool,
    /// Time with the samples on.
    pub on: Duration,
    /// Time in all.
    pub elapsed: Duration,
    /// Seconds since 1970.
    pub start: u64,
    pub end: u64,
    /// CPU time of this process meanwhile. What the samples cost inside the target is not in it.
    pub own_cpu: Duration,
    pub ended: End,
}

impl Captured {
    /// The share of time that was sampled.
    pub fn duty(&self) -> f64 {
        if self.elapsed.is_zero() {
            1.0
        } else {
            (self.on.as_secs_f64() / self.elapsed.as_secs_f64()).min(1.0)
        }
    }
}

/// A recording is held in memory and read several times over: this much is an hour of a busy CPU.
const STREAM_BYTES_MAX: usize = 512 << 20;
/// The longest time between two looks at what cannot wake us: Ctrl-C, and rings whose first thread is gone.
const LOOK: Duration = Duration::from_millis(200);
/// On and off take turns of this length together, a quarter more or less.
const TURN: Duration = Duration::from_secs(1);
/// What the golden ratio leaves of one: multiples of it fill a turn evenly, so that no rhythm of the target is met.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// Records until `until` is readable, the time is up, or `stop` is set.
pub(crate) fn run(
    mut sampler: Sampler,
    mut stream: Stream,
    pace: Pace,
    until: Option<BorrowedFd<'_>>,
    stop: &AtomicBool,
) -> Result<Captured, Error> {
    let (begun, start, cpu_before) = (Instant::now(), unix_seconds(), cpu_time(None)?);
    let (mut taken, mut raw) = (Taken::default(), Vec::new());
    let own = Some(std::process::id());
    let mut turns = Turns::new(pace.duty, begun);
    sampler.set_on(true)?;
    let ended = loop {
        let left = pace.limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        let timeout = LOOK.min(turns.left()).min(left.unwrap_or(Duration::MAX));
        let is_over = sampler.wait(until, timeout)?;
        add(&mut taken, take(&mut sampler, &mut stream, &mut raw, own));
        if is_over {
            break End::Target;
        }
        if stop.load(Ordering::Relaxed) {
            break End::Asked;
        }
        if left.is_some_and(|left| left.is_zero()) {
            break End::Time;
        }
        if stream.bytes().len() > STREAM_BYTES_MAX {
            break End::Full;
        }
        if turns.left().is_zero() {
            sampler.set_on(turns.turn())?;
        }
    };
    sampler.set_on(false)?;
    let on = turns.on();
    let elapsed = begun.elapsed();
    add(&mut taken, take(&mut sampler, &mut stream, &mut raw, own));
    Ok(Captured {
        stream,
        taken,
        source: sampler.source(),
        refused: sampler.refused().to_vec(),
        user_only: sampler.user_only(),
        on,
        elapsed,
        start,
        end: unix_seconds(),
        own_cpu: cpu_time(None)?.saturating_sub(cpu_before),
        ended,
    })
}

fn take(sampler: &mut Sampler, stream: &mut Stream, raw: &mut Vec<u8>, own: Option<u32>) -> Taken {
    raw.clear();
    sampler.drain(raw);
    stream.records(raw, own)
}

fn add(sum: &mut Taken, more: Taken) {
    sum.samples += more.samples;
    sum.own += more.own;
    sum.lost += more.lost;
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The duty cycle: on for a share of each turn.
#[derive(Debug)]
struct Turns {
    duty: f64,
    is_on: bool,
    since: Instant,
    length: Duration,
    count: u32,
    was_on: Duration,
}

impl Turns {
    fn new(duty: f64, now: Instant) -> Self {
        let mut turns =
            Self { duty, is_on: true, since: now, length: Duration::ZERO, count: 0, was_on: Duration::ZERO };
        turns.length = turns.next_length();
        turns
    }

    /// Length of the half that begins now.
    fn next_length(&self) -> Duration {
        let drawn = (f64::from(self.count) * GOLDEN).fract();
        let whole = TURN.mul_f64(0.75 + drawn / 2.0);
        match self.is_on {
            true if self.duty >= 1.0 => Duration::MAX,
            true => whole.mul_f64(self.duty),
            false => whole.mul_f64(1.0 - self.duty),
        }
    }

    /// What is left of the half.
    fn left(&self) -> Duration {
        self.length.saturating_sub(self.since.elapsed())
    }

    /// Begins the next half; true for one that is on.
    fn turn(&mut self) -> bool {
        self.was_on = self.on();
        self.count += u32::from(!self.is_on);
        self.is_on = !self.is_on;
        self.since = Instant::now();
        self.length = self.next_length();
        self.is_on
    }

    /// Time that was on so far.
    fn on(&self) -> Duration {
        self.was_on + if self.is_on { self.since.elapsed() } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_to_their_share_and_differ_in_length() {
        let mut turns = Turns::new(0.2, Instant::now());
        let (mut on, mut off, mut lengths) = (0.0, 0.0, Vec::new());
        for _ in 0..100 {
            on += turns.length.as_secs_f64();
            lengths.push(turns.length);
            assert!(!turns.turn());
            off += turns.length.as_secs_f64();
            assert!(turns.turn());
        }
        let share = on / (on + off);
        assert!((share - 0.2).abs() < 1e-3, "{share}");
        lengths.sort();
        lengths.dedup();
        assert!(lengths.len() > 50);
        assert!(lengths.iter().all(|length| (0.149..0.251).contains(&length.as_secs_f64())), "{lengths:?}");
    }

    #[test]
    fn a_whole_duty_never_turns() {
        let turns = Turns::new(1.0, Instant::now());
        assert!(turns.left() > Duration::from_secs(1 << 40) && turns.is_on);
        assert!(turns.on() < Duration::from_secs(20));
    }
}
