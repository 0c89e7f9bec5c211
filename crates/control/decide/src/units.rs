//! What a unit has of a setting before a file of ours gives it something else, and what is written so that nothing
//! of it is lost.
//!
//! A limit of a process is two numbers: what it starts with, and what it may raise itself to. Servers do raise
//! themselves, so that one number for both would take from them what they had. The second one is therefore never
//! lowered, and where nobody can tell what a unit has now, no number is called safe.

use planish_model::{
    Catalogue, KnobId, LimitPair, NOT_GIVEN, Observation, Persisted, Plan, UnitSetting, ValueType, Verdict,
    VerdictKind, parts_lost, variable,
};

/// What systemd gives a unit that says nothing, where it is told nothing either (NEWS of version 240). `TasksMax=` is a
/// share of the kernel's limits, and the others are the kernel's own: those cannot be told by a name.
const BUILT_IN: [(&str, &str); 1] = [("LimitNOFILE", "1024:524288")];

/// What systemd gives by itself of a directive, where that can be told by a name.
pub(crate) fn built_in(directive: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(name, _)| *name == directive).map(|(_, value)| *value)
}

/// What the files of the unit say, and what it runs with.
pub(crate) fn told(unit: &UnitSetting) -> String {
    let given = match (&unit.given, &unit.default) {
        (Some((value, source)), _) => format!("{source} gives {value}"),
        (None, Some((value, source))) => format!("its files give nothing, and {source} {value} to all units"),
        (None, None) => "its files give nothing".to_owned(),
    };
    let by_group = match &unit.in_force {
        Some((cpus, _)) if cpus.is_empty() => "; its group has no limit".to_owned(),
        Some((cpus, file)) => format!("; {file} has {cpus}"),
        None => String::new(),
    };
    let running = unit.running.as_ref();
    let running =
        running.map(|(value, pid)| format!("; process {pid} runs with {value}")).unwrap_or_default();
    given + &running + &by_group
}

/// That systemd sets nothing of it on this host.
pub(crate) fn hindered(unit: &UnitSetting) -> Option<Verdict> {
    unit.hindered.as_ref().map(|reason| Verdict::new(VerdictKind::Absent, reason.as_str()))
}

/// What becomes of a value for a unit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// This is to be written.
    Write(String),
    /// The unit is given as much already at each of its starts, or more.
    Enough(String),
    /// It may take something from the unit, for this reason: what to write where that is allowed.
    Unsure(String, String),
}

/// What becomes of a wanted value for a unit, whose file of ours shows `now`.
pub(crate) fn fit(kind: &ValueType, unit: Option<&UnitSetting>, now: Option<&str>, wanted: &str) -> Fit {
    let plain = || Fit::Write(kind.normal(wanted));
    let Some(unit) = unit else { return plain() };
    let ours = now.filter(|now| *now != NOT_GIVEN).map(|now| kind.normal(now));
    // What `systemctl set-property --runtime` wrote goes with this boot.
    let lasts = |source: &str| !(kind.is_cpus_of_a_unit() && source.starts_with("/run/"));
    if let (None, Some((given, source))) = (&ours, &unit.given)
        && kind.is_enough(given, wanted)
        && lasts(source)
    {
        return Fit::Enough(format!("{source} gives {given}"));
    }
    if let (ValueType::Setting { directive, .. }, None, Some((given, source))) = (kind, &ours, &unit.given)
        && variable(directive).is_some()
        && let lost = parts_lost(given, wanted).join(":")
        && !lost.is_empty()
    {
        let reason = format!(
            "takes away {lost}, which {source} gives: add it behind a colon, or --allow availability"
        );
        return Fit::Unsure(reason, kind.normal(wanted));
    }
    let ValueType::Setting { directive, at_least: true, .. } = kind else { return plain() };
    let Some(asked) = LimitPair::parse(&kind.normal(wanted)) else { return plain() };
    // What its process runs with says nothing of the next start: a program raises itself, somebody had raised it, or a
    // file that gave it is gone by now.
    let assured = has(directive, &UnitSetting { running: None, ..unit.clone() }, None);
    if let (None, Some((assured, source))) = (&ours, assured)
        && assured.soft >= asked.soft
        && assured.hard >= asked.hard
    {
        return Fit::Enough(source);
    }
    let has = has(directive, unit, ours.as_deref());
    // A share of what the kernel has cannot be told by a name, and one number would take the rest of it.
    if let (None, Some((has, source))) = (&ours, &has)
        && !directive.starts_with("Limit")
        && has.soft > asked.soft
    {
        return Fit::Enough(source.clone());
    }
    let is_pair = directive.starts_with("Limit");
    let written = match &has {
        // A second number that somebody asks for is meant so.
        Some((has, _)) if is_pair && !wanted.contains(':') => {
            LimitPair { hard: has.hard.max(asked.hard), ..asked }
        }
        _ => asked,
    };
    match unsure(directive, written, has.as_ref()) {
        Some(reason) => Fit::Unsure(reason, written.to_string()),
        None => Fit::Write(written.to_string()),
    }
}

