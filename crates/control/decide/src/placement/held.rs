//! CPUs that somebody else has than the services of the plan: a service that is pinned there, a partition of control
//! groups, the list that a boot isolates.
//!
//! ```text
//!   who has it                        a service of the plan may have it    it keeps house
//!   a service, isolated               no                                   no
//!   a service of another placement    if it is not isolated: a remark      no
//!   another unit with CPUAffinity=    if it is not isolated: a remark      yes
//!   a partition, isolcpus=            if it is isolated itself             no
//! ```
//!
//! What an entry has that the plan takes the place of goes with it, and counts for nothing.

use planish_model::{
    BootCpus, Cpus, Entry, EntryId, EntryStep, Isolation, Machine, Observation, Persisted, PinnedService,
    PlacedService, Placement, PlacementRequest,
};

use super::PlacementError;

/// The knob of the drop-ins of services.
const PLACES: &str = "unit.placement";

/// Who has CPUs already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    holders: Vec<Holder>,
}

/// One of them.
#[derive(Clone, Debug)]
struct Holder {
    cpus: Cpus,
    /// What it is, and who says so: `realtime.service has to itself (entry 1, pni)`.
    what: String,
    cure: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A service; of a placement or not, and whether its CPUs are isolated.
    Service { placed: bool, isolated: bool },
    /// The slice of planish, whose services are told by themselves.
    OwnSlice,
    /// A partition of somebody else.
    Partition,
    /// Isolated by the boot, now or next.
    Boot,
}

impl Holder {
    /// Whether a service, isolated or not, may not have these CPUs too.
    fn excludes(&self, isolated: bool) -> bool {
        match self.kind {
            Kind::Service { isolated: theirs, .. } => theirs || isolated,
            Kind::Partition => true,
            Kind::OwnSlice | Kind::Boot => !isolated,
        }
    }

    fn keeps_off_house(&self) -> bool {
        !matches!(self.kind, Kind::Service { placed: false, isolated: false })
    }
}

impl Held {
    /// Who has CPUs of a host, besides the services that are asked for.
    pub(super) fn of(
        observation: &Observation,
        machine: &Machine,
        request: &PlacementRequest,
        open: &[Entry],
        instead_of: Option<EntryId>,
    ) -> Self {
        let given = Given { observation, open, instead_of };
        let isolated = given.at_boot(machine, request);
        let mut holders = given.services(machine, request, &isolated);
        for made in &machine.partitions.made {
            let is_own = made.group == Persisted::OWN_SLICE;
            if is_own && given.goes("cpuset.partition").is_some() {
                continue;
            }
            let what = format!("the partition {} has to itself (cpuset.cpus.partition)", made.group);
            let cure = "leave them to it, or end the partition first: `member` in its cpuset.cpus.partition";
            let kind = if is_own { Kind::OwnSlice } else { Kind::Partition };
            holders.push(Holder { cpus: made.cpus.clone(), what, cure: cure.to_owned(), kind });
        }
        holders.extend(isolated);
        Self { holders }
    }

    /// The CPUs that no service may be given, isolated or not.
    pub(super) fn from(&self, isolated: bool) -> Cpus {
        let all = self.holders.iter().filter(|holder| holder.excludes(isolated));
        Cpus::of_all(all.map(|holder| &holder.cpus))
    }

    /// The CPUs that do not keep house, beside those of the services of the plan.
    pub(super) fn apart(&self) -> Cpus {
        let all = self.holders.iter().filter(|holder| holder.keeps_off_house());
        Cpus::of_all(all.map(|holder| &holder.cpus))
    }

    /// Refuses CPUs for a unit which somebody else has.
    pub(super) fn refuse(&self, unit: &str, cpus: &Cpus, isolated: bool) -> Result<(), PlacementError> {
        self.refuse_if(unit, cpus, |holder| holder.excludes(isolated))
    }

    /// Refuses CPUs that are said to keep house and that somebody has to himself. What the boot isolated comes back
    /// with the next one, and is left to who says so.
    pub(super) fn refuse_house(&self, who: &str, cpus: &Cpus) -> Result<(), PlacementError> {
        self.refuse_if(who, cpus, |holder| holder.keeps_off_house() && holder.kind != Kind::Boot)
    }

    fn refuse_if(
        &self,
        who: &str,
        cpus: &Cpus,
        is_meant: impl Fn(&Holder) -> bool,
    ) -> Result<(), PlacementError> {
        let is_met = |holder: &&Holder| is_meant(holder) && !holder.cpus.intersection(cpus).is_empty();
        let Some(holder) = self.holders.iter().find(is_met) else { return Ok(()) };
        let (who, what, cure) = (who.to_owned(), holder.what.clone(), holder.cure.clone());
        Err(PlacementError::Taken { who, cpus: holder.cpus.intersection(cpus), what, cure })
    }

