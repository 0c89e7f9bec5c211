//! What the text commands must keep: the time and memory of an order of a large program, and of a large import; what
//! a recording takes of the program that is recorded; what layouts and huge pages give programs.

use crate::laid_out;
use crate::own_text;
use crate::process::milliseconds;
use crate::recording;
use crate::row::{Figure, Limit, Rows};
use anyhow::{Context, Result, ensure};
use planish_stats::Rng;
use planish_sys::child;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Functions of the program: those of a large server or a compiler.
const FUNCTIONS: usize = 100_000;
/// Pairs of caller and callee.
const CALLS: usize = 1_000_000;
/// Frames of a stack.
const DEPTH: usize = 16;
/// Different stacks of the recording: a database has some thousand call sites that run.
const STACKS: usize = 2_000;
const IMPORT_BYTES: usize = 100 << 20;
const MIB: f64 = (1 << 20) as f64;

/// Measures every row of the text commands, or those that are wanted; of `postgres`, where one is named, those of its
/// pages.
pub fn measure(planish: &Path, postgres: Option<&Path>, rows: &mut Rows) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("planish-bench").tempdir()?;
    large(planish, folder.path(), rows)?;
    let name = "text record at its default rate: CPU time added to an operation";
    rows.add_with_note(name, "%", (Limit::AtMost, 2.0), || recording::added_percent(planish));
    laid_out::shipped(planish, folder.path(), rows);
    for route in ["anonymous", "memfd"] {
        let name = format!("own text of 16 MiB, 100k functions, on huge pages, {route}: each MiB");
        rows.add(&name, "ms", (Limit::AtMost, 1.0), || own_text::milliseconds_a_mib(route));
    }
    laid_out::postgres(planish, folder.path(), postgres, rows);
    ensure!(!rows.is_empty(), "no row has that in its name");
    Ok(())
}

/// Rows of a large program and a large recording, which are made only where one of them is wanted.
fn large(planish: &Path, folder: &Path, rows: &mut Rows) -> Result<()> {
    const IMPORT: &str = "import of 100 MB of perf.data";
    let ordered =
        ["c3", "cdsort"].map(|algorithm| (algorithm, format!("{algorithm}, 100k functions, 1M calls")));
    let memory_of = |name: &str| format!("{name}: memory");
    let is_wanted = |name: &str| rows.wants(name) || rows.wants(&memory_of(name));
    if !rows.wants(IMPORT) && !ordered.iter().any(|(_, name)| is_wanted(name)) {
        return Ok(());
    }
    let program = program(folder)?;
    let profile = folder.join("graph.planish");
    fs::write(&profile, profile_text()).context("write the profile")?;
    let recording = folder.join("perf.data");
    fs::write(&recording, recording_bytes()).context("write the recording")?;

    let order = |algorithm: &str| {
        let mut command = Command::new(planish);
        command.args(["text", "order"]).arg(&program).arg("--profile").arg(&profile);
        command.args(["--algorithm", algorithm, "-o"]).arg(folder.join("order"));
        command
    };
    for (algorithm, name) in &ordered {
        rows.add(name, "s", (Limit::AtMost, 2.0), || seconds(|| order(algorithm)));
        rows.add(&memory_of(name), "MiB", (Limit::AtMost, 500.0), || memory(order(algorithm)));
    }
    let import = || {
        let mut command = Command::new(planish);
        command.args(["text", "import"]).arg(&recording).arg("--program").arg(&program);
        command.arg("-o").arg(folder.join("imported"));
        command
    };
    rows.add(IMPORT, "s", (Limit::AtMost, 3.0), || seconds(import));
    Ok(())
}

fn seconds(command: impl FnMut() -> Command) -> Result<Figure> {
    let Figure { value, low, high } = milliseconds(9, &[0], || Ok(()), command)?;
    Ok(Figure { value: value / 1e3, low: low / 1e3, high: high / 1e3 })
}

/// The most memory that the process held.
fn memory(mut command: Command) -> Result<Figure> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (status, usage) = child::wait_with_usage(quiet.spawn().context("start planish")?)?;
    ensure!(status.success(), "{command:?} left with {status}");
    Ok(Figure::exact(usage.resident_bytes_max as f64 / MIB))
}

