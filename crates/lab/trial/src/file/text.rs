//! Arms that are one program, laid out differently: what a trial file says of them.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::place::Place;
use super::{ArmSpec, SHIPPED, TrialFile};
use crate::adapter::AdapterKind;

/// One source, of which every arm has a program of its own: linked in an order, laid out by BOLT, on huge pages.
///
/// Its commands run in one folder, which is kept, and find there what those before them have left. Each finds
/// `PLANISH`, this very program, and `PLANISH_JOBS`, the CPUs that may be used.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextSpec {
    /// The shipped trial whose commands these are, and whose folder this is: then none is said here.
    #[schemars(with = "Option<String>")]
    pub of: Option<Spanned<String>>,
    /// The folder; without it one in `/var/tmp` that has the name of the trial and the number of the user.
    pub folder: Option<PathBuf>,
    /// What `build` finds as `PLANISH_SOURCE`: a source of the user's own.
    pub source: Option<PathBuf>,
    /// Whom the program runs as, where its commands start it as another user: he may write what BOLT counts.
    pub user: Option<String>,
    /// Run once, before all: brings the source, compiles it, makes what the workload reads. Run again only where it
    /// changed, or did not come to its end.
    #[serde(default)]
    pub build: Vec<String>,
    /// Links the program as `PLANISH_OUT`, with `PLANISH_FLAGS` among the words of the linking compiler. Lines that it
    /// prints, such as `compiler: clang 19`, are facts of the arm.
    #[serde(default)]
    pub link: Vec<String>,
    /// Runs `PLANISH_TEXT` to its end on what the profile is to be of; without it the workload's command. What it
    /// prints must be the same for every layout of the program.
    #[serde(default)]
    pub sample: Vec<String>,
    /// Runs `PLANISH_TEXT` for some seconds with `PLANISH_TRACER` in front of it: words of `valgrind`, whose misses of
    /// a cache and a TLB for instructions are told. `PLANISH_TRACE` is `choice` where an order is chosen by it, and
    /// `figure` where it is told: let these be different inputs. Without it nothing is simulated.
    #[serde(default)]
    pub trace: Vec<String>,
}

/// What is done to the program of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TextWord {
    /// Linked in the order that `planish text order` finds best.
    Order,
    /// Linked in the one of its orders that misses least in a run under valgrind.
    OrderTraced,
    /// Linked by lld with the same calls and weights, in the order that lld makes of them (CDSort).
    LldCdsort,
    /// Its functions laid out by BOLT, in the order that was sampled; blocks stay as they are.
    BoltFunctions,
    /// Blocks and functions laid out by BOLT, by counted branches.
    Bolt,
    /// Its text on huge pages of the page cache.
    Huge,
}

impl TextWord {
    /// Whether it says where code lies in the program, of which an arm has one way.
    pub(crate) fn is_layout(self) -> bool {
        self != Self::Huge
    }
}

impl TrialFile {
    /// The table `[text]`, that of the shipped trial where it names one.
    pub(crate) fn text_spec(&self) -> Option<TextSpec> {
        let spec = self.text.as_ref()?;
        let Some(of) = &spec.of else { return Some(spec.clone()) };
        Self::shipped(of.get_ref()).ok()?.text
    }

    /// The same trial with all its commands: what a proof must have, as those of a shipped trial change.
    pub(crate) fn resolved(&self) -> Self {
        let mut trial = self.clone();
        if let (Some(own), Some(spec)) = (&self.text, self.text_spec()) {
            let (folder, source) = (own.folder.clone(), own.source.clone());
            trial.text = Some(TextSpec { of: None, folder, source, ..spec });
        }
        trial
    }

    /// The name under which the folder of its programs is kept.
    pub(crate) fn text_name(&self) -> &str {
        let of = self.text.as_ref().and_then(|spec| spec.of.as_ref());
        of.unwrap_or(&self.name).get_ref()
    }
}

/// What is wrong with `[text]` and the words of arms.
pub(super) fn check<'t>(
    trial: &'t TrialFile,
    keyed: impl Iterator<Item = (String, &'t ArmSpec)>,
) -> Result<(), (Place, String)> {
    let wrong = |key: &str, message: &str| Err((Place::from(key), message.to_owned()));
    let Some(spec) = &trial.text else {
        let mut arms = keyed.filter(|(_, arm)| !arm.text.is_empty());
        return match arms.next() {
            Some((key, _)) => wrong(&format!("{key}.text"), "`text` is for trials with a table [text]"),
            None => Ok(()),
        };
    };
    if matches!(trial.workload.adapter, AdapterKind::Slices | AdapterKind::Jitter) {
        return wrong(
            "text",
            "[text] is for programs that are started for each unit: not for `slices` and `jitter`",
        );
    }
    if trial.boots.is_some() {
        return wrong("text", "arms that are boots have no programs that are built before: [text]");
    }
    if let Some(of) = &spec.of {
        let shipped = SHIPPED.iter().any(|(name, _)| name == of.get_ref() && *name != trial.name.get_ref());
        let shipped = shipped.then(|| TrialFile::shipped(of.get_ref()).ok()?.text).flatten();
        if shipped.is_none_or(|text| text.link.is_empty()) {
            return Err((
                of.span().into(),
                format!("no shipped trial `{}` has a [text] of its own", of.get_ref()),
            ));
        }
        if [&spec.build, &spec.link, &spec.sample, &spec.trace].iter().any(|words| !words.is_empty()) {
            return wrong("text.of", "`of` takes the commands of another trial: say none in [text]");
        }
    } else if spec.link.is_empty() {
        return wrong("text", "[text] needs `link`, which makes the program PLANISH_OUT");
    } else if spec.sample.is_empty() && (trial.workload.command.is_empty() || trial.service.is_some()) {
        return wrong(
            "text",
            "[text] needs `sample`: the workload is no command that runs the program to its end",
        );
    }
    for (key, arm) in keyed {
        if arm.text.iter().filter(|word| word.is_layout()).count() > 1 {
            return wrong(
                &format!("{key}.text"),
                "an arm has one layout: order, order-traced, lld-cdsort, bolt-functions or bolt",
            );
        }
        if arm.program.is_some() || !arm.build.is_empty() || arm.rebuilds.is_some() {
            return wrong(
                &key,
                "arms of a trial with [text] have their programs of it: no `program`, no `build`",
            );
        }
        if arm.env.contains_key("PLANISH_TEXT") {
            return wrong(&format!("{key}.env"), "PLANISH_TEXT is set by [text]");
        }
    }
    Ok(())
}
