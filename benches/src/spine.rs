//! What the control plane and the lab must keep: start, doctor, apply, size, overhead, error rates.

use crate::process::milliseconds;
use crate::recorded::Copied;
use crate::row::{Figure, Limit, Rows};
use crate::simulated;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A two-socket server, recorded, that answers writes as its kernel would.
const HOST: &str = "hosts/metal-2s";
/// Fifteen knobs, none of them a pool: what pages cost to move is the kernel's time, not ours.
const WANTED: &[(&str, &str)] = &[
    ("vm.swappiness", "7"),
    ("vm.zone_reclaim_mode", "1"),
    ("vm.stat_interval", "13"),
    ("vm.dirty_bytes", "268435456"),
    ("vm.dirty_background_bytes", "67108864"),
    ("kernel.numa_balancing", "0"),
    ("kernel.timer_migration", "0"),
    ("thp.enabled", "\"never\""),
    ("thp.defrag", "\"never\""),
    ("thp.shmem_enabled", "\"advise\""),
    ("thp.khugepaged.pages_to_scan", "8192"),
    ("thp.khugepaged.max_ptes_none", "64"),
    ("block.nr_requests", "{ value = \"128\", only = \"nvme*\" }"),
    ("block.read_ahead_kb", "{ value = \"64\", only = \"nvme*\" }"),
    ("block.nomerges", "{ value = \"2\", only = \"nvme*\" }"),
];

/// `planish prove` may find nothing that noise cannot explain: that is an answer.
const EXIT_INCONCLUSIVE: i32 = 6;

/// Measures every row of the spine.
pub fn measure(planish: &Path, rows: &mut Rows) -> Result<()> {
    let quietly = || Ok(());
    rows.add("planish --version", "ms", (Limit::AtMost, 5.0), || {
        milliseconds(200, &[0], quietly, || command(planish, &["--version"]))
    });
    rows.add("planish doctor", "ms", (Limit::AtMost, 50.0), || {
        milliseconds(60, &[0, 1], quietly, || command(planish, &["doctor"]))
    });
    rows.add("apply of 15 knobs", "ms", (Limit::AtMost, 100.0), || apply(planish));
    rows.add("static binary", "MB", (Limit::AtMost, 15.0), || binary_mb(planish));
    rows.add("trial overhead", "share", (Limit::AtMost, 0.01), || overhead(planish));
    simulated::measure(rows);
    Ok(())
}

fn command(planish: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(planish);
    command.args(args);
    command
}

/// Apply of [`WANTED`] on a copy of the recorded host.
fn apply(planish: &Path) -> Result<Figure> {
    Copied::of(HOST, planish)?.with_profile("bench", WANTED)?.apply_ms("bench", 40)
}

/// The folder of the binary is on a real disk, where an fsync costs what it costs.
fn planish_folder(planish: &Path) -> Result<PathBuf> {
    planish.parent().map(Path::to_path_buf).context("the binary lies in no folder")
}

fn binary_mb(planish: &Path) -> Result<Figure> {
    let bytes = fs::metadata(planish).with_context(|| format!("look at {}", planish.display()))?.len();
    Ok(Figure::exact(bytes as f64 / 1e6))
}

/// Share of a quick proof that went into bookkeeping, as its own report tells it.
fn overhead(planish: &Path) -> Result<Figure> {
    // A state of its own: what is only measured here must not count in the machine's `planish trial honesty`.
    let state = tempfile::Builder::new().prefix("planish-bench").tempdir_in(planish_folder(planish)?)?;
    let output = command(planish, &["prove", "series", "--quick", "--json", "--state"])
        .arg(state.path())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("start planish prove")?;
    if !matches!(output.status.code(), Some(0 | EXIT_INCONCLUSIVE)) {
        // The way back of the host may lie in there.
        let kept = state.keep();
        let cure = format!("planish --state {} undo --all", kept.display());
        bail!("planish prove left with {}; type: {cure}", output.status);
    }
    let envelope: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("JSON of planish prove")?;
    let share = envelope["result"]["overhead"].as_f64().context("no result.overhead")?;
    Ok(Figure::exact(share))
}
