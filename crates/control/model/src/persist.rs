//! What `--persist` writes, as a value that can be shown before it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Unpersisted;

/// What `--persist` comes to for a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Persist {
    /// The files that are written, in this order. One that has its lines already is not among them.
    pub files: Vec<PersistFile>,
    /// What no file brings back.
    pub left_out: Vec<Unpersisted>,
}

/// A file that the next boot reads, and what a write changes in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersistFile {
    /// The file.
    pub path: String,
    /// Whether there is no such file yet.
    pub new: bool,
    /// Lines that go, in their order.
    pub removed: Vec<String>,
    /// Lines that come, in their order. A line that changes is among both.
    pub added: Vec<String>,
    /// The program that makes the boot loader's menu of it, where one does: it runs after the write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
}

impl PersistFile {
    /// What it takes from one text of a file to another. `None` is a file that is not there.
    #[must_use]
    pub fn between(path: &str, before: Option<&str>, after: &str) -> Self {
        let mut old = before.unwrap_or_default().lines();
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        for line in after.lines() {
            // What stands before the next line that both have is gone.
            match old.clone().position(|there| there == line) {
                Some(at) => {
                    removed.extend(old.by_ref().take(at).map(str::to_owned));
                    old.next();
                }
                None => added.push(line.to_owned()),
            }
        }
        removed.extend(old.map(str::to_owned));
        Self { path: path.to_owned(), new: before.is_none(), removed, added, then: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_comes_goes_or_moves_is_told() {
        let told = |before: Option<&str>, after: &str| {
            let file = PersistFile::between("/f", before, after);
            (file.new, file.removed.join(","), file.added.join(","))
        };
        let told = |before, after| {
            let (new, removed, added) = told(before, after);
            format!("{new} -{removed} +{added}")
        };
        assert_eq!(told(None, "a\nb\n"), "true - +a,b");
        assert_eq!(told(Some(""), "a\n"), "false - +a");
        assert_eq!(told(Some("a\nb\n"), "a\nb\nc\n"), "false - +c");
        assert_eq!(told(Some("a\nold\nb\n"), "a\nnew\nb\n"), "false -old +new");
        assert_eq!(told(Some("a\nb\nc\n"), "b\nc\na\n"), "false -a +a", "the order counts");
        assert_eq!(told(Some("a\n"), "a\n"), "false - +");
    }
}
