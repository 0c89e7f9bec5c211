//! Groups against a model of the kernel (fs/resctrl/rdtgroup.c), with a kill at every call of it.
#![expect(clippy::disallowed_methods, reason = "plays the kernel")]

use std::cell::Cell;
use std::path::PathBuf;

use planish_model::ValueType;

use super::*;
use crate::error::Refusal;

const PLACE: &str = "/planish/resctrl/groups/planish-a";
const WANTED: &str = "cpus=1,5 mode=exclusive L3:0=f MB:0=100";
const NARROWED: &str = "L3:0=7f0 MB:0=100";

/// A mounted resctrl of one cache of eleven ways, whose highest two devices fill too, and of three groups.
struct Fake {
    root: tempfile::TempDir,
    /// Calls until the kill; the killed one has its effect, or has not.
    calls_left: Cell<usize>,
    after: bool,
    calls: Cell<usize>,
}

impl Fake {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let fake = Self { root, calls_left: Cell::new(usize::MAX), after: false, calls: Cell::new(0) };
        for (path, text) in [
            ("schemata", "    MB:0= 100\n    L3:0=7ff\n"),
            ("cpus_list", "0-7\n"),
            ("mode", "shareable\n"),
            ("tasks", "1\n2\n"),
            ("info/last_cmd_status", "ok\n"),
        ] {
            fake.put(path, text);
        }
        fake
    }

    fn path(&self, path: &str) -> PathBuf {
        let inside = path.strip_prefix(resctrl::MOUNT).unwrap_or(path).trim_start_matches('/');
        self.root.path().join("sys/fs/resctrl").join(inside)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        fs::write(path, text).expect("ours");
    }

    fn get(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_default()
    }

    /// A host without a memory of what was asked of it.
    fn host(&self) -> Host {
        Host::open(self.root.path()).expect("a host")
    }

    fn state(&self) -> String {
        resctrl::group(&self.host(), "planish-a").expect("readable")
    }

    fn set(&self, place: &str, value: &str) -> io::Result<()> {
        set(&self.host(), self, place, value).expect("a place of resctrl")
    }

    fn refuse(&self, errno: Errno, words: &str) -> io::Result<()> {
        self.put("info/last_cmd_status", &format!("{words}\n"));
        Err(errno.into())
    }

    /// One call of the kernel: false where a kill comes before it.
    fn call(&self, effect: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.calls.set(self.calls.get() + 1);
        let killed = || io::Error::other("killed");
        match self.calls_left.get() {
            0 => Err(killed()),
            1 => {
                self.calls_left.set(0);
                if self.after { effect().and(Err(killed())) } else { Err(killed()) }
            }
            left => {
                self.calls_left.set(left - 1);
                effect()
            }
        }
    }

    fn ways(&self, folder: &str) -> u64 {
        let schemata = Schemata::parse(&self.get(&format!("{folder}/schemata"))).expect("schemata");
        schemata.0["L3"][&0]
    }

    fn others(&self, folder: &str) -> Vec<String> {
        let all = resctrl::groups(&self.host());
        let mut all: Vec<String> = all.iter().map(|name| format!("{}/{name}", resctrl::MOUNT)).collect();
        all.push(resctrl::MOUNT.to_owned());
        all.retain(|other| other != folder);
        all
    }
}

impl Kernel for Fake {
    fn make(&self, folder: &str) -> io::Result<()> {
        self.call(|| {
            if self.others(folder).len() >= 3 {
                return self.refuse(Errno::NOSPC, "Out of CLOSIDs");
            }
            fs::create_dir(self.path(folder))?;
            for (file, text) in [
                ("schemata", "    MB:0= 100\n    L3:0=7ff\n"),
                ("cpus_list", "\n"),
                ("mode", "shareable\n"),
                ("tasks", ""),
            ] {
                self.put(&format!("{folder}/{file}"), text);
            }
            fs::create_dir(self.path(&format!("{folder}/mon_groups")))
        })
    }

    fn remove(&self, folder: &str) -> io::Result<()> {
        self.call(|| fs::remove_dir_all(self.path(folder)))
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        self.call(|| {
            let (folder, file) = path.rsplit_once('/').expect("a file");
            assert!(
                self.path(path).exists() && text.ends_with('\n') && !text.ends_with("\n\n"),
                "{path}: {text:?}"
            );
            let is_exclusive = |folder: &str| self.get(&format!("{folder}/mode")).trim() == "exclusive";
            match file {
                "schemata" => {
                    let ways = Schemata::parse(text).expect("schemata").0["L3"][&0];
                    let overlaps = |other: &String| self.ways(other) & ways != 0;
                    let others = self.others(folder);
                    if others
                        .iter()
                        .any(|other| (is_exclusive(other) || is_exclusive(folder)) && overlaps(other))
                    {
                        return self.refuse(Errno::INVAL, "Overlaps with exclusive group");
                    }
                }
                "mode" if text == "exclusive\n" => {
                    let ways = self.ways(folder);
                    if ways & 0x600 != 0
                        || self.others(folder).iter().any(|other| self.ways(other) & ways != 0)
                    {
                        return self.refuse(Errno::INVAL, "Schemata overlaps");
                    }
                }
                "cpus_list" if text.contains('9') => {
                    return self.refuse(Errno::INVAL, "Can only assign online CPUs");
                }
                _ => {}
            }
            self.put(path, text);
            Ok(())
        })
    }
}

