//! The forms of the guest with a disk: which loader starts it, and on what machine.

use crate::setup;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// How the guest is started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// By GRUB, whose menu a program of the distribution makes.
    Menu,
    /// The same with a kernel that isolates CPUs of control groups.
    Newer,
    /// By GRUB, whose menu reads entries of files.
    Entries,
    /// By the firmware and systemd-boot.
    Efi,
}

impl Form {
    /// The form that a stage is of, by what its name begins with.
    pub fn of(stage: &str) -> Self {
        match stage.split_once('-') {
            Some(("bls", _)) => Self::Entries,
            Some(("efi", _)) => Self::Efi,
            Some(("newer", _)) => Self::Newer,
            _ => Self::Menu,
        }
    }

    /// The image that it starts from, as `tests/vm/debian.sh` calls it: one image is for two forms.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Menu => "menu",
            Self::Newer => "newer",
            Self::Entries | Self::Efi => "entries",
        }
    }

    /// The variables of the firmware as they are on a new machine, as a file of this guest; none where it has a BIOS.
    pub fn variables(self, folder: &Path) -> Result<Option<PathBuf>> {
        if self != Self::Efi {
            return Ok(None);
        }
        setup::ensure(&[&setup::OVMF], setup::Without::Refused)?;
        let file = folder.join("disk-variables.fd");
        fs::copy(setup::OVMF_VARIABLES, &file).with_context(|| format!("make {}", file.display()))?;
        Ok(Some(file))
    }
}

#[cfg(test)]
mod tests {
    use super::Form;

    #[test]
    fn a_stage_is_booted_by_the_loader_that_it_names() {
        let kinds = ["persist", "cut-8", "arms-1", "bls-persist", "efi-once", "newer-units"].map(Form::of);
        assert_eq!(kinds, [Form::Menu, Form::Menu, Form::Menu, Form::Entries, Form::Efi, Form::Newer]);
        assert_eq!(Form::Efi.kind(), Form::Entries.kind(), "both loaders are on one disk");
    }
}
