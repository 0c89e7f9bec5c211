//! Where a trial boot can be made, and why not elsewhere.

use planish_model::{BootFiles, BootLoader};

use super::*;
use crate::testing;

const MENU: &str = "/boot/grub/grub.cfg";
const ENV: &str = "/boot/grub/grubenv";
const MOUNTS: &str = "/proc/self/mountinfo";
const HEAD: &str =
    "load_env\nset default=\"${next_entry}\"\nset next_entry=\nsave_env next_entry\nset default=\"0\"\n";
const LINUX: &str =
    "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'Debian' {\n\tlinux /vmlinuz root=1 ro\n}\n";
const CUSTOM: &str = "source ${config_directory}/custom.cfg\n";
const PLAIN_DISK: &str = "22 1 254:1 / / rw shared:1 - ext4 /dev/vda1 rw\n";

fn host(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Host) {
    let meta = format!("{}name = \"model\"\n", planish_skip::MACHINE);
    testing::host(&[&[("/meta.toml", meta.as_bytes())], files].concat())
}

fn loader(name: &str) -> BootLoader {
    let name = name.to_owned();
    BootLoader::Known(BootFiles {
        name,
        own: None,
        edited: Vec::new(),
        generator: None,
        is_next_untold: false,
        makes_menu: false,
        astray: None,
        unproven: None,
    })
}

fn reason(files: &[(&str, &[u8])], name: &str) -> String {
    let (_root, host) = host(files);
    let refusal = look(&host, &loader(name), "nosmt").expect_err("refused");
    assert!(!refusal.cure.is_empty());
    refusal.reason
}

#[test]
fn grub_gets_an_entry_beside_its_menu_and_the_name_of_it() {
    let menu = format!("{HEAD}{LINUX}{CUSTOM}");
    let (_root, host) = host(&[(MENU, menu.as_bytes()), (MOUNTS, PLAIN_DISK.as_bytes())]);
    let once = look(&host, &loader("GRUB"), "nosmt").expect("a machine like most");
    let told: Vec<(OnceFormat, &str)> =
        once.writes.iter().map(|write| (write.format, write.path.as_str())).collect();
    assert_eq!(told, [(OnceFormat::Menu, "/boot/grub/custom.cfg"), (OnceFormat::Block, ENV)]);
    assert!(once.writes[0].text.contains("/vmlinuz root=1 ro nosmt\n"), "{}", once.writes[0].text);
    assert_eq!((once.copied.as_str(), once.writes[1].text.as_str()), ("Debian", "planish-trial"));
}

#[test]
fn where_grub_could_not_forget_the_name_it_is_not_told() {
    let menu = format!("{HEAD}{LINUX}{CUSTOM}");
    let on = |line: &str| reason(&[(MENU, menu.as_bytes()), (MOUNTS, line.as_bytes())], "GRUB");
    for (line, told) in [
        ("22 1 0:30 / / rw - btrfs /dev/vda1 rw\n", "on btrfs"),
        ("22 1 254:1 / / rw - ext4 /dev/mapper/vg-root rw\n", "/dev/mapper/vg-root"),
        ("22 1 9:0 / / rw - ext4 /dev/md0 rw\n", "/dev/md0"),
        ("22 1 254:1 / / rw - ext4 /dev/vda1 rw,data=journal\n", "journal"),
        ("22 1 254:1 / / rw - ext4 /dev/vda1 rw\n23 22 0:31 / /boot rw - zfs pool rw\n", "on zfs"),
        ("22 1 254:1 / / rw - ext4 /dev/root rw\n", "/dev/root"),
        ("", "nothing tells"),
        ("odd\n", "nothing tells"),
    ] {
        let why = on(line);
        assert!(why.contains(told), "{line}: {why}");
    }
    // A boot partition of its own counts, and one whose name only begins alike does not.
    let plain = "22 1 253:0 / / rw - ext4 /dev/mapper/root rw\n23 22 254:1 / /boot rw - ext4 /dev/vda1 rw\n";
    let odd = "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n23 22 0:31 / /boo rw - zfs pool rw\n";
    for line in [plain, odd] {
        let (_root, host) = host(&[(MENU, menu.as_bytes()), (MOUNTS, line.as_bytes())]);
        assert!(look(&host, &loader("GRUB"), "nosmt").is_ok(), "{line}");
    }
    let other = |menu: &str| reason(&[(MENU, menu.as_bytes()), (MOUNTS, PLAIN_DISK.as_bytes())], "GRUB");
    assert!(other(&format!("load_env\nset default=\"0\"\n{LINUX}{CUSTOM}")).contains("next_entry"));
    assert!(other(&format!("{HEAD}{LINUX}")).contains("custom.cfg"));
    let body = "# GRUB Environment Block\nnext_entry=theirs\n";
    let block = format!("{body}{}", "#".repeat(1024 - body.len()));
    let files: [(&str, &[u8]); 3] =
        [(MENU, menu.as_bytes()), (MOUNTS, PLAIN_DISK.as_bytes()), (ENV, block.as_bytes())];
    assert!(reason(&files, "GRUB").contains("`theirs`"));
}

