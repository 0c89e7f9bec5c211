//! The one value that a trial ends with: what was asked, what was seen, what is concluded.
//!
//! Everything that a page, a table or a proof shows is in here, with the line and the file that were run, down to the
//! single pairs and the order in which their arms ran, so that each gain and its interval can be computed again from
//! the file alone. Gains are fractions and *positive is better*, whatever the metric: `0.07` is 7 % less CPU time or
//! 7 % more throughput.

use std::collections::BTreeMap;
use std::path::PathBuf;

use planish_model::{Exit, HostFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one replicate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnitKind {
    /// One short slice of a program that stays resident beside the others.
    Slice,
    /// One fresh start of the program.
    Start,
    /// One boot of the machine.
    Boot,
}

/// How a ladder is climbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LadderMode {
    /// Every rung against the baseline, all arms in each block: for a table of what each of them gives.
    #[default]
    Block,
    /// Every rung against what was kept before it, in its planned order: for the decision what to keep.
    Step,
}

/// Which direction of a metric is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Times, faults, bytes.
    Lower,
    /// Throughput.
    Higher,
}

/// A metric by name, with its unit and its good direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricSpec {
    /// The name, such as `cpu_ns_per_op`.
    pub name: String,
    /// The unit of its values.
    pub unit: String,
    /// The good direction.
    pub better: Better,
}

/// What the evidence says of a rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RungVerdict {
    /// It pays: the interval is clear of zero, the gain is at least `min_gain`, every guard holds.
    Keep,
    /// It does not pay, or it harms, or it fails where the baseline does not.
    Drop,
    /// The budget cannot tell; treated as drop by everything that acts.
    Inconclusive,
    /// This machine, or this user, cannot have it.
    Unavailable,
}

/// A gain with its interval, as fractions; positive is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gain {
    /// The Hodges-Lehmann estimate.
    pub effect: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// A gain from a fresh run of the same arm, made after the verdict: free of the winner's curse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmed {
    /// The gain.
    #[serde(flatten)]
    pub gain: Gain,
    /// Level of its interval, such as 0.991: what the look that ended it left of the error; `null` in outcomes of
    /// versions that did not tell.
    #[serde(default)]
    pub level: Option<f64>,
    /// Pairs behind it.
    pub pairs: usize,
    /// The log ratio of each of them, in the order they ran; positive is better. Empty, as the two below, in outcomes
    /// of versions that did not tell.
    #[serde(default)]
    pub pair_logs: Vec<f64>,
    /// Which arm of each pair ran first.
    #[serde(default)]
    pub orders: Vec<First>,
    /// Metrics that must not become worse, in these pairs.
    #[serde(default)]
    pub guards: Vec<GuardRow>,
}

/// What a rung really got, read back from the running program and the host: never what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Achieved {
    /// Whether what was read back equals all that the rung stands for of page sizes, CPUs, node and host. `null` where
    /// nothing was compared, as for a rung of another program or environment.
    pub verified: Option<bool>,
    /// What of a profile was set, where the rest of it cannot be set here: the fact `not_set` says what and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_part: Option<InPart>,
    /// The backing of the program's memory in a word, where the rung is about pages: `base`, `thp`,
    /// `hugetlb-2m`, `hugetlb-1g`.
    pub backing: Option<String>,
    /// Every fact that was read back, by name; the unit is the end of the name.
    pub facts: BTreeMap<String, Value>,
}

/// How much of a profile the host took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InPart {
    /// Places that were read back as wanted.
    pub set: usize,
    /// Places of the profile.
    pub of: usize,
}

impl Achieved {
    /// Takes in what was compared: the `own` comparison, where there was one to make, and what the program was read
    /// back to be bound to. Verified is what was compared in every part.
    pub(crate) fn verify(&mut self, own: Option<Option<bool>>, bound: Option<Self>) {
        let of_bound = bound.as_ref().map(|bound| bound.verified);
        let parts: Vec<Option<bool>> = own.into_iter().chain(of_bound).collect();
        let compared = parts.iter().copied().collect::<Option<Vec<bool>>>();
        self.verified = compared.filter(|all| !all.is_empty()).map(|all| all.into_iter().all(|same| same));
        self.facts.extend(bound.into_iter().flat_map(|bound| bound.facts));
    }

