//! Whether the system itself lies behind the network: then a link that goes down takes the machine with it, whoever is
//! logged in.

use crate::host::Host;
use crate::routes::{names, text};

/// File systems that a server gives (`/proc/self/mounts`).
const SERVED: [&str; 10] =
    ["nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "glusterfs", "fuse.glusterfs", "ocfs2", "gfs2"];

/// Where the system lies. An overlay on top of one of them has it mounted below /run.
const OF_SYSTEM: [&str; 7] = ["/", "/usr", "/etc", "/var", "/nix", "/sysroot", "/boot"];

/// Whether a part of the system is served over a network, or a disk is: by iSCSI, NVMe over TCP or RDMA, FCoE, NBD,
/// Ceph or DRBD. Which disk carries the system through volumes and mappings is not followed: any of them counts.
pub(crate) fn is_on_network(host: &Host) -> bool {
    let mounts = text(host, "/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(is_served)
        || ["/sys/class/iscsi_session", "/sys/bus/rbd/devices", "/sys/bus/fcoe/devices"]
            .iter()
            .any(|folder| !names(host, folder).is_empty())
        || names(host, "/sys/class/nvme").iter().any(|name| {
            let transport = text(host, &format!("/sys/class/nvme/{name}/transport"));
            transport.is_some_and(|transport| ["tcp", "rdma"].contains(&transport.trim()))
        })
        || names(host, "/sys/block").iter().any(|name| {
            name.starts_with("drbd")
                || (name.starts_with("nbd") && text(host, &format!("/sys/block/{name}/pid")).is_some())
        })
}

/// Whether a row of the table of mounts is a part of the system that a server gives.
fn is_served(row: &str) -> bool {
    let mut words = row.split(' ').skip(1);
    let (Some(point), Some(kind)) = (words.next(), words.next()) else { return false };
    SERVED.contains(&kind) && (OF_SYSTEM.contains(&point) || point.starts_with("/run/"))
}
