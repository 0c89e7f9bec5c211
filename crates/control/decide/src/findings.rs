//! Findings: the audit rules of the catalogue applied to the facts of an observation, and what a profile
//! misses.

use planish_model::{
    Catalogue, Class, Comparison, CuredBy, DeviceKind, FactValue, Finding, FindingRule, KnobId, Limit,
    MayCost, Measured, Observation, PlacedService, Placement, Plan, Reading, RuleCosts, Severity, Step,
    VerdictKind, When, quoted, units,
};
use planish_sorted::SortSmall as _;

use crate::plan::{Options, forbidden};
use crate::verdict::verdict;
use crate::{pool, writers};

/// What a host is held against.
#[derive(Clone, Copy, Debug)]
pub struct Against<'a> {
    /// The plan of the profile.
    pub plan: &'a Plan,
    /// The profile as it is typed: its name, or the path of its file, by which alone `apply` finds that.
    pub source: &'a str,
    /// The service that was named besides, as it is typed: without it `apply` would plan something else.
    pub service: Option<&'a str>,
}

impl Against<'_> {
    /// The profile and the service behind `apply` or `plan`.
    fn typed(&self) -> String {
        let service = self.service.map(|service| format!(" --service {}", quoted(service)));
        quoted(self.source) + &service.unwrap_or_default()
    }

    /// A cure with the profile and the service in the place of the words that stand for them.
    fn named(&self, cure: &str) -> String {
        let Some(service) = self.service else { return cure.replace("PROFILE", &quoted(self.source)) };
        let service = quoted(service);
        let size = (" size NAME", format!(" size {service}"));
        let plan = format!("PROFILE --service {service}");
        cure.replace(size.0, &size.1)
            .replace("PROFILE --service NAME", &plan)
            .replace("PROFILE", &quoted(self.source))
    }
}

/// What the host loses: what is a danger or a risk, then the dearest that somebody has measured, then the gravest:
/// every rule of the catalogue whose limits all hold, and with a plan every knob that is not as its profile wants.
#[must_use]
pub fn findings(
    catalogue: &Catalogue,
    observation: &Observation,
    against: Option<Against<'_>>,
) -> Vec<Finding> {
    let found = |rule| {
        let finding = judge(rule, observation)?;
        let alone = || cure_alone(rule).unwrap_or_else(|| finding.cure.clone());
        let cure = match against {
            Some(against) => cure_by(rule, against, catalogue).unwrap_or_else(|| against.named(&alone())),
            None => alone(),
        };
        Some(Finding { cure, ..finding })
    };
    let mut findings: Vec<Finding> = catalogue.findings().iter().filter_map(found).collect();
    findings.extend(writers::findings(catalogue, observation));
    if let Some(against) = against {
        let Against { plan, .. } = against;
        let placement = plan.placement.iter();
        findings.extend(placement.flat_map(|placement| far_devices(catalogue, observation, placement)));
        // What a rule has found, with what it may cost, the row of its knob would tell once more, and without that.
        let told: Vec<&KnobId> = catalogue
            .findings()
            .iter()
            .filter(|rule| findings.iter().any(|finding| finding.id == rule.id))
            .flat_map(|rule| &rule.cured_by)
            .filter(|by| {
                plan.steps.iter().any(|step| step.knob == by.knob && cures(catalogue, by, &step.wanted))
            })
            .map(|by| &by.knob)
            .collect();
        let by_knob = plan.steps.chunk_by(|a, b| a.knob == b.knob);
        let by_knob = by_knob.filter(|steps| !told.contains(&&steps[0].knob));
        findings.extend(by_knob.map(|steps| missed(steps, against, catalogue)));
        findings.extend(not_allowed(catalogue, observation, against));
    }
    ranked(findings)
}

/// Dangers first, and what is a risk: a program that the kernel ends is no share of its speed, and stands before every
/// such share. Then by cost, where somebody has measured that, the dearest first, whatever the severity: a note of 50 %
/// is more to look at than a warning of 1 %. Then the others by severity. What is alike keeps its order.
fn ranked(mut findings: Vec<Finding>) -> Vec<Finding> {
    let endangers = |finding: &Finding| {
        let is_risk = finding.risk.is_some() && finding.severity > Severity::Note;
        (finding.severity == Severity::Danger || is_risk).then_some((finding.severity, is_risk))
    };
    let share = |finding: &Finding| finding.may_cost.as_ref().map_or(-1.0, |cost| cost.percent);
    findings.sort_small_by(|a, b| {
        let by_danger = endangers(b).cmp(&endangers(a));
        by_danger.then(share(b).total_cmp(&share(a))).then(b.severity.cmp(&a.severity))
    });
    findings
}