    /// Counts what of a profile was set, by the places in the facts and what is told as `not_set`.
    pub(crate) fn count_parts(&mut self) {
        let left = self.facts.get("not_set").and_then(Value::as_array).map_or(0, Vec::len);
        let set = self.facts.keys().filter(|name| name.starts_with('/')).count();
        self.in_part = (left > 0).then_some(InPart { set, of: set + left });
    }
}

/// A metric of a rung beside that of the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricRow {
    /// The unit of the values.
    pub unit: String,
    /// The good direction.
    pub better: Better,
    /// Median over the units of the baseline.
    pub baseline: Option<f64>,
    /// Median over the units of the rung.
    pub value: Option<f64>,
    /// The gain with a 95 % interval for this metric alone; `null` where a ratio means nothing.
    pub gain: Option<Gain>,
    /// The log ratios behind the gain, in the order of the pairs; positive is better. Empty without a gain, and in
    /// outcomes of versions that did not tell.
    #[serde(default)]
    pub pair_logs: Vec<f64>,
}

/// A column that explains a verdict and never decides it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectorRow {
    /// Whether this machine can count it.
    pub available: bool,
    /// Why not.
    pub reason: Option<String>,
    /// The unit of the values.
    pub unit: String,
    /// Median over the units of the baseline.
    pub baseline: Option<f64>,
    /// Median over the units of the rung.
    pub value: Option<f64>,
}

/// A metric that must not become worse, and whether it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GuardRow {
    /// The metric.
    pub metric: String,
    /// By which fraction it may be worse.
    pub margin: f64,
    /// One-sided bound of its gain, at `level`; `null` for a guard on a count, and where the pairs were too few.
    pub low: Option<f64>,
    /// Confidence of that bound at the look that ended the rung. The guard is held by it, and all looks together err
    /// in at most 5 of 100. Absent where there was none, and in outcomes of versions that did not tell: 0.95 there, at
    /// each look by itself.
    // Left out where there is none, so that the page of a proof of before shows it to the byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// Whether it held; `null` when the program does not report the metric.
    pub held: Option<bool>,
    /// The figures behind it, or why it could not be judged.
    pub reason: String,
    /// What was compared in each pair: a log ratio, of `error_rate` a difference; positive is better. Empty where it
    /// could not be judged, and in outcomes of versions that did not tell.
    #[serde(default)]
    pub pair_values: Vec<f64>,
}

/// Which of two arms ran first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum First {
    /// The baseline.
    Baseline,
    /// The arm of the rung.
    Arm,
}

/// One build of a rung's program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildRow {
    /// Its number, from 0.
    pub index: usize,
    /// The seed that its build command got; `null` where it was built for another rung.
    pub seed: Option<u64>,
    /// sha256 of its program.
    pub sha256: Option<String>,
    /// Pairs in which it ran.
    pub pairs: usize,
    /// The gain in these, as a fraction.
    pub effect: f64,
    /// The log ratios of these, in the order they ran. Empty in outcomes of versions that did not tell.
    #[serde(default)]
    pub pair_logs: Vec<f64>,
}

/// What the builds of a recipe say together: the build is the unit of replication here, not the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Builds {
    /// The builds.
    pub builds: Vec<BuildRow>,
    /// Programs among them that differ.
    pub distinct: usize,
    /// The gain of the recipe with Student's interval over its builds; `null` with fewer than three different ones.
    pub gain: Option<Gain>,
    /// Level of that interval.
    pub level: f64,
    /// Standard deviation between the builds, of logs.
    pub spread: Option<f64>,
}

