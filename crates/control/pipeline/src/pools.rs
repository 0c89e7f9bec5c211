//! What entries hold of the pools of huge pages, and whether anybody uses it: pages that lie idle are memory which
//! nobody else can have.

use std::collections::BTreeMap;

use planish_host::Host;
use planish_model::{Entry, EntryId, Plan, PoolGoing, PoolUse, Undo};

/// The pools of entries that hold pages, oldest entry first.
///
/// What is idle is nobody's by name, so that it counts as the newest entry's. Of a node the kernel does not tell what
/// is reserved: all nodes together have no more that is idle than the host.
pub(crate) fn held(host: &Host, holding: &[Entry]) -> Vec<PoolUse> {
    let number = |path: &str| host.read(path).ok()?.trim().parse::<u64>().ok();
    let (mut free, mut idle) = (BTreeMap::new(), BTreeMap::new());
    let mut pools = Vec::new();
    for entry in holding.iter().rev() {
        let steps = entry.steps.iter().filter(|step| step.undo == Undo::Subtract && !step.is_undone());
        for step in steps.filter(|step| step.outcome.is_some()) {
            let Some((folder, size)) = pool(&step.place) else { continue };
            let granted = step.pages_held();
            let free = free
                .entry(step.place.as_str())
                .or_insert_with(|| number(&format!("{folder}/free_hugepages")));
            let idle = idle.entry(size).or_insert_with(|| {
                let whole = format!("/sys/kernel/mm/hugepages/{size}");
                let free = number(&format!("{whole}/free_hugepages"))?;
                Some(free.saturating_sub(number(&format!("{whole}/resv_hugepages"))?))
            });
            let own = free.as_mut().zip(idle.as_mut()).map(|(free, idle)| {
                let own = granted.min(*free).min(*idle);
                (*free, *idle) = (*free - own, *idle - own);
                own
            });
            pools.push(PoolUse {
                entry: entry.id,
                knob: step.knob.clone(),
                place: step.place.clone(),
                asked: step.pages_asked(),
                granted,
                used: own.map(|own| granted - own),
                idle: own,
            });
        }
    }
    pools.reverse();
    pools
}

/// The pools of an entry whose place a plan takes.
pub(crate) fn going(host: &Host, holding: &[Entry], id: EntryId, plan: &Plan) -> Vec<PoolGoing> {
    let of_entry = held(host, holding).into_iter().filter(|pool| pool.entry == id && pool.granted > 0);
    let going = |pool: PoolUse| {
        let step = plan.steps.iter().find(|step| step.undo == Undo::Subtract && step.place == pool.place);
        let taken_over = step.and_then(|step| step.takes_pages).unwrap_or(0).min(pool.granted);
        PoolGoing { taken_over, handed_back: pool.granted - taken_over, pool }
    };
    of_entry.map(going).collect()
}

/// The folder of a pool, and the name that its page size has in all of them.
fn pool(place: &str) -> Option<(&str, &str)> {
    let folder = place.strip_suffix("/nr_hugepages")?;
    Some((folder, folder.rsplit('/').next()?))
}
