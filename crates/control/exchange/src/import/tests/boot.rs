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

/// What is wanted of boot parameters, as `id=value`.
fn wanted(imported: &Imported) -> Vec<String> {
    let ids = imported.profile.want.keys().map(|id| id.as_str());
    let all =
        ids.flat_map(|id| cases(imported, id).into_iter().map(move |(_, value)| format!("{id}={value}")));
    all.collect()
}

/// By the rules by which a running command line is read: `planish_model::bootline`.
#[test]
fn of_several_arguments_for_one_parameter_those_count_that_the_kernel_takes() {
    for (text, wants) in [
        ("isolcpus=2-3 isolcpus=6-7", &["boot.isolcpus=2-3"][..]),
        ("isolcpus=x isolcpus=6-7", &["boot.isolcpus=6-7"]),
        ("isolcpus=2-3 isolcpus=managed_irq,2,3", &["boot.isolcpus=domain,managed_irq,2-3"]),
        ("nohz_full=1-3 nohz_full=5", &["boot.nohz_full=1-3"]),
        ("default_hugepagesz=2M default_hugepagesz=1G", &["boot.default_hugepagesz=2M"]),
        ("hugepages=512 hugepages=1024", &["boot.hugepages.2m=512"]),
        ("hugepagesz=1G hugepages=4 hugepagesz=1G hugepages=2", &["boot.hugepages.1g=4"]),
        ("hugepages=8 hugepagesz=2M hugepages=5", &["boot.hugepages.2m=8"]),
        (
            "hugepages=8 default_hugepagesz=1G hugepages=4",
            &["boot.default_hugepagesz=1G", "boot.hugepages.1g=4"],
        ),
        ("hugepagesz=1073741824 hugepages=4", &["boot.hugepages.1g=4"]),
        ("hugepagesz=16M hugepages=4 hugepagesz=2M hugepages=5", &["boot.hugepages.2m=5"]),
        ("hugepages=0", &["boot.hugepages.2m=0"]),
        ("rcu_nocbs=2 rcu_nocbs=3", &["boot.rcu_nocbs=3"]),
        ("thp_anon=64K:always thp_anon=1M:never", &["boot.thp_anon=64K:always;1M:never"]),
        ("nosmt -- nohz_full=5", &["boot.nosmt=1"]),
        ("nohz_full=3 -- nohz_full=5 hugepages=7", &["boot.nohz_full=3"]),
    ] {
        let imported = read(text, ImportFormat::KernelArgs);
        assert_eq!(wanted(&imported), wants, "{text}: {:?}", told(&imported));
    }
}

/// Those of GRUB_CMDLINE_LINUX stand in front, wherever its line does; of two calls of grubby the later one counts.
#[test]
fn the_first_of_several_is_that_of_the_command_line() {
    let grub = "GRUB_CMDLINE_LINUX_DEFAULT=\"isolcpus=6-7\"\nGRUB_CMDLINE_LINUX=\"isolcpus=2-3\"\n";
    let imported = read(grub, ImportFormat::KernelArgs);
    assert_eq!(wanted(&imported), ["boot.isolcpus=2-3"]);
    assert_eq!(told(&imported)[0], "1 - the kernel keeps isolcpus=2-3 of line 2");
    assert_eq!(overridden(&imported), [(1, 2)]);
    let script =
        "grubby --update-kernel=ALL --args=nohz_full=2\ngrubby --update-kernel=ALL --args=nohz_full=3\n";
    let imported = read(script, ImportFormat::Script);
    assert_eq!(
        (wanted(&imported), overridden(&imported)),
        (vec!["boot.nohz_full=3".to_owned()], vec![(1, 2)])
    );
}

#[test]
fn a_long_command_line_is_read_soon() {
    for word in ["isolcpus=2 ", "isolcpus=2 isolcpus=managed_irq,2 ", "hugepages=2 "] {
        let started = std::time::Instant::now();
        let _ = read(&word.repeat(20_000), ImportFormat::KernelArgs);
        assert!(started.elapsed().as_secs() < 20, "{word}: {:?}", started.elapsed());
    }
}

#[test]
fn what_the_kernel_passes_over_says_for_which_one() {
    let rows = |text: &str| told(&read(text, ImportFormat::KernelArgs));
    let pool = rows("hugepagesz=1G\nhugepages=4 hugepagesz=1G\nhugepages=2");
    assert_eq!(pool[1], "1 - the kernel keeps hugepages=4 of line 1");
    assert_eq!(rows("hugepages=5 hugepages=6")[1], "1 - the kernel keeps hugepages=5 of line 1");
    let merged = rows("isolcpus=2-3 isolcpus=managed_irq,2,3 isolcpus=1");
    assert_eq!(
        merged[1..],
        [
            "1 - is read together with isolcpus=2-3 of line 1".to_owned(),
            "1 - the kernel keeps isolcpus=2-3 of line 1".to_owned()
        ]
    );
    assert!(merged[0].ends_with("with the words of a later one: domain,managed_irq,2-3"), "{merged:?}");
    let behind = rows("quiet -- nohz_full=5");
    let why = "1 - is for process 1, as all that stands behind --";
    assert_eq!(behind[1..], [why, why]);
}
