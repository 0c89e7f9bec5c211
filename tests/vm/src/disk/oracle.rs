//! What others say of the same machine, beside what planish says of it.

use super::tool;
use crate::check::Outcome;
use crate::planish;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A CPU's core, package and node, in whatever words tell them apart.
type Place = [String; 3];

/// The machine as util-linux reads it, and hwloc where the image has it.
pub fn topology() -> Result<Outcome> {
    let told = planish::json(&["topo"], &[0])?;
    let ours = &told["result"];
    let online = list(ours, "cpus")?.iter().filter(|cpu| cpu["online"] == true);
    // The kernel counts cores through each package, lscpu through the machine.
    let own: BTreeMap<_, _> = online
        .map(|cpu| {
            let [core, package, node] = ["core", "package", "node"].map(|name| word(&cpu[name]));
            (word(&cpu["id"]), [format!("{core} of {package}"), package, node])
        })
        .collect();
    let rows = lscpu(&["--online", "-e=CPU,CORE,SOCKET,NODE"], "cpus")?;
    let theirs: BTreeMap<_, _> = rows
        .iter()
        .map(|row| (word(&row["cpu"]), ["core", "socket", "node"].map(|name| word(&row[name]))))
        .collect();
    ensure!(shared(&own) == shared(&theirs), "planish {own:?}, lscpu {theirs:?}");
    let caches = lscpu(&["--bytes", "--caches"], "caches")?;
    // Not their sum: lscpu tells caches apart by their numbers, which an emulated machine gives each CPU anew. hwloc
    // goes by who shares them.
    for cache in &caches {
        let kind = word(&cache["type"]).to_lowercase();
        let same = |own: &&Value| word(&own["level"]) == word(&cache["level"]) && word(&own["kind"]) == kind;
        let mut own = list(ours, "caches")?.iter().filter(same);
        let one = own.next().with_context(|| format!("planish has no cache as {cache}"))?;
        ensure!(word(&one["bytes"]) == word(&cache["one-size"]), "{cache}: planish has {one}");
    }
    let nodes = list(ours, "nodes")?.len();
    let mut detail = format!("lscpu: {} CPUs, {} kinds of caches", own.len(), caches.len());
    if Path::new("/usr/bin/hwloc-calc").exists() {
        let shared = list(ours, "caches")?.iter().filter(|cache| cache["level"] == 3).count();
        for (object, count) in [("pu", own.len()), ("numanode", nodes), ("l3cache", shared)] {
            let calc = tool("hwloc-calc", &["--disallowed", "--number-of", object, "machine:0"])?;
            ensure!(calc.trim() == count.to_string(), "hwloc: {} {object}, planish {count}", calc.trim());
        }
        detail += &format!("; hwloc: {nodes} nodes, {shared} caches of level 3");
    }
    Ok(Outcome::Ok(detail))
}

/// Of every two CPUs, whether they share a core, a package and a node.
fn shared(cpus: &BTreeMap<String, Place>) -> BTreeMap<(&String, &String), [bool; 3]> {
    let pairs = cpus.iter().flat_map(|one| cpus.iter().map(move |other| (one, other)));
    pairs.map(|(one, other)| ((one.0, other.0), [0, 1, 2].map(|at| one.1[at] == other.1[at]))).collect()
}

/// A number or a word, as text.
fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a Vec<Value>> {
    value[name].as_array().with_context(|| format!("no {name}: {value}"))
}

fn lscpu(args: &[&str], name: &str) -> Result<Vec<Value>> {
    let args: Vec<&str> = ["--json"].into_iter().chain(args.iter().copied()).collect();
    let told: Value = serde_json::from_str(&tool("lscpu", &args)?).context("JSON of lscpu")?;
    Ok(list(&told, name)?.clone())
}
