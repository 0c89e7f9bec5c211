//! `planish export`: what a profile or a plan comes to, for tools that know neither conditions nor hosts.

use std::collections::BTreeSet;

use planish_exchange::{ArgumentsBy, Item};
use planish_model::{
    Case, Catalogue, Conditions, Knob, KnobId, Part, Plan, Profile, Skipped, Step, Undo, VerdictKind, Want,
};
use planish_sorted::CollectMap as _;
use serde::Serialize;

use crate::error::PipelineError;
use crate::intent;
use crate::plan::{PlanOptions, plan};
use crate::session::Session;
use crate::source::{Named, Source};

/// What a profile wants and an export leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The knob.
    pub knob: KnobId,
    /// Why.
    pub reason: String,
}

/// What goes out, in the order in which it is to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The profile's name.
    pub name: String,
    /// What it is for.
    pub summary: String,
    /// The values.
    pub items: Vec<Item>,
    /// What is left out.
    pub left_out: Vec<LeftOut>,
    /// What goes out though a plan for this host sets nothing of it, and why that is so: other hosts may have it.
    pub not_here: Vec<LeftOut>,
    /// Whether it is a plan for another host: its places and sizes are those of that one.
    pub is_of_another_host: bool,
    /// How this host is given arguments of its kernel.
    pub arguments_by: ArgumentsBy,
}

/// A profile for machines like this one, or a plan with its very places.
///
/// Conditions are settled here, by this host; computed values are those of a plan for it.
///
/// # Errors
/// Names that do not exist, a file that is no plan, a journal that cannot be read; values that are impossible on this
/// host, as for a plan.
pub fn outgoing(
    session: &Session,
    source: &Source,
    options: &PlanOptions,
) -> Result<Outgoing, PipelineError> {
    let made = plan(session, source, options)?;
    // Other tools would not ask: they would take the last CPU from a machine, or give it a boot that it has no memory
    // for.
    intent::refuse_impossible(&made)?;
    match source.load(session)? {
        Named::Plan(plan) => {
            let mut out = Outgoing::new(plan.profile.clone(), "A plan for one host.".to_owned());
            out.is_of_another_host = intent::is_of_another_host(session, &plan);
            let steps = wanted(&plan).map(|step| (&step.knob, Some(&step.wanted)));
            let rows = plan.skipped.iter().map(|row| (&row.knob, row.wanted.as_ref()));
            let mut knobs = planish_decide::Values::new();
            for (knob, value) in steps.chain(rows) {
                knobs.entry(knob.clone()).or_default().extend(value.cloned());
            }
            // A saved plan says it has a placement by its drop-ins: see `plan_in`.
            let catalogue = session.catalogue();
            let pins = knobs.keys().any(|id| id.as_str() == "unit.placement");
            for id in planish_decide::in_order(&knobs, catalogue) {
                let knob = catalogue.knob(&id)?;
                let placed = (pins && planish_decide::is_placed(knob)).then_some(PLACED);
                match placed.or_else(|| beyond_export(knob)) {
                    Some(reason) => out.left_out.push(LeftOut { knob: id, reason: reason.to_owned() }),
                    None => out.computed(knob, &plan, catalogue)?,
                }
            }
            if out.items.iter().any(Item::is_boot) {
                out.arguments_by = ArgumentsBy::of(&session.observe().boot);
            }
            Ok(out)
        }
        Named::Profile(profile) => of_profile(session, *profile, &made, options),
    }
}

