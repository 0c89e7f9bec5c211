//! Huge-page pools: raised by our own need, lowered by the same, whatever others do to them meanwhile.
//!
//! The kernel takes the absolute size of a pool, grants less without an error, and counts pages that it only
//! lends (surplus) in the size that it shows (mm/hugetlb.c, `set_max_huge_pages`). So sizes here are without
//! surplus, each write is computed from what is there at that moment, and what was granted is read back. A kill
//! between write and outcome is why each write is recorded before it is made.

use std::error::Error;
use std::time::Duration;

use planish_model::{EntryStep, LineClaim, Outcome, OutcomeKind, PoolWrite, ShortGrant};

use crate::buddy;
use crate::error::SinkError;
use crate::sink::Sink;
use crate::stack::Claim;
use crate::three_way::{Held, held};

/// How often a pool that came short is asked again, after a compaction each time.
const TRIES: u32 = 5;
/// The wait before the second try; each later one waits twice as long, 3 seconds in all.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Records a write of a pool before it is made. After an error the pool is left alone.
pub type Recorder<'a> = dyn FnMut(PoolWrite) -> Result<(), Box<dyn Error + Send + Sync>> + 'a;

/// Raises a pool by the need of a step.
pub(crate) fn raise(step: &EntryStep, sink: &dyn Sink, record: &mut Recorder<'_>) -> Outcome {
    let pool = Pool { sink, place: &step.place };
    let asked = step.raise_pages.unwrap_or(0);
    let mut outcome = Outcome::new(step.knob.clone(), step.place.clone(), OutcomeKind::Done);
    if asked == 0 {
        // All that it wants is there, and becomes its own when the entry goes that holds it.
        outcome.outcome = OutcomeKind::TakenOver;
        outcome.read_back = sink.read(&step.place).ok();
        outcome.granted_pages = Some(0);
        return outcome;
    }
    let before = pool.blocks();
    let mut granted = 0;
    let mut actions = Vec::new();
    let mut pause = FIRST_PAUSE;
    for attempt in 1..=TRIES {
        // From what is there now: whoever changed the pool since is neither undone nor counted as ours.
        match pool.change(granted, record, |now| now.checked_add(asked - granted)) {
            Ok((from, to)) => granted += to.saturating_sub(from).min(asked - granted),
            Err(why) => {
                outcome.outcome = OutcomeKind::Failed;
                outcome.detail = Some(why);
                break;
            }
        }
        if granted == asked || attempt == TRIES {
            break;
        }
        actions.extend(pool.compact());
        sink.pause(pause);
        pause *= 2;
    }
    outcome.read_back = sink.read(&step.place).ok();
    outcome.granted_pages = Some(granted);
    if granted < asked && outcome.outcome == OutcomeKind::Done {
        let reason = format!("{}; before compaction: {before}; after: {}", pool.why_short(), pool.blocks());
        outcome.outcome = OutcomeKind::Short;
        outcome.short = Some(ShortGrant { asked, granted, reason, fits: pool.fits() });
    }
    if !actions.is_empty() {
        outcome.detail = Some(format!("action: wrote 1 to {}, {} times", actions[0], actions.len()));
    }
    outcome
}

/// Finds out how far a write came that a kill interrupted. To be done before anything else changes the pool,
/// since afterwards its size tells nothing any more. `None` when there is nothing to find out.
pub fn settle(step: &EntryStep, sink: &dyn Sink) -> Option<Outcome> {
    step.begun?;
    let now = Pool { sink, place: &step.place }.pages().ok()?;
    let mut outcome = Outcome::new(step.knob.clone(), step.place.clone(), OutcomeKind::Done);
    outcome.read_back = Some(now.to_string());
    match held(step, now) {
        Held::Pages(pages) => {
            if step.raise_pages != Some(pages) {
                outcome.outcome = OutcomeKind::Short;
            }
            outcome.granted_pages = Some(pages);
            outcome.detail = Some("counted after a kill".to_owned());
        }
        Held::Unclear(pages) => {
            outcome.outcome = OutcomeKind::Theirs;
            outcome.granted_pages = Some(pages);
            outcome.detail = Some(format!(
                "a kill interrupted a write of this pool: {pages} of its {now} pages are ours, unless someone \
                 changed it since; --force gives them back"
            ));
        }
    }
    Some(outcome)
}

