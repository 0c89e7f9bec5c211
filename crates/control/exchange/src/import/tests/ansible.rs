//! What tasks of Ansible come to.

use super::*;

#[test]
fn a_task_of_ansible_in_one_line_sets_what_it_says() {
    let text = "- hosts: all\n  tasks:\n  - name: swap\n    sysctl: name=vm.swappiness value=1 sysctl_set=yes\n\
                \x20 - ansible.posix.sysctl: name=net.ipv4.tcp_rmem value=\"4096 131072 16777216\"\n\
                \x20 - sysctl: name=vm.stat_interval state=absent\n  - sysctl: name=vm.stat_interval\n";
    let imported = read(text, ImportFormat::Ansible);
    let lines = told(&imported);
    assert_eq!(lines[..2], ["4 vm.swappiness", "5 net.ipv4.tcp_rmem"], "{lines:?}");
    assert!(lines[2].contains("takes a line out") && lines[3].contains("sets nothing"), "{lines:?}");
    assert_eq!(*want(&imported, "net.ipv4.tcp_rmem"), Want::Text("4096 131072 16777216".to_owned()));
}

#[test]
fn tasks_of_ansible_are_read_with_their_lines_and_no_template_is_filled_in() {
    let text = include_str!("../../../../../../fuzz/seeds/import/ansible");
    assert_eq!(ImportFormat::guess(text), ImportFormat::Ansible);
    let imported = read(text, ImportFormat::Ansible);
    assert_eq!(
        told(&imported),
        [
            "8 vm.swappiness",
            "16 thp.enabled",
            "17 - makes or removes files: only lines of type w set a value",
            "22 - done once for each of a list, which is not gone through: write a task for each",
            "26 boot.isolcpus may stall the host: --allow availability",
            "26 boot.nosmt may stall the host: --allow availability",
            "28 kernel.numa_balancing",
            "30 - a task of `package`: what that sets is not read",
        ]
    );
}

/// A play with variables and one task that sets the swappiness to `value`.
fn with_vars(vars: &str, value: &str, more: &str) -> Imported {
    let task = format!("  tasks:\n  - sysctl:\n      name: vm.swappiness\n      value: {value}\n{more}");
    read(&format!("- hosts: db\n  vars:\n    {vars}\n{task}"), ImportFormat::Ansible)
}

#[test]
fn a_variable_of_the_play_is_filled_in() {
    for (vars, value) in
        [("swap: 1", "\"{{ swap }}\""), ("swap: \"1\"", "'{{swap}}'"), ("s: 1", "\"{{ s }}\"")]
    {
        let imported = with_vars(vars, value, "");
        assert_eq!(told(&imported), ["6 vm.swappiness"], "{vars}");
        assert_eq!(*want(&imported, "vm.swappiness"), Want::Int(1), "{vars}");
    }
    // The nearest counts.
    let nearer = with_vars("swap: 1", "\"{{ swap }}\"", "    vars: {swap: 2}\n");
    assert_eq!(*want(&nearer, "vm.swappiness"), Want::Int(2));
    let text = "- hosts: db\n  vars: {gov: never, k: \"4096 131072 16777216\", swap: 5}\n  tasks:\n\
                \x20 - shell: echo {{ gov }} > /sys/kernel/mm/transparent_hugepage/enabled\n\
                \x20 - sysctl: {name: net.ipv4.tcp_rmem, value: \"{{ k }}\"}\n\
                \x20 - copy: {dest: /etc/sysctl.d/a.conf, content: \"vm.swappiness={{ swap }}\"}\n";
    let imported = read(text, ImportFormat::Ansible);
    assert_eq!(told(&imported), ["4 thp.enabled", "5 net.ipv4.tcp_rmem", "6 vm.swappiness"]);
}

#[test]
fn a_variable_whose_value_is_not_sure_is_not_filled_in() {
    const SWAP: &str = "\"{{ swap }}\"";
    let elsewhere = "a template of Ansible: its values are not in this file";
    for (vars, value, more, why) in [
        ("other: 1", SWAP, "", elsewhere),
        ("swap: yes", SWAP, "", elsewhere),
        ("swap: 010", SWAP, "", elsewhere),
        ("swap: \"{{ other }}\"", SWAP, "", elsewhere),
        ("swap: 1", "\"{{ swap | int }}\"", "", elsewhere),
        ("swap: 1", "\"{% if a %}{{ swap }}{% endif %}\"", "", elsewhere),
        ("ansible_facts: 1", "\"{{ ansible_facts }}\"", "", elsewhere),
        ("swap: 1", SWAP, "    register: swap\n", elsewhere),
        ("swap: 1", SWAP, "  - set_fact: {swap: 2}\n", "`set_fact` of line 8 may give its variables"),
        ("swap: 1", SWAP, "  vars_files: [a.yml]\n", "`vars_files` of line 8 may give its variables"),
        ("swap: 1", SWAP, "  roles: [tune]\n", "`roles` of line 8 may give its variables"),
    ] {
        let imported = with_vars(vars, value, more);
        let rows = told(&imported);
        assert!(imported.profile.want.is_empty(), "{vars} {more}: {rows:?}");
        assert!(
            rows.iter().any(|row| row.starts_with("6 - ") && row.contains(why)),
            "{vars} {more}: {rows:?}"
        );
    }
    // A variable of one play is none of another one.
    let two = "- hosts: db\n  vars: {swap: 1}\n- hosts: db\n  tasks:\n\
               \x20 - sysctl: {name: vm.swappiness, value: \"{{ swap }}\"}\n";
    assert_eq!(told(&read(two, ImportFormat::Ansible)), [format!("5 - {elsewhere}")]);
    // A task of one line is taken apart before.
    let line =
        "- hosts: db\n  vars: {k: 1 2 3}\n  tasks:\n  - sysctl: name=net.ipv4.tcp_rmem value=\"{{ k }}\"\n";
    assert_eq!(told(&read(line, ImportFormat::Ansible)), [format!("4 - {elsewhere}")]);
}