/// One rung of the ladder, compared with the baseline or with what was kept before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rung {
    /// Its name. The one hidden while the trial runs is named `placebo` here, and is the last.
    pub name: String,
    /// What it was compared with: the baseline, or the kept rungs that were put together. Empty in outcomes of versions
    /// that compared with the baseline only.
    #[serde(default)]
    pub against: Vec<String>,
    /// Smallest gain at which it is worth keeping, as a fraction; `null` where that of the whole trial counts.
    #[serde(default)]
    pub min_gain: Option<f64>,
    /// What is concluded.
    pub verdict: RungVerdict,
    /// Estimated gain; `null` when unavailable.
    pub effect: Option<f64>,
    /// Lower end of the gain's interval, valid after stopping.
    pub low: Option<f64>,
    /// Upper end of the gain's interval.
    pub high: Option<f64>,
    /// Level of that interval, such as 0.98: what the looks and the number of rungs left of the error budget.
    pub level: Option<f64>,
    /// Pairs behind it.
    pub pairs: usize,
    /// What it really got.
    pub achieved: Option<Achieved>,
    /// Why this verdict, in a sentence.
    pub reason: String,
    /// The fresh run; `null` when it was not made, and `reason` or `notes` say so.
    pub confirmed: Option<Confirmed>,
    /// Its builds, where it has several: what may be claimed of the recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builds: Option<Builds>,
    /// Metrics by name.
    pub metrics: BTreeMap<String, MetricRow>,
    /// Explaining columns by name.
    pub collectors: BTreeMap<String, CollectorRow>,
    /// Metrics that must not become worse.
    pub guards: Vec<GuardRow>,
    /// The log ratio of each pair, in the order they ran; positive is better.
    pub pair_logs: Vec<f64>,
    /// Which arm of each pair ran first.
    pub orders: Vec<First>,
    /// Whether it could have been kept: no unit of it failed, nobody ended the trial before, its pairs were enough for
    /// the level of a look, and what slices show fresh starts were to confirm. `null` in outcomes of versions that did
    /// not tell.
    #[serde(default)]
    pub tested: Option<bool>,
}

impl Rung {
    /// A rung for which no pair was run.
    pub(crate) fn without_pairs(name: &str, verdict: RungVerdict, reason: String) -> Self {
        Self {
            name: name.to_owned(),
            against: Vec::new(),
            min_gain: None,
            verdict,
            effect: None,
            low: None,
            high: None,
            level: None,
            pairs: 0,
            achieved: None,
            reason,
            confirmed: None,
            builds: None,
            metrics: BTreeMap::new(),
            collectors: BTreeMap::new(),
            guards: Vec::new(),
            pair_logs: Vec::new(),
            orders: Vec::new(),
            tested: None,
        }
    }
}

/// The detectable gain at a number of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Detectable {
    /// Pairs.
    pub pairs: usize,
    /// The gain that is found four times out of five, as a fraction.
    pub mde: f64,
}

/// What the A/A self-check says of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SelfCheckVerdict {
    /// The budget can see `min_gain`.
    Ok,
    /// It cannot: `pairs_needed` and `hours_needed` say what would.
    Noisy,
    /// Two identical arms differ: the experiment itself is wrong.
    Broken,
}

