//! Edits and their way back, over files as they are and over odd ones.

use proptest::prelude::*;

use crate::generated;
use crate::{
    Entry, Format, Odd, Shell, count_besides, env_value, gives, insert, insert_tagged, is_env_torn,
    refuse_odd, remove, remove_tag, remove_tagged, tags,
};

const FORMATS: [Format; 4] = [Format::GrubDefaults, Format::GrubEnv, Format::Entry, Format::KernelCmdline];

const DEFAULTS: &str = "# If you change this file, run 'update-grub' afterwards.\n\nGRUB_DEFAULT=0\n\
    GRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash\"\nGRUB_CMDLINE_LINUX='rd.lvm.lv=rl/root'\n";
const ENTRY: &str = "title Rocky Linux (5.14.0) 9.6\nversion 5.14.0\nlinux /vmlinuz-5.14.0\n\
    initrd /initramfs-5.14.0.img $tuned_initrd\noptions root=/dev/mapper/rl-root ro $tuned_params\n\
    grub_users $grub_users\n";

fn env(lines: &str) -> String {
    let body = format!("# GRUB Environment Block\n{lines}");
    let padding = "#".repeat(1024 - body.len());
    body + &padding
}

#[test]
fn a_block_that_a_power_cut_tore_is_known_by_its_sectors() {
    let before = env(&format!("note={}\nkernelopts=root=x\n", "y".repeat(462)));
    let after = insert(Format::GrubEnv, &before, "nosmt").expect("a whole block");
    let mixed = |first: &str, second: &str| format!("{}{}", &first[..512], &second[512..]);
    assert_ne!(before[..512], after[..512], "the line that changes lies in both sectors");
    for torn in [mixed(&before, &after), mixed(&after, &before)] {
        assert!(is_env_torn(&torn, &before, &after) && is_env_torn(&torn, &after, &before));
    }
    assert!(!is_env_torn(&before, &before, &after) && !is_env_torn(&after, &before, &after), "whole");
    let theirs = mixed(&before, &after).replace("note=", "mine=");
    assert!(!is_env_torn(&theirs, &before, &after), "somebody else has written since");
    assert!(!is_env_torn(&before[..512], &before, &after), "cut off");
}

#[test]
fn arguments_come_last_and_so_they_count() {
    let text = insert(Format::Entry, ENTRY, "isolcpus=2-7 nohz_full=2-7").expect("a whole entry");
    assert!(text.contains("options root=/dev/mapper/rl-root ro $tuned_params isolcpus=2-7 nohz_full=2-7\n"));
    let text = insert(Format::KernelCmdline, "root=UUID=1 ro  \r\n\n", "nosmt").expect("whole");
    assert_eq!(text, "root=UUID=1 ro nosmt  \r\n\n");
    let before = env("saved_entry=a\nkernelopts=root=/dev/vda1 ro\nboot_success=1\n");
    let text = insert(Format::GrubEnv, &before, "nosmt").expect("a whole block");
    assert_eq!((text.len(), env_value(&text, "kernelopts")), (1024, Some(("root=/dev/vda1 ro nosmt", 3))));
    let text = insert(Format::GrubDefaults, DEFAULTS, "nosmt").expect("a whole file");
    let mut shell = Shell::default();
    shell.source(&text, "/etc/default/grub");
    let words = shell.words("GRUB_CMDLINE_LINUX_DEFAULT");
    let words: Vec<(&str, &str)> = words.iter().map(|w| (w.text.as_str(), w.source.as_str())).collect();
    let (old, new) = ("/etc/default/grub:4", "/etc/default/grub:7");
    assert_eq!(words, [("quiet", old), ("splash", old), ("nosmt", new)]);
}

