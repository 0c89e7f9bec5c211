//! Arms of a trial file that are boots of the machine.

use std::collections::BTreeMap;
use std::ops::Range;

use planish_model::{Catalogue, KnobId, Want};
use planish_sorted::CollectMap as _;
use planish_stats::ladder::rung_alpha;
use planish_stats::walsh::pairs_for_tail;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{ArmSpec, TrialFile};
use crate::control::is_time;
use crate::outcome::LadderMode;

/// Blocks of boots at most: what a trial of some weeks can have.
const BLOCKS_MAX: usize = 256;
/// Units of an arm inside one boot at most.
const UNITS_MAX: usize = 1000;

/// How the boots of a trial run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BootsSpec {
    /// Blocks at most. Each is one boot of the default entry, one of every `[[boot]]`, and one more of the default
    /// entry as placebo, in an order drawn by the seed. It ends before, once every rung has a verdict.
    pub blocks: usize,
    /// Units of every arm inside each boot, in random order. Their median is the one figure that the boot gives.
    pub units: usize,
    /// Seconds that the machine takes to come up again and to settle: only for the time that is told before.
    pub boot_seconds: f64,
    /// Seconds of rest in each boot before the first unit.
    pub settle_seconds: f64,
}

impl Default for BootsSpec {
    fn default() -> Self {
        Self { blocks: 12, units: 5, boot_seconds: 120.0, settle_seconds: 60.0 }
    }
}

/// An arm that is a boot: the boot parameters that the default entry is given besides, for that one boot.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BootSpec {
    /// Its name.
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// Why it is here, in a sentence.
    #[serde(default)]
    pub why: String,
    /// Smallest gain at which it is worth keeping, as a fraction; 0.02 without it and without that of the file.
    pub min_gain: Option<f64>,
    /// A profile, of which the boot parameters are given and nothing else.
    #[schemars(with = "Option<String>")]
    pub profile: Option<Spanned<String>>,
    /// Wanted values of boot parameters, on top of the profile.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Want>")]
    pub want: BTreeMap<Spanned<String>, Want>,
}

impl BootSpec {
    /// The same as an arm of one boot, for what asks either.
    pub(crate) fn as_arm(&self) -> ArmSpec {
        ArmSpec {
            name: Some(self.name.clone()),
            profile: self.profile.clone(),
            want: self.want.clone(),
            ..ArmSpec::default()
        }
    }

    /// Its own wanted values.
    pub(crate) fn wants(&self) -> BTreeMap<KnobId, Want> {
        let of = |(id, want): (&Spanned<String>, &Want)| (KnobId::new(id.get_ref().as_str()), want.clone());
        self.want.iter().map(of).collect_map()
    }
}

/// What a number of a trial with boots has to be, with the place of the one that is not.
pub(super) fn numbers(trial: &TrialFile) -> Result<(), (String, String)> {
    let wrong = |key: &str, message: String| Err((key.to_owned(), message));
    let Some(boots) = &trial.boots else {
        return match trial.boot.first() {
            Some(_) => {
                wrong("boot.0", "a [[boot]] needs [boots]: how many blocks, of how many units".to_owned())
            }
            None => Ok(()),
        };
    };
    if trial.boot.is_empty() {
        return wrong("boots", "[boots] without a [[boot]]: no arm is a boot".to_owned());
    }
    let (blocks, units) = (boots.blocks, boots.units);
    if !(1..=UNITS_MAX).contains(&units) {
        return wrong("boots.units", format!("`units` is a number from 1 to {UNITS_MAX}, not {units}"));
    }
    for (name, seconds) in [("boot_seconds", boots.boot_seconds), ("settle_seconds", boots.settle_seconds)] {
        if !is_time(seconds) {
            let key = format!("boots.{name}");
            return wrong(&key, format!("`{name}` is a time from zero to 30 days, and not {seconds} s"));
        }
    }
    let of_boots = trial.boot.iter().enumerate().filter_map(|(at, boot)| Some((at, boot.min_gain?)));
    for (at, gain) in of_boots {
        if !(gain > 0.0 && gain < 1.0) {
            let key = format!("boot.{at}.min_gain");
            return wrong(&key, format!("`min_gain` is a fraction between 0 and 1, not {gain}"));
        }
    }
    if blocks > BLOCKS_MAX {
        return wrong("boots.blocks", format!("`blocks` is {BLOCKS_MAX} at most, not {blocks}"));
    }
    // What boots differ by is seen only between boots: of too few no exact test can tell anything, whatever they show.
    let (rungs, needed) = (rungs(trial), blocks_min(trial));
    if blocks < needed {
        let message = format!(
            "{blocks} boots of each arm can show nothing: the {rungs} comparisons of this trial share its error, and \
             take {needed} blocks at least"
        );
        return wrong("boots.blocks", message);
    }
    Ok(())
}

/// The fewest blocks of which an exact test can tell anything.
pub(crate) fn blocks_min(trial: &TrialFile) -> usize {
    pairs_for_tail(rung_alpha(rungs(trial), trial.strictness()) / 2.0)
}

/// What belongs to another kind of trial, with the reason.
pub(super) fn objection(trial: &TrialFile) -> Option<(String, String)> {
    trial.boots.as_ref()?;
    let found = |key: &str, message: &str| Some((key.to_owned(), message.to_owned()));
    if trial.duet.as_ref().is_some_and(|duet| *duet.get_ref()) {
        return found("duet", "`duet` is for arms of one boot: leave it out beside [boots]");
    }
    if trial.mode() == LadderMode::Step {
        return found(
            "mode",
            "mode `step` is for arms of one boot: beside [boots] each is compared with the default",
        );
    }
    let arms = [&trial.baseline].into_iter().chain(&trial.rung);
    if arms.clone().any(|arm| arm.rebuilds.is_some()) {
        return found(
            "boots",
            "`rebuilds` makes builds the replicates, and [boots] makes boots: take one of them",
        );
    }
    if arms.clone().any(|arm| !arm.build.is_empty()) {
        return found("boots", "a `build` would run in every boot: build before, and name the `program`");
    }
    None
}

