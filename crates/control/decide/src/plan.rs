//! From a profile to a plan: which writes, in which order, and what is left alone for which reason.

use std::collections::{BTreeMap, BTreeSet};

use planish_model::{
    Access, Case, Catalogue, Class, Computation, Conditions, Entry, EntryId, EntryStep, Knob, KnobId,
    NO_GROUP, NOT_GIVEN, Nodes, Observation, Original, Part, Plan, Profile, Reading, Sizing, Skipped, Step,
    Undo, Verdict, VerdictKind, Want, given_in_vain, place,
};
use planish_sorted::SortSmall as _;

use crate::budget::{Budget, Budgets, ByNode};
use crate::coupled::{coupled, is_moved, moved_away, pinned_away};
use crate::error::DecideError;
use crate::held::By;
use crate::next_boot::beyond_next_boot;
use crate::placement::{self, Ask, PlacementError, What};
use crate::pool::{Need, Own, Raise, came_short, raised_beside_idle, raises, scattered};
use crate::verdict::{beyond_undo, unmet};
use crate::{
    against, back, boot, bounds, caches, cards, cpus, held, mounts, names, order, overlays, parts, units,
    verdict, writers,
};

/// What the user allows and names besides the profile.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Classes that may be set besides `safe`. `security` is never allowed as a class, only by naming the
    /// knob.
    pub allow_classes: Vec<Class>,
    /// Knobs that may be set whatever their class, save one-way ones and actions.
    pub allow_knobs: Vec<KnobId>,
    /// What the service that was named needs, for profiles that want a pool for it.
    pub sizing: Option<Sizing>,
    /// Knobs that are left as they are, and second writers whose places are left to them.
    pub exclude: Vec<String>,
    /// The open entry that the plan takes the place of: what it holds and the plan wants is taken over.
    pub instead_of: Option<EntryId>,
    /// Whether files for the next boot come with it: lines of others that are applied before those are no rivals.
    pub persist: bool,
    /// Whether it writes files, so that what entries of this profile hold is held in any case.
    pub files: bool,
}

/// Everything that will be written to make the host what the profile wants, in order.
///
/// `profile` is resolved: nothing is inherited any more. `open` holds the open entries of the journal; pages
/// that those of this boot hold for the same profile are not asked for again.
///
/// # Errors
/// A knob in the profile or in the options that the catalogue does not have; a placement that this host cannot have
/// whole.
pub fn plan(
    catalogue: &Catalogue,
    observation: &Observation,
    profile: &Profile,
    open: &[Entry],
    options: &Options,
) -> Result<Plan, DecideError> {
    for id in &options.allow_knobs {
        catalogue.knob(id)?;
    }
    for name in &options.exclude {
        catalogue.knob_or_writer(name)?;
    }
    let mut draft = Draft::new(catalogue, observation, profile, open, options);
    let (placement, asks, mut remarks) = match &profile.placement {
        Some(request) => {
            let found = placement::place(observation, request, open, options.instead_of);
            found.map(|(placed, asks, remarks)| (Some(placed), asks, remarks))?
        }
        None => (None, Vec::new(), Vec::new()),
    };
    for (id, want) in &profile.want {
        let knob = catalogue.knob(id)?;
        names::refuse(knob, want, catalogue, observation)?;
        if !options.exclude.iter().any(|name| name == id.as_str()) {
            cpus::refuse(knob, want, observation)?;
            parts::refuse(knob, want, observation)?;
            caches::refuse(knob, want, observation)?;
        }
        match (asks.iter().any(|ask| ask.knob == *id), knob.undo) {
            (false, _) => draft.add(knob, want),
            // Pools are sized for the services that are placed, and not for the one that was named.
            (true, Undo::Subtract) => remarks.push(format!(
                "{id} of [want] gives way to `pools` of [placement], which are sized for the services that are placed"
            )),
            (true, _) => return Err(PlacementError::Twice { knob: id.clone() }.into()),
        }
    }
    let allowed = draft.add_placement(&asks)?;
    draft.grant_pools();
    let mut plan = draft.finish();
    tell_impossible(catalogue, observation, profile, open, options, &mut plan);
    if let Some((place, knobs)) = plan.named_twice() {
        return Err(DecideError::OnePlace { place: place.to_owned(), knobs: knobs.map(KnobId::clone) });
    }
    parts::refuse_plan(&plan, catalogue, observation)?;
    if let Some(placed) = placement.as_ref().filter(|_| allowed) {
        against::refuse_against(catalogue, observation, placed, &plan)?;
    }
    against::refuse_each_other(catalogue, observation, profile, &plan)?;
    if placement.is_none() {
        placement::refuse_unpinned(&plan, catalogue, observation)?;
    } else if allowed {
        placement::refuse_half(&asks, &plan)?;
        remarks.extend(placement::left(&asks, &plan));
    }
    remarks.extend(raised_beside_idle(&plan.steps));
    remarks.extend(scattered(&plan.steps, observation));
    let entries = (open, options.instead_of);
    remarks.extend(moved_away(catalogue, observation, (&profile.name, &plan), entries));
    remarks.extend(cpus::split_cores(observation, &plan));
    remarks.extend(against::doubtful_lists(observation, &plan));
    remarks.extend(units::read_later(catalogue, observation, &plan));
    let mut overlays = overlays::overlays(open, &observation.host.boot_id, &plan);
    overlays.retain(|overlay| Some(overlay.entry) != options.instead_of);
    Ok(Plan { placement, overlays, remarks, ..plan })
}

