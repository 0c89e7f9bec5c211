//! What the proofs of a host say of single knobs: `doctor` tells it before any general figure.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use planish_model::{KnobId, Measured};
use planish_sorted::SortSmall as _;

use crate::error::TrialError;
use crate::outcome::{RungVerdict, Setup, TrialOutcome};
use crate::proof::{Proofs, load};

/// Proofs that are looked at, the newest ones: `doctor` is to answer at once, whatever has piled up.
const PROOFS_MAX: usize = 16;
/// Characters of a proof's id that tell it from others.
const ID_SHORT: usize = 12;

impl Proofs {
    /// The gain of every rung that set one knob to one value and nothing else, of the newest proofs of one host. One
    /// that was never compared, one whose pairs could not tell, and one of a proof that was changed since, say nothing.
    ///
    /// # Errors
    /// The folder is there and cannot be read.
    pub fn measured(&self, host_id: &str) -> Result<Vec<Measured>, TrialError> {
        let mut paths = self.paths()?;
        paths.sort_small_by_key(|path| std::cmp::Reverse(changed(path)));
        let outcomes = paths.iter().take(PROOFS_MAX).filter_map(|path| {
            let outcome = load(path).ok().filter(|outcome| outcome.host.host_id == host_id)?;
            Some((path.file_stem()?.to_string_lossy().chars().take(ID_SHORT).collect::<String>(), outcome))
        });
        Ok(outcomes.flat_map(|(id, outcome)| of(&id, &outcome)).collect())
    }
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

/// What one proof says.
fn of(id: &str, outcome: &TrialOutcome) -> Vec<Measured> {
    let Some(Setup::File(text)) = &outcome.setup else { return Vec::new() };
    let Ok(file) = text.parse::<toml::Table>() else { return Vec::new() };
    let specs = file.get("rung").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
    let value_of = |name: &str| {
        let is_it = |spec: &&toml::Value| spec.get("name").and_then(toml::Value::as_str) == Some(name);
        only_value(specs.iter().find(is_it)?.as_table()?)
    };
    // The interval of a few pairs that could not tell is as wide as they are few: its end is no cost.
    let is_told = |verdict| matches!(verdict, RungVerdict::Keep | RungVerdict::Drop);
    let rungs = outcome.real_rungs().filter(|rung| rung.pairs > 0 && is_told(rung.verdict));
    let measured = rungs.filter_map(|rung| {
        let confirmed = rung.confirmed.as_ref().map(|confirmed| confirmed.gain.high);
        let (knob, wanted) = value_of(&rung.name)?;
        Some(Measured {
            knob,
            wanted,
            percent: 100.0 * confirmed.or(rung.high)?.max(0.0),
            of: outcome.primary.name.clone(),
            by: format!("proof {id} of this host, {} pairs of {}", rung.pairs, outcome.trial),
            at: outcome.started_at,
        })
    });
    measured.collect()
}

/// The knob of a rung that sets one and does nothing besides, and its value where that is one for all places.
fn only_value(spec: &toml::Table) -> Option<(KnobId, String)> {
    const BESIDE_IT: [&str; 4] = ["name", "want", "min_gain", "summary"];
    let want = spec.get("want")?.as_table()?;
    let is_alone = want.len() == 1 && spec.keys().all(|key| BESIDE_IT.contains(&key.as_str()));
    let (knob, value) = want.iter().next().filter(|_| is_alone)?;
    let value = match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        _ => return None,
    };
    Some((KnobId::new(knob), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::RungVerdict;
    use crate::outcome::tests::{blank, rung};

    #[test]
    fn a_rung_of_one_knob_is_told_by_the_host_that_it_ran_on() {
        let state = tempfile::tempdir().expect("a folder");
        let proofs = Proofs::of_state(state.path());
        assert_eq!(proofs.measured("here").expect("no folder yet"), []);
        let mut outcome = blank();
        outcome.host.host_id = "here".to_owned();
        outcome.started_at = 7;
        outcome.setup = Some(Setup::File(
            "[[rung]]\nname = \"calm\"\nmin_gain = 0.01\nwant = { \"vm.stat_interval\" = 60 }\n\
             [[rung]]\nname = \"two\"\nwant = { \"vm.stat_interval\" = 60, \"vm.swappiness\" = 1 }\n\
             [[rung]]\nname = \"more\"\nwant = { \"vm.swappiness\" = 1 }\nenv = { A = \"1\" }\n\
             [[rung]]\nname = \"idle\"\nwant = { \"vm.swappiness\" = 1 }\n\
             [[rung]]\nname = \"open\"\nwant = { \"vm.swappiness\" = 2 }\n"
                .to_owned(),
        ));
        for (name, high) in [("calm", Some(0.034)), ("two", Some(0.5)), ("more", Some(0.5)), ("idle", None)] {
            let mut own = rung(name, RungVerdict::Keep);
            (own.pairs, own.high, own.confirmed) = (12, high, None);
            outcome.rungs.push(own);
        }
        let mut open = rung("open", RungVerdict::Inconclusive);
        (open.pairs, open.high, open.confirmed) = (3, Some(0.4), None);
        outcome.rungs.push(open);
        let id = proofs.store(&mut outcome).expect("it is stored");
        let told = proofs.measured("here").expect("readable");
        assert_eq!(told.len(), 1, "{told:?}");
        let first = (told[0].knob.as_str(), told[0].wanted.as_str(), told[0].at);
        assert_eq!(first, ("vm.stat_interval", "60", 7));
        assert!((told[0].percent - 3.4).abs() < 1e-9 && told[0].by.contains(&id[..ID_SHORT]), "{told:?}");
        assert_eq!(proofs.measured("elsewhere").expect("readable"), []);
    }
}
