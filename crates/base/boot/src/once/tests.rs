//! Entries for once: copied, named, and taken out again to the byte.

use proptest::prelude::*;

use super::*;

/// The head that `00_header` of GRUB 2.06 writes, as far as it matters.
const HEAD: &str = "### BEGIN /etc/grub.d/00_header ###\nif [ -s $prefix/grubenv ]; then\n  set have_grubenv=true\n  \
    load_env\nfi\nif [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n   set next_entry=\n   \
    save_env next_entry\n   set boot_once=true\nelse\n   set default=\"0\"\nfi\nfunction load_video {\n  true\n}\n\
    ### END /etc/grub.d/00_header ###\n";
const LINUX: &str = "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'Debian GNU/Linux' --class debian --unrestricted \
    $menuentry_id_option 'gnulinux-simple-1' {\n\tload_video\n\tsavedefault\n\tif [ x$grub_platform = xxen ]; then \
    insmod xzio; fi\n\tlinux\t/vmlinuz-6.12 root=UUID=1 ro  quiet\n\tinitrd\t/initrd.img-6.12\n}\nsubmenu \
    'Advanced options' $menuentry_id_option 'gnulinux-advanced-1' {\n\tmenuentry 'Debian, with Linux 6.12' \
    $menuentry_id_option 'gnulinux-6.12-advanced-1' {\n\t\tlinux\t/vmlinuz-6.12 root=UUID=1 ro\n\t}\n\tmenuentry \
    'Debian, with Linux 6.1' $menuentry_id_option 'gnulinux-6.1-advanced-1' {\n\t\tlinux\t/vmlinuz-6.1 root=UUID=1 \
    ro\n\t}\n}\n### END /etc/grub.d/10_linux ###\n### BEGIN /etc/grub.d/30_os-prober ###\nmenuentry 'Other' {\n\t\
    linux /vmlinuz root=/dev/sdb1\n}\n### END /etc/grub.d/30_os-prober ###\n";
const CUSTOM: &str = "### BEGIN /etc/grub.d/41_custom ###\nif [ -f  ${config_directory}/custom.cfg ]; then\n  source \
    ${config_directory}/custom.cfg\nfi\n### END /etc/grub.d/41_custom ###\n";

fn menu(default: &str) -> String {
    format!("{HEAD}{LINUX}{CUSTOM}").replace("set default=\"0\"", &format!("set default=\"{default}\""))
}

#[test]
fn a_menu_must_clear_the_name_before_it_boots_it() {
    assert!(takes_next_entry(&menu("0")) && reads_custom(&menu("0")));
    for missing in ["load_env", "set default=\"${next_entry}\"", "set next_entry=", "save_env next_entry"] {
        assert!(!takes_next_entry(&menu("0").replace(missing, "true")), "{missing}");
    }
    // Cleared behind the entries, it is cleared by nobody.
    let late = format!("{LINUX}{HEAD}");
    assert!(!takes_next_entry(&late));
    let kept_elsewhere = menu("0").replace("save_env next_entry", "save_env saved_entry");
    assert!(!takes_next_entry(&kept_elsewhere));
    assert!(!reads_custom(&format!("{CUSTOM}{LINUX}")), "it would be the first entry");
    assert!(!reads_custom(&format!("{HEAD}{LINUX}")));
}

#[test]
fn the_default_entry_is_copied_and_nothing_else() {
    let copy = of_menu(&menu("0"), None, "nosmt planish.trial=1").expect("a sound menu");
    assert_eq!(copy.title, "Debian GNU/Linux");
    let expected = "menuentry 'planish trial boot: Debian GNU/Linux' --unrestricted --id 'planish-trial' {\n\
        \tload_video\n\tif [ x$grub_platform = xxen ]; then insmod xzio; fi\n\
        \tlinux\t/vmlinuz-6.12 root=UUID=1 ro  quiet nosmt planish.trial=1\n\tinitrd\t/initrd.img-6.12\n}\n";
    assert_eq!(copy.text, expected);
    let kernel = |default: &str, saved: Option<&str>| {
        let copy = of_menu(&menu(default), saved, "nosmt").expect("a sound menu").text;
        let line = copy.lines().find(|line| line.trim_start().starts_with("linux")).expect("a kernel").trim();
        line.split_whitespace().nth(1).expect("its file").to_owned()
    };
    assert_eq!(kernel("1>1", None), "/vmlinuz-6.1");
    assert_eq!(kernel("gnulinux-advanced-1>gnulinux-6.1-advanced-1", None), "/vmlinuz-6.1");
    assert_eq!(kernel("Advanced options>Debian, with Linux 6.1", None), "/vmlinuz-6.1");
    assert_eq!(kernel("1", None), "/vmlinuz-6.12", "a menu stands for its first entry");
    assert_eq!(kernel("${saved_entry}", None), "/vmlinuz-6.12");
    assert_eq!(kernel("${saved_entry}", Some("")), "/vmlinuz-6.12");
    let saved = Some("gnulinux-advanced-1>gnulinux-6.1-advanced-1");
    assert_eq!(kernel("${saved_entry}", saved), "/vmlinuz-6.1");
}