/// Why what is written needs more than its class says.
fn unsure(directive: &str, written: LimitPair, has: Option<&(LimitPair, String)>) -> Option<String> {
    let reason = match has {
        _ if directive == "LimitNOFILE" && written.is_endless() => {
            "programs that count their files by the limit, or close all of them, hang or take memory without end"
                .to_owned()
        }
        Some((has, source)) if written.hard < has.hard => format!("it is lowered: {source}"),
        None if !written.is_endless() => "what the unit has now cannot be told, and may be more".to_owned(),
        _ => return None,
    };
    Some(format!("{reason}: --allow availability"))
}

/// What a unit has without a file of ours, as far as it is a number, and who says so: its files, its first process, or
/// systemd for all units. What a file of ours gives stands for it where nobody else can tell.
pub(crate) fn has(directive: &str, unit: &UnitSetting, ours: Option<&str>) -> Option<(LimitPair, String)> {
    let given =
        unit.given.as_ref().map(|(value, source)| (value.as_str(), format!("{source} gives {value}")));
    let ours = ours.map(|ours| (ours, format!("a file of planish gives {ours}")));
    let running = unit.running.as_ref();
    let running = running.map(|(value, pid)| (value.as_str(), format!("process {pid} runs with {value}")));
    let by_all = || unit.given.is_none();
    let default = unit.default.as_ref().filter(|_| by_all());
    let default =
        default.map(|(value, source)| (value.as_str(), format!("{source} gives {value} to all units")));
    let built_in = built_in(directive).filter(|_| by_all());
    let built_in = built_in.map(|value| (value, format!("systemd gives {value} by itself")));
    let known = [given, ours, running, default.or(built_in)].into_iter().flatten();
    known.filter_map(|(value, source)| Some((LimitPair::parse(value)?, source))).next()
}

/// Settings of services that a drop-in of others will change at the next start, since it is read behind ours: of what
/// is written, and of what is as wanted already.
pub(crate) fn read_later(catalogue: &Catalogue, observation: &Observation, plan: &Plan) -> Vec<String> {
    let steps = plan.steps.iter().map(|step| (&step.knob, &step.place, Some(&step.wanted)));
    let kept = plan.skipped.iter().filter(|row| row.satisfied);
    let kept = kept.map(|row| (&row.knob, &row.place, row.wanted.as_ref()));
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let told = |(id, place, wanted): (&KnobId, &String, Option<&String>)| {
        let kind = &catalogue.knob(id).ok()?.r#type;
        let (value, source) = observation.units.get(place)?.given.as_ref()?;
        let path = source.rsplit_once(':').map_or(source.as_str(), |(path, _)| path);
        // The file of the unit itself comes before all drop-ins, whatever it is called.
        let is_behind = path.contains(".d/") && name(path) > name(place) || is_of_variables(path);
        let is_other =
            wanted.is_none_or(|wanted| !kind.same(value, wanted) && !kind.is_enough(value, wanted));
        let is_told = is_behind && is_other && !kind.is_cpus_of_a_unit();
        is_told.then(|| format!("{id}: {}", Persisted::read_later(source, value)))
    };
    steps.chain(kept).filter_map(told).collect()
}

/// Whether it is a file of variables, which count whatever the unit says (`EnvironmentFile=` of systemd.exec(5)).
fn is_of_variables(path: &str) -> bool {
    !path.contains("/systemd/")
}

