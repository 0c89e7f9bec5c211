//! The pages of the published proofs: each is drawn from the outcome that lies beside it, so that a page and its
//! figures cannot drift apart when the page learns to say more.

use anyhow::{Context, Result};
use planish_trial::TrialOutcome;
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// What `planish prove --json` printed.
#[derive(Deserialize)]
struct Envelope {
    result: TrialOutcome,
}

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
        let proof: Envelope =
            serde_json::from_str(&text).with_context(|| format!("{} is no outcome", path.display()))?;
        pages.push((name.to_string_lossy().into_owned(), planish_report::trial_html(&proof.result)));
    }
    Ok(pages)
}