/// A program of many small functions.
fn program(folder: &Path) -> Result<PathBuf> {
    let mut rng = Rng::new(1);
    let mut source = String::from(".text\n");
    for index in 0..FUNCTIONS {
        let bytes = 16 * (1 + rng.below(40));
        writeln!(
            source,
            ".globl f{index}\n.type f{index},@function\nf{index}: .zero {bytes},1\n.size f{index},{bytes}"
        )?;
    }
    fs::write(folder.join("program.s"), source).context("write the program")?;
    let linked = Command::new("cc")
        .current_dir(folder)
        .args(["-nostdlib", "-static", "-Wl,-e,f0", "-o", "program", "program.s"])
        .output()
        .context("start cc")?;
    ensure!(linked.status.success(), "cc: {}", String::from_utf8_lossy(&linked.stderr).trim());
    Ok(folder.join("program"))
}

/// A call graph in which few functions are called often, and most calls are of near ones.
fn profile_text() -> String {
    let mut rng = Rng::new(2);
    let weights: Vec<usize> = (0..FUNCTIONS).map(|_| rng.below(1000)).collect();
    let functions = weights.iter().enumerate().map(|(index, weight)| format!("F {weight} 0 f{index}\n"));
    let mut text = String::from("planish text profile 1\nweights samples\nedges stacks\ntotal 50000000\n");
    text.extend(functions);
    for _ in 0..CALLS {
        let (caller, span) = (rng.below(FUNCTIONS), 1 + rng.below(200));
        let callee = if rng.below(4) == 0 { rng.below(FUNCTIONS / 100) } else { (caller + span) % FUNCTIONS };
        text.push_str(&format!("E {caller} {callee} {}\n", 1 + rng.below(500)));
    }
    let checksum = crc32fast::hash(text.as_bytes());
    text + &format!("end {checksum:08x}\n")
}

/// Stacks of user code as `perf record -g -o -` writes them, until there are enough bytes.
fn recording_bytes() -> Vec<u8> {
    const BASE: u64 = 0x0040_0000;
    const CODE_BYTES: usize = 30 << 20;
    const CONTEXT_USER: u64 = -512_i64 as u64;
    /// IP, TID, TIME, CALLCHAIN.
    const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5;
    let mut rng = Rng::new(3);
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let record = |kind: u32, misc: u16, body: &[u8]| {
        let size = u16::try_from(8 + body.len()).expect("records are short");
        [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
    };
    let mut attribute = [1_u32.to_le_bytes(), 128_u32.to_le_bytes()].concat();
    attribute.extend(words(&[0, 1, SAMPLE_TYPE, 0, 1 << 18]));
    attribute.resize(128, 0);
    let mut mapping = words(&[7 << 32 | 7, BASE, CODE_BYTES as u64, 0, 0, 0]);
    mapping.extend([0_u32, 0, 5, 0].iter().flat_map(|word| word.to_le_bytes()));
    mapping.extend(b"program\0");
    mapping.extend(words(&[7 << 32 | 7, 1]));
    let mut bytes = [&b"PERFILE2"[..], &words(&[16])].concat();
    bytes.extend(record(64, 0, &attribute));
    bytes.extend(record(10, 2, &mapping));
    // A program has many stacks and not any stack: a few are seen often, and each from several instructions.
    let mut stack =
        || (0..DEPTH).map(|_| BASE + 0x1000 + rng.below(CODE_BYTES / 2) as u64).collect::<Vec<u64>>();
    let stacks: Vec<Vec<u64>> = (0..STACKS).map(|_| stack()).collect();
    let mut time = 2;
    while bytes.len() < IMPORT_BYTES {
        time += 1_000_000;
        let mut frames = stacks[rng.below(STACKS).min(rng.below(STACKS))].clone();
        frames[0] += rng.below(64) as u64;
        let mut body = words(&[frames[0], 7 << 32 | 7, time, DEPTH as u64 + 1, CONTEXT_USER]);
        body.extend(words(&frames));
        bytes.extend(record(9, 2, &body));
    }
    bytes
}