fn kind() -> ValueType {
    ValueType::Share { share: planish_model::ShareOf::Group }
}

#[test]
fn a_group_is_made_and_taken_away() {
    let fake = Fake::new();
    fake.set(resctrl::DEFAULT, NARROWED).expect("narrowed");
    fake.set(PLACE, WANTED).expect("made");
    assert!(kind().same(&fake.state(), WANTED), "{}", fake.state());
    assert_eq!(fake.get("planish-a/schemata"), "L3:0=f\nMB:0=100\n");
    let error = fake.set(PLACE, &WANTED.replace("L3:0=f", "L3:0=7")).expect_err("never changed");
    assert_eq!(Refusal::of(&error), Refusal::Busy, "{error}");
    fake.set(PLACE, NO_GROUP).expect("removed");
    assert_eq!(fake.state(), NO_GROUP);
    fake.set(PLACE, NO_GROUP).expect("gone is gone");
}

#[test]
fn a_kill_at_any_call_leaves_what_is_known_as_ours_and_can_be_finished_or_removed() {
    let count = {
        let fake = Fake::new();
        fake.set(resctrl::DEFAULT, NARROWED).expect("narrowed");
        fake.calls.set(0);
        fake.set(PLACE, WANTED).expect("made");
        fake.calls.get()
    };
    assert_eq!(count, 4, "folder, schemata, mode, CPUs");
    for killed in 1..=count {
        for after in [false, true] {
            for finish in [false, true] {
                let fake = Fake { after, ..Fake::new() };
                fake.set(resctrl::DEFAULT, NARROWED).expect("narrowed");
                fake.calls_left.set(killed);
                fake.set(PLACE, WANTED).expect_err("killed");
                fake.calls_left.set(usize::MAX);
                let left = fake.state();
                let known =
                    left == NO_GROUP || kind().same(&left, WANTED) || kind().unkept(WANTED, &left).is_some();
                assert!(known, "killed at {killed}, {after}: {left}");
                if finish && !kind().same(&left, WANTED) {
                    fake.set(PLACE, WANTED).expect("finished");
                    assert!(kind().same(&fake.state(), WANTED), "{}", fake.state());
                }
                fake.set(PLACE, NO_GROUP).expect("removed");
                assert_eq!(fake.state(), NO_GROUP, "killed at {killed}, {after}");
                fake.set(resctrl::DEFAULT, "L3:0=7ff MB:0=100").expect("as it was");
            }
        }
    }
}

#[test]
fn what_the_kernel_refuses_leaves_no_group_and_is_told_in_its_words() {
    let refused = |fake: &Fake, value: &str, words: &str| {
        let error = fake.set(PLACE, value).expect_err("refused");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(fake.state(), NO_GROUP);
        Refusal::of(&error)
    };
    // The default group still has those ways.
    assert_eq!(refused(&Fake::new(), WANTED, "Schemata overlaps"), Refusal::Invalid);
    let fake = Fake::new();
    let offline = "cpus=9 mode=shareable L3:0=f MB:0=100";
    assert_eq!(refused(&fake, offline, "Can only assign online CPUs"), Refusal::Invalid);
    for other in ["b", "c"] {
        fake.put(&format!("{other}/mode"), "shareable\n");
        fake.put(&format!("{other}/schemata"), "L3:0=7ff\nMB:0=100\n");
    }
    assert_eq!(refused(&fake, "cpus=1 mode=shareable L3:0=f", "Out of CLOSIDs"), Refusal::NoRoom);
    fake.put("b/cpus_list", "4-5\n");
    assert_eq!(refused(&fake, WANTED, "CPU 5 is in the group b"), Refusal::Busy);
    assert_eq!(fake.get("b/cpus_list"), "4-5\n");
}

#[test]
fn a_group_that_somebody_uses_is_not_finished_by_us() {
    let fake = Fake::new();
    fake.make("/sys/fs/resctrl/planish-a").expect("made by hand");
    fake.put("planish-a/tasks", "17\n");
    let error = fake.set(PLACE, WANTED).expect_err("theirs");
    assert!(error.to_string().contains("there is a group of this name"), "{error}");
    assert_eq!(fake.get("planish-a/tasks"), "17\n");
}

#[test]
fn only_texts_of_groups_are_written() {
    let fake = Fake::new();
    for odd in ["", "cpus=1", "L3:0=f", "cpus=1 mode=exclusive"] {
        assert_eq!(
            Errno::from_io_error(&fake.set(PLACE, odd).expect_err("odd")),
            Some(Errno::INVAL),
            "{odd}"
        );
    }
    assert!(set(&fake.host(), &fake, "/planish/resctrl/groups/theirs", NO_GROUP).is_none());
    assert_eq!(fake.calls.get(), 0);
}
