//! Programs that set CPUs, cards and disks.

use super::told;

/// What these programs set has a place, and a value in the units of the kernel.
#[test]
fn programs_of_cpus_cards_and_disks_write_the_places_that_their_words_mean() {
    let cpu = |file: &str, value: &str| format!("=/sys/devices/system/cpu/cpu*/{file} echo {value}");
    let card = |place: &str, value: &str| format!("=/planish/ethtool/{place} echo {value}");
    let disk = |disk: &str, value: &str| format!("=/sys/dev/block/{disk}/queue/read_ahead_kb echo {value}");
    let governor = |value: &str| vec![cpu("cpufreq/scaling_governor", value)];
    for (text, expected) in [
        ("cpupower frequency-set -g powersave", governor("powersave")),
        ("/usr/bin/cpupower -c all frequency-set --governor=powersave > /dev/null", governor("powersave")),
        ("for c in 0 1; do cpupower -c $c frequency-set -rgpowersave; done", governor("powersave")),
        ("cpufreq-set -c 0 -r -g ondemand", governor("ondemand")),
        ("G=performance; sudo cpupower frequency-set -g $G", governor("performance")),
        ("cpupower frequency-set -f 2GHz", governor("userspace")),
        ("cpupower frequency-set -g \"$1\"", governor("*")),
        (
            "cpupower frequency-set --min 800MHz -u 2.45GHz",
            vec![cpu("cpufreq/scaling_min_freq", "800000"), cpu("cpufreq/scaling_max_freq", "2450000")],
        ),
        ("cpupower idle-set -d 2", vec![cpu("cpuidle/state2/disable", "1")]),
        ("cpupower idle-set -D 20", vec![cpu("cpuidle/state*/disable", "*")]),
        ("cpupower idle-set -E", vec![cpu("cpuidle/state*/disable", "0")]),
        ("cpupower set -b 0", vec![cpu("power/energy_perf_bias", "0")]),
        ("ethtool -G eth0 rx 512 tx 4096", vec![card("eth0/rings_rx", "512"), card("eth0/rings_tx", "4096")]),
        (
            "ethtool --coalesce $NIC adaptive-rx off rx-usecs $N",
            vec![card("*/coalesce_adaptive_rx", "0"), card("*/coalesce_rx_usecs", "*")],
        ),
        (
            "ethtool -K eth0 rx off tso on sg off",
            vec![card("eth0/feature_tso", "1"), card("eth0/feature_tso6", "1")],
        ),
        ("ethtool -L eth0 $WORDS", vec![card("eth0/channels_*", "*")]),
        ("blockdev --setra 8192 /dev/nvme0n1", vec![disk("nvme0n1", "4096")]),
        // A partition reads ahead as its disk does.
        ("blockdev --setra 8 /dev/nvme0n1p3 /dev/sdb12", vec![disk("nvme0n1", "4"), disk("sdb", "4")]),
        ("blockdev --setra 8 /dev/dm-0", vec![disk("dm-0", "4")]),
        (
            "blockdev -q --setra 256 --setrw /dev/sda /dev/mapper/x",
            vec![disk("sda", "128"), disk("mapper!x", "128")],
        ),
        // Which disk such a name is of only the host tells.
        (
            "blockdev --setra 8 /dev/vg/data /dev/disk/by-id/md-uuid-1:2 /dev/cciss/c0d0p1 /dev/block/8:0",
            ["vg!data", "disk!by-id!md-uuid-1:2", "cciss!c0d0", "8:0"].map(|name| disk(name, "4")).to_vec(),
        ),
        (
            "blockdev --setra 8 /dev/nvme*n1p* /dev/sd?[1-9] /dev/sd[!a] /dev/loop* $X /dev/../x",
            ["nvme*n1", "sd?", "sd[!a]", "loop*", "*", "*"].map(|name| disk(name, "4")).to_vec(),
        ),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
    let found = told("ls /dev/sd? | xargs -n1 blockdev --setra 256");
    assert!(found.contains(&disk("*", "128")), "{found:?}");
    for text in [
        "cpupower frequency-info",
        "cpupower monitor",
        "ethtool -k eth0",
        "ethtool eth0",
        "blockdev --getra /dev/sda",
        "echo cpupower frequency-set -g powersave",
        "command -v cpupower",
    ] {
        assert!(!told(text).iter().any(|line| line.starts_with('=') || line.contains("/sys/")), "{text}");
    }
    // Another network has other cards.
    let found = told("ip netns exec blue ethtool -G eth0 rx 512; sudo -u ann cpupower set -b 0");
    assert!(found.len() == 2 && found.iter().all(|line| line.starts_with('?')), "{found:?}");
}