#[test]
fn whose_the_arguments_are_is_said_beside_them() {
    let tagged = |format, text: &str| insert_tagged(format, text, "nosmt a=1", 12).expect("a whole file");
    let entry = tagged(Format::Entry, ENTRY);
    let line = "options root=/dev/mapper/rl-root ro $tuned_params nosmt a=1\n";
    assert!(entry.contains(&format!("$tuned_initrd\n# planish entry 12: nosmt a=1\n{line}")), "{entry}");
    assert_eq!(Entry::parse(&entry).and_then(|entry| entry.options).map(|(_, line)| line), Some(6));
    assert_eq!(tagged(Format::KernelCmdline, "ro \r\n"), "ro nosmt a=1 planish.entry=12 \r\n");
    let block = tagged(Format::GrubEnv, &env("kernelopts=ro\nboot_success=1\n"));
    assert_eq!(
        (block.len(), env_value(&block, "kernelopts")),
        (1024, Some(("ro nosmt a=1 planish.entry=12", 2)))
    );
    let block = insert(Format::GrubDefaults, DEFAULTS, "nosmt a=1").expect("a whole file");
    assert_eq!(
        tagged(Format::GrubDefaults, DEFAULTS),
        format!("{block}# planish entry 12: nosmt a=1\n"),
        "a shell passes over it"
    );
    // Who does not know the entry yet.
    let text = insert_tagged(Format::KernelCmdline, "ro\n", "nosmt", 'N');
    assert_eq!(text.as_deref(), Ok("ro nosmt planish.entry=N\n"));
    // The tag needs room, too: 5 bytes are free for " nosmt" and 17 more.
    let full = env(&format!("kernelopts={}\n", "x".repeat(970)));
    assert!(insert(Format::GrubEnv, &full, "nosmt").is_ok());
    let refused = insert_tagged(Format::GrubEnv, &full, "nosmt", 1);
    assert_eq!(refused, Err(Odd::NoRoom { free: 17, wanted: 22 }));
}

#[test]
fn a_tag_goes_with_its_arguments_wherever_others_put_either() {
    let entry = insert_tagged(Format::Entry, ENTRY, "nosmt", 1).expect("whole");
    let line = "# planish entry 1: nosmt\n";
    let moved = format!("{line}{}{line}", entry.replace(line, "")).replace('\n', "\r\n");
    let left = remove_tagged(Format::Entry, &moved, "nosmt", 1).expect("it is there");
    assert_eq!(left, format!("{ENTRY}{line}").replace('\n', "\r\n"), "one insertion, one tag");
    let (own, other) = ("# planish entry 1: x\n", "# planish entry 11: nosmt\n");
    let theirs = entry.replace(line, &format!("{own}{other}"));
    let left = remove_tagged(Format::Entry, &theirs, "nosmt", 1).expect("the arguments are there");
    assert_eq!(left, ENTRY.replace("options", &format!("{own}{other}options")), "no other one is ours");

    for format in [Format::KernelCmdline, Format::GrubEnv] {
        let file = |arguments: &str| match format {
            Format::GrubEnv => env(&format!("kernelopts={arguments}\n")),
            _ => format!("{arguments}\n"),
        };
        let left = |arguments: &str| remove_tagged(format, &file(arguments), "nosmt", 1);
        assert_eq!(left("ro nosmt planish.entry=1 quiet"), Some(file("ro quiet")));
        assert_eq!(
            left("ro nosmt quiet planish.entry=1"),
            Some(file("ro quiet")),
            "somebody came in between"
        );
        assert_eq!(
            left("planish.entry=1 ro nosmt"),
            Some(file("planish.entry=1 ro")),
            "before all is no run"
        );
        assert_eq!(left("ro nosmt planish.entry=12"), Some(file("ro planish.entry=12")), "of another entry");
        assert_eq!(left("ro nosmt"), Some(file("ro")), "put in by a version without tags");
        assert_eq!(left("ro nosmt=force planish.entry=1"), None);
        let tag = remove_tag(format, &file("ro nosmt=force planish.entry=1"), "nosmt", 1);
        assert_eq!(tag, Some(file("ro nosmt=force")));
    }
    let tag =
        remove_tag(Format::Entry, &entry.replace("params nosmt", "params"), "nosmt", 1).expect("it is there");
    assert!(!tag.contains("planish"), "{tag}");
    // Who replaces a word in a whole file does so in the comment, too.
    for (format, text) in [(Format::Entry, ENTRY), (Format::GrubDefaults, DEFAULTS)] {
        let edited = insert_tagged(format, text, "nosmt", 1).expect("whole");
        let edited =
            insert_tagged(format, &edited, "a=1", 11).expect("whole").replace("nosmt", "nosmt=force");
        assert_eq!(remove_tagged(format, &edited, "nosmt", 1), None);
        let left = remove_tag(format, &edited, "nosmt", 1).expect("it is there");
        assert_eq!(left, edited.replace("# planish entry 1: nosmt=force\n", ""));
    }
}

