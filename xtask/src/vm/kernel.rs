//! Kernels to boot: Debian's cloud images, fetched and unpacked into the cache, never installed.
//!
//! Package names carry the exact version, so they are asked of apt, never written down here.

use crate::{ground, shell};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The kernels that checks run on, oldest first; see `docs/kernels.md`.
pub const VERSIONS: &[&str] = &["6.1", "6.12"];

/// A kernel that can be booted.
pub struct Kernel {
    /// As in [`VERSIONS`].
    pub version: String,
    /// The compressed image.
    pub image: PathBuf,
    /// Modules that a guest loads, in this order: a disk that needs no storage and network cards that lead nowhere, for
    /// their settings.
    pub modules: Vec<PathBuf>,
    /// Those of file systems, which a guest loads for the checks on them alone: a loop device is a disk more to others.
    pub file_systems: Vec<PathBuf>,
}

/// Below `lib/modules/<release>/kernel`, without the ending, which tells how they are compressed.
const MODULES: &[&str] = &[
    "fs/configfs/configfs.ko",
    "drivers/block/null_blk/null_blk.ko",
    "drivers/virtio/virtio_ring.ko",
    "drivers/virtio/virtio.ko",
    "drivers/virtio/virtio_pci_modern_dev.ko",
    "drivers/virtio/virtio_pci_legacy_dev.ko",
    "drivers/virtio/virtio_pci.ko",
    "net/core/failover.ko",
    "drivers/net/net_failover.ko",
    "drivers/net/virtio_net.ko",
    "drivers/net/vmxnet3/vmxnet3.ko",
];

/// Likewise. ext4 and tmpfs are built in.
const FILE_SYSTEMS: &[&str] =
    &["drivers/block/loop.ko", "lib/libcrc32c.ko", "fs/xfs/xfs.ko", "fs/overlayfs/overlay.ko"];

/// Returns the kernel from the cache, or fetches it.
///
/// # Errors
/// When no registry that apt knows has it: the caller skips it aloud.
pub fn fetch(version: &str) -> Result<Kernel> {
    let folder = ground::cache_dir()?.join("kernels").join(version);
    if image_in(&folder).is_none() {
        download(version, &folder)?;
    }
    let image = image_in(&folder).with_context(|| format!("no boot/vmlinuz-* in {}", folder.display()))?;
    let modules = modules_in(&folder, MODULES);
    let file_systems = modules_in(&folder, FILE_SYSTEMS);
    Ok(Kernel { version: version.to_owned(), image, modules, file_systems })
}

fn download(version: &str, folder: &Path) -> Result<()> {
    let package = resolve(version)?;
    let work = folder.with_file_name(format!("{version}.part"));
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).with_context(|| format!("make {}", work.display()))?;
    shell::run(
        Command::new("apt-get")
            .args(["download", "-qq", "--option=APT::Sandbox::User=", &package])
            .current_dir(&work),
    )?;
    let archive = fs::read_dir(&work)?.flatten().map(|entry| entry.path());
    let archive = archive.into_iter().find(|path| path.extension().is_some_and(|ext| ext == "deb"));
    let archive = archive.with_context(|| format!("apt-get download {package} left no .deb"))?;
    shell::run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&work))?;
    fs::remove_file(&archive)?;
    // Renamed when complete, so that a fetch killed half way is not taken for a kernel.
    let _ = fs::remove_dir_all(folder);
    fs::rename(&work, folder).with_context(|| format!("name {}", folder.display()))
}

fn modules_in(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
    let releases = fs::read_dir(folder.join("lib/modules")).into_iter().flatten().flatten();
    let kernels: Vec<PathBuf> = releases.map(|release| release.path().join("kernel")).collect();
    let plain_or_packed = |name: &&str| {
        let files =
            kernels.iter().flat_map(|kernel| ["", ".xz"].map(|end| kernel.join(format!("{name}{end}"))));
        files.into_iter().find(|file| file.exists())
    };
    names.iter().filter_map(plain_or_packed).collect()
}

fn image_in(folder: &Path) -> Option<PathBuf> {
    let mut images = fs::read_dir(folder.join("boot")).ok()?.flatten().map(|entry| entry.path());
    images.find(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"vmlinuz-")))
}

/// The package that a meta package stands for today.
fn resolve(version: &str) -> Result<String> {
    // A newer release has the version under its plain name, an older one under a versioned one.
    let metas = [format!("linux-image-{version}-cloud-amd64"), "linux-image-cloud-amd64".to_owned()];
    let prefix = format!("linux-image-{version}.");
    for meta in &metas {
        let Ok(text) = shell::output(Command::new("apt-cache").args(["depends", meta])) else { continue };
        if let Some(package) = depended(&text, &prefix) {
            return Ok(package);
        }
    }
    anyhow::bail!("apt knows no cloud kernel {version} (asked for {})", metas.join(", "))
}

fn depended(depends: &str, prefix: &str) -> Option<String> {
    let mut packages = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    packages.find(|package| package.starts_with(prefix)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::depended;

    #[test]
    fn kernel_6_1_is_not_taken_for_6_12() {
        let text = "linux-image-cloud-amd64\n  Depends: linux-image-6.12.117+deb12-cloud-amd64\n";
        assert_eq!(depended(text, "linux-image-6.1."), None);
        assert_eq!(depended(text, "linux-image-6.12.").unwrap(), "linux-image-6.12.117+deb12-cloud-amd64");
    }
}
