//! Trees of boot loaders, as distributions lay them out.

use planish_host::Host;
use planish_model::{Astray, BootFormat, BootLoader, Catalogue, Generator, KnobId};

use super::look;
use crate::testing;

const DEFAULTS: &str = "/etc/default/grub";
const MENU: &str = "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'Debian GNU/Linux' {\n\
    \tlinux\t/boot/vmlinuz-6.12 root=UUID=1 ro quiet isolcpus=1\n}\n### END /etc/grub.d/10_linux ###\n";

/// A tree with some files; `/proc/cmdline` is that of a kernel which GRUB started.
fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
    let running = ("/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=UUID=1 ro quiet\n");
    testing::host(&[&[running], files].concat())
}

fn loader(files: &[(&str, &str)]) -> BootLoader {
    let (_folder, host) = tree(files);
    look(&host, "BOOT_IMAGE=/boot/vmlinuz quiet", None).loader
}

fn why(files: &[(&str, &str)]) -> String {
    match loader(files) {
        BootLoader::Unknown { reason, cure } => {
            // A plan has a profile, which nobody knows here: without it that is no command.
            assert!(!cure.is_empty() && !cure.contains("`planish plan`"), "{cure}");
            reason
        }
        other => panic!("{other:?}"),
    }
}

/// Files that are changed, with how.
fn edited(loader: &BootLoader) -> Vec<(&str, BootFormat)> {
    let BootLoader::Known(files) = loader else { panic!("{loader:?}") };
    files.edited.iter().map(|file| (file.path.as_str(), file.format)).collect()
}

/// What the files say of a boot parameter, who says it, and what the menu makes of it.
fn persisted(files: &[(&str, &str)], id: &str) -> Option<(String, String, Option<String>)> {
    let (_folder, host) = tree(files);
    let catalogue = Catalogue::embedded().expect("sound");
    let path = &catalogue.knob(&KnobId::new(id)).expect("a row").path;
    let observation = crate::observe(&host, &catalogue);
    let found = observation.persisted.get(path)?;
    Some((found.value.clone(), found.source.clone(), found.at_boot.clone()))
}

fn said(value: &str, source: &str, at_boot: Option<&str>) -> Option<(String, String, Option<String>)> {
    Some((value.to_owned(), source.to_owned(), at_boot.map(str::to_owned)))
}

fn debian(defaults: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![
        ("/boot/grub/grub.cfg", MENU),
        (DEFAULTS, defaults),
        ("/usr/sbin/update-grub", "#!/bin/sh\n"),
        ("/usr/sbin/grub-mkconfig", "for x in /etc/default/grub.d/*.cfg ; do . $x; done\n"),
    ]
}

#[test]
fn grub_with_drop_ins_gets_a_file_of_ours() {
    let loader = loader(&debian("GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=1\"\n"));
    let BootLoader::Known(files) = loader else { panic!("{loader:?}") };
    assert_eq!(files.own.as_deref(), Some("/etc/default/grub.d/90-planish.cfg"));
    assert_eq!((files.edited.len(), files.generator), (0, Some(Generator::UpdateGrub)));
}

#[test]
fn grub_without_drop_ins_gets_a_block() {
    let mut files = debian("GRUB_CMDLINE_LINUX_DEFAULT=quiet\n");
    files[0].0 = "/boot/grub2/grub.cfg";
    files[2].0 = "/usr/sbin/other";
    files[3] = ("/usr/sbin/grub2-mkconfig", ". /etc/default/grub\n");
    let loader = loader(&files);
    assert_eq!(edited(&loader), [(DEFAULTS, BootFormat::GrubDefaults)]);
    let BootLoader::Known(files) = loader else { panic!("{loader:?}") };
    assert_eq!((files.own, files.generator), (None, Some(Generator::Grub2Mkconfig)));
}

#[test]
fn each_argument_is_told_with_its_file_and_line_and_with_what_the_menu_makes_of_it() {
    let mut files = debian("GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=1\"\n");
    assert_eq!(persisted(&files, "boot.isolcpus"), said("1", "/etc/default/grub:2", None));
    assert_eq!(persisted(&files, "boot.nohz_full"), None);
    let ours = "# ours\nGRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT isolcpus=2 nosmt\"\n";
    files.push(("/etc/default/grub.d/90-planish.cfg", ours));
    let own = "/etc/default/grub.d/90-planish.cfg:2";
    assert_eq!(
        persisted(&files, "boot.isolcpus"),
        said("1", "/etc/default/grub:2", None),
        "the first counts"
    );
    assert_eq!(persisted(&files, "boot.nosmt"), said("1", own, Some("0")));
    // A later file that begins anew takes them away.
    files.push(("/etc/default/grub.d/99-theirs.cfg", "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n"));
    let by = "/etc/default/grub.d/99-theirs.cfg:1";
    assert_eq!(persisted(&files, "boot.isolcpus"), said("(not given)", by, Some("1")), "it is named");
}