#[test]
fn tags_are_found_with_their_lines_in_every_format() {
    let found = |text: &str| -> Vec<(usize, u64, String)> {
        tags(text).map(|tag| (tag.line, tag.entry, tag.text.to_owned())).collect()
    };
    for (format, text, line) in [
        (Format::Entry, ENTRY.to_owned(), 5),
        (Format::GrubDefaults, "A=b".to_owned(), 5),
        (Format::KernelCmdline, "# a file of ours\nro\n".to_owned(), 2),
        (Format::GrubEnv, env("kernelopts=ro\n"), 2),
    ] {
        assert_eq!(found(&text), []);
        let edited = insert_tagged(format, &text, "nosmt", 7).expect("whole");
        let tag = match format {
            Format::Entry | Format::GrubDefaults => "# planish entry 7: nosmt",
            Format::GrubEnv | Format::KernelCmdline => "planish.entry=7",
        };
        assert_eq!(found(&edited), [(line, 7, tag.to_owned())], "{format:?}");
    }
    let none = "# planish entry x: a\n# planish entry\n#planish.entry=1\n# planish.entry=2\nplanish.entry=\n";
    assert_eq!(found(none), []);
}

#[test]
fn what_is_cut_off_or_odd_is_left_alone() {
    let why = |format, text: &str| insert(format, text, "nosmt").expect_err("odd").to_string();
    for (format, text) in [
        (Format::Entry, ""),
        (Format::Entry, "title x\nlinux /vm"),
        (Format::Entry, "title x\noptions root=/dev/vda\n"),
        (Format::Entry, "title x\nlinux /vmlinuz\noptions root=/dev/vd"),
        (Format::KernelCmdline, ""),
        (Format::KernelCmdline, "\n# nothing\n"),
        (Format::GrubEnv, ""),
        (Format::GrubEnv, "# GRUB Environment Block\nkernelopts=root=x\n"),
        (Format::GrubDefaults, "GRUB_CMDLINE_LINUX=\"quiet"),
        (Format::GrubDefaults, "GRUB_DEFAULT=0\\\n"),
        (Format::GrubDefaults, "A='b\n"),
    ] {
        assert!(why(format, text).starts_with("it is cut off: "), "{text:?} {}", why(format, text));
    }
    let half = &env("kernelopts=root=x\n")[..1000];
    assert_eq!(why(Format::GrubEnv, half), "it is cut off: its size is no multiple of 1024 bytes");
    let twice = format!("{ENTRY}options quiet\n");
    assert_eq!(insert(Format::Entry, &twice, "nosmt"), Err(Odd::Twice { name: "options", count: 2 }));
    let full = env(&format!("kernelopts={}\n", "x".repeat(980)));
    assert!(matches!(
        insert(Format::GrubEnv, &full, "nosmt"),
        Err(Odd::NoRoom { free: 7, wanted: 6 }) | Ok(_)
    ));
    assert!(matches!(insert(Format::GrubEnv, &full, "mitigations=off"), Err(Odd::NoRoom { .. })));
    assert!(matches!(insert(Format::GrubDefaults, "cat <<X\nX\n", "nosmt"), Err(Odd::Unknown { .. })));
}

