//! An imported profile as a file of its own, with what was refused or overridden as comments.

use std::fmt::Write as _;

use super::Imported;

impl Imported {
    /// The profile in TOML. Lines that were refused or overridden stand on top, and what there is to know of others,
    /// so that nothing is lost or set in silence.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for line in self.lines.iter().filter(|line| !line.is_accepted()) {
            let (said, why) = (one_line(&line.text), line.reason.as_deref().unwrap_or_default());
            let word = if line.overridden_by.is_some() { "overridden" } else { "refused" };
            let _ = writeln!(text, "# {word}, line {}: {said}\n#   {}", line.line, one_line(why));
        }
        for line in self.lines.iter().filter(|line| line.is_accepted()) {
            if let Some(note) = &line.reason {
                let _ =
                    writeln!(text, "# line {}: {}\n#   {}", line.line, one_line(&line.text), one_line(note));
            }
        }
        text + &self.profile.to_toml()
    }
}

/// What a comment of TOML can hold: one line, without control characters.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
