//! What the whole catalogue costs: to look at this host and at a large one, to plan, to apply and to check; beside
//! what others take to show or verify a part of it.

use crate::process::{megabytes, milliseconds};
use crate::recorded::Copied;
use crate::row::{Figure, Limit, Rows};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// Two sockets, 256 threads, six nodes.
const LARGE: &str = "hosts/metal-256c";
/// A two-socket server that answers writes as its kernel would.
const WRITABLE: &str = "hosts/metal-2s";
/// How many knobs the profile has that is applied.
const KNOBS: usize = 60;
/// Those that the recorded server has, some of them at several places. No pool: what pages cost to move is the
/// kernel's time and not ours.
const FOUND: &[(&str, &str)] = &[
    ("block.max_sectors_kb", "2048"),
    ("block.nomerges", "2"),
    ("block.nr_requests", "128"),
    ("block.read_ahead_kb", "64"),
    ("block.rq_affinity", "2"),
    ("block.wbt_lat_us", "0"),
    ("cpu.governor", "\"performance\""),
    ("cpu.hwp_dynamic_boost", "1"),
    ("cpu.min_freq_khz", "1000000"),
    ("cpu.min_perf_pct", "50"),
    ("cpu.resume_latency_us", "20"),
    ("kernel.numa_balancing", "0"),
    ("kernel.timer_migration", "0"),
    ("thp.defrag", "\"never\""),
    ("thp.enabled", "\"never\""),
    ("thp.khugepaged.alloc_sleep_ms", "50000"),
    ("thp.khugepaged.defrag", "0"),
    ("thp.khugepaged.max_ptes_none", "64"),
    ("thp.khugepaged.max_ptes_shared", "128"),
    ("thp.khugepaged.max_ptes_swap", "32"),
    ("thp.khugepaged.pages_to_scan", "8192"),
    ("thp.khugepaged.scan_sleep_ms", "20000"),
    ("thp.shmem_enabled", "\"advise\""),
    ("vm.compaction_proactiveness", "0"),
    ("vm.dirty_background_bytes", "67108864"),
    ("vm.dirty_bytes", "268435456"),
    ("vm.dirty_expire_centisecs", "500"),
    ("vm.max_map_count", "262144"),
    ("vm.stat_interval", "13"),
    ("vm.vfs_cache_pressure", "50"),
    ("vm.watermark_scale_factor", "50"),
    ("vm.zone_reclaim_mode", "1"),
];
/// Those that every server has and the record leaves out, as it is small: knob, wanted, and what its file in the copy
/// is given first. Each is the sysctl of its name.
const ADDED: &[(&str, &str, &str)] = &[
    ("fs.aio-max-nr", "1048576", "65536"),
    ("fs.file-max", "2097152", "1048576"),
    ("kernel.pid_max", "4194304", "32768"),
    ("kernel.threads-max", "512000", "256000"),
    ("net.core.busy_poll", "50", "0"),
    ("net.core.busy_read", "50", "0"),
    ("net.core.netdev_budget", "600", "300"),
    ("net.core.netdev_max_backlog", "10000", "1000"),
    ("net.core.optmem_max", "131072", "20480"),
    ("net.core.rmem_default", "262144", "212992"),
    ("net.core.rmem_max", "16777216", "212992"),
    ("net.core.somaxconn", "8192", "4096"),
    ("net.core.wmem_default", "262144", "212992"),
    ("net.core.wmem_max", "16777216", "212992"),
    ("net.ipv4.ip_local_port_range", "\"9000 65500\"", "32768\t60999"),
    ("net.ipv4.tcp_fastopen", "3", "1"),
    ("net.ipv4.tcp_fin_timeout", "30", "60"),
    ("net.ipv4.tcp_keepalive_intvl", "15", "75"),
    ("net.ipv4.tcp_keepalive_time", "300", "7200"),
    ("net.ipv4.tcp_max_syn_backlog", "8192", "2048"),
    ("net.ipv4.tcp_mtu_probing", "1", "0"),
    ("net.ipv4.tcp_no_metrics_save", "1", "0"),
    ("net.ipv4.tcp_notsent_lowat", "131072", "4294967295"),
    ("net.ipv4.tcp_retries2", "8", "15"),
    ("net.ipv4.tcp_rmem", "\"4096 131072 16777216\"", "4096\t131072\t6291456"),
    ("net.ipv4.tcp_slow_start_after_idle", "0", "1"),
    ("net.ipv4.tcp_tw_reuse", "1", "2"),
    ("net.ipv4.tcp_wmem", "\"4096 65536 16777216\"", "4096\t16384\t4194304"),
];

/// Doctor and check have found something, which is no failure.
const FOUND_SOMETHING: &[i32] = &[0, 1];
/// Runs of what takes tens of milliseconds.
const RUNS: usize = 120;

