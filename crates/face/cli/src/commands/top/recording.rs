//! Samples in a file, one JSON object a line: written as they are taken, read one at a time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use planish_model::Exit;
use planish_report::{top_sample_line, top_sample_of, units};
use planish_residency::top::{SAMPLE_SCHEMA, Sample};

use crate::answer::Answer;
use crate::commands::is_there;
use crate::context::Context;
use crate::failure::Failure;

/// A sample of a machine with a hundred thousand processes is not longer.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// A file that samples are added to.
#[derive(Debug)]
pub(super) struct Recorder {
    file: File,
    path: PathBuf,
    /// Samples in it.
    pub taken: usize,
}

impl Recorder {
    /// Begins a file. One that is there already stays as it is.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        match File::options().write(true).create_new(true).open(path) {
            Ok(file) => Ok(Self { file, path: path.to_owned(), taken: 0 }),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(is_there(path)),
            Err(error) => Err(Failure::usage(format!("cannot write {}: {error}", path.display()))
                .hint("name a file in a folder that is there and that you may write")),
        }
    }

    /// Adds a sample, by one call: a reader never sees a part of it but after a crash.
    pub fn add(&mut self, sample: &Sample) -> Result<(), Failure> {
        let line = top_sample_line(sample);
        self.file.write_all(&line).map_err(|error| {
            let told = format!("cannot write {}: {error}; the samples before are in it", self.path.display());
            Failure::new(Exit::Refused, told)
                .hint("make room for it, or record elsewhere with a longer --interval")
        })?;
        self.taken += 1;
        Ok(())
    }

    /// Says what was recorded, and how to see it.
    pub fn end(self, context: &Context) -> Answer {
        let file = planish_model::quoted(&self.path.to_string_lossy());
        let answer = Answer::printed("top").note(format!("{} in {file}", units::count(self.taken, "sample")));
        answer.next(context.line(&format!("top --replay {file}")))
    }
}

/// A recording, of which only the places of its lines are held: a day of a large machine is larger than memory.
#[derive(Debug)]
pub(super) struct Recording {
    file: BufReader<File>,
    path: PathBuf,
    /// Where each whole line begins, and its length.
    lines: Vec<(u64, u64)>,
    /// Bytes behind the last whole line: what was being written when the recorder was killed.
    pub torn_bytes: u64,
    /// Lines that are no samples and were stepped over, with what is wrong with each.
    odd: BTreeMap<usize, Failure>,
}

