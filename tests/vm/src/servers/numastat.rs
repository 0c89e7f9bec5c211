//! numastat(8) beside `planish map`, of the same processes. Where it is right both say the same, node by node. Where it
//! is wrong both numbers are held, so that one that has learned it is noticed here.
//!
//! It adds up numa_maps, which tells what one process has mapped: lines with the words `huge`, `heap` and `stack` each
//! for itself, and whatever is left as "Private".

use super::postgres::{BUFFERS_MIB, Filled, POSTGRES, Pages, Session, served};
use super::with;
use crate::check::{Outcome, Report};
use crate::mapped::{self, POOL_PAGE, POOL_WRITTEN, PRIVATE, SHARED};
use crate::placed::pooled;
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

const NUMASTAT: &str = "/bin/numastat";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// It rounds to hundredths, and what runs meanwhile takes a page or gives one back.
const SLACK_MIB: f64 = 0.25;
/// Has another backend map every buffer of the table, and no third one.
const READ: &str = "set max_parallel_workers_per_gather = 0; select sum(hashtext(pad)) from t;";

pub(super) fn run_all(report: &mut Report) {
    report.check("numastat.alone", || with(NUMASTAT, alone));
    report.check("numastat.postgres", || {
        with(NUMASTAT, || with(POSTGRES, || served(&[], Pages::Base, beside_server)))
    });
}

/// Rows of a table, each in MiB on node 0, on node 1, and on both.
type Table = BTreeMap<String, [f64; 3]>;

/// What numastat says of processes: of one by kind, of several a row for each.
fn numastat(pids: &[u32]) -> Result<Table> {
    let mut command = Command::new(NUMASTAT);
    command.arg("-p").args(pids.iter().map(u32::to_string)).stdin(Stdio::null()).env_clear();
    let output = command.output().context("start numastat")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let talk = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "numastat left with {}: {text} {talk}", output.status);
    let table = parse(&text);
    ensure!(table.contains_key("Total"), "no row of sums: {text} {talk}");
    Ok(table)
}

/// `Heap    0.12    3.40    3.52`; of several processes `1234 (postgres)` is in front of the numbers.
fn parse(text: &str) -> Table {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, numbers) = words.split_last_chunk::<3>()?;
        let numbers = numbers.map(|word| word.parse::<f64>().ok());
        let [Some(first), Some(second), Some(both)] = numbers else { return None };
        Some(((*name.first()?).to_owned(), [first, second, both]))
    };
    text.lines().filter_map(row).collect()
}

fn row(table: &Table, name: &str) -> Result<[f64; 3]> {
    table.get(name).copied().with_context(|| format!("no row {name}: {table:?}"))
}

