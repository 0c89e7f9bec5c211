//! How many open files a process may have at all, against what programs are given.
//!
//! The kernel refuses a hard limit above `fs.nr_open` (`do_prlimit` of `kernel/sys.c`). systemd then tries what it has
//! itself (`setrlimit_closest`), which is the `fs.nr_open` of its own start: where that was raised since, the service
//! gets less than it was given, and where it was lowered the service does not start, nor does any other one with that
//! limit.

use planish_model::{KnobId, LimitPair, Observation, Part, Step};

use crate::units;

/// The highest limit that a process may have.
const MOST: &str = "fs.nr_open";
/// What a service is given.
const GIVEN: &str = "unit.nofile";

/// Whether a knob is held against what programs are given of open files.
#[must_use]
pub fn asks_of_file_limits(id: &KnobId) -> bool {
    id.as_str() == MOST
}

/// Why a step of these would have a service not start, or give it less than it says.
pub(crate) fn refusal(observation: &Observation, steps: &[Step], step: &Step) -> Option<String> {
    match step.knob.as_str() {
        MOST => too_low(observation, steps, step),
        GIVEN => too_high(observation, steps, step),
        _ => None,
    }
}

fn number(text: &str) -> Option<i128> {
    text.trim().parse().ok()
}

/// A highest that is lowered below what somebody has. One that goes back is the one that systemd was started with,
/// and is held against log-ins at its write: [`shuts_out`].
fn too_low(observation: &Observation, steps: &[Step], step: &Step) -> Option<String> {
    let wanted = number(&step.wanted)?;
    if step.part == Some(Part::Back) || number(&step.now).is_some_and(|now| wanted >= now) {
        return None;
    }
    let given =
        |value: &str, who: String| Some((LimitPair::parse(value)?.hard, format!("{who} gives {value}")));
    let limits = observation.demand.file_limits.as_ref();
    let by_file = limits.and_then(|limits| limits.highest.as_ref());
    let by_file = by_file.and_then(|(value, source)| given(value, source.clone()));
    let to_all = limits.filter(|limits| limits.systemd).and_then(|limits| match &limits.default {
        Some((value, source)) => {
            given(value, source.clone()).map(|(hard, told)| (hard, format!("{told} to all units")))
        }
        None => {
            let value = units::built_in("LimitNOFILE")?;
            Some((LimitPair::parse(value)?.hard, format!("systemd gives {value} to all units by itself")))
        }
    });
    let planned = steps.iter().filter(|step| step.knob.as_str() == GIVEN);
    let planned = planned.filter_map(|step| given(step.wanted.trim(), format!("the plan ({})", step.place)));
    let (hard, told) = planned.chain(by_file).chain(to_all).max_by_key(|(hard, _)| *hard)?;
    (wanted < hard).then(|| {
        format!("{told}, and with no more than {wanted} for a process whoever has that limit is not started")
    })
}

/// Why a highest that goes back would keep out users whom it lets in now (`setup_limits` of `pam_limits`): limits of
/// log-ins are raised as soon as it is. `log_ins` are what files give users, each with the file and line. Services that
/// were given more get what systemd was started with.
#[must_use]
pub fn shuts_out(log_ins: &[(String, String)], back: &[Step]) -> Option<String> {
    let step = back.iter().find(|step| step.knob.as_str() == MOST)?;
    let (wanted, now) = (number(&step.wanted)?, number(&step.now)?);
    let given = log_ins.iter().filter_map(|(value, who)| Some((LimitPair::parse(value)?.hard, who)));
    let (hard, who) = given.filter(|(hard, _)| *hard <= now).max_by_key(|(hard, _)| *hard)?;
    (wanted < hard).then(|| {
        format!("{who} gives {hard}, and with no more than {wanted} for a process nobody with that limit can log in")
    })
}

/// What a service would not get.
fn too_high(observation: &Observation, steps: &[Step], step: &Step) -> Option<String> {
    let asked = LimitPair::parse(step.wanted.trim())?;
    let planned = steps.iter().find(|step| step.knob.as_str() == MOST);
    let planned = planned.and_then(|step| number(&step.wanted));
    let most = i128::from(observation.demand.files_each?).max(planned.unwrap_or(0));
    // A second number that the service has already is kept, whatever becomes of it.
    let unit = observation.units.get(&step.place);
    let has = unit.and_then(|unit| units::has("LimitNOFILE", unit, None));
    let is_new = unit.is_some() && has.is_none_or(|(has, _)| asked.hard > has.hard);
    let number = if is_new { asked.hard.max(asked.soft) } else { asked.soft };
    (number > most && !asked.is_endless()).then(|| {
        format!("{number} are more than any process may have: {MOST} is {most}, and has to be raised with it")
    })
}

#[cfg(test)]
mod tests {
    use planish_model::{
        Case, Catalogue, Class, Conditions, FileLimits, Plan, UnitSetting, VerdictKind, Want,
    };

    use super::*;
    use crate::testing::{observation, profile, reading};
    use crate::{Options, plan};

