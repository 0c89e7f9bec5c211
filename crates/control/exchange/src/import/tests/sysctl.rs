//! What files of `sysctl.d` come to: as systemd reads them.

use super::*;

/// `sysctl.c` of systemd has each key once, where its value was first given.
#[test]
fn a_line_that_repeats_a_value_counts_where_it_was_first_given() {
    let text = "vm.dirty_ratio = 10\nvm.dirty_bytes = 536870912\nvm/dirty_ratio = 10\n";
    let imported = read(text, ImportFormat::Sysctl);
    assert_eq!(cases(&imported, "vm.dirty_bytes"), [(None, "536870912".to_owned())], "{:?}", told(&imported));
    assert_eq!(imported.profile.want.len(), 1);
    assert_eq!(
        told(&imported),
        [
            "1 - line 3 sets it to 10",
            "2 vm.dirty_bytes",
            "3 - line 2 sets its twin, which clears it; it counts in the place of line 1, which says the same"
        ]
    );
    // Another value between the two makes it a new line.
    let between = read(&format!("{text}vm.dirty_ratio = 11\nvm.dirty_ratio = 10\n"), ImportFormat::Sysctl);
    assert_eq!(cases(&between, "vm.dirty_ratio"), [(None, "10".to_owned())], "{:?}", told(&between));
    assert_eq!(between.profile.want.len(), 1);
    // The lines of all files that a script leaves are sorted together.
    let script = "echo 'vm.dirty_ratio = 10' > /etc/sysctl.d/10-a.conf\n\
                  echo 'vm.dirty_bytes = 536870912' > /etc/sysctl.d/20-b.conf\n\
                  echo 'vm.dirty_ratio = 10' > /etc/sysctl.d/30-c.conf\n";
    let written = read(script, ImportFormat::Script);
    assert_eq!(cases(&written, "vm.dirty_bytes"), [(None, "536870912".to_owned())], "{:?}", told(&written));
    assert_eq!(written.profile.want.len(), 1);
}

#[test]
fn a_key_without_a_value_takes_back_what_was_said_of_it_before() {
    for empty in ["vm.swappiness =", "vm/swappiness=", "-vm.swappiness", "-vm.swappiness ="] {
        let imported = read(&format!("vm.swappiness = 1\n{empty}\n"), ImportFormat::Sysctl);
        let rows = ["1 - line 2 takes it back", "2 - takes back what line 1 says, and sets nothing"];
        assert_eq!(told(&imported), rows, "{empty}");
        assert_eq!(overridden(&imported), [(1, 2)], "{empty}");
        assert!(imported.profile.want.is_empty(), "{empty}");
        let again = read(&format!("vm.swappiness = 1\n{empty}\nvm.swappiness = 1\n"), ImportFormat::Sysctl);
        let taken: Vec<usize> =
            again.lines.iter().filter(|row| row.is_accepted()).map(|row| row.line).collect();
        assert_eq!(taken, [3], "{empty}: {:?}", told(&again));
    }
    let pool = read("vm.nr_hugepages = 16\nvm.nr_hugepages =\n", ImportFormat::Sysctl);
    assert!(pool.profile.want.is_empty(), "{:?}", told(&pool));
    let alone = read("vm.swappiness =\nvm.swapiness =\nvm.swappiness\n", ImportFormat::Sysctl);
    assert_eq!(
        told(&alone),
        [
            "1 - takes back what another file says: a profile wants a value",
            "2 - no knob has this place; the nearest is /proc/sys/vm/swappiness",
            "3 - sets nothing"
        ]
    );
}

/// systemd sets by a pattern all that it means, and leaves to a line with the whole name what that says.
#[test]
fn a_pattern_is_a_line_for_each_row_that_it_means() {
    let text = "net.core.[rw]mem_max=16777216\nnet.core.wmem_max = 4194304\nnet.core.nothing_*=1\n\
                net.core.rmem_default*=1000000\n-net.core.rmem_default\n";
    let imported = read(text, ImportFormat::Sysctl);
    let wants: Vec<String> =
        imported.profile.want.iter().map(|(id, want)| format!("{id} {want:?}")).collect();
    assert_eq!(
        wants,
        ["net.core.rmem_max Int(16777216)", "net.core.wmem_max Int(4194304)"],
        "{:?}",
        told(&imported)
    );
    let refused: Vec<usize> =
        imported.lines.iter().filter(|row| !row.is_accepted()).map(|row| row.line).collect();
    assert_eq!(refused, [3, 5], "{:?}", told(&imported));
}
