//! A kernel made of data: executes the answers of a writable recorded host.
//!
//! What a write does is said by rows of the recording (`planish_host::answers`): refuse, clamp, grant less, read
//! back something else, clear a twin, derive other values, vanish. So the paths through act that no one dares to
//! walk on a machine that is needed are walked in every test run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use planish_host::answers::{Condition, Derived};
use planish_host::{Access, Answer, Host, Pattern, ReadError, resctrl};
use planish_model::{CacheGroup, Generator, Holder};
use rustix::io::Errno;

use crate::error::{ActError, Operation, SinkError};
use crate::holders;
use crate::program::{LivePrograms, Programs};
use crate::sink::edit::edit;
use crate::sink::resctrl::refuse_made;
use crate::sink::{
    Sink, in_bounds, own_link, read_own, remove, remove_own_folder, replace_own, sweep_beside, variable,
};

/// A writable recorded host.
#[derive(Debug)]
pub struct ModelSink<'a> {
    host: &'a Host,
    folder: &'a Path,
    /// Writes by place, those that failed apart: some answers count them.
    succeeded: RefCell<BTreeMap<String, u32>>,
    failed: RefCell<BTreeMap<String, u32>>,
}

impl<'a> ModelSink<'a> {
    /// The model of a recorded host.
    ///
    /// # Errors
    /// The recording does not say that it may be written.
    pub fn new(host: &'a Host) -> Result<Self, ActError> {
        let name = || host.folder().map_or_else(|| "/".to_owned(), |folder| folder.display().to_string());
        match host.folder() {
            Some(folder) if host.is_writable() => {
                Ok(Self { host, folder, succeeded: RefCell::default(), failed: RefCell::default() })
            }
            _ => Err(ActError::NotWritable { name: name() }),
        }
    }

    /// The value that the kernel takes for what was written, or its error.
    fn taken(&self, place: &str, value: &str, answer: &Answer) -> io::Result<String> {
        if let Some(after) = answer.vanish_after
            && count(&self.succeeded, place) >= after
        {
            fs::remove_file(self.host.real_path(place)?)?;
            return Err(Errno::NOENT.into());
        }
        if let Some((errno, times)) = answer.errno
            && times.is_none_or(|times| count(&self.failed, place) < times)
            && self.holds(answer.errno_while.as_ref())?
        {
            *self.failed.borrow_mut().entry(place.to_owned()).or_default() += 1;
            return Err(errno.into());
        }
        let before = self.text(place)?;
        if let (Some(name), Some(group)) = (resctrl::group_at(place), CacheGroup::parse(value)) {
            refuse_made(self.host, name, &before, &group)?;
        }
        if answer.selects {
            let words = before.split_whitespace().map(|word| word.trim_matches(['[', ']']));
            let mut offered = words.clone();
            if !offered.any(|word| word == value) {
                return Err(Errno::INVAL.into());
            }
            let chosen = |word: &str| if word == value { format!("[{word}]") } else { word.to_owned() };
            return Ok(words.map(chosen).collect::<Vec<_>>().join(" "));
        }
        let mut value = value.trim().to_owned();
        if let Ok(number) = value.parse::<i64>() {
            if answer.range.is_some_and(|range| !range.contain(number)) {
                return Err(Errno::INVAL.into());
            }
            let clamped = answer.clamp.map_or(number, |bounds| bounds.clamp(number));
            let highest = answer.grant.map(|grant| as_number(&before).saturating_add_unsigned(grant));
            value = highest.map_or(clamped, |highest| clamped.min(highest)).to_string();
        } else if answer.range.is_some() {
            return Err(Errno::INVAL.into());
        }
        if answer.tabs {
            value = value.split_whitespace().collect::<Vec<_>>().join("\t");
        }
        Ok(answer.readback.clone().unwrap_or(value))
    }

    /// Whether a condition holds now; no condition always does.
    fn holds(&self, condition: Option<&Condition>) -> io::Result<bool> {
        condition.map_or(Ok(true), |held| Ok(in_force(&self.text(&held.place)?) == held.value))
    }