#[test]
fn the_entry_that_is_started_is_found_as_grub_finds_it() {
    let started = |default: &str, saved: Option<&str>| {
        let found = started_by_menu(&menu(default), saved)?;
        let menu = menu(default).replace("ro  quiet", "ro quiet");
        let line = menu.lines().nth(found.line - 1).expect("a line").trim();
        assert!(line.starts_with("linux") && line.ends_with(&found.arguments), "{line}");
        Some(found.title)
    };
    let first = Some("Debian GNU/Linux".to_owned());
    assert_eq!(started("0", None), first);
    assert_eq!(started("Other", None).as_deref(), Some("Other"), "also one of another script");
    assert_eq!(started("1>1", None).as_deref(), Some("Debian, with Linux 6.1"));
    assert_eq!(started("gnulinux-advanced-1", None).as_deref(), Some("Debian, with Linux 6.12"));
    // What names nothing stands for the first.
    assert_eq!((started("gone", None), started("9", None)), (first.clone(), first.clone()));
    assert_eq!(started("1>gone", None).as_deref(), Some("Debian, with Linux 6.12"));
    assert_eq!(started("${saved_entry}", Some("Other")).as_deref(), Some("Other"));
    assert_eq!(started_by_menu(&format!("{LINUX}{CUSTOM}"), None).map(|found| found.title), first);
    let unquoted = menu("0").replace("set default=\"0\"", "set default=$x");
    assert_eq!(started_by_menu(&unquoted, None), None);
}

#[test]
fn menus_without_end_within_menus_are_refused_and_end_no_process() {
    let deep = menu("0") + &"submenu 'x' {\n".repeat(300_000);
    assert!(matches!(of_menu(&deep, None, "nosmt"), Err(Odd::Unknown { .. })));
    assert_eq!(default_in_menu(&deep, None), None);
    // As many as nobody has are read.
    let some = menu("0") + &"submenu 'x' {\n".repeat(16) + &"}\n".repeat(16);
    assert!(of_menu(&some, None, "nosmt").is_ok() && default_in_menu(&some, None).is_some());
}

#[test]
fn a_default_that_cannot_be_told_is_refused() {
    for default in ["2", "Other", "9", "1>9", "gone", "${fallback}"] {
        let odd = of_menu(&menu(default), None, "nosmt").expect_err(default);
        assert!(matches!(odd, Odd::Unknown { .. }), "{default}: {odd}");
    }
    let behind = menu("0").replace("ro  quiet", "ro -- single");
    assert_eq!(of_menu(&behind, None, "nosmt"), Err(Odd::ForProcess1));
    let headless = menu("0").replace("set default", "true default");
    assert!(matches!(of_menu(&headless, None, "nosmt"), Err(Odd::CutOff { .. })));
    assert!(matches!(of_menu(&menu("0"), None, "a;b"), Err(Odd::Arguments { .. })));
}

