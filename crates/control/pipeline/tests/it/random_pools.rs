//! Random lives of pools: sizes in all and needs of several profiles, with files and without, beside lines of others
//! that come, grow, are loaded and go. What a boot makes of all lines is worked out here by the rules of the kernel and
//! of systemd, and by none of the code that is under test.

use std::collections::BTreeMap;

use planish_model::{DriftState, EntryId, KnobCheck, Nodes, Want};
use planish_pipeline::{ApplyOptions, Checked, PlanOptions, Source, Target, apply, check, plan, undo};
use proptest::prelude::*;

use crate::pools::{set, sizes};
use crate::tree::*;

/// A file of others for the pools.
#[derive(Clone, Copy, Debug)]
enum File {
    /// `vm.nr_hugepages`, for all nodes.
    Sysctl,
    /// A line of tmpfiles.d for one node, in a file before ours: of one path the first line counts.
    Before(u32),
    /// The same behind ours.
    Behind(u32),
}

/// One thing that happens to a host.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// An apply of a profile, with files for each boot or without.
    Apply(usize, bool),
    /// The same in the place of an entry.
    Instead(usize, u64, bool),
    Undo(u64),
    /// Others write a line for so many pages.
    Write(File, u64),
    Remove(File),
    /// Others have their lines read now.
    Load(File),
    Reboot,
}

/// The profiles, by what they want in pages: in all or for themselves, and on which nodes.
const PROFILES: [(bool, u64, &[u32]); 6] = [
    (false, 16, &[0]),
    (true, 20, &[]),
    (true, 41, &[]),
    (true, 30, &[0]),
    (false, 10, &[]),
    (true, 12, &[0, 1]),
];

fn name(number: usize) -> String {
    format!("profile-{number}")
}

fn source(number: usize) -> Source {
    let (is_total, pages, on) = PROFILES[number];
    let nodes = if on.is_empty() { Nodes::Spread } else { Nodes::Each(on.to_vec()) };
    let want = match is_total {
        true => Want::Total { total_bytes: pages << 21, nodes },
        false => Want::Need { need_bytes: pages << 21, nodes },
    };
    profile(&name(number), &[("hugepages.2m", want)])
}

/// So many pages over both nodes; the first one has what is left over.
fn spread(pages: u64) -> [u64; 2] {
    [pages.div_ceil(2), pages / 2]
}

fn path(file: File) -> &'static str {
    match file {
        File::Sysctl => "/etc/sysctl.d/99-db.conf",
        File::Before(0) => "/etc/tmpfiles.d/50-db.conf",
        File::Before(_) => "/etc/tmpfiles.d/51-db.conf",
        File::Behind(0) => "/etc/tmpfiles.d/hugepages.conf",
        File::Behind(_) => "/etc/tmpfiles.d/hugepages-too.conf",
    }
}

/// The lines of the files of a folder, in the order in which they are read; those of others alone, or all.
fn lines(tree: &Tree, folder: &str, is_all: bool) -> Vec<String> {
    let mut files = tree.snapshot();
    files.retain(|path, _| path.starts_with(folder) && (is_all || !path.contains("planish")));
    files.values().flat_map(|text| text.lines()).map(str::to_owned).collect()
}

/// What sysctl.d gives: its last line, over all nodes.
fn shares(tree: &Tree) -> [u64; 2] {
    let lines = lines(tree, "/etc/sysctl.d/", true);
    let pages = lines.iter().filter_map(|line| line.strip_prefix("vm.nr_hugepages = ")).next_back();
    pages.map_or([0, 0], |pages| spread(pages.parse().expect("pages")))
}

/// What the lines of all files make of the pools of a boot, or those of others alone: sysctl.d, and behind it
/// tmpfiles.d, where of each path the first line counts.
fn boot(tree: &Tree, is_all: bool) -> [u64; 2] {
    let lines = lines(tree, "/etc/tmpfiles.d/", is_all);
    let mut pools = shares(tree);
    for (node, pages) in (0..).zip(&mut pools) {
        let place = format!(" {} - - - - ", pool(node));
        let first = lines.iter().find_map(|line| line.split_once(&place));
        first.into_iter().for_each(|(_, line)| *pages = line.parse().expect("pages"));
    }
    pools
}

/// What somebody knows who has seen every plan, and asks how many pages the next boot may have.
#[derive(Default)]
struct Known {
    /// By profile with a size in all: what the plans showed of the pools.
    shown: BTreeMap<String, [u64; 2]>,
    /// What others had loaded since the start, at the most.
    loaded: u64,
    /// Whether an entry was applied to this boot alone.
    is_for_now: bool,
}