/// The text of a format that gives these arguments.
fn giving(format: Format, arguments: &str) -> String {
    match format {
        Format::GrubDefaults => format!("GRUB_CMDLINE_LINUX=\"{}\"\n", arguments.replace('"', "\\\"")),
        Format::GrubEnv => env(&format!("kernelopts={arguments}\n")),
        Format::Entry => format!("title x\nlinux /v\noptions {arguments}\n"),
        Format::KernelCmdline => format!("{arguments}\n"),
    }
}

#[test]
fn where_nothing_would_reach_the_kernel_nothing_is_put_in() {
    for format in FORMATS {
        let put_in = |arguments: &str| insert(format, &giving(format, arguments), "nosmt");
        assert_eq!(put_in("ro quiet -- nosplash"), Err(Odd::ForProcess1), "{format:?}");
        assert_eq!(put_in("ro --"), Err(Odd::ForProcess1), "{format:?}");
        let open = Err(Odd::CutOff { what: "a quote in its arguments has no end" });
        assert_eq!(put_in("ro dyndbg=\"file a +p"), open, "{format:?}");
        for whole in ["ro --x a--b", "dyndbg=\"file a -- +p\" ro", "a=\"b\"\"c d\""] {
            assert!(put_in(whole).is_ok(), "{format:?}: {whole}");
        }
    }
    // Two variables are one line.
    let two = "GRUB_CMDLINE_LINUX_DEFAULT=quiet\nGRUB_CMDLINE_LINUX='a --'\n";
    assert_eq!(insert(Format::GrubDefaults, two, "nosmt"), Err(Odd::ForProcess1));
}

#[test]
fn zeroes_of_a_power_cut_and_control_characters_are_refused() {
    let zeroes = "\0".repeat(40);
    for format in FORMATS {
        let whole = giving(format, "ro");
        for odd in [format!("{whole}{zeroes}"), whole.replace("ro", &format!("ro{zeroes}")), zeroes.clone()] {
            let why = insert(format, &odd, "nosmt").expect_err("odd").to_string();
            assert!(why.starts_with("it is cut off: it has bytes of zero"), "{format:?}: {why}");
        }
        let odd = insert(format, &whole.replace("ro", "r\u{1b}o"), "nosmt");
        assert_eq!(odd, Err(Odd::Unknown { what: "a control character" }), "{format:?}");
    }
    assert!(insert(Format::KernelCmdline, "ro\tquiet\u{b}\r\n", "nosmt").is_ok(), "blanks of the kernel");
}

#[test]
fn a_menu_that_ends_within_something_is_cut_off() {
    let linux = "### BEGIN /etc/grub.d/10_linux ###\nblscfg\n";
    let end = "### END /etc/grub.d/10_linux ###\n";
    assert_eq!(generated::unfinished(linux), Some("/etc/grub.d/10_linux"));
    let whole = format!("{linux}function f {{\n  true\n}}\n{end}");
    assert_eq!(generated::unfinished(&whole), None);
    let entry = "submenu 'a' {\n\tmenuentry 'b' {\n\t\tlinux /v\n\t}\n}\n";
    assert_eq!(generated::unfinished(&format!("{whole}{entry}")), None);
    for (at, _) in entry.match_indices('\n').filter(|(at, _)| *at < entry.len() - 2) {
        assert_eq!(generated::unfinished(&format!("{whole}{}", &entry[..=at])), Some("submenu 'a'"), "{at}");
    }
}

#[test]
fn a_run_is_counted_word_for_word_and_not_within_that_of_another() {
    let count = |line: &str, others: &[&str]| count_besides(line, "a=1 b", others);
    assert_eq!(count("options ro a=1  b quiet a=1 b", &[]), 2);
    assert_eq!(count("options ro a=1 bc a=1 x b xa=1 b", &[]), 0);
    assert_eq!(count("ro a=1 b c", &["a=1 b c"]), 0, "it is that of another");
    assert_eq!(count("ro a=1 b a=1 b c", &["a=1 b c"]), 1);
    assert_eq!(count("ro a=1 d b", &["d"]), 0, "what stood around another is no run");
    assert_eq!((count_besides("a b", "", &[]), count_besides("a b", "a", &[""])), (0, 1));
}