/// A run-time knob that an argument sets comes by the menu, as the argument itself does.
#[test]
fn what_an_argument_sets_at_run_time_comes_by_the_menu_that_is_there() {
    let defaults =
        "GRUB_CMDLINE_LINUX=transparent_hugepage=never\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=1\"\n";
    let mut files = debian(defaults);
    files.push(("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"));
    let line = "/etc/default/grub:1";
    assert_eq!(persisted(&files, "boot.transparent_hugepage"), said("never", line, Some("(not given)")));
    assert_eq!(persisted(&files, "thp.enabled"), said("never", line, Some("(not given)")));
    files[0].1 =
        Box::leak(MENU.replace("isolcpus=1", "isolcpus=1 transparent_hugepage=never").into_boxed_str());
    assert_eq!(persisted(&files, "thp.enabled"), said("never", line, None));
}

const ENTRY: &str = "title Rocky\nversion 5.14.0-570\nlinux /vmlinuz-5.14.0-570\n\
    options root=/dev/rl ro $tuned_params nohz_full=2-3\n";
const RESCUE: &str =
    "title Rocky (0-rescue)\nversion 0-rescue\nlinux /vmlinuz-0-rescue\noptions root=/dev/rl ro\n";
const READS: &str = "insmod blscfg\nblscfg\n";

/// An environment block of GRUB that says so.
fn block(text: &str) -> &'static str {
    format!("# GRUB Environment Block\n{text}{}", "#".repeat(1024 - 25 - text.len())).leak()
}

fn rocky(entry: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![
        ("/boot/grub2/grub.cfg", READS),
        (
            "/boot/grub2/grubenv",
            block("saved_entry=\ntuned_params=isolcpus=3\nkernelopts=root=/dev/rl ro skew_tick=1\n"),
        ),
        ("/boot/loader/entries/m-5.14.0-70.conf", "title Rocky\nversion 5.14.0-70\nlinux /v\noptions ro\n"),
        ("/boot/loader/entries/m-5.14.0-570.conf", entry),
        ("/boot/loader/entries/m-0-rescue.conf", RESCUE),
        (DEFAULTS, "GRUB_ENABLE_BLSCFG=true\n"),
    ]
}

#[test]
fn grub_with_entries_has_all_but_those_for_repairs_changed() {
    let mut files = rocky(ENTRY);
    let entries = ["/boot/loader/entries/m-5.14.0-70.conf", "/boot/loader/entries/m-5.14.0-570.conf"]
        .map(|path| (path, BootFormat::Entry));
    let found = loader(&files);
    let (first, rest) = (edited(&found)[0], edited(&found)[1..].to_vec());
    assert_eq!((first, rest), ((DEFAULTS, BootFormat::GrubDefaults), entries.to_vec()));
    files.push(("/usr/lib/kernel/cmdline", "root=/dev/rl ro\n"));
    let found = loader(&files);
    assert_eq!(edited(&found)[1], ("/usr/lib/kernel/cmdline", BootFormat::KernelCmdline));
    files.push(("/etc/kernel/cmdline", "root=/dev/rl ro\n"));
    let found = loader(&files);
    assert!(
        !edited(&found).contains(&("/usr/lib/kernel/cmdline", BootFormat::KernelCmdline)),
        "it is not read"
    );
    assert_eq!(edited(&found)[1], ("/etc/kernel/cmdline", BootFormat::KernelCmdline));
    // The newest by its version, not by its text.
    let line = "/boot/loader/entries/m-5.14.0-570.conf:4";
    assert_eq!(persisted(&files, "boot.nohz_full"), said("2-3", line, None));
    assert_eq!(persisted(&files, "boot.isolcpus"), said("3", "/boot/grub2/grubenv:3", None), "by a variable");
    files[1].1 = block("saved_entry=m-5.14.0-70\n");
    assert_eq!(persisted(&files, "boot.nohz_full"), None, "another entry was chosen");
    let known = |files: &[(&str, &str)]| {
        let (_folder, host) = tree(files);
        look(&host, "BOOT_IMAGE=/boot/vmlinuz quiet", None).next.map(|next| next.source)
    };
    assert_eq!(known(&files).as_deref(), Some("/boot/loader/entries/m-5.14.0-70.conf"));
    files[1].1 = block("saved_entry=Windows\n");
    assert_eq!(known(&files), None, "it may be another system");
}