/// Who else is to have pages of a step that goes.
#[derive(Default)]
pub(crate) struct Claims<'a> {
    /// Pages that stay for the entry which takes the place of its own.
    pub kept: u64,
    /// Whoever loaded a line for all nodes.
    pub line: Option<&'a Claim>,
}

/// Lowers a pool by what a step was granted, and by no page that someone uses or that a line of others gives. As many
/// of the pages as are to be kept stay, for another entry; how many those are is told, and they are no part of the
/// outcome.
pub(crate) fn lower(
    step: &EntryStep,
    claims: &Claims<'_>,
    sink: &dyn Sink,
    force: bool,
    record: &mut Recorder<'_>,
) -> (Outcome, u64) {
    let pool = Pool { sink, place: &step.place };
    let settled = settle(step, sink);
    let known = settled.as_ref().or(step.undone.as_ref()).or(step.outcome.as_ref());
    if let Some(unclear) = known.filter(|known| known.outcome == OutcomeKind::Theirs && !force) {
        let read_back = sink.read(&step.place).ok();
        return (Outcome { read_back, short: None, ..unclear.clone() }, 0);
    }
    let ours = known.and_then(|known| known.granted_pages).unwrap_or(0);
    let lowered = known.filter(|known| known.outcome == OutcomeKind::Lowered);
    if let Some(lost) = lowered.filter(|_| ours == 0) {
        let (outcome, read_back) = (OutcomeKind::Theirs, sink.read(&step.place).ok());
        return (Outcome { outcome, read_back, short: None, ..lost.clone() }, 0);
    }
    let lost = step.why_lost().filter(|_| settled.is_none() && step.undone.is_none());
    let mut outcome = Outcome::new(step.knob.clone(), step.place.clone(), OutcomeKind::Done);
    if let Err(error) = pool.pages() {
        return (failed(outcome, &error), 0);
    }
    let rest = ours.saturating_sub(claims.kept);
    let claimed = claims.line.map_or(0, |line| rest.saturating_sub(line.beside));
    let due = rest - claimed;
    let spare = pool.unused().unwrap_or(due);
    let mut left = ours;
    if due > 0 && spare > 0 {
        match pool.change(ours, record, |now| Some(now - due.min(spare).min(now))) {
            Ok((from, to)) => left -= from.saturating_sub(to).min(left),
            Err(why) => {
                outcome.outcome = OutcomeKind::Failed;
                outcome.detail = Some(why);
            }
        }
    }
    let handed_back = ours - left;
    let size_now = pool.pages().unwrap_or(0);
    outcome.read_back = sink.read(&step.place).ok();
    if left > size_now {
        outcome.detail = Some(format!("someone lowered the pool to {size_now} pages since"));
        left = size_now;
    }
    let kept = claims.kept.min(left);
    left -= kept;
    outcome.granted_pages = Some(left);
    let pages = claimed.min(left);
    let line = claims.line.filter(|_| pages > 0);
    outcome.claim =
        line.map(|Claim { given, source, .. }| LineClaim { pages, given: *given, source: source.clone() });
    if outcome.outcome == OutcomeKind::Done {
        tell(&mut outcome, &pool, (due, handed_back), lost.as_deref());
    }
    (outcome, kept)
}

/// Tells what became of the pages that were due, and why what is left is left.
fn tell(outcome: &mut Outcome, pool: &Pool<'_>, (due, handed_back): (u64, u64), lost: Option<&str>) {
    let left = outcome.granted_pages.unwrap_or(0);
    let used = left - outcome.claimed();
    if left > 0 {
        outcome.outcome = OutcomeKind::InUse;
    } else if due == 0 {
        outcome.outcome = OutcomeKind::Satisfied;
    }
    if used > 0 {
        outcome.holders = pool.page_bytes().map(|bytes| pool.sink.holders(bytes)).unwrap_or_default();
        let back = if handed_back > 0 { format!(", {handed_back} handed back") } else { String::new() };
        outcome.detail = Some(format!("{used} of {due} pages are in use or reserved{back}"));
    } else if outcome.detail.is_none() {
        let pages = if handed_back == 1 { "page" } else { "pages" };
        let back = (handed_back > 0).then(|| format!("{handed_back} {pages} handed back"));
        let told: Vec<String> = back.into_iter().chain(lost.map(str::to_owned)).collect();
        outcome.detail = (!told.is_empty()).then(|| told.join("; "));
    }
}

