//! Devices as rules of udev see them, as far as the files of the host tell.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use planish_host::Host;
use planish_udev::{Device, Holds, Known, Parent};

use super::Places;

/// Kinds of devices that knobs have places on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::persisted) enum Class {
    Net,
    Block,
    ScsiDisk,
    Cpu,
    Module,
}

impl Class {
    pub(super) const ALL: [Self; 5] = [Self::Net, Self::Block, Self::ScsiDisk, Self::Cpu, Self::Module];

    /// The folder of its devices.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Net => "/sys/class/net/",
            Self::Block => "/sys/block/",
            Self::ScsiDisk => "/sys/class/scsi_disk/",
            Self::Cpu => "/sys/devices/system/cpu/",
            Self::Module => "/sys/module/",
        }
    }

    fn subsystem(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::Block => "block",
            Self::ScsiDisk => "scsi_disk",
            Self::Cpu => "cpu",
            Self::Module => "module",
        }
    }

    /// Whether a name in its folder is that of a device.
    pub(super) fn is_device(self, name: &str) -> bool {
        let number = name.strip_prefix("cpu").unwrap_or_default();
        self != Self::Cpu || (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    }
}

/// A device of this host.
pub(super) struct Seen<'a> {
    host: &'a Host,
    places: &'a Places,
    pub(super) class: Class,
    pub(super) name: String,
    pub(super) folder: String,
    properties: OnceCell<Option<BTreeMap<String, String>>>,
}

impl<'a> Seen<'a> {
    pub(super) fn of(host: &'a Host, class: Class, name: &str, places: &'a Places) -> Self {
        let folder = format!("{}{name}", class.folder());
        let seen = Self { host, places, class, name: name.to_owned(), folder, properties: OnceCell::new() };
        if class == Class::Block {
            // Rules of ours tell disks by them: a recording has them, too.
            seen.given("");
        }
        seen
    }

    /// A property that udev gave it.
    fn given(&self, key: &str) -> Option<String> {
        let all = self.properties.get_or_init(|| self.host.udev_properties(&self.folder));
        all.as_ref()?.get(key).cloned()
    }

    /// What is not there is known on the live machine alone: a recording has what was asked for.
    fn absent(&self) -> Known {
        if self.host.is_live() { Known::Absent } else { Known::Unknown }
    }

    fn read(&self, path: &str) -> Known {
        let path = format!("{}/{path}", self.folder);
        match self.host.read(&path) {
            Ok(text) => Known::Is(text.trim_end().to_owned()),
            Err(_) if self.host.exists(&path) => Known::Unknown,
            Err(_) => self.absent(),
        }
    }

    /// Where a link of a folder leads, by its last name.
    fn link(&self, path: &str) -> Known {
        match self.host.read_link(path) {
            Some(target) => Known::or_unknown(target.rsplit('/').next().map(str::to_owned)),
            None => self.absent(),
        }
    }

    fn parent(&self, folder: &str, kernel: Known) -> Parent {
        Parent {
            kernel,
            subsystem: self.link(&format!("{folder}/subsystem")),
            driver: self.link(&format!("{folder}/driver")),
        }
    }
}