    const UNIT: &str = "/etc/systemd/system/redis.service.d/zz-planish-nofile.conf";

    fn host(limits: FileLimits) -> Observation {
        let mut seen = observation();
        seen.demand.files_each = Some(1 << 20);
        let own = UnitSetting { default: limits.default.clone(), ..UnitSetting::default() };
        seen.units.insert(UNIT.to_owned(), own);
        seen.demand.file_limits = Some(limits);
        seen.knobs.insert(KnobId::new(MOST), vec![reading("/proc/sys/fs/nr_open", "1048576")]);
        seen.knobs.insert(KnobId::new(GIVEN), vec![reading(UNIT, planish_model::NOT_GIVEN)]);
        seen
    }

    fn planned(seen: &Observation, most: Option<i64>, given: Option<&str>) -> Plan {
        let given = given.map(|value| {
            let (only, needs) = (Some("redis".to_owned()), Conditions::default());
            (GIVEN, Want::Case(Box::new(Case { value: value.to_owned(), only, needs })))
        });
        let want: Vec<(&str, Want)> =
            most.map(|most| (MOST, Want::Int(most))).into_iter().chain(given).collect();
        let allow_classes = vec![Class::Availability];
        let options = Options { allow_classes, ..Options::default() };
        let catalogue = Catalogue::embedded().expect("sound");
        plan(&catalogue, seen, &profile(&want), &[], &options).expect("known knobs")
    }

    /// What is planned as it is wanted, and else the reason.
    fn told(seen: &Observation, most: Option<i64>, given: Option<&str>) -> [String; 2] {
        let plan = planned(seen, most, given);
        let of = |id: &str| {
            let step = plan.steps.iter().find(|step| step.knob.as_str() == id);
            let row = plan.skipped.iter().find(|row| row.knob.as_str() == id);
            assert!(row.is_none_or(|row| row.impossible && row.verdict.verdict == VerdictKind::Blocked));
            step.map(|step| step.wanted.clone())
                .or_else(|| Some(row?.verdict.reason.clone()))
                .unwrap_or_default()
        };
        [of(MOST), of(GIVEN)]
    }

    fn given(value: &str) -> Option<(String, String)> {
        Some((value.to_owned(), "a.conf:2".to_owned()))
    }

    #[test]
    fn no_process_is_left_with_fewer_files_than_a_service_is_given() {
        let systemd = FileLimits { systemd: true, ..FileLimits::default() };
        let small = FileLimits { default: given("1024:4096"), ..systemd.clone() };
        for (limits, most, part) in [
            (
                systemd.clone(),
                524_287,
                "systemd gives 1024:524288 to all units by itself, and with no more than 524287",
            ),
            (systemd.clone(), 524_288, "524288"),
            (small.clone(), 100_000, "100000"),
            (
                FileLimits { default: given("900000"), ..systemd.clone() },
                800_000,
                "a.conf:2 gives 900000 to all units",
            ),
            (
                FileLimits { highest: given("1024:700000"), ..systemd.clone() },
                600_000,
                "a.conf:2 gives 1024:700000",
            ),
            (
                FileLimits { highest: given("infinity"), ..small.clone() },
                1_048_575,
                "a.conf:2 gives infinity",
            ),
            (FileLimits { highest: given("infinity"), ..small.clone() }, 1_048_577, "1048577"),
            (FileLimits::default(), 65_536, "65536"),
        ] {
            let [most, _] = told(&host(limits), Some(most), None);
            assert!(most.starts_with(part), "{most}");
        }
    }

    #[test]
    fn what_a_plan_gives_a_service_is_held_against_what_it_leaves_any_process() {
        let small = || FileLimits { systemd: true, default: given("1024:4096"), highest: None };
        let [most, files] = told(&host(small()), Some(100_000), Some("200000"));
        assert!(most.contains(&format!("the plan ({UNIT}) gives 200000")), "{most}");
        assert_eq!(files, "200000");
        assert_eq!(
            told(&host(small()), Some(200_000), Some("200000")),
            ["200000", "200000"].map(str::to_owned)
        );
    }

    #[test]
    fn a_service_is_given_no_more_files_than_a_process_may_have() {
        let seen = host(FileLimits::default());
        for (most, asked, part) in [
            (None, "1048576", "1048576"),
            (None, "1048577", "1048577 are more than any process may have: fs.nr_open is 1048576"),
            (None, "65536:99999999999", "99999999999 are more than any process may have"),
            (Some(2_000_000), "2000000", "2000000"),
            (Some(2_000_000), "2000001", "2000001 are more than any process may have: fs.nr_open is 2000000"),
            (None, "infinity", "infinity"),
        ] {
            let [_, files] = told(&seen, most, Some(asked));
            assert!(files.starts_with(part), "{files}");
        }
        // Whoever has more already keeps it.
        let mut seen = seen;
        let more = UnitSetting { given: given("1024:2000000"), ..UnitSetting::default() };
        seen.units.insert(UNIT.to_owned(), more);
        assert_eq!(told(&seen, None, Some("65536"))[1], "65536:2000000");
    }
}