/// Tells what could not be had even where it were allowed: nobody is sent to allow a class to hear that after it.
fn tell_impossible(
    catalogue: &Catalogue,
    observation: &Observation,
    profile: &Profile,
    open: &[Entry],
    options: &Options,
    plan: &mut Plan,
) {
    let waits = |row: &&Skipped| row.not_allowed && !options.allow_knobs.contains(&row.knob);
    let waiting: BTreeSet<KnobId> = plan.skipped.iter().filter(waits).map(|row| row.knob.clone()).collect();
    if waiting.is_empty() {
        return;
    }
    let allow_knobs = options.allow_knobs.iter().chain(&waiting).cloned().collect();
    let allowing = Options { allow_knobs, ..options.clone() };
    // What two of its values say of each other is told when they are asked for.
    let Ok(allowed) = self::plan(catalogue, observation, profile, open, &allowing) else { return };
    // What is not here at any place needs no permission, either. Of a placement it is told by the whole of it.
    let is_elsewhere = |id: &KnobId| {
        let mut steps = allowed.steps.iter().chain(&allowed.boot);
        let mut rows = allowed.skipped.iter().filter(|row| row.knob == *id);
        profile.want.contains_key(id) && !steps.any(|step| step.knob == *id) && rows.all(Skipped::is_not_here)
    };
    let never = |row: &&Skipped| waiting.contains(&row.knob) && (row.impossible || is_elsewhere(&row.knob));
    let never: Vec<Skipped> = allowed.skipped.iter().filter(never).cloned().collect();
    plan.skipped.retain(|row| !row.not_allowed || !never.iter().any(|other| other.knob == row.knob));
    plan.skipped.extend(never);
}

/// Why the user has not allowed a knob.
#[must_use]
pub fn forbidden(knob: &Knob, options: &Options) -> Option<String> {
    let named = options.allow_knobs.contains(&knob.id);
    match knob.class {
        Class::Safe => None,
        class @ (Class::Oneway | Class::Action) => beyond_undo(class).map(str::to_owned),
        Class::Security if named => None,
        Class::Security => Some(format!("weakens a protection: allow it by name, --allow-knob {}", knob.id)),
        class if named || options.allow_classes.contains(&class) => None,
        Class::Availability => Some("may stall the host: --allow availability".to_owned()),
        Class::Durability => Some("may lose data at a crash: --allow durability".to_owned()),
    }
}

/// Devices of this host that are named before the others are only counted.
const HERE_NAMED_MAX: usize = 4;

/// A plan that is being made.
struct Draft<'a> {
    catalogue: &'a Catalogue,
    observation: &'a Observation,
    profile: &'a Profile,
    open: &'a [Entry],
    options: &'a Options,
    pools: Vec<(Raise<'a>, Verdict)>,
    steps: Vec<Step>,
    skipped: Vec<Skipped>,
    /// What entries of this profile hold already, and how it is told where the plan has nothing else to do.
    own: Vec<(Step, Skipped)>,
    /// Boot parameters that a boot loader is to give.
    boot: Vec<Step>,
    /// Memory that pools reserved at boot may still take.
    boot_memory: Budget,
    /// What files would set pools to at the next boot, by place.
    lines: BTreeMap<String, u64>,
}

impl<'a> Draft<'a> {
    fn new(
        catalogue: &'a Catalogue,
        observation: &'a Observation,
        profile: &'a Profile,
        open: &'a [Entry],
        options: &'a Options,
    ) -> Self {
        let (pools, steps, skipped, boot) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let boot_memory = Budget::at_boot(&observation.host);
        let lines = BTreeMap::new();
        Self {
            catalogue,
            observation,
            profile,
            open,
            options,
            pools,
            steps,
            skipped,
            own: Vec::new(),
            boot,
            boot_memory,
            lines,
        }
    }

    /// Adds what one wanted value comes to.
    fn add(&mut self, knob: &'a Knob, want: &Want) {
        if let Some(reason) = forbidden(knob, self.options) {
            let verdict = Verdict::new(VerdictKind::Blocked, reason);
            let literals = want.literals();
            let one = literals.first().filter(|one| literals.iter().all(|other| other == *one)).cloned();
            self.skip(knob, &knob.path, one, verdict);
            return self.is_not_allowed();
        }
        match want {
            Want::Int(_) | Want::Text(_) => {
                let (value, needs) = (want.literal().unwrap_or_default(), Conditions::default());
                self.add_cases(knob, &[Case { value, only: None, needs }]);
            }
            Want::Case(case) => self.add_cases(knob, std::slice::from_ref(case.as_ref())),
            Want::Cases(cases) => self.add_cases(knob, cases),
            Want::Need { need_bytes, nodes } => {
                let _ = self.add_pool(knob, Need::Bytes(*need_bytes, nodes));
            }
            Want::Needs { need_bytes, nodes } => {
                let _ = self.add_pool(knob, Need::Each(need_bytes, nodes));
            }
            Want::Total { total_bytes, nodes } => {
                let _ = self.add_pool(knob, Need::Total(*total_bytes, nodes));
            }
            Want::Totals { total_bytes, nodes } => {
                let _ = self.add_pool(knob, Need::Totals(total_bytes, nodes));
            }
            Want::From { from: Computation::ServicePool } => match &self.options.sizing {
                Some(sizing) => {
                    let _ = self.add_pool(knob, Need::Service(sizing));
                }
                None => {
                    let verdict = Verdict::new(
                        VerdictKind::Blocked,
                        "the size follows from the service: name it with --service",
                    );
                    self.skip(knob, &knob.path, None, verdict);
                }
            },
            Want::From { from: Computation::MinFreeHalfPercent } => self.add_min_free(knob),
        }
    }