impl Device for Seen<'_> {
    fn subsystem(&self) -> Known {
        Known::Is(self.class.subsystem().to_owned())
    }

    fn kernel(&self) -> Known {
        // A card that was renamed had another name before, unless an initramfs did it (`NET_NAME_RENAMED` in
        // include/uapi/linux/netdevice.h is 4; the file of one that the kernel knows nothing of cannot be read).
        let is_as_made =
            |told: Known| matches!(told, Known::Is(how) if ["1", "2", "3"].contains(&how.as_str()));
        if self.class == Class::Net && !is_as_made(self.read("name_assign_type")) {
            return Known::Unknown;
        }
        self.name()
    }

    fn name(&self) -> Known {
        // A slash of a name is an exclamation mark in a folder.
        Known::Is(self.name.replace('!', "/"))
    }

    fn attribute(&self, path: &str) -> Known {
        // What a knob sets shows its value of now, and not that of a boot.
        if self.places.tails.contains(path) {
            return Known::Unknown;
        }
        match (self.class, path) {
            // A card of a bond has the address of the bond, and its own there; rules see it before it is in one.
            (Class::Net, "address") => match (self.read("bonding_slave/perm_hwaddr"), self.read("address")) {
                (Known::Is(own), _) | (_, Known::Is(own)) => Known::Is(own.trim().to_ascii_lowercase()),
                _ => Known::Unknown,
            },
            _ => self.read(path),
        }
    }

    fn property(&self, key: &str) -> Known {
        let own = match (self.class, key) {
            (_, "SUBSYSTEM") => Some(self.class.subsystem().to_owned()),
            // Only whole disks have a queue, and a folder in /sys/block.
            (Class::Block, "DEVTYPE") => Some("disk".to_owned()),
            (Class::Block, "DEVNAME") => Some(format!("/dev/{}", self.name.replace('!', "/"))),
            (Class::Net, "INTERFACE") => Some(self.name.clone()),
            (Class::Net, "ID_NET_DRIVER") => match self.link(&format!("{}/device/driver", self.folder)) {
                Known::Is(driver) => Some(driver),
                _ => self.given(key),
            },
            // What udev itself found of the device. What it does not have it may have by a rule that is new.
            (Class::Net | Class::Block, _) if ["ID_", "DM_", "MD_"].iter().any(|of| key.starts_with(of)) => {
                self.given(key)
            }
            _ => None,
        };
        Known::or_unknown(own)
    }

    fn parents(&self) -> Vec<Parent> {
        let none = || Known::Absent;
        let itself = Parent { kernel: self.kernel(), subsystem: self.subsystem(), driver: none() };
        let device = format!("{}/device", self.folder);
        let mut found = vec![itself];
        if !matches!(self.class, Class::Net | Class::Block | Class::ScsiDisk) || !self.host.exists(&device) {
            return found;
        }
        found.push(self.parent(&device, self.link(&device)));
        // Above it by the folders that it lies in.
        let mut above = self.host.canonical(&device).unwrap_or_default();
        while let Some((folder, _)) =
            above.rsplit_once('/').filter(|(folder, _)| folder.len() > "/sys/devices".len())
        {
            let name = folder.rsplit('/').next().unwrap_or_default().to_owned();
            if self.host.read_link(&format!("{folder}/subsystem")).is_some() {
                found.push(self.parent(folder, Known::Is(name)));
            }
            above = folder.to_owned();
        }
        found
    }

    fn has_all_parents(&self) -> bool {
        self.host.is_live() && matches!(self.class, Class::Net | Class::Block | Class::ScsiDisk)
    }

    fn sysctl(&self, _: &str) -> Known {
        // It shows the value of now.
        Known::Unknown
    }

    fn has_file(&self, path: &str) -> Holds {
        let path = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.folder) };
        match self.host.exists(&path) {
            true => Holds::Yes,
            false if self.host.is_live() => Holds::No,
            false => Holds::Maybe,
        }
    }

    fn constant(&self, name: &str) -> Known {
        let arch = match self.host.arch().as_str() {
            "x86_64" => Some("x86-64"),
            "aarch64" => Some("arm64"),
            _ => None,
        };
        Known::or_unknown(arch.filter(|_| name == "arch").map(str::to_owned))
    }

    fn folder(&self) -> Option<String> {
        self.folder.strip_prefix("/sys").map(str::to_owned)
    }
}

/// A device of which nothing is known.
pub(super) struct Any;

impl Device for Any {
    fn subsystem(&self) -> Known {
        Known::Unknown
    }

    fn kernel(&self) -> Known {
        Known::Unknown
    }

    fn name(&self) -> Known {
        Known::Unknown
    }

    fn attribute(&self, _: &str) -> Known {
        Known::Unknown
    }

    fn property(&self, _: &str) -> Known {
        Known::Unknown
    }

    fn parents(&self) -> Vec<Parent> {
        Vec::new()
    }

    fn has_all_parents(&self) -> bool {
        false
    }

    fn sysctl(&self, _: &str) -> Known {
        Known::Unknown
    }

    fn has_file(&self, _: &str) -> Holds {
        Holds::Maybe
    }

    fn constant(&self, _: &str) -> Known {
        Known::Unknown
    }

    fn folder(&self) -> Option<String> {
        None
    }
}
