//! Tasks of Ansible: `ansible.posix.sysctl` for /proc/sys, a file of `tmpfiles.d` for everything else, and drop-ins for
//! units.

use super::{ArgumentsBy, ExportedFile, Head, arguments, units};
use crate::item::Item;

pub(super) fn files(head: &Head<'_>, items: &[Item], by: &ArgumentsBy) -> Vec<ExportedFile> {
    let name = head.name;
    let mut text = format!("---\n{}", head.comment());
    for (key, item) in items.iter().filter_map(|item| Some((item.sysctl_key()?, item))) {
        text += &format!(
            "- name: {name} {key}\n  become: true\n  ansible.posix.sysctl:\n    name: {key}\n    value: \"{}\"\n    \
             sysctl_file: /etc/sysctl.d/90-{name}.conf\n    sysctl_set: true\n",
            item.value
        );
    }
    let others = super::files::tmpfiles(items);
    if !others.is_empty() {
        let path = format!("/etc/tmpfiles.d/90-{name}.conf");
        let lines: String = others.lines().map(|line| format!("      {line}\n")).collect();
        text += &format!(
            "- name: {name} files below /sys\n  become: true\n  ansible.builtin.copy:\n    \
             dest: {path}\n    mode: \"0644\"\n    \
             content: |\n{lines}  register: planish_tmpfiles\n\
             - name: {name} write them\n  become: true\n  ansible.builtin.command: systemd-tmpfiles --create {path}\n  \
             when: planish_tmpfiles is changed\n"
        );
    }
    for item in items {
        let Some(line) = item.command_line() else { continue };
        text += &format!(
            "- name: {name} {}\n  become: true\n  ansible.builtin.shell: |\n    failed=0\n    {}    exit $failed\n",
            item.knob, line
        );
    }
    let given = arguments(items);
    if !given.is_empty() {
        text += &by.tasks(name, &given);
    }
    text += &of_units(head, items);
    vec![ExportedFile { path: format!("{name}.yml"), text }]
}

/// A folder and a file for each unit; systemd is told once of all of them, where one has changed.
fn of_units(head: &Head<'_>, items: &[Item]) -> String {
    let name = head.name;
    let (mut text, mut changed) = (String::new(), Vec::new());
    for (number, one) in units::drop_ins(head, items).iter().enumerate() {
        let lines: String = one.text().lines().map(|line| format!("      {line}\n")).collect();
        let (unit, folder, path) = (&one.unit, one.folder(), one.path());
        text += &format!(
            "- name: {name} folder for {unit}\n  become: true\n  ansible.builtin.file:\n    path: {folder}\n    \
             state: directory\n    mode: \"0755\"\n\
             - name: {name} settings of {unit}\n  become: true\n  ansible.builtin.copy:\n    dest: {path}\n    \
             mode: \"0644\"\n    content: |\n{lines}  register: planish_unit_{number}\n"
        );
        changed.push(format!("planish_unit_{number} is changed"));
    }
    if !changed.is_empty() {
        text += &format!(
            "- name: {name} have systemd read them\n  become: true\n  ansible.builtin.systemd:\n    \
             daemon_reload: true\n  when: {}\n",
            changed.join(" or ")
        );
    }
    text
}