/// What `planish map` says of a process.
fn map(pid: u32, more: &[&str]) -> Result<Value> {
    let pid = pid.to_string();
    planish::json(&[&["map", pid.as_str()][..], more].concat(), &[0])
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The sum of rows of a map.
fn sum(map: &Value, fits: impl Fn(&Value) -> bool) -> f64 {
    let rows = map["result"]["rows"].as_array().into_iter().flatten();
    mib(rows.filter(|row| fits(row)).filter_map(|row| row["resident_bytes"].as_u64()).sum())
}

/// A number of bytes of the process that was mapped.
fn of_process(map: &Value, name: &str) -> f64 {
    mib(map["result"]["processes"][0][name].as_u64().unwrap_or(0))
}

/// What is the process's own, on a node.
fn own(map: &Value, node: usize) -> f64 {
    let parts = map["result"]["processes"][0]["private"].as_array().into_iter().flatten();
    mib(parts.filter(|part| part["node"] == node).filter_map(|part| part["resident_bytes"].as_u64()).sum())
}

/// All that page tables of the process map: its own, files, and shared memory.
fn mapped_by(map: &Value) -> f64 {
    own(map, 0) + own(map, 1) + of_process(map, "file_mapped_bytes") + of_process(map, "shared_mapped_bytes")
}

fn ensure_same(what: &str, theirs: f64, ours: f64) -> Result<()> {
    ensure!((theirs - ours).abs() <= SLACK_MIB, "{what}: numastat {theirs:.2} MiB, map {ours:.2}");
    Ok(())
}

/// A process that has mapped all that it has filled, with some of it on transparent huge pages.
fn alone() -> Result<Outcome> {
    let modes = settings::read(THP)?;
    let before = modes.split(['[', ']']).nth(1).with_context(|| format!("no mode in {modes}"))?;
    fs::write(THP, "always").with_context(|| format!("write {THP}"))?;
    let outcome = pooled("16", || {
        let (table, map) = mapped::beside_writer(|pid| Ok((numastat(&[pid])?, map(pid, &[])?)))?;
        compare_alone(&table, &map).with_context(|| format!("{table:?}"))
    });
    fs::write(THP, before).with_context(|| format!("restore {THP}"))?;
    outcome
}

fn compare_alone(table: &Table, map: &Value) -> Result<Outcome> {
    let [huge, heap, stack] = [row(table, "Huge")?, row(table, "Heap")?, row(table, "Stack")?];
    let [rest, all] = [row(table, "Private")?, row(table, "Total")?];
    let mut told = Vec::new();
    for node in [0_usize, 1] {
        let on = |fits: &dyn Fn(&Value) -> bool| sum(map, |row| row["node"] == node && fits(row));
        let is_pool = |row: &Value| row["backing"] == "hugetlb";
        let of = |what: &str| format!("{what} of node {node}");
        // Right: pages from the pool of the default size, the heap of brk(2), the stack, and the sum.
        let (written, pool) = (mib(POOL_WRITTEN[node] * POOL_PAGE), on(&is_pool));
        ensure!(pool == written, "of {written} MiB written to the pool of node {node} map sees {pool}");
        ensure_same(&of("pool"), huge[node], pool)?;
        ensure_same(&of("heap"), heap[node], on(&|row| row["kind"] == "heap"))?;
        ensure_same(&of("stack"), stack[node], on(&|row| row["kind"] == "stack"))?;
        ensure_same(&of("all"), all[node], on(&|_| true))?;
        // Wrong: what others can map is private to it.
        let (own, shared) = (own(map, node), on(&|row| row["kind"] == "shared" && !is_pool(row)));
        let written = mib(SHARED[node]);
        ensure!((shared - written).abs() <= SLACK_MIB, "of {written} MiB shared map sees {shared:.2}");
        let written = mib(PRIVATE[node]);
        ensure!((written..written + 1.0).contains(&own), "of {written} MiB map calls {own:.2} private");
        let theirs = rest[node] + heap[node] + stack[node];
        ensure!(
            theirs >= own + shared - SLACK_MIB,
            "node {node}: numastat calls {theirs:.2} MiB private, where {own:.2} are, and {shared:.2} are shared"
        );
        told.push(format!(
            "node {node}: Huge {:.2}, Heap {:.2}, Stack {:.2} and Total {:.2} MiB are right; Private {:.2} has \
             {shared:.2} that are shared, and {own:.2} are the process's own",
            huge[node], heap[node], stack[node], all[node], rest[node]
        ));
    }
    // Wrong: of transparent huge pages it knows nothing.
    let thp = sum(map, |row| row["backing"] == "thp");
    ensure!(thp >= 8.0, "{thp:.2} MiB on transparent huge pages, of {} written", mib(PRIVATE.iter().sum()));
    let pool = mib(POOL_WRITTEN.iter().sum::<u64>() * POOL_PAGE);
    ensure!((huge[2] - pool).abs() <= SLACK_MIB, "Huge has {:.2} MiB: {pool:.2} + {thp:.2}", huge[2]);
    told.push(format!("Huge is {:.2}, and {thp:.2} MiB more are on transparent huge pages", huge[2]));
    Ok(Outcome::Ok(told.join("; ")))
}

/// Processes that have mapped some of a segment each: one that filled it, one that read it, and one that made it.
fn beside_server(server: &Filled) -> Result<Outcome> {
    let mut session = Session::open()?;
    let reader = session.backend()?;
    session.ask(READ)?;
    let (table, writing) = (numastat(&[server.backend])?, map(server.backend, &[])?);
    let (heap, stack, rest) = (row(&table, "Heap")?, row(&table, "Stack")?, row(&table, "Private")?);
    // Right: the heap, by node, and the sum of what the process has mapped.
    for node in [0_usize, 1] {
        let ours = sum(&writing, |row| row["kind"] == "heap" && row["node"] == node);
        ensure_same(&format!("heap of node {node}"), heap[node], ours)?;
    }
    ensure_same("all of the backend", row(&table, "Total")?[2], mapped_by(&writing))?;
    // Wrong: the buffers are private to it.
    let (own, shared) = (own(&writing, 0) + own(&writing, 1), of_process(&writing, "shared_mapped_bytes"));
    let theirs = heap[2] + stack[2] + rest[2];
    ensure!(shared >= 0.8 * BUFFERS_MIB as f64, "the backend has {shared:.2} MiB of the buffers mapped");
    ensure!(
        theirs >= own + shared - SLACK_MIB,
        "numastat calls {theirs:.2} MiB private, where {own:.2} are, and {shared:.2} are shared"
    );
    // Wrong: of what others have filled nothing is there.
    let made = map(server.postmaster, &[])?;
    let segment = sum(&made, |row| row["kind"] == "shared");
    let of_maker = row(&numastat(&[server.postmaster])?, "Total")?[2];
    ensure!(segment >= 0.9 * BUFFERS_MIB as f64, "of the segment map sees {segment:.2} MiB");
    ensure!(of_maker < segment / 2.0, "numastat sees {of_maker:.2} MiB of the postmaster, map {segment:.2}");
    // Wrong: what two have mapped is there twice.
    let both = row(&numastat(&[server.backend, reader])?, "Total")?[2];
    let twice = shared + of_process(&map(reader, &[])?, "shared_mapped_bytes");
    let once = sum(&map(server.postmaster, &["--tree"])?, |row| row["kind"] == "shared");
    ensure!((once - segment).abs() <= 0.1 * segment, "map {segment:.2} MiB, with --tree {once:.2}");
    ensure!(twice >= 1.7 * once, "both backends have mapped {twice:.2} MiB of {once:.2}");
    ensure!(
        both >= twice,
        "numastat sees {both:.2} MiB of both, of which {twice:.2} are one segment of {once:.2}"
    );
    Ok(Outcome::Ok(format!(
        "the backend's heap {:.2} / {:.2} MiB and its sum are right; Private {:.2} has {shared:.2} of the segment, and \
         {own:.2} are its own; of the postmaster {of_maker:.2}, where the segment has {segment:.2}; of two backends \
         {both:.2}, where {twice:.2} are the segment's {once:.2} counted in each",
        heap[0], heap[1], rest[2]
    )))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn rows_of_its_tables_are_read_and_nothing_else() {
        let one = "
Per-node process memory usage (in MBs) for PID 812 (postgres)
                           Node 0          Node 1           Total
                  --------------- --------------- ---------------
Huge                         0.00           12.00           12.00
Heap                         0.11            1.90            2.01
----------------  --------------- --------------- ---------------
Total                        0.11           13.90           14.01
";
        let table = parse(one);
        assert_eq!(table.keys().collect::<Vec<_>>(), ["Heap", "Huge", "Total"]);
        assert_eq!(table["Heap"], [0.11, 1.90, 2.01]);
        let several = "
Per-node process memory usage (in MBs)
PID                        Node 0          Node 1           Total
                  --------------- --------------- ---------------
812 (postgres)               1.00            2.00            3.00
Total                        1.00            2.00            3.00
";
        assert_eq!(parse(several).keys().collect::<Vec<_>>(), ["812", "Total"]);
    }
}
