//! Trial files: an experiment as TOML, shipped in `trials/` or written by the user.
//!
//! Everything that can be wrong with a file is found before anything runs, with file, line, column and the
//! nearest valid name. The schema of this module is published as `docs/schema/trial-file.json`.

mod boots;
mod check;
mod gain;
mod new;
mod place;
mod text;
mod warmup;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use planish_model::{Catalogue, KnobId, Want};
use planish_stats::ladder::Strictness;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

pub(crate) use boots::blocks_min;
pub use boots::{BootSpec, BootsSpec};
pub use new::{NewTrial, Worth, new};
pub use text::{TextSpec, TextWord};
pub use warmup::WarmUpSpec;

use crate::adapter::{AdapterKind, Number};
use crate::error::TrialError;
use crate::hooks::{Hooks, ResetSpec, SettleSpec};
use crate::ladder::{GuardSpec, WarmUpPlan};
use crate::outcome::{LadderMode, MetricSpec};

/// Trials that planish brings along, by name.
const SHIPPED: [(&str, &str); 5] = [
    ("jitter", include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../trials/jitter.toml"))),
    ("numa", include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../trials/numa.toml"))),
    ("series", include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../trials/series.toml"))),
    ("text", include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../trials/text.toml"))),
    ("text-load", include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../trials/text-load.toml"))),
];

/// An experiment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialFile {
    /// Its name; outcomes and proofs carry it.
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// What it asks, in a sentence.
    pub summary: String,
    /// The metric that decides. Without one: CPU time per operation where the adapter has it, else its first.
    #[schemars(with = "Option<String>")]
    pub primary: Option<Spanned<String>>,
    /// How the ladder is climbed: `block` compares every rung with the baseline, `step` with what was kept before it.
    #[serde(default)]
    #[schemars(with = "LadderMode")]
    pub mode: Option<Spanned<LadderMode>>,
    /// Whether both arms of a pair run at the same time, each on its half of the CPUs: only where every arm differs in
    /// nothing but environment, program and arguments.
    #[schemars(with = "Option<bool>")]
    pub duet: Option<Spanned<bool>>,
    /// Smallest gain worth keeping, as a fraction, of every rung that names none of its own. Without it, it goes by
    /// what the rung is: 0.005 for settings of the running host, 0.01 for what needs a restart or a build, 0.02 for
    /// what needs a reboot.
    pub min_gain: Option<f64>,
    /// Largest gain hoped for, as a fraction: where the noise would hide even that, the trial is refused.
    #[serde(default = "hope")]
    pub hope: f64,
    /// Half the usual error budget, for figures that get published.
    #[serde(default)]
    pub strict: bool,
    /// Time for everything, in seconds.
    #[serde(default = "budget_seconds")]
    pub budget_seconds: f64,
    /// Pairs of a rung at most.
    #[serde(default = "pairs")]
    pub pairs: usize,
    /// Pairs before which no rung is judged, where there is time for so many: for intervals that are narrow, and not
    /// only clear of zero.
    #[serde(default)]
    pub pairs_min: usize,
    /// Pairs of the self-check; 8 at least.
    #[serde(default = "selfcheck_pairs")]
    pub selfcheck_pairs: usize,
    /// Seed of every draw; without one each run draws its own, and stores it.
    pub seed: Option<u64>,
    /// Whether kept rungs are run again from fresh starts.
    #[serde(default = "confirm")]
    pub confirm: bool,
    /// Metrics that must not become worse. Without any: p99 +3 %, memory +10 %, errors +0.
    #[schemars(with = "Option<Vec<GuardSpec>>")]
    pub guards: Option<Vec<Spanned<GuardSpec>>>,
    /// What is measured.
    pub workload: WorkloadSpec,
    /// A server that the workload is put on: started before it, ended after it.
    pub service: Option<ServiceSpec>,
    /// The program of every arm, which they have laid out differently; each finds its own as `PLANISH_TEXT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<TextSpec>,
    /// The arm that every rung is compared with.
    #[serde(default)]
    pub baseline: ArmSpec,
    /// The rungs, in their planned order.
    #[serde(default)]
    pub rung: Vec<ArmSpec>,
    /// Arms that are boots of the machine, each with all rungs inside of it: how many, and of what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boots: Option<BootsSpec>,
    /// These arms, in their planned order. The boot that they are compared with is that of the default entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boot: Vec<BootSpec>,
    /// What undoes the state that a knob leaves behind, by its id: for every trial in which some arm sets that knob.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ResetSpec>")]
    pub reset: BTreeMap<Spanned<String>, ResetSpec>,
    /// What the short form does otherwise.
    #[serde(default)]
    pub quick: QuickSpec,
}

/// What is measured, and how.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// How speed becomes metrics.
    pub adapter: AdapterKind,
    /// The program and its arguments; `planish` stands for this very program. Not for `http`.
    #[serde(default)]
    pub command: Vec<String>,
    /// Metrics of the `number` adapter.
    #[serde(default)]
    pub metric: Vec<Number>,
    /// Load of the `http` adapter.
    pub http: Option<crate::adapter::HttpLoad>,
    /// Seconds after which one unit has failed.
    #[serde(default = "timeout_seconds")]
    pub timeout_seconds: f64,
    /// Seconds that each start runs before it is measured, or `"detect"`. Without it: what the self-check finds, where
    /// its units have windows enough to look at. `slices`, `http`, and `pgbench` with `-P` only.
    #[serde(default)]
    #[schemars(with = "Option<warmup::Published>")]
    pub warmup: Option<Spanned<WarmUpSpec>>,
    /// Seconds of rest before each start, for the arm before to be forgotten: `seconds` of `settle`.
    #[serde(default)]
    pub settle_seconds: f64,
    /// What comes before each start, whatever its arm.
    #[serde(default)]
    pub settle: SettleSpec,
    /// `slices`: length of a slice in milliseconds.
    #[serde(default = "slice_ms")]
    pub slice_ms: u64,
    /// `slices`: slices of each fresh start. Without it programs stay resident and one slice is the unit.
    pub slices_per_start: Option<usize>,
}

/// A server that the workload is put on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceSpec {
    /// The program and its arguments. Rungs change it, not the workload.
    pub command: Vec<String>,
    /// It is ready when this address accepts a connection, such as `127.0.0.1:8123`.
    pub ready_tcp: Option<String>,
    /// It is ready when this path exists, such as a socket.
    pub ready_path: Option<PathBuf>,
    /// It is ready when this command succeeds.
    #[serde(default)]
    pub ready_command: Vec<String>,
    /// Seconds that it may take to be ready.
    #[serde(default = "ready_seconds")]
    pub ready_seconds: f64,
    /// Seconds between ready and the measured window.
    #[serde(default)]
    pub warmup_seconds: f64,
    /// Seconds that it gets to end by itself.
    #[serde(default = "stop_seconds")]
    pub stop_seconds: f64,
}

/// What one arm is: any mix of host settings, launcher options, environment and program.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArmSpec {
    /// Its name.
    #[schemars(with = "Option<String>")]
    pub name: Option<Spanned<String>>,
    /// Why it is here, in a sentence.
    #[serde(default)]
    pub why: String,
    /// Smallest gain at which it is worth keeping, as a fraction, in place of that of the file.
    pub min_gain: Option<f64>,
    /// A profile that is applied for each of its units and undone after.
    #[schemars(with = "Option<String>")]
    pub profile: Option<Spanned<String>>,
    /// Wanted values of knobs, on top of the profile.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Want>")]
    pub want: BTreeMap<Spanned<String>, Want>,
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// CPUs that it may run on, such as `0-3,8`; `one` is the last of those that we may use.
    #[schemars(with = "Option<String>")]
    pub cpus: Option<Spanned<String>>,
    /// Node that its memory comes from.
    pub node: Option<u32>,
    /// A program that takes the place of the command's first word: another build of it.
    pub program: Option<String>,
    /// Arguments after those of the command.
    #[serde(default)]
    pub args: Vec<String>,
    /// A command that is run once before the trial, to build the arm's program. It finds `PLANISH_BUILD_SEED` and
    /// `PLANISH_BUILD_INDEX` in its environment.
    #[serde(default)]
    pub build: Vec<String>,
    /// Run it so many times, 3 at least, each with another `PLANISH_BUILD_SEED` for the order in which it links;
    /// `{build}` in `build`, `program`, `args` and `env` is the number of the build, from 0. Pairs are spread over the
    /// builds, and the rung is kept only if the recipe pays, and not only one of its artefacts.
    #[schemars(with = "Option<usize>")]
    pub rebuilds: Option<Spanned<usize>>,
    /// What undoes the state that it leaves behind. Run after every unit, of whichever arm, so that it favours none.
    #[serde(default)]
    pub reset: ResetSpec,
    /// Those of its knobs.
    #[serde(skip)]
    pub(crate) knob_resets: Vec<ResetSpec>,
    /// Every value that it sets on the host: those of its profile, and its own on top.
    #[serde(skip)]
    pub(crate) sets: BTreeMap<KnobId, Want>,
    /// The twins of what it sets, which are cleared by that.
    #[serde(skip)]
    pub(crate) twins: BTreeSet<KnobId>,
    /// What it sets and is another face of a state that another knob sets too, each with that knob.
    #[serde(skip)]
    pub(crate) aliases: BTreeSet<(KnobId, KnobId)>,
    /// What is done to the program of `[text]`: one of `order`, `order-traced`, `lld-cdsort`,
    /// `bolt-functions` and `bolt`, and `huge`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text: Vec<TextWord>,
    /// `slices`: the backing that the program must report to be believed.
    #[schemars(with = "Option<String>")]
    pub backing: Option<Spanned<String>>,
}

/// What the short form does otherwise.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuickSpec {
    /// Time for everything, in seconds.
    pub budget_seconds: f64,
    /// `slices`: slices of each fresh start. Without it programs stay resident and one slice is the unit.
    pub slices_per_start: Option<usize>,
    /// Arguments of every arm, after its own.
    pub args: Vec<String>,
}