#[test]
fn a_block_that_is_cut_off_is_named_before_anything_is_written() {
    let mut files = rocky(ENTRY);
    let whole = files[1].1;
    assert!(matches!(loader(&files), BootLoader::Known(_)));
    for odd in ["", &whole[..30], &whole[..400], &whole[24..]] {
        files[1].1 = odd;
        assert!(why(&files).starts_with("/boot/grub2/grubenv: it is cut off: it"), "{}", why(&files));
    }
    files.remove(1);
    assert!(matches!(loader(&files), BootLoader::Known(_)), "nothing is saved");
}

#[test]
fn entries_that_ask_grub_for_their_arguments_lead_to_its_block() {
    let files = rocky("title Rocky\nversion 5.14.0-570\nlinux /v\noptions $kernelopts $tuned_params\n");
    let found = loader(&files);
    let formats: Vec<BootFormat> = edited(&found).into_iter().map(|(_, format)| format).collect();
    assert_eq!(formats, [BootFormat::GrubDefaults, BootFormat::GrubEnv, BootFormat::Entry]);
    assert_eq!(persisted(&files, "boot.skew_tick"), said("1", "/boot/grub2/grubenv:4", None));
}

#[test]
fn systemd_boot_has_its_entries_changed() {
    let files = [
        ("/efi/EFI/systemd/systemd-bootx64.efi", ""),
        ("/efi/loader/loader.conf", "timeout 3\ndefault arch*.conf\n"),
        ("/efi/loader/entries/arch.conf", "title Arch\nlinux /vmlinuz-linux\noptions root=UUID=1 nosmt\n"),
        ("/efi/loader/entries/windows.conf", "title Windows\nefi /EFI/Microsoft/boot.efi\n"),
        ("/efi/loader/entries/zen.conf", "title Zen\nversion 9\nlinux /vmlinuz-zen\noptions root=UUID=1\n"),
    ];
    let found = loader(&files);
    let arch = ("/efi/loader/entries/arch.conf", BootFormat::Entry);
    assert_eq!(edited(&found), [arch, ("/efi/loader/entries/zen.conf", BootFormat::Entry)]);
    assert_eq!(persisted(&files, "boot.nosmt"), said("1", "/efi/loader/entries/arch.conf:3", None));
    let mut named = files;
    named[1].1 = "default windows.conf\n";
    assert_eq!(persisted(&named, "boot.nosmt"), None, "it starts no entry that is changed");
    // The tries that are counted in a name are no part of it.
    (named[1].1, named[2].0) = ("default arch.conf\n", "/efi/loader/entries/arch+2-1.conf");
    assert_eq!(persisted(&named, "boot.nosmt"), said("1", "/efi/loader/entries/arch+2-1.conf:3", None));
    for odd in ["", "title Arch\n", "title Arch\nversion 1\nlin"] {
        named[2].1 = odd;
        assert_eq!(why(&named), "/efi/loader/entries/arch+2-1.conf is cut off: no line says what it starts");
    }
    let without = why(&files[..2]);
    assert!(without.starts_with("systemd-boot has no entries"), "{without}");
}

#[test]
fn what_started_the_machine_decides_between_two() {
    let mut files = debian("GRUB_CMDLINE_LINUX_DEFAULT=quiet\n");
    files.push(("/boot/efi/EFI/systemd/systemd-bootx64.efi", ""));
    files.push(("/boot/efi/loader/entries/a.conf", "title A\nlinux /v\noptions ro\n"));
    let name = |cmdline: &str, files: &[(&str, &str)]| {
        let (_folder, host) = tree(files);
        match look(&host, cmdline, None).loader {
            BootLoader::Known(files) => files.name,
            other => format!("{other:?}"),
        }
    };
    assert_eq!(name("BOOT_IMAGE=/vmlinuz quiet", &files), "GRUB");
    assert!(name("quiet", &files).contains("nothing tells which starts it"));
    let left = "\u{7}\0\0\0s\0y\0s\0t\0e\0m\0d\0-\0b\0o\0o\0t\0 \x002\x005\x002\0";
    files.push((super::LOADER_INFO, left));
    assert_eq!(
        name("BOOT_IMAGE=/vmlinuz quiet", &files),
        "systemd-boot",
        "what the loader left is the evidence"
    );
}

