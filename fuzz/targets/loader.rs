//! What a trial boot is made of: menus of GRUB, its environment block and entries, files of systemd-boot and variables
//! of the firmware. Whatever they say, a trial boot is refused, or is a copy with the argument in it and in its place.
//!
//! The input is files, between lines `===`; the first byte of each chooses which.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_boot::Entry;
use planish_host::Host;
use planish_model::{BootFiles, BootLoader, OnceFormat};
use planish_observe::{carried_over, default_entry, once};
use std::fs;

#[path = "../shared/folder.rs"]
mod folder;

const VARIABLES: &str = "/sys/firmware/efi/efivars";
const PATHS: [&str; 15] = [
    "/boot/grub/grub.cfg",
    "/boot/grub/grubenv",
    "/boot/grub/custom.cfg",
    "/proc/self/mountinfo",
    "/boot/loader/entries/a-6.1.conf",
    "/boot/loader/entries/b-6.12+2.conf",
    "/boot/loader/loader.conf",
    "/boot/EFI/systemd/systemd-bootx64.efi",
    "/boot/grub2/grub.cfg",
    "/boot/grub2/grubenv",
    "/sys/firmware/efi/efivars/LoaderFeatures-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
    "/sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
    "/sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
    "/sys/firmware/efi/efivars/LoaderEntrySelected-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
    "/sys/firmware/efi/efivars/LoaderEntryLastBooted-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
];
const BETWEEN: &[u8] = b"\n===\n";

fuzz_target!(|bytes: &[u8]| {
    let folder = folder::Folder::new("loader");
    for part in ["proc", "sys"] {
        fs::create_dir_all(folder.0.join(part)).expect("room for a folder");
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN).unwrap_or(rest.len());
        if let Some((choice, content)) = rest[..end].split_first() {
            let path = PATHS[usize::from(*choice) % PATHS.len()];
            let file = folder.0.join(path.trim_start_matches('/'));
            fs::create_dir_all(file.parent().expect("below the root")).expect("room for a folder");
            fs::write(file, content).expect("room for a file");
        }
        rest = rest.get(end + BETWEEN.len()..).unwrap_or_default();
    }
    let host = Host::open(&folder.0).expect("a tree without a description");
    for line in carried_over(&host) {
        assert!(!line.source.is_empty() && !line.name.is_empty(), "{line:?}");
    }
    for name in ["GRUB", "systemd-boot"] {
        let name = name.to_owned();
        let files = BootFiles {
            name,
            own: None,
            edited: Vec::new(),
            generator: None,
            is_next_untold: false,
            makes_menu: false,
            astray: None,
            unproven: None,
        };
        let loader = BootLoader::Known(files);
        let _ = default_entry(&host, &loader);
        let boot = match once(&host, &loader, "nosmt=force") {
            Ok(boot) => boot,
            Err(refusal) => {
                assert!(!refusal.reason.is_empty() && !refusal.cure.is_empty());
                continue;
            }
        };
        assert_eq!(boot.writes.len(), 2, "an entry, and what names it");
        for write in boot.writes {
            let is_known = match write.format {
                OnceFormat::Menu => write.path.ends_with("/custom.cfg"),
                OnceFormat::Entry => write.path.starts_with("/boot/loader/entries/"),
                OnceFormat::Block => write.path.ends_with("/grubenv"),
                OnceFormat::Firmware => write.path.starts_with(VARIABLES),
            };
            assert!(is_known && !write.path.contains(".."), "{write:?}");
            // A vertical tab is a blank too for the kernel (lib/ctype.c).
            let is_blank = |c: char| c.is_ascii_whitespace() || c == '\u{b}';
            let has_it = |line: &str| line.split(is_blank).any(|word| word == "nosmt=force");
            match write.format {
                OnceFormat::Menu => assert!(write.text.lines().any(has_it), "{}", write.text),
                OnceFormat::Entry => {
                    assert!(Entry::parse(&write.text).is_some() && write.text.lines().any(has_it));
                }
                OnceFormat::Block | OnceFormat::Firmware => {}
            }
        }
    }
});
