//! Loaders whose files are not changed here, told apart by files of their own, and what hides the files of a known one.
//!
//! Whoever is found here is named and refused. What is passed over would be taken for a machine whose kernel comes from
//! outside, to which the rest of a plan is written: half of what was asked for.
//!
//! Sources: rEFInd's configuration (rodsbooks.com), lilo.conf(5), Limine's CONFIG.md, systemd-stub(7), ukify(1), the
//! Syslinux wiki (Config), U-Boot's distro boot (doc/develop/distro.rst), fstab(5).

use planish_host::Host;
use planish_model::bootline;

use super::{BY_HAND, Boot, ROOTS, grub};

/// A loader, the files that only it has, and where arguments for it are written by hand.
struct Other {
    name: &'static str,
    files: &'static [&'static str],
    /// Below each folder that a partition of the firmware is mounted on.
    in_partition: &'static [&'static str],
    cure: &'static str,
}

const OTHERS: [Other; 10] = [
    Other {
        name: "extlinux",
        files: &["/boot/extlinux/extlinux.conf", "/boot/extlinux.conf", "/extlinux.conf"],
        in_partition: &["extlinux/extlinux.conf"],
        cure: "add the arguments to its APPEND line by hand",
    },
    Other {
        name: "Syslinux",
        files: &["/boot/syslinux/syslinux.cfg", "/boot/syslinux.cfg"],
        in_partition: &["EFI/syslinux/syslinux.cfg", "syslinux/syslinux.cfg", "syslinux.cfg"],
        cure: "add the arguments to its APPEND line by hand",
    },
    Other {
        name: "zipl",
        files: &["/etc/zipl.conf"],
        in_partition: &[],
        cure: "add the arguments to `parameters=` by hand, and run zipl",
    },
    Other {
        name: "LILO",
        files: &["/etc/lilo.conf", "/etc/elilo.conf"],
        in_partition: &[],
        cure: "add the arguments to `append=` by hand, and run lilo",
    },
    Other {
        name: "Limine",
        files: &[],
        in_partition: &[
            "limine.conf",
            "limine.cfg",
            "limine/limine.conf",
            "limine/limine.cfg",
            "EFI/limine/limine.conf",
            "EFI/limine/limine.cfg",
            "EFI/BOOT/limine.conf",
            "EFI/BOOT/limine.cfg",
        ],
        cure: "add the arguments to `cmdline:` by hand",
    },
    Other {
        name: "rEFInd",
        files: &[],
        in_partition: &["refind_linux.conf", "EFI/refind/refind.conf", "EFI/BOOT/refind.conf"],
        cure: "add the arguments to refind_linux.conf, or to `options`, by hand",
    },
    Other {
        name: "U-Boot",
        files: &["/boot/boot.scr", "/boot/boot.scr.uimg", "/boot/uEnv.txt", "/boot/armbianEnv.txt"],
        in_partition: &["boot.scr", "uEnv.txt"],
        cure: "add the arguments to its `bootargs` by hand",
    },
    Other {
        name: "the firmware of a Raspberry Pi",
        files: &["/boot/firmware/cmdline.txt", "/boot/cmdline.txt"],
        in_partition: &[],
        cure: "add the arguments to cmdline.txt by hand",
    },
    Other {
        name: "GRUB 1",
        files: &["/boot/grub/menu.lst", "/boot/grub/grub.conf"],
        in_partition: &[],
        cure: "add the arguments to its kernel line by hand",
    },
    Other {
        name: "a unified kernel image",
        files: &["/etc/kernel/uki.conf"],
        in_partition: &[],
        cure: UKI_CURE,
    },
];

/// Whose arguments are a part of what is signed.
pub(super) const UKI_CURE: &str =
    "a unified kernel image holds its arguments: change /etc/kernel/cmdline and build it anew";
/// What `systemd-stub(7)` leaves, the first part of every unified kernel image.
const STUB_INFO: &str = "/sys/firmware/efi/efivars/StubInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
const FSTAB: &str = "/etc/fstab";
const MOUNTS: &str = "/proc/mounts";

/// A loader whose files are not changed here, and one of them.
pub(super) fn named(host: &Host) -> Option<Boot> {
    let of = |other: &Other| {
        let within = ROOTS.iter().flat_map(|root| other.in_partition.iter().map(move |name| (root, name)));
        let within = within.map(|(root, name)| format!("{root}/{name}"));
        let mut files = other.files.iter().map(|path| (*path).to_owned()).chain(within);
        let path = files.find(|path| host.exists(path))?;
        let reason = format!("{} starts this machine ({path}), which planish does not change", other.name);
        Some(Boot::unknown(reason, other.cure))
    };
    OTHERS.iter().find_map(of).or_else(|| image(host))
}

