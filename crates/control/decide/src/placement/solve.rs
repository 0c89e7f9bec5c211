//! From a machine and a request to sets of CPUs and a place for each interrupt. Pure, and without a choice that the
//! same input would not make again.
//!
//! ```text
//!   core of CPU 0, and the first cores of each node with a service ── housekeeping
//!   cores that a service names, then those that it counts, then all that is left of its node ── service
//!   everything that nobody asked for ── housekeeping
//! ```
//!
//! Invariants: each CPU that is online is in exactly one set, but for those that somebody else has to himself, which
//! are in none; the threads of a core are in the same one; housekeeping holds the CPU that boots.

use planish_model::{
    Cpus, FarDevice, Machine, MemoryPolicy, PlacedService, Placement, PlacementRequest, ServiceRequest,
    nearest,
};

use super::error::PlacementError;
use super::held::Held;
use super::irqs;

/// Who keeps house, in errors.
const HOUSEKEEPING: &str = "housekeeping";

/// A core: what is never split.
#[derive(Clone, Debug)]
struct Core {
    cpus: Cpus,
    node: u32,
}

/// The sets and interrupts of a request on a machine.
pub(crate) fn solve(
    machine: &Machine,
    request: &PlacementRequest,
    held: &Held,
) -> Result<Placement, PlacementError> {
    if request.service.is_empty() {
        return Err(PlacementError::NoService);
    }
    let (online, cores) = (machine.online(), cores(machine));
    let Some(boot_cpu) = online.first() else { return Err(PlacementError::Unseen) };
    if online.count() <= 2 || cores.len() < 2 {
        return Err(PlacementError::TooSmall { cpus: online.count(), cores: cores.len() });
    }
    refuse_unknown(machine, request, &cores)?;
    let given = vec![Cpus::default(); request.service.len()];
    let mut shares = Shares { machine, request, cores, held, given };
    shares.give_named(boot_cpu)?;
    let kept = shares.keep(boot_cpu);
    shares.give_counted(&kept)?;
    shares.give_rest(&kept)?;
    let services: Vec<PlacedService> = request
        .service
        .iter()
        .zip(&shares.given)
        .map(|(service, cpus)| placed(machine, service, cpus))
        .collect();
    let all = Cpus::of_all(services.iter().map(|service| &service.cpus));
    let said = request.housekeeping.clone().unwrap_or_default();
    let housekeeping =
        online.without(&all).without(&held.apart()).union(&said).union(&Cpus::from_iter([boot_cpu]));
    refuse_memory(machine, request, &services)?;
    let placement =
        Placement { housekeeping, services, interrupts: Vec::new(), partition: None, cache: Vec::new() };
    let interrupts = irqs::interrupts(machine, request, &placement)?;
    Ok(Placement { interrupts, ..placement })
}

/// The cores that are online, by their first CPU. One without a node is on the only one.
fn cores(machine: &Machine) -> Vec<Core> {
    let online = machine.online();
    let (mut cores, mut others) = (Vec::new(), Cpus::default());
    for cpu in machine.cpus.iter().filter(|cpu| cpu.online) {
        if others.contains(cpu.id) {
            continue;
        }
        let own = Cpus::from_iter([cpu.id]);
        let cpus = cpu.threads.intersection(&online).without(&others).union(&own);
        others.add(&cpus);
        cores.push(Core { cpus, node: cpu.node.unwrap_or(0) });
    }
    cores
}

/// Refuses nodes, CPUs and devices that are not there, and cores that would be split.
fn refuse_unknown(
    machine: &Machine,
    request: &PlacementRequest,
    cores: &[Core],
) -> Result<(), PlacementError> {
    if let Some(cpus) = &request.housekeeping {
        refuse_cpus(machine, HOUSEKEEPING, cpus, cores)?;
    }
    for service in &request.service {
        let unit = service.unit.clone();
        if let Some(cpus) = &service.cpus {
            refuse_cpus(machine, &unit, cpus, cores)?;
        }
        if let Some(node) = service.node.filter(|node| !cores.iter().any(|core| core.node == *node)) {
            let nodes = cores.iter().map(|core| core.node).collect();
            return Err(match machine.node(node) {
                Some(_) => PlacementError::MemoryOnly { unit, node },
                None => PlacementError::NoNode { unit, node, nodes },
            });
        }
        let names = || machine.devices.iter().map(|device| device.name.as_str());
        if let Some(device) = service.devices.iter().find(|device| !names().any(|name| name == *device)) {
            let nearest = nearest(device, names()).map(str::to_owned);
            return Err(PlacementError::NoDevice { unit, device: device.clone(), nearest });
        }
    }
    Ok(())
}

