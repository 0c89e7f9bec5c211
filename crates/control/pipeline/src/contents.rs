//! What a file of ours holds: the lines of every entry that persists something, as the journal knows them.
//!
//! An apply adds its lines, an undo takes them out, and the file goes with the last line, with the folders that were
//! made for it. A file of that name that planish did not write is refused.

use std::collections::{BTreeMap, BTreeSet};

use planish_act::in_chars::{InChars, text_in_chars, told_of_chars};
use planish_act::{Sink, boot, files};
use planish_model::{
    Catalogue, Entry, EntryId, EntryStep, Outcome, OutcomeKind, PoolLine, Undo, place, size_of_line,
};
use planish_sorted::SortSmall as _;

use crate::error::{PipelineError, foreign::way_out};
use crate::merged::{Merged, merge};
use crate::session::Session;

/// The first line of every file of ours.
const HEAD: &str =
    "# Written by planish: `planish log` tells when and why, `planish undo` takes the lines out again.\n";

/// The content of a file of ours with the lines of these steps, oldest first; `None` for no file.
fn content<'a>(steps: impl Iterator<Item = &'a EntryStep>, catalogue: &Catalogue) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut pools: BTreeMap<&str, Vec<&PoolLine>> = BTreeMap::new();
    // Of two lines for one place only the newer one counts: tmpfiles.d would take the first.
    let mut put = |line: String| {
        lines.retain(|older| key(older) != key(&line));
        lines.push(line);
    };
    for step in steps {
        step.wanted.lines().for_each(|line| put(line.to_owned()));
        // A pool is for all who raised it: its line is the sum. It is for boots alone: packages have all lines written
        // at their installation (`systemd-tmpfiles --create`), which would take pages that somebody has raised since.
        for line in &step.pools {
            let lines = pools.entry(&line.place).or_default();
            lines.push(line);
            if let Some(size) = size_of_line(lines.iter().copied()) {
                put(format!("w! {} - - - - {size}", line.place));
            }
        }
    }
    // The kernel makes the queue of a disk anew for a scheduler, and forgets what was set of it.
    lines.sort_small_by_key(|line| planish_udev::is_own(line) && !line.contains("ATTR{queue/scheduler}="));
    in_order(&mut lines, catalogue);
    (!lines.is_empty()).then(|| lines.iter().fold(HEAD.to_owned(), |text, line| text + line + "\n"))
}

/// Lines of several entries in the order in which they count: what the kernel makes anew for another line comes behind
/// that, whoever wanted it first.
fn in_order(lines: &mut Vec<String>, catalogue: &Catalogue) {
    let values: Vec<Option<(String, String)>> = lines.iter().map(|line| place::of_line(line)).collect();
    let depths = planish_decide::depths_of(&values, catalogue);
    let mut sorted: Vec<(usize, String)> = depths.into_iter().zip(lines.drain(..)).collect();
    sorted.sort_small_by_key(|(depth, _)| *depth);
    lines.extend(sorted.into_iter().map(|(_, line)| line));
}

/// The files of which each line stands for itself.
const BY_LINES: [&str; 4] = ["persist.sysctl", "persist.tmpfiles", "persist.udev", "persist.grub"];

/// What the unit that holds a limit says of where its program lies.
const MOUNTS: &str = "RequiresMountsFor=";

/// How many steps that a kill left unsure count each by itself; more than an administrator runs into.
const UNSURE_MAX: usize = 6;

/// What a line sets: everything before its value. What has a limit held is that, wherever the program lies by then.
fn key(line: &str) -> &str {
    if line.starts_with("ExecStart=") && line.contains(place::HOLDS) {
        return place::HOLDS;
    }
    if line.starts_with(MOUNTS) {
        return MOUNTS;
    }
    if let Some(key) = planish_udev::key(line) {
        return key;
    }
    let end = line.find(" = ").or_else(|| line.find(" - - - - ")).unwrap_or(line.len());
    &line[..end]
}

/// The lines of a file that size pools, in an order of their own.
fn of_pools(text: &Option<String>) -> BTreeSet<&str> {
    text.iter().flat_map(|text| text.lines()).filter(|line| line.contains("/nr_hugepages ")).collect()
}

/// The place that a line sets.
fn place_of(line: &str) -> Option<String> {
    place::of_line(line).map(|(place, _)| place)
}