/// The value of a file of ours that is as good as a wanted one, which says nothing of the second number.
pub(crate) fn as_good(kind: &ValueType, now: Option<&str>, wanted: &str) -> Option<String> {
    let ValueType::Setting { at_least: true, .. } = kind else { return None };
    let now = kind.normal(now.filter(|now| *now != NOT_GIVEN)?);
    let (ours, asked) = (LimitPair::parse(&now)?, LimitPair::parse(&kind.normal(wanted))?);
    (!wanted.contains(':') && ours.soft == asked.soft && ours.hard >= asked.hard).then_some(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(directive: &str, at_least: bool) -> ValueType {
        let (unit, words) = ("files".to_owned(), vec!["infinity".to_owned()]);
        ValueType::Setting { directive: directive.to_owned(), unit, min: Some(1), max: None, words, at_least }
    }

    fn unit(given: Option<&str>, running: Option<&str>, default: Option<&str>) -> UnitSetting {
        let file = |value: &str| (value.to_owned(), "a.service:2".to_owned());
        UnitSetting {
            given: given.map(file),
            running: running.map(|value| (value.to_owned(), 77)),
            default: default.map(file),
            ..UnitSetting::default()
        }
    }

    fn text(fit: Fit) -> String {
        match fit {
            Fit::Write(value) => value,
            Fit::Enough(why) => format!("enough: {why}"),
            Fit::Unsure(why, value) => format!("{value}? {why}"),
        }
    }

    #[test]
    fn a_hard_limit_is_never_lowered() {
        let files = kind("LimitNOFILE", true);
        for (given, running, default, wanted, becomes) in [
            (Some("1024:524288"), None, None, "65536", "65536:524288"),
            (Some("1024:4096"), None, None, "65536", "65536"),
            (Some("1024:infinity"), Some("1024"), None, "65536", "65536:infinity"),
            (None, Some("1024:524288"), None, "65536", "65536:524288"),
            (None, None, None, "65536", "65536:524288"),
            (None, None, Some("1024:1048576"), "65536", "65536:1048576"),
            (None, None, Some("1024:1048576"), "2000000", "2000000"),
            (Some("1K:1M"), None, None, "65536:1048576", "65536:1048576"),
            (None, Some("100000"), None, "65536", "65536:100000"),
            (None, Some("65536:524288"), None, "65536", "65536:524288"),
            (None, Some("65536:524288"), Some("65536:524288"), "65536", "enough: a.service:2 gives"),
            (
                None,
                None,
                Some("65536:524288"),
                "65536",
                "enough: a.service:2 gives 65536:524288 to all units",
            ),
        ] {
            let became = text(fit(&files, Some(&unit(given, running, default)), Some(NOT_GIVEN), wanted));
            assert!(
                became == becomes || becomes.contains("enough") && became.starts_with(becomes),
                "{became}"
            );
        }
    }

    #[test]
    fn what_may_lower_a_limit_needs_a_word() {
        let (files, tasks) = (kind("LimitNOFILE", true), kind("TasksMax", true));
        for (kind, given, running, wanted, becomes) in [
            (
                &files,
                Some("1024:524288"),
                None,
                "65536:65536",
                "65536? it is lowered: a.service:2 gives 1024:524288",
            ),
            (&files, None, None, "infinity", "infinity? programs that count their files by the limit"),
            (&tasks, None, None, "32768", "32768? what the unit has now cannot be told"),
            (&tasks, Some("15%"), None, "32768", "32768? what the unit has now cannot be told"),
            (&tasks, Some("15%"), Some("4915"), "32768", "32768"),
            (&tasks, None, Some("max"), "32768", "enough: process 77 runs with max"),
            (&tasks, None, Some("32768"), "32768", "32768"),
            (&tasks, None, None, "infinity", "infinity"),
            (&kind("LimitNPROC", true), None, None, "4096", "4096? what the unit has now cannot be told"),
        ] {
            let became = text(fit(kind, Some(&unit(given, running, None)), Some(NOT_GIVEN), wanted));
            assert!(became.starts_with(becomes), "{became}");
            assert_eq!(became.contains('?'), became.ends_with(": --allow availability"), "{became}");
        }
    }

    #[test]
    fn a_file_of_ours_with_a_larger_hard_limit_is_as_good() {
        let files = kind("LimitNOFILE", true);
        let now = "[Service]\nLimitNOFILE = 65536:524288\n";
        assert_eq!(as_good(&files, Some(now), "65536").as_deref(), Some("65536:524288"));
        for other in ["100000", "65536:65536", "infinity"] {
            assert_eq!(as_good(&files, Some(now), other), None, "{other}");
        }
        assert_eq!(as_good(&files, Some(NOT_GIVEN), "65536"), None);
        assert_eq!(as_good(&kind("LimitNOFILE", false), Some(now), "65536"), None);
        // Another entry wants more, and nobody but our file knows of the hard limit.
        let over = fit(&files, Some(&unit(None, None, None)), Some(now), "100000");
        assert_eq!(text(over), "100000:524288");
    }
}