fn refuse_cpus(machine: &Machine, who: &str, cpus: &Cpus, cores: &[Core]) -> Result<(), PlacementError> {
    let who = who.to_owned();
    let missing: Cpus = cpus.iter().filter(|cpu| machine.cpu(*cpu).is_none()).collect();
    if !missing.is_empty() {
        return Err(PlacementError::NoCpu { who, cpus: missing });
    }
    let offline = cpus.without(&machine.online());
    if !offline.is_empty() {
        return Err(PlacementError::Offline { who, cpus: offline });
    }
    for core in cores {
        let (taken, siblings) = (core.cpus.intersection(cpus), core.cpus.without(cpus));
        if !taken.is_empty() && !siblings.is_empty() {
            return Err(PlacementError::SplitCore { who, cpus: taken, siblings });
        }
    }
    Ok(())
}

/// Cores that are being shared out.
struct Shares<'a> {
    machine: &'a Machine,
    request: &'a PlacementRequest,
    cores: Vec<Core>,
    /// What somebody else has.
    held: &'a Held,
    /// What each service has got, in the order of the request.
    given: Vec<Cpus>,
}

impl Shares<'_> {
    /// Gives the CPUs that are named.
    fn give_named(&mut self, boot_cpu: u32) -> Result<(), PlacementError> {
        let boots = |who: &str| PlacementError::BootCpu { who: who.to_owned(), cpu: boot_cpu };
        if self.request.housekeeping.as_ref().is_some_and(|kept| !kept.contains(boot_cpu)) {
            return Err(boots(HOUSEKEEPING));
        }
        if let Some(kept) = &self.request.housekeeping {
            self.held.refuse_house(HOUSEKEEPING, kept)?;
        }
        for (index, service) in self.request.service.iter().enumerate() {
            let Some(cpus) = &service.cpus else { continue };
            if cpus.contains(boot_cpu) {
                return Err(boots(&service.unit));
            }
            let kept = self.request.housekeeping.iter().map(|kept| (HOUSEKEEPING, kept));
            let others = self.request.service.iter().zip(&self.given);
            let others = others.map(|(other, given)| (other.unit.as_str(), given)).chain(kept);
            for (other, theirs) in others {
                let both = cpus.intersection(theirs);
                if !both.is_empty() {
                    let (a, b) = (service.unit.clone(), other.to_owned());
                    return Err(PlacementError::Overlap { a, b, cpus: both });
                }
            }
            self.held.refuse(&service.unit, cpus, service.isolate)?;
            self.given[index] = cpus.clone();
        }
        Ok(())
    }

    /// The CPUs that keep house whatever is left: those that are named, or the core that boots and the first cores of
    /// each node on which a service runs.
    fn keep(&self, boot_cpu: u32) -> Cpus {
        if let Some(kept) = &self.request.housekeeping {
            return kept.clone();
        }
        let mut kept = Cpus::default();
        let boots = |core: &&Core| core.cpus.contains(boot_cpu);
        if let Some(core) = self.cores.iter().find(boots) {
            kept.add(&core.cpus);
        }
        let count = self.request.housekeeping_cores.unwrap_or(1) as usize;
        let mut nodes: Vec<u32> = self.cores.iter().map(|core| core.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes.into_iter().filter(|node| self.has_service(*node)) {
            let named = self.taken().union(&self.held.apart());
            let free = self
                .cores
                .iter()
                .filter(|core| core.node == node && core.cpus.intersection(&named).is_empty());
            let first = Cpus::of_all(free.take(count).map(|core| &core.cpus));
            kept.add(&first);
        }
        kept
    }

    /// Whether a service is to run on a node.
    fn has_service(&self, node: u32) -> bool {
        self.request.service.iter().any(|service| match &service.cpus {
            Some(cpus) => nodes_of(self.machine, cpus).contains(&node),
            None => service.node == Some(node),
        })
    }

    /// CPUs that services have already.
    fn taken(&self) -> Cpus {
        Cpus::of_all(&self.given)
    }

    /// Cores of a node that nobody has, or that a service may have beside others.
    fn free(&self, node: u32, kept: &Cpus, service: &ServiceRequest) -> Vec<Cpus> {
        let gone = self.taken().union(kept).union(&self.held.from(service.isolate));
        let own = self.cores.iter().filter(|core| core.node == node);
        own.map(|core| core.cpus.clone()).filter(|cpus| cpus.intersection(&gone).is_empty()).collect()
    }

    /// That too few cores are left, and who else has some of that node.
    fn refuse_few(&self, service: &ServiceRequest, node: u32, left: usize) -> Result<(), PlacementError> {
        let (unit, asked) = (service.unit.clone(), service.cores.map(|asked| asked as usize));
        let own = self.cores.iter().filter(|core| core.node == node);
        let own = Cpus::of_all(own.map(|core| &core.cpus)).without(&self.taken());
        self.held.refuse(&unit, &own, service.isolate)?;
        Err(PlacementError::NoCores { unit, node, asked, left })
    }

    /// Gives services as many cores as they count.
    fn give_counted(&mut self, kept: &Cpus) -> Result<(), PlacementError> {
        for (index, service) in self.request.service.iter().enumerate() {
            let (Some(node), Some(asked)) = (service.node, service.cores) else { continue };
            let (free, asked) = (self.free(node, kept, service), asked as usize);
            if free.len() < asked {
                self.refuse_few(service, node, free.len())?;
            }
            self.given[index] = Cpus::of_all(free.iter().take(asked));
        }
        Ok(())
    }

    /// Gives the rest of a node to the one service that does not count.
    fn give_rest(&mut self, kept: &Cpus) -> Result<(), PlacementError> {
        let rest = |service: &ServiceRequest| service.cpus.is_none() && service.cores.is_none();
        for (index, service) in self.request.service.iter().enumerate() {
            let Some(node) = service.node.filter(|_| rest(service)) else { continue };
            let mut earlier = self.request.service[..index].iter().filter(|other| rest(other));
            if let Some(other) = earlier.find(|other| other.node == Some(node)) {
                let (a, b) = (other.unit.clone(), service.unit.clone());
                return Err(PlacementError::Ambiguous { a, b, node });
            }
            let free = self.free(node, kept, service);
            if free.is_empty() {
                self.refuse_few(service, node, 0)?;
            }
            self.given[index] = Cpus::of_all(&free);
        }
        Ok(())
    }
}