    /// Stores a value, and then what the kernel does by itself when it changed.
    fn store(&self, place: &str, value: &str, answer: &Answer) -> io::Result<()> {
        let before = self.text(place)?;
        self.put(place, value)?;
        // A kernel never shows two twins that are both set. A kill between two files may have left them so here, and
        // then the same value once more has to end it.
        for twin in answer.zeroes.iter().filter(|_| before != value || value != "0") {
            self.put(twin, "0")?;
        }
        if before == value {
            return Ok(());
        }
        let change = as_number(value) - as_number(&before);
        for other in &answer.moves {
            let moved = (as_number(&self.text(other)?) + change).max(0);
            self.put(other, &moved.to_string())?;
        }
        if let Some(over) = &answer.spreads {
            self.spread(as_number(value), over)?;
        }
        for sum in &answer.sums {
            let parts = self.host.glob(&sum.over).into_iter().map(|part| self.text(&part.path));
            let total: i64 = parts.map(|text| text.map(|text| as_number(&text))).sum::<io::Result<_>>()?;
            self.put(&sum.into, &total.to_string())?;
        }
        let written = in_force(value);
        let caused = |derived: &&Derived| derived.when.as_deref().is_none_or(|when| when == written);
        for derived in answer.derives.iter().filter(caused) {
            self.put(&derived.place, &derived.value)?;
        }
        Ok(())
    }

    /// Spreads a total evenly, the first places taking what is left over.
    fn spread(&self, total: i64, over: &Pattern) -> io::Result<()> {
        let parts = self.host.glob(over);
        let count = i64::try_from(parts.len().max(1)).expect("a host has few places");
        for (index, part) in (0..).zip(&parts) {
            let share = total / count + i64::from(index < total % count);
            self.store(&part.path, &share.to_string(), &self.host.answers().for_place(&part.path))?;
        }
        Ok(())
    }

    /// The text of a place without its last line break.
    fn text(&self, place: &str) -> io::Result<String> {
        text(self.host, place)
    }

    /// What the machine had mounted read-only is so for files as well.
    fn refuse_read_only(&self, path: &str) -> Result<(), SinkError> {
        let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
        match self.host.folder_access(folder) {
            Access::ReadOnlyMount => Err(SinkError::new(Operation::Replace, path, Errno::ROFS.into())),
            _ => Ok(()),
        }
    }

    /// Replaces a file as a whole: a kernel is never killed in the middle of one.
    fn put(&self, place: &str, value: &str) -> io::Result<()> {
        let real = self.host.real_path(place)?;
        if !real.try_exists()? {
            return Ok(());
        }
        let stage = self.host.real_path("/var/lib/planish")?;
        fs::create_dir_all(&stage)?;
        let stage = stage.join("model.stage");
        // A new file: what a link of that name leads to is not ours.
        remove(&stage)?;
        fs::File::create_new(&stage)?.write_all(format!("{value}\n").as_bytes())?;
        fs::rename(stage, real)
    }
}

impl Sink for ModelSink<'_> {
    fn read(&self, place: &str) -> Result<String, SinkError> {
        self.text(place).map_err(|error| SinkError::new(Operation::Read, place, error))
    }

    fn write(&self, place: &str, value: &str) -> Result<(), SinkError> {
        in_bounds(place)?;
        let failed = |error| SinkError::new(Operation::Write, place, error);
        let answer = self.host.answers().for_place(place);
        let refused = match self.host.access(place) {
            Access::Writable => {
                let value = self.taken(place, value, &answer).map_err(failed)?;
                self.store(place, &value, &answer).map_err(failed)?;
                *self.succeeded.borrow_mut().entry(place.to_owned()).or_default() += 1;
                return Ok(());
            }
            // A trigger keeps nothing of what is written to it.
            Access::WriteOnly => match answer.errno {
                None => return Ok(()),
                Some((errno, _)) => errno,
            },
            Access::Absent => Errno::NOENT,
            Access::ReadOnlyMount => Errno::ROFS,
            Access::ReadOnly | Access::Denied(_) => Errno::ACCESS,
        };
        Err(failed(refused.into()))
    }

    fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, SinkError> {
        read_own(self.folder, path)
    }

    fn link(&self, path: &str) -> Result<Option<String>, SinkError> {
        own_link(self.folder, path)
    }

    fn replace_file(&self, path: &str, content: Option<&[u8]>) -> Result<(), SinkError> {
        let is_there = || self.link(path).is_ok_and(|link| link.is_some()) || self.host.exists(path);
        if content.is_some() || is_there() {
            self.refuse_read_only(path)?;
        }
        replace_own(self.folder, path, content)
    }

    fn remove_folder(&self, path: &str) -> Result<(), SinkError> {
        remove_own_folder(self.folder, path)
    }

    fn edit_file(&self, path: &str, content: &[u8]) -> Result<(), SinkError> {
        self.refuse_read_only(path)?;
        let real = self.host.real_path(path);
        edit(&real.map_err(|error| SinkError::new(Operation::Replace, path, error))?, path, content)
    }

    fn sweep(&self, path: &str, is_edited: bool) -> Result<(), SinkError> {
        sweep_beside(self.folder, path, is_edited)
    }

    fn read_variable(&self, path: &str) -> Result<Option<String>, SinkError> {
        let real = self.host.real_path(path);
        variable::read(&real.map_err(|error| SinkError::new(Operation::Read, path, error))?, path)
    }

    fn set_variable(&self, path: &str, name: Option<&str>) -> Result<(), SinkError> {
        let real = self.host.real_path(path);
        variable::set(&real.map_err(|error| SinkError::new(Operation::Write, path, error))?, path, name)
    }

    fn generate(&self, _: Generator) -> Result<bool, SinkError> {
        Ok(false)
    }

    fn pause(&self, _: Duration) {}

    fn page_bytes(&self) -> u64 {
        self.host.page_bytes()
    }

    fn holders(&self, page_bytes: u64) -> Vec<Holder> {
        holders::of(self.host, page_bytes)
    }

    fn programs<'p>(&'p self, host: &'p Host) -> Option<Box<dyn Programs + 'p>> {
        Some(Box::new(LivePrograms::new(host, self.folder)))
    }
}

