//! What is asked of a host now: threads, open files, and memory that was promised.

use planish_host::Host;
use planish_model::{Demand, bootline};

use crate::observe::Shared;
use crate::tables;

/// The numbers that the kernel tells; each that it does not is unknown.
pub(crate) fn read(host: &Host, shared: &Shared) -> Demand {
    let memory = tables::meminfo(&shared.meminfo);
    let word = |path: &str, place: usize| {
        let text = host.read(path).ok()?;
        text.split_whitespace().nth(place).map(str::to_owned)
    };
    // `3.41 3.20 2.98 4/1205 912033`: runnable of all threads (fs/proc/loadavg.c).
    let threads = word("/proc/loadavg", 3).and_then(|word| word.split_once('/')?.1.parse().ok());
    let number = |path: &str| word(path, 0)?.parse().ok();
    let line = |path: &str| host.read(path).ok().map(|text| text.trim().to_owned());
    let threshold = |index: u32| number(&format!("/proc/sys/net/ipv4/neigh/default/gc_thresh{index}"));
    // It is taken with any value (ipc/util.c, `ipc_mni_extend`).
    let is_extend = |argument: &str| bootline::same_name(bootline::parts(argument).0, "ipcmni_extend");
    let ipc_extended = !shared.cmdline.trim().is_empty();
    let ipc_extended = ipc_extended.then(|| bootline::arguments(&shared.cmdline).any(is_extend));
    let neighbours = || Some([threshold(1)?, threshold(2)?, threshold(3)?]);
    Demand {
        threads,
        open_files: number("/proc/sys/fs/file-nr"),
        files_each: number("/proc/sys/fs/nr_open"),
        file_limits: None,
        tracked: number("/proc/sys/net/netfilter/nf_conntrack_count"),
        port_range: line("/proc/sys/net/ipv4/ip_local_port_range"),
        ports_reserved: line("/proc/sys/net/ipv4/ip_local_reserved_ports"),
        ports_from: number("/proc/sys/net/ipv4/ip_unprivileged_port_start"),
        ipc_extended,
        neighbours: neighbours(),
        promised_bytes: memory.get("Committed_AS").copied(),
        promises_bytes_max: memory.get("CommitLimit").copied(),
        swap_bytes: memory.get("SwapTotal").copied().unwrap_or(0),
        overcommit_mode: number("/proc/sys/vm/overcommit_memory"),
        overcommit_kib: number("/proc/sys/vm/overcommit_kbytes"),
    }
}

#[cfg(test)]
mod tests {
    use planish_model::{Catalogue, Demand};

    fn demand(files: &[(&str, &str)]) -> Demand {
        let (_folder, host) = crate::testing::host(files);
        crate::observe(&host, &Catalogue::embedded().expect("sound")).demand
    }

    #[test]
    fn what_the_kernel_was_told_of_identifiers_is_known_where_its_line_is() {
        for (cmdline, told) in [
            ("root=/dev/vda1 ipcmni_extend quiet", Some(true)),
            ("ipcmni-extend=1", Some(true)),
            ("root=/dev/vda1 -- ipcmni_extend", Some(false)),
            ("root=/dev/vda1 ipcmni_extended", Some(false)),
            ("\n", None),
        ] {
            assert_eq!(demand(&[("/proc/cmdline", cmdline)]).ipc_extended, told, "{cmdline}");
        }
        assert_eq!(demand(&[]).ipc_extended, None);
    }

    #[test]
    fn the_first_port_without_a_privilege_is_read() {
        const START: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
        assert_eq!(demand(&[(START, "80\n")]).ports_from, Some(80));
        assert_eq!(demand(&[]).ports_from, None);
    }
}