/// `/proc/cmdline` of a kernel that nobody gave the word of GRUB.
fn without_image(files: &[(&str, &str)]) -> BootLoader {
    let (_folder, host) = tree(files);
    look(&host, "root=UUID=1 ro quiet", None).loader
}

fn reason(loader: &BootLoader) -> &str {
    let BootLoader::Unknown { reason, cure } = loader else { panic!("{loader:?}") };
    assert!(!cure.is_empty());
    reason
}

#[test]
fn a_loader_is_named_by_its_own_files_also_without_firmware() {
    for (path, name) in [
        ("/boot/extlinux.conf", "extlinux"),
        ("/boot/extlinux/extlinux.conf", "extlinux"),
        ("/boot/syslinux/syslinux.cfg", "Syslinux"),
        ("/boot/efi/EFI/syslinux/syslinux.cfg", "Syslinux"),
        ("/etc/lilo.conf", "LILO"),
        ("/boot/limine.conf", "Limine"),
        ("/boot/limine/limine.cfg", "Limine"),
        ("/efi/EFI/BOOT/limine.conf", "Limine"),
        ("/boot/refind_linux.conf", "rEFInd"),
        ("/boot/efi/EFI/refind/refind.conf", "rEFInd"),
        ("/boot/boot.scr", "U-Boot"),
        ("/boot/armbianEnv.txt", "U-Boot"),
        ("/etc/zipl.conf", "zipl"),
        ("/boot/firmware/cmdline.txt", "the firmware of a Raspberry Pi"),
        ("/boot/grub/menu.lst", "GRUB 1"),
        ("/boot/EFI/Linux/debian-6.12.efi", "a unified kernel image"),
        ("/etc/kernel/uki.conf", "a unified kernel image"),
    ] {
        let told = format!("{name} starts this machine ({path}), which planish does not change");
        assert_eq!(reason(&without_image(&[(path, "")])), told);
        // LILO gives a label, Syslinux a path: the files say more.
        for cmdline in ["BOOT_IMAGE=Linux ro", "BOOT_IMAGE=/vmlinuz ro"] {
            let (_folder, host) = tree(&[(path, ""), (DEFAULTS, "")]);
            assert_eq!(reason(&look(&host, cmdline, None).loader), told);
        }
    }
}

/// Distributions keep the folder of the menu, of entries and the partition of the firmware for root alone: an ordinary
/// user was told that the menu is not here, or to give arguments by hand.
#[test]
fn what_is_in_a_folder_of_root_is_not_told_to_be_missing() {
    let told = |mut files: Vec<(&'static str, &'static str)>, file: &str| {
        let meta = format!("name = \"box\"\nroot = false\n[unreadable]\n\"{file}\" = \"EACCES\"\n");
        let meta = [planish_skip::MACHINE, meta.as_str()].concat().leak();
        files.push(("meta.toml", meta));
        files.push(("/proc/sys/vm/swappiness", "60\n"));
        loader(&files)
    };
    let of = |folder: &str, loader: BootLoader| {
        assert!(reason(&loader).starts_with(&format!("cannot read {folder}: ")), "{loader:?}");
        let BootLoader::Unknown { cure, .. } = loader else { panic!("unknown") };
        assert_eq!(cure, "ask as root: sudo planish ...", "{folder}");
    };
    of("/boot/grub", told(vec![(DEFAULTS, "")], "/boot/grub/grub.cfg"));
    of("/boot/grub2", told(Vec::new(), "/boot/grub2/grub.cfg"));
    of("/efi/loader", told(vec![(DEFAULTS, "")], "/efi/loader/loader.conf"));
    let mut entries = rocky(ENTRY);
    entries.retain(|(path, _)| !path.starts_with("/boot/loader/entries"));
    let hidden = format!("/boot/loader/entries/{}.conf", planish_boot::once::FILE_ID);
    of("/boot/loader/entries", told(entries, &hidden));
    // Where the folder may be looked at, nothing is in it.
    assert!(why(&[(DEFAULTS, "")]).ends_with("its menu is not here"));
    // No right helps where reading fails.
    let mut files = debian("");
    files.remove(0);
    files.push(("/boot/grub/grub.cfg/x", ""));
    let BootLoader::Unknown { cure, .. } = loader(&files) else { panic!("unknown") };
    assert_eq!(cure, "see to it that /boot/grub/grub.cfg can be read");
}

