//! The pages of the published proofs: each is drawn from the proof that lies beside it, as it was stored, so that a
//! page and its figures cannot drift apart when the page learns to say more.

use anyhow::{Context, Result};
use planish_trial::TrialOutcome;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// The names of the proofs in a folder, each with its page.
pub fn pages(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry.with_context(|| format!("list {}", folder.display()))?.path();
        let Some(name) = path.file_stem().filter(|_| path.extension().is_some_and(|end| end == "json"))
        else {
            continue;
        };
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let mut outcome: TrialOutcome =
            serde_json::from_str(&text).with_context(|| format!("{} is no outcome", path.display()))?;
        // A proof cannot hold its own hash; the page names it.
        let id = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        outcome.proof_id = Some(id);
        pages.push((name.to_string_lossy().into_owned(), planish_report::trial_html(&outcome)));
    }
    Ok(pages)
}