/// The noise of this machine under this workload, from pairs of the same arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SelfCheck {
    /// What is concluded.
    pub verdict: SelfCheckVerdict,
    /// Pairs of the same arm that were run.
    pub pairs: usize,
    /// Their log ratios, second member against first as drawn.
    pub pair_logs: Vec<f64>,
    /// Which of the two ran first. Empty in outcomes of versions that did not tell.
    #[serde(default)]
    pub orders: Vec<First>,
    /// Robust standard deviation of a pair's log ratio: 1.4826 x MAD.
    pub sigma_d: f64,
    /// Gain that the budget finds four times out of five, as a fraction.
    pub mde: f64,
    /// The same for given numbers of pairs.
    pub detectable: Vec<Detectable>,
    /// Coefficient of variation of single units.
    pub cv: f64,
    /// Correlation of neighbouring units.
    pub lag1: f64,
    /// The same of neighbours that belong to different arms: what one leaves to the next shows here.
    #[serde(default)]
    pub cross_lag1: Option<f64>,
    /// Share of units that are slower than their neighbours by more than 2.5 times `sigma_d`.
    pub spike_share: f64,
    /// Standard deviation of logs between fresh starts; `null` when units have no windows.
    pub between_starts: Option<f64>,
    /// Standard deviation of logs between windows of one start. Windows are those of `warm_up.metric`.
    pub within_starts: Option<f64>,
    /// Gain of running second within a pair, with its interval.
    pub position_effect: Option<Gain>,
    /// Share of the processor time that the hypervisor took while it ran.
    pub steal: Option<f64>,
    /// Share of the time in which some task waited for a processor, as the kernel's PSI tells it.
    pub psi: Option<f64>,
    /// Shares of time in which some or all tasks waited, as the kernel's PSI tells them: `cpu`, `memory`, `io`.
    #[serde(default)]
    pub pressure: BTreeMap<String, Pressure>,
    /// CPU seconds that a quota of our control groups took, per second; `null` where none is counted.
    #[serde(default)]
    pub throttled: Option<f64>,
    /// How often in a second CPUs slowed themselves down for heat; `null` where it is not counted.
    #[serde(default)]
    pub thermal: Option<f64>,
    /// How fast the CPUs ran.
    #[serde(default)]
    pub frequency: Frequency,
    /// Above what a block is run again, by covariate: `steal` as a share, `thermal` as above. Outcomes of before had
    /// `waiting` and `throttled` too.
    #[serde(default)]
    pub limits: BTreeMap<String, f64>,
    /// What was read back to differ between two equal arms; `null` where nothing did.
    #[serde(default)]
    pub read_back: Option<String>,
    /// How long a start takes to become steady, and what of it is left out.
    #[serde(default)]
    pub warm_up: Option<WarmUp>,
    /// Seconds that one pair takes.
    pub pair_seconds: f64,
    /// Pairs of each rung that would see `min_gain`.
    pub pairs_needed: Option<usize>,
    /// Hours of a whole trial with these: self-check, all rungs, and what is kept for their confirmation.
    pub hours_needed: Option<f64>,
    /// A metric of the same runs that is quieter than the primary one, and its `sigma_d`.
    pub quieter: Option<Quieter>,
    /// What to do about it, in a sentence.
    pub advice: String,
}

/// Shares of time in which tasks waited for one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pressure {
    /// Some task did.
    pub some: Option<f64>,
    /// All tasks that could run did.
    pub full: Option<f64>,
}

/// Lowest and highest frequency of any CPU that was seen between two units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Frequency {
    /// Whether this machine tells it.
    pub available: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Lowest, in MHz.
    pub min_mhz: Option<f64>,
    /// Highest, in MHz.
    pub max_mhz: Option<f64>,
}

/// What was found of the warm-up inside a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUpState {
    /// Nobody looked: units have too few windows, or none.
    Unknown,
    /// Its length was given, and not looked for.
    Fixed,
    /// Starts are level from their first window on.
    None,
    /// It was found, and is left out of every unit from then on.
    Cut,
    /// Levels change within starts, but not alike in all of them: the machine's doing, and nothing is left out.
    Unshared,
    /// Most starts do not become steady within their unit: what is compared is a piece of their warm-up.
    NeverSteady,
}

