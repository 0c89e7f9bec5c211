//! Files of boot loaders: what was put in and taken out leaves every byte as it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_boot::{Entry, Format, Shell, env_value, generated, insert, once, remove};

fuzz_target!(|text: &str| {
    for format in [Format::GrubDefaults, Format::GrubEnv, Format::Entry, Format::KernelCmdline] {
        let _ = remove(format, text, "nosmt");
        let Ok(once) = insert(format, text, "nosmt") else { continue };
        assert_eq!(remove(format, &once, "nosmt").as_deref(), Some(text));
        let Ok(twice) = insert(format, &once, "isolcpus=2-7") else { continue };
        let left = remove(format, &twice, "nosmt").and_then(|left| remove(format, &left, "isolcpus=2-7"));
        assert_eq!(left.as_deref(), Some(text), "in any order");
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