#[test]
fn a_menu_that_is_left_over_is_not_believed() {
    let mut files = debian("GRUB_CMDLINE_LINUX_DEFAULT=quiet\n");
    assert!(matches!(without_image(&files), BootLoader::Known(_)), "it is told as unproven");
    files.push(("/etc/lilo.conf", ""));
    assert!(matches!(loader(&files), BootLoader::Known(_)), "GRUB gave the path of the kernel");
    assert!(reason(&without_image(&files)).starts_with("LILO starts"));
    let (_folder, host) = tree(&files);
    assert!(reason(&look(&host, "BOOT_IMAGE=Linux ro", None).loader).starts_with("LILO starts"));
    let left = "\u{7}\0\0\0s\0y\0s\0t\0e\0m\0d\0-\0b\0o\0o\0t\0 \x002\x005\x002\0";
    files.push((super::LOADER_INFO, left));
    assert!(why(&files).starts_with("systemd-boot started this machine, and beside /boot/grub/grub.cfg"));
    files.push(("/sys/firmware/efi/efivars/StubInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f", left));
    assert!(why(&files).starts_with("a unified kernel image started this machine"));
}

#[test]
fn a_menu_alone_is_no_sign_that_grub_started_this_kernel() {
    let defaults = "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n";
    let unproven = |loader: BootLoader| match loader {
        BootLoader::Known(files) => files.unproven,
        other => panic!("{other:?}"),
    };
    for mut files in [debian(defaults), rocky(ENTRY)] {
        assert_eq!(unproven(loader(&files)), None, "its own word");
        let menu = files[0].0;
        let Astray { reason, cure } = unproven(without_image(&files)).expect("nothing but files");
        assert!(reason.contains("BOOT_IMAGE=") && reason.contains(menu) && !cure.is_empty(), "{reason}");
        // LILO's label is no path of a kernel.
        let (_folder, host) = tree(&files);
        assert!(unproven(look(&host, "BOOT_IMAGE=Linux ro", None).loader).is_some());
        files.push((super::LOADER_INFO, "\u{7}\0\0\0G\0R\0U\0B\0 \x002\0.\x001\x002\0"));
        assert_eq!(unproven(without_image(&files)), None, "what it left in the firmware");
    }
}

#[test]
fn a_loader_whose_files_are_not_mounted_is_named() {
    let mounts = |text| ("/proc/mounts", text);
    let root = mounts("/dev/sda2 / ext4 rw 0 0\n");
    let table = ("/etc/fstab", "# boot\n/dev/sda2 / ext4 defaults 0 1\n/dev/sda1 /boot/ ext4 noauto 0 2\n");
    let (_folder, host) = tree(&[root, table]);
    let BootLoader::Unknown { reason: told, cure } = look(&host, "", None).loader else { panic!("unknown") };
    assert_eq!(told, "/boot is in /etc/fstab:3 and not mounted, so that its files are not here");
    assert_eq!(cure, "mount /boot");
    // What lies below the place of the mount is an old copy.
    let mut files = debian("GRUB_CMDLINE_LINUX_DEFAULT=quiet\n");
    files.extend([root, table]);
    assert!(why(&files).starts_with("/boot is in /etc/fstab:3"));
    let last = files.len() - 2;
    files[last] = mounts("/dev/sda2 / ext4 rw 0 0\n/dev/sda1 /boot ext4 rw 0 0\n");
    assert!(matches!(loader(&files), BootLoader::Known(_)));
    files.remove(last);
    assert!(matches!(loader(&files), BootLoader::Known(_)), "nobody tells what is mounted");
    let firmware = ("/etc/fstab", "/dev/sda1 /boot/efi vfat umask=0077 0 1\n");
    assert!(reason(&without_image(&[root, firmware])).starts_with("/boot/efi is in /etc/fstab:1 and not"));
    let mut files = debian("GRUB_CMDLINE_LINUX_DEFAULT=quiet\n");
    files.extend([root, firmware]);
    assert!(matches!(loader(&files), BootLoader::Known(_)), "the menu of GRUB is not on it");
}