#[test]
fn tasks_of_a_block_are_steered_by_what_is_said_of_the_block() {
    let task = |indent: &str, value: u32| {
        format!("{indent}- sysctl:\n{indent}    name: vm.swappiness\n{indent}    value: {value}\n")
    };
    let text = format!(
        "- block:\n{}  when: ansible_memtotal_mb > 4096\n- block:\n{}  rescue:\n{}- hosts: all\n  handlers:\n{}",
        task("  ", 1),
        task("  ", 2),
        task("  ", 3),
        task("  ", 4)
    );
    let imported = read(&text, ImportFormat::Ansible);
    let elsewhere = "done where another task failed or changed something, which only Ansible can tell";
    assert_eq!(
        told(&imported),
        [
            "3 - done under a condition that only Ansible can tell".to_owned(),
            "8 vm.swappiness".to_owned(),
            format!("12 - {elsewhere}"),
            format!("17 - {elsewhere}"),
        ]
    );
}

/// One play with tasks, each by its lines.
fn play(tasks: &str) -> Vec<String> {
    told(&read(&format!("- hosts: db\n  tasks:\n{tasks}"), ImportFormat::Ansible))
}

#[test]
fn a_command_that_has_files_read_says_nothing_for_the_one_behind_it() {
    let rows = play("  - shell: sysctl --system && sysctl -w vm.swappiness=1\n");
    assert!(rows.iter().any(|row| row.starts_with("3 - reads other files")), "{rows:?}");
    assert_eq!(rows.len(), 2, "{rows:?}");
    let rows = play(
        "  - shell: |\n      systemd-tmpfiles --create /etc/tmpfiles.d/x.conf\n      \
         echo never > /sys/kernel/mm/transparent_hugepage/enabled\n",
    );
    assert!(rows[0].starts_with("4 - reads other files"), "{rows:?}");
    assert_eq!(rows[1..], ["5 thp.enabled"], "{rows:?}");
    for applies in
        ["systemd-tmpfiles --create /etc/tmpfiles.d/x.conf", "sysctl --system", "systemctl daemon-reload"]
    {
        assert_eq!(play(&format!("  - command: {applies}\n")), Vec::<String>::new(), "{applies}");
    }
}

#[test]
fn tasks_that_are_done_elsewhere_or_under_conditions_are_refused() {
    let set = "  - sysctl: {name: vm.swappiness, value: 1}\n";
    let shell = "  - shell: sysctl -w vm.swappiness=1\n";
    for (task, keyword, why) in [
        (set, "delegate_to: lb1", "done on another host"),
        (set, "check_mode: true", "only looks"),
        (set, "when: x", "under a condition"),
        (set, "become_user: postgres", "as postgres"),
        (set, "connection: local", "another place"),
        (set, "tags: [a, never]", "asks for its tag"),
        (set, "tags: a,never", "asks for its tag"),
        (set, "with_dict: {}", "done once for each of a list"),
        (set, "poll: 0", "in the background"),
        (set, "module_defaults: {sysctl: {state: absent}}", "more than stands"),
        (shell, "args: {creates: /x}", "creates: done only where"),
        (shell, "args: {removes: /x}", "removes: done only where"),
        (shell, "args: {chdir: /x}", "whole paths"),
        (shell, "args: {executable: /bin/zsh}", "whose language"),
    ] {
        let rows = play(&format!("{task}    {keyword}\n"));
        assert!(
            rows.len() == 1 && rows[0].starts_with("3 - ") && rows[0].contains(why),
            "{keyword}: {rows:?}"
        );
    }
    for keyword in [
        "run_once: true",
        "ignore_errors: true",
        "check_mode: false",
        "become_user: root",
        "tags: [kernel]",
        "environment: {A: b}",
        "async: 60",
        "register: x",
        "retries: 3",
        "connection: ssh",
        "throttle: 1",
    ] {
        assert_eq!(play(&format!("{set}    {keyword}\n")), ["3 vm.swappiness"], "{keyword}");
        // A keyword may stand before the module.
        let turned = format!("  - {keyword}\n    sysctl: {{name: vm.swappiness, value: 1}}\n");
        assert_eq!(play(&turned), ["4 vm.swappiness"], "{keyword}");
    }
    for shell in [
        "  - shell: sysctl -w vm.swappiness=1 creates=/x\n",
        "  - command: sysctl -w vm.swappiness=1 removes=/x\n",
    ] {
        assert!(play(shell)[0].contains("done only where a file is"), "{:?}", play(shell));
    }
    let copy = "  - copy: {dest: /etc/sysctl.d/a.conf, force: no, content: vm.swappiness=1}\n";
    assert!(play(copy)[0].contains("only where there is none"), "{:?}", play(copy));
    let other = copy.replace("force: no, ", "").replace("a.conf", "a.conf.off");
    assert!(play(&other)[0].contains("sets nothing of the kernel"), "{:?}", play(&other));
}