/// A unified kernel image that lies where the firmware and systemd-boot look for one.
fn image(host: &Host) -> Option<Boot> {
    let path = images(host).into_iter().next()?;
    let reason =
        format!("a unified kernel image starts this machine ({path}), which planish does not change");
    Some(Boot::unknown(reason, UKI_CURE))
}

/// All such images.
pub(super) fn images(host: &Host) -> Vec<String> {
    let folders = ROOTS.iter().map(|root| format!("{root}/EFI/Linux"));
    let of = |folder: String| {
        let names = host.list(&folder).into_iter().filter(|name| name.to_lowercase().ends_with(".efi"));
        names.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    folders.flat_map(of).collect()
}

/// GRUB whose menu lies on the partition of the firmware alone, as distributions had it up to 2021.
pub(super) fn menu_of_firmware(host: &Host) -> Option<Boot> {
    let folders = ROOTS.iter().map(|root| format!("{root}/EFI"));
    let menus = folders.flat_map(|folder| {
        host.list(&folder).into_iter().map(move |name| format!("{folder}/{name}/grub.cfg"))
    });
    let path = menus.into_iter().find(|path| host.exists(path))?;
    let reason = format!("GRUB starts this machine by {path}, a menu that planish does not make");
    Some(Boot::unknown(reason, BY_HAND))
}

/// Whether the running kernel came out of a unified kernel image, by what that left in the firmware.
pub(super) fn started_by_image(host: &Host) -> Option<Boot> {
    let reason = "a unified kernel image started this machine (StubInfo in the firmware's variables)";
    host.exists(STUB_INFO).then(|| Boot::unknown(reason, UKI_CURE))
}

/// A file system of the loader's files that is in fstab and not mounted. What lies in its folder meanwhile is nothing
/// that a boot reads.
pub(super) fn unmounted(host: &Host, points: &[&str]) -> Option<Boot> {
    // Where nobody tells what is mounted, nothing is said to be missing.
    let mounts = host.read_lossy(MOUNTS).ok().filter(|mounts| !mounts.is_empty())?;
    let mounted: Vec<&str> = mounts.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    let table = host.read_lossy(FSTAB).ok()?;
    (1..).zip(table.lines()).find_map(|(number, line)| {
        let at = line.split_whitespace().nth(1).filter(|_| !line.trim_start().starts_with('#'))?;
        let point = *points.iter().find(|point| at.trim_end_matches('/') == **point)?;
        let is_there = mounted.contains(&point);
        let reason =
            format!("{point} is in {FSTAB}:{number} and not mounted, so that its files are not here");
        (!is_there).then(|| Boot::unknown(reason, &format!("mount {point}")))
    })
}

/// Whether a program of the firmware may look into the file system at `point`, where that of systemd-boot is at `root`.
///
/// It finds a partition by its type, which nobody reads here, and reads it by a driver: of the firmware, which has to
/// have one for FAT alone (UEFI 2.10, 13.3), or of those that systemd-boot loads from its own partition
/// (systemd-boot(7)). A folder of another file system, /boot of the root of most machines, is none of that.
pub(super) fn is_before_linux(host: &Host, point: &str, root: &str) -> bool {
    // Where nobody tells what is mounted, every folder may be one.
    let Some(mounts) = host.read_lossy(MOUNTS).ok().filter(|mounts| !mounts.is_empty()) else { return true };
    let mut kinds = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        (words.next()? == point).then(|| words.next()).flatten()
    });
    match kinds.next_back() {
        None => false,
        // What mounts it at the first look says nothing of what that will be.
        Some("vfat" | "msdos" | "autofs") => true,
        Some(_) => {
            let drivers = host.list(&format!("{root}/EFI/systemd/drivers"));
            drivers.iter().any(|name| name.to_ascii_lowercase().ends_with(".efi"))
        }
    }
}

/// Signs of a loader none of whose own files is here.
pub(super) fn signs(host: &Host, cmdline: &str) -> Option<Boot> {
    let cure = "mount /boot where that is a file system of its own, or give the arguments to the boot loader by \
         hand";
    let has_image = bootline::arguments(cmdline).any(|argument| bootline::parts(argument).0 == "BOOT_IMAGE");
    let has_defaults = host.exists(grub::DEFAULTS);
    let evidence = match (has_image, has_defaults) {
        (true, true) => {
            format!("GRUB started this machine (BOOT_IMAGE= on its command line, {})", grub::DEFAULTS)
        }
        (true, false) => String::from(
            "a boot loader started this machine, GRUB as it seems (BOOT_IMAGE= on its command line)",
        ),
        (false, true) => format!("GRUB is set up here ({})", grub::DEFAULTS),
        (false, false) => return None,
    };
    Some(Boot::unknown(format!("{evidence}, and its menu is not here"), cure))
}
