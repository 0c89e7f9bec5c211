//! How tasks give a host the arguments of its kernel: each boot loader has a way of its own.

use std::borrow::Cow;

use planish_model::{BootLoader, Generator};

use super::ExportFormat;
use crate::item::Item;

/// How tasks give a host the arguments of its kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ArgumentsBy {
    /// `grubby`, of Fedora and its children, which puts them into the entries of GRUB.
    #[default]
    Grubby,
    /// A file that GRUB's script reads beside its defaults, and what makes the menu of both.
    DropIn(Generator),
    /// No program or file of which tasks could say that it is there.
    Nothing,
    /// Nobody here knows: the loader is another one, or its files are not here, odd, or root's to read.
    Unknown {
        /// What was seen of it.
        reason: String,
        /// What to do about it.
        cure: String,
    },
}

impl ArgumentsBy {
    /// How a host of this loader is given them. On a host without one nobody can tell how those are that the tasks are
    /// for.
    #[must_use]
    pub fn of(loader: &BootLoader) -> Self {
        let files = match loader {
            BootLoader::Known(files) => files,
            BootLoader::Outside { .. } => return Self::Nothing,
            BootLoader::Unknown { reason, cure } => {
                return Self::Unknown { reason: reason.clone(), cure: cure.clone() };
            }
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
    pub fn beyond(&self, format: ExportFormat, item: &Item) -> Option<Cow<'static, str>> {
        if format != ExportFormat::Ansible || !item.is_boot() {
            return None;
        }
        match self {
            Self::Grubby | Self::DropIn(_) => None,
            Self::Nothing => Some(Cow::Borrowed(
                "set on the kernel command line, and this host has neither grubby nor drop-ins of GRUB: \
                 export kernel-args",
            )),
            // An apply of the same is refused with the same words.
            Self::Unknown { reason, cure } => Some(Cow::Owned(format!(
                "set on the kernel command line, and nobody can tell how this host is given those: {reason}; \
                 export kernel-args, or {cure}"
            ))),
        }
    }

    /// The tasks that give these arguments, for a profile of a name.
    pub(super) fn tasks(&self, name: &str, given: &str) -> String {
        match self {
            Self::Grubby | Self::Nothing | Self::Unknown { .. } => format!(
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