    /// Refuses a second placement with isolation beside one of others: the slice, its partition and the parameters of
    /// the boot are one list, which would lose their CPUs.
    pub(super) fn refuse_second(&self, placement: &Placement) -> Result<(), PlacementError> {
        let Some(own) = placement.services.iter().find(|service| service.isolated) else { return Ok(()) };
        let is_isolated = |holder: &&Holder| holder.kind == Kind::Service { placed: true, isolated: true };
        let Some(other) = self.holders.iter().find(is_isolated) else { return Ok(()) };
        Err(PlacementError::Second {
            unit: own.unit.clone(),
            cpus: other.cpus.clone(),
            what: other.what.clone(),
            cure: other.cure.clone(),
        })
    }

    /// What is to be known of CPUs that a plan shares, or leaves out.
    pub(super) fn remarks(&self, placement: &Placement) -> Vec<String> {
        let mut remarks = Vec::new();
        let all = Cpus::of_all(placement.services.iter().map(|service| &service.cpus));
        for holder in &self.holders {
            let shared = |service: &&PlacedService| !service.cpus.intersection(&holder.cpus).is_empty();
            for service in placement.services.iter().filter(shared).filter(|own| !own.isolated) {
                let cpus = service.cpus.intersection(&holder.cpus);
                remarks.push(format!("{} shares CPU {cpus}, which {}", service.unit, holder.what));
            }
            let left = holder.cpus.without(&all).without(&placement.housekeeping);
            if holder.keeps_off_house() && !left.is_empty() {
                remarks.push(format!("CPU {left} keep no house here: {}", holder.what));
            }
        }
        remarks
    }
}

/// What is known of the host and its entries.
struct Given<'a> {
    observation: &'a Observation,
    open: &'a [Entry],
    instead_of: Option<EntryId>,
}