fn failed(mut outcome: Outcome, error: &SinkError) -> Outcome {
    outcome.outcome = crate::perform::kind_of(error);
    outcome.detail = Some(error.in_full());
    outcome
}

/// The files of one pool.
struct Pool<'a> {
    sink: &'a dyn Sink,
    /// `.../hugepages-2048kB/nr_hugepages`.
    place: &'a str,
}

impl Pool<'_> {
    /// The folder of the pool, and its name: `hugepages-2048kB`.
    fn folder(&self) -> Option<(&str, &str)> {
        let folder = self.place.strip_suffix("/nr_hugepages")?;
        Some((folder, folder.rsplit('/').next()?))
    }

    fn sibling(&self, name: &str) -> Option<u64> {
        let (folder, _) = self.folder()?;
        self.sink.read(&format!("{folder}/{name}")).ok()?.trim().parse().ok()
    }

    /// Pages of the pool, without those that are only lent.
    fn pages(&self) -> Result<u64, SinkError> {
        let shown: u64 = self.sink.read(self.place)?.trim().parse().unwrap_or(0);
        Ok(shown.saturating_sub(self.sibling("surplus_hugepages").unwrap_or(0)))
    }

    /// One recorded write, computed from the size of this moment. Returns the sizes before and after.
    fn change(
        &self,
        held: u64,
        record: &mut Recorder<'_>,
        target: impl FnOnce(u64) -> Option<u64>,
    ) -> Result<(u64, u64), String> {
        let from = self.pages().map_err(|error| error.in_full())?;
        let to = target(from).ok_or_else(|| format!("no pool has so many pages besides its {from}"))?;
        record(PoolWrite { held, from, to })
            .map_err(|error| format!("not written, since not recorded: {error}"))?;
        self.sink.write(self.place, &to.to_string()).map_err(|error| error.in_full())?;
        let after = self.pages().map_err(|error| error.in_full())?;
        Ok((from, after))
    }

    fn page_bytes(&self) -> Option<u64> {
        let (_, name) = self.folder()?;
        let kilobytes: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        kilobytes.checked_mul(1024)
    }

    /// The node, from `/sys/devices/system/node/node0/...`; `None` for a pool of the whole host.
    fn node(&self) -> Option<u32> {
        self.place.split('/').find_map(|part| part.strip_prefix("node")?.parse().ok())
    }

    /// Pages that nobody uses and nobody has reserved; `None` where no file tells.
    fn unused(&self) -> Option<u64> {
        let free = self.sibling("free_hugepages")?;
        // Reservations are counted for the whole host only.
        let (_, name) = self.folder()?;
        let place = format!("/sys/kernel/mm/hugepages/{name}/nr_hugepages");
        let host = Pool { sink: self.sink, place: &place };
        let unreserved = host
            .sibling("free_hugepages")
            .zip(host.sibling("resv_hugepages"))
            .map_or(free, |(free, reserved)| free.saturating_sub(reserved));
        Some(free.min(unreserved))
    }

    /// Asks the kernel to move small pages together. An action: it has no old value, and so no undo.
    fn compact(&self) -> Option<String> {
        let place = match self.node() {
            Some(node) => format!("/sys/devices/system/node/node{node}/compact"),
            None => "/proc/sys/vm/compact_memory".to_owned(),
        };
        self.sink.write(&place, "1").is_ok().then_some(place)
    }

    /// Free blocks that hold a page of this pool, for people.
    fn blocks(&self) -> String {
        let Some(page_bytes) = self.page_bytes() else { return "unknown".to_owned() };
        let text = self.sink.read("/proc/buddyinfo").unwrap_or_default();
        buddy::describe(&text, self.node(), page_bytes, self.sink.page_bytes())
    }

    /// Pages of this pool's size that lie whole in free blocks.
    fn fits(&self) -> Option<u64> {
        let text = self.sink.read("/proc/buddyinfo").unwrap_or_default();
        buddy::pages(&text, self.node(), self.page_bytes()?, self.sink.page_bytes())
    }

    fn why_short(&self) -> String {
        let page_bytes = self.page_bytes().unwrap_or(0);
        let text = self.sink.read("/proc/buddyinfo").unwrap_or_default();
        buddy::why(&text, self.node(), page_bytes, self.sink.page_bytes())
    }
}

