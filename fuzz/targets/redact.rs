//! Files of a host on their way into a record: whatever stands around it, nothing that names the host gets through. The
//! first byte chooses the file, since some are redacted by rules of their own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_host::{Redactions, Redactor};

const PATHS: [&str; 16] = [
    "/proc/cmdline",
    "/proc/mounts",
    "/proc/1/cgroup",
    "/proc/meminfo",
    "/etc/sysctl.d/90-a.conf",
    "/etc/hostname",
    "/etc/default/grub",
    "/etc/kernel/cmdline",
    "/boot/grub/grub.cfg",
    "/boot/grub2/grubenv",
    "/boot/loader/entries/a.conf",
    "/sys/class/dmi/id/product_serial",
    "/etc/systemd/system/a.service",
    "/etc/udev/rules.d/70-a.rules",
    "/run/udev/data/b8:0",
    "/var/lib/dpkg/status",
];

/// A name, a card, a disk, a machine-id, and addresses of both kinds.
const SECRETS: [&str; 6] = [
    "orionhost",
    "52:54:00:ab:cd:ef",
    "6f1c2d3e-4a5b-4c6d-8e7f-90a1b2c3d4e5",
    "0123456789abcdef0123456789abcdef",
    "10.87.65.43",
    "2a01:4f8:10a:b::c",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let path = PATHS[usize::from(choice) % PATHS.len()];
    let redact = |text: &str| Redactor::new(Redactions::default(), SECRETS[0]).redact(path, text);

    let once = redact(text);
    if path.ends_with("/grubenv") {
        assert!(once.len() >= text.len(), "a block of GRUB that is cut off is none");
    } else if ["/boot", "/etc/default", "/etc/systemd", "/etc/udev"]
        .iter()
        .any(|start| path.starts_with(start))
    {
        assert_eq!(once.lines().count(), text.lines().count(), "lines keep their numbers");
    }
    for secret in SECRETS {
        // A part of a longer word is another word.
        if text.contains(secret) {
            continue;
        }
        for told in [format!("{text}\n{secret}\n"), format!("{secret} {text}"), format!("a={secret}\n{text}")]
        {
            let redacted = redact(&told);
            assert!(!redacted.contains(secret), "{path}: {told:?} became {redacted:?}");
        }
    }
});
