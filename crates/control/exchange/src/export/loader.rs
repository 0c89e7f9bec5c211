//! How tasks give a host the arguments of its kernel: each boot loader has a way of its own.

use planish_model::{BootLoader, Generator};

use super::ExportFormat;
use crate::item::Item;

/// How tasks give a host the arguments of its kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArgumentsBy {
    /// `grubby`, of Fedora and its children, which puts them into the entries of GRUB.
    #[default]
    Grubby,
    /// A file that GRUB's script reads beside its defaults, and what makes the menu of both.
    DropIn(Generator),
    /// No program or file of which tasks could say that it is there.
    Nothing,
    /// Nobody here knows: the loader is another one, or its files are root's to read.
    Unknown,
}

impl ArgumentsBy {
    /// How a host of this loader is given them. On a host without one nobody can tell how those are that the tasks are
    /// for.
    #[must_use]
    pub fn of(loader: &BootLoader) -> Self {
        let files = match loader {
            BootLoader::Known(files) => files,
            BootLoader::Outside { .. } => return Self::Nothing,
            BootLoader::Unknown { .. } => return Self::Unknown,
        };
        match files.generator {
            Some(generator) if files.own.is_some() => Self::DropIn(generator),
            // systemd-boot has entries, too, and no grubby.
            None if files.name.starts_with("GRUB") => Self::Grubby,
            _ => Self::Nothing,
        }
    }

    /// Why a format does not carry an item to a host of this loader; `None` where it does.
    #[must_use]
    pub fn beyond(self, format: ExportFormat, item: &Item) -> Option<&'static str> {
        let why = match self {
            Self::Grubby | Self::DropIn(_) => return None,
            Self::Nothing => {
                "set on the kernel command line, and this host has neither grubby nor drop-ins of GRUB: \
                 export kernel-args"
            }
            Self::Unknown => {
                "set on the kernel command line, and what boots this host is not known, or is root's to read: \
                 export kernel-args, or export as root"
            }
        };
        (format == ExportFormat::Ansible && item.is_boot()).then_some(why)
    }

    /// The tasks that give these arguments, for a profile of a name.
    pub(super) fn tasks(self, name: &str, given: &str) -> String {
        match self {
            Self::Grubby | Self::Nothing | Self::Unknown => format!(
                "- name: {name} kernel command line\n  become: true\n  \
                 ansible.builtin.command: grubby --update-kernel=ALL --args=\"{given}\"\n"
            ),
            Self::DropIn(generator) => format!(
                "- name: {name} folder of drop-ins of GRUB\n  become: true\n  ansible.builtin.file:\n    \
                 path: /etc/default/grub.d\n    state: directory\n    mode: \"0755\"\n\
                 - name: {name} kernel command line\n  become: true\n  ansible.builtin.copy:\n    \
                 dest: /etc/default/grub.d/90-{name}.cfg\n    mode: \"0644\"\n    content: |\n      \
                 GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT {given}\"\n  register: planish_boot\n\
                 - name: {name} menu of the boot loader\n  become: true\n  ansible.builtin.command: {}\n  \
                 when: planish_boot is changed\n",
                generator.line()
            ),
        }
    }
}