/// How long a start takes to become steady, from windows inside the starts of the self-check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WarmUp {
    /// What was found.
    pub state: WarmUpState,
    /// The same in a sentence.
    pub reason: String,
    /// The metric of the windows.
    pub metric: Option<String>,
    /// Length of a window in seconds.
    pub window_seconds: Option<f64>,
    /// Windows of each start that were looked at.
    pub windows: usize,
    /// Windows before each start became steady, in the order they ran; `null` for one that never did.
    pub lengths: Vec<Option<usize>>,
    /// Share of the starts that never became steady.
    pub unsteady_share: Option<f64>,
    /// What each unit runs before it is measured, in windows: nine starts of ten are steady by then.
    pub cut_windows: usize,
    /// The same in seconds.
    pub cut_seconds: f64,
}

/// A metric that would need fewer pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quieter {
    /// The metric.
    pub metric: String,
    /// Robust standard deviation of its pair log ratios.
    pub sigma_d: f64,
}

/// Something that was wanted and not done, and its cure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// What.
    pub what: String,
    /// Why not.
    pub why: String,
    /// What would make it possible; the next command to type where there is one.
    pub cure: String,
}

/// A block of units that was thrown away and run again, for a reason that does not know the arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Discard {
    /// The block, from 0.
    pub block: usize,
    /// What the machine did: `clock`, `steal` or `thermal`; in outcomes of before also `waiting` or `throttled`.
    #[serde(default)]
    pub covariate: String,
    /// The same in words, with its limit.
    pub reason: String,
}

/// What was measured, whole: enough to make the same experiment again where the command line alone is not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Setup {
    /// The trial file as it was run: with the sizes that this machine had to spare, the smallest gain of each rung, and
    /// defaults spelled out. TOML that `planish trial run` takes.
    File(String),
    /// What `planish prove postgres` ran.
    Postgres(PostgresSetup),
}

/// The options of `planish prove postgres`, given or chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PostgresSetup {
    /// Version of the server.
    pub version: String,
    /// Folder of its programs.
    pub bin_folder: PathBuf,
    /// Rows, in units of 100,000.
    pub scale: u64,
    /// `shared_buffers` of each server, in bytes.
    pub shared_buffers_bytes: u64,
    /// Clients of each server.
    pub clients: usize,
    /// The text of the script; `null` for lookups.
    pub script: Option<String>,
}

/// Where a trial is whose arms are boots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BootsState {
    /// Boots are still to come.
    UnderWay,
    /// It has ended, and the machine is as it was, save for what was kept.
    Ended,
}

/// One boot of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BootRow {
    /// The block, from 0.
    pub block: usize,
    /// The arm that it was meant to be: of the baseline and the placebo, a boot by the default entry.
    pub arm: String,
    /// Why nothing was measured in it: it did not come up, went down, or its workload failed. `null` where it was.
    pub lost: Option<String>,
    /// The metric that decides, of every arm inside the boot: the median of its units; `null` where one failed.
    pub values: BTreeMap<String, Option<f64>>,
}

/// The boots of a trial whose arms are boots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Boots {
    /// Where it is.
    pub state: BootsState,
    /// Boots that were asked for so far.
    pub asked: usize,
    /// The most that it may ask for.
    pub boots_max: usize,
    /// What each boot gives the kernel besides what the default entry gives, by its name.
    pub arguments: BTreeMap<String, String>,
    /// The boots so far, in the order in which they ran.
    pub boots: Vec<BootRow>,
}