/// The place that loses its value when this one is set.
fn twin_of(place: &str, catalogue: &Catalogue) -> Option<String> {
    catalogue.knobs().find_map(|knob| {
        let twin = catalogue.knob(knob.twin.as_ref()?).ok()?;
        Some(place::fill(&twin.path, &place::captures(&knob.path, place)?))
    })
}

/// The whole of a file of ours that one step alone has lines in.
pub(crate) fn alone(step: &EntryStep, catalogue: &Catalogue) -> Option<String> {
    content(std::iter::once(step), catalogue)
}

/// Contents of a file of ours, as the journal knows them.
pub(crate) struct Contents {
    /// With the lines of an entry.
    with: Option<String>,
    /// Without them.
    without: Option<String>,
    /// What planish wrote there at any time, or may have written before it was killed; `None` for no file.
    written: Vec<Option<String>>,
    /// Folders that entries which are still there made for it.
    folders: Vec<String>,
    /// Other entries that have lines in it.
    holders: Vec<EntryId>,
}

impl Contents {
    /// Of the file that `step` of entry `id` has lines in.
    pub fn of(id: EntryId, step: &EntryStep, entries: &[Entry], catalogue: &Catalogue) -> Self {
        let same_file = |other: &&EntryStep| other.undo == Undo::File && other.place == step.place;
        let all = entries
            .iter()
            .flat_map(|entry| entry.steps.iter().filter(same_file).map(move |step| (entry.id, step)));
        let in_file = |step: &EntryStep| !step.is_undone() && step.is_in_file();
        let held = || all.clone().filter(|(other, step)| *other != id && in_file(step));
        let others = || held().map(|(_, step)| step);
        // A kill may have come between the write of the file and its outcome.
        let unsure = |step: &EntryStep| !step.is_undone() && step.outcome.is_none();
        let maybe = || all.clone().filter(|(other, step)| *other != id && unsure(step)).map(|(_, step)| step);
        // Each of several may have been written or not.
        let unsure: Vec<&EntryStep> = maybe().collect();
        let some = (0..1_u32 << unsure.len().min(UNSURE_MAX)).map(|set| {
            let chosen = unsure.iter().enumerate().filter(|(at, _)| set & (1 << at.min(&31)) != 0);
            content(others().chain(chosen.map(|(_, step)| *step)), catalogue)
        });
        // Or between an undo's write and its outcome: the lines of that entry are out, and the journal has them.
        let half_undone = entries.iter().filter(|entry| entry.undo_begun && entry.id != id);
        let half_undone = half_undone.flat_map(|entry| {
            let rest = held().filter(|(holder, _)| *holder != entry.id).map(|(_, step)| step);
            [
                content(rest.clone(), catalogue),
                content(rest.clone().chain(maybe()), catalogue),
                content(rest.chain([step]), catalogue),
            ]
        });
        // A folder that was made for another file goes with the last of them.
        let steps = entries.iter().flat_map(|entry| &entry.steps);
        let there = steps.filter(|other| !other.folders.is_empty() && !other.is_undone());
        let is_above = |folder: &&String| {
            step.place.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        let folders = there.chain([step]).map(|other| {
            let above = other.folders.iter().filter(is_above);
            above.cloned().collect::<Vec<_>>()
        });
        let folders = folders.max_by_key(Vec::len);
        let texts = all.clone().flat_map(|(_, step)| [&step.outcome, &step.undone]);
        let written = texts.filter_map(|outcome| outcome.as_ref()?.read_back.clone());
        Self {
            with: content(others().chain(std::iter::once(step)), catalogue),
            without: content(others(), catalogue),
            written: written
                .map(Some)
                .chain([content(others().chain(maybe()), catalogue)])
                .chain(some)
                .chain(half_undone)
                .collect(),
            folders: folders.unwrap_or_default(),
            holders: held().map(|(holder, _)| holder).collect(),
        }
    }

    fn known(&self) -> Vec<Option<&str>> {
        let written = self.written.iter().map(Option::as_deref);
        written.chain([self.with.as_deref(), self.without.as_deref()]).collect()
    }

    /// The file with the lines of the entry, as [`Self::add`] leaves it.
    pub fn with_lines(&self) -> &str {
        self.with.as_deref().unwrap_or_default()
    }

    /// Whether the file has every line of the entry already, and none behind it that sets its twin: the boot that reads
    /// both would leave the twin's value, and clear this one.
    pub fn has(&self, step: &EntryStep, catalogue: &Catalogue, sink: &dyn Sink) -> bool {
        let there: Vec<&str> = self.without.as_deref().unwrap_or_default().lines().collect();
        let has_lines = step.wanted.lines().all(|line| {
            let Some(at) = there.iter().position(|other| *other == line) else { return false };
            let twin = place_of(line).and_then(|place| twin_of(&place, catalogue));
            !there[at + 1..].iter().any(|later| twin.is_some() && twin == place_of(later))
        });
        // The lines of pools that an older planish wrote had the pages of others in them, and those of undone entries.
        let is_as_known = || sink.read_file(&step.place).is_ok_and(|now| now == self.without);
        // Files of others may give a pool more by now than when its line was written.
        let is_of_now = || of_pools(&self.with) == of_pools(&self.without);
        has_lines && (step.pools.is_empty() || (is_of_now() && is_as_known()))
    }

    /// Whether each line of the file that a step writes stands for itself.
    pub fn is_by_lines(step: &EntryStep) -> bool {
        BY_LINES.contains(&step.knob.as_str())
    }

    /// Whether a file that shows this is as it was written, by this planish or, of one entry alone, by an older one.
    pub fn is_as_written(&self, step: &EntryStep, now: Option<&str>) -> bool {
        let left = step.outcome.as_ref().and_then(|outcome| outcome.read_back.as_deref());
        now == self.with.as_deref() || (self.holders.is_empty() && now.is_some() && now == left)
    }

    /// Whether a file that shows this has the lines of the entry: what it comes to when its outcome was lost.
    pub fn was_written(&self, now: Option<&str>) -> bool {
        self.with != self.without && now == self.with.as_deref()
    }

    /// Folders on the way to the file that go with it: those that are not there yet, and those that an entry which is
    /// still there made.
    pub fn folders(&self, path: &str, session: &Session) -> Vec<String> {
        let mut folders: Vec<String> = Vec::new();
        let mut rest = path;
        while let Some((folder, _)) = rest.rsplit_once('/').filter(|(folder, _)| !folder.is_empty()) {
            if self.folders.iter().any(|made| made == folder) || !session.host().exists(folder) {
                folders.insert(0, folder.to_owned());
            }
            rest = folder;
        }
        folders
    }

    /// The arguments that lines of planish gave a menu at any time.
    fn arguments(&self) -> Vec<&str> {
        self.known().into_iter().flatten().flat_map(str::lines).filter_map(planish_boot::added_by).collect()
    }

    /// Puts the lines of the entry into its file.
    pub fn add(&self, step: &EntryStep, sink: &dyn Sink) -> Outcome {
        let (known, content) = (self.known(), self.with.as_deref());
        let (knob, path, folders) = (&step.knob, &step.place, &self.folders);
        let wanted = files::Replacement { knob, path, known: &known, content, folders };
        let outcome = files::replace(&wanted, false, sink);
        // GRUB's menu is made of a file of ours: what was added is looked for in it. A kill may have come between the
        // file and the menu, so that it is made anew although the file is as it should be.
        let given = step.wanted.lines().find_map(planish_boot::added_by);
        if matches!(outcome.outcome, OutcomeKind::Done | OutcomeKind::Satisfied) {
            return boot::generate(outcome, step.generator, given, &self.arguments(), sink);
        }
        outcome
    }

    /// Takes the lines of the entry out of its file. What others wrote into it stays, in whatever encoding; a line that
    /// they changed is theirs, and so is a file that has nothing of ours. Force overwrites both.
    pub fn remove(&self, step: &EntryStep, force: bool, sink: &dyn Sink) -> Outcome {
        let Some(sink) = InChars::of(&step.place, sink) else { return self.take_out(step, force, sink) };
        let outcome = self.in_chars().take_out(step, force, &sink);
        told_of_chars(outcome)
    }

    /// The same contents for a file that is looked at byte by byte.
    fn in_chars(&self) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(text_in_chars);
        Self {
            with: text(&self.with),
            without: text(&self.without),
            written: self.written.iter().map(text).collect(),
            folders: self.folders.clone(),
            holders: self.holders.clone(),
        }
    }