/// Findings with what trials on this host measured in the place of general figures: of the value that the plan wants of
/// the knob that is meant, or of one that cures the finding. What another value of that knob did says nothing here. Of
/// several proofs the newest counts.
#[must_use]
pub fn weigh(
    catalogue: &Catalogue,
    findings: Vec<Finding>,
    plan: Option<&Plan>,
    measured: &[Measured],
) -> Vec<Finding> {
    let is_wanted = |found: &Measured| {
        let mut steps = plan.iter().flat_map(|plan| &plan.steps);
        let value = normal(catalogue, &found.knob, &found.wanted);
        steps.any(|step| step.knob == found.knob && normal(catalogue, &step.knob, &step.wanted) == value)
    };
    let weighed = findings.into_iter().map(|finding| {
        let rule = catalogue.findings().iter().find(|rule| rule.id == finding.id);
        let is_meant = |found: &&Measured| {
            let mut cured_by = rule.iter().flat_map(|rule| &rule.cured_by);
            (finding.knob.as_ref() == Some(&found.knob) && is_wanted(found))
                || cured_by.any(|by| by.knob == found.knob && cures(catalogue, by, &found.wanted))
        };
        let newest = measured.iter().filter(is_meant).max_by_key(|found| found.at);
        let may_cost = newest.map(|found| MayCost {
            percent: found.percent,
            of: found.of.clone(),
            by: found.by.clone(),
        });
        let costs = finding.costs.filter(|_| may_cost.is_none());
        Finding { may_cost: may_cost.or(finding.may_cost), costs, ..finding }
    });
    ranked(weighed.collect())
}

fn normal(catalogue: &Catalogue, knob: &KnobId, value: &str) -> String {
    catalogue.knob(knob).map_or(value.to_owned(), |knob| knob.r#type.normal(value))
}

/// Whether a value that is wanted of a knob is one of those that cure.
fn cures(catalogue: &Catalogue, cured_by: &CuredBy, wanted: &str) -> bool {
    let wanted = normal(catalogue, &cured_by.knob, wanted);
    let value = match &cured_by.value {
        FactValue::Number(_) => wanted.parse().map(FactValue::Number).ok(),
        FactValue::Text(_) => Some(FactValue::Text(wanted)),
    };
    value.is_some_and(|value| compare(&value, cured_by.when, &cured_by.value))
}

/// The finding of one rule, when all its limits hold. A fact that was not seen breaks no rule.
fn judge(rule: &FindingRule, observation: &Observation) -> Option<Finding> {
    let fact = observation.facts.get(&rule.fact)?;
    let holds = |limit: &Limit| {
        let fact = limit.fact.as_ref().map_or(Some(fact), |name| observation.facts.get(name));
        fact.is_some_and(|fact| compare(fact, limit.when, &limit.value))
    };
    rule.limits.iter().all(holds).then(|| Finding {
        id: rule.id.clone(),
        knob: None,
        severity: rule.severity,
        may_cost: rule.costs.as_ref().and_then(|costs| may_cost(costs, observation)),
        costs: rule.costs.as_ref().and_then(|costs| other_costs(costs, &rule.fact, observation)),
        risk: rule.risk.as_ref().map(|risk| fill(risk, &rule.fact, observation)),
        class: rule.class,
        evidence: fill(&rule.evidence, &rule.fact, observation),
        why: rule.why.clone(),
        cure: fill(&rule.cure, &rule.fact, observation),
        source: rule.source.clone(),
    })
}

/// The cure of a rule by the profile that was named, where that sets a knob which cures it: to apply another one
/// besides would have two of them fight for the knob. A profile that wants a value which cures nothing is told so.
fn cure_by(rule: &FindingRule, against: Against<'_>, catalogue: &Catalogue) -> Option<String> {
    let Against { plan, source, .. } = against;
    let satisfied = plan.skipped.iter().filter(|row| row.satisfied);
    let satisfied = satisfied.filter_map(|row| Some((&row.knob, row.wanted.as_deref()?)));
    let steps = plan.steps.iter().map(|step| (&step.knob, step.wanted.as_str()));
    let mut leaves_it = None;
    for (knob, wanted) in steps.chain(satisfied) {
        for cured_by in rule.cured_by.iter().filter(|cured_by| cured_by.knob == *knob) {
            if cures(catalogue, cured_by, wanted) {
                return Some(with_source(&rule.cure, &against.typed()));
            }
            let wanted = normal(catalogue, knob, wanted);
            leaves_it.get_or_insert_with(|| {
                format!("{} wants {knob} = {wanted}, which leaves it so: change that there", quoted(source))
            });
        }
    }
    leaves_it
}

/// The cure of a rule where no profile was named that has to do with it: the one knob that cures it, before a profile
/// that sets much besides that nobody asked for.
fn cure_alone(rule: &FindingRule) -> Option<String> {
    let cured_by = rule.cured_by.first().filter(|_| rule.cure.starts_with("planish apply "))?;
    let value = match &cured_by.value {
        FactValue::Number(number) => number.to_string(),
        FactValue::Text(text) => format!("\"{text}\""),
    };
    let how = match cured_by.when {
        Comparison::Is => format!("= {value}"),
        Comparison::Not => format!("other than {value}"),
        Comparison::Below => format!("below {value}"),
        Comparison::Above => format!("above {value}"),
    };
    let knob = &cured_by.knob;
    let alone =
        format!("\"{knob}\" {how} in a profile of your own (docs/profiles.md), which sets that alone");
    Some(format!("{alone}; or, with all else that it sets: {}", rule.cure))
}

/// A cure with another profile in its `planish apply PROFILE`, as it is typed.
fn with_source(cure: &str, typed: &str) -> String {
    const APPLY: &str = "planish apply ";
    let Some((before, after)) = cure.split_once(APPLY) else { return cure.to_owned() };
    let name = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(after.len());
    format!("{before}{APPLY}{typed}{}", &after[name..])
}

/// What a rule says that it may cost, with the fact of this host where it names one.
fn may_cost(costs: &RuleCosts, observation: &Observation) -> Option<MayCost> {
    let RuleCosts::Measured(costs) = costs else { return None };
    let percent = match &costs.share {
        FactValue::Number(percent) => *percent,
        FactValue::Text(fact) => match observation.facts.get(fact)? {
            FactValue::Number(percent) => *percent,
            FactValue::Text(_) => return None,
        },
    };
    Some(MayCost { percent, of: costs.of.clone(), by: costs.by.clone() })
}

/// What a rule says of a cost that is no share.
fn other_costs(costs: &RuleCosts, own: &str, observation: &Observation) -> Option<String> {
    match costs {
        RuleCosts::Measured(_) => None,
        RuleCosts::Figure(costs) => Some(format!("{} ({})", fill(&costs.figure, own, observation), costs.by)),
        RuleCosts::Unknown(why) => Some(fill(why, own, observation)),
    }
}

fn compare(fact: &FactValue, when: Comparison, limit: &FactValue) -> bool {
    match (fact, limit) {
        (FactValue::Number(fact), FactValue::Number(limit)) => match when {
            Comparison::Above => fact > limit,
            Comparison::Below => fact < limit,
            Comparison::Is => fact == limit,
            Comparison::Not => fact != limit,
        },
        (FactValue::Text(fact), FactValue::Text(limit)) => match when {
            Comparison::Is => fact == limit,
            Comparison::Not => fact != limit,
            Comparison::Above | Comparison::Below => false,
        },
        _ => false,
    }
}

/// A rule's text with facts in the place of `{}` and `{name}`.
fn fill(text: &str, own: &str, observation: &Observation) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        let name = if name.is_empty() { own } else { name };
        filled += before;
        filled += &observation.facts.get(name).map_or_else(|| "unknown".to_owned(), |fact| say(name, fact));
        rest = after;
    }
    filled + rest
}

