//! Files of boot loaders: what was put in and taken out leaves every byte as it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_boot::{
    Entry, Format, Shell, env_value, generated, insert, insert_tagged, once, remove, remove_tag,
    remove_tagged, tags,
};

fuzz_target!(|text: &str| {
    for format in [Format::GrubDefaults, Format::GrubEnv, Format::Entry, Format::KernelCmdline] {
        let _ = remove(format, text, "nosmt");
        let Ok(once) = insert(format, text, "nosmt") else { continue };
        assert_eq!(remove(format, &once, "nosmt").as_deref(), Some(text));
        let Ok(twice) = insert(format, &once, "isolcpus=2-7") else { continue };
        let left = remove(format, &twice, "nosmt").and_then(|left| remove(format, &left, "isolcpus=2-7"));
        assert_eq!(left.as_deref(), Some(text), "in any order");
        let _ = (remove_tagged(format, text, "nosmt", 1), remove_tag(format, text, "nosmt", 1));
        let Ok(once) = insert_tagged(format, text, "nosmt", 1) else { continue };
        assert!(tags(&once).any(|tag| tag.entry == 1));
        assert_eq!(remove_tagged(format, &once, "nosmt", 1).as_deref(), Some(text));
        let Ok(twice) = insert_tagged(format, &once, "nosmt", 12) else { continue };
        for (first, last) in [(1, 12), (12, 1)] {
            let left = remove_tagged(format, &twice, "nosmt", first);
            let left = left.and_then(|left| remove_tagged(format, &left, "nosmt", last));
            assert_eq!(left.as_deref(), Some(text), "with tags");
        }
    }
    let mut shell = Shell::default();
    shell.source(text, "f");
    let _ = (shell.words("GRUB_CMDLINE_LINUX"), Entry::parse(text), env_value(text, "kernelopts"));
    let _ = generated::given(text, "nosmt");
    let _ =
        (once::takes_next_entry(text), once::reads_custom(text), once::of_menu(text, Some("1>0"), "nosmt"));
    let _ = (once::of_entry(text, text, "nosmt"), once::file_of_entry(text, "nosmt"));
    if let Ok(added) = once::add(text, "menuentry 'a' {\n}\n") {
        assert_eq!(once::take_out(&added, "menuentry 'a' {\n}\n").as_deref(), Some(text));
    }
    if let Ok(named) = once::arm(Some(text)) {
        assert_eq!(once::disarm(&named, Some(text)).as_deref(), Some(text));
    }
});