    /// What [`Self::remove`] does with a file in either form.
    fn take_out(&self, step: &EntryStep, force: bool, sink: &dyn Sink) -> Outcome {
        let (knob, path, folders) = (&step.knob, &step.place, &self.folders);
        let edited = self.edited(step, sink).filter(|(_, merged)| !force || merged.changed.is_empty());
        let (known, content) = match &edited {
            Some((now, merged)) => (vec![Some(now.as_str())], merged.text.as_deref()),
            None => (self.known(), self.without.as_deref()),
        };
        let wanted = files::Replacement { knob, path, known: &known, content, folders };
        let mut outcome = files::replace(&wanted, force && edited.is_none(), sink);
        // As above.
        if !matches!(outcome.outcome, OutcomeKind::Done | OutcomeKind::Satisfied) {
            return outcome;
        }
        if let Some((_, merged)) = &edited {
            // It is no text of ours: nobody may take the file for one that planish left.
            outcome.read_back = None;
            outcome.detail = merged.text.is_some().then(|| boot::DIFFERS.to_owned());
            if let Some(line) = merged.changed.first() {
                outcome.outcome = OutcomeKind::Theirs;
                outcome.detail = Some(format!("someone made `{line}` of a line here: theirs was kept"));
            }
        }
        boot::generate(outcome, step.generator, None, &self.arguments(), sink)
    }