#[test]
fn what_an_entry_gives_counts_as_long_as_nothing_behind_it_does() {
    let entry = |options: &str| format!("title x\nlinux /v\noptions {options}\n");
    let is_given = |options: &str| gives(Format::Entry, &entry(options), "a=1 b-c=2");
    assert!(is_given("ro a=1 b-c=2") && is_given("a=0 a=1 b-c=2 quiet"));
    assert!(!is_given("a=1 b-c=2 a=0") && !is_given("a=1 b-c=2 b_c=3") && !is_given("a=1 x b-c=2"));
}

#[test]
fn arguments_that_a_loader_would_take_apart_are_refused() {
    for odd in ["", " nosmt", "nosmt ", "a$b", "a\"b", "a'b", "a\\b", "a\nb", "a`b`", "a;b", "a#b", "a(b)"] {
        assert!(matches!(refuse_odd(odd), Err(Odd::Arguments { .. })), "{odd:?}");
    }
    for plain in ["nosmt", "isolcpus=managed_irq,domain,2-7,10", "hugepagesz=1G hugepages=0:4,1:4", "a.b=^x"]
    {
        assert_eq!(refuse_odd(plain), Ok(()));
    }
}

#[test]
fn what_someone_else_adds_stays() {
    let ours = insert(Format::Entry, ENTRY, "nosmt").expect("whole");
    let theirs = ours.replace(" nosmt\n", " nosmt crashkernel=1G\n").replace("5.14.0) 9.6", "renamed");
    let left = remove(Format::Entry, &theirs, "nosmt").expect("ours is there");
    assert_eq!(
        left,
        ENTRY.replace("$tuned_params\n", "$tuned_params crashkernel=1G\n").replace("5.14.0) 9.6", "renamed")
    );
    assert_eq!(remove(Format::Entry, &ours.replace(" nosmt", " nosmtx"), "nosmt"), None, "another word");
    let ours = insert(Format::GrubDefaults, DEFAULTS, "nosmt").expect("whole") + "GRUB_TIMEOUT=1\n";
    let left = remove(Format::GrubDefaults, &ours, "nosmt").expect("ours is there");
    assert_eq!(left, format!("{DEFAULTS}GRUB_TIMEOUT=1\n"));
    let changed = ours.replace("_DEFAULT nosmt\"", "_DEFAULT nosmt x\"");
    assert_eq!(remove(Format::GrubDefaults, &changed, "nosmt"), None, "somebody wrote into our block");
}

#[test]
fn a_shell_reads_quotes_variables_and_continued_lines() {
    let mut shell = Shell::default();
    shell.source(
        "A=\"a b\" # c\nexport B='$A'\nC=${A}\\\nx\nD=\"p\\\n q\"\nE=`id`\nF=1;G=2\nA+=' z'\r\n",
        "f",
    );
    let value = |name| shell.value(name).unwrap_or_else(|| "none".to_owned());
    let values = ["A", "B", "C", "D", "E", "F"].map(value);
    assert_eq!(values, ["a b z", "$A", "a bx", "p q", "none", "1"]);
    shell.source("A=\"$A\nsecond\"\n", "g");
    let sources: Vec<String> = shell.words("A").into_iter().map(|word| word.source).collect();
    assert_eq!(sources, ["f:1", "f:1", "f:9", "g:1"]);
    assert_eq!(shell.lost("A"), [], "each line only added to it");
    shell.source("A=\"c $A\"\nA=d\nA=\"$A e\"\n", "h");
    let lost = shell.lost("A").into_iter().map(|(word, by)| format!("{} {} by {by}", word.text, word.source));
    let lost: Vec<String> = lost.collect();
    let by = ["a f:1", "b f:1", "z f:9", "second g:1", "c h:1"].map(|word| format!("{word} by h:2"));
    assert_eq!(lost.len(), by.len(), "{lost:?}");
    assert!(by.iter().all(|word| lost.contains(word)), "{lost:?}");
}

