//! A process that ingests and flushes, ended by SIGKILL at seeded moments; and one on a disk that fills up.
//!
//! The child is this test program once more, told by its environment which folder to fill.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use planish_table::{Disk, Durable, Options, Origin, Schema, SyncPolicy, TableError};

use crate::corrections::{self, Model, Step};
use crate::crash::kernel_error;
use crate::feed::{self, PRODUCER, Rows};
use crate::simulated::Rng;

pub const KILL_FOLDER: &str = "PLANISH_TABLE_KILL_FOLDER";
pub const CORRECT_FOLDER: &str = "PLANISH_TABLE_CORRECT_FOLDER";
const FULL_FOLDER: &str = "PLANISH_TABLE_FULL_FOLDER";
/// How often a child is killed; `./x soak` asks for 200.
const KILLS: &str = "PLANISH_TABLE_KILLS";
/// Batches in flight, so that a kill finds some between submission and acknowledgement.
const IN_FLIGHT: u64 = 4;
/// Tables are checked whole after each kill, so they begin anew after some.
const KILLS_OF_A_TABLE: usize = 5;

fn options() -> Options {
    let sync = SyncPolicy::Always { gather: Duration::from_micros(200) };
    Options { sync, log_file_bytes: 20_000, ..Options::default() }
}

fn open<'a>(arena: &'a planish_arena::Arena, folder: &Path) -> Result<Durable<'a>, TableError> {
    open_with(arena, folder, feed::schema)
}

fn open_with<'a>(
    arena: &'a planish_arena::Arena,
    folder: &Path,
    schema: impl Fn() -> Schema,
) -> Result<Durable<'a>, TableError> {
    let disk = Arc::new(Disk::open(folder)?);
    match folder.join("manifest").exists() {
        true => Ok(Durable::open(arena, disk, &options())?.0),
        false => Durable::create(arena, disk, schema(), None, &options()),
    }
}

/// The child: goes on where the table ends, tells each batch that was acknowledged, and never stops.
pub fn ingest(folder: &Path) -> Result<(), TableError> {
    let arena = feed::arena();
    let durable = open(&arena, folder)?;
    let mut tell = std::io::stdout();
    let mut sequence = durable.read()?.sequence(PRODUCER).unwrap_or(0);
    loop {
        let tickets: Vec<_> = (sequence + 1..=sequence + IN_FLIGHT)
            .map(|sequence| {
                durable.submit(Some(Origin { producer: PRODUCER, sequence }), &Rows::of(sequence).cells())
            })
            .collect::<Result<_, _>>()?;
        for ticket in tickets {
            ticket.wait()?;
            sequence += 1;
            tell_of(&mut tell, sequence);
        }
        if sequence % (8 * IN_FLIGHT) == 0 {
            durable.flush(feed::through_newest(sequence))?;
        }
    }
}

fn tell_of(tell: &mut impl Write, sequence: u64) {
    // One system call: a pipe keeps it whole, whatever becomes of this process.
    let _ = tell.write_all(format!("acknowledged {sequence}\n").as_bytes());
    let _ = tell.flush();
}

/// The child of a table with a key: upserts, deletes, flushes and compacts, and never stops.
pub fn correct(folder: &Path) -> Result<(), TableError> {
    let arena = feed::arena();
    let durable = open_with(&arena, folder, corrections::schema)?;
    let mut tell = std::io::stdout();
    let mut sequence = durable.read()?.sequence(corrections::PRODUCER).unwrap_or(0);
    loop {
        corrections::run(&durable, &corrections::batch(sequence + 1), &mut sequence)?;
        tell_of(&mut tell, sequence);
        match sequence % 20 {
            7 | 14 => drop(durable.flush(i64::MAX)?),
            19 => drop(durable.compact(i64::MAX)?),
            _ => {}
        }
    }
}

pub fn this_test(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.stdin(Stdio::null());
    command
}