    /// A file that others wrote into, with what it is without the lines of the entry. Lines of a unit mean nothing
    /// one by one: such a file is theirs as a whole.
    fn edited(&self, step: &EntryStep, sink: &dyn Sink) -> Option<(String, Merged)> {
        if !Self::is_by_lines(step) {
            return None;
        }
        if sink.link(&step.place).ok()?.is_some() {
            return None;
        }
        let now = sink.read_file(&step.place).ok()??;
        if self.known().contains(&Some(now.as_str())) {
            return None;
        }
        let is_same = |own: &str, line: &str| {
            let is_set = |own: String| planish_observe::line_sets(&step.place, line, &own);
            key(own) == key(line) || place_of(own).is_some_and(is_set)
        };
        let merged = merge(&now, self.with_lines(), self.without.as_deref(), &is_same)?;
        Some((now, merged))
    }

    /// Refuses a file that someone else wrote, edited or removed, and a link of its name, whatever it leads to.
    pub fn refuse_foreign(&self, path: &str, sink: &dyn Sink) -> Result<(), PipelineError> {
        self.refuse_link(path, sink)?;
        // One in another encoding than UTF-8 has bytes of somebody else's.
        let now = sink.read_bytes(path).map_err(PipelineError::Before)?;
        if self.known().iter().any(|known| known.map(str::as_bytes) == now.as_deref()) {
            return Ok(());
        }
        Err(self.foreign(path, None, sink))
    }

    /// Refuses a link with the name of the file: planish writes none.
    pub fn refuse_link(&self, path: &str, sink: &dyn Sink) -> Result<(), PipelineError> {
        let link = sink.link(path).map_err(PipelineError::Before)?;
        link.map_or(Ok(()), |target| Err(self.foreign(path, Some(target), sink)))
    }