/// The text of a place of a host without its last line break.
pub(crate) fn text(host: &Host, place: &str) -> io::Result<String> {
    let mut text = host.read(place).map_err(|error| match error {
        ReadError::Absent { .. } => Errno::NOENT.into(),
        ReadError::Denied { source, .. } | ReadError::Io { source, .. } => source,
        ReadError::NotText { .. } => io::Error::from(io::ErrorKind::InvalidData),
    })?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

fn count(counts: &RefCell<BTreeMap<String, u32>>, place: &str) -> u32 {
    counts.borrow().get(place).copied().unwrap_or(0)
}

/// The word in brackets where a text has one, else the text.
fn in_force(text: &str) -> &str {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text, |(word, _)| word)
}

fn as_number(text: &str) -> i64 {
    text.trim().parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Refusal;

    const META: &str = r#"
name = "model"
writable = true
[modes]
"0644" = ["/proc/sys/**", "/sys/**"]
"0200" = ["/sys/node{n}/compact"]
[[answer]]
place = "/sys/managed"
errno = "EIO"
[[answer]]
place = "/sys/busy"
errno = "EBUSY"
times = 1
[[answer]]
place = "/sys/thp"
selects = true
derives = [{ place = "/proc/sys/vm/min_free_kbytes", value = "67584" }]
[[answer]]
place = "/sys/epp"
errno = "EBUSY"
errno_while = { place = "/sys/governor", value = "performance" }
[[answer]]
place = "/sys/governor"
derives = [{ place = "/sys/epp", value = "performance", when = "performance" }]
[[answer]]
place = "/proc/sys/vm/dirty_bytes"
range = { min = 8192 }
zeroes = ["/proc/sys/vm/dirty_ratio"]
[[answer]]
place = "/sys/nr_requests"
clamp = { max = 128 }
[[answer]]
place = "/sys/once"
vanish_after = 1
[[answer]]
place = "/sys/node{n}/pool"
grant = 10
moves = ["/sys/node{n}/free"]
sums = ["/sys/total"]
[[answer]]
place = "/sys/total"
spreads = "/sys/node{n}/pool"
"#;

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let files = [
            ("/sys/managed", "0-3"),
            ("/sys/busy", "1"),
            ("/sys/epp", "balance_power"),
            ("/sys/governor", "powersave"),
            ("/sys/thp", "always [madvise] never"),
            ("/proc/sys/vm/min_free_kbytes", "1000"),
            ("/proc/sys/vm/dirty_bytes", "0"),
            ("/proc/sys/vm/dirty_ratio", "20"),
            ("/sys/nr_requests", "64"),
            ("/sys/once", "1"),
            ("/sys/node0/pool", "1"),
            ("/sys/node0/free", "1"),
            ("/sys/node0/compact", ""),
            ("/sys/node1/pool", "0"),
            ("/sys/node1/free", "0"),
            ("/sys/total", "1"),
        ];
        for (path, text) in files {
            replace_own(root.path(), path, Some(format!("{text}\n").as_bytes())).expect("a folder");
        }
        replace_own(root.path(), "/meta.toml", Some([planish_skip::MACHINE, META].concat().as_bytes()))
            .expect("a folder");
        root
    }

    fn with_model(test: impl FnOnce(&ModelSink<'_>, &dyn Fn(&str) -> String)) {
        let root = tree();
        let host = Host::open(root.path()).expect("a host");
        let sink = ModelSink::new(&host).expect("writable");
        test(&sink, &|place| sink.read(place).expect("readable"));
    }

    fn refusal(sink: &ModelSink<'_>, place: &str, value: &str) -> Refusal {
        sink.write(place, value).expect_err("refused").refusal
    }

    #[test]
    fn refusals_are_those_of_the_rows() {
        with_model(|sink, read| {
            assert_eq!(refusal(sink, "/sys/managed", "1"), Refusal::Io);
            assert_eq!(refusal(sink, "/sys/busy", "2"), Refusal::Busy);
            sink.write("/sys/busy", "2").expect("busy once only");
            assert_eq!(read("/sys/busy"), "2");
            assert_eq!(refusal(sink, "/sys/absent", "1"), Refusal::Vanished);
            assert_eq!(refusal(sink, "/etc/passwd", "1"), Refusal::OutOfBounds);
            sink.write("/sys/once", "2").expect("once");
            assert_eq!(refusal(sink, "/sys/once", "3"), Refusal::Vanished);
        });
    }

    #[test]
    fn a_choice_moves_the_brackets_and_derives() {
        with_model(|sink, read| {
            assert_eq!(refusal(sink, "/sys/thp", "sometimes"), Refusal::Invalid);
            sink.write("/sys/thp", "always").expect("offered");
            assert_eq!(read("/sys/thp"), "[always] madvise never");
            assert_eq!(read("/proc/sys/vm/min_free_kbytes"), "67584");
        });
    }

    #[test]
    fn a_governor_pins_the_hint_as_long_as_it_lasts() {
        with_model(|sink, read| {
            sink.write("/sys/governor", "performance").expect("offered");
            assert_eq!(read("/sys/epp"), "performance");
            assert_eq!(refusal(sink, "/sys/epp", "power"), Refusal::Busy);
            sink.write("/sys/governor", "powersave").expect("offered");
            assert_eq!(read("/sys/epp"), "performance", "the kernel does not remember the hint");
            sink.write("/sys/epp", "power").expect("free again");
        });
    }

    #[test]
    fn numbers_are_held_to_range_clamp_and_twin() {
        with_model(|sink, read| {
            assert_eq!(refusal(sink, "/proc/sys/vm/dirty_bytes", "0"), Refusal::Invalid);
            sink.write("/proc/sys/vm/dirty_bytes", "8192").expect("in range");
            assert_eq!(read("/proc/sys/vm/dirty_ratio"), "0");
            // As a kill between the two files leaves them.
            sink.write("/proc/sys/vm/dirty_ratio", "20").expect("a number");
            sink.write("/proc/sys/vm/dirty_bytes", "8192").expect("in range");
            assert_eq!(read("/proc/sys/vm/dirty_ratio"), "0");
            sink.write("/sys/nr_requests", "999").expect("clamped");
            assert_eq!(read("/sys/nr_requests"), "128");
        });
    }

    #[test]
    fn pools_grant_in_part_and_add_up() {
        with_model(|sink, read| {
            sink.write("/sys/node0/pool", "50").expect("in part");
            let all = ["/sys/node0/pool", "/sys/node0/free", "/sys/total"].map(read);
            assert_eq!(all, ["11", "11", "11"]);
            sink.write("/sys/total", "5").expect("spread");
            assert_eq!(["/sys/node0/pool", "/sys/node1/pool"].map(read), ["3", "2"]);
            sink.write("/sys/node0/compact", "1").expect("a trigger");
        });
    }

    #[test]
    fn a_recording_that_is_no_fixture_is_refused() {
        let root = tree();
        let closed = [planish_skip::MACHINE, META].concat().replace("writable = true", "writable = false");
        replace_own(root.path(), "/meta.toml", Some(closed.as_bytes())).expect("a folder");
        let host = Host::open(root.path()).expect("a host");
        assert!(matches!(ModelSink::new(&host), Err(ActError::NotWritable { .. })));
    }
}