#[test]
fn signs_of_a_loader_are_enough_to_refuse() {
    assert!(why(&[(DEFAULTS, "")]).starts_with("GRUB started this machine (BOOT_IMAGE= on its command line"));
    assert!(why(&[]).starts_with("a boot loader started this machine, GRUB as it seems"));
    assert!(reason(&without_image(&[(DEFAULTS, "")])).starts_with("GRUB is set up here (/etc/default/grub)"));
    let menu = ("/boot/efi/EFI/fedora/grub.cfg", "");
    assert!(why(&[menu]).starts_with("GRUB starts this machine by /boot/efi/EFI/fedora/grub.cfg"));
    assert!(matches!(without_image(&[]), BootLoader::Outside { .. }));
}

#[test]
fn an_image_may_be_what_systemd_boot_takes_where_nothing_names_an_entry() {
    let mut files = vec![
        ("/efi/EFI/systemd/systemd-bootx64.efi", ""),
        ("/efi/loader/entries/arch.conf", "title Arch\nlinux /vmlinuz\noptions ro nosmt\n"),
    ];
    let line = "/efi/loader/entries/arch.conf:3";
    assert_eq!(persisted(&files, "boot.nosmt"), said("1", line, None));
    files.push(("/efi/EFI/Linux/arch.efi", ""));
    assert_eq!(persisted(&files, "boot.nosmt"), None);
    files.push(("/efi/loader/loader.conf", "default arch.conf\n"));
    assert_eq!(persisted(&files, "boot.nosmt"), said("1", line, None));
}

#[test]
fn what_is_not_known_is_said() {
    assert!(why(&[("/boot/extlinux.conf", "")]).starts_with("extlinux starts this machine"));
    let kernel = without_image(&[("/boot/vmlinuz-6.12", "")]);
    assert!(reason(&kernel).starts_with("/boot has vmlinuz-6.12"));
    assert!(why(&[("/boot/grub/grub.cfg", "set timeout=5\n")]).contains("has no entry of this system"));
    assert!(why(&[("/boot/grub/grub.cfg", MENU)]).ends_with("and /etc/default/grub is not"));
    assert!(why(&[("/boot/grub/grub.cfg", MENU), (DEFAULTS, "")]).starts_with("no program here makes"));
    assert!(why(&[("/boot/grub2/grub.cfg", READS)]).contains("has none that may be read"));
    let firmware = without_image(&[("/sys/firmware/efi/efivars/x", "")]);
    assert!(reason(&firmware).starts_with("the firmware starts"));
    assert!(matches!(without_image(&[]), BootLoader::Outside { .. }));
    let (_folder, host) = tree(&debian(""));
    let inside = look(&host, "", Some("/.dockerenv is there")).loader;
    assert!(matches!(inside, BootLoader::Outside { .. }), "a container changes no boot loader: {inside:?}");
}

/// A menu whose head names a default, with an entry of a script of the administrator's.
fn menu_of(default: &str) -> &'static str {
    let recovery = MENU.replace("quiet isolcpus=1", "single").replace("GNU/Linux", "(recovery mode)");
    let custom = "### BEGIN /etc/grub.d/40_custom ###\nmenuentry 'mine' {\n\tlinux /v ro\n}\nmenuentry 'Windows' {\n\
        \tchainloader +1\n}\n### END /etc/grub.d/40_custom ###\n";
    format!("set default=\"{default}\"\n{MENU}{recovery}{custom}").leak()
}

#[test]
fn what_a_menu_is_told_to_boot_is_the_next_boot_and_not_its_first_entry() {
    let ours = "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT isolcpus=1\"\n";
    let own = "/etc/default/grub.d/90-planish.cfg";
    let with = |default: &str| {
        let mut files = debian("GRUB_DEFAULT=saved\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n");
        files[0].1 = menu_of(default);
        files.push((own, ours));
        files
    };
    let normal = said("1", "/etc/default/grub.d/90-planish.cfg:1", None);
    for default in ["0", "gone", "7", "Debian GNU/Linux", "Windows", "${saved_entry}"] {
        assert_eq!(persisted(&with(default), "boot.isolcpus"), normal, "{default}");
        let BootLoader::Known(files) = loader(&with(default)) else { panic!("{default}") };
        assert_eq!(files.astray, None, "{default}");
    }
    for (default, line) in [("1", 9), ("Debian (recovery mode)", 9), ("mine", 14)] {
        let lacking = said("(not given)", &format!("/boot/grub/grub.cfg:{line}"), None);
        assert_eq!(persisted(&with(default), "boot.isolcpus"), lacking, "{default}");
        let BootLoader::Known(files) = loader(&with(default)) else { panic!("{default}") };
        let astray = files.astray.expect("no normal entry");
        assert!(astray.reason.contains(&format!("/boot/grub/grub.cfg:{line}")), "{astray:?}");
    }
    let mut saved = with("${saved_entry}");
    saved.push(("/boot/grub/grubenv", block("saved_entry=mine\n")));
    assert_eq!(persisted(&saved, "boot.isolcpus"), said("(not given)", "/boot/grub/grub.cfg:14", None));
}