impl Default for QuickSpec {
    fn default() -> Self {
        Self { budget_seconds: 90.0, slices_per_start: None, args: Vec::new() }
    }
}

fn hope() -> f64 {
    0.10
}
fn budget_seconds() -> f64 {
    3600.0
}
fn pairs() -> usize {
    32
}
fn selfcheck_pairs() -> usize {
    8
}
fn confirm() -> bool {
    true
}
fn timeout_seconds() -> f64 {
    600.0
}
fn slice_ms() -> u64 {
    350
}
fn ready_seconds() -> f64 {
    60.0
}
fn stop_seconds() -> f64 {
    30.0
}

impl TrialFile {
    /// Reads and checks a file of the user.
    ///
    /// # Errors
    /// It cannot be read, or [`TrialError::Malformed`].
    pub fn load(path: &Path, catalogue: &Catalogue) -> Result<Self, TrialError> {
        let text = read(path)?;
        Self::parse_with(&path.display().to_string(), &text, catalogue)
    }

    /// Reads and checks the text of a file that names nothing of the user's own catalogue.
    ///
    /// # Errors
    /// [`TrialError::Malformed`], with the place and the nearest valid name.
    pub fn parse(file: &str, text: &str) -> Result<Self, TrialError> {
        let catalogue = Catalogue::embedded().expect("the embedded catalogue is tested");
        Self::parse_with(file, text, &catalogue)
    }

