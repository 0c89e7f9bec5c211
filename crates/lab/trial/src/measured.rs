//! What the proofs of a host say of single knobs: `doctor` tells it before any general figure.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use planish_model::{KnobId, Measured};

use crate::error::TrialError;
use crate::outcome::{Setup, TrialOutcome};
use crate::proof::{Proofs, load};

/// Proofs that are looked at, the newest ones: `doctor` is to answer at once, whatever has piled up.
const PROOFS_MAX: usize = 16;
/// Characters of a proof's id that tell it from others.
const ID_SHORT: usize = 12;

impl Proofs {
    /// The gain of every rung that set one knob and nothing else, of the newest proofs of one host. A rung that was
    /// never compared, and one of a proof that was changed since, says nothing.
    ///
    /// # Errors
    /// The folder is there and cannot be read.
    pub fn measured(&self, host_id: &str) -> Result<Vec<Measured>, TrialError> {
        let mut paths = self.paths()?;
        paths.sort_by_key(|path| std::cmp::Reverse(changed(path)));
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
    let knob_of = |name: &str| {
        let is_it = |spec: &&toml::Value| spec.get("name").and_then(toml::Value::as_str) == Some(name);
        only_knob(specs.iter().find(is_it)?.as_table()?)
    };
    let rungs = outcome.real_rungs().filter(|rung| rung.pairs > 0);
    let measured = rungs.filter_map(|rung| {
        let confirmed = rung.confirmed.as_ref().map(|confirmed| confirmed.gain.high);
        Some(Measured {
            knob: knob_of(&rung.name)?,
            percent: 100.0 * confirmed.or(rung.high)?.max(0.0),
            of: outcome.primary.name.clone(),
            by: format!("proof {id} of this host, {} pairs of {}", rung.pairs, outcome.trial),
            at: outcome.started_at,
        })
    });
    measured.collect()
}

/// The knob of a rung that sets one and does nothing besides.
fn only_knob(spec: &toml::Table) -> Option<KnobId> {
    const BESIDE_IT: [&str; 4] = ["name", "want", "min_gain", "summary"];
    let want = spec.get("want")?.as_table()?;
    let is_alone = want.len() == 1 && spec.keys().all(|key| BESIDE_IT.contains(&key.as_str()));
    want.keys().next().filter(|_| is_alone).map(KnobId::new)
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
             [[rung]]\nname = \"idle\"\nwant = { \"vm.swappiness\" = 1 }\n"
                .to_owned(),
        ));
        for (name, high) in [("calm", Some(0.034)), ("two", Some(0.5)), ("more", Some(0.5)), ("idle", None)] {
            let mut own = rung(name, RungVerdict::Keep);
            (own.pairs, own.high, own.confirmed) = (12, high, None);
            outcome.rungs.push(own);
        }
        let id = proofs.store(&mut outcome).expect("it is stored");
        let told = proofs.measured("here").expect("readable");
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!((told[0].knob.as_str(), told[0].at), ("vm.stat_interval", 7));
        assert!((told[0].percent - 3.4).abs() < 1e-9 && told[0].by.contains(&id[..ID_SHORT]), "{told:?}");
        assert_eq!(proofs.measured("elsewhere").expect("readable"), []);
    }
}