    /// What is said of a file that is not as planish left it, or that is a link to `link`.
    pub fn foreign(&self, path: &str, link: Option<String>, sink: &dyn Sink) -> PipelineError {
        let is_none = |path: &str| matches!((sink.link(path), sink.read_bytes(path)), (Ok(None), Ok(None)));
        let cure = way_out(path, &self.holders, link.is_some(), &|path| !is_none(path));
        let (path, holders) = (path.to_owned(), self.holders.clone());
        PipelineError::ForeignFile { path, holders, link, cure, others: Box::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::file_step;

    const SYSCTL_FILE: &str = "/etc/sysctl.d/90-planish.conf";

    fn catalogue() -> &'static Catalogue {
        static CATALOGUE: std::sync::LazyLock<Catalogue> =
            std::sync::LazyLock::new(|| Catalogue::embedded().expect("sound"));
        &CATALOGUE
    }

    fn lines(texts: &[&str]) -> Option<String> {
        let steps: Vec<EntryStep> =
            texts.iter().map(|text| file_step("persist.sysctl", SYSCTL_FILE, (*text).to_owned())).collect();
        content(steps.iter(), catalogue())
    }

    /// At the start of the host the governor may be `performance`, which takes no hint.
    #[test]
    fn a_line_comes_behind_another_one_that_it_depends_on_whoever_wanted_it_first() {
        let line = |file: &str, value: &str| {
            format!("w /sys/devices/system/cpu/cpu0/cpufreq/{file} - - - - {value}\n")
        };
        let hint = line("energy_performance_preference", "power");
        let tail = |lines: &[&str]| {
            let steps: Vec<EntryStep> = lines
                .iter()
                .map(|text| {
                    file_step("persist.tmpfiles", "/etc/tmpfiles.d/90-planish.conf", (*text).to_owned())
                })
                .collect();
            content(steps.iter(), catalogue()).expect("lines")[HEAD.len()..].to_owned()
        };
        let (free, fast) = (line("scaling_governor", "powersave"), line("scaling_governor", "performance"));
        let other = "w /sys/kernel/mm/ksm/run - - - - 0\n";
        for (lines, expected) in [
            ([hint.as_str(), &free, other], [&free, other, hint.as_str()]),
            ([&free, other, &hint], [&free, other, &hint]),
            ([&fast, other, &hint], [other, &hint, &fast]),
        ] {
            assert_eq!(tail(&lines), expected.concat(), "{lines:?}");
        }
        let queue = |file: &str, value: &str| format!("w /sys/block/nvme0n1/queue/{file} - - - - {value}\n");
        let (anew, size) = (queue("scheduler", "mq-deadline"), queue("nr_requests", "256"));
        assert_eq!(tail(&[&size, &anew]), anew.clone() + &size);
    }

    #[test]
    fn the_newest_line_of_a_place_wins() {
        let text = lines(&["vm.a = 1\nvm.b = 2\n", "vm.a = 3\n"]).expect("lines");
        assert_eq!(text, format!("{HEAD}vm.b = 2\nvm.a = 3\n"));
        assert_eq!(lines(&[]), None);
    }

    #[test]
    fn the_line_of_a_pool_is_the_sum_of_those_who_want_pages() {
        let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
        let step = |pages, others| {
            let pools = vec![PoolLine { place: pool.to_owned(), pages, others, ..PoolLine::default() }];
            EntryStep { pools, ..file_step("persist.tmpfiles", SYSCTL_FILE, String::new()) }
        };
        let text = |steps: &[EntryStep]| content(steps.iter(), catalogue()).expect("lines");
        assert_eq!(text(&[step(10, 0), step(20, 0)]), format!("{HEAD}w! {pool} - - - - 30\n"));
        assert_eq!(text(&[step(20, 0)]), format!("{HEAD}w! {pool} - - - - 20\n"));
        // Of what others have there only the newest look counts: it is no page of ours.
        assert_eq!(text(&[step(10, 7), step(20, 5)]), format!("{HEAD}w! {pool} - - - - 35\n"));
    }

    #[test]
    fn a_line_is_known_by_what_it_sets() {
        assert_eq!(key("vm.swappiness = 10"), "vm.swappiness");
        // The program may have moved since: two lines would be two commands of one unit.
        let moved = |program: &str, limit: u32| {
            let line = format!("ExecStart={program} hold cpu-dma-latency {limit}");
            EntryStep { wanted: line, ..file_step("persist.hold", SYSCTL_FILE, String::new()) }
        };
        let held = content([moved("/opt/planish", 20), moved("/usr/bin/planish", 50)].iter(), catalogue())
            .expect("lines");
        assert_eq!(held, format!("{HEAD}ExecStart=/usr/bin/planish hold cpu-dma-latency 50\n"));
        // A line that only the older one had would stand above every section of the unit.
        let unit = |program: &str| {
            let lines = format!("[Unit]\nRequiresMountsFor={program}\n[Service]\nType=exec");
            EntryStep { wanted: lines, ..file_step("persist.hold", SYSCTL_FILE, String::new()) }
        };
        let units =
            content([unit("/opt/planish"), unit("/usr/bin/planish")].iter(), catalogue()).expect("lines");
        assert_eq!(units, content([unit("/usr/bin/planish")].iter(), catalogue()).expect("lines"));
        assert_eq!(key("w /sys/kernel/mm/x - - - - always"), "w /sys/kernel/mm/x");
        let disk =
            planish_udev::disk_rule(&planish_udev::DiskKey::Name("sda".to_owned()), "queue/x", "write back");
        let disk = disk.expect("plain");
        assert_eq!(key(disk.trim_end()), disk.trim_end().strip_suffix("=\"write back\"").expect("its end"));
        let set = |line| place_of(line).expect("it sets a place");
        assert_eq!(set("vm.swappiness = 10"), "/proc/sys/vm/swappiness");
        assert_eq!(set("net/ipv4/conf/eth0.1/rp_filter = 0"), "/proc/sys/net/ipv4/conf/eth0.1/rp_filter");
        assert_eq!(set("w /sys/a%%b\\\\c - - - - 1"), "/sys/a%b\\c");
    }
}