    /// Reads and checks the text of a file, whose knobs and profiles are those of a catalogue.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_with(file: &str, text: &str, catalogue: &Catalogue) -> Result<Self, TrialError> {
        let mut trial: Self = toml::from_str(text).map_err(|error| place::malformed(file, text, &error))?;
        check::check(file, text, &trial, catalogue)?;
        // After this point each rung has its own smallest gain, and the catalogue is needed no more.
        let of_file = trial.min_gain;
        for rung in &mut trial.rung {
            let own = rung.min_gain.or(of_file);
            rung.min_gain = Some(own.unwrap_or_else(|| gain::usual(rung, catalogue)));
        }
        for arm in [&mut trial.baseline].into_iter().chain(&mut trial.rung) {
            arm.sets = gain::sets(arm, catalogue);
            arm.twins = gain::twins(arm.sets.keys(), catalogue);
            arm.aliases = gain::aliases(arm.sets.keys(), catalogue);
            let is_set = |id: &str| arm.sets.keys().any(|knob| knob.as_str() == id);
            let of_knobs = trial.reset.iter().filter(|(id, _)| is_set(id.get_ref()));
            arm.knob_resets = of_knobs.map(|(_, reset)| reset.clone()).collect();
        }
        Ok(trial)
    }

    /// A trial that planish brings along.
    ///
    /// # Errors
    /// No trial of this name.
    pub fn shipped(name: &str) -> Result<Self, TrialError> {
        let Some((name, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) else {
            let names = || SHIPPED.iter().map(|(name, _)| *name);
            let nearest = planish_model::nearest(name, names()).map(str::to_owned);
            let known = names().map(str::to_owned).collect();
            return Err(TrialError::UnknownTrial { name: name.to_owned(), nearest, known });
        };
        Self::parse(&format!("trials/{name}.toml"), text)
    }

    /// Opens what an argument names: a file when it has a slash or ends in `.toml`, else a shipped trial.
    ///
    /// # Errors
    /// As [`Self::load`] and [`Self::shipped`].
    pub fn open(argument: &str, catalogue: &Catalogue) -> Result<Self, TrialError> {
        if argument.contains('/') || argument.ends_with(".toml") {
            return Self::load(Path::new(argument), catalogue);
        }
        Self::shipped(argument)
    }

    /// The file as it was resolved: what [`Self::parse`] makes the same trial of. Comments are not in it.
    #[must_use]
    pub fn to_text(&self) -> String {
        toml::to_string(self).expect("a trial file is plain data with text keys")
    }

    /// The metric that decides.
    #[must_use]
    pub fn primary_name(&self) -> String {
        match &self.primary {
            Some(primary) => primary.get_ref().clone(),
            None => check::default_primary(&self.workload),
        }
    }

    /// The metric that decides, with unit and good direction.
    #[must_use]
    pub fn primary_spec(&self) -> MetricSpec {
        check::metric_spec(&self.primary_name(), &self.workload)
    }

    /// How the ladder is climbed.
    #[must_use]
    pub fn mode(&self) -> LadderMode {
        self.mode.as_ref().map(|mode| *mode.get_ref()).unwrap_or_default()
    }

    /// What happens between units.
    pub(crate) fn hooks(&self) -> Hooks {
        let mut settle = self.workload.settle.clone();
        settle.seconds += self.workload.settle_seconds;
        let arms = [&self.baseline].into_iter().chain(&self.rung);
        Hooks::new(settle, arms.flat_map(|arm| arm.knob_resets.iter().chain([&arm.reset])).cloned())
    }

    /// The smallest gain of each rung, in their order.
    #[must_use]
    pub fn rung_gains(&self) -> Vec<f64> {
        self.rung.iter().map(|rung| rung.min_gain.unwrap_or(gain::START)).collect()
    }

    /// The smallest gain of each boot, in their order.
    #[must_use]
    pub fn boot_gains(&self) -> Vec<f64> {
        let of_file = self.min_gain;
        self.boot.iter().map(|boot| boot.min_gain.or(of_file).unwrap_or(gain::BOOT)).collect()
    }

    /// The gain that the self-check looks for: that of the rung that needs the least.
    #[must_use]
    pub fn least_gain(&self) -> f64 {
        let least = self.rung_gains().into_iter().reduce(f64::min);
        least.or(self.min_gain).unwrap_or(gain::START)
    }

    /// The error budget of the ladder.
    #[must_use]
    pub fn strictness(&self) -> Strictness {
        if self.strict { Strictness::Strict } else { Strictness::Usual }
    }

    /// What each unit runs before it is measured.
    #[must_use]
    pub fn warm_up(&self) -> WarmUpPlan {
        let of_load = self.workload.http.as_ref().map(|load| load.warmup_seconds).filter(|time| *time > 0.0);
        let of_file = self.workload.warmup.as_ref().map(|warmup| *warmup.get_ref());
        match of_file.or(of_load.map(WarmUpSpec::Seconds)) {
            None => WarmUpPlan::Auto,
            Some(WarmUpSpec::Detect) => WarmUpPlan::Detect,
            Some(WarmUpSpec::Seconds(seconds)) => WarmUpPlan::Fixed(Duration::from_secs_f64(seconds)),
        }
    }

    /// The guards: those of the file, or the usual ones.
    #[must_use]
    pub fn guards(&self) -> Vec<GuardSpec> {
        let own = self.guards.as_ref();
        own.map_or_else(GuardSpec::usual, |guards| {
            guards.iter().map(|guard| guard.get_ref().clone()).collect()
        })
    }
}