#[test]
fn an_entry_of_a_file_becomes_what_the_menu_makes_of_it() {
    let entry = "title Rocky 'x'\nversion 6.12\nlinux /vmlinuz-6.12\ninitrd /initramfs.img $tuned_initrd\n\
        options root=/dev/vda1 ro $tuned_params\ngrub_arg --unrestricted\n";
    let copy = of_entry(entry, "function load_video {\n", "nosmt").expect("whole");
    assert_eq!(
        copy.text,
        "menuentry 'planish trial boot: Rocky x' --unrestricted --id 'planish-trial' {\n\tload_video\n\t\
         set gfxpayload=keep\n\tinsmod gzio\n\tlinux ($root)/vmlinuz-6.12 root=/dev/vda1 ro $tuned_params nosmt\n\t\
         initrd ($root)/initramfs.img $tuned_initrd\n}\n"
    );
    for (more, access) in [
        ("", "--unrestricted "),
        ("grub_users $grub_users\n", "--users \"$grub_users\" "),
        ("grub_users ann,bob\n", "--users \"ann,bob\" "),
    ] {
        let text = format!("title x\nlinux /v\noptions ro\n{more}");
        let copy = of_entry(&text, "", "nosmt").expect("whole").text;
        assert!(copy.starts_with(&format!("menuentry 'planish trial boot: x' {access}--id")), "{copy}");
    }
    let odd = "title x\nlinux /v\noptions ro\ngrub_users a\"; reboot\n";
    assert!(matches!(of_entry(odd, "", "nosmt"), Err(Odd::Unknown { .. })));
    assert!(of_entry("title x\nlinux /vmlinuz\n", "", "nosmt").is_err(), "it is cut off");
    let file = file_of_entry("title A\nsort-key arch\nlinux /vmlinuz\r\noptions root=1 ro\r\n", "nosmt");
    let expected = "title planish trial boot: A\nlinux /vmlinuz\r\noptions root=1 ro nosmt\r\n";
    assert_eq!(file.expect("whole").text, expected);
}

#[test]
fn grub_is_told_and_forgets() {
    let fresh = arm(None).expect("made");
    assert_eq!((fresh.len(), armed(&fresh)), (1024, Some(MENU_ID)));
    // GRUB sets it to nothing, and leaves the name of the variable.
    let taken = |block: &str| {
        let body = block.trim_end_matches('#').replace("next_entry=planish-trial\n", "next_entry=\n");
        env::padded(&body, block.len()).expect("shorter")
    };
    assert!(
        is_fresh(&disarm(&fresh, None).expect("ours"))
            && is_fresh(&disarm(&taken(&fresh), None).expect("ours"))
    );
    let had = env::padded("# GRUB Environment Block\na=1\nnext_entry=\nb=2\n", 1024).expect("short");
    let named = arm(Some(&had)).expect("nobody wants another");
    assert!(named.contains("a=1\nnext_entry=planish-trial\nb=2\n#"));
    assert_eq!(disarm(&named, Some(&had)).as_deref(), Some(had.as_str()));
    assert_eq!(disarm(&taken(&named), Some(&had)).as_deref(), Some(had.as_str()));
    let theirs = had.replace("next_entry=\n", "next_entry=other\n");
    assert!(matches!(arm(Some(&theirs[..1024])), Err(Odd::Unknown { .. })), "somebody wants another");
    assert_eq!(disarm(&theirs[..1024], None), None);
    let full =
        env::padded(&format!("# GRUB Environment Block\na={}\n", "x".repeat(980)), 1024).expect("short");
    assert!(matches!(arm(Some(&full)), Err(Odd::NoRoom { .. })));
    assert!(matches!(arm(Some("half")), Err(Odd::CutOff { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// What was put into `custom.cfg` and into an environment, and what GRUB made of that, goes to the byte.
    #[test]
    fn an_entry_for_once_leaves_no_byte(
        text in "([a-z {}'\"#]{0,12}\n){0,5}[a-z ]{0,5}",
        lines in "([a-z]{1,6}=[a-z0-9]{0,6}\n){0,6}",
        cleared: bool,
    ) {
        let entry = "menuentry 'x' --id 'planish-trial' {\n\tlinux /vmlinuz\n}\n";
        if let Ok(edited) = add(&text, entry) {
            prop_assert!(has_entry(&edited));
            prop_assert_eq!(take_out(&edited, entry), Some(text.clone()));
        }
        let block = env::padded(&format!("# GRUB Environment Block\n{lines}"), 1024).expect("short");
        if let Ok(mut named) = arm(Some(&block)) {
            if cleared {
                let body = named.trim_end_matches('#').replace("next_entry=planish-trial\n", "next_entry=\n");
                named = env::padded(&body, 1024).expect("shorter");
            }
            prop_assert_eq!(disarm(&named, Some(&block)), Some(block));
        }
    }

    #[test]
    fn odd_menus_and_entries_are_read_without_harm(text in "\\PC{0,300}", at in 0_usize..900) {
        let whole = menu("1>0");
        let cut = whole.get(..at.min(whole.len())).unwrap_or_default();
        for text in [text.as_str(), cut, &format!("{cut}{text}")] {
            let _ = (takes_next_entry(text), reads_custom(text), of_menu(text, Some(text), "nosmt"));
            let _ = (of_entry(text, text, "nosmt"), file_of_entry(text, "nosmt"), disarm(text, Some(text)));
        }
    }
}