/// Names, profiles and values of the boots.
pub(super) fn arms(trial: &TrialFile, catalogue: &Catalogue) -> Result<(), (Range<usize>, String)> {
    for boot in &trial.boot {
        let as_arm = boot.as_arm();
        super::check::profile(&as_arm, catalogue)?;
        let is_at_boot = |id: &KnobId| catalogue.knob(id).is_ok_and(|knob| knob.boot_parameter().is_some());
        if !super::gain::knobs(&as_arm, catalogue).iter().any(is_at_boot) {
            let message =
                format!("`{}` sets no boot parameter: as a [[rung]] it needs no boot", boot.name.get_ref());
            return Err((boot.name.span(), message));
        }
        let other = boot.want.keys().find(|id| !is_at_boot(&KnobId::new(id.get_ref().as_str())));
        if let Some(id) = other {
            let message =
                format!("`{}` is no boot parameter: a [[rung]] sets it inside each boot", id.get_ref());
            return Err((id.span(), message));
        }
    }
    Ok(())
}

/// What is compared: every boot with the default one, the placebo too, and every rung inside each of them.
fn rungs(trial: &TrialFile) -> usize {
    trial.boot.len() + 1 + trial.rung.len() * (trial.boot.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "name = \"t\"\nsummary = \"s\"\n[workload]\nadapter = \"command\"\ncommand = [\"true\"]\n";
    const BOOT: &str = "[[boot]]\nname = \"a\"\nwant = { \"boot.skew_tick\" = 1 }\n";

    fn error(text: &str) -> String {
        TrialFile::parse("t.toml", text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_boot_with_its_default_numbers_is_enough() {
        let text = format!("{HEAD}[boots]\n{BOOT}[[rung]]\nname = \"r\"\n");
        let trial = TrialFile::parse("t.toml", &text).expect("a good file");
        assert_eq!((trial.boot_gains(), rungs(&trial)), (vec![0.02], 4));
        let again = TrialFile::parse("t.toml", &trial.to_text()).expect("what was run can be run");
        assert_eq!(again.to_text(), trial.to_text());
    }

    #[test]
    fn one_boot_of_each_arm_is_no_experiment() {
        let wrong = error(&format!("{HEAD}[boots]\nblocks = 1\n{BOOT}"));
        assert!(wrong.starts_with("t.toml:7:10: 1 boots of each arm can show nothing"), "{wrong}");
        assert!(wrong.ends_with("take 6 blocks at least"), "{wrong}");
        let of = |blocks: usize| {
            TrialFile::parse("t.toml", &format!("{HEAD}[boots]\nblocks = {blocks}\n{BOOT}")).is_ok()
        };
        assert!(!of(5) && of(6));
    }

    #[test]
    fn halves_and_what_is_of_another_kind_are_refused_where_they_stand() {
        for (text, told) in [
            (format!("{HEAD}{BOOT}"), "needs [boots]"),
            (format!("{HEAD}[boots]\n"), "without a [[boot]]"),
            (format!("{HEAD}[boots]\nunits = 0\n{BOOT}"), "`units` is a number"),
            (format!("{HEAD}[boots]\nboot_seconds = -1\n{BOOT}"), "`boot_seconds` is a time"),
            (format!("{HEAD}[boots]\n{BOOT}min_gain = 2\n"), "`min_gain` is a fraction"),
            (format!("{HEAD}[boots]\n{BOOT}{BOOT}"), "the name `a` is taken"),
            (
                format!("{HEAD}[boots]\n{BOOT}[[rung]]\nname = \"r\"\n[[rung]]\nname = \"a + r\"\n"),
                "t.toml:8:8: `a + r` is how rung `r` inside this boot is told, and is taken",
            ),
            (
                format!(
                    "{HEAD}[boots]\n{BOOT}{}[[rung]]\nname = \"b + c\"\n[[rung]]\nname = \"c\"\n",
                    BOOT.replace("\"a\"", "\"a + b\"")
                ),
                "`a + b + c` is how rung `c` inside this boot is told, and is taken",
            ),
            (format!("{HEAD}[boots]\n[[boot]]\nname = \"a\"\n"), "sets no boot parameter"),
            (
                format!("{HEAD}[boots]\n[[boot]]\nname = \"a\"\nwant = {{ \"vm.swappiness\" = 1 }}\n"),
                "sets no boot parameter",
            ),
            (
                format!(
                    "{HEAD}[boots]\n[[boot]]\nname = \"a\"\n\
                     want = {{ \"boot.skew_tick\" = 1, \"vm.swappiness\" = 1 }}\n"
                ),
                "`vm.swappiness` is no boot parameter",
            ),
            (format!("mode = \"step\"\n{HEAD}[boots]\n{BOOT}"), "mode `step`"),
            (format!("duet = true\n{HEAD}[boots]\n{BOOT}"), "`duet`"),
            (
                format!("{HEAD}[boots]\n{BOOT}[[rung]]\nname = \"r\"\nbuild = [\"make\"]\n"),
                "would run in every boot",
            ),
        ] {
            let wrong = error(&text);
            assert!(wrong.contains(told), "{text}: {wrong}");
        }
    }
}
