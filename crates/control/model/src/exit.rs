//! The exit codes of `planish`: the one place that fixes them.

use serde::{Deserialize, Serialize};

/// How a command ended. The numbers are public: scripts and monitoring rely on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Exit {
    /// Done. Also: skipped because it cannot exist here; a reboot is pending (messages say so); nothing to undo.
    #[default]
    Done = 0,
    /// There are findings or drift, or a value that someone else changed since was kept.
    Findings = 1,
    /// The command line, a file of the user or a name in it is wrong. Nothing was changed.
    Usage = 2,
    /// planish refuses (no right, host moved, unsafe). Nothing was changed.
    Refused = 3,
    /// A step failed and the host was put back as it was.
    FailedRestored = 4,
    /// A step failed and the host could NOT be put back: `planish log` names what is left.
    FailedNotRestored = 5,
    /// A trial cannot tell: noise can explain what was seen.
    Inconclusive = 6,
    /// Done, and stdout took nothing of the answer. A command that writes has written all the same.
    Unprinted = 7,
    /// A broken invariant of planish itself.
    Bug = 70,
}

impl Exit {
    /// The number that the process ends with.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn codes_are_those_of_the_contract() {
        let all = [
            (Exit::Done, 0),
            (Exit::Findings, 1),
            (Exit::Usage, 2),
            (Exit::Refused, 3),
            (Exit::FailedRestored, 4),
            (Exit::FailedNotRestored, 5),
            (Exit::Inconclusive, 6),
            (Exit::Unprinted, 7),
            (Exit::Bug, 70),
        ];
        for (exit, code) in all {
            assert_eq!(exit.code(), code, "{exit:?}");
        }
    }
}
