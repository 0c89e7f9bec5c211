//! The rules of findings, of which most commands ask nothing.

use std::sync::OnceLock;

use serde::Deserialize;

use super::embedded;
use crate::FindingRule;

/// A file of rules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FindingFile {
    pub finding: Vec<FindingRule>,
}

/// All rules. Ours are a quarter of what is embedded, and are read when they are first asked for.
#[derive(Clone, Debug)]
pub(super) struct Findings {
    read: fn() -> Vec<FindingRule>,
    rules: OnceLock<Vec<FindingRule>>,
}

impl Default for Findings {
    fn default() -> Self {
        Self { read: Vec::new, rules: OnceLock::new() }
    }
}

impl Findings {
    /// Those that are part of the binary.
    pub fn embedded() -> Self {
        let read = || {
            let files = embedded::FINDINGS.read::<FindingFile>().expect("a test reads what is embedded");
            files.into_iter().flat_map(|(_, rules)| rules.finding).collect()
        };
        Self { read, ..Self::default() }
    }

    /// In the order of the files.
    pub fn all(&self) -> &[FindingRule] {
        self.rules.get_or_init(self.read)
    }

    /// Adds one behind the others.
    pub fn add(&mut self, rule: FindingRule) {
        let mut rules = self.rules.take().unwrap_or_else(self.read);
        rules.push(rule);
        self.rules = rules.into();
    }
}
