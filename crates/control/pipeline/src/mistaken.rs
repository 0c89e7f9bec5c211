//! What a plan would refuse of single values, and of values beside each other, asked before there is a profile: at each
//! line of a file that is imported.
//!
//! A profile that is refused as a whole helps nobody who has a file of fifty lines. What this host alone has not, a
//! node or so much memory, is left to the plan: the file may be for another.

use std::cell::OnceCell;

use planish_decide::DecideError;
use planish_exchange::{Judge, Mistaken};
use planish_model::{Case, Class, Conditions, Knob, Observation, Profile, Want};

use crate::session::Session;

/// What a plan on a host says of values.
pub struct Judging<'s> {
    session: &'s Session,
    /// What there is on the host, once anything is asked.
    seen: OnceCell<Observation>,
}

impl<'s> Judging<'s> {
    /// For the host of a session.
    #[must_use]
    pub fn on(session: &'s Session) -> Self {
        Self { session, seen: OnceCell::new() }
    }
}

impl Judge for Judging<'_> {
    fn alone(&self, knob: &Knob, only: Option<&str>, value: &str) -> Option<String> {
        let seen = self.seen.get_or_init(|| self.session.observe());
        let (value, only) = (value.to_owned(), only.map(str::to_owned));
        let want = Want::Case(Box::new(Case { value, only, needs: Conditions::default() }));
        let refused = planish_decide::refuse_mistaken(knob, &want, self.session.catalogue(), seen);
        refused.err().filter(|error| !error.mistaken().is_empty()).map(|error| error.to_string())
    }

    fn together(&self, profile: &Profile) -> Option<Mistaken> {
        // Whatever needs leave may be given it, and speaks against others then.
        let options = planish_decide::Options {
            allow_classes: vec![Class::Availability, Class::Durability],
            allow_knobs: profile.want.keys().cloned().collect(),
            ..planish_decide::Options::default()
        };
        let observation = self.session.observe_to_plan(profile);
        let made = planish_decide::plan(self.session.catalogue(), &observation, profile, &[], &options);
        let error: DecideError = made.err()?;
        let knobs: Vec<_> = error.mistaken().into_iter().cloned().collect();
        (!knobs.is_empty()).then(|| Mistaken { knobs, reason: error.to_string() })
    }
}