impl Recording {
    /// Opens a recording and looks at its first line.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let unread = |error: std::io::Error| {
            Failure::usage(format!("cannot read {}: {error}", path.display()))
                .hint("name a file that `planish top --record` has written")
        };
        // A pipe or a device may never end, and only a file can be gone back in.
        if !std::fs::metadata(path).map_err(unread)?.is_file() {
            return Err(unread(std::io::Error::other("it is no file")));
        }
        let mut file = BufReader::new(File::open(path).map_err(unread)?);
        let (mut lines, mut at, mut torn_bytes) = (Vec::new(), 0, 0);
        loop {
            let (length, whole) = skip_line(&mut file).map_err(unread)?;
            match (length, whole) {
                (0, _) => break,
                (length, true) => lines.push((at, length)),
                (length, false) => torn_bytes = length,
            }
            at += length;
        }
        let mut recording = Self { file, path: path.to_owned(), lines, torn_bytes, odd: BTreeMap::new() };
        if recording.lines.is_empty() {
            let told = format!("{} holds no whole sample", path.display());
            return Err(Failure::usage(told).hint("record one: planish top --record F --count 10"));
        }
        recording.sample(0)?;
        Ok(recording)
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Looks at every line: those that are no samples are told.
    pub fn look_at_all(&mut self) {
        for index in 0..self.len() {
            self.noted(index);
        }
    }

    /// How many lines were met that are no samples.
    pub fn odd_count(&self) -> usize {
        self.odd.len()
    }

    /// What was stepped over, in words; none where every line was a sample.
    pub fn stepped_over(&self) -> Option<String> {
        let (count, of, first) = (self.odd.len(), self.len(), self.odd.values().next()?);
        Some(format!("{count} of {of} samples cannot be read; the first: {}", first.message("", "").text))
    }

    /// The sample at this place, or else the nearest one, and where that is: first the way that it goes, which is
    /// `back` or on.
    ///
    /// # Errors
    /// None can be read any more: somebody has cut the file or written it anew since it was opened.
    pub fn nearest(&mut self, index: usize, back: bool) -> Result<(usize, Sample), Failure> {
        let found = match back {
            true => self.at_or_before(index).or_else(|| self.at_or_after(index)),
            false => self.at_or_after(index).or_else(|| self.at_or_before(index)),
        };
        found.ok_or_else(|| {
            let told = format!("{} has changed since it was opened", self.path.display());
            let why = self.stepped_over().map_or_else(String::new, |why| format!(": {why}"));
            Failure::usage(told + &why).hint("replay a copy of a recording that is still written or rotated")
        })
    }

    /// The sample at this place, or else the nearest one behind it, and where that is; `None` where none is left.
    pub fn at_or_after(&mut self, index: usize) -> Option<(usize, Sample)> {
        (index..self.len()).find_map(|index| Some((index, self.noted(index)?)))
    }

    /// The same of those before it.
    pub fn at_or_before(&mut self, index: usize) -> Option<(usize, Sample)> {
        (0..=index).rev().find_map(|index| Some((index, self.noted(index)?)))
    }

    /// The sample at this place. One that is none is noted: a disk may lose a line in the middle, and the others are
    /// what they were.
    fn noted(&mut self, index: usize) -> Option<Sample> {
        match self.sample(index) {
            Ok(sample) => Some(sample),
            Err(error) => {
                self.odd.insert(index, error);
                None
            }
        }
    }

    /// The sample at this place.
    fn sample(&mut self, index: usize) -> Result<Sample, Failure> {
        let odd = |why: String| {
            Failure::usage(format!("{}:{}: {why}", self.path.display(), index + 1)).hint(format!(
                "a line is an object of the schema {SAMPLE_SCHEMA}, as `planish top --record` writes it"
            ))
        };
        let (at, length) = self.lines[index];
        if length > LINE_BYTES_MAX {
            return Err(odd(format!("a line of {length} bytes is no sample")));
        }
        let mut line = vec![0; usize::try_from(length).expect("checked above")];
        let read = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.read_exact(&mut line));
        read.map_err(|error| odd(error.to_string()))?;
        top_sample_of(&line).map_err(odd)
    }
}

/// Reads past one line: its length with its end, and whether it has one.
fn skip_line(file: &mut BufReader<File>) -> std::io::Result<(u64, bool)> {
    let mut length = 0;
    loop {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() {
            return Ok((length, false));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        file.consume(used);
        length += used as u64;
        if end.is_some() {
            return Ok((length, true));
        }
    }
}

/// Where a replay is, and how fast it goes. Pure: it is told the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Player {
    /// The sample that is shown.
    pub index: usize,
    /// Samples of the recording.
    pub len: usize,
    /// Whether it stands.
    pub paused: bool,
    /// Doublings of the speed; below 0 it is slower than it was.
    pub doublings: i32,
}

/// From a sixteenth to a thousand times as fast.
const DOUBLINGS: std::ops::RangeInclusive<i32> = -4..=10;

impl Player {
    pub fn new(len: usize) -> Self {
        Self { index: 0, len, paused: false, doublings: 0 }
    }

    /// Goes so many samples on, or back; it stops at both ends.
    pub fn step(&mut self, by: isize) {
        self.index = self.index.saturating_add_signed(by).min(self.len - 1);
    }