#[test]
fn a_menu_tells_what_each_kernel_is_given() {
    let menu = "set default=\"0\"\n### BEGIN /etc/grub.d/10_linux ###\n\
        menuentry 'Debian GNU/Linux' --class debian {\n\tlinux\t/vmlinuz root=UUID=1 ro quiet nosmt\n}\n\
        submenu 'Advanced options' {\n\tmenuentry 'Debian, with Linux 6 (recovery mode)' {\n\
        \t\tlinux\t/vmlinuz root=UUID=1 ro single\n\t}\n}\n### END /etc/grub.d/10_linux ###\n\
        ### BEGIN /etc/grub.d/30_os-prober ###\nmenuentry \"Other\" {\n linux /vmlinuz root=/dev/sdb1\n}\n";
    let entries = generated::entries(menu);
    let told: Vec<(&str, bool, usize)> =
        entries.iter().map(|entry| (entry.title.as_str(), entry.recovery, entry.line)).collect();
    assert_eq!(told, [("Debian GNU/Linux", false, 4), ("Debian, with Linux 6 (recovery mode)", true, 8)]);
    assert_eq!(generated::given(menu, "nosmt"), (1, 1));
    assert_eq!(generated::given(menu, "nosmt=force"), (0, 1));
    assert!(!generated::reads_entries(menu) && generated::reads_entries("insmod blscfg\nblscfg\n"));
    assert!(generated::reads_entries("\tblscfg --path /boot/loader/entries/\n"));
    for elsewhere in [
        "blscfg -p /images\n",
        "blscfg --path (hd0,gpt1)/loader/entries\n",
        "blscfg --path /efi/loader/entries\n",
        "blscfg --path /boot/efi/loader/entries\n",
        "blscfg --entry /boot/loader/entries/a.conf\n",
        "insmod blscfg\n",
    ] {
        assert!(!generated::reads_entries(elsewhere), "{elsewhere}");
    }
}

#[test]
fn an_entry_for_repairs_is_known() {
    let entry = Entry::parse(ENTRY).expect("it starts Linux");
    assert_eq!(entry.options.as_ref().map(|(_, line)| *line), Some(5));
    assert!(!entry.is_rescue("1-5.14.0.conf") && entry.is_rescue("1-0-rescue.conf"));
    assert_eq!(Entry::parse("title Firmware\nefi /EFI/x.efi\n"), None);
}

/// A line as they stand in such files, with whatever ends it.
fn line() -> impl Strategy<Value = String> {
    let content = prop_oneof![
        Just(String::new()),
        "# [a-z '\"$\\\\]{0,20}",
        "[A-Z_]{1,12}=[a-z0-9]{0,8}",
        "GRUB_CMDLINE_LINUX(_DEFAULT)?=\"[a-z =$\\\\]{0,20}\"",
        "GRUB_CMDLINE_LINUX='[a-z =\"]{0,20}'",
        "A=\"[a-z ]{0,6}\\\\\n[a-z ]{0,6}\"",
        "(title|version|linux|initrd|options|#options)[ \t]{1,3}[a-z0-9=/ $]{0,24}",
        "kernelopts=[a-z0-9= ]{0,24}",
        "root=UUID=[0-9]{1,4} ro[ \t]{0,3}",
        "\\PC{0,16}",
    ];
    (content, prop_oneof![5 => Just("\n"), 1 => Just("\r\n")]).prop_map(|(content, end)| content + end)
}

/// A file: some lines, the last perhaps without its end; a block of GRUB in part of the cases.
fn file() -> impl Strategy<Value = String> {
    let lines = proptest::collection::vec(line(), 0..10);
    (lines, any::<bool>(), any::<bool>()).prop_map(|(lines, unended, block)| {
        let text = lines.concat();
        let text = if unended { text.trim_end_matches(['\r', '\n']).to_owned() } else { text };
        if block && text.len() < 900 && text.ends_with('\n') { env(&text) } else { text }
    })
}