    /// For every place of a knob the first case that means it and whose conditions hold.
    fn add_cases(&mut self, knob: &'a Knob, cases: &[Case]) {
        let unmet: Vec<Option<String>> =
            cases.iter().map(|case| unmet(&case.needs, &self.observation.host)).collect();
        let holding = || cases.iter().zip(&unmet).filter(|(_, unmet)| unmet.is_none()).map(|(case, _)| case);
        if holding().next().is_none() {
            let reasons: Vec<String> = unmet.into_iter().flatten().collect();
            let verdict = Verdict::new(VerdictKind::Moot, format!("advice {}", reasons.join("; ")));
            return self.skip(knob, &knob.path, cases.first().map(|case| case.value.clone()), verdict);
        }
        let observation = self.observation;
        let readings = observation.knobs.get(&knob.id).map_or(&[][..], Vec::as_slice);
        let mut found = false;
        for reading in readings {
            let here = reading.access != Access::Absent;
            if let Some(verdict) = (!here).then(|| names::no_service(knob, cases, observation)).flatten() {
                let wanted = holding().next().map(|case| case.value.clone());
                return self.skip_nothing_named(knob, &reading.place, wanted, verdict);
            }
            let meant = |case: &&Case| {
                let only = case.only.as_deref().filter(|_| here);
                only.is_none_or(|only| place::is_meant(&knob.path, &reading.place, only))
            };
            if let Some(case) = holding().find(meant) {
                found = true;
                if let Some(verdict) = cards::beside_cards(knob, &reading.place, case.only.as_deref()) {
                    self.skip(knob, &reading.place, Some(case.value.clone()), verdict);
                    continue;
                }
                self.add_place(knob, reading, &case.value, None);
            }
        }
        if !found {
            let only: Vec<String> =
                holding().filter_map(|case| Some(format!("`{}`", case.only.as_ref()?))).collect();
            let reason = match only.as_slice() {
                [] => "was not looked for on this host".to_owned(),
                only => {
                    format!("no place of it matches {}{}", only.join(" or "), self.there_are(knob, cases))
                }
            };
            let wanted = holding().next().map(|case| case.value.clone());
            let verdict = Verdict::new(VerdictKind::Absent, reason);
            match only.is_empty() {
                true => self.skip(knob, &knob.path, wanted, verdict),
                false => self.skip_nothing_named(knob, &knob.path, wanted, verdict),
            }
        }
    }

    /// What this host has where patterns mean none of it.
    fn there_are(&self, knob: &Knob, cases: &[Case]) -> String {
        let patterns = cases.iter().filter_map(|case| case.only.as_deref());
        let here: BTreeSet<&str> =
            patterns.flat_map(|only| names::here(knob, only, self.observation)).collect();
        let shown = |name: &str| place::shown(&knob.path, name).to_owned();
        let mut named: Vec<String> = here.iter().take(HERE_NAMED_MAX).map(|name| shown(name)).collect();
        if here.len() > HERE_NAMED_MAX {
            named.push(format!("{} more", here.len() - HERE_NAMED_MAX));
        }
        if named.is_empty() { String::new() } else { format!(": this host has {}", named.join(", ")) }
    }