/// A fact in its unit, which its name ends with.
fn say(name: &str, fact: &FactValue) -> String {
    match fact {
        FactValue::Text(text) => text.clone(),
        FactValue::Number(number) if name.ends_with("_bytes") => units::bytes(number.max(0.0) as u64),
        FactValue::Number(number) if name.ends_with("_percent") => format!("{number:.1} %"),
        FactValue::Number(number) if name.ends_with("_us") => format!("{number:.0} µs"),
        FactValue::Number(number) => format!("{number:.0}"),
    }
}

/// Disks and cards that are not on the node of the service that works with them. Where the firmware does not tell a
/// node nothing is known to be lost.
fn far_devices(catalogue: &Catalogue, observation: &Observation, placement: &Placement) -> Vec<Finding> {
    let far = placement.services.iter().flat_map(|service| service.far.iter().map(move |far| (service, far)));
    let known = far.map(|(service, device)| {
        (service, device, device.node.and_then(|_| rule_of_far(catalogue, observation, &device.name)))
    });
    known
        .map(|(service, device, rule)| {
            Finding {
        id: "placement.far_device".to_owned(),
        knob: None,
        severity: if device.node.is_some() { Severity::Warning } else { Severity::Note },
        may_cost: rule.and_then(|rule| may_cost(rule.costs.as_ref()?, observation)),
        costs: rule.and_then(|rule| other_costs(rule.costs.as_ref()?, &rule.fact, observation)),
        risk: None,
        class: Class::Safe,
        evidence: format!("{} is placed on node {}, and {}", service.unit, nodes(service), device.remark()),
        why:
            "What a device writes into memory, and what is read of it, crosses the link between the packages."
                .to_owned(),
        cure: "place the service on the node of its device, or let it use one on its own: planish topo"
            .to_owned(),
        source: "Documentation/ABI/testing/sysfs-bus-pci: numa_node (unread)".to_owned(),
    }
        })
        .collect()
}

/// The rule that tells what a device of this kind costs on another node, where a service runs already.
fn rule_of_far<'a>(
    catalogue: &'a Catalogue,
    observation: &Observation,
    name: &str,
) -> Option<&'a FindingRule> {
    let devices = &observation.machine.as_ref()?.devices;
    let id = match devices.iter().find(|device| device.name == name)?.kind {
        DeviceKind::Nic => "service.far_card",
        DeviceKind::Disk => "service.far_disk",
    };
    catalogue.findings().iter().find(|rule| rule.id == id)
}