const ARGUMENTS: [&str; 4] = ["isolcpus=2-7", "nosmt", "hugepagesz=1G hugepages=4", "nosmt nohz_full=2-7"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// What was put in and taken out leaves every byte as it was, or nothing was put in.
    #[test]
    fn an_edit_and_its_way_back_are_the_identity(text in file(), at in 0_usize..4) {
        for format in FORMATS {
            let Ok(edited) = insert(format, &text, ARGUMENTS[at]) else { continue };
            prop_assert_ne!(&edited, &text);
            prop_assert_eq!(remove(format, &edited, ARGUMENTS[at]), Some(text.clone()), "{:?}", format);
            let Ok(edited) = insert_tagged(format, &text, ARGUMENTS[at], 3) else { continue };
            prop_assert!(edited.contains("planish"), "{:?}", format);
            let left = remove_tagged(format, &edited, ARGUMENTS[at], 3);
            prop_assert_eq!(left, Some(text.clone()), "{:?}", format);
        }
    }

    /// Two edits, taken back in either order.
    #[test]
    fn two_edits_go_in_any_order(text in file(), first in 0_usize..4, second in 0_usize..4, older in any::<bool>()) {
        prop_assume!(first != second);
        for format in FORMATS {
            let (a, b) = (ARGUMENTS[first], ARGUMENTS[second]);
            let Ok(edited) = insert(format, &text, a) else { continue };
            let Ok(edited) = insert(format, &edited, b) else { continue };
            let (next, last) = if older { (a, b) } else { (b, a) };
            let left = remove(format, &edited, next).expect("it was put in");
            let left = remove(format, &left, last);
            prop_assert_eq!(left.as_deref(), Some(text.as_str()), "{:?}", format);
        }
    }

    /// The same with the tags of two entries, which may give the same.
    #[test]
    fn two_tagged_edits_go_in_any_order(text in file(), two in (0_usize..4, 0_usize..4), older in any::<bool>()) {
        for format in FORMATS {
            let (a, b) = ((ARGUMENTS[two.0], 1), (ARGUMENTS[two.1], 12));
            let Ok(edited) = insert_tagged(format, &text, a.0, a.1) else { continue };
            let Ok(edited) = insert_tagged(format, &edited, b.0, b.1) else { continue };
            let (next, last) = if older { (a, b) } else { (b, a) };
            let left = remove_tagged(format, &edited, next.0, next.1).expect("it was put in");
            let tags = [format!("planish entry {}:", last.1), format!("planish.entry={}", last.1)];
            prop_assert!(tags.iter().any(|tag| left.contains(tag)), "{:?}", format);
            let left = remove_tagged(format, &left, last.0, last.1);
            prop_assert_eq!(left.as_deref(), Some(text.as_str()), "{:?}", format);
        }
    }

    /// The shell that reads the block adds the arguments, and nothing else changes for it.
    #[test]
    fn a_block_adds_its_arguments_for_the_shell(text in file()) {
        let Ok(edited) = insert(Format::GrubDefaults, &text, "nosmt") else { return Ok(()) };
        let words = |text: &str| {
            let mut shell = Shell::default();
            shell.source(text, "f");
            let words = shell.words("GRUB_CMDLINE_LINUX_DEFAULT").into_iter().map(|word| word.text);
            words.collect::<Vec<String>>()
        };
        let mut before = words(&text);
        before.push("nosmt".to_owned());
        prop_assert_eq!(words(&edited), before);
    }

    #[test]
    fn odd_text_is_read_without_harm(text in "\\PC{0,300}") {
        for format in FORMATS {
            let _ = insert(format, &text, "nosmt");
            let _ = remove(format, &text, "nosmt");
        }
        Shell::default().source(&text, "f");
        let _ = (generated::entries(&text), Entry::parse(&text), env_value(&text, "a"));
    }
}
