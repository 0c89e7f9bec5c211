//! Both arms of a pair at the same time, each on its own half of the CPUs.
//!
//! What disturbs the machine then disturbs both: a neighbour, a clock that falls, a spike of the hypervisor is in both
//! values and leaves their ratio (Bulej et al., ICPE 2020: the same accuracy from a fifth of the measurements for
//! managed workloads, from less than a twentieth for SPEC CPU 2017). The coin that orders a pair deals the halves, so
//! that one that is faster favours no arm.
//!
//! Only what belongs to a process can be told apart so: two arms cannot set one host to two values.

use std::panic::resume_unwind;
use std::thread;
use std::time::Instant;

use planish_host::Host;
use planish_sys::{CpuSet, affinity};
use planish_topo::{Cpu, Topology};

use crate::adapter::AdapterKind;
use crate::error::TrialError;
use crate::file::{ArmSpec, TrialFile};
use crate::sample::{ArmError, Sample};

/// Environment variable that tells a program which of the two it is, `0` or `1`: for ports and files of its own.
pub(crate) const SIDE: &str = "PLANISH_DUET_SIDE";

/// Why the arms of a trial cannot run side by side, if they cannot.
pub(crate) fn objection(trial: &TrialFile) -> Option<String> {
    if trial.service.is_some() {
        return Some("two servers at once would want one address: a duet has no [service]".to_owned());
    }
    if !matches!(trial.workload.adapter, AdapterKind::Command | AdapterKind::Number) {
        return Some(
            "only programs that run to their end can run side by side: adapter `command` or `number`"
                .to_owned(),
        );
    }
    [&trial.baseline].into_iter().chain(&trial.rung).find_map(|arm| {
        let what = host_wide(arm)?;
        Some(format!("arm `{}` {what}: a duet is for what belongs to a process alone", arm.name()))
    })
}

/// What of an arm another one beside it would feel, or a half of the CPUs contradicts.
fn host_wide(arm: &ArmSpec) -> Option<&'static str> {
    if arm.touches_host() {
        return Some("sets the host for both");
    }
    if arm.cpus.is_some() {
        return Some("has CPUs of its own, which the coin deals");
    }
    arm.node.map(|_| "has a node of its own, which may be far from the CPUs that the coin deals")
}

/// The two halves of the CPUs that we may use.
///
/// # Errors
/// There is only one.
pub(crate) fn sides() -> Result<[CpuSet; 2], TrialError> {
    let ours = affinity::get(None).unwrap_or_default();
    halves(&Topology::read(&Host::live()).cpus, &ours).ok_or_else(|| TrialError::Refused {
        what: "a duet needs two CPUs".to_owned(),
        cure: "allow planish more CPUs, or run the pairs one after the other".to_owned(),
    })
}

/// As many whole cores to each side, those that lie near each other to the same one; the threads of a single core where
/// there is no other. What does not go up is left idle.
fn halves(cpus: &[Cpu], ours: &CpuSet) -> Option<[CpuSet; 2]> {
    let mut cores: Vec<(Option<u32>, Vec<u32>)> = Vec::new();
    for cpu in cpus.iter().filter(|cpu| cpu.online && ours.contains(cpu.id)) {
        let core = cores.iter_mut().find(|(_, threads)| cpu.threads.contains(threads[0]));
        match core {
            Some((_, threads)) => threads.push(cpu.id),
            None => cores.push((cpu.node, vec![cpu.id])),
        }
    }
    if let [(node, threads)] = &cores[..] {
        cores = threads.iter().map(|&thread| (*node, vec![thread])).collect();
    }
    cores.sort();
    let each = cores.len() / 2;
    let side =
        |cores: &[(Option<u32>, Vec<u32>)]| cores.iter().flat_map(|(_, threads)| threads.clone()).collect();
    (each > 0).then(|| [side(&cores[..each]), side(&cores[cores.len() - each..])])
}

