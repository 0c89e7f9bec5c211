//! What arguments of the kernel command line come to.

use super::*;

/// `rcu_nocbs` alone sets no CPU apart, and `rcu_nocbs=1` does so with CPU 1.
#[test]
fn an_argument_without_a_value_is_that_of_a_flag_or_refused() {
    let grub = |word: &str| read(&format!("GRUB_CMDLINE_LINUX=\"{word}\"\n"), ImportFormat::KernelArgs);
    let tuned = |word: &str| read(&format!("[bootloader]\ncmdline_x=+{word}\n"), ImportFormat::Tuned);
    let grubby = |word: &str| {
        let script = format!("grubby --update-kernel=ALL --args={word}\n");
        read(&script, ImportFormat::Script)
    };
    let alone = |word: &str| read(word, ImportFormat::KernelArgs);
    let mut flags = Vec::new();
    for knob in CATALOGUE.knobs() {
        let Some(name) = knob.boot_parameter().map(|(name, _)| name).or(knob.boot_arg.as_deref()) else {
            continue;
        };
        for imported in [alone(name), grub(name), tuned(name), grubby(name)] {
            let rows = told(&imported);
            if imported.profile.want.is_empty() {
                assert!(rows.len() == 1 && rows[0].contains("has no value behind a `=`"), "{name}: {rows:?}");
            } else {
                assert_eq!(cases(&imported, knob.id.as_str()), [(None, "1".to_owned())], "{name}: {rows:?}");
                flags.push(name);
            }
        }
    }
    flags.dedup();
    flags.sort_unstable();
    assert_eq!(flags, ["nosmt", "nosoftlockup", "nowatchdog", "rcu_nocb_poll"]);
    let why = "1 - has no value behind a `=`, and none of boot.rcu_nocbs is the same";
    assert_eq!(told(&alone("rcu-nocbs")), [why]);
}
