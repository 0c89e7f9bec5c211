//! Who sets a disk by what it is called in `/dev`.

use super::*;

/// Disks of four kinds, each with the place of its read-ahead.
const DISKS: [&str; 4] = ["sda", "nvme0n1", "dm-0", "md0"];

/// Whether rc.local with this line sets (`=`), may set (`?`) or leaves alone (`-`) each of the disks.
fn told(line: &str) -> String {
    let tree = tempfile::tempdir().expect("a folder");
    let places = DISKS.map(|disk| format!("/sys/block/{disk}/queue/read_ahead_kb"));
    places.iter().for_each(|place| write(tree.path(), place, "128\n"));
    executable(tree.path(), "/etc/rc.local", format!("#!/bin/sh\n{line}\n"));
    signs_of(tree.path(), "rc.local", "block.read_ahead_kb", &places.each_ref().map(String::as_str))
}

/// Each was told as a sure write of every disk: `check` ended with 1 for disks that nobody else sets.
#[test]
fn a_name_of_no_disk_here_may_be_that_of_one() {
    for (device, signs) in [
        ("/dev/mapper/vg-data", "--?-"),
        ("/dev/vg/data", "--?-"),
        ("/dev/vg/$LV", "--?-"),
        ("/dev/disk/by-id/dm-name-vg-data", "--?-"),
        ("/dev/dm-7", "--?-"),
        ("/dev/md/data", "---?"),
        ("/dev/md127", "---?"),
        ("/dev/md127p1", "---?"),
        ("/dev/disk/by-id/md-name-host:data", "---?"),
        // By a link of udev, or a disk that is to come.
        ("/dev/sdf", "????"),
        ("/dev/xvdb1", "????"),
        ("/dev/sd[b-z]", "????"),
        ("/dev/disk/by-id/nvme-X_1-part2", "????"),
        ("/dev/disk/by-id/nvme-*", "????"),
        ("/dev/disk/by-path/pci-0000:00:17.0-ata-1", "????"),
        ("/dev/disk/by-label/my\\\\x20data", "????"),
        ("/dev/oracleasm/disk1", "????"),
        ("/dev/sda /dev/mapper/x", "=-?-"),
    ] {
        assert_eq!(told(&format!("blockdev --setra 4096 {device}")), signs, "{device}");
    }
    assert_eq!(told("for d in /dev/sd[b-z]; do blockdev --setra 8 $d; done"), "????");
    assert_eq!(told("for d in /dev/vd?; do blockdev --setra 8 $d; done"), "????");
    // Folders of the kernel have its own names alone.
    assert_eq!(told("echo 8 > /sys/block/nvme9n1/queue/read_ahead_kb"), "----");
}

#[test]
fn a_name_of_a_disk_here_and_numbers_are_sure() {
    for (device, signs) in [
        ("/dev/sda", "=---"),
        ("/dev//sda2", "=---"),
        ("/dev/nvme0n1p2", "-=--"),
        ("/dev/dm-0", "--=-"),
        ("/dev/md0p1", "---="),
        ("/dev/sd[!b]", "=---"),
        ("/dev/md*", "---="),
        // Patterns of partitions.
        ("/dev/nvme*n1p*", "-=--"),
        ("/dev/nvme?n1p[1-9]", "-=--"),
        ("/dev/sd?[1-9]", "=---"),
        ("/dev/sda1*", "=---"),
        // All that device-mapper has.
        ("/dev/mapper/*", "--=-"),
        // Whichever: what a variable holds, or a program tells.
        ("/dev/block/8:0", "===="),
        ("/dev/$1", "===="),
        ("/dev/${1}1", "===="),
        ("$(own-list)", "===="),
    ] {
        assert_eq!(told(&format!("blockdev --setra 4096 {device}")), signs, "{device}");
    }
    assert_eq!(told("lsblk -dpno NAME | xargs -n1 blockdev --setra 8"), "====");
    assert_eq!(told("for d in sda md0; do blockdev --setra 8 /dev/$d; done"), "=--=");
}
