//! What a command is run under: the conditions around it, and which of them only ask whether its place is there.

use super::expand::Field;

/// One thing that must hold, or a command is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// A place is there, or may be written: who writes to it asks for no less.
    Place { place: Place, said: String },
    /// What only a host can tell, as the reason of a refusal.
    Unsure(String),
    /// It is not run at all, as the reason of a refusal.
    Never(String),
}

/// What a command sets, or a test asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    File(String),
    /// A folder, or anything: what lies in it is not there without it.
    Folder(String),
    Mount(String),
}

impl Place {
    fn path(&self) -> &str {
        let (Self::File(path) | Self::Folder(path) | Self::Mount(path)) = self;
        path
    }

    /// Whether without this place the other one cannot be set either.
    fn is_needed_by(&self, other: &Self) -> bool {
        match self {
            Self::File(path) => path == other.path(),
            Self::Mount(path) => *other == Self::Mount(path.clone()),
            Self::Folder(path) => other
                .path()
                .strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        }
    }
}

pub(super) const BY_HAND: &str = "take it by hand if it is meant";

impl Term {
    pub(super) fn unsure(why: &str) -> Self {
        Self::Unsure(format!("runs only if {why}: {BY_HAND}"))
    }

    /// Why a command that sets these places is refused, if it is.
    pub(super) fn refuses(&self, places: &[Place]) -> Option<String> {
        match self {
            Self::Unsure(why) | Self::Never(why) => Some(why.clone()),
            Self::Place { place, .. } if places.iter().all(|other| place.is_needed_by(other)) => None,
            Self::Place { said, .. } => {
                Some(format!("runs only if {said}, which asks for another place than it sets: {BY_HAND}"))
            }
        }
    }
}

/// How a command ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Always,
    /// Where it sets or does something, that is taken to succeed.
    Unlikely(String),
    Never(String),
    When(Vec<Term>),
}

impl Outcome {
    /// The terms of what is run only then.
    pub(super) fn terms(&self) -> Vec<Term> {
        match self {
            Self::Always => Vec::new(),
            Self::Unlikely(why) | Self::Never(why) => vec![Term::Never(why.clone())],
            Self::When(terms) => terms.clone(),
        }
    }

    pub(super) fn is_possible(&self) -> bool {
        matches!(self, Self::Always | Self::When(_))
    }
}

/// When a command succeeds, and when it fails.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    pub(super) well: Outcome,
    pub(super) badly: Outcome,
}

impl Ends {
    pub(super) fn always(said: &str) -> Self {
        Self { well: Outcome::Always, badly: Outcome::Never(format!("never runs: `{said}` succeeds")) }
    }

    pub(super) fn never(said: &str) -> Self {
        Self { well: Outcome::Never(format!("never runs: `{said}` fails")), badly: Outcome::Always }
    }

    /// Something was set.
    pub(super) fn done(said: &str) -> Self {
        let badly = Outcome::Unlikely(format!("runs only if `{said}` fails: {BY_HAND}"));
        Self { well: Outcome::Always, badly }
    }

    /// Something was done that nothing is known of; a script goes on as if it had.
    pub(super) fn hoped(said: &str) -> Self {
        Self { well: Self::asked(said).well, ..Self::done(said) }
    }

    /// Only a host can tell.
    pub(super) fn asked(said: &str) -> Self {
        let when = |how: &str| Outcome::When(vec![Term::unsure(&format!("`{said}` {how}"))]);
        Self { well: when("succeeds"), badly: when("fails") }
    }

    fn place(said: &str, place: Place) -> Self {
        let term = Term::Place { place, said: format!("`{said}` succeeds") };
        Self { well: Outcome::When(vec![term]), ..Self::asked(said) }
    }

    /// It succeeds where a place is not there.
    fn no_place(said: &str, place: Place) -> Self {
        let term = Term::Place { place, said: format!("`{said}` fails") };
        Self { badly: Outcome::When(vec![term]), ..Self::asked(said) }
    }

    pub(super) fn negated(self) -> Self {
        Self { well: self.badly, badly: self.well }
    }