impl<'a> Given<'a> {
    /// The newest open entry that set something at a place, and still does.
    fn holder(&self, is_meant: impl Fn(&EntryStep) -> bool) -> Option<&'a Entry> {
        let sets = |step: &EntryStep| !step.is_undone() && is_meant(step);
        self.open.iter().rev().find(|entry| entry.is_open() && entry.steps.iter().any(sets))
    }

    /// The entry that set what a knob sets, where that goes with the plan.
    fn goes(&self, knob: &str) -> Option<EntryId> {
        let holder = self.holder(|step| step.knob.as_str() == knob).map(|entry| entry.id);
        holder.filter(|holder| Some(*holder) == self.instead_of)
    }

    /// The services that are pinned, by their files or by an entry whose files wait for a confirm.
    fn services(&self, machine: &Machine, request: &PlacementRequest, boot: &[Holder]) -> Vec<Holder> {
        let mut all = machine.pinned.clone();
        let steps = self.open.iter().filter(|entry| entry.is_open()).flat_map(|entry| &entry.steps);
        for step in steps.filter(|step| step.knob.as_str() == PLACES && !step.is_undone()) {
            let waits = placed_by(step).filter(|own| !all.iter().any(|known| known.unit == own.unit));
            all.extend(waits);
        }
        let by_boot = Cpus::of_all(boot.iter().map(|holder| &holder.cpus));
        let online = machine.online();
        let is_other = |service: &&PinnedService| {
            let is_asked = request.service.iter().any(|own| own.unit == service.unit);
            // To all CPUs is to none. Who keeps everything else to housekeeping sets that anew.
            let is_manager = service.unit == PinnedService::MANAGER;
            let is_everywhere = service.cpus.is_empty() || online.is_within(&service.cpus);
            let is_set_anew = is_manager && request.others != planish_model::Others::Anywhere;
            !is_asked && !is_everywhere && !is_set_anew
        };
        let services = all.iter().filter(is_other);
        services.filter_map(|service| self.service(service, &by_boot)).collect()
    }

    fn service(&self, service: &PinnedService, by_boot: &Cpus) -> Option<Holder> {
        let PinnedService { unit, cpus, slice, placed, source } = service;
        let is_manager = unit == PinnedService::MANAGER;
        let place = if is_manager { super::MANAGER.to_owned() } else { super::drop_in(unit) };
        let is_ours = *placed || Persisted::own_file(source).is_some_and(|file| file == place);
        let entry = self.holder(|step| step.place == place).filter(|_| is_ours);
        if entry.is_some_and(|entry| Some(entry.id) == self.instead_of) {
            return None;
        }
        let isolated = *slice == Persisted::OWN_SLICE || *placed && !cpus.intersection(by_boot).is_empty();
        let by = match entry {
            Some(entry) => format!("entry {}, {}; {source}", entry.id, entry.profile),
            None => source.clone(),
        };
        let what = if isolated { "has to itself" } else { "is pinned to" };
        // Systemd itself is no unit: a placement keeps it to housekeeping beside its services.
        let named = match entry.filter(|_| is_manager).map(placed_of) {
            Some(units) if !units.is_empty() => units.join(" and "),
            _ if is_manager => "its service".to_owned(),
            _ => unit.clone(),
        };
        let together = format!("place both by one profile, with a [[placement.service]] for {named}, too");
        let cure = match entry {
            // What the boot loader gives goes as a whole, and an entry of the same profile may have given it.
            Some(entry) => match self.gives_at_boot(entry) {
                Some(ids) => format!("{together}: planish undo {ids}, then apply that with --persist"),
                None => {
                    format!("{together}, and apply it --instead-of {0}; or planish undo {0} first", entry.id)
                }
            },
            None if *placed => format!("{together}; or take {place} away first"),
            None => format!("choose other CPUs by `cpus`, or take CPUAffinity= out of {source}"),
        };
        let kind = Kind::Service { placed: *placed, isolated };
        Some(Holder { cpus: cpus.clone(), what: format!("{unit} {what} ({by})"), cure, kind })
    }

    /// The entries of the profile of one, that and later ones, where any of them has the boot loader give arguments of
    /// its placement: the newest goes first.
    fn gives_at_boot(&self, entry: &Entry) -> Option<String> {
        let is_of_boot = |step: &EntryStep| {
            !step.is_undone() && step.knob.is_persistence() && step.wanted.contains("irqaffinity=")
        };
        let own = self.open.iter().filter(|other| other.is_open() && other.profile == entry.profile);
        let own: Vec<&Entry> = own.rev().collect();
        let is_given = own.iter().any(|entry| entry.steps.iter().any(is_of_boot));
        let ids: Vec<String> = own.iter().map(|entry| entry.id.to_string()).collect();
        is_given.then(|| ids.join(", then planish undo "))
    }

    /// The CPUs that the boot isolated, and those that the next one will, unless the plan says that anew.
    fn at_boot(&self, machine: &Machine, request: &PlacementRequest) -> Vec<Holder> {
        let mut holders = Vec::new();
        let mut add = |cpus: Cpus, what: String, cure: &str| {
            if !cpus.is_empty() {
                let cure = format!("isolate = true for it, other CPUs by `cpus`, or {cure}");
                holders.push(Holder { cpus, what, cure, kind: Kind::Boot });
            }
        };
        let running = machine.partitions.isolated.clone();
        let told = "the boot isolated from the scheduler (/sys/devices/system/cpu/isolated)".to_owned();
        add(running, told, "a boot without isolcpus= first");
        let says_anew =
            request.isolation != Isolation::Now && request.service.iter().any(|service| service.isolate);
        let next = self.observation.persisted.get("cmdline:isolcpus").filter(|_| !says_anew);
        let last = self.observation.cpus_present.iter().last();
        let last = last.or_else(|| machine.online().iter().last()).unwrap_or(0);
        let goes = |found: &&Persisted| {
            let holder = self.holder(|step| Persisted::own_file(&found.source) == Some(step.place.as_str()));
            self.instead_of.is_some() && holder.map(|entry| entry.id) == self.instead_of
        };
        if let Some(found) = next.filter(|found| !goes(found))
            && let Some(list) = BootCpus::parse(&found.value)
        {
            let cpus: Cpus = list.cpus(last).into_iter().collect();
            let holder = self.holder(|step| Persisted::own_file(&found.source) == Some(step.place.as_str()));
            let by =
                holder.map(|entry| format!("entry {}, {}; ", entry.id, entry.profile)).unwrap_or_default();
            let cure = holder.map_or_else(
                || format!("take isolcpus= out of {} first", found.source),
                |entry| format!("planish undo {} first", entry.id),
            );
            let new = cpus.without(&machine.partitions.isolated);
            add(new, format!("the next boot isolates from the scheduler ({by}{})", found.source), &cure);
        }
        holders
    }
}

/// The services that an entry has placed.
fn placed_of(entry: &Entry) -> Vec<String> {
    let placed = |step: &EntryStep| step.knob.as_str() == PLACES && !step.is_undone();
    entry.steps.iter().filter(|step| placed(step)).filter_map(placed_by).map(|own| own.unit).collect()
}

/// What a step of an entry pins, where its file is not there yet.
fn placed_by(step: &EntryStep) -> Option<PinnedService> {
    let (unit, _) = step.place.strip_prefix("/etc/systemd/system/")?.split_once(".d/")?;
    let of = |name: &str| step.wanted.split_whitespace().find_map(|word| word.strip_prefix(name));
    let slice = of("Slice=").unwrap_or("system.slice").to_owned();
    let cpus = of("CPUAffinity=").and_then(Cpus::parse)?;
    Some(PinnedService { unit: unit.to_owned(), cpus, slice, placed: true, source: step.place.clone() })
}