#[test]
fn a_menu_that_is_cut_off_or_has_zeroes_is_named_whatever_it_reads() {
    let mut files = rocky(ENTRY);
    for (menu, told) in [
        ("### BEGIN /etc/grub.d/10_linux ###\nblscfg\n", "what /etc/grub.d/10_linux wrote has no end"),
        ("blscfg\nmenuentry 'x' {\n\tlinux /v ro", "menuentry 'x' has no end"),
        ("blscfg\n\0\0\0\0", "it has bytes of zero in it"),
    ] {
        files[0].1 = menu;
        assert!(why(&files).contains(told), "{}", why(&files));
    }
    let mut files = rocky("title R\nlinux /v\noptions ro\n\0\0\0");
    assert!(why(&files).starts_with("/boot/loader/entries/m-5.14.0-570.conf: it is cut off: it has bytes"));
    files = rocky("title R\nlinux /v\noptions ro \0\0\0 quiet\n");
    assert!(why(&files).starts_with("/boot/loader/entries/m-5.14.0-570.conf: it is cut off: it has bytes"));
}

#[test]
fn entries_in_two_folders_of_systemd_boot_are_refused_with_both_named() {
    let entry = |name| format!("title {name}\nlinux /v\noptions ro\n").leak() as &str;
    let mut files = vec![
        ("/efi/EFI/systemd/systemd-bootx64.efi", ""),
        ("/efi/loader/entries/old.conf", entry("old")),
        ("/boot/loader/entries/zdeb-6.12.conf", entry("new")),
    ];
    let told = "/efi/loader/entries and /boot/loader/entries both have entries, and systemd-boot takes one out of all";
    assert_eq!(why(&files), told);
    files[2].1 = "title Firmware\nefi /x.efi\n";
    assert!(matches!(loader(&files), BootLoader::Known(_)), "none of them starts Linux");
    files.remove(1);
    files[1].1 = entry("new");
    assert_eq!(edited(&loader(&files)), [("/boot/loader/entries/zdeb-6.12.conf", BootFormat::Entry)]);
    // One partition that is seen at two places.
    let (folder, host) = tree(&files);
    std::os::unix::fs::symlink("/boot/loader", folder.path().join("efi/loader")).expect("a link");
    assert!(matches!(look(&host, "", None).loader, BootLoader::Known(_)));
}

#[test]
fn entries_that_systemd_boot_cannot_read_are_none_of_its_own() {
    let entry = "title Debian\nlinux /v\noptions ro\n";
    let with = |mounts: &'static str| {
        [
            ("/boot/efi/EFI/systemd/systemd-bootx64.efi", ""),
            ("/boot/efi/loader/entries/new.conf", entry),
            ("/boot/loader/entries/old.conf", entry),
            ("/proc/mounts", mounts),
        ]
    };
    let own = [("/boot/efi/loader/entries/new.conf".to_owned(), BootFormat::Entry)];
    let is_own = |files: &[(&str, &str)]| match loader(files) {
        BootLoader::Known(files) => {
            files.edited.into_iter().map(|file| (file.path, file.format)).eq(own.iter().cloned())
        }
        _ => false,
    };
    // A folder of the root, and a file system that the firmware has no driver for.
    let of_root = "/dev/vda2 / ext4 rw 0 0\n/dev/vda1 /boot/efi vfat rw 0 0\n";
    let apart = "/dev/vda3 / xfs rw 0 0\n/dev/vda2 /boot ext4 rw 0 0\n/dev/vda1 /boot/efi vfat rw 0 0\n";
    assert!(is_own(&with(of_root)) && is_own(&with(apart)));
    // One that it reads, and one that a driver of systemd-boot reads.
    for mounts in [
        "/dev/vda3 / xfs rw 0 0\n/dev/vda2 /boot vfat rw 0 0\n/dev/vda1 /boot/efi vfat rw 0 0\n",
        "/dev/vda3 / xfs rw 0 0\nsystemd-1 /boot autofs rw 0 0\n/dev/vda1 /boot/efi vfat rw 0 0\n",
        "systemd-1 /boot autofs rw 0 0\n/dev/vda2 /boot vfat rw 0 0\n/dev/vda1 /boot/efi vfat rw 0 0\n",
    ] {
        assert!(why(&with(mounts)).contains("both have entries"), "{mounts}");
    }
    let driver = ("/boot/efi/EFI/systemd/drivers/ext4x64.efi", "");
    let files: Vec<_> = with(apart).into_iter().chain([driver]).collect();
    assert!(why(&files).contains("both have entries"));
}