#[test]
fn killed_ingest_loses_and_doubles_nothing() {
    if let Some(folder) = std::env::var_os(KILL_FOLDER) {
        ingest(Path::new(&folder)).unwrap();
    }
    let kills = std::env::var(KILLS).map_or(6, |kills| kills.parse().unwrap());
    let mut rng = Rng(20_261_121);
    let mut folder = tempfile::tempdir().unwrap();
    let mut total = 0;
    for kill in 0..kills {
        if kill % KILLS_OF_A_TABLE == 0 {
            folder = tempfile::tempdir().unwrap();
        }
        let child = this_test("kill::killed_ingest_loses_and_doubles_nothing")
            .env(KILL_FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn();
        let acknowledged = kill_and_read(child.unwrap(), &mut rng);
        let arena = feed::arena();
        let durable = open(&arena, folder.path()).unwrap();
        let last = feed::check(&durable);
        assert!(
            last >= acknowledged,
            "kill {kill}: {acknowledged} batches were acknowledged, {last} are there"
        );
        durable.verify().unwrap();
        total += acknowledged;
    }
    assert!(total > 0, "no child came as far as its first batch");
    println!("{kills} kills, {total} acknowledged batches counted over all of them");
}

#[test]
fn killed_corrections_leave_the_table_as_it_was_after_some_batch() {
    if let Some(folder) = std::env::var_os(CORRECT_FOLDER) {
        correct(Path::new(&folder)).unwrap();
    }
    let kills = std::env::var(KILLS).map_or(6, |kills| kills.parse().unwrap());
    let mut rng = Rng(20_261_122);
    let mut folder = tempfile::tempdir().unwrap();
    let (mut model, mut applied, mut total) = (Model::new(), 0, 0);
    for kill in 0..kills {
        if kill % KILLS_OF_A_TABLE == 0 {
            folder = tempfile::tempdir().unwrap();
            (model, applied) = (Model::new(), 0);
        }
        let child = this_test("kill::killed_corrections_leave_the_table_as_it_was_after_some_batch")
            .env(CORRECT_FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn();
        let acknowledged = kill_and_read(child.unwrap(), &mut rng);
        let arena = feed::arena();
        let durable = open_with(&arena, folder.path(), corrections::schema).unwrap();
        let there = durable.read().unwrap().sequence(corrections::PRODUCER).unwrap_or(0);
        assert!(there >= acknowledged, "kill {kill}: {acknowledged} were acknowledged, {there} are there");
        let steps = (applied + 1..=there).map(corrections::batch);
        steps.for_each(|step: Step| corrections::apply(&mut model, &step));
        assert_eq!(corrections::contents(&durable), model, "kill {kill}: after {there} batches");
        durable.verify().unwrap();
        (applied, total) = (there, total + acknowledged);
    }
    assert!(total > 0, "no child came as far as its first batch");
    println!("{kills} kills, {total} acknowledged batches counted over all of them");
}

/// Lets the child work for a moment, kills it, and returns the last batch that it said was acknowledged.
fn kill_and_read(mut child: Child, rng: &mut Rng) -> u64 {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let number = |line: &str| line.strip_prefix("acknowledged ").and_then(|number| number.parse().ok());
    // Some die while they open the table, most at work.
    let mut acknowledged = 0;
    if rng.below(8) > 0 {
        acknowledged = lines.by_ref().find_map(|line| number(&line.unwrap())).unwrap_or(0);
    }
    std::thread::sleep(Duration::from_micros(rng.below(60_000) as u64));
    child.kill().unwrap();
    child.wait().unwrap();
    for line in lines {
        acknowledged = number(&line.unwrap()).unwrap_or(acknowledged);
    }
    acknowledged
}

/// The child on a small disk of its own: fills it, twice makes room, and looks that nothing was lost.
fn fill(folder: &Path) {
    let table = folder.join("table");
    let fillers = [folder.join("filler-1"), folder.join("filler-2")];
    for filler in &fillers {
        std::fs::File::create(filler).unwrap().write_all(&vec![1; 256 << 10]).unwrap();
    }
    let arena = feed::arena();
    let durable = open(&arena, &table).unwrap();
    let mut sequence = 0;
    for filler in fillers {
        let error = loop {
            match feed::append(&durable, sequence + 1) {
                Ok(_) => sequence += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, TableError::LogWrite { .. }), "{error:?}");
        assert_eq!(kernel_error(&error), ErrorKind::StorageFull);
        assert_eq!(feed::check(&durable), sequence);
        std::fs::remove_file(filler).unwrap();
        feed::append(&durable, sequence + 1).unwrap();
        sequence += 1;
    }
    drop(durable);
    let arena = feed::arena();
    assert_eq!(feed::check(&open(&arena, &table).unwrap()), sequence);
    println!("filled at {sequence}");
}

#[test]
fn a_real_disk_that_is_full_takes_nothing_and_later_goes_on() {
    if let Some(folder) = std::env::var_os(FULL_FOLDER) {
        return fill(Path::new(&folder));
    }
    let name = "kill::a_real_disk_that_is_full_takes_nothing_and_later_goes_on";
    let folder = tempfile::tempdir().unwrap();
    // The mount lies in a namespace of the child's own and goes with it.
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c"]);
    command.arg("mount -t tmpfs -o size=1m none \"$0\" || exit 99; exec \"$@\"").arg(folder.path());
    let inner = this_test(name);
    command.arg(inner.get_program()).args(inner.get_args()).env(FULL_FOLDER, folder.path());
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.code() != Some(99) => output,
        other => return planish_skip::skip(name, format_args!("no mount namespace: {other:?}")),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("unshare failed") {
        return planish_skip::skip(name, "no mount namespace for this user");
    }
    assert!(
        output.status.success() && said.contains("filled at"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!folder.path().join("table").exists(), "nothing of it is left here");
}