#[test]
fn a_command_of_ansible_has_no_shell() {
    for (task, row) in [
        ("command: echo never > /sys/kernel/mm/transparent_hugepage/enabled", "3 - only talks"),
        ("command: sysctl -w vm.swappiness=1 && sysctl -w vm.stat_interval=2", "3 - sysctl takes"),
        ("command: sysctl -w vm.swappiness=1", "3 vm.swappiness"),
        ("command: {argv: [sysctl, -w, vm.swappiness=1]}", "3 vm.swappiness"),
        ("command: sysctl -w net.ipv4.tcp_rmem='4096 87380 16777216'", "3 net.ipv4.tcp_rmem"),
    ] {
        let rows = play(&format!("  - {task}\n"));
        assert!(rows.len() == 1 && rows[0].starts_with(row), "{task}: {rows:?}");
    }
}

#[test]
fn arguments_that_grubby_takes_away_are_told() {
    let rows = play(
        "  - command: grubby --update-kernel=ALL --args=\"nohz_full=2-3\" --remove-args=\"nosmt mitigations\"\n\
         \x20 - command: grubby --update-kernel=/boot/vmlinuz-1 --args=nosmt\n\
         \x20 - shell: grubby --update-kernel ALL --args 'nosmt'\n",
    );
    let why = "3 - takes arguments off the command line: a profile gives some, and takes none away";
    assert_eq!(rows[0], why, "{rows:?}");
    assert!(rows[1].starts_with("3 boot.nohz_full") && rows[2].starts_with("4 - of some kernel"), "{rows:?}");
    assert!(rows[3].starts_with("5 boot.nosmt") && rows.len() == 4, "{rows:?}");
}

#[test]
fn plays_for_other_hosts_roles_and_what_stands_behind_an_end_are_refused() {
    let task = |value: u32| format!("  tasks:\n  - sysctl: {{name: vm.swappiness, value: {value}}}\n");
    let two = format!("- hosts: web\n{}- hosts: db\n{}", task(1), task(2));
    let rows = told(&read(&two, ImportFormat::Ansible));
    let why = "3 - of a play for `web`, and another one is for `db`: import a file with one of them";
    assert!(rows[0] == why && rows.len() == 2 && rows[1].starts_with("6 - "), "{rows:?}");
    let same = told(&read(&two.replace("web", "db"), ImportFormat::Ansible));
    assert_eq!(same, ["3 - line 6 sets it to 2", "6 vm.swappiness"]);
    let role = told(&read(&format!("- hosts: db\n  roles: [tune]\n{}", task(1)), ImportFormat::Ansible));
    assert_eq!(role, ["2 - has tasks of its own: import the tasks/main.yml of it", "4 vm.swappiness"]);
    let set = "  - sysctl: {name: vm.swappiness, value: 1}\n";
    for (end, why) in [
        ("  - meta: end_play\n", "never done: `meta` of line 3"),
        ("  - meta: end_host\n    when: x\n", "done only where `meta` of line 3 goes on"),
        ("  - assert: {that: x}\n", "done only where `assert` of line 3"),
        ("  - fail: {msg: x}\n    when: y\n", "done only where `fail` of line 3"),
    ] {
        let rows = play(&format!("{end}{set}"));
        assert!(rows.last().is_some_and(|row| row.contains(why)), "{end}: {rows:?}");
    }
    assert_eq!(
        play(&format!("  - meta: flush_handlers\n{set}")).last().map(String::as_str),
        Some("4 vm.swappiness")
    );
}

#[test]
fn a_file_in_the_place_of_one_of_the_kernel_is_told_as_that() {
    let text = "- hosts: all\n  tasks:\n  - copy: {dest: /sys/kernel/mm/ksm/run, content: \"0\"}\n";
    let lines = told(&read(text, ImportFormat::Ansible));
    assert!(lines[0].starts_with("3 - puts a file in the place of one of the kernel"), "{lines:?}");
}
