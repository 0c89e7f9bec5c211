//! What notes of saptune come to.

use super::*;

#[test]
fn a_note_of_saptune_gives_what_it_sets() {
    let text = "[version]\nVERSION=1\n[vm]\nTHP=never\nKSM=0\n[sysctl]\nvm.max_map_count = 2147483647\n\
                [sysctl:os=15-SP*]\nvm.swappiness = 10\n[block]\nIO_SCHEDULER=none, noop\nNRREQ=1022\n\
                [grub]\nintel_idle.max_cstate=1\nnuma_balancing=disable\n[limits]\nLIMITS=x\n[cpu]\nforce_latency=70\n\
                [sys]\nkernel.mm.transparent_hugepage.khugepaged.defrag=0\n[reminder]\n# text\n";
    assert_eq!(ImportFormat::guess(text), ImportFormat::Saptune);
    let imported = read(text, ImportFormat::Saptune);
    let checked = |line: &str| {
        format!(
            "{line} - saptune checks such arguments, and gives the kernel none: to want it, import kernel \
             arguments"
        )
    };
    assert_eq!(
        told(&imported),
        [
            "4 thp.enabled",
            "5 mm.ksm_run",
            "7 vm.max_map_count",
            "9 - a section for some hosts only: make a profile of your own with `needs`",
            "11 block.scheduler none of several; a host may want noop",
            "12 block.nr_requests",
            checked("14").as_str(),
            checked("15").as_str(),
            "17 - no setting of the kernel that planish has a knob for",
            "19 cpu.dma_latency_us",
            "21 thp.khugepaged.defrag",
        ]
    );
    assert!(
        imported
            .profile
            .want
            .keys()
            .all(|id| !["boot.intel_idle_max_cstate", "kernel.numa_balancing"].contains(&id.as_str()))
    );
}

#[test]
fn the_size_of_shared_memory_in_a_note_of_saptune_is_that_of_a_mount() {
    let note = |line: &str| read(&format!("[version]\nV=1\n[mem]\n{line}\n"), ImportFormat::Saptune);
    let size = note("ShmFileSystemSizeMB=24576");
    assert_eq!(cases(&size, "tmpfs.size"), [(Some("/dev/shm".to_owned()), (24_576_u64 << 20).to_string())]);
    for (line, why) in [
        ("ShmFileSystemSizeMB=0", "VSZ_TMPFS_PERCENT"),
        ("ShmFileSystemSizeMB=x", "no number of MiB"),
        ("VSZ_TMPFS_PERCENT=75", "tmpfs.size"),
    ] {
        let rows = told(&note(line));
        assert!(rows.len() == 1 && rows[0].starts_with("4 - ") && rows[0].contains(why), "{rows:?}");
    }
}

#[test]
fn of_several_values_the_first_that_there_is_counts_and_the_others_are_told() {
    let note = read("[version]\nV=1\n[block]\nIO_SCHEDULER=noop,none\n", ImportFormat::Saptune);
    assert_eq!(*want(&note, "block.scheduler"), Want::Text("none".to_owned()));
    assert_eq!(told(&note), ["4 block.scheduler none of several; a host may want noop"]);
    let none = read("[version]\nV=1\n[block]\nIO_SCHEDULER=noop\n", ImportFormat::Saptune);
    assert!(told(&none)[0].starts_with("4 - ") && told(&none)[0].contains("noop"), "{:?}", told(&none));
    let profile = read("[cpu]\nforce_latency=cstate.id_no_zero:1|3\n", ImportFormat::Tuned);
    assert_eq!(*want(&profile, "cpu.dma_latency_us"), Want::Int(3));
    assert_eq!(told(&profile), ["2 cpu.dma_latency_us 3 of several; a host may want cstate.id_no_zero:1"]);
    let state = read("[cpu]\nforce_latency=cstate.id:1\n", ImportFormat::Tuned);
    assert_eq!(told(&state), ["2 - a sleep state, whose microseconds only a host knows"]);
}

/// Note 2684254: transparent huge pages are off, and on once more for later service packs.
#[test]
fn what_a_note_says_otherwise_for_some_hosts_is_told_where_it_is_taken() {
    let text = "[version]\nV=1\n[vm]\nTHP=never\nKSM=0\n[vm:os=15-[5-7]]\nTHP=madvise\n[sysctl:os=15-SP6]\nKSM=1\n\
                [vm:os=15-SP6]\nKSM=0\n";
    let rows = told(&read(text, ImportFormat::Saptune));
    assert_eq!(rows[..2], ["4 thp.enabled line 7 says otherwise for some hosts", "5 mm.ksm_run"]);
}
