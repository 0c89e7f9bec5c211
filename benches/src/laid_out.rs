//! What `prove text` gives a PostgreSQL that is compiled here, as rows beside their limits; and the page-cache route on
//! programs and libraries as their packages ship them.

use crate::restored::{cached, restored, share};
use crate::rounds::{Arm, Rounds};
use crate::row::{Figure, Limit, Rows};
use anyhow::{Context, Result, bail, ensure};
use planish_sys::child;
use serde_json::Value;
use std::cell::LazyCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Rounds of starts of a program, on base pages and on huge ones.
const STARTS: usize = 24;
/// Pages of the order, of those that hold 99 % of its own samples.
const PAGES: f64 = 250.0;
/// Share of whole huge pages of text that must be mapped by one entry each.
pub const COVERED: f64 = 0.90;

/// Rows of PostgreSQL: one run of `planish prove text`, where one of them is wanted; and what brings back the pages of
/// the program that it has linked, or of the one that is named.
pub fn postgres(planish: &Path, folder: &Path, named: Option<&Path>, rows: &mut Rows) {
    let proof = LazyCell::new(|| {
        eprintln!("measuring planish prove text");
        Proof::run(planish, folder)
    });
    proven(&proof, rows);
    let restored_title = title("PostgreSQL", "linked by lld", RESTORED);
    rows.add_with_note(&restored_title, "share", (Limit::AtLeast, COVERED), || {
        let linked = named.map_or_else(|| of(&proof, Proof::program), |named| Ok(named.to_owned()))?;
        let put = Put::new(planish, &copied(&linked, folder, "postgres")?, folder)?;
        restored(planish, &put.file)
    });
}

/// Looks at what is made once, when the first row wants it.
fn of<T, R>(
    made: &LazyCell<Result<T>, impl FnOnce() -> Result<T>>,
    what: impl FnOnce(&T) -> Result<R>,
) -> Result<R> {
    match &**made {
        Ok(made) => what(made),
        Err(error) => bail!("{error:#}"),
    }
}

/// The rows of a proof.
fn proven(proof: &LazyCell<Result<Proof>, impl FnOnce() -> Result<Proof>>, rows: &mut Rows) {
    let name = "PostgreSQL, order-traced: pages of 4 KiB with 99 % of the samples";
    rows.add_with_note(name, "pages", (Limit::AtMost, PAGES), || {
        of(proof, |proof| {
            let pages = proof.fact("order-traced", "pages_4k_99")?;
            Ok((Figure::exact(pages), format!("{} as it is linked", proof.fact("base", "pages_4k_99")?)))
        })
    });
    for (rung, limit) in [("order", 1.0), ("order-traced", 1.0), ("bolt", 0.89)] {
        let name = format!("PostgreSQL, {rung}: CPU time over that of the program as it is linked");
        rows.add_with_note(&name, "x", (Limit::AtMost, limit), || of(proof, |proof| proof.ratio(rung)));
        let name = format!("PostgreSQL, {rung}: user time over that of the program as it is linked");
        rows.add_with_note(&name, "x", (Limit::AtMost, limit), || of(proof, |proof| proof.user_ratio(rung)));
    }
    for (fact, what) in [("l1i_misses_per_million", "L1i"), ("itlb_4k_misses_per_million", "L1 iTLB")] {
        let name = format!("PostgreSQL, order-traced: simulated misses of {what} over those of lld's cdsort");
        rows.add_with_note(&name, "x", (Limit::AtMost, 1.0), || {
            of(proof, |proof| {
                let (ours, theirs) = (proof.fact("order-traced", fact)?, proof.fact("lld-cdsort", fact)?);
                Ok((
                    Figure::exact(ours / theirs),
                    format!("{ours:.0} and {theirs:.0} for a million instructions"),
                ))
            })
        });
    }
    let name = "PostgreSQL linked by lld: whole huge pages of text mapped so, when the trial ends";
    rows.add(name, "share", (Limit::AtLeast, COVERED), || {
        of(proof, |proof| {
            let share =
                proof.fact("huge", "text_huge_after_bytes")? / proof.fact("huge", "text_whole_bytes")?;
            Ok((Figure::exact(share), String::new()))
        })
        .map(|(figure, _)| figure)
    });
}

/// What `prove text` found.
struct Proof(Value);

