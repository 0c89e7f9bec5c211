//! What lies with a file besides its content: owner, mode, and attributes, which are capabilities, access lists and
//! labels.
//!
//! All of it by open files: a name is whatever its folder's owner makes of it between two calls.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

use planish_sys::file::{attribute, attributes, give_attribute};
use rustix::fs::fremovexattr;
use rustix::io::Errno;

/// Bits of a mode that are given to another file. To run with the rights of the owner or the group is not among them:
/// such a program is not replaced, so that one which got the bits since is none to give them on.
const MODE: u32 = 0o1777;

/// Bits that make a program run with the rights of its owner or group.
pub(super) const SETUID: u32 = 0o6000;

/// What lies with a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rights {
    owner: (u32, u32),
    mode: u32,
    attributes: BTreeMap<String, Vec<u8>>,
}

impl Rights {
    /// Those of a file.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let names = attributes(file)?.into_iter();
        let values = names.map(|name| attribute(file, &name).map(|value| (name, value)));
        Ok(Self {
            owner: (metadata.uid(), metadata.gid()),
            mode: metadata.mode() & 0o7777,
            attributes: values.collect::<io::Result<_>>()?,
        })
    }

    /// Whether the file runs with the rights of its owner or group.
    pub(super) fn is_setuid(&self) -> bool {
        self.mode & SETUID != 0
    }

    /// Gives them to another file. What of it cannot be had is an error: a program without its capabilities is another
    /// one.
    pub(super) fn give(&self, file: &File) -> io::Result<()> {
        let has = Self::of(file)?;
        if has.owner != self.owner {
            // The kernel takes capabilities away with it, so that it comes first.
            fchown(file, Some(self.owner.0), Some(self.owner.1))?;
        }
        for name in has.attributes.keys().filter(|name| !self.attributes.contains_key(*name)) {
            match fremovexattr(file, name.as_str()) {
                // A label that every file of the folder gets cannot be taken away, and needs not.
                Ok(()) | Err(Errno::NODATA | Errno::PERM | Errno::ACCESS) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        for (name, value) in &self.attributes {
            give_attribute(file, name, value)?;
        }
        file.set_permissions(Permissions::from_mode(self.mode & MODE))?;
        let kept = attributes(file)?;
        let is_same = self.attributes.keys().all(|name| kept.contains(name));
        if is_same { Ok(()) } else { Err(io::Error::other("its attributes cannot be kept")) }
    }
}