#[cfg(test)]
mod tests {
    use planish_model::Holder;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Kernel, pool_step};

    const PLACE: &str = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
    const FREE: &str = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages";
    const SURPLUS: &str = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/surplus_hugepages";
    const COMPACT: &str = "/sys/devices/system/node/node0/compact";

    fn kernel(pages: u64) -> Kernel {
        Kernel::new(&[
            (PLACE, &pages.to_string()),
            (COMPACT, ""),
            ("/proc/buddyinfo", "Node 0, zone Normal 9 9 9 9 9 9 9 9 9 0 0"),
        ])
    }

    fn raised(step: &EntryStep, kernel: &Kernel) -> EntryStep {
        EntryStep { outcome: Some(raise(step, kernel, &mut |_| Ok(()))), ..step.clone() }
    }

    fn lowered(step: &EntryStep, kernel: &Kernel) -> Outcome {
        lower(step, &Claims::default(), kernel, false, &mut |_| Ok(())).0
    }

    #[test]
    fn a_short_grant_is_retried_after_compaction() {
        let kernel = kernel(2);
        kernel.grant.set(Some(3));
        let outcome = raise(&pool_step(PLACE, 2, 8), &kernel, &mut |_| Ok(()));
        assert_eq!((outcome.outcome, outcome.granted_pages), (OutcomeKind::Done, Some(8)));
        assert_eq!(kernel.get(PLACE), "10");
        assert!(outcome.detail.expect("actions are listed").contains(COMPACT));
    }

    #[test]
    fn a_grant_that_stays_short_says_why_and_gives_back_what_it_got() {
        let kernel = kernel(2);
        kernel.grant.set(Some(0));
        let step = raised(&pool_step(PLACE, 2, 8), &kernel);
        let outcome = step.outcome.as_ref().expect("it ran");
        assert_eq!((outcome.outcome, outcome.granted_pages), (OutcomeKind::Short, Some(0)));
        let short = outcome.short.as_ref().expect("it is short");
        assert_eq!(
            short.reason,
            "free memory is in pieces that are too small; before compaction: node 0: Normal 0; \
             after: node 0: Normal 0"
        );
        assert_eq!(lowered(&step, &kernel).outcome, OutcomeKind::Satisfied);
    }

    #[test]
    fn what_others_add_meanwhile_is_not_ours() {
        let kernel = kernel(2);
        kernel.grant.set(Some(3));
        kernel.meanwhile.set(Some((PLACE, "105")));
        let step = raised(&pool_step(PLACE, 2, 4), &kernel);
        assert_eq!(step.pages_held(), 4);
        assert_eq!(kernel.get(PLACE), "106");
        assert_eq!(lowered(&step, &kernel).outcome, OutcomeKind::Done);
        assert_eq!(kernel.get(PLACE), "102", "their 100 stay");
    }

    #[test]
    fn lent_pages_are_not_counted() {
        let kernel = kernel(5);
        kernel.put(SURPLUS, "5");
        let outcome = raise(&pool_step(PLACE, 0, 4), &kernel, &mut |_| Ok(()));
        assert_eq!(kernel.writes.borrow()[0], (PLACE.to_owned(), "4".to_owned()));
        assert_ne!(outcome.outcome, OutcomeKind::Failed);
    }

    #[test]
    fn pages_that_are_kept_for_somebody_else_stay_and_those_in_use_are_told_apart() {
        for (free, kept, pool, outcome, left, told) in [
            ("8", 3, "3", OutcomeKind::Done, 0, Some("5 pages handed back")),
            ("5", 8, "8", OutcomeKind::Satisfied, 0, None),
            ("2", 3, "6", OutcomeKind::InUse, 3, Some("3 of 5 pages are in use or reserved, 2 handed back")),
        ] {
            let kernel = kernel(0);
            let step = raised(&pool_step(PLACE, 0, 8), &kernel);
            kernel.put(FREE, free);
            let mut recorded = Vec::new();
            let record = &mut |write: PoolWrite| {
                recorded.push(write.held);
                Ok(())
            };
            let (lowered, stay) = lower(&step, &Claims { kept, line: None }, &kernel, false, record);
            assert_eq!((lowered.outcome, lowered.granted_pages, stay), (outcome, Some(left), kept), "{free}");
            assert_eq!(lowered.detail.as_deref(), told, "{free}");
            assert_eq!(kernel.get(PLACE), pool, "{free}");
            // A kill in the write must find all of them.
            assert!(recorded.iter().all(|held| *held == 8), "{recorded:?}");
        }
    }

    #[test]
    fn pages_in_use_stay_and_their_holder_is_named() {
        let mut kernel = kernel(0);
        kernel.holders = vec![Holder { pid: 812, command: "postgres".to_owned(), bytes: 6 << 20 }];
        let mut step = raised(&pool_step(PLACE, 0, 8), &kernel);
        kernel.put(FREE, "5");
        let outcome = lowered(&step, &kernel);
        assert_eq!((outcome.outcome, outcome.granted_pages), (OutcomeKind::InUse, Some(3)));
        assert_eq!((outcome.holders[0].pid, kernel.get(PLACE).as_str()), (812, "3"));
        step.undone = Some(outcome);
        kernel.put(FREE, "3");
        assert_eq!(lowered(&step, &kernel).outcome, OutcomeKind::Done);
        assert_eq!(kernel.get(PLACE), "0");
    }

    #[test]
    fn a_raise_beyond_all_numbers_takes_nothing_from_others() {
        let kernel = kernel(10);
        let step = EntryStep { raise_pages: Some(u64::MAX - 3), ..pool_step(PLACE, 10, 8) };
        let outcome = raise(&step, &kernel, &mut |_| Ok(()));
        assert_eq!((outcome.outcome, outcome.granted_pages), (OutcomeKind::Failed, Some(0)));
        assert_eq!(kernel.get(PLACE), "10");
    }

    #[test]
    fn a_pool_that_was_not_recorded_is_not_written() {
        let kernel = kernel(0);
        let outcome = raise(&pool_step(PLACE, 0, 8), &kernel, &mut |_| Err("disk full".into()));
        assert_eq!(outcome.outcome, OutcomeKind::Failed);
        assert!(outcome.detail.expect("why").contains("not recorded: disk full"));
        assert!(kernel.writes.borrow().is_empty());
    }

    #[test]
    fn after_a_kill_and_a_stranger_the_pool_is_left_and_told() {
        let kernel = kernel(50);
        let mut step = pool_step(PLACE, 0, 8);
        step.begun = Some(PoolWrite { held: 0, from: 0, to: 8 });
        let outcome = lowered(&step, &kernel);
        assert_eq!(outcome.outcome, OutcomeKind::Theirs);
        assert!(outcome.detail.expect("why").contains("8 of its 50 pages are ours, unless"));
        assert_eq!(lower(&step, &Claims::default(), &kernel, true, &mut |_| Ok(())).0.granted_pages, Some(0));
        assert_eq!(kernel.get(PLACE), "42");
    }

    proptest! {
        /// Whatever is granted and whatever others add, giving back takes exactly what was granted.
        #[test]
        fn a_pool_goes_down_by_what_it_went_up(
            start in 0u64..20, need in 0u64..20, grant in 0u64..20, others in 0u64..20,
        ) {
            let kernel = kernel(start);
            kernel.grant.set(Some(grant));
            let step = raised(&pool_step(PLACE, start, need), &kernel);
            prop_assert_eq!(kernel.get(PLACE), (start + step.pages_held()).to_string());
            prop_assert_eq!(step.pages_held(), need.min(grant * u64::from(TRIES)));
            let now: u64 = kernel.get(PLACE).parse().expect("pages");
            kernel.put(PLACE, &(now + others).to_string());
            lowered(&step, &kernel);
            prop_assert_eq!(kernel.get(PLACE), (start + others).to_string());
        }
    }
}