    /// A value for one place.
    fn add_place(&mut self, knob: &'a Knob, reading: &Reading, wanted: &str, because: Option<String>) {
        if let Some(reason) = self.left_out(knob, &reading.place) {
            return self.skip_left_out(knob, &reading.place, wanted.to_owned(), reason);
        }
        let verdict = verdict(knob, self.observation, reading);
        let whole = knob.r#type.completed(reading.value.as_deref(), wanted);
        let whole = mounts::in_bytes(&knob.r#type, whole, &self.observation.host);
        let as_good = units::as_good(&knob.r#type, reading.value.as_deref(), &whole);
        let wanted = as_good.as_deref().unwrap_or(&whole);
        if reading.value.as_deref().is_some_and(|now| knob.r#type.same(now, wanted)) {
            return self.add_satisfied(knob, reading, wanted, verdict);
        }
        let unit = self.observation.units.get(&reading.place);
        if let Some(verdict) = unit.and_then(units::hindered) {
            return self.skip(knob, &reading.place, Some(wanted.to_owned()), verdict);
        }
        let (word, unsure) = match units::fit(&knob.r#type, unit, reading.value.as_deref(), wanted) {
            units::Fit::Write(word) => (word, None),
            units::Fit::Unsure(reason, word) => (word, Some(reason)),
            units::Fit::Enough(reason) => {
                let verdict = Verdict::new(VerdictKind::Moot, reason);
                return self.skip(knob, &reading.place, Some(wanted.to_owned()), verdict);
            }
        };
        let because = because.or_else(|| unit.map(units::told));
        if verdict.verdict == VerdictKind::Reboot {
            return self.add_boot(knob, reading, wanted, verdict);
        }
        if verdict.verdict != VerdictKind::Settable {
            return self.skip_unsettable(knob, &reading.place, wanted.to_owned(), verdict);
        }
        if let Some(reason) = placement::fixed(self.observation, knob, &reading.place) {
            let verdict = Verdict::new(VerdictKind::Moot, reason);
            return self.skip(knob, &reading.place, Some(wanted.to_owned()), verdict);
        }
        if !reading.offered.is_empty() && !reading.offered.contains(&word) {
            let offered = reading.offered.join(", ");
            let verdict =
                Verdict::new(VerdictKind::Absent, format!("`{word}` is not offered here: {offered}"));
            return self.skip_nothing_named(knob, &reading.place, Some(wanted.to_owned()), verdict);
        }
        if let Some(reason) = cards::beyond_limit(knob, reading, &word) {
            return self.skip_impossible(knob, &reading.place, wanted, reason);
        }
        if let Some(verdict) = cards::refusal(knob, reading, &word, self.observation, self.options) {
            return self.skip_refused(knob, &reading.place, wanted, verdict);
        }
        let now = reading.value.clone().unwrap_or_default();
        let made = self.made_otherwise(knob, &reading.place, &now, wanted);
        // Of the entry that goes it is written once more: what becomes of the plan must hold it.
        if let Some(entry) = made.filter(|entry| self.options.instead_of != Some(*entry)) {
            return self.skip_made_otherwise(knob, &reading.place, wanted, &now, entry);
        }
        let is_named = self.options.allow_knobs.contains(&knob.id);
        if let Some(reason) = bounds::is_less_now(knob, self.observation, &now, &word).filter(|_| !is_named) {
            let verdict = Verdict::new(VerdictKind::Moot, reason);
            return self.skip(knob, &reading.place, Some(wanted.to_owned()), verdict);
        }
        let class = match self.class_of(knob, &now, &word, unsure) {
            Ok(class) => class,
            Err(verdict) => return self.skip_refused(knob, &reading.place, wanted, verdict),
        };
        let coupled = coupled(self.catalogue, self.observation, knob, &reading.place);
        self.steps.push(Step {
            class,
            coupled,
            because,
            ..Step::of(knob, &reading.place, now, word, verdict)
        });
    }

    /// The class of a value, which may need leave where its row needs none; else why it needs more than was given.
    fn class_of(&self, knob: &Knob, now: &str, word: &str, unsure: Option<String>) -> Result<Class, Verdict> {
        let unsafe_way = unsure
            .map(|reason| (Class::Availability, reason))
            .or_else(|| bounds::unsafe_way(knob.bound, now, word))
            .or_else(|| bounds::ends_amount(knob, self.observation, self.open, word));
        match unsafe_way {
            Some((class, why)) if !self.allows(knob, class) => Err(Verdict::new(VerdictKind::Blocked, why)),
            // Whoever reads the plan later sees what was allowed.
            Some((class, _)) if knob.may_need_leave() => Ok(class),
            _ => Ok(knob.class),
        }
    }

    /// A place that is as wanted.
    fn add_satisfied(&mut self, knob: &Knob, reading: &Reading, wanted: &str, verdict: Verdict) {
        // What the running kernel was given counts too, beside what comes to it.
        let _ = boot::refusal(knob, wanted, &self.observation.host, &mut self.boot_memory);
        // Nobody else than whoever names the knob may have each boot set it.
        let refused = cards::refusal(knob, reading, wanted, self.observation, self.options);
        let not_to_keep = refused.map(|verdict| verdict.reason);
        let boot = &self.observation.host.boot_id;
        let holder = || held::by((self.open, boot), self.profile, self.options.instead_of, (knob, reading));
        let by = not_to_keep.is_none().then(holder).flatten();
        let row =
            Skipped::satisfied(knob.id.clone(), reading.place.clone(), wanted.to_owned(), verdict.clone());
        let row = Skipped { not_to_keep, ..row };
        match by {
            Some(By::Other(entry)) => self.steps.push(self.held(entry, knob, reading, wanted, verdict)),
            Some(By::Own(entry)) => self.own.push((self.held(entry, knob, reading, wanted, verdict), row)),
            Some(By::Derived) => self.steps.push(self.as_it_is(knob, reading, wanted, verdict)),
            None => self.skipped.push(row),
        }
    }

    /// Whether a class may be set, for a knob.
    fn allows(&self, knob: &Knob, class: Class) -> bool {
        self.options.allow_classes.contains(&class) || self.options.allow_knobs.contains(&knob.id)
    }

    /// A step that writes nothing: its value is there by an entry, and what becomes of the plan holds it.
    fn held(&self, entry: EntryId, knob: &Knob, reading: &Reading, wanted: &str, verdict: Verdict) -> Step {
        let beside = (self.options.instead_of != Some(entry)).then_some(entry);
        let how = if beside.is_some() { "set by" } else { "taken over from" };
        let because = Some(format!("{how} entry {entry}: not written"));
        let held = self.as_it_is(knob, reading, wanted, verdict);
        Step { because, part: Some(Part::TakenOver), beside, ..held }
    }

    /// A step for a value that is there.
    fn as_it_is(&self, knob: &Knob, reading: &Reading, wanted: &str, verdict: Verdict) -> Step {
        let coupled = coupled(self.catalogue, self.observation, knob, &reading.place);
        let (now, word) = (reading.value.clone().unwrap_or_default(), knob.r#type.normal(wanted));
        Step { coupled, ..Step::of(knob, &reading.place, now, word, verdict) }
    }

    /// What entries of this profile hold already is held by a newer one, too: an undo of the older takes nothing of it.
    fn hold_own(&mut self) {
        let own = std::mem::take(&mut self.own);
        match self.steps.is_empty() && !self.options.files {
            true => self.skipped.extend(own.into_iter().map(|(_, row)| row)),
            false => self.steps.extend(own.into_iter().map(|(step, _)| step)),
        }
    }

    /// What is as wanted, and would not be any more behind a step of this plan, is written once more behind that.
    fn write_again(&mut self) {
        let (catalogue, observation) = (self.catalogue, self.observation);
        let mut again = Vec::new();
        for row in std::mem::take(&mut self.skipped) {
            let by =
                self.steps.iter().find(|step| is_moved(catalogue, &row, step)).map(|step| step.knob.clone());
            let readings = observation.knobs.get(&row.knob).into_iter().flatten();
            let reading = readings.into_iter().find(|reading| reading.place == row.place);
            match (by, catalogue.knob(&row.knob), reading, &row.wanted) {
                (Some(by), Ok(knob), Some(reading), Some(wanted)) => {
                    let because = Some(format!("once more behind {by}, for which the kernel makes it anew"));
                    let step = self.as_it_is(knob, reading, wanted, row.verdict);
                    again.push(Step { because, ..step });
                }
                _ => self.skipped.push(row),
            }
        }
        self.steps.extend(again);
    }

    fn left_out(&self, knob: &Knob, place: &str) -> Option<String> {
        writers::left_out(self.catalogue, self.observation, &self.options.exclude, &knob.id, place)
    }

    /// A value that only a boot can bring: `apply --persist` has the boot loader give it, unless it comes already.
    fn add_boot(&mut self, knob: &Knob, reading: &Reading, wanted: &str, verdict: Verdict) {
        if let Some(reason) = boot::unread(knob, wanted, &self.observation.host) {
            let verdict = Verdict::new(VerdictKind::Absent, reason);
            return self.skip(knob, &reading.place, Some(wanted.to_owned()), verdict);
        }
        let in_vain = reading.value.as_deref().and_then(given_in_vain);
        if in_vain.is_some_and(|given| knob.r#type.same(given, wanted)) {
            let why = "this kernel was given it at its boot and did not take it: it has no such parameter, or not \
                       what it names";
            let verdict = Verdict::new(VerdictKind::Blocked, why);
            return self.skip_unsettable(knob, &reading.place, wanted.to_owned(), verdict);
        }
        let persisted = self.observation.persisted.get(&reading.place);
        let comes = persisted.filter(|found| knob.r#type.same(&found.value, wanted));
        let comes = comes.filter(|_| !self.leaves(knob, wanted));
        let refused = boot::refusal(knob, wanted, &self.observation.host, &mut self.boot_memory);
        if let Some(reason) = refused.filter(|_| comes.is_none()) {
            let (id, place, wanted) = (knob.id.clone(), reading.place.clone(), wanted.to_owned());
            return self.skipped.push(Skipped::impossible(id, place, wanted, reason));
        }
        let Some(cure) = boot::cure(knob, wanted).filter(|_| comes.is_none()) else {
            let stale = comes.filter(|found| found.at_boot.is_some()).map(|found| {
                let cure = self.observation.boot.menu_cure().map(|cure| format!(": {cure}"));
                let reason =
                    format!("in {}, and the boot loader's menu was not made anew since", found.source);
                Verdict::new(VerdictKind::Reboot, reason + &cure.unwrap_or_default())
            });
            let verdict = stale.unwrap_or(verdict);
            return self.skip(knob, &reading.place, Some(wanted.to_owned()), verdict);
        };
        let verdict = Verdict::new(VerdictKind::Reboot, cure);
        if knob.argument(wanted).is_some() {
            let now = reading.value.clone().unwrap_or_default();
            let word = knob.r#type.normal(wanted);
            self.boot.push(Step::of(knob, &reading.place, now, word, verdict.clone()));
        }
        self.skip(knob, &reading.place, Some(wanted.to_owned()), verdict);
    }

    /// Whether a boot parameter goes with the entry whose place is taken: what the next boot gives of it is that one's.
    fn leaves(&self, knob: &Knob, wanted: &str) -> bool {
        let old = self.open.iter().filter(|entry| self.options.instead_of == Some(entry.id));
        let steps = old.flat_map(|entry| &entry.steps).filter(|step| !step.is_undone());
        let argument = knob.argument(wanted);
        argument.is_some_and(|argument| steps.flat_map(EntryStep::boot_parameters).any(|own| own == argument))
    }

    /// The open entry of this boot that wrote the wanted value and read back the one that is there now: writing
    /// it once more would bring nothing.
    fn made_otherwise(&self, knob: &Knob, place: &str, now: &str, wanted: &str) -> Option<EntryId> {
        let boot = &self.observation.host.boot_id;
        let own = self.open.iter().filter(|entry| entry.is_open() && &entry.boot_id == boot);
        let mut steps = own.flat_map(|entry| entry.steps.iter().map(move |step| (entry.id, step)));
        let made = |step: &EntryStep| step.made_otherwise() && step.place == place && !step.is_undone();
        let same =
            |step: &EntryStep| knob.r#type.same(&step.wanted, wanted) && knob.r#type.same(step.ours(), now);
        steps.find(|(_, step)| made(step) && same(step)).map(|(id, _)| id)
    }

    /// `vm.min_free_kbytes`: half a percent of memory, and never less than now.
    fn add_min_free(&mut self, knob: &'a Knob) {
        let memory = self.observation.host.memory_bytes;
        let now = self
            .observation
            .knobs
            .get(&knob.id)
            .and_then(|readings| readings.first()?.value.as_deref()?.trim().parse::<u64>().ok())
            .unwrap_or(0);
        let wanted = (memory / 200 / 1024).max(now);
        let because = format!("0.5 % of {}, and never less than now", planish_model::units::bytes(memory));
        let observation = self.observation;
        for reading in observation.knobs.get(&knob.id).into_iter().flatten() {
            self.add_place(knob, reading, &wanted.to_string(), Some(because.clone()));
        }
    }

    /// Adds what a placement wants: all of it, or, where one part is not allowed, none.
    fn add_placement(&mut self, asks: &[Ask]) -> Result<bool, DecideError> {
        let catalogue = self.catalogue;
        let mut refused = None;
        for ask in asks {
            let reason = forbidden(catalogue.knob(&ask.knob)?, self.options);
            refused = refused.or(reason.map(|reason| (&ask.knob, reason)));
        }
        for Ask { knob, what, because } in asks {
            let knob = catalogue.knob(knob)?;
            if let Some((id, reason)) = &refused {
                let verdict =
                    Verdict::new(VerdictKind::Blocked, format!("placed whole or not at all: {id} {reason}"));
                match what {
                    What::Value { place, value, .. } => self.skip(knob, place, Some(value.clone()), verdict),
                    What::Later { place, value, .. } => {
                        self.skip(knob, place, Some(value.clone()), verdict);
                    }
                    What::Pool { .. } => self.skip(knob, &knob.path, None, verdict),
                }
                self.is_not_allowed();
                continue;
            }
            match what {
                What::Pool { node, bytes } => {
                    let hindrance = self.add_pool(knob, Need::Bytes(*bytes, &Nodes::Each(vec![*node])));
                    if let Some((place, reason)) = hindrance {
                        return Err(PlacementError::Half { knob: knob.id.clone(), place, reason }.into());
                    }
                }
                What::Later { place, value, reason } => {
                    let verdict = Verdict::new(VerdictKind::Absent, reason.clone());
                    self.skip(knob, place, Some(value.clone()), verdict);
                }
                What::Value { place, value, .. } => match self.reading_of(knob, place) {
                    Some(reading) => self.add_place(knob, &reading, value, Some(because.clone())),
                    None => {
                        let verdict = Verdict::new(VerdictKind::Absent, "this host does not have it");
                        self.skip(knob, place, Some(value.clone()), verdict);
                    }
                },
            }
        }
        Ok(refused.is_none())
    }

    /// What a place shows. A file of ours that is not there yet can be made, and so can a group of the caches.
    fn reading_of(&self, knob: &Knob, place: &str) -> Option<Reading> {
        let seen = self.observation.reading(&knob.id, place).cloned();
        let seen = seen.filter(|reading| !(knob.is_own_file() && reading.access == Access::Absent));
        let access = if self.observation.host.root { Access::Writable } else { Access::NeedsRoot };
        let caches = self.observation.caches.as_ref();
        let is_group =
            place.starts_with(place::RESCTRL_GROUPS) && caches.is_some_and(|found| found.hindered.is_none());
        let nothing = if is_group { NO_GROUP } else { NOT_GIVEN };
        seen.or_else(|| {
            (is_group || knob.is_own_file()).then(|| Reading {
                place: place.to_owned(),
                value: Some(nothing.to_owned()),
                unread: None,
                offered: Vec::new(),
                max: None,
                access,
            })
        })
    }

    fn own(&self) -> Own<'a> {
        Own { profile: &self.profile.name, instead_of: self.options.instead_of, open: self.open }
    }

    /// Pools are only noted here: what they may take is decided when all are known, the largest pages first. Returns
    /// the first place that is left as it is whatever the memory has, and why.
    fn add_pool(&mut self, knob: &'a Knob, need: Need<'_>) -> Option<(String, String)> {
        let mut hindrance = None;
        let found = raises(knob, need, self.own(), self.catalogue, self.observation);
        match found {
            Err(reason) => {
                hindrance = Some((knob.path.clone(), reason.clone()));
                self.skip(knob, &knob.path, None, Verdict::new(VerdictKind::Absent, reason));
            }
            Ok(raises) => {
                for raise in raises {
                    if let Some(reason) = self.left_out(raise.knob, &raise.pool.place) {
                        hindrance = hindrance.or_else(|| Some((raise.pool.place.clone(), reason.clone())));
                        self.skip_left_out(raise.knob, &raise.pool.place, raise.wanted().to_string(), reason);
                        continue;
                    }
                    let verdict = match self.observation.reading(&raise.knob.id, &raise.pool.place) {
                        Some(reading) => verdict(raise.knob, self.observation, reading),
                        None => Verdict::new(VerdictKind::Absent, "was not looked for on this host"),
                    };
                    if verdict.verdict != VerdictKind::Settable && raise.pages() > 0 {
                        let why = || (raise.pool.place.clone(), verdict.reason.clone());
                        hindrance = hindrance.or_else(|| Some(why()));
                    }
                    self.pools.push((raise, verdict));
                }
            }
        }
        hindrance
    }

    /// Turns pools into steps as far as the host's memory goes. A need is granted on all its nodes or on
    /// none.
    fn grant_pools(&mut self) {
        let mut budget = Budgets::of(self.observation);
        let mut pools = std::mem::take(&mut self.pools);
        pools.sort_small_by_key(|(raise, _)| std::cmp::Reverse(raise.pool.page_bytes));
        self.note_lines(&pools);
        for need in pools.chunk_by(|(a, _), (b, _)| a.knob.id == b.knob.id) {
            let writable = |(_, verdict): &&(Raise<'_>, Verdict)| verdict.verdict == VerdictKind::Settable;
            let mut wanted = ByNode::new();
            for (raise, _) in need.iter().filter(writable) {
                let bytes = raise.pages().saturating_mul(raise.pool.page_bytes);
                let of_node = wanted.entry(raise.pool.node).or_default();
                *of_node = of_node.saturating_add(bytes);
            }
            let refused = budget.take(&wanted).err();
            // What is too much at this moment may not be so later; what is too much for an empty machine always is.
            let impossible = Budgets::at_boot(self.observation).refusal(&wanted).is_some();
            for (raise, verdict) in need {
                self.add_raise(raise, verdict.clone(), refused.as_deref(), impossible);
            }
        }
    }

    /// Notes what files would set pools to: pages of ours, those that others give at a boot, and those that other
    /// profiles have lines for.
    fn note_lines(&mut self, pools: &[(Raise<'_>, Verdict)]) {
        let goes = |entry: &&Entry| Some(entry.id) == self.options.instead_of;
        let others = self.open.iter().filter(|entry| entry.is_open() && entry.profile != self.profile.name);
        let steps = others.filter(|entry| !goes(entry)).flat_map(|entry| &entry.steps);
        let lines = steps.filter(|step| step.is_in_file() && !step.is_undone()).flat_map(|step| &step.pools);
        let lines: Vec<_> = lines.collect();
        for (Raise { pool, need, .. }, _) in pools {
            let of_others = lines.iter().filter(|line| line.place == pool.place).map(|line| line.pages);
            let given = self.observation.pool_by_others(&pool.place).map_or(0, |(pages, _)| pages);
            let of_others = of_others.fold(given, u64::saturating_add);
            let line = self.lines.entry(pool.place.clone()).or_insert(of_others);
            *line = line.saturating_add(*need);
        }
    }

    /// Takes out the pools of the command line that the next boot could not give beside all others.
    fn refuse_boot_pools(&mut self) {
        let is_pool = |step: &Step| {
            let parameter = self.catalogue.knob(&step.knob).ok().and_then(|knob| knob.boot_parameter());
            matches!(parameter, Some(("hugepages" | "hugetlb_cma", _)))
        };
        let beyond = || beyond_next_boot(self.catalogue, self.observation, &self.boot, &self.lines);
        let is_any = self.boot.iter().any(is_pool);
        let Some(reason) = is_any.then(beyond).flatten() else { return };
        let (pools, rest) = std::mem::take(&mut self.boot).into_iter().partition(is_pool);
        self.boot = rest;
        let pools: Vec<Step> = pools;
        self.skipped.retain(|row| !pools.iter().any(|step| step.place == row.place));
        let refused = |step: Step| Skipped::impossible(step.knob, step.place, step.wanted, reason.as_str());
        self.skipped.extend(pools.into_iter().map(refused));
    }

    fn add_raise(&mut self, raise: &Raise<'_>, verdict: Verdict, refused: Option<&str>, impossible: bool) {
        let (knob, place) = (raise.knob, &raise.pool.place);
        let wanted = raise.wanted().to_string();
        if raise.pages() == 0 && raise.takes == 0 {
            let (knob, place) = (knob.id.clone(), place.clone());
            return self.skipped.push(Skipped::satisfied(knob, place, wanted, verdict));
        }
        if verdict.verdict != VerdictKind::Settable && raise.pages() > 0 {
            return self.skip_unsettable(knob, place, wanted, verdict);
        }
        // Where there are no nodes, the pools of all of them and the one of all are the same.
        if let Some(other) = self.steps.iter().find(|step| step.place == *place) {
            let reason = format!("{} of this profile raises the same pool: want one of the two", other.knob);
            return self.skip(knob, place, Some(wanted), Verdict::new(VerdictKind::Blocked, reason));
        }
        if let Some(reason) = refused.filter(|_| raise.pages() > 0) {
            let verdict = Verdict::new(VerdictKind::Blocked, reason);
            let left = Skipped::left(knob.id.clone(), place.clone(), Some(wanted), verdict);
            return self.skipped.push(Skipped { short_of_memory: true, impossible, ..left });
        }
        let asks_again = came_short(raise, self.observation, self.own()).filter(|_| raise.pages() > 0);
        if let Some((entry, reason)) = asks_again {
            self.skip(knob, place, Some(wanted), Verdict::new(VerdictKind::Blocked, reason));
            return self.was_asked_by(entry);
        }
        let now = self.observation.reading(&knob.id, place).and_then(|reading| reading.value.clone());
        self.steps.push(Step {
            raise_pages: Some(raise.pages()),
            takes_pages: (raise.takes > 0).then_some(raise.takes),
            in_all: raise.in_all,
            part: (raise.pages() == 0).then_some(Part::TakenOver),
            service: raise.service.clone(),
            because: Some(raise.because.clone()),
            ..Step::of(knob, place, now.unwrap_or_else(|| raise.pool.pages.to_string()), wanted, verdict)
        });
    }

    fn skip(&mut self, knob: &Knob, place: &str, wanted: Option<String>, verdict: Verdict) {
        self.skipped.push(Skipped::left(knob.id.clone(), place.to_owned(), wanted, verdict));
    }

    /// Leaves out what whoever asks left out, or left to another program.
    fn skip_left_out(&mut self, knob: &Knob, place: &str, wanted: String, reason: String) {
        self.skip(knob, place, Some(wanted), Verdict::new(VerdictKind::Blocked, reason));
        if let Some(row) = self.skipped.last_mut() {
            row.left_out = true;
        }
    }

    fn skip_nothing_named(&mut self, knob: &Knob, place: &str, wanted: Option<String>, verdict: Verdict) {
        self.skipped.push(Skipped::nothing_named(knob.id.clone(), place.to_owned(), wanted, verdict));
    }

    fn skip_impossible(&mut self, knob: &Knob, place: &str, wanted: &str, reason: String) {
        self.skipped.push(Skipped::impossible(knob.id.clone(), place.to_owned(), wanted.to_owned(), reason));
    }

    /// Leaves out what this host made another value of already.
    fn skip_made_otherwise(&mut self, knob: &Knob, place: &str, wanted: &str, now: &str, entry: EntryId) {
        let verdict = Verdict::new(VerdictKind::Blocked, EntryStep::told_otherwise(entry, now));
        self.skip_unsettable(knob, place, wanted.to_owned(), verdict);
        self.was_asked_by(entry);
    }

    /// Leaves out what the machine cannot have at this place, or what whoever asks has to allow.
    fn skip_refused(&mut self, knob: &Knob, place: &str, wanted: &str, verdict: Verdict) {
        let is_blocked = verdict.verdict == VerdictKind::Blocked;
        self.skip(knob, place, Some(wanted.to_owned()), verdict);
        if is_blocked {
            self.is_not_allowed();
        }
    }

    /// Notes of the row that was left out last that it waits for whoever allows it.
    fn is_not_allowed(&mut self) {
        if let Some(row) = self.skipped.last_mut() {
            row.not_allowed = true;
        }
    }

    /// Notes of the row that was left out last that an entry asked for it already.
    fn was_asked_by(&mut self, entry: EntryId) {
        if let Some(row) = self.skipped.last_mut() {
            row.asked_by = Some(entry);
        }
    }

    /// Leaves out what is allowed and this host does not let be set: absent, moot, or there and hindered.
    fn skip_unsettable(&mut self, knob: &Knob, place: &str, wanted: String, verdict: Verdict) {
        // Where it would mean nothing, it does not matter what keeps it from being set.
        let means_something = verdict::moot(&knob.needs, &self.observation.host).is_none();
        let hindered = verdict.verdict == VerdictKind::Blocked && means_something;
        let left = Skipped::left(knob.id.clone(), place.to_owned(), Some(wanted), verdict);
        self.skipped.push(Skipped { hindered, ..left });
    }

    /// What goes back with the entry that the plan takes the place of, as far as no step sets it: the plan is held
    /// against that, and not against what the entry set.
    fn going_back(&self) -> Vec<Step> {
        let goes = |entry: &&Entry| Some(entry.id) == self.options.instead_of;
        let own = self.open.iter().filter(goes).flat_map(|entry| &entry.steps);
        let boot = &self.observation.host.boot_id;
        let own = own.filter(|step| held::newest(self.open, boot, &step.place) == self.options.instead_of);
        let now = |original: &Original| {
            let reading = self.observation.reading(&original.knob, &original.place)?;
            Some(reading.value.clone().unwrap_or_default())
        };
        let mut back = back::going_back(self.catalogue, own, &now);
        back.retain(|step| !self.steps.iter().any(|other| other.place == step.place));
        back
    }

    /// Takes out the steps that would ruin the host, each with its reason.
    fn refuse_ruinous(&mut self) {
        let together = [self.steps.clone(), self.going_back()].concat();
        let mut refusals = bounds::refusals(self.catalogue, self.observation, &together);
        for (step, refusal) in self.steps.iter().zip(&mut refusals) {
            *refusal = refusal
                .take()
                .or_else(|| pinned_away(self.catalogue, self.observation, step, (&self.steps, &together)));
        }
        let steps = std::mem::take(&mut self.steps);
        for (step, refusal) in steps.into_iter().zip(refusals) {
            match refusal {
                // What is there by an entry that stays is borne.
                Some(reason) if step.beside.is_none() => {
                    self.skipped.push(Skipped::impossible(step.knob, step.place, step.wanted, reason));
                }
                _ => self.steps.push(step),
            }
        }
    }

    /// Leaves out the steps that cannot be in one plan with new queues of a card.
    fn part_queues(&mut self) {
        let reasons = cards::beside_new_queues(&self.steps);
        for (step, reason) in std::mem::take(&mut self.steps).into_iter().zip(reasons) {
            let Some(reason) = reason else {
                self.steps.push(step);
                continue;
            };
            let verdict = Verdict::new(VerdictKind::Blocked, reason);
            let left = Skipped::left(step.knob, step.place, Some(step.wanted), verdict);
            self.skipped.push(Skipped { hindered: true, ..left });
        }
    }

    fn finish(mut self) -> Plan {
        self.refuse_ruinous();
        self.refuse_boot_pools();
        self.hold_own();
        self.write_again();
        self.part_queues();
        let page_bytes = |step: &Step| {
            let pool = self.observation.pools.iter().find(|pool| pool.place == step.place);
            pool.map_or(0, |pool| pool.page_bytes)
        };
        order::sort(&mut self.steps, page_bytes, self.catalogue);
        order::keep_bounds(&mut self.steps, self.catalogue, self.observation);
        let all: Vec<&Step> = self.steps.iter().chain(&self.boot).collect();
        let second_writers =
            writers::beside(self.catalogue, self.observation, &self.profile.name, &all, self.options.persist);
        for row in &mut self.skipped {
            row.when = self.catalogue.knob(&row.knob).map(|knob| knob.when).unwrap_or_default();
        }
        let host = &self.observation.host;
        let (name, id, boot) = (self.profile.name.clone(), host.host_id.clone(), host.boot_id.clone());
        let plan = Plan::new(name, id, boot, self.steps, self.skipped).with_boot(self.boot);
        Plan { second_writers, ..plan }
    }
}

#[cfg(test)]
mod tests;