/// The nodes of some CPUs, by number.
pub(super) fn nodes_of(machine: &Machine, cpus: &Cpus) -> Vec<u32> {
    let mut nodes: Vec<u32> =
        cpus.iter().filter_map(|cpu| machine.cpu(cpu)).map(|cpu| cpu.node.unwrap_or(0)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

fn placed(machine: &Machine, service: &ServiceRequest, cpus: &Cpus) -> PlacedService {
    let nodes = nodes_of(machine, cpus);
    let far = |name: &String| {
        let device = machine.devices.iter().find(|device| device.name == *name)?;
        let is_near = match device.node {
            Some(node) => nodes.contains(&node),
            None => machine.nodes.len() < 2,
        };
        (!is_near).then(|| FarDevice { name: name.clone(), node: device.node })
    };
    let far = service.devices.iter().filter_map(far).collect();
    let (unit, cpus, memory, isolated) =
        (service.unit.clone(), cpus.clone(), service.memory, service.isolate);
    PlacedService { unit, cpus, nodes, memory, isolated, far }
}

/// Refuses memory that its nodes cannot give.
fn refuse_memory(
    machine: &Machine,
    request: &PlacementRequest,
    services: &[PlacedService],
) -> Result<(), PlacementError> {
    for (asked, placed) in request.service.iter().zip(services) {
        let unit = || placed.unit.clone();
        let several = placed.nodes.len() > 1;
        if several && !asked.pools.is_empty() {
            return Err(PlacementError::SeveralNodes { unit: unit(), what: "a pool" });
        }
        if several && asked.memory == MemoryPolicy::Preferred {
            return Err(PlacementError::SeveralNodes { unit: unit(), what: "memory = \"preferred\"" });
        }
        let bare = |node: &&u32| machine.node(**node).is_none_or(|node| node.memory_bytes == 0);
        let bound = asked.memory == MemoryPolicy::Bind || !asked.pools.is_empty();
        if let Some(node) = placed.nodes.iter().find(bare).filter(|_| bound) {
            return Err(PlacementError::NoMemory { unit: unit(), node: *node });
        }
    }
    for node in &machine.nodes {
        let own = request.service.iter().zip(services).filter(|(_, placed)| placed.nodes == [node.id]);
        let pools = own.flat_map(|(asked, _)| asked.pools.values());
        let asked = pools.fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        if asked > node.memory_bytes {
            return Err(PlacementError::Pool { node: node.id, asked, memory: node.memory_bytes });
        }
    }
    Ok(())
}