/// One trial, told whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialOutcome {
    /// Name of the trial.
    pub trial: String,
    /// What it asks, in a sentence.
    pub summary: String,
    /// The command line that runs it again with the same draws: as it was typed, and its seed where none was. Empty in
    /// outcomes of versions that did not tell.
    #[serde(default)]
    pub command: String,
    /// What was measured; `null` in outcomes of versions that did not tell.
    #[serde(default)]
    pub setup: Option<Setup>,
    /// Version of planish; empty in outcomes of versions that did not tell.
    #[serde(default)]
    pub version: String,
    /// What one replicate is.
    pub unit: UnitKind,
    /// The metric that decides.
    pub primary: MetricSpec,
    /// How the ladder was climbed.
    #[serde(default)]
    pub mode: LadderMode,
    /// Whether the two arms of a pair ran at the same time, each on its half of the CPUs.
    #[serde(default)]
    pub duet: bool,
    /// The arm that the total is compared with, and every rung whose `against` names no other.
    pub baseline: String,
    /// What the baseline really got.
    pub baseline_achieved: Option<Achieved>,
    /// Smallest gain worth keeping, as a fraction: of the rung that needs the least, which the self-check goes by.
    pub min_gain: f64,
    /// Error budget of the whole ladder, shared by its rungs.
    pub alpha: f64,
    /// Seed of every draw; below 2^53, so that it survives any reader of JSON.
    pub seed: u64,
    /// Start, in seconds since 1970.
    pub started_at: u64,
    /// How long it took.
    pub seconds: f64,
    /// Share of these that went into our own bookkeeping and not into the arms.
    pub overhead: f64,
    /// Whether it was the short form.
    pub quick: bool,
    /// The machine.
    pub host: HostFacts,
    /// The A/A self-check; `null` when the trial was stopped before.
    pub selfcheck: Option<SelfCheck>,
    /// The rungs in their planned order, the placebo last.
    pub rungs: Vec<Rung>,
    /// The order of the arms in each block, by name.
    pub blocks: Vec<Vec<String>>,
    /// What was not done, and its cure.
    pub refused: Vec<Refusal>,
    /// Blocks thrown away and redone.
    pub discarded: Vec<Discard>,
    /// Remarks: what was skipped, what was stopped, what was persisted.
    pub notes: Vec<String>,
    /// Time for everything, in seconds, that would have been enough for the fewest pairs with a verdict; only where
    /// the time was up before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_needed_seconds: Option<u64>,
    /// The boots, where arms of the trial are boots of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boots: Option<Boots>,
    /// The exit code of the contract that this outcome stands for.
    pub exit: u8,
    /// sha256 of the file `ID.json` in the folder of proofs, which holds this value without the id and without what
    /// `--keep` adds after it: `sha256sum` of the file prints its name. `null` in the stored value itself, and when
    /// nothing was stored.
    pub proof_id: Option<String>,
}

impl TrialOutcome {
    /// The name under which the placebo is told once the trial is over.
    pub const PLACEBO: &str = "placebo";

    /// The name of everything that was kept, put together and run against the baseline.
    pub const STACK: &str = "stack";

    /// The rungs that are not the placebo.
    pub fn real_rungs(&self) -> impl Iterator<Item = &Rung> {
        self.rungs.iter().filter(|rung| rung.name != Self::PLACEBO)
    }

    /// Whether this run found a gain where there is none.
    #[must_use]
    pub fn placebo_was_kept(&self) -> bool {
        self.rungs.iter().any(|rung| rung.name == Self::PLACEBO && rung.verdict == RungVerdict::Keep)
    }