impl Proof {
    fn run(planish: &Path, folder: &Path) -> Result<Self> {
        let mut command = Command::new(planish);
        command.args(["prove", "text", "--json", "--state"]).arg(folder.join("state"));
        let output =
            command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("start planish")?;
        let told: Value =
            serde_json::from_slice(&output.stdout).context("planish prove text told no JSON")?;
        let result = told.get("result").filter(|result| !result.is_null());
        let Some(result) = result else { bail!("planish prove text: {}", told["messages"]) };
        Ok(Self(result.clone()))
    }

    fn rung(&self, name: &str) -> Result<&Value> {
        let rungs = self.0["rungs"].as_array().context("an outcome has rungs")?;
        rungs.iter().find(|rung| rung["name"] == name).with_context(|| format!("no rung {name}"))
    }

    /// A fact of an arm; that of the baseline is of the program as it is linked.
    fn fact(&self, arm: &str, fact: &str) -> Result<f64> {
        let achieved = if self.0["baseline"] == arm {
            &self.0["baseline_achieved"]
        } else {
            &self.rung(arm)?["achieved"]
        };
        let told = &achieved["facts"][fact];
        told.as_f64().with_context(|| format!("{arm}: {fact} is {told}"))
    }

    /// The program as it was linked, which the trial keeps.
    fn program(&self) -> Result<PathBuf> {
        let told = &self.0["baseline_achieved"]["facts"]["program"];
        Ok(told.as_str().with_context(|| format!("the program of the baseline is {told}"))?.into())
    }

    /// CPU time of a rung over that of the baseline: of its confirmation, which nobody chose by, where there is one;
    /// else with the interval that the looks have left.
    fn ratio(&self, rung: &str) -> Result<(Figure, String)> {
        let rung = self.rung(rung)?;
        let confirmed = &rung["confirmed"];
        let of = if confirmed.is_null() { rung } else { confirmed };
        figure(rung, of)
    }

    /// The same of its user time, which decided nothing: with the 95 % interval of the pairs that were there.
    fn user_ratio(&self, rung: &str) -> Result<(Figure, String)> {
        let rung = self.rung(rung)?;
        figure(rung, &rung["metrics"]["user_s"]["gain"])
    }
}

/// Fewer pairs of slices than the targets name are no figure.
const PAIRS_MIN: u64 = 24;

/// A gain as a ratio, with the pairs behind it: a planned look may have ended them early, and the interval of a rung
/// is that of all its looks.
fn figure(rung: &Value, gain: &Value) -> Result<(Figure, String)> {
    let confirmed = rung["confirmed"]["pairs"].as_u64().unwrap_or(0);
    let pairs = rung["pairs"].as_u64().unwrap_or(0);
    ensure!(pairs >= PAIRS_MIN, "only {pairs} pairs of {PAIRS_MIN}: {}", rung["reason"]);
    let part = |name: &str| gain[name].as_f64().with_context(|| format!("no gain: {}", rung["reason"]));
    let figure = Figure { value: 1.0 - part("effect")?, low: 1.0 - part("high")?, high: 1.0 - part("low")? };
    let said = rung["reason"].as_str().unwrap_or_default();
    Ok((figure, format!("{pairs} pairs, {confirmed} of a confirmation; {}: {said}", rung["verdict"])))
}

/// What the rows of the page-cache route tell.
const MAPPED: &str = "text huge";
const RESTORED: &str = "they were dropped and the warm unit was run";

fn title(name: &str, kind: &str, after: &str) -> String {
    format!("{name}, {kind}: whole huge pages of text mapped so after {after}")
}

/// Rows of the page-cache route: a copy of each file, put on huge pages, and looked at; then dropped and brought back.
pub fn shipped(planish: &Path, folder: &Path, rows: &mut Rows) {
    let files = [
        ("node", "at fixed addresses", on_path("node")),
        ("gdb", "a stock PIE", on_path("gdb")),
        ("libLLVM", "a shared library", library("libLLVM")),
        ("librustc_driver", "a shared library", rustc_driver()),
    ];
    for (name, kind, file) in files {
        let put = LazyCell::new(|| {
            let file = file.with_context(|| format!("{name} is not on this machine"))?;
            Put::new(planish, &copied(&file, folder, name)?, folder)
        });
        let limit = (Limit::AtLeast, COVERED);
        rows.add_with_note(&title(name, kind, MAPPED), "share", limit, || of(&put, Put::covered));
        rows.add_with_note(&title(name, kind, RESTORED), "share", limit, || {
            of(&put, |put| restored(planish, &put.file))
        });
    }
    let title = "node -e 0: CPU time of a start on huge pages over that on base pages";
    rows.add_with_note(title, "x", (Limit::AtMost, 1.0), || starts(planish, folder));
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let file = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())?;
    fs::canonicalize(file).ok()
}