    /// This one, and then another one where this one succeeds.
    pub(super) fn and(self, then: Self, said: &str) -> Self {
        self.joined(then, Self::asked(said).badly)
    }

    /// `and`; `badly` is how both together end where either fails, and only a host can tell which.
    fn joined(self, then: Self, badly_together: Outcome) -> Self {
        let well = match (self.well, then.well) {
            (Outcome::Always, other) | (other, Outcome::Always) => other,
            (Outcome::When(mut own), Outcome::When(more)) => {
                own.extend(more);
                Outcome::When(own)
            }
            (Outcome::When(_), other) | (other, _) => other,
        };
        let badly = match (self.badly, then.badly) {
            (Outcome::Always, _) => Outcome::Always,
            (own, Outcome::Never(_)) => own,
            (Outcome::Never(_), other) => other,
            (Outcome::Unlikely(why), Outcome::Unlikely(_)) => Outcome::Unlikely(why),
            _ => badly_together,
        };
        Self { well, badly }
    }

    /// This one, and then another one where this one fails.
    pub(super) fn or(self, then: Self, said: &str) -> Self {
        self.negated().joined(then.negated(), Self::asked(said).well).negated()
    }
}

/// What `[`, `test` or `[[` says, without the brackets.
pub(super) fn tested(said: &str, words: &[Field]) -> Ends {
    if let Some(holds) = of_root(said) {
        return if holds { Ends::always(said) } else { Ends::never(said) };
    }
    if words.iter().any(|word| !word.is_known || word.is_glob) {
        return Ends::asked(said);
    }
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let parts: Vec<&[&str]> = words.split(|word| ["-a", "&&"].contains(word)).collect();
    let is_plain = |part: &&[&str]| matches!(part, [_, _] | ["!", _, _]);
    if !parts.iter().all(is_plain) || words.iter().any(|word| ["-o", "||", "(", ")"].contains(word)) {
        return Ends::asked(said);
    }
    let each = parts.iter().map(|part| match part {
        [option, path] => place(option, path).map(|place| Ends::place(said, place)),
        [_, option, path] => place(option, path).map(|place| Ends::no_place(said, place)),
        _ => None,
    });
    let each: Option<Vec<Ends>> = each.collect();
    each.and_then(|each| each.into_iter().reduce(|one, next| one.and(next, said)))
        .unwrap_or_else(|| Ends::asked(said))
}

fn place(option: &str, path: &str) -> Option<Place> {
    let path = bare(path);
    path.starts_with('/').then_some(())?;
    match option {
        "-e" | "-d" => Some(Place::Folder(path)),
        "-b" | "-f" | "-r" | "-w" => Some(Place::File(path)),
        _ => None,
    }
}

/// A path without slashes at its end.
pub(crate) fn bare(path: &str) -> String {
    match path.trim_end_matches('/') {
        "" => path.to_owned(),
        bare => bare.to_owned(),
    }
}

/// `mountpoint -q /data`, which our own scripts ask.
pub(super) fn mounted(said: &str, words: &[&str]) -> Ends {
    match words {
        ["mountpoint", "-q", point] if point.starts_with('/') => Ends::place(said, Place::Mount(bare(point))),
        _ => Ends::asked(said),
    }
}

/// Whether a test asks if root is at work, and whether that holds: nobody else can set anything.
fn of_root(said: &str) -> Option<bool> {
    let user =
        ["$(id -u)", "$(/usr/bin/id -u)", "`id -u`", "${EUID}", "${UID}", "$EUID", "$(whoami)", "$(id -un)"];
    let said = said.replace(['"', '\''], "");
    let said = user.iter().fold(said, |said, one| said.replace(one, "$UID"));
    let words: Vec<&str> =
        said.split_whitespace().filter(|word| !["[", "]", "[[", "]]", "test"].contains(word)).collect();
    match words.as_slice() {
        ["$UID", "=" | "==" | "-eq", "0" | "root"] => Some(true),
        ["$UID", "!=" | "-ne" | "-gt", "0" | "root"] => Some(false),
        _ => None,
    }
}