    pub fn faster(&mut self, by: i32) {
        self.doublings = (self.doublings + by).clamp(*DOUBLINGS.start(), *DOUBLINGS.end());
    }

    /// Milliseconds until the next sample is due, which was taken so many after this one; none while it stands.
    pub fn wait_ms(&self, apart_ms: u64) -> Option<u64> {
        let runs = !self.paused && self.index + 1 < self.len;
        runs.then(|| (apart_ms as f64 / f64::from(self.doublings).exp2()).round() as u64)
    }

    /// `sample 3 of 120, 2x, paused`
    pub fn told(&self) -> String {
        let speed = match self.doublings {
            0.. => format!("{}x", 1 << self.doublings),
            _ => format!("1/{}x", 1 << -self.doublings),
        };
        let paused = if self.paused { ", paused" } else { "" };
        let over = if self.index + 1 == self.len { ", the last" } else { "" };
        format!("sample {} of {}{over}, {speed}{paused}", self.index + 1, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_steps_within_its_recording_and_keeps_the_pace() {
        let mut player = Player::new(3);
        assert_eq!(player.wait_ms(2000), Some(2000));
        player.faster(1);
        assert_eq!((player.wait_ms(2000), player.told().as_str()), (Some(1000), "sample 1 of 3, 2x"));
        player.faster(-20);
        assert_eq!((player.wait_ms(2000), player.told().as_str()), (Some(32_000), "sample 1 of 3, 1/16x"));
        player.step(-1);
        assert_eq!(player.index, 0);
        player.step(9);
        assert_eq!((player.index, player.wait_ms(2000)), (2, None));
        player.paused = true;
        assert_eq!(player.told(), "sample 3 of 3, the last, 1/16x, paused");
    }

    #[test]
    fn a_torn_tail_is_left_and_an_odd_line_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("f");
        let host = planish_host::Host::live();
        let sample =
            planish_residency::top::Reader::default().step(&host, &[], planish_residency::top::Budget::STEP);
        let mut recorder = Recorder::create(&path).expect("it is new");
        recorder.add(&sample).expect("there is room");
        recorder.add(&sample).expect("there is room");
        let mut file = File::options().append(true).open(&path).expect("it is there");
        file.write_all(b"{\"schema\":\"x\"}\n{\"sch").expect("there is room");
        let mut recording = Recording::open(&path).expect("a sound first line");
        assert_eq!((recording.len(), recording.torn_bytes), (3, 5));
        assert_eq!(recording.sample(1).expect("as it was written"), sample);
        let error = recording.sample(2).expect_err("no sample").message("", "").text;
        assert!(error.contains("f:3: not a sample"), "{error}");
        assert_eq!(recording.stepped_over(), None, "nobody looked yet");
        recording.look_at_all();
        let told = recording.stepped_over().expect("that line");
        assert_eq!(told, format!("1 of 3 samples cannot be read; the first: {error}"));
        assert!(Recorder::create(&path).is_err(), "what is there stays");
        // The disk has lost what lies between two samples.
        let rest = [b"}\n".to_vec(), top_sample_line(&sample)].concat();
        file.write_all(&rest).expect("there is room");
        let mut recording = Recording::open(&path).expect("a sound first line");
        assert_eq!(recording.len(), 5);
        let places = [recording.at_or_after(2), recording.at_or_before(3), recording.at_or_after(5)];
        assert_eq!(places.map(|found| found.map(|(index, _)| index)), [Some(4), Some(1), None]);
        assert_eq!(recording.odd_count(), 2);
        assert_eq!(recording.nearest(3, true).expect("one before it").0, 1);
        File::create(&path).expect("ours").write_all(b"{").expect("there is room");
        let error = recording.nearest(4, false).expect_err("it was cut").message("", "").text;
        assert!(error.contains("f has changed since it was opened: 5 of 5 samples"), "{error}");
        assert!(Recording::open(&path).is_err(), "no whole sample");
    }
}