impl ArmSpec {
    /// The arm's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_ref().map_or("baseline", |name| name.get_ref().as_str())
    }

    /// Whether it wants anything of the host.
    #[must_use]
    pub fn touches_host(&self) -> bool {
        self.profile.is_some() || !self.want.is_empty()
    }
}

fn read(path: &Path) -> Result<String, TrialError> {
    planish_sys::file::read_text(path)
        .map_err(|source| TrialError::Unreadable { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_trials_are_sound_and_named_like_their_files() {
        for (name, _) in SHIPPED {
            let trial = TrialFile::shipped(name).expect("it is checked before it is shipped");
            assert_eq!(trial.name.get_ref(), name);
            assert!(!trial.summary.is_empty() && !trial.rung.is_empty());
        }
        let error = TrialFile::open("serie", &Catalogue::default()).expect_err("no such trial");
        assert_eq!(error.to_string(), "no trial `serie`; did you mean `series`?");
    }

    #[test]
    fn a_resolved_file_is_the_same_trial() {
        let everything = r#"
name = "t"
summary = "s"
primary = "cost"
mode = "step"
hope = 0.3
strict = true
budget_seconds = 60
pairs = 40
pairs_min = 20
seed = 5
confirm = false
guards = [{ metric = "rss_bytes", margin = 0.1 }]
workload = { adapter = "number", command = ["sh", "-c", "echo 'cost: 1'\n"], settle = { psi_below = 5.0 }, metric = [
    { name = "cost", better = "lower", regex = "cost: ([0-9]+)" } ] }
service = { command = ["true"], ready_tcp = "127.0.0.1:1", ready_command = ["true"] }
reset."vm.swappiness" = { drop_caches = true }

[[rung]]
name = "swap"
want = { "vm.swappiness" = 1, "thp.enabled" = [
    { value = "madvise", needs = { os_min = "15.5" } }, { value = "never" } ] }
env = { "A" = "b \"c\"" }
reset = { compact_memory = true }

[[rung]]
name = "build"
program = "/tmp/app{build}"
build = ["make"]
rebuilds = 4
min_gain = 0.2
"#;
        let warm = "name = \"w\"\nsummary = \"s\"\n[workload]\nadapter = \"slices\"\ncommand = [\"x\"]\nwarmup = W\n";
        let slices = |word| warm.replace('W', word);
        let http = "name = \"h\"\nsummary = \"s\"\n[service]\ncommand = [\"x\"]\n[workload]\nadapter = \"http\"\n\
                    http = { url = \"http://127.0.0.1:1/\", rate = 10, seconds = 1 }\n";
        let shipped = SHIPPED.map(|(_, text)| text.to_owned());
        let texts = [everything.to_owned(), slices("2.5"), slices("\"detect\""), http.to_owned()];
        for text in texts.into_iter().chain(shipped) {
            let trial = TrialFile::parse("t.toml", &text).expect("a good file");
            let again = TrialFile::parse("t.toml", &trial.to_text()).expect("what was run can be run");
            assert_eq!(again.to_text(), trial.to_text());
            assert_eq!(untold(&again), untold(&trial));
        }
    }

    /// Everything of a file but the places of its words.
    fn untold(trial: &TrialFile) -> String {
        let spans = regex_lite::Regex::new(r"span: \d+\.\.\d+").expect("a good expression");
        spans.replace_all(&format!("{trial:?}"), "").into_owned()
    }

    #[test]
    fn the_schema_can_be_published() {
        let schema = serde_json::to_value(schemars::schema_for!(TrialFile)).expect("plain data");
        assert!(schema["properties"]["workload"].is_object());
        assert_eq!(schema["properties"]["name"]["type"], "string");
    }
}