impl Known {
    /// The most pages that a boot may give a node.
    fn most(&self, tree: &Tree, node: usize) -> u64 {
        let entries = tree.entries();
        let is_open = |name: &str| entries.iter().any(|entry| entry.is_open() && entry.profile == name);
        let needs = (0..PROFILES.len()).filter(|number| is_open(&name(*number))).map(|number| {
            let (is_total, pages, on) = PROFILES[number];
            match (is_total, on) {
                (true, _) => 0,
                (false, []) => spread(pages)[node],
                (false, on) if on.contains(&(node as u32)) => pages,
                (false, _) => 0,
            }
        });
        let shown = self.shown.iter().filter(|(name, _)| is_open(name)).map(|(_, sizes)| sizes[node]).max();
        // Of two lines of others the one for all nodes may be loaded last: what is the more of the two is theirs.
        let others = boot(tree, false)[node].max(shares(tree)[node]);
        needs.sum::<u64>() + others.max(shown.unwrap_or(0))
    }
}

fn apply_in(tree: &Tree, known: &mut Known, number: usize, instead_of: Option<u64>, persist: bool) -> bool {
    let session = tree.session();
    let options = PlanOptions { instead_of: instead_of.map(EntryId), ..PlanOptions::default() };
    // An entry that is not there, or is undone, gives no place.
    let Ok(plan) = plan(&session, &source(number), &options) else { return false };
    if PROFILES[number].0 {
        let shown = known.shown.entry(name(number)).or_default();
        for step in &plan.steps {
            let node = (0..2).find(|node| step.place == pool(*node)).expect("a pool") as usize;
            shown[node] = shown[node].max(step.wanted.trim().parse().expect("pages"));
        }
    }
    known.is_for_now |= !persist;
    let applied = apply(&session, &plan, &ApplyOptions { persist, ..ApplyOptions::default() });
    applied.unwrap_or_else(|error| panic!("the host takes it: {error:?}"));
    true
}

fn run(
    tree: &Tree,
    start: &BTreeMap<String, String>,
    known: &mut Known,
    event: Event,
) -> Result<(), TestCaseError> {
    match event {
        Event::Apply(number, persist) => {
            apply_in(tree, known, number, None, persist);
            again(tree, known, number, persist)?;
        }
        Event::Instead(number, old, persist) => {
            if apply_in(tree, known, number, Some(old), persist) {
                again(tree, known, number, persist)?;
            }
        }
        // An entry that was never made is an error, and changes nothing.
        Event::Undo(id) => drop(undo(&tree.session(), Target::Entry(EntryId(id)), false)),
        Event::Write(File::Sysctl, pages) => {
            tree.put(path(File::Sysctl), &format!("vm.nr_hugepages = {pages}\n"))
        }
        Event::Write(file @ (File::Before(node) | File::Behind(node)), pages) => {
            tree.put(path(file), &format!("w {} - - - - {pages}\n", pool(node)));
        }
        Event::Remove(file) => tree.remove_if_there(path(file)),
        Event::Load(file) => load(tree, known, file),
        Event::Reboot => reboot(tree, start)?,
    }
    Ok(())
}

/// The same once more: nothing is written, and a check finds all of it, now and at the next boot.
fn again(tree: &Tree, known: &mut Known, number: usize, persist: bool) -> Result<(), TestCaseError> {
    let (once, entries) = (tree.snapshot(), tree.entries().len());
    apply_in(tree, known, number, None, persist);
    prop_assert_eq!(differences(&once, &tree.snapshot()), [""; 0], "applied twice");
    prop_assert_eq!(tree.entries().len(), entries, "applied twice");
    // Of one path the first line counts, whoever wrote ours.
    let is_first = [0, 1].iter().all(|node| tree.get(path(File::Before(*node))).is_empty());
    let checked = check(&tree.session(), Some(&source(number))).expect("checked");
    // What others give since is made room for with a line of the profile's own.
    let entries = tree.entries();
    let own = entries.iter().filter(|entry| entry.is_open() && entry.profile == name(number));
    let own: Vec<&str> = own.flat_map(|entry| &entry.steps).map(|step| step.place.as_str()).collect();
    let is_made = |row: &&&KnobCheck| own.contains(&row.place.as_str());
    let is_kept = is_first && !known.is_for_now;
    let rows = rows(&checked);
    let is_well = rows.iter().filter(is_made).all(|row| row.state == DriftState::Ok);
    prop_assert!(!is_kept || is_well, "{:#?}", rows);
    Ok(())
}

/// What a line makes of the pools that are there: the kernel adds to each node in turn, and takes in turn.
fn load(tree: &Tree, known: &mut Known, file: File) {
    let text = tree.get(path(file));
    let Some(pages) = text.trim().rsplit(' ').next().filter(|pages| !pages.is_empty()) else { return };
    let pages: u64 = pages.parse().expect("pages");
    let mut pools = sizes(tree);
    match file {
        File::Before(node) | File::Behind(node) => pools[node as usize] = pages,
        File::Sysctl => {
            for turn in [0, 1].into_iter().cycle().take(1000) {
                match pools.iter().sum::<u64>().cmp(&pages) {
                    std::cmp::Ordering::Less => pools[turn] += 1,
                    std::cmp::Ordering::Greater => pools[turn] = pools[turn].saturating_sub(1),
                    std::cmp::Ordering::Equal => break,
                }
            }
        }
    }
    known.loaded = known.loaded.max(pools.iter().sum());
    set(tree, pools);
}