#[test]
fn a_drop_in_counts_whatever_its_characters_are() {
    let own = "/etc/default/grub.d/90-planish.cfg";
    let (folder, host) = tree(&debian("GRUB_CMDLINE_LINUX_DEFAULT=quiet\n"));
    let text = b"# caf\xe9\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n";
    testing::write(folder.path(), "/etc/default/grub.d/95-x.cfg", text);
    let ours = planish_boot::drop_in_line("isolcpus=1");
    let by = "/etc/default/grub.d/95-x.cfg:2".to_owned();
    let sources = super::grub::with_ours(&host, own, &ours);
    assert_eq!(sources.lost, [("isolcpus=1".to_owned(), by)]);
    // One that nobody can read may assign anew.
    std::fs::create_dir(folder.path().join("etc/default/grub.d/96-y.cfg")).expect("a folder");
    let unread = look(&host, "BOOT_IMAGE=/boot/vmlinuz quiet", None).loader;
    assert!(reason(&unread).starts_with("cannot read /etc/default/grub.d/96-y.cfg"), "{unread:?}");
}

#[test]
fn the_running_line_says_nothing_of_a_boot_parameter_where_the_loader_is_not_known() {
    let mut files = rocky(ENTRY);
    let stray = ("/boot/loader/entries/stray.conf", "");
    files.push(("/proc/cmdline", "BOOT_IMAGE=/v nohz_full=2-3 transparent_hugepage=never\n"));
    files.push(("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"));
    assert!(persisted(&files, "boot.nohz_full").is_some());
    files.push(stray);
    assert_eq!(persisted(&files, "boot.nohz_full"), None);
    assert_eq!(persisted(&files, "boot.transparent_hugepage"), None);
    assert!(why(&files).starts_with(stray.0));
    // A kernel that comes from outside gets what it got.
    let outside = [files[6]];
    let running = said("2-3", "kernel command line: nohz_full=2-3", None);
    assert_eq!(persisted(&outside, "boot.nohz_full"), None, "signs of GRUB");
    let outside = [("/proc/cmdline", "nohz_full=2-3\n")];
    assert_eq!(persisted(&outside, "boot.nohz_full"), running);
}

#[test]
fn lines_of_a_loader_that_is_not_known_any_more_are_found_all_the_same() {
    let mut files = rocky(ENTRY);
    files.push(("/boot/loader/entries/stray.conf", ""));
    files.push(("/etc/kernel/cmdline", "ro quiet\n"));
    let (_folder, host) = tree(&files);
    let loader = look(&host, "BOOT_IMAGE=/boot/vmlinuz quiet", None).loader;
    reason(&loader);
    let lines = super::lines::boot_lines(&host, &loader);
    let told: Vec<String> = lines.iter().map(|line| format!("{}:{}", line.path, line.line)).collect();
    let entries = ["/boot/loader/entries/m-5.14.0-570.conf:4", "/boot/loader/entries/m-5.14.0-70.conf:4"];
    let others = ["/etc/kernel/cmdline:1", "/boot/grub2/grubenv:4"];
    for line in entries.iter().chain(&others) {
        assert!(told.iter().any(|told| told == line), "{line}: {told:?}");
    }
    assert!(!told.iter().any(|line| line.contains("rescue")), "{told:?}");
    let outside = BootLoader::Outside { reason: String::new() };
    assert_eq!(super::lines::boot_lines(&host, &outside), []);
}