fn nodes(service: &PlacedService) -> String {
    let nodes: Vec<String> = service.nodes.iter().map(u32::to_string).collect();
    nodes.join(",")
}

/// What a row says that no trial has measured.
const NO_PROOF: &str = "none yet";

/// One finding for all places of a knob that are not as wanted.
fn missed(steps: &[Step], against: Against<'_>, catalogue: &Catalogue) -> Finding {
    let Against { plan, source, .. } = against;
    let first = &steps[0];
    let told = |raw: &str| {
        catalogue.knob(&first.knob).map_or_else(|_| raw.to_owned(), |knob| knob.r#type.with_unit(raw))
    };
    let (now, wanted) = (told(&first.now), told(&first.wanted));
    let proof =
        catalogue.knob(&first.knob).ok().filter(|knob| knob.proof != NO_PROOF).map(|knob| &knob.proof);
    let evidence = if first.raise_pages.is_some() {
        let pages: u64 = steps.iter().filter_map(|step| step.raise_pages).sum();
        let told = steps.iter().find(|step| pool::idle_beside(step).is_some()).unwrap_or(first);
        let because = told.because.as_deref().unwrap_or("for its own need");
        format!("{} wants {pages} more pages: {because}", plan.profile)
    } else if steps.len() == 1 {
        format!("{} is {now}, {} wants {wanted}", first.knob, plan.profile)
    } else {
        let count = steps.len();
        format!("{count} places are not {wanted}, such as {} with {now}", first.place)
    };
    Finding {
        id: first.knob.to_string(),
        knob: Some(first.knob.clone()),
        severity: Severity::Note,
        may_cost: None,
        costs: proof.map(|proof| format!("measured on other hosts: {proof}")),
        risk: None,
        class: first.class,
        evidence,
        why: first.why.clone(),
        // A pool is planned for the service that is named, and for nobody else.
        cure: match &first.service {
            Some(service) if against.service.is_none() => {
                beside_idle(steps, format!("planish apply {} --service {}", quoted(source), quoted(service)))
            }
            _ => beside_idle(steps, format!("planish apply {}", against.typed())),
        },
        source: first.source.clone(),
    }
}

/// The cure of a pool that is too small. Where pages of it lie idle another rule tells of those, and they may be meant.
fn beside_idle(steps: &[Step], apply: String) -> String {
    match steps.iter().find(|step| pool::idle_beside(step).is_some()) {
        Some(step) => format!("{}; else {apply}", pool::cure_of_idle(step)),
        None => apply,
    }
}

/// What the profile wants and the user has to allow first: it can be set here, and no apply does it unasked. One
/// finding for all places of a knob.
fn not_allowed(catalogue: &Catalogue, observation: &Observation, against: Against<'_>) -> Vec<Finding> {
    let Against { plan, .. } = against;
    let mut found: Vec<Finding> = Vec::new();
    for row in plan.skipped.iter().filter(|row| !row.satisfied && !row.impossible && !row.hindered) {
        let Ok(knob) = catalogue.knob(&row.knob) else { continue };
        // Of a class that is allowed by hand alone; a placement tells its own reason, once.
        let is_meant = forbidden(knob, &Options::default()).is_some_and(|why| why == row.verdict.reason);
        let is_told = found.iter().any(|finding| finding.knob.as_ref() == Some(&row.knob));
        let (true, false, Some(wanted)) = (is_meant, is_told, &row.wanted) else { continue };
        let allow = match knob.class {
            Class::Availability => "--allow availability".to_owned(),
            Class::Durability => "--allow durability".to_owned(),
            _ => format!("--allow-knob {}", knob.id),
        };
        // What is so already, or cannot be here, nobody needs to allow.
        let told = |raw: &str| knob.r#type.with_unit(raw);
        let can_be = |reading: &Reading| {
            matches!(verdict(knob, observation, reading).verdict, VerdictKind::Settable | VerdictKind::Reboot)
        };
        let now = |reading: &Reading| match reading.value.as_deref() {
            _ if !can_be(reading) => None,
            Some(now) => (!knob.r#type.same(now, wanted)).then(|| told(now.trim())),
            None => (knob.when == When::Boot).then(|| "not given".to_owned()),
        };
        let mut readings = observation.knobs.get(&row.knob).into_iter().flatten();
        let Some(now) = readings.find_map(now) else { continue };
        found.push(Finding {
            id: row.knob.to_string(),
            knob: Some(row.knob.clone()),
            severity: Severity::Note,
            may_cost: None,
            costs: (knob.proof != NO_PROOF).then(|| format!("measured on other hosts: {}", knob.proof)),
            risk: None,
            class: knob.class,
            evidence: format!(
                "{} is {now}, {} wants {}, and nobody has allowed it: {}",
                row.knob,
                plan.profile,
                told(wanted),
                row.verdict.reason.split(": ").next().unwrap_or_default()
            ),
            why: knob.why.clone(),
            cure: format!("planish apply {} {allow}", against.typed()),
            source: knob.source.clone(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use planish_model::Want;

    use super::*;
    use crate::testing::{catalogue, observation, profile};

    const RULES: &str = r#"
[[finding]]
id = "thp.stalls"
fact = "thp.enabled"
limits = [
  { when = "is", value = "always" },
  { fact = "thp.defrag", when = "is", value = "always" },
  { fact = "memory.page_tables_bytes", when = "above", value = 1048576 },
]
severity = "warning"
costs = "planish has not measured it"
class = "safe"
evidence = "enabled is {}, defrag {thp.defrag}, page tables {memory.page_tables_bytes}"
why = "a fault waits for compaction"
cure = "planish apply low-latency"
source = "s"
"#;

    fn facts(enabled: &str, tables: f64) -> Observation {
        let mut observation = observation();
        observation.facts.insert("thp.enabled".to_owned(), FactValue::Text(enabled.to_owned()));
        observation.facts.insert("thp.defrag".to_owned(), FactValue::Text("always".to_owned()));
        observation.facts.insert("memory.page_tables_bytes".to_owned(), FactValue::Number(tables));
        observation
    }

    #[test]
    fn a_rule_speaks_when_all_its_limits_hold() {
        let mut catalogue = catalogue();
        catalogue.add_findings("own.toml", RULES).expect("good rules");
        let found = findings(&catalogue, &facts("always", 3e6), None);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].evidence, "enabled is always, defrag always, page tables 2.9 MiB");
        assert!(findings(&catalogue, &facts("madvise", 3e6), None).is_empty());
        assert!(findings(&catalogue, &facts("always", 1e6), None).is_empty());
        assert!(
            findings(&catalogue, &observation(), None).is_empty(),
            "a fact that was not seen breaks no rule"
        );
    }

    #[test]
    fn a_danger_or_a_risk_comes_first_then_the_dearest_whatever_its_severity_and_then_the_gravest() {
        const UNKNOWN: &str = "costs = \"planish has not measured it\"";
        let mut catalogue = catalogue();
        let rule = |id: &str, severity: &str, costs: &str| {
            format!(
                "[[finding]]\nid = \"{id}\"\nfact = \"cpu.steal_percent\"\nlimits = []\nseverity = \"{severity}\"\n\
                 {costs}\nclass = \"safe\"\nevidence = \"e\"\nwhy = \"w\"\ncure = \"c\"\nsource = \"s\"\n"
            )
        };
        let rules = [
            rule("a", "note", "costs = { share = 90, of = \"o\", by = \"b\" }"),
            rule("b", "warning", UNKNOWN),
            rule("c", "warning", "costs = { share = 5, of = \"o\", by = \"b\" }"),
            rule("d", "warning", "costs = { share = \"cpu.steal_percent\", of = \"o\", by = \"b\" }"),
            rule("e", "danger", UNKNOWN),
            rule("f", "danger", "costs = { share = 99, of = \"o\", by = \"b\" }"),
            rule("g", "danger", "risk = \"the kernel ends it at {cpu.steal_percent}\""),
            rule("h", "warning", "costs = { share = 2, of = \"o\", by = \"b\" }\nrisk = \"r\""),
            rule("i", "note", "costs = { figure = \"{} late\", by = \"b\" }"),
        ];
        catalogue.add_findings("own.toml", &rules.concat()).expect("good rules");
        let mut observation = observation();
        observation.facts.insert("cpu.steal_percent".to_owned(), FactValue::Number(7.5));
        let found = findings(&catalogue, &observation, None);
        let ids: Vec<&str> = found.iter().map(|finding| finding.id.as_str()).collect();
        assert_eq!(ids, ["g", "f", "e", "h", "a", "d", "c", "b", "i"]);
        let cost = found[5].may_cost.as_ref().expect("its fact is there");
        assert_eq!((cost.percent, found[5].class, found[5].source.as_str()), (7.5, Class::Safe, "s"));
        assert_eq!(found[0].risk.as_deref(), Some("the kernel ends it at 7.5 %"));
        assert_eq!(found[8].costs.as_deref(), Some("7.5 % late (b)"));
        assert_eq!(found[7].costs.as_deref(), Some("planish has not measured it"));
    }

    #[test]
    fn without_a_profile_that_sets_it_the_one_knob_is_the_cure() {
        let mut catalogue = catalogue();
        let cured_by =
            "cured_by = [{ knob = \"vm.swappiness\", when = \"below\", value = 11 }]\nsource = \"s\"";
        let rule = |cure: &str| {
            let line = RULES.lines().find(|line| line.starts_with("cure")).expect("it has one");
            RULES.replace("source = \"s\"", cured_by).replace(line, &format!("cure = \"{cure}\""))
        };
        let rules = rule("planish apply series") + &rule("ask its owner").replace("thp.stalls", "other");
        catalogue.add_findings("own.toml", &rules).expect("good rules");
        let seen = facts("always", 3e6);
        let cures = |against| -> Vec<String> {
            let found = findings(&catalogue, &seen, against).into_iter();
            found.filter(|found| found.knob.is_none()).map(|found| found.cure).collect()
        };
        let alone = "\"vm.swappiness\" below 11 in a profile of your own (docs/profiles.md), which sets that alone; \
                     or, with all else that it sets: planish apply series";
        assert_eq!(cures(None), [alone, "ask its owner"]);
        // A profile that has nothing to do with it makes no other one the better cure.
        let other = profile(&[("cpu.governor", Want::Text("performance".to_owned()))]);
        let plan = crate::plan(&catalogue, &seen, &other, &[], &Options::default()).expect("known");
        assert_eq!(
            cures(Some(Against { plan: &plan, source: "other", service: None })),
            [alone, "ask its owner"]
        );
    }

    #[test]
    fn a_rule_without_a_cost_and_without_a_risk_is_refused() {
        let bare = RULES.replace("costs = \"planish has not measured it\"\n", "");
        let refused = catalogue().add_findings("own.toml", &bare).expect_err("nothing is said");
        assert_eq!(
            refused.to_string(),
            "own.toml: thp.stalls: it says neither what it costs nor what it risks"
        );
    }

    #[test]
    fn what_was_measured_here_outranks_a_general_figure_and_the_newest_counts() {
        let mut catalogue = catalogue();
        let cured_by =
            "cured_by = [{ knob = \"vm.swappiness\", when = \"below\", value = 11 }]\nsource = \"s\"";
        let general = "costs = { share = 90, of = \"o\", by = \"a proof of ours\" }";
        let own = RULES
            .replace("source = \"s\"", cured_by)
            .replace("costs = \"planish has not measured it\"", general);
        let other = RULES.replace("thp.stalls", "other").replace(
            "costs = \"planish has not measured it\"",
            "costs = { share = 5, of = \"o\", by = \"b\" }",
        );
        catalogue.add_findings("own.toml", &(own + &other)).expect("good rules");
        let measured = |percent: f64, at: u64| Measured {
            knob: KnobId::new("vm.swappiness"),
            wanted: "10".to_owned(),
            percent,
            of: "throughput".to_owned(),
            by: format!("proof {at}"),
            at,
        };
        let general = findings(&catalogue, &facts("always", 3e6), None);
        assert_eq!((general[0].id.as_str(), general[1].id.as_str()), ("thp.stalls", "other"));
        let weighed = weigh(&catalogue, general.clone(), None, &[measured(1.5, 20), measured(80.0, 10)]);
        let told: Vec<(&str, f64, &str)> = weighed
            .iter()
            .filter_map(|finding| {
                let cost = finding.may_cost.as_ref()?;
                Some((finding.id.as_str(), cost.percent, cost.by.as_str()))
            })
            .collect();
        assert_eq!(told, [("other", 5.0, "b"), ("thp.stalls", 1.5, "proof 20")]);
        let worse = Measured { wanted: "100".to_owned(), ..measured(0.0, 30) };
        let kept = weigh(&catalogue, general, None, std::slice::from_ref(&worse));
        let cost = kept[0].may_cost.as_ref().expect("the general one");
        assert_eq!((kept[0].id.as_str(), cost.percent), ("thp.stalls", 90.0), "a value that cures nothing");
        let profile = profile(&[
            ("vm.swappiness", Want::Int(10)),
            ("cpu.governor", Want::Text("performance".to_owned())),
        ]);
        let plan =
            crate::plan(&catalogue, &observation(), &profile, &[], &Options::default()).expect("known");
        let found = findings(
            &catalogue,
            &observation(),
            Some(Against { plan: &plan, source: "series", service: None }),
        );
        let found = weigh(&catalogue, found, Some(&plan), &[measured(1.5, 20)]);
        assert_eq!(
            found[0].id, "vm.swappiness",
            "the knob that was measured comes before those that were not"
        );
        assert!(found[0].may_cost.is_some() && found[1].may_cost.is_none());
        let found = findings(
            &catalogue,
            &observation(),
            Some(Against { plan: &plan, source: "series", service: None }),
        );
        let found = weigh(&catalogue, found, Some(&plan), &[worse]);
        assert!(found.iter().all(|finding| finding.may_cost.is_none()), "the profile wants another value");
    }

    #[test]
    fn every_shipped_rule_says_what_it_may_cost_or_risks_or_why_nobody_knows() {
        let catalogue = Catalogue::embedded().expect("sound");
        for rule in catalogue.findings() {
            let is_told = match &rule.costs {
                Some(RuleCosts::Measured(costs)) => !costs.of.is_empty() && !costs.by.is_empty(),
                Some(RuleCosts::Figure(costs)) => !costs.figure.is_empty() && !costs.by.is_empty(),
                Some(RuleCosts::Unknown(why)) => !why.is_empty() && !why.contains("has not measured"),
                None => rule.risk.is_some(),
            };
            assert!(is_told && rule.risk.as_deref() != Some(""), "{}", rule.id);
            assert!(!rule.source.is_empty() && !rule.cure.is_empty(), "{}", rule.id);
        }
    }

    /// What ends a program or loses its data stands before every share of a speed: its rule is no note, and of one
    /// severity a risk comes first. A risk that is a note costs a start or a connection, which is seen at once.
    #[test]
    fn no_shipped_rule_of_killed_programs_is_a_note() {
        const SEEN_AT_ONCE: [&str; 4] =
            ["hugetlb.boot_short", "hugetlb.unmounted", "msr.open", "service.nofile_low"];
        let catalogue = Catalogue::embedded().expect("sound");
        let risks = || catalogue.findings().iter().filter(|rule| rule.risk.is_some());
        let notes = risks().filter(|rule| rule.severity == Severity::Note).map(|rule| rule.id.as_str());
        assert_eq!(notes.collect::<std::collections::BTreeSet<_>>(), SEEN_AT_ONCE.into());
        assert!(risks().count() >= 10);
        for id in ["memory.nearly_full", "hugetlb.overcommit_large", "service.oom_killed"] {
            let rule = risks().find(|rule| rule.id == id).expect("a risk");
            assert_eq!(rule.severity, Severity::Danger, "{id}");
        }
    }

    #[test]
    fn a_profile_that_is_not_met_is_found_once_a_knob() {
        let (catalogue, observation) = (catalogue(), observation());
        let profile = profile(&[
            ("vm.swappiness", Want::Int(10)),
            ("thp.enabled", Want::Text("never".to_owned())),
            ("cpu.governor", Want::Text("performance".to_owned())),
        ]);
        let plan =
            crate::plan(&catalogue, &observation, &profile, &[], &Options::default()).expect("known knobs");
        let found = findings(
            &catalogue,
            &observation,
            Some(Against { plan: &plan, source: "series", service: None }),
        );
        let ids: Vec<_> = found.iter().map(|finding| finding.knob.as_ref().map(KnobId::as_str)).collect();
        assert_eq!(ids, [Some("cpu.governor"), Some("thp.enabled"), Some("vm.swappiness")]);
        assert_eq!(found[1].evidence, "thp.enabled is madvise, series wants never");
        assert_eq!(found[2].evidence, "vm.swappiness is 60, series wants 10");
        assert!(found[0].evidence.starts_with("2 places are not performance"), "{}", found[0].evidence);
        // Any user chooses the name of a process, and root types the cure.
        let mut plan = plan;
        plan.steps.iter_mut().for_each(|step| step.service = Some("x;id>/tmp/q".to_owned()));
        let found = findings(
            &catalogue,
            &observation,
            Some(Against { plan: &plan, source: "./a b.toml", service: None }),
        );
        assert_eq!(found[2].cure, "planish apply './a b.toml' --service 'x;id>/tmp/q'");
    }

    #[test]
    fn cures_keep_the_service_that_was_named() {
        let mut catalogue = catalogue();
        let cured_by =
            "cured_by = [{ knob = \"vm.swappiness\", when = \"below\", value = 11 }]\nsource = \"s\"";
        let other = "cure = \"planish size NAME; planish plan PROFILE --service NAME, \
                     or planish plan PROFILE --persist\"";
        let rules = RULES.replace("source = \"s\"", cured_by)
            + &RULES.replace("thp.stalls", "other").replace("cure = \"planish apply low-latency\"", other);
        catalogue.add_findings("own.toml", &rules).expect("good rules");
        let profile = profile(&[
            ("vm.swappiness", Want::Int(10)),
            ("cpu.governor", Want::Text("performance".to_owned())),
        ]);
        let seen = facts("always", 3e6);
        let plan = crate::plan(&catalogue, &seen, &profile, &[], &Options::default()).expect("known");
        let cures = |service| {
            let found = findings(&catalogue, &seen, Some(Against { plan: &plan, source: "series", service }));
            let cure = |id: &str| found.iter().find(|one| one.id == id).expect(id).cure.clone();
            [cure("thp.stalls"), cure("cpu.governor"), cure("other")]
        };
        let named = "planish apply series --service 'a b'";
        let size =
            "planish size 'a b'; planish plan series --service 'a b', or planish plan series --persist";
        assert_eq!(cures(Some("a b")), [named, named, size]);
        let size = "planish size NAME; planish plan series --service NAME, or planish plan series --persist";
        assert_eq!(cures(None), ["planish apply series", "planish apply series", size]);
    }

    /// The rule has the cost, and the row of the knob would call it unknown, ten lines on.
    #[test]
    fn what_a_rule_has_found_the_profile_does_not_find_once_more() {
        let mut catalogue = catalogue();
        let cured_by =
            "cured_by = [{ knob = \"vm.swappiness\", when = \"below\", value = 11 }]\nsource = \"s\"";
        catalogue.add_findings("own.toml", &RULES.replace("source = \"s\"", cured_by)).expect("good rules");
        let seen = facts("always", 3e6);
        let ids = |swappiness: i64| {
            let profile = profile(&[
                ("vm.swappiness", Want::Int(swappiness)),
                ("cpu.governor", Want::Text("performance".to_owned())),
            ]);
            let plan = crate::plan(&catalogue, &seen, &profile, &[], &Options::default()).expect("known");
            let against = Against { plan: &plan, source: "series", service: None };
            let found = findings(&catalogue, &seen, Some(against));
            found.into_iter().map(|finding| finding.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(10), ["thp.stalls", "cpu.governor"]);
        assert_eq!(ids(30), ["thp.stalls", "cpu.governor", "vm.swappiness"], "30 cures nothing of the rule");
    }

    #[test]
    fn what_nobody_allowed_is_found_with_what_allows_it() {
        let catalogue = Catalogue::embedded().expect("sound");
        let mut seen = observation();
        let id = KnobId::new("vm.overcommit_memory");
        let path = "/proc/sys/vm/overcommit_memory";
        let of = |value: &str, observation: &mut Observation| {
            let reading = crate::testing::reading(path, value);
            observation.knobs.insert(id.clone(), vec![reading]);
        };
        of("0", &mut seen);
        let profile = profile(&[(id.as_str(), Want::Int(1))]);
        let found = |seen: &Observation| {
            let plan = crate::plan(&catalogue, seen, &profile, &[], &Options::default()).expect("known");
            let waits = plan.skipped.iter().any(|row| row.knob == id && row.not_allowed);
            assert!(waits, "{:?}", plan.skipped);
            let against = Against { plan: &plan, source: "redis", service: Some("redis") };
            findings(&catalogue, seen, Some(against)).into_iter().find(|one| one.knob.as_ref() == Some(&id))
        };
        let one = found(&seen).expect("told");
        assert_eq!(one.cure, "planish apply redis --service redis --allow availability");
        assert_eq!(one.severity, Severity::Note);
        assert!(one.evidence.contains("is 0, series wants 1, and nobody has allowed it"), "{}", one.evidence);
        of("1", &mut seen);
        assert_eq!(found(&seen), None, "it is so already");
    }

    #[test]
    fn a_knob_that_the_named_profile_sets_is_cured_by_no_other_one() {
        let mut catalogue = catalogue();
        let cured_by = "cured_by = [{ knob = \"thp.enabled\", when = \"not\", value = \"always\" },\n\
                        { knob = \"vm.swappiness\", when = \"below\", value = 11 }]\n";
        let rules =
            RULES.replace("apply low-latency\"\n", &format!("apply low-latency, or wait\"\n{cured_by}"));
        catalogue.add_findings("own.toml", &rules).expect("good rules");
        catalogue.check().expect("knobs that exist");
        let observation = facts("always", 3e6);
        let cure = |id: &str, want: Want| {
            let wanted = profile(&[(id, want)]);
            let plan = crate::plan(&catalogue, &observation, &wanted, &[], &Options::default());
            let plan = plan.expect("known knobs");
            let against = Against { plan: &plan, source: "./own.toml", service: None };
            findings(&catalogue, &observation, Some(against))[0].cure.clone()
        };
        assert_eq!(cure("vm.swappiness", Want::Int(10)), "planish apply ./own.toml, or wait");
        assert_eq!(cure("thp.enabled", Want::Text("never".to_owned())), "planish apply ./own.toml, or wait");
        assert_eq!(
            cure("vm.swappiness", Want::Int(60)),
            "./own.toml wants vm.swappiness = 60, which leaves it so: change that there"
        );
        assert_eq!(
            cure("vm.dirty_bytes", Want::Int(8192)),
            "\"thp.enabled\" other than \"always\" in a profile of your own (docs/profiles.md), which sets that alone; \
             or, with all else that it sets: planish apply low-latency, or wait"
        );
        let misspelt = rules.replace("thp.stalls", "x").replace("vm.swappiness", "vm.swapiness");
        catalogue.add_findings("own.toml", &misspelt).expect("good rules");
        assert!(catalogue.check().is_err(), "a rule names no knob that is not there");
    }

    #[test]
    fn what_a_shipped_rule_cures_its_profile_cures_too() {
        let catalogue = Catalogue::embedded().expect("sound");
        let rules: Vec<_> = catalogue.findings().iter().filter(|rule| !rule.cured_by.is_empty()).collect();
        assert!(rules.len() >= 6);
        for rule in catalogue.findings().iter().filter(|rule| rule.cure.contains("planish apply ")) {
            assert!(!rule.cured_by.is_empty(), "{}: which knob cures it?", rule.id);
            let (_, rest) = rule.cure.split_once("planish apply ").expect("it is there");
            let name = rest.split([',', ' ']).next().expect("a word");
            let wanted = &catalogue.profile(name).expect("shipped").want;
            assert!(rule.cured_by.iter().all(|by| wanted.contains_key(&by.knob)), "{}", rule.id);
        }
    }
}