/// All lines are read. What was told to come has come, and is nothing to find.
fn reboot(tree: &Tree, start: &BTreeMap<String, String>) -> Result<(), TestCaseError> {
    let (was_well, next) = (is_well(&check(&tree.session(), None).expect("checked")), boot(tree, true));
    tree.reboot(start);
    set(tree, next);
    let checked = check(&tree.session(), None).expect("checked");
    prop_assert!(!was_well || is_well(&checked), "after the boot: {:#?}", rows(&checked));
    Ok(())
}

fn rows(checked: &Checked) -> Vec<&KnobCheck> {
    checked.drift.knobs.iter().filter(|row| [pool(0), pool(1)].contains(&row.place)).collect()
}

fn is_well(checked: &Checked) -> bool {
    rows(checked).iter().all(|row| row.state == DriftState::Ok)
}

/// What a check says of the next boot is what the lines give, and no boot has more than was asked for.
fn look(tree: &Tree, known: &Known, event: Event) -> Result<(), TestCaseError> {
    let checked = check(&tree.session(), None).expect("checked");
    let next = boot(tree, true);
    for row in rows(&checked) {
        let node = usize::from(row.place == pool(1));
        let number = |text: &String| text.trim().parse::<u64>().expect("pages");
        let told = row.next_boot.as_ref().map_or(0, |next| number(&next.value));
        prop_assert_eq!(told, next[node], "after {:?}: {:#?}", event, row);
        let wanted = row.wanted.as_ref().map_or(0, number);
        let is_short = next[node] < wanted;
        prop_assert!(row.state != DriftState::Ok || !is_short, "after {:?}: {:#?}", event, row);
        let most = known.most(tree, node);
        let is_told = row.state != DriftState::Ok;
        let told = format!("{event:?}: {most} for {node}, lines {next:?}, {}", tree.get(TMPFILES_FILE));
        prop_assert!(next[node] <= most || is_told, "{}", told);
    }
    Ok(())
}

fn live(events: &[Event]) -> Result<(), TestCaseError> {
    let tree = Tree::new();
    tree.put(CMDLINE, "quiet\n");
    // Memory that is short is another story.
    tree.put("/meta.toml", &tree.get("/meta.toml").replace("grant = 5\n", "grant = 500\n"));
    set(&tree, [0, 0]);
    let start = tree.snapshot();
    let mut known = Known::default();
    for event in events {
        run(&tree, &start, &mut known, *event)?;
        look(&tree, &known, *event)?;
    }
    // What others have is theirs.
    let their_files = |tree: &Tree| {
        let mut files = tree.snapshot();
        files.retain(|path, _| path.starts_with("/etc/") && !path.contains("planish"));
        files
    };
    let theirs = their_files(&tree);
    undo(&tree.session(), Target::All, false).expect("undone");
    prop_assert_eq!(differences(&theirs, &their_files(&tree)), [""; 0], "an undo takes nothing of others");
    prop_assert_eq!(tree.get(TMPFILES_FILE), "");
    // An undo leaves them what their lines give, until those are gone.
    for file in [File::Sysctl, File::Before(0), File::Before(1), File::Behind(0), File::Behind(1)] {
        tree.remove_if_there(path(file));
    }
    undo(&tree.session(), Target::All, false).expect("undone");
    let open: Vec<_> = tree.entries().into_iter().filter(|entry| entry.is_open()).collect();
    prop_assert!(open.is_empty(), "{:#?}", open);
    let left = sizes(&tree).iter().sum::<u64>();
    let has_booted = events.iter().any(|event| matches!(event, Event::Reboot));
    prop_assert!(has_booted || left <= known.loaded, "{} pages are left of {}", left, known.loaded);
    Ok(())
}

fn file() -> impl Strategy<Value = File> {
    prop_oneof![
        3 => Just(File::Sysctl),
        1 => (0u32..2).prop_map(File::Before),
        2 => (0u32..2).prop_map(File::Behind),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..PROFILES.len(), proptest::bool::weighted(0.7)).prop_map(|(number, keep)| Event::Apply(number, keep)),
        1 => (0..PROFILES.len(), 1u64..5, any::<bool>())
            .prop_map(|(number, old, keep)| Event::Instead(number, old, keep)),
        3 => (1u64..5).prop_map(Event::Undo),
        3 => (file(), prop_oneof![Just(8u64), Just(24), Just(60)]).prop_map(|(file, pages)| Event::Write(file, pages)),
        1 => file().prop_map(Event::Remove),
        2 => file().prop_map(Event::Load),
        2 => Just(Event::Reboot),
    ]
}

/// How many cases are drawn: `./x soak` asks for more than the suite of every day has time for.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|asked| asked.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_boot_has_what_was_asked_for_and_what_others_give(events in proptest::collection::vec(event(), 1..8)) {
        live(&events)?;
    }
}

/// A pool has enough without the pages of the entry that goes: with files it was taken for one that had moved.
#[test]
fn a_size_that_is_there_without_the_entry_that_goes_is_no_other_host() {
    let events = [Event::Apply(3, false), Event::Apply(2, false), Event::Instead(5, 2, true)];
    live(&events).expect("as asked for");
}