fn of_profile(
    session: &Session,
    profile: Profile,
    made: &Plan,
    options: &PlanOptions,
) -> Result<Outgoing, PipelineError> {
    let (catalogue, observation) = (session.catalogue(), session.observe_for(&profile));
    let host = &observation.host;
    let allowed = planish_decide::Options {
        allow_classes: options.allow_classes.clone(),
        allow_knobs: options.allow_knobs.clone(),
        exclude: options.exclude.clone(),
        sizing: None,
        instead_of: None,
        persist: false,
        files: false,
    };
    let mut out = Outgoing::new(profile.name.clone(), profile.summary.clone());
    out.arguments_by = ArgumentsBy::of(&observation.boot);
    let values = |(id, want): (&KnobId, &Want)| (id.clone(), want.literals().into_iter().collect());
    let wanted: planish_decide::Values = profile.want.iter().map(values).collect_map();
    for id in planish_decide::in_order(&wanted, catalogue) {
        let knob = catalogue.knob(&id)?;
        let left_out = planish_decide::left_out(catalogue, &observation, &allowed.exclude, &id, &knob.path);
        if let Some(reason) = planish_decide::forbidden(knob, &allowed).or(left_out) {
            out.left_out.push(LeftOut { knob: id, reason });
            continue;
        }
        if let Some(reason) = beyond_export(knob) {
            out.left_out.push(LeftOut { knob: id, reason: reason.to_owned() });
            continue;
        }
        // A pattern would mean the card that the machine is reached through, too, and places whose value nobody allowed
        // to go that way: the others are named one by one.
        let waits = |row: &Skipped| {
            row.not_allowed || planish_decide::waits_for_its_name(knob, &row.place, &observation, &allowed)
        };
        if made.skipped.iter().any(|row| row.knob == id && waits(row)) {
            out.computed(knob, made, catalogue)?;
            continue;
        }
        let cases = match &profile.want[&id] {
            want if want.is_bytes() || matches!(want, Want::From { .. }) => {
                out.computed(knob, made, catalogue)?;
                continue;
            }
            Want::Case(case) => vec![case.as_ref().clone()],
            Want::Cases(cases) => cases.clone(),
            plain => {
                let (value, needs) = (plain.literal().unwrap_or_default(), Conditions::default());
                vec![Case { value, only: None, needs }]
            }
        };
        // A pattern of a file would mean the loopback, too, which a plan spares.
        if cases.iter().any(|case| planish_decide::spares_loopback(knob, case.only.as_deref())) {
            out.named(knob, made, catalogue)?;
            continue;
        }
        match knob.is_own_file() {
            true => out.units(knob, &cases, host, made),
            false => out.cases(knob, &cases, host),
        }
        out.say_not_here(knob, made);
    }
    if profile.placement.is_some() {
        out.placed(&profile, made, catalogue);
    }
    Ok(out)
}

/// The steps of a plan that set what it wants. What goes back to what was there before is of this host and this hour.
fn wanted(plan: &Plan) -> impl Iterator<Item = &Step> {
    plan.steps.iter().filter(|step| step.part != Some(Part::Back))
}

/// Why no other tool is given a part of a placement: none of them takes the service's drop-in and the interrupts of
/// this boot with it, and a half is worse than nothing.
const PLACED: &str =
    "part of a placement, which no other tool takes whole: an apply of its profile places it";

/// Why no other tool is given a knob, whatever else it is given.
fn beyond_export(knob: &Knob) -> Option<&'static str> {
    if knob.is_own_file() && planish_decide::is_placed(knob) {
        return Some(PLACED);
    }
    if knob.path.starts_with(planish_model::place::RESCTRL_GROUPS) {
        return Some(
            "a group with the CPUs of a service, which follows from a placement: an apply of its profile makes it",
        );
    }
    let made_anew = knob.path.starts_with("/sys/fs/cgroup/");
    made_anew.then_some(
        "systemd makes the control group anew at each start: an apply of its profile writes it then",
    )
}

impl Outgoing {
    fn new(name: String, summary: String) -> Self {
        Self {
            name,
            summary,
            items: Vec::new(),
            left_out: Vec::new(),
            not_here: Vec::new(),
            is_of_another_host: false,
            arguments_by: ArgumentsBy::default(),
        }
    }

    /// Values for patterns of places. In a profile the first case that means a place counts, elsewhere the last.
    ///
    /// A case for all places ends the list, as it does in a plan: what stands behind it is for other hosts.
    fn cases(&mut self, knob: &Knob, cases: &[Case], host: &planish_model::HostFacts) {
        let mut counted = Vec::new();
        for case in cases {
            if let Some(reason) = planish_decide::unmet(&case.needs, host) {
                let reason = format!("`{}`: advice {reason}", case.value);
                self.left_out.push(LeftOut { knob: knob.id.clone(), reason });
                continue;
            }
            let items = Item::meant(knob, case.only.as_deref(), &case.value);
            if items.is_empty() {
                let only = case.only.as_deref().unwrap_or_default();
                let reason = format!("no place of it can be called `{only}`");
                self.left_out.push(LeftOut { knob: knob.id.clone(), reason });
            }
            counted.extend(items);
            if case.only.is_none() {
                break;
            }
        }
        self.items.extend(counted.into_iter().rev());
    }