/// Runs both units at the same time.
///
/// Each runs on a thread of its own, which starts its program and outlives it: the program dies with that thread, and
/// so with planish.
pub(crate) fn side_by_side(
    units: [impl FnOnce() -> Result<Sample, ArmError> + Send; 2],
) -> [Result<Sample, ArmError>; 2] {
    let [one, other] = thread::scope(|scope| {
        let threads = units.map(|unit| {
            scope.spawn(move || {
                let begun = Instant::now();
                (unit(), (begun, Instant::now()))
            })
        });
        threads.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    let share = overlap(one.1, other.1);
    [one.0, other.0].map(|sample| {
        let mut sample = sample?;
        sample.collect("duet_overlap_share", "share", Ok(share));
        Ok(sample)
    })
}

/// From when to when one of the two ran.
type Span = (Instant, Instant);

/// For which share of the longer one they ran at the same time: after the shorter one has ended, the other has the
/// machine for itself.
fn overlap((begun, ended): Span, (other_begun, other_ended): Span) -> f64 {
    let both = ended.min(other_ended).saturating_duration_since(begun.max(other_begun));
    let longest = (ended - begun).max(other_ended - other_begun);
    both.as_secs_f64() / longest.as_secs_f64().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn cpu(id: u32, node: u32, threads: &[u32]) -> Cpu {
        Cpu {
            id,
            core: None,
            package: None,
            die: None,
            cluster: None,
            node: Some(node),
            online: true,
            allowed: true,
            threads: threads.iter().copied().collect(),
        }
    }

    fn split(cpus: &[Cpu], ours: &str) -> Option<[String; 2]> {
        let halves = halves(cpus, &ours.parse().expect("a list"))?;
        Some(halves.map(|side| side.to_string()))
    }

    #[test]
    fn sides_are_whole_cores_that_lie_together() {
        let smt: Vec<Cpu> = (0..8).map(|id| cpu(id, (id % 4) / 2, &[id % 4, id % 4 + 4])).collect();
        assert_eq!(split(&smt, "0-7"), Some(["0-1,4-5", "2-3,6-7"].map(str::to_owned)));
        // An odd core stays idle.
        assert_eq!(split(&smt, "0-2,4-6"), Some(["0,4", "2,6"].map(str::to_owned)));
        assert_eq!(
            split(&smt, "1,5"),
            Some(["1", "5"].map(str::to_owned)),
            "threads, where there is one core"
        );
        assert_eq!(split(&smt, "3"), None);
        let two = [cpu(0, 0, &[0]), cpu(1, 0, &[1])];
        assert_eq!(split(&two, "0-1"), Some(["0", "1"].map(str::to_owned)));
    }

    #[test]
    fn both_run_at_once_and_tell_for_how_long() {
        let unit = |milliseconds: u64| {
            move || {
                thread::sleep(Duration::from_millis(milliseconds));
                Ok(Sample::default())
            }
        };
        let begun = Instant::now();
        let samples = side_by_side([unit(200), unit(100)]);
        assert!(begun.elapsed() < Duration::from_millis(290), "not one after the other");
        for sample in samples {
            let share = sample.expect("it ran").collectors["duet_overlap_share"].value.clone().expect("told");
            assert!((0.3..0.8).contains(&share), "half of the longer one: {share}");
        }
        let failing = || Err(ArmError::Stopped);
        assert_eq!(side_by_side([failing, failing]), [Err(ArmError::Stopped), Err(ArmError::Stopped)]);
    }

    #[test]
    fn what_the_other_arm_would_feel_is_refused_by_name() {
        let file = |rung: &str, head: &str, workload: &str| {
            let text = format!(
                "name = \"t\"\nsummary = \"s\"\n{head}[workload]\n{workload}\n[[rung]]\nname = \"a\"\n{rung}\n"
            );
            TrialFile::parse("t.toml", &text)
        };
        let command = "adapter = \"command\"\ncommand = [\"true\"]";
        let refused = |rung: &str| objection(&file(rung, "", command).expect("a good file"));
        assert_eq!(refused("env = { A = \"1\" }\nprogram = \"a\"\nargs = [\"b\"]"), None);
        assert!(
            refused("want = { \"vm.swappiness\" = 1 }").expect("host-wide").contains("arm `a` sets the host")
        );
        assert!(refused("cpus = \"0\"").is_some() && refused("node = 0").is_some());
        let wrong = file("cpus = \"0\"", "duet = true\n", command).expect_err("refused").to_string();
        assert!(wrong.starts_with("t.toml:3:8: arm `a` has CPUs of its own"), "{wrong}");
        let pgbench = "adapter = \"pgbench\"\ncommand = [\"pgbench\"]";
        assert!(file("", "duet = true\n", pgbench).is_err());
        let server = format!("{command}\n[service]\ncommand = [\"server\"]");
        assert!(file("", "duet = true\n", &server).expect_err("refused").to_string().contains("[service]"));
    }
}
