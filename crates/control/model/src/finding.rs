//! Findings: what a machine loses, why, and the cure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Class, FactValue, KnobId};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Note,
    /// Speed is lost.
    Warning,
    /// The host or its data is in danger.
    Danger,
}

/// How a fact is compared with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Comparison {
    /// Found when the fact is above the limit.
    Above,
    /// Found when the fact is below the limit.
    Below,
    /// Found when the fact equals the limit.
    Is,
    /// Found when the fact differs from the limit.
    Not,
}

/// A comparison and its limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// The fact that is compared; the rule's own where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<String>,
    /// How to compare.
    pub when: Comparison,
    /// With what.
    pub value: FactValue,
}

/// An audit rule: a row of `catalogue/findings/*.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindingRule {
    /// Stable dotted name.
    pub id: String,
    /// The fact of the observation that is judged.
    pub fact: String,
    /// When it is a finding. All must hold.
    pub limits: Vec<Limit>,
    /// How much it matters.
    pub severity: Severity,
    /// What it may cost at most, or why nobody can say. A rule has this, a risk, or both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<RuleCosts>,
    /// What may fail or be lost: a failure, and not a speed. Facts fill it as they fill the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
    /// What the cure may lose, whoever carries it out.
    pub class: Class,
    /// What was seen; `{}` stands for the fact's value, `{name}` for that of another fact.
    pub evidence: String,
    /// Why it matters.
    pub why: String,
    /// What to do about it: a command where there is one.
    pub cure: String,
    /// Values that cure it: a profile that is named and wants one of them takes the place of the one in `cure`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cured_by: Vec<CuredBy>,
    /// Where it is documented.
    pub source: String,
}

/// Values of a knob that cure a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CuredBy {
    /// The knob.
    pub knob: KnobId,
    /// How a wanted value is compared.
    pub when: Comparison,
    /// With what.
    pub value: FactValue,
}

/// What a rule knows of the cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RuleCosts {
    /// A share that somebody measured, or that the kernel counts.
    Measured(RuleCost),
    /// What somebody measured, and what no share tells: a time, a count.
    Figure(RuleFigure),
    /// Why there is none.
    Unknown(String),
}

/// What a finding may cost, as its rule says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleCost {
    /// Percent, or the name of a fact in percent.
    pub share: FactValue,
    /// Of what.
    pub of: String,
    /// Who measured it.
    pub by: String,
}

/// A cost that is no share, as its rule says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleFigure {
    /// What was measured, with its unit. Facts fill it as they fill the evidence.
    pub figure: String,
    /// Who measured it.
    pub by: String,
}

/// What a finding may cost on this host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MayCost {
    /// Percent, at most.
    pub percent: f64,
    /// Of what.
    pub of: String,
    /// Who measured it.
    pub by: String,
}

/// What a trial on this host measured of one knob.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The only knob that the rung set.
    pub knob: KnobId,
    /// The value that it set: of another one its gain says nothing.
    pub wanted: String,
    /// Upper end of the interval of its gain, in percent and at least 0.
    pub percent: f64,
    /// The metric that gained.
    pub of: String,
    /// The proof, in words.
    pub by: String,
    /// When it was measured, in seconds since 1970: the newest counts.
    pub at: u64,
}

/// Something that this host loses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule's id, or the knob's for a wanted value that is not there.
    pub id: String,
    /// The knob, where one is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knob: Option<KnobId>,
    /// How much it matters.
    pub severity: Severity,
    /// What it may cost at most, where somebody has measured that as a share: the dearest come first, whatever their
    /// severity, behind dangers and those with a risk. A proof of this host goes before a general figure; null where no
    /// share is known.
    #[serde(default)]
    pub may_cost: Option<MayCost>,
    /// What else is known of its cost: a figure that is no share, with who measured it, or why nobody can say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<String>,
    /// What may fail or be lost: a failure, and not a speed. Among findings of one severity these come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
    /// What the cure may lose, whoever carries it out.
    pub class: Class,
    /// What was seen.
    pub evidence: String,
    /// Why it matters.
    pub why: String,
    /// What to do about it.
    pub cure: String,
    /// Who says so: the document of the kernel, or the manual of a program.
    pub source: String,
}