    /// The exit code that follows from the rungs: done when something was kept, or when every rung that can be had was
    /// dropped. Where nothing was kept and a rung is open, what was asked, whether anything pays, has no answer yet: a
    /// rung that was dropped beside it (one that pins, on a ladder of page sizes) gives none. Nor does a run that kept
    /// its placebo.
    #[must_use]
    pub fn exit_of_rungs(&self) -> Exit {
        let had = |verdict| self.real_rungs().any(|rung| rung.verdict == verdict);
        if self.real_rungs().all(|rung| rung.verdict == RungVerdict::Unavailable) {
            return Exit::Refused;
        }
        let is_open = !had(RungVerdict::Keep) && had(RungVerdict::Inconclusive);
        if self.placebo_was_kept() || is_open { Exit::Inconclusive } else { Exit::Done }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An outcome with nothing in it, for tests of what reads outcomes.
    pub(crate) fn blank() -> TrialOutcome {
        TrialOutcome {
            trial: "t".to_owned(),
            summary: "s".to_owned(),
            command: String::new(),
            setup: None,
            version: String::new(),
            unit: UnitKind::Slice,
            primary: MetricSpec {
                name: "cpu_ns_per_op".to_owned(),
                unit: "ns".to_owned(),
                better: Better::Lower,
            },
            mode: LadderMode::Block,
            duet: false,
            baseline: "4k".to_owned(),
            baseline_achieved: None,
            min_gain: 0.01,
            alpha: 0.1,
            seed: 1,
            started_at: 0,
            seconds: 0.0,
            overhead: 0.0,
            quick: false,
            host: HostFacts::default(),
            selfcheck: None,
            rungs: Vec::new(),
            blocks: Vec::new(),
            refused: Vec::new(),
            discarded: Vec::new(),
            notes: Vec::new(),
            budget_needed_seconds: None,
            boots: None,
            exit: 0,
            proof_id: None,
        }
    }

    /// A rung with nothing but a name and a verdict.
    pub(crate) fn rung(name: &str, verdict: RungVerdict) -> Rung {
        Rung::without_pairs(name, verdict, String::new())
    }

    #[test]
    fn the_placebo_decides_nothing_about_the_exit_unless_it_is_kept() {
        let mut outcome = blank();
        outcome.rungs = vec![
            rung("thp", RungVerdict::Inconclusive),
            rung("1g", RungVerdict::Unavailable),
            rung(TrialOutcome::PLACEBO, RungVerdict::Drop),
        ];
        assert_eq!(outcome.exit_of_rungs(), Exit::Inconclusive);
        outcome.rungs[0].verdict = RungVerdict::Keep;
        assert_eq!(outcome.exit_of_rungs(), Exit::Done);
        outcome.rungs[2].verdict = RungVerdict::Keep;
        assert_eq!(outcome.exit_of_rungs(), Exit::Inconclusive);
        outcome.rungs[2].verdict = RungVerdict::Drop;
        outcome.rungs[0].verdict = RungVerdict::Unavailable;
        assert_eq!(outcome.exit_of_rungs(), Exit::Refused);
    }

    #[test]
    fn a_rung_that_is_dropped_beside_open_ones_answers_nothing() {
        let mut outcome = blank();
        outcome.rungs = vec![
            rung("thp", RungVerdict::Inconclusive),
            rung("2m", RungVerdict::Inconclusive),
            rung("pinned", RungVerdict::Drop),
            rung(TrialOutcome::PLACEBO, RungVerdict::Drop),
        ];
        assert_eq!(outcome.exit_of_rungs(), Exit::Inconclusive, "as a quick proof on a noisy machine ends");
        outcome.rungs[1].verdict = RungVerdict::Keep;
        assert_eq!(outcome.exit_of_rungs(), Exit::Done, "something pays");
        outcome.rungs[0].verdict = RungVerdict::Drop;
        outcome.rungs[1].verdict = RungVerdict::Drop;
        assert_eq!(outcome.exit_of_rungs(), Exit::Done, "nothing pays, and that is an answer");
    }

    #[test]
    fn an_outcome_survives_its_json() {
        let mut outcome = blank();
        outcome.rungs = vec![rung("thp", RungVerdict::Keep)];
        outcome.rungs[0].confirmed = Some(Confirmed {
            gain: Gain { effect: 0.1, low: 0.05, high: 0.15 },
            level: Some(0.99),
            pairs: 12,
            pair_logs: vec![0.1; 12],
            orders: vec![First::Arm; 12],
            guards: Vec::new(),
        });
        let text = serde_json::to_string(&outcome).expect("plain data");
        assert_eq!(serde_json::from_str::<TrialOutcome>(&text).expect("the same shape"), outcome);
        let before = text.replace(",\"level\":0.99,", ",");
        assert_ne!(before, text);
        let before: TrialOutcome = serde_json::from_str(&before).expect("proofs of before are still read");
        assert_eq!(before.rungs[0].confirmed.as_ref().and_then(|confirmed| confirmed.level), None);
    }
}