/// What is copied where GRUB reads entries of files, or why nothing is.
fn of_files(default: &str, block: &[u8], before: &str) -> Result<String, String> {
    let head = HEAD.replace("set default=\"0\"", &format!("set default=\"{default}\""));
    let menu = format!("{head}{before}blscfg\n{CUSTOM}");
    let entry = |version: &str, title: &str| {
        format!("title {title}\nversion {version}\nlinux /vmlinuz-{version}\noptions root=1 ro\n")
            .into_bytes()
    };
    let (old, new) = (entry("5.14.0-70", "Rocky (5.14.0-70)"), entry("5.14.0-427", "Rocky (5.14.0-427)"));
    let files: Vec<(&str, &[u8])> = vec![
        ("/boot/grub2/grub.cfg", menu.as_bytes()),
        ("/boot/grub2/grubenv", block),
        (MOUNTS, PLAIN_DISK.as_bytes()),
        ("/boot/loader/entries/m-5.14.0-70.conf", &old),
        ("/boot/loader/entries/m-5.14.0-427.conf", &new),
    ];
    let (_root, host) = host(&files);
    let looked = look(&host, &loader("GRUB with entries"), "nosmt");
    looked.map(|once| once.copied).map_err(|refusal| refusal.reason)
}

#[test]
fn the_default_of_entries_is_found_as_grub_finds_it_or_refused() {
    let block = |saved: &str| {
        let body = format!("# GRUB Environment Block\nsaved_entry={saved}\n");
        format!("{body}{}", "#".repeat(1024 - body.len())).into_bytes()
    };
    let saved = |name: &str| of_files("${saved_entry}", &block(name), "");
    let (old, new) = ("Rocky (5.14.0-70)".to_owned(), "Rocky (5.14.0-427)".to_owned());
    for (name, copied) in [
        ("", &new),
        ("0", &new),
        ("1", &old),
        ("m-5.14.0-70", &old),
        ("Rocky (5.14.0-70)", &old),
        ("m-5.14.0-427", &new),
    ] {
        assert_eq!(saved(name).as_ref(), Ok(copied), "{name}");
    }
    for name in ["2", "m-5.14.0", "Advanced>1", "gone"] {
        let why = saved(name).expect_err(name);
        assert!(why.contains(&format!("`{name}`")), "{why}");
    }
    assert_eq!(of_files("1", &block("m-5.14.0-427"), ""), Ok(old.clone()), "GRUB_DEFAULT=1");
    let other = "menuentry 'Other' {\n\tchainloader +1\n}\n";
    let why = of_files("1", &block(""), other).expect_err("another entry is the first");
    assert!(why.contains("number 1"), "{why}");
    assert_eq!(of_files("m-5.14.0-70", &block(""), other), Ok(old), "a name counts nothing");
    assert!(of_files("${saved_entry}", &[0xff; 1024], "").is_err(), "a block that cannot be read");
}

/// A variable of the firmware with a text.
fn text(text: &str) -> Vec<u8> {
    let units = text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes);
    [7, 0, 0, 0].into_iter().chain(units).collect()
}

const ARCH: &[u8] = b"title Arch\nlinux /vmlinuz\noptions root=1 ro\n";