/// Measures every row.
pub fn measure(planish: &Path, rows: &mut Rows) -> Result<()> {
    let quietly = || Ok(());
    let on = |root: &'static str, args: &[&str]| {
        let mut command = Command::new(planish);
        command.args(args);
        if !root.is_empty() {
            command.args(["--root", root]);
        }
        command
    };
    let at_most = |limit| (Limit::AtMost, limit);
    let timed = |exits, root, args: &[&str]| milliseconds(RUNS, exits, quietly, || on(root, args));
    rows.add("doctor, this host", "ms", at_most(50.0), || timed(FOUND_SOMETHING, "", &["doctor"]));
    let large = Copied::of(LARGE, planish).and_then(|copied| copied.with_all_files(WRITABLE));
    let large = || large.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"));
    rows.add("doctor, 256 CPUs", "ms", at_most(200.0), || {
        let large = large()?;
        milliseconds(RUNS, FOUND_SOMETHING, quietly, || large.command(&["doctor"]))
    });
    rows.add("plan, this host", "ms", at_most(20.0), || timed(&[0], "", &["plan", "low-latency"]));
    rows.add("plan with settings of units, this host", "ms", at_most(20.0), || {
        timed(&[0], "", &["plan", "redis"])
    });
    let copied = copied(planish);
    let copied = || copied.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"));
    rows.add(&format!("plan of {KNOBS} knobs"), "ms", at_most(20.0), || {
        let copied = copied()?;
        milliseconds(RUNS, &[0], quietly, || copied.command(&["plan", "bench"]))
    });
    rows.add(&format!("apply and check of {KNOBS} knobs"), "ms", at_most(300.0), || {
        apply_and_check(copied()?)
    });
    rows.add("memory of doctor, this host", "MB", at_most(20.0), || {
        megabytes(5, FOUND_SOMETHING, || on("", &["doctor"]))
    });
    rows.add("memory of doctor, 256 CPUs", "MB", at_most(20.0), || {
        let large = large()?;
        megabytes(5, FOUND_SOMETHING, || large.command(&["doctor"]))
    });
    rows.add(&format!("memory of apply of {KNOBS} knobs"), "MB", at_most(20.0), || {
        let copied = copied()?;
        copied.output(&["undo", "--all"])?;
        megabytes(1, &[0], || copied.command(&["apply", "bench", "--yes"]))
    });
    beside(rows);
    Ok(())
}

/// The profile on a copy of the writable host, once it is certain that it has a step for each knob.
fn copied(planish: &Path) -> Result<Copied> {
    let mut wanted = FOUND.to_vec();
    wanted.extend(ADDED.iter().map(|(knob, value, _)| (*knob, *value)));
    let files =
        ADDED.iter().map(|(knob, _, before)| (format!("proc/sys/{}", knob.replace('.', "/")), *before));
    let copied = Copied::of(WRITABLE, planish)?.with_profile("bench", &wanted)?.with_files(files)?;
    let plan = copied.output(&["plan", "bench", "--json"])?.stdout;
    let plan: serde_json::Value = serde_json::from_slice(&plan).context("JSON of planish plan")?;
    let steps = plan["result"]["steps"].as_array().context("no result.steps")?;
    let planned: BTreeSet<&str> = steps.iter().filter_map(|step| step["knob"].as_str()).collect();
    let missing: Vec<&str> =
        wanted.iter().map(|(knob, _)| *knob).filter(|knob| !planned.contains(knob)).collect();
    ensure!(
        planned.len() == KNOBS,
        "{} knobs have a step; without one: {}",
        planned.len(),
        missing.join(", ")
    );
    Ok(copied)
}

/// Both commands one after the other, the undo before them untimed. Apply reads every value back itself; check is a
/// fresh process that believes nothing of what apply said.
fn apply_and_check(copied: &Copied) -> Result<Figure> {
    let applied = copied.apply_ms("bench", RUNS)?;
    // The last apply is still in force.
    let checked = milliseconds(RUNS, &[0], || Ok(()), || copied.command(&["check", "bench"]))?;
    let sum = |of: fn(&Figure) -> f64| of(&applied) + of(&checked);
    Ok(Figure { value: sum(|f| f.value), low: sum(|f| f.low), high: sum(|f| f.high) })
}

/// Says of a program that cannot be started that it is missing.
fn installed(program: &str) -> Result<()> {
    let mut asked = Command::new(program);
    asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    ensure!(asked.status().is_ok(), "{program} is not installed here");
    Ok(())
}

/// What others take in the same run for a part of it.
fn beside(rows: &mut Rows) {
    let timed = |program: &str, args: &[&str], exits: &[i32]| {
        installed(program)?;
        milliseconds(
            RUNS,
            exits,
            || Ok(()),
            || {
                let mut command = Command::new(program);
                command.args(args);
                command
            },
        )
    };
    // It ends with 255 where one of its files cannot be read, and has read the others.
    rows.beside("sysctl -a", "ms", || timed("sysctl", &["-a"], &[0, 255]));
    rows.beside("lstopo", "ms", || timed("lstopo", &["--of", "console"], &[0]));
    rows.beside("tuned-adm verify", "ms", || {
        // Without its daemon it verifies nothing, and the time of that refusal would be a figure of nothing.
        installed("tuned-adm")?;
        ensure!(
            Path::new("/run/tuned/tuned.pid").exists(),
            "tuned does not run here: sudo benches/beside-tuned.sh ./x bench host"
        );
        timed("tuned-adm", &["verify"], FOUND_SOMETHING)
    });
}

#[cfg(test)]
mod tests {
    use super::{ADDED, FOUND, KNOBS};
    use std::collections::BTreeSet;

    #[test]
    fn the_profile_has_so_many_knobs_each_once() {
        let knobs: BTreeSet<&str> =
            FOUND.iter().map(|(knob, _)| *knob).chain(ADDED.iter().map(|(knob, ..)| *knob)).collect();
        assert_eq!((knobs.len(), FOUND.len() + ADDED.len()), (KNOBS, KNOBS));
    }
}
