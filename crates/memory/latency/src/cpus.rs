//! Which CPUs can be measured.

use planish_sys::{CpuSet, affinity};
use planish_topo::Topology;

use crate::error::LatencyError;

/// The CPUs that were named, or without a list those that this process runs on; each is tried.
///
/// A CPU that `isolcpus` keeps free of ordinary tasks is in nobody's affinity, and may be asked for all the same: what
/// forbids a CPU is a cpuset. So a thread tries each, and the kernel says.
///
/// # Errors
/// The list names CPUs that are not there, offline or forbidden; or none.
pub fn choose_cpus(named: Option<&CpuSet>, topology: &Topology) -> Result<Vec<u32>, LatencyError> {
    let online = topology.online();
    let Some(named) = named else {
        let cpus: Vec<u32> = topology.allowed().iter().collect();
        return if cpus.is_empty() { Err(LatencyError::NoCpu) } else { Ok(cpus) };
    };
    if named.is_empty() {
        return Err(LatencyError::NoCpu);
    }
    let present: CpuSet = topology.cpus.iter().map(|cpu| cpu.id).collect();
    let cpus = named.difference(&present);
    if !cpus.is_empty() {
        return Err(LatencyError::NoSuchCpu { cpus, present });
    }
    let cpus = named.difference(&online);
    if !cpus.is_empty() {
        return Err(LatencyError::Offline { cpus, online });
    }
    let allowed = affinity::allowed().map_err(LatencyError::Asked)?;
    let cpus = named.difference(&allowed);
    if !cpus.is_empty() {
        return Err(LatencyError::Forbidden { cpus, allowed });
    }
    Ok(named.iter().collect())
}

#[cfg(test)]
mod tests {
    use planish_host::Host;

    use super::*;

    fn list(text: &str) -> CpuSet {
        CpuSet::parse_list(text).expect("a list")
    }

    #[test]
    fn what_cannot_be_measured_is_named_with_a_cure() {
        let mut topology = Topology::read(&Host::live());
        let allowed: CpuSet = choose_cpus(None, &topology).expect("we run somewhere").into_iter().collect();
        assert_eq!(
            choose_cpus(Some(&allowed), &topology).expect("the same"),
            allowed.iter().collect::<Vec<_>>()
        );
        let error = choose_cpus(Some(&list("4000")), &topology).expect_err("no machine has so many");
        assert!(error.is_usage() && error.to_string().contains("4000"), "{error}");
        assert!(choose_cpus(Some(&CpuSet::new()), &topology).expect_err("none").is_usage());

        let first = topology.cpus[0].id;
        topology.cpus[0].online = false;
        let error = choose_cpus(Some(&list(&first.to_string())), &topology).expect_err("it is offline");
        assert!(matches!(error, LatencyError::Offline { .. }) && !error.is_usage(), "{error}");
        assert!(!error.cure().is_empty());
    }

    #[test]
    fn a_cpu_that_the_kernel_does_not_have_is_forbidden_and_not_measured() {
        let mut topology = Topology::read(&Host::live());
        // As a set of CPUs looks that is smaller than the machine: sysfs shows a CPU that the kernel does not give.
        let mut other = topology.cpus[0].clone();
        other.id = 3000;
        topology.cpus.push(other);
        let error = choose_cpus(Some(&list("3000")), &topology).expect_err("the kernel refuses");
        assert!(matches!(error, LatencyError::Forbidden { .. }), "{error:?}");
    }
}
