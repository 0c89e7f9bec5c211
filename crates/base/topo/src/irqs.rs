//! Interrupts: where each may be delivered, and for whom.

use planish_sys::CpuSet;
use serde::Serialize;

use crate::reader::{Reader, as_list};

/// An interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Irq {
    /// Its number.
    pub id: u32,
    /// Who asked for it (`nvme0q1`, `eth0-TxRx-3`); empty while nobody has.
    pub users: Vec<String>,
    /// The CPUs to which it may be delivered.
    #[serde(serialize_with = "as_list")]
    pub cpus: CpuSet,
    /// The CPUs to which it is delivered, where the kernel tells.
    #[serde(serialize_with = "as_list")]
    pub effective: CpuSet,
    /// NUMA node of its device.
    pub node: Option<u32>,
    /// Whether the kernel places it and refuses others with EIO. Told in debugfs alone, which few may read.
    pub managed: Option<bool>,
}

/// All interrupts that have a folder in /proc/irq, by number.
pub(crate) fn read(reader: &mut Reader) -> Vec<Irq> {
    reader.numbered("/proc/irq", "").into_iter().map(|id| read_irq(reader, id)).collect()
}

fn read_irq(reader: &mut Reader, id: u32) -> Irq {
    let folder = format!("/proc/irq/{id}");
    let cpus = reader.list_or_mask(&format!("{folder}/smp_affinity_list"), &format!("{folder}/smp_affinity"));
    let effective = reader.list(&format!("{folder}/effective_affinity_list"));
    let node = reader.number(&format!("{folder}/node"));
    let actions = reader.text(&format!("/sys/kernel/irq/{id}/actions")).unwrap_or_default();
    let users = actions.split(',').map(str::trim).filter(|user| !user.is_empty());
    let state = reader.text(&format!("/sys/kernel/debug/irq/irqs/{id}"));
    Irq {
        id,
        users: users.map(str::to_owned).collect(),
        cpus: cpus.unwrap_or_default(),
        effective: effective.unwrap_or_default(),
        node,
        managed: state.map(|text| text.contains("IRQD_AFFINITY_MANAGED")),
    }
}