/// The largest library whose name begins so, of those that LLVM's packages and the system bring.
fn library(begins: &str) -> Option<PathBuf> {
    let folders =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"].map(PathBuf::from);
    largest(folders, begins)
}

fn rustc_driver() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    largest([sysroot.join("lib")], "librustc_driver")
}

fn largest(folders: impl IntoIterator<Item = PathBuf>, begins: &str) -> Option<PathBuf> {
    let entries = folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let files = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(begins));
    let files = files.filter_map(|entry| fs::canonicalize(entry.path()).ok());
    files.filter_map(|file| Some((fs::metadata(&file).ok()?.len(), file))).max().map(|(_, file)| file)
}

fn copied(file: &Path, folder: &Path, name: &str) -> Result<PathBuf> {
    let copy = folder.join(name);
    // As a package manager unpacks it: in pieces far below a huge page.
    let (mut from, mut to) = (fs::File::open(file)?, fs::File::create(&copy)?);
    let mut piece = [0; 4096];
    loop {
        match std::io::Read::read(&mut from, &mut piece)? {
            0 => break,
            length => std::io::Write::write_all(&mut to, &piece[..length])?,
        }
    }
    fs::set_permissions(&copy, fs::metadata(file)?.permissions())?;
    Ok(copy)
}

/// A file that `text huge` has put on huge pages, as far as it came off.
struct Put {
    file: PathBuf,
    told: Value,
}

impl Put {
    fn new(planish: &Path, file: &Path, folder: &Path) -> Result<Self> {
        let mut command = Command::new(planish);
        command.args(["text", "huge", "--json", "--state"]).arg(folder.join("state")).arg(file);
        let output = command.output().context("start planish")?;
        let told: Value = serde_json::from_slice(&output.stdout).context("planish text huge told no JSON")?;
        ensure!(!told["result"].is_null(), "text huge: {}", told["messages"]);
        Ok(Self { file: file.to_owned(), told })
    }

    /// The share of whole huge pages of its text that lie on huge pages of the page cache.
    fn covered(&self) -> Result<(Figure, String)> {
        let after = &self.told["result"]["after"];
        let bytes = |name: &str| {
            after[name].as_f64().with_context(|| format!("text huge: {}", self.told["result"]["routes"]))
        };
        let (huge, whole) = (bytes("huge_bytes")?, bytes("whole_bytes")?);
        ensure!(whole > 0.0, "its text has no whole huge page");
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        let route = self.told["result"]["route"].as_str().unwrap_or_default();
        Ok((Figure::exact(huge / whole), format!("{:.0} of {:.0} MiB, by {route}", mib(huge), mib(whole))))
    }
}

/// CPU time of a start of node, of the copy that is on huge pages and of one that is not.
fn starts(planish: &Path, folder: &Path) -> Result<(Figure, String)> {
    let huge = folder.join("node");
    if !huge.is_file() {
        // No row before has put it there.
        let node = on_path("node").context("node is not on this machine")?;
        Put::new(planish, &copied(&node, folder, "node")?, folder)?;
    }
    let base = copied(&fs::canonicalize(&huge)?, folder, "node-base")?;
    let are_apart = || -> Result<()> {
        ensure!(share(cached(&huge)?) >= COVERED, "node's text is not on huge pages");
        ensure!(share(cached(&base)?) == 0.0, "the other copy of node is on huge pages");
        Ok(())
    };
    are_apart()?;
    let start = |program: PathBuf| -> Arm<'_> {
        Box::new(move || {
            let mut command = Command::new(&program);
            let quiet =
                command.args(["-e", "0"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let (status, usage) = child::wait_with_usage(quiet.spawn().context("start node")?)?;
            ensure!(status.success(), "node left with {status}");
            Ok(usage.cpu().as_secs_f64() * 1e3)
        })
    };
    let rounds = Rounds::measure(STARTS, &mut [start(base.clone()), start(huge.clone())])?;
    are_apart()?;
    let note = format!("{STARTS} pairs, {:.1} and {:.1} ms", rounds.median(1), rounds.median(0));
    Ok((rounds.over(1, 0)?, note))
}