    /// Settings of units: of those that are here what a plan gives them, which is never less than they have; of others
    /// what the profile says, where it names them. Which units a pattern means a host tells that has some.
    fn units(&mut self, knob: &Knob, cases: &[Case], host: &planish_model::HostFacts, made: &Plan) {
        let rows = made.skipped.iter().filter(|row| row.knob == knob.id).map(|row| &row.place);
        let planned: BTreeSet<&String> =
            wanted(made).filter(|step| step.knob == knob.id).map(|step| &step.place).chain(rows).collect();
        let here = |place: &str| planned.iter().any(|at| at.as_str() == place);
        if planned.iter().any(|place| **place != knob.path) {
            self.of_rows(knob, made);
        }
        for case in cases {
            if let Some(reason) = planish_decide::unmet(&case.needs, host) {
                let reason = format!("`{}`: advice {reason}", case.value);
                self.left_out.push(LeftOut { knob: knob.id.clone(), reason });
                continue;
            }
            let only = case.only.as_deref().unwrap_or_default();
            let is_here = |at: &&String| planish_model::place::is_meant(&knob.path, at, only);
            if planned.iter().any(is_here) {
                continue;
            }
            let items = Item::meant(knob, Some(only), &case.value);
            let known: BTreeSet<String> = self.items.iter().map(|item| item.place.clone()).collect();
            let is_named = |item: &Item| !item.place.contains(['*', '?', '[']);
            // `mongod.service` would be taken for `mongod.service.service`.
            if items.is_empty() || !items.iter().all(is_named) || only.ends_with(".service") {
                let reason = format!(
                    "no unit of this host is called `{only}`, and a file of its own needs the very name: say it in \
                     `only`, without the kind at its end"
                );
                self.left_out.push(LeftOut { knob: knob.id.clone(), reason });
                continue;
            }
            self.items
                .extend(items.into_iter().filter(|item| !here(&item.place) && !known.contains(&item.place)));
        }
    }

    /// Says that a knob goes out of which a plan for this host sets nothing, and why.
    fn say_not_here(&mut self, knob: &Knob, made: &Plan) {
        let is_out = self.items.iter().any(|item| item.knob == knob.id);
        let mut rows = made.skipped.iter().filter(|row| row.knob == knob.id);
        let is_set = |row: &Skipped| row.satisfied || row.verdict.verdict == VerdictKind::Reboot;
        if !is_out || wanted(made).any(|step| step.knob == knob.id) || rows.clone().any(is_set) {
            return;
        }
        if let Some(row) = rows.next() {
            self.not_here.push(LeftOut { knob: knob.id.clone(), reason: row.verdict.reason.clone() });
        }
    }

    /// What a placement sets besides what the profile wants by itself.
    fn placed(&mut self, profile: &Profile, made: &Plan, catalogue: &Catalogue) {
        let rows = wanted(made).map(|step| &step.knob).chain(made.skipped.iter().map(|row| &row.knob));
        let placed = rows.filter(|id| !profile.want.contains_key(id));
        let placed = placed.map(|id| (id.clone(), BTreeSet::new())).collect();
        for knob in planish_decide::in_order(&placed, catalogue) {
            self.left_out.push(LeftOut { knob, reason: PLACED.to_owned() });
        }
    }

    /// Values for the places of a plan, and why there is none where there is none. A pool may be filled by its alias:
    /// on each node, or, on a kernel without NUMA, as a whole.
    fn computed(&mut self, knob: &Knob, plan: &Plan, catalogue: &Catalogue) -> Result<(), PipelineError> {
        let said = (self.items.len(), self.left_out.len());
        self.of_rows(knob, plan);
        for alias in knob.alias.iter().filter(|_| knob.undo == Undo::Subtract) {
            if !self.items.iter().any(|item| item.knob == *alias) {
                self.of_rows(catalogue.knob(alias)?, plan);
            }
        }
        if (self.items.len(), self.left_out.len()) == said
            && !self.items.iter().any(|item| item.knob == knob.id)
        {
            let reason = "a plan for this host sets nothing of it".to_owned();
            self.left_out.push(LeftOut { knob: knob.id.clone(), reason });
        }
        Ok(())
    }

    /// Values for the cards of a plan, each by its name.
    fn named(&mut self, knob: &Knob, plan: &Plan, catalogue: &Catalogue) -> Result<(), PipelineError> {
        let (items, rows) = (self.items.len(), self.left_out.len());
        self.computed(knob, plan, catalogue)?;
        let has_some = self.items.len() > items;
        let spared =
            self.left_out[rows..].iter_mut().filter(|row| row.reason == planish_decide::BESIDE_CARDS);
        for row in spared.filter(|_| has_some) {
            row.reason = "of the loopback alone, which is no card: the cards of this host are named one by one, since \
                          a pattern would mean it"
                .to_owned();
        }
        Ok(())
    }

    /// What a plan says of one knob: what it writes, what is so already, and what a boot is to bring.
    fn of_rows(&mut self, knob: &Knob, plan: &Plan) {
        let steps = wanted(plan).filter(|step| step.knob == knob.id);
        self.items.extend(steps.map(|step| Item::at(knob, &step.place, &step.wanted)));
        for row in plan.skipped.iter().filter(|row| row.knob == knob.id) {
            let at_boot = row.verdict.verdict == VerdictKind::Reboot && knob.is_given_at_boot();
            let reason = row.not_to_keep.as_ref().unwrap_or(&row.verdict.reason);
            match &row.wanted {
                Some(value) if row.not_to_keep.is_none() && (row.satisfied || at_boot) => {
                    self.items.push(Item::at(knob, &row.place, value))
                }
                _ => {
                    self.left_out.push(LeftOut { knob: knob.id.clone(), reason: reason.clone() });
                }
            }
        }
    }
}