#[test]
fn systemd_boot_gets_a_file_and_a_variable_where_it_says_what_it_can_do() {
    let features = |bits: u64| [&7_u32.to_le_bytes()[..], &bits.to_le_bytes()[..]].concat();
    let (efi, arch) = ("/efi/EFI/systemd/systemd-bootx64.efi", "/efi/loader/entries/arch.conf");
    let told = variable("LoaderFeatures");
    let all = features(0xffff);
    let base: Vec<(&str, &[u8])> = vec![(efi, b""), (arch, ARCH), (&told, &all)];
    let (_root, whole) = host(&base);
    let once = look(&whole, &loader("systemd-boot"), "nosmt").expect("it says so");
    let paths: Vec<&str> = once.writes.iter().map(|write| write.path.as_str()).collect();
    let named = variable("LoaderEntryOneShot");
    assert_eq!(paths, ["/efi/loader/entries/AAA-planish-trial.conf", named.as_str()]);
    assert!(once.writes[0].text.ends_with("options root=1 ro nosmt\n"));
    assert_eq!(once.writes[1].text, "AAA-planish-trial.conf");

    let with = |more: &[(&str, &[u8])]| reason(&[&base[..], more].concat(), "systemd-boot");
    for bits in [0, 1 << 3, 1 << 8] {
        let few = features(bits);
        assert!(with(&[(&told, &few)]).contains("LoaderFeatures"), "{bits:x}");
    }
    assert!(reason(&base[..2], "systemd-boot").contains("LoaderFeatures"), "no efivarfs");
    let theirs = text("theirs.conf");
    assert!(with(&[(&named, &theirs)]).contains("`theirs.conf`"));
    assert!(with(&[("/efi/loader/loader.conf", b"default *\n")]).contains("become the default"));
    assert!(with(&[("/efi/loader/entries/AAA-a.conf", ARCH)]).contains("become the default"));
    for before in ["a", "A-x", "A.x", "-x", "arch+0", "arch+0-3"] {
        let path = format!("/efi/loader/entries/{before}.conf");
        assert!(with(&[(&path, ARCH)]).contains("become the default"), "{before}");
    }
    let zen = b"title Zen\nlinux /vmlinuz-zen\noptions root=1 ro\n";
    let copied = |more: &[(&str, &[u8])]| {
        let zen: (&str, &[u8]) = ("/efi/loader/entries/zen.conf", zen);
        let (_root, host) = host(&[&base[..], &[zen], more].concat());
        look(&host, &loader("systemd-boot"), "nosmt").map(|once| once.copied).map_err(|why| why.reason)
    };
    let (last, config) = (variable("LoaderEntryLastBooted"), "/efi/loader/loader.conf");
    assert_eq!(copied(&[]), Ok("Zen".to_owned()), "the last name is shown first");
    assert_eq!(copied(&[(config, b"default arch*\n")]), Ok("Arch".to_owned()));
    assert!(copied(&[(config, b"default gone\n")]).expect_err("no entry").contains("`gone`"));
    assert!(copied(&[(config, b"default @saved\n")]).expect_err("nothing saved").contains("booted last"));
    let saved = text("arch.conf");
    assert_eq!(copied(&[(config, b"default @saved\n"), (&last, &saved)]), Ok("Arch".to_owned()));
    assert!(copied(&[(config, b"default @other\n")]).expect_err("unknown").contains("`@other`"));
    let odd: &[u8] = &[7, 0, 0, 0, 0, 0xd8, 0, 0];
    assert!(with(&[(&named, odd)]).contains("not understood"), "it may be somebody's");
    let image = text("linux-6.12.efi");
    assert!(with(&[(&variable("LoaderEntrySelected"), &image)]).contains("linux-6.12.efi"));
}

#[test]
fn no_loader_is_no_trial_boot() {
    let (_root, host) = host(&[]);
    let outside = BootLoader::Outside { reason: "a container".to_owned() };
    assert_eq!(look(&host, &outside, "nosmt").expect_err("refused").reason, "a container");
    let (reason, cure) = ("left over".to_owned(), "by hand".to_owned());
    let mut unproven = loader("GRUB");
    if let BootLoader::Known(files) = &mut unproven {
        files.unproven = Some(Astray { reason: reason.clone(), cure: cure.clone() });
    }
    assert_eq!(look(&host, &unproven, "nosmt"), Err(OnceRefusal { reason, cure }), "whatever its menu does");
    let (reason, cure) = ("extlinux".to_owned(), "by hand".to_owned());
    let unknown = BootLoader::Unknown { reason: reason.clone(), cure: cure.clone() };
    assert_eq!(look(&host, &unknown, "nosmt"), Err(OnceRefusal { reason, cure }));
}

#[test]
fn the_default_is_told_as_it_is_now_and_the_mark_of_a_trial_boot_wherever_it_has_come() {
    let menu = format!("{HEAD}{LINUX}{CUSTOM}");
    let marked = format!("ro quiet {}", planish_model::marker("a1"));
    let default = format!("GRUB_CMDLINE_LINUX=\"{marked}\"\n");
    let entry = format!("title N\nlinux /vmlinuz-2\noptions {marked}\n");
    let comment = format!("GRUB_DEFAULT=0\n # it was {marked}\n");
    let files: [(&str, &[u8]); 7] = [
        (MENU, menu.as_bytes()),
        ("/boot/grub/custom.cfg", entry.as_bytes()),
        ("/efi/loader/entries/AAA-planish-trial.conf", entry.as_bytes()),
        ("/boot/loader/entries/new.conf", entry.as_bytes()),
        ("/etc/kernel/cmdline", marked.as_bytes()),
        ("/etc/default/grub", comment.as_bytes()),
        ("/etc/default/grub.d/x.cfg", default.as_bytes()),
    ];
    let (_root, host) = host(&files);
    let found = carried_over(&host);
    let told: Vec<(&str, &str)> =
        found.iter().map(|line| (line.source.as_str(), line.name.as_str())).collect();
    // The entry for once itself is none that later boots get.
    assert_eq!(
        told,
        [
            ("/etc/kernel/cmdline:1", "a1"),
            ("/etc/default/grub.d/x.cfg:1", "a1"),
            ("/boot/loader/entries/new.conf:3", "a1"),
        ]
    );
    let entry = default_entry(&host, &loader("GRUB")).expect("a menu tells it");
    assert_eq!((entry.title.as_str(), entry.line.as_str()), ("Debian", "/vmlinuz root=1 ro"));
    assert!(!entry.is_marked() && entry.to_string().contains(MENU), "{entry}");
    assert_eq!(default_entry(&host, &BootLoader::default()), None);
}
