//! One place against its wish, against the files that a boot will read, and against what our own steps
//! caused.

mod pools;

use planish_model::{
    Access, BootLoader, BootValue, Catalogue, Cpus, DriftState, Entry, EntryId, EntryStep, Knob, KnobCheck,
    KnobId, NOT_GIVEN, Observation, OutcomeKind, Overwriter, Persisted, Reading, SeenWriter, Several, Undo,
    ValueType, VerdictKind, When, Writer, bootline, given_in_vain, page_pool, part_at, place,
};

use crate::wish::{Wish, Wishes, of_this_boot, pages_short_of, twin_of};

/// What all comparisons share.
pub(crate) struct Bench<'a> {
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) observation: &'a Observation,
    pub(crate) open: &'a [Entry],
    /// What open entries had the boot loader give.
    pub(crate) given: Wishes,
}

/// The knob of which each place is one interrupt.
const SINGLE_INTERRUPT: &str = "irq.affinity";

/// A state and why it is so.
pub(crate) type Judgement = (DriftState, Option<String>);

impl Bench<'_> {
    /// Compares one place.
    pub(crate) fn check(&self, knob: &Knob, reading: &Reading, wish: Option<&Wish>) -> KnobCheck {
        let persisted = self.observation.persisted.get(&reading.place);
        let judged =
            self.by_others(knob, reading, wish).unwrap_or_else(|| self.judge(knob, reading, wish, persisted));
        let is_as_wanted = matches!(judged.0, DriftState::Ok | DriftState::LostAtBoot);
        let elsewhere = self.not_in_force(knob, reading).or_else(|| self.observation.not_granted(reading));
        let elsewhere = elsewhere.filter(|_| is_as_wanted);
        let (state, because) = elsewhere.map_or(judged, |why| (DriftState::Drift, Some(why)));
        let comes = self.unasked(knob, reading, wish);
        let because = [because, comes, self.may_be(reading), self.may_write(knob, reading, wish)];
        let because = because.into_iter().flatten().reduce(|a, b| format!("{a}; {b}"));
        let wanted = self.wanted(knob, reading, wish, persisted);
        KnobCheck {
            knob: knob.id.clone(),
            place: reading.place.clone(),
            running: self.in_force(knob, reading),
            persisted: persisted.map(|found| BootValue::new(knob.r#type.normal(&found.value), &found.source)),
            next_boot: self
                .value_at_boot(knob, reading, persisted)
                .or_else(|| wish.and_then(|_| self.interrupt_at_boot(knob))),
            overridden: persisted
                .iter()
                .flat_map(|found| &found.overridden)
                .map(|lost| BootValue { value: knob.r#type.normal(&lost.value), ..lost.clone() })
                .collect(),
            overwritten_by: wanted
                .as_deref()
                .filter(|_| state == DriftState::OverwrittenAtBoot)
                .and_then(|wanted| Some(self.writer_at_start(knob, &reading.place, Some(wanted))?.1)),
            // What an undo left is wanted by nobody: the group is to have no limit.
            wanted: wanted.or_else(|| self.is_left_over(reading).then(|| NOT_GIVEN.to_owned())),
            state,
            because,
        }
    }

    /// Which other program sets at the boot what nobody wants otherwise: no finding, and what will be there.
    fn unasked(&self, knob: &Knob, reading: &Reading, wish: Option<&Wish>) -> Option<String> {
        let is_unasked = wish.is_none() && reading.value.is_some();
        let (words, by) = is_unasked.then(|| self.writer_at_start(knob, &reading.place, None)).flatten()?;
        (!by.files.is_empty()).then_some(words)
    }

    /// What the host has: of the CPUs of a part of the system its control group tells, and the place, which is a file,
    /// what the group is to have.
    fn in_force(&self, knob: &Knob, reading: &Reading) -> Option<String> {
        let value = reading.value.as_deref().map(|value| knob.r#type.normal(value));
        let unit = self.observation.units.get(&reading.place);
        match unit.and_then(|unit| unit.in_force.as_ref()) {
            Some((cpus, _)) if cpus.is_empty() => Some(NOT_GIVEN.to_owned()),
            Some((cpus, _)) => Some(knob.r#type.normal(cpus)),
            None => value,
        }
    }

    /// Whether a group has a limit that was of planish once, and that no file gives any more.
    fn is_left_over(&self, reading: &Reading) -> bool {
        self.observation.units.get(&reading.place).is_some_and(|unit| unit.left_over.is_some())
    }

    /// The CPUs of a part of the system that files of others give already, held against its control group.
    fn by_others(&self, knob: &Knob, reading: &Reading, wish: Option<&Wish>) -> Option<Judgement> {
        let unit = self.observation.units.get(&reading.place).filter(|_| knob.r#type.is_cpus_of_a_unit())?;
        let (Some((_, source)), Some(Wish::Skipped { verdict, text: Some(text), .. })) = (&unit.given, wish)
        else {
            return None;
        };
        match (&unit.in_force, verdict.verdict) {
            (_, kind) if kind != VerdictKind::Moot => None,
            (Some((cpus, file)), _) if !knob.r#type.same(cpus, text) => {
                let why = format!("{source} gives it, and {file} does not have it: systemctl daemon-reload");
                Some((DriftState::Drift, Some(why)))
            }
            _ => Some((DriftState::Ok, Some(format!("{source} gives it")))),
        }
    }

    /// That the control group of a part of the system has something else than a file of ours gives it, or still has
    /// what one of ours gave.
    pub(crate) fn not_in_force(&self, knob: &Knob, reading: &Reading) -> Option<String> {
        let unit = self.observation.units.get(&reading.place)?;
        let (cpus, file) = unit.in_force.as_ref()?;
        if let (Some(all), Some(part)) = (&unit.left_over, part_at(&reading.place)) {
            let cure = format!("systemctl set-property --runtime {part} AllowedCPUs={all}");
            return Some(format!("{file} has {cpus}, which no file gives any more: {cure}"));
        }
        let given = reading.value.as_deref().filter(|value| *value != NOT_GIVEN)?;
        let told = match cpus.as_str() {
            "" => format!("{file} has no limit"),
            cpus => format!("{file} has {cpus}"),
        };
        let cure =
            "systemctl daemon-reload sets it, or somebody has set another one by systemctl set-property";
        (!knob.r#type.same(given, cpus)).then(|| format!("{told}: {cure}"))
    }

    /// What may set it at a boot besides, for all that can be told.
    fn may_be(&self, reading: &Reading) -> Option<String> {
        // Of a program that is known to write it more is told.
        let is_told = self.pool_written_again(&reading.place).is_some();
        let may = self.observation.undecided.get(&reading.place).filter(|_| !is_told)?;
        let one = |may: &BootValue| match may.value.as_str() {
            "?" => format!("may be set at a boot by {}", may.source),
            value => format!("may be set to {value} at a boot by {}", may.source),
        };
        may.iter().map(one).reduce(|a, b| format!("{a}; {b}"))
    }

    /// Which other program may set what is wanted here when it starts, for all that can be told: its profile cannot be
    /// read, or is computed, or a text names the knob and nobody can tell what becomes of it.
    fn may_write(&self, knob: &Knob, reading: &Reading, wish: Option<&Wish>) -> Option<String> {
        let is_wanted = wish.is_some() && reading.value.is_some() && knob.when != When::Boot;
        let untold = |seen: &SeenWriter| {
            let has_scope = self.catalogue.writer(&seen.id).is_some_and(|writer| writer.scope.is_some());
            let at = Some(reading.place.as_str());
            let writes = self.catalogue.writes(seen, &knob.id, at);
            let is_untold = has_scope && seen.knobs.is_none() && writes;
            if self.is_settled(seen, knob, &reading.place) {
                return None;
            }
            let files: Vec<&str> = self.catalogue.said(&seen.maybe, &knob.id, at).collect();
            // What it names by a pattern it may undo, as it sees need.
            let is_row = |writer: &Writer| {
                writer.scope.is_none() && !writer.writes.iter().any(|id| id == knob.id.as_str())
            };
            if writes && self.catalogue.writer(&seen.id).is_some_and(is_row) {
                return Some(format!("{} may undo it while it is at work", seen.id));
            }
            let why = match (&seen.profile, files.as_slice()) {
                (_, [_, ..]) => format!("what becomes of it there cannot be told ({})", unlike(files)),
                (Some(profile), _) if is_untold => format!("what its profile {profile} sets cannot be read"),
                (None, _) if is_untold => "what it sets cannot be read".to_owned(),
                _ => return None,
            };
            Some(format!("{} may set it at the next boot, after the files of the host: {why}", seen.id))
        };
        // One that does set it says enough.
        let is_told = || self.writer_at_start(knob, &reading.place, None).is_some();
        self.observation.writers.iter().filter(|_| is_wanted).find_map(untold).filter(|_| !is_told())
    }

    /// Why there is nothing to compare.
    fn not_here(&self, knob: &Knob, wish: Option<&Wish>) -> String {
        match wish {
            Some(Wish::Skipped { verdict, .. }) => verdict.reason.clone(),
            _ if self.observation.not_recorded.contains(&knob.id) => "not recorded of this host".to_owned(),
            _ => "not on this host".to_owned(),
        }
    }

    /// What a place is that is not there: a knob of many places, which a plan tells as one where nobody allowed it, may
    /// be here at one that is not as wanted.
    fn absent(&self, knob: &Knob, wish: Option<&Wish>) -> DriftState {
        let Some(Wish::Skipped { not_allowed: true, text, .. }) = wish else { return DriftState::NotHere };
        let other = |value: &String| text.as_ref().is_none_or(|text| !knob.r#type.same(value, text));
        let is_other =
            |reading: &Reading| reading.access != Access::Absent && reading.value.as_ref().is_some_and(other);
        let readings = self.observation.knobs.get(&knob.id);
        let waits = readings.is_some_and(|readings| readings.iter().any(is_other));
        if waits { DriftState::NotAllowed } else { DriftState::NotHere }
    }

    fn judge(
        &self,
        knob: &Knob,
        reading: &Reading,
        wish: Option<&Wish>,
        persisted: Option<&Persisted>,
    ) -> Judgement {
        if reading.access == Access::Absent || wish.is_some_and(Wish::is_left_out) {
            return (self.absent(knob, wish), Some(self.not_here(knob, wish)));
        }
        let Some(running) = reading.value.as_deref() else {
            return (DriftState::Unknown, reading.unread.clone());
        };
        let of_pool = |pages| self.pages_against(knob, pages, reading, running, persisted);
        match wish {
            None => self.against_files(knob, reading, running, persisted),
            Some(Wish::Pages(pages)) => of_pool(*pages),
            Some(Wish::Value { text, by }) => {
                self.against_value(knob, reading, running, text, by.as_ref(), persisted)
            }
            // It can be here, and is not: memory has no room for it as it is now, or nobody may write it.
            Some(Wish::Skipped {
                verdict, text: Some(text), short_of_memory, hindered, impossible, ..
            }) if (*short_of_memory || ((*hindered || *impossible) && knob.undo == Undo::Subtract))
                && number(running) < number(text) =>
            {
                let why =
                    format!("{} of {} pages are there: {}", running.trim(), text.trim(), verdict.reason);
                (DriftState::Drift, Some(why))
            }
            Some(Wish::Skipped { verdict, text, hindered, impossible, not_allowed, .. }) => {
                if let Some(text) = text.as_deref().filter(|_| verdict.verdict == VerdictKind::Blocked)
                    && self.is_there_all_the_same(knob, reading, running, text)
                {
                    return self.against_value(knob, reading, running, text, None, persisted);
                }
                // What the next boot brings by itself is pending; what somebody has yet to give it is missing.
                let is_of_boot = verdict.verdict == VerdictKind::Blocked && knob.when == When::Boot;
                let at_boot = is_of_boot || verdict.verdict == VerdictKind::Reboot;
                let same = |one: &str, other: &str| knob.r#type.same(one, other);
                let by_boot = text.as_deref().filter(|_| at_boot).and_then(|text| match persisted {
                    Some(found) => same(&found.value, text).then(|| self.pending(knob, running, found)),
                    None => self.untold(knob, reading, text),
                });
                if let Some(judged) = by_boot {
                    return judged;
                }
                let state = match (verdict.verdict, text, self.pages_short_of(reading)) {
                    (VerdictKind::Reboot, Some(_), _) => DriftState::Drift,
                    (VerdictKind::Reboot, ..) => DriftState::PendingReboot,
                    (_, Some(_), Some(pages)) if number(running) < Some(pages) => DriftState::Drift,
                    (_, _, Some(pages)) => return of_pool(pages),
                    // What is impossible is not as it is wanted either, and apply refuses the profile for it.
                    (_, Some(text), None) if *hindered || *impossible => {
                        match number(text).filter(|_| knob.undo == Undo::Subtract) {
                            Some(pages) => return of_pool(pages),
                            None => DriftState::Drift,
                        }
                    }
                    _ if *not_allowed => DriftState::NotAllowed,
                    _ => DriftState::NotHere,
                };
                let lost = persisted.filter(|found| at_boot && in_vain(knob, found).is_some());
                let lost = lost.map(|found| says(knob, found) + "; ").unwrap_or_default();
                (state, Some(lost + &verdict.reason))
            }
        }
    }

    /// Whether a value that a plan of today may not set (its class is allowed at each apply anew) is on the host all
    /// the same: it runs, or an apply that was allowed to wrote it.
    fn is_there_all_the_same(&self, knob: &Knob, reading: &Reading, running: &str, wanted: &str) -> bool {
        let same = |text: &str| knob.r#type.same(text, wanted);
        let done = |step: &EntryStep| {
            let outcome = step.outcome.as_ref().map(|outcome| outcome.outcome);
            matches!(outcome, Some(OutcomeKind::Done | OutcomeKind::ReadsBack)) && same(&step.wanted)
        };
        knob.undo != Undo::Subtract && (same(running) || self.own_steps(reading).any(|(_, step)| done(step)))
    }

    /// Nothing was asked of it: the files of the host say what it should be, if they do.
    fn against_files(
        &self,
        knob: &Knob,
        reading: &Reading,
        running: &str,
        persisted: Option<&Persisted>,
    ) -> Judgement {
        if let Some(why) = self.own_doing(knob, reading, running) {
            return (DriftState::Ok, Some(why));
        }
        let Some(found) = persisted else { return (DriftState::Ok, None) };
        if let Some((twin, last)) =
            self.cleared_by(knob, reading, persisted).filter(|_| number(running) == Some(0))
        {
            return (
                DriftState::Ok,
                Some(format!("cleared by its twin {}: {} sets it", twin.id, last.source)),
            );
        }
        let enough = knob.undo == Undo::Subtract && number(running) >= number(&found.value);
        if enough || knob.r#type.same(running, &found.value) {
            return (DriftState::Ok, None);
        }
        // The file of ours is as it was written: to be wanted, it needs no profile that says so.
        if let Some(why) = read_later(knob, reading, found) {
            return (DriftState::LostAtBoot, Some(why));
        }
        if let Some(judged) = self.on_trial(knob, reading, running) {
            return judged;
        }
        if knob.when == When::Boot || self.is_yet_to_be_given(knob, reading, found) {
            let (state, why) = self.pending(knob, running, found);
            return (state, why.map(|why| format!("{}; {why}", says(knob, found))));
        }
        (
            DriftState::Drift,
            Some(format!("{} says {}{}", found.source, found.value, self.suspects(knob, reading))),
        )
    }

    /// Whether it comes by an argument that the boot loader has for the next kernel, and that this one was not given:
    /// nothing has changed it since its boot.
    fn is_yet_to_be_given(&self, knob: &Knob, reading: &Reading, found: &Persisted) -> bool {
        let given = self.observation.by_boot_line.get(&reading.place);
        let same = |given: &String| knob.r#type.same(given, &found.value);
        given.is_some_and(|given| !given.as_ref().is_some_and(same))
    }

    fn against_value(
        &self,
        knob: &Knob,
        reading: &Reading,
        running: &str,
        wanted: &str,
        by: Option<&(EntryId, Option<String>)>,
        persisted: Option<&Persisted>,
    ) -> Judgement {
        let same = |a: &str, b: &str| knob.r#type.same(a, b);
        if same(running, wanted) {
            return self.next_boot(knob, reading, wanted, persisted);
        }
        if let Some(found) = persisted.filter(|found| knob.when == When::Boot && same(&found.value, wanted)) {
            return self.pending(knob, running, found);
        }
        if let Some(why) =
            self.made_of_ours(knob, reading, running).or_else(|| self.own_doing(knob, reading, running))
        {
            return (DriftState::Drift, Some(why));
        }
        if let (None, Some(untold)) = (persisted, self.untold(knob, reading, wanted)) {
            return untold;
        }
        let why = match (persisted, by) {
            // Of a group that still has what the file gave, what takes that away is the cure.
            (_, Some(_))
                if knob.is_own_file()
                    && let Some(why) = self.not_in_force(knob, reading) =>
            {
                why
            }
            (_, Some((entry, _))) if knob.is_own_file() => {
                // In a file that is gone there is nothing of others.
                let force = if running == NOT_GIVEN { "" } else { " --force" };
                format!(
                    "its file is not as entry {entry} wrote it: planish undo {entry}{force}, then apply it again"
                )
            }
            (Some(found), _) if knob.boot_parameter().is_some() => says(knob, found),
            (None, Some((entry, _))) if knob.boot_parameter().is_some() => {
                format!("nothing gives it any more: entry {entry} had the boot loader do so")
            }
            (Some(found), _) if same(&found.value, running) => format!("as {} says", found.source),
            (_, Some((entry, Some(before)))) if same(before, running) => {
                format!("back to the value from before entry {entry}{}", self.suspects(knob, reading))
            }
            (_, Some((entry, _))) => format!("changed since entry {entry}{}", self.suspects(knob, reading)),
            (_, None) => return (DriftState::Drift, None),
        };
        (DriftState::Drift, Some(why))
    }

    /// What only a boot can bring, and a file will; unless this one has brought it already, and the kernel did not take
    /// it, or the menu was not made of that file. What an entry gave there is pending all the same: a recorded host
    /// runs no program that makes a menu.
    fn pending(&self, knob: &Knob, running: &str, found: &Persisted) -> Judgement {
        if given_in_vain(running).is_some_and(|given| knob.r#type.same(given, &found.value)) {
            let why = self.not_taken_with(knob, &found.value).unwrap_or_else(|| {
                "this kernel was given it and did not take it, and another boot of it will not, either"
                    .to_owned()
            });
            return (DriftState::Drift, Some(why));
        }
        if found.at_boot.is_none() {
            return self.not_brought(knob, &found.value).unwrap_or_else(|| self.to_come());
        }
        let makes_menu = matches!(&self.observation.boot, BootLoader::Known(files) if files.makes_menu);
        let waits = !makes_menu && self.is_by_entry(knob, found);
        let state = if waits { DriftState::PendingReboot } else { DriftState::Drift };
        (state, Some(format!("written to {}; {}", found.source, self.no_menu())))
    }

    /// Whether an open entry has the boot loader's files give a value.
    fn is_by_entry(&self, knob: &Knob, found: &Persisted) -> bool {
        let path = found.source.rsplit_once(':').map_or(found.source.as_str(), |(path, _)| path);
        let steps = self.open.iter().flat_map(|entry| &entry.steps);
        let mut edits =
            steps.filter(|step| step.undo == Undo::Edit && step.place == path && !step.is_undone());
        let gives = |step: &EntryStep| self.gives(&step.wanted, knob, &found.value);
        found.is_ours() || edits.any(gives)
    }

    /// Whether arguments of the kernel set a knob to a value: a boot parameter, a pool of one size, or what a row says
    /// that an argument sets. Of the last the name tells, since the kernel has several words for one value of a switch.
    pub(crate) fn gives(&self, arguments: &str, knob: &Knob, value: &str) -> bool {
        let words: Vec<&str> = bootline::arguments(arguments).collect();
        let by_row = |row: &Knob| {
            bootline::found(&words, row, bootline::Kernel::default())
                .is_some_and(|(given, _)| row.r#type.same(&given, value))
        };
        match &knob.boot_arg {
            _ if knob.boot_parameter().is_some() => by_row(knob),
            Some(name) => words.iter().any(|word| bootline::same_name(bootline::parts(word).0, name)),
            None => self.catalogue.knobs().filter(|row| counts_in_pages_of(row, knob)).any(by_row),
        }
    }

    /// What a menu lacks that was made before its sources were changed, and what makes it.
    fn no_menu(&self) -> String {
        let cure = self.observation.boot.menu_cure().map(|cure| format!(": {cure}"));
        format!("the boot loader's menu was not made anew since{}", cure.unwrap_or_default())
    }

    /// What becomes of a boot parameter that an entry had the boot loader give, where nobody can tell what that gives
    /// next: in all its entries it may be, and in the one that is booted not; or its files cannot be read any more.
    fn untold(&self, knob: &Knob, reading: &Reading, wanted: &str) -> Option<Judgement> {
        let given = self.given.get(&(knob.id.clone(), reading.place.clone()));
        let Some(Wish::Value { text, by: Some((entry, _)) }) = given else { return None };
        match &self.observation.boot {
            _ if !knob.r#type.same(text, wanted) => None,
            BootLoader::Known(files) if files.is_next_untold => {
                if let Some(judged) = self.not_brought(knob, wanted) {
                    return Some(judged);
                }
                let told = "it does not tell which of its entries it boots next";
                let why = format!("in files of the boot loader since entry {entry}; {told}");
                Some((DriftState::PendingReboot, Some(why)))
            }
            BootLoader::Unknown { reason, cure } => {
                let told = "whether the next boot gives it cannot be told";
                let why = format!("entry {entry} had the boot loader give it; {told}: {reason}; {cure}");
                Some((DriftState::Unknown, Some(why)))
            }
            _ => None,
        }
    }

    /// It runs as wanted: what will the next boot make of it?
    fn next_boot(
        &self,
        knob: &Knob,
        reading: &Reading,
        wanted: &str,
        persisted: Option<&Persisted>,
    ) -> Judgement {
        if let Some(judged) = self.overwritten(knob, reading, wanted, persisted) {
            return judged;
        }
        if let Some((twin, found)) = self.cleared_by(knob, reading, persisted) {
            let sets = format!("its twin {} to {}", twin.id, found.value);
            return match number(wanted) {
                Some(0) => (DriftState::Ok, Some(format!("{} sets {sets}", found.source))),
                _ => {
                    let place = twin_of(knob, &reading.place, self.catalogue).map(|(_, place)| place);
                    let line = self.line_told(found, &place.unwrap_or_default());
                    (DriftState::LostAtBoot, Some(format!("{line} will set {sets}")))
                }
            };
        }
        // A word for the boot loader of which no menu was made yet sets nothing, and the line that would is gone.
        let is_of_no_menu = |found: &&Persisted| {
            found.at_boot.is_some() && knob.boot_parameter().is_none() && !found.is_until_a_boot()
        };
        if persisted.filter(is_of_no_menu).is_some() && self.line_of_ours(reading).is_some() {
            return self.unpersisted(reading);
        }
        match persisted {
            Some(found) if knob.r#type.same(&found.value, wanted) => match &found.at_boot {
                None => (DriftState::Ok, None),
                Some(value) if found.is_until_a_boot() => {
                    let why = format!("{} gives it until a boot, which gives {value}", found.source);
                    (DriftState::LostAtBoot, Some(why))
                }
                Some(_) => (DriftState::LostAtBoot, Some(format!("in {}; {}", found.source, self.no_menu()))),
            },
            Some(_) if let Some(judged) = self.on_trial(knob, reading, wanted) => judged,
            Some(found) if knob.boot_parameter().is_some() => {
                (DriftState::LostAtBoot, Some(says(knob, found)))
            }
            Some(found) if let Some(why) = read_later(knob, reading, found) => {
                (DriftState::LostAtBoot, Some(why))
            }
            Some(found) if let Some(judged) = self.edited(knob, reading, found) => judged,
            Some(found) => {
                let line = self.line_told(found, &reading.place);
                let writers = &self.observation.writers;
                let writes_again = |seen: &&SeenWriter| {
                    seen.again.is_sure && seen.again.lines.iter().any(|(_, line)| line.source == found.source)
                };
                let by = writers.iter().find(writes_again);
                let by = by.map(|seen| format!(", which {} writes again", seen.id)).unwrap_or_default();
                (DriftState::LostAtBoot, Some(format!("{line} will set {}{by}", found.value)))
            }
            None if self.taken_back(reading).is_some() => self.unpersisted(reading),
            None if let Some(judged) = self.interrupt_judged(knob, wanted) => judged,
            None if self.is_of_run_time(knob, reading, wanted) || self.line_of_ours(reading).is_some() => {
                self.unpersisted(reading)
            }
            None => self.untold(knob, reading, wanted).unwrap_or((DriftState::Ok, None)),
        }
    }

    /// A line of others that takes one of ours back, and no file sets the place.
    fn taken_back(&self, reading: &Reading) -> Option<(&Persisted, &BootValue)> {
        let line = self.observation.taken_back.get(&reading.place)?;
        let ours = line.overridden.iter().rfind(|lost| Persisted::own_file(&lost.source).is_some())?;
        Some((line, ours))
    }

    /// That another program sets it behind the files of the host.
    fn overwritten(
        &self,
        knob: &Knob,
        reading: &Reading,
        wanted: &str,
        persisted: Option<&Persisted>,
    ) -> Option<Judgement> {
        let (told, _) = self.writer_at_start(knob, &reading.place, Some(wanted))?;
        let files = persisted.map(|found| format!(", after {}", found.source)).unwrap_or_default();
        Some((DriftState::OverwrittenAtBoot, Some(format!("{told}{files}"))))
    }

    /// The CPUs that the next boot gives a single interrupt: no file names one, since they are numbered anew, and all
    /// begin with those of `irqaffinity=`.
    fn interrupt_at_boot(&self, knob: &Knob) -> Option<BootValue> {
        let of_irq = knob.id.as_str() == SINGLE_INTERRUPT;
        let place = "cmdline:irqaffinity".to_owned();
        let found = self.observation.persisted.get(&place).filter(|_| of_irq)?;
        // What an entry gave is pending where no menu was made of it yet.
        let is_ours = self.given.contains_key(&(KnobId::new("boot.irqaffinity"), place));
        let given = found.at_boot.as_ref().filter(|_| !is_ours).unwrap_or(&found.value);
        Cpus::parse(given).filter(|cpus| !cpus.is_empty())?;
        Some(BootValue::new(knob.r#type.normal(given), &found.source))
    }

    /// What becomes of an interrupt that is as wanted. One that is kept off the CPUs of services, as `irqaffinity=`
    /// keeps them all, is where a placement leaves it, be it on more of those CPUs. One that follows its service is
    /// not.
    fn interrupt_judged(&self, knob: &Knob, wanted: &str) -> Option<Judgement> {
        let BootValue { value, source, .. } = self.interrupt_at_boot(knob)?;
        if Cpus::parse(wanted)?.is_within(&Cpus::parse(&value)?) {
            let told = format!("a boot keeps it to {value}: irqaffinity= of {source}");
            return Some((DriftState::Ok, Some(told)));
        }
        let told = format!("{source} will set {value}, as for all interrupts: apply again after each boot");
        Some((DriftState::LostAtBoot, Some(told)))
    }

    /// A line that sets a place at the boot, and of one of ours the entry that wrote it: such a line is taken out by no
    /// hand, since the journal holds what the file is to be.
    fn line_told(&self, found: &Persisted, place: &str) -> String {
        let Some(file) = Persisted::own_file(&found.source) else { return found.source.clone() };
        let has_line = |step: &EntryStep| {
            let mut places = step.wanted.lines().filter_map(place::of_line);
            step.place == file && places.any(|(own, _)| own == place)
        };
        match self.in_files().filter(|(_, step)| has_line(step)).map(|(entry, _)| entry).max() {
            Some(entry) => format!("{} of entry {entry}", found.source),
            None => found.source.clone(),
        }
    }

    /// A line of ours that says something else than the newest entry wrote there: no apply writes over it.
    fn edited(&self, knob: &Knob, reading: &Reading, found: &Persisted) -> Option<Judgement> {
        let file = Persisted::own_file(&found.source)?;
        let in_file = self.in_files().filter(|(_, step)| step.place == file);
        let lines = in_file.flat_map(|(entry, step)| step.lines().map(move |line| (entry, line)));
        let (entry, (_, ours)) = lines.filter(|(_, (place, _))| *place == reading.place).last()?;
        (!knob.r#type.same(&ours, &found.value)).then(|| {
            let why = format!(
                "someone made {} of the line of entry {entry} for it, which gave {ours}, in {}: planish undo \
                 {entry} --force, then apply it again with --persist",
                found.value, found.source
            );
            (DriftState::Drift, Some(why))
        })
    }

    /// Which other program sets this knob after the files of the host were read, when and by which of its files, in
    /// words and as it is: what it sets is not known here. One whose files cannot be read, so that only its row tells
    /// what it may set, is no such program. One whose commands say the wanted value loses nothing.
    fn writer_at_start(&self, knob: &Knob, at: &str, wanted: Option<&str>) -> Option<(String, Overwriter)> {
        let told = |seen: &SeenWriter| {
            let is_as_wanted = wanted.is_some_and(|wanted| seen.sets_as_wanted(knob, at, wanted));
            let writes = || self.catalogue.writes(seen, &knob.id, Some(at));
            if is_as_wanted || self.is_settled(seen, knob, at) || !writes() {
                return None;
            }
            // A program without files that say more sets what its row names, as it sees need.
            let names_it = || {
                let writer = self.catalogue.writer(&seen.id).filter(|writer| writer.scope.is_none());
                writer.is_some_and(|writer| writer.writes.iter().any(|id| id == knob.id.as_str()))
            };
            // Whoever sets the twin clears this one.
            let files = self.catalogue.said(&seen.sources, &knob.id, Some(at));
            let mut files: Vec<String> = files.map(str::to_owned).collect();
            files.sort();
            files.dedup();
            let commands: Vec<&str> = self.catalogue.said(&seen.commands, &knob.id, Some(at)).collect();
            let named = match (files.as_slice(), commands.as_slice()) {
                ([], _) => String::new(),
                (_, []) => format!(" ({})", files.join(", ")),
                (_, [first, rest @ ..]) => {
                    let more = if rest.is_empty() { "" } else { ", ..." };
                    format!(" ({}) by `{first}`{more}", files.join(", "))
                }
            };
            let only_may = self.catalogue.only_may_write(seen, &knob.id, Some(at));
            let words = match &seen.knobs {
                // What it includes besides may be untold; what it was read to set counts.
                Some(_) if !only_may => format!("{} will set it at the next boot{named}", seen.id),
                None if !files.is_empty() => format!("{} will set it at the next boot{named}", seen.id),
                None if names_it() => format!("{} sets it when it starts, or later", seen.id),
                Some(_) | None => return None,
            };
            Some((words, Overwriter { writer: seen.id.clone(), files }))
        };
        let mut writers = self.observation.writers.iter().filter(|_| knob.when != When::Boot);
        writers.find_map(told).or_else(|| self.pool_written_again(at))
    }

    /// Which program writes a line for the pools of all nodes again, behind ours for the pool of a node: fewer pages
    /// than all lines of nodes give, so that ours go.
    fn pool_written_again(&self, at: &str) -> Option<(String, Overwriter)> {
        page_pool::whole_of(at)?;
        let lines = self.observation.undecided.get(at)?;
        self.observation.writers.iter().filter(|seen| seen.again.is_sure).find_map(|seen| {
            let is_again = |source: &str| seen.again.lines.iter().any(|(_, line)| line.source == source);
            let line = lines.iter().find(|line| is_again(&line.source))?;
            let words = format!("{} writes {} again, which will set {}", seen.id, line.source, line.value);
            let file = line.source.rsplit_once(':').map_or(line.source.as_str(), |(file, _)| file);
            Some((words, Overwriter { writer: seen.id.clone(), files: vec![file.to_owned()] }))
        })
    }

    /// Whether a writer sets a place to what files say behind its own value, or the twin of it.
    fn is_settled(&self, seen: &SeenWriter, knob: &Knob, at: &str) -> bool {
        let settles = |place: &str| seen.again.settles.contains(place);
        settles(at)
            || twin_of(knob, at, self.catalogue).is_some_and(|(_, twin)| settles(&twin))
            || page_pool::whole_of(at).is_some_and(|whole| settles(&whole))
    }

    /// What the files of the host bring at the next boot, in normal form; `None` where none does, or where another
    /// program sets it after them.
    fn value_at_boot(
        &self,
        knob: &Knob,
        reading: &Reading,
        persisted: Option<&Persisted>,
    ) -> Option<BootValue> {
        if self.writer_at_start(knob, &reading.place, None).is_some() {
            return None;
        }
        match (self.cleared_by(knob, reading, persisted), persisted) {
            (Some((_, twin)), _) => Some(BootValue::new("0", &twin.source)),
            // What no argument of the menu sets, the kernel begins with as it likes.
            (None, Some(found))
                if knob.boot_parameter().is_none() && found.at_boot.as_deref() == Some(NOT_GIVEN) =>
            {
                None
            }
            // The file of all nodes shows what comes of the lines of each, whatever its own line says.
            (None, Some(found)) if let Some(pages) = self.observation.pool_sum_at_boot(&reading.place) => {
                Some(BootValue::new(pages.to_string(), &found.source))
            }
            (None, Some(found)) => {
                let taken = found.taken_at_boot();
                Some(BootValue { value: knob.r#type.normal(&taken.value), ..taken })
            }
            (None, None) => {
                let of_share =
                    |(share, line): (u64, &Persisted)| BootValue::new(share.to_string(), &line.source);
                let taken_back = || self.taken_back(reading).map(|(line, _)| line.told());
                self.share_at_boot(reading, persisted).map(of_share).or_else(taken_back)
            }
        }
    }

    /// The line that clears this place at the next boot: it sets the twin, behind what sets this one, if anything does.
    fn cleared_by(
        &self,
        knob: &Knob,
        reading: &Reading,
        persisted: Option<&Persisted>,
    ) -> Option<(&Knob, &Persisted)> {
        let twin = self.twin_persisted(knob, reading);
        twin.filter(|(_, line)| persisted.is_none_or(|own| line.is_behind(own)))
    }

    /// A file that sets the twin clears this one at the next boot.
    fn twin_persisted(&self, knob: &Knob, reading: &Reading) -> Option<(&Knob, &Persisted)> {
        let (twin, place) = twin_of(knob, &reading.place, self.catalogue)?;
        let found = self.observation.persisted.get(&place)?;
        (number(&found.value) != Some(0)).then_some((twin, found))
    }

    /// Whether the value is there only because an open entry of this boot wrote it. What was so before us may
    /// well be what the kernel starts with.
    fn is_of_run_time(&self, knob: &Knob, reading: &Reading, wanted: &str) -> bool {
        let first = self.own_steps(reading).next();
        let before = first.map(|(_, step)| step.original().map(|original| original.value.as_str()));
        before.is_some_and(|before| before.is_none_or(|before| !knob.r#type.same(before, wanted)))
    }

    /// As wanted now, and nothing brings it back: nobody asked for that, or somebody took a line of ours away.
    fn unpersisted(&self, reading: &Reading) -> Judgement {
        if let Some((line, ours)) = self.taken_back(reading) {
            let why = format!("{} takes back what {} says, and no file sets it", line.source, ours.source);
            return (DriftState::LostAtBoot, Some(why));
        }
        match self.line_of_ours(reading) {
            None => (DriftState::LostAtBoot, Some("no file persists it".to_owned())),
            Some((entry, file)) => {
                // An undo leaves a file alone that somebody edited; one that is gone is as it would leave it.
                let is_there = |found: &Persisted| Persisted::own_file(&found.source) == Some(file);
                let force = if self.observation.persisted.values().any(is_there) { " --force" } else { "" };
                let why = format!(
                    "the line of entry {entry} for it is gone from {file}: planish undo {entry}{force}, then apply it \
                     again with --persist"
                );
                (DriftState::Drift, Some(why))
            }
        }
    }

    /// The newest entry that has a line for a place in a file, and the file, as the journal knows it.
    fn line_of_ours(&self, reading: &Reading) -> Option<(EntryId, &str)> {
        let has_line = |step: &EntryStep| {
            let mut places = step.lines().map(|(place, _)| place);
            places.any(|place| place == reading.place)
                || step.pools.iter().any(|line| line.pages > 0 && line.place == reading.place)
        };
        self.in_files().rfind(|(_, step)| has_line(step)).map(|(entry, step)| (entry, step.place.as_str()))
    }

    /// Steps of open entries of any boot whose lines are in a file, oldest first, each with its entry.
    fn in_files(&self) -> impl DoubleEndedIterator<Item = (EntryId, &EntryStep)> {
        let steps = self.open.iter().flat_map(|entry| entry.steps.iter().map(move |step| (entry.id, step)));
        steps.filter(|(_, step)| step.is_in_file() && !step.is_undone())
    }

    /// Steps of open entries of this boot that wrote this place, oldest first, each with its entry.
    fn own_steps(&self, reading: &Reading) -> impl Iterator<Item = (EntryId, &EntryStep)> {
        let entries = of_this_boot(self.open, self.observation).into_iter();
        let steps = entries.flat_map(|entry| entry.steps.iter().map(|step| (entry.id, step)));
        let written = |step: &EntryStep| step.outcome.is_some() && !step.is_undone();
        steps.filter(move |(_, step)| written(step) && step.place == reading.place)
    }

    /// Where the place shows what this host made of a value that we wrote: which entry that was.
    fn made_of_ours(&self, knob: &Knob, reading: &Reading, running: &str) -> Option<String> {
        let made = |step: &EntryStep| step.made_otherwise() && knob.r#type.same(step.ours(), running);
        let (id, _) = self.own_steps(reading).filter(|(_, step)| made(step)).last()?;
        Some(EntryStep::told_otherwise(id, running))
    }

    /// What the place should show: by the wish, by an entry that came short of it, or by a file of ours.
    fn wanted(
        &self,
        knob: &Knob,
        reading: &Reading,
        wish: Option<&Wish>,
        persisted: Option<&Persisted>,
    ) -> Option<String> {
        match wish {
            Some(Wish::Value { text, .. }) => Some(knob.r#type.normal(text)),
            Some(Wish::Pages(pages)) => Some(pages.to_string()),
            Some(Wish::Skipped { text: Some(text), .. }) => Some(knob.r#type.normal(text)),
            Some(Wish::Skipped { text: None, .. }) => {
                self.pages_short_of(reading).map(|pages| pages.to_string())
            }
            None => {
                let ours = persisted.filter(|found| found.is_ours()).map(|found| &found.value);
                // Of a file of ours that another one overrules: what it says in vain.
                let in_vain = || {
                    let mut lost = persisted?.overridden.iter();
                    lost.find(|lost| lost.source == reading.place).map(|lost| &lost.value)
                };
                ours.or_else(in_vain).map(|value| knob.r#type.normal(value))
            }
        }
    }

    /// Whether a step of ours changed this place besides its own, to what it shows now.
    fn own_doing(&self, knob: &Knob, reading: &Reading, running: &str) -> Option<String> {
        of_this_boot(self.open, self.observation).into_iter().rev().find_map(|entry| {
            entry.steps.iter().filter(|step| !step.is_undone()).find_map(|step| {
                let caused = step.outcome.iter().flat_map(|outcome| &outcome.caused);
                let own = caused.filter(|caused| caused.place == reading.place);
                own.into_iter()
                    .any(|caused| knob.r#type.same(&caused.value, running))
                    .then(|| format!("changed by {} of entry {}", step.knob, entry.id))
            })
        })
    }

    /// The size of a pool that an entry which is still open asked for, and did not get.
    fn pages_short_of(&self, reading: &Reading) -> Option<u64> {
        self.own_steps(reading).filter_map(|(_, step)| pages_short_of(step)).max()
    }

    /// Other programs at work that write this place, as a remark.
    fn suspects(&self, knob: &Knob, reading: &Reading) -> String {
        let at = Some(reading.place.as_str());
        let writers = self.observation.writers.iter().filter(|writer| writer.running);
        let writers = writers.filter(|writer| self.catalogue.writes(writer, &knob.id, at));
        let (may, sure): (Vec<&SeenWriter>, Vec<&SeenWriter>) =
            writers.partition(|writer| self.catalogue.only_may_write(writer, &knob.id, at));
        let told = |writers: &[&SeenWriter], verb: &str| match writers {
            [] => String::new(),
            some => {
                let names: Vec<&str> = some.iter().map(|writer| writer.id.as_str()).collect();
                format!("; {} {verb}", names.join(", "))
            }
        };
        let verb = if sure.len() == 1 { "writes it too" } else { "write it too" };
        told(&sure, verb) + &told(&may, "may write it too")
    }
}

/// Names, each once.
fn unlike(mut names: Vec<&str>) -> String {
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// The line of ours that another one leaves without effect; of a parameter of which the first counts, any such line.
fn in_vain<'a>(knob: &Knob, found: &'a Persisted) -> Option<&'a BootValue> {
    let is_first = knob.several() == Several::First;
    found.overridden.last().filter(|lost| is_first || Persisted::own_file(&lost.source).is_some())
}

/// Of a setting of a service that a file of ours has: what a file of others makes of it at the next start.
fn read_later(knob: &Knob, reading: &Reading, found: &Persisted) -> Option<String> {
    let is_setting = matches!(knob.r#type, ValueType::Setting { .. }) && !knob.r#type.is_cpus_of_a_unit();
    let is_behind = found.overridden.iter().any(|lost| lost.source == reading.place);
    (is_setting && is_behind).then(|| Persisted::read_later(&found.source, &found.value))
}

/// What the files of a boot loader say of a boot parameter.
fn says(knob: &Knob, found: &Persisted) -> String {
    match (found.value.as_str(), in_vain(knob, found)) {
        (NOT_GIVEN | "0", Some(lost)) if knob.several() != Several::First || found.value == NOT_GIVEN => {
            let menu = found.source.contains("/grub.cfg:");
            let why = if menu {
                "it is booted next, and takes nothing of it"
            } else {
                "it assigns anew, or gives another value"
            };
            format!("{} leaves {} without effect: {why}", found.source, lost.source)
        }
        (NOT_GIVEN, None) => format!("{} no longer gives it", found.source),
        (value, Some(lost)) if knob.several() == Several::First => {
            let theirs =
                if lost.source == found.source { "behind it" } else { &format!("of {}", lost.source) };
            format!(
                "{} gives {value} first, and of several the kernel takes the first: the one {theirs} ({}) is in vain \
                 until {value} is taken out there",
                found.source, lost.value
            )
        }
        (value, _) => format!("{} gives {value}", found.source),
    }
}

/// Whether a boot parameter fills the pool of pages that a knob of run-time is.
fn counts_in_pages_of(row: &Knob, knob: &Knob) -> bool {
    let size = row.boot_parameter().and_then(|(_, size)| bootline::size(size?));
    size.is_some_and(|size| knob.path.ends_with(&format!("/hugepages-{}kB/nr_hugepages", size >> 10)))
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}
