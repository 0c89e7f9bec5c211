//! The disks: Debians that are made once and kept in the cache, and a small one with what is tested.

use super::form::Form;
use super::stage::{End, Machine};
use crate::vm::Programs;
use crate::{setup, shell};
use anyhow::{Context, Result, bail};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = "tests/vm/debian.sh";

/// The image that guests of a form are copied from. What an older script made is removed.
pub fn base(folder: &Path, form: Form) -> Result<PathBuf> {
    setup::ensure(&[&setup::MKE2FS], setup::Without::Refused)?;
    let script = fs::read(SCRIPT).with_context(|| format!("read {SCRIPT}"))?;
    let mut hasher = DefaultHasher::new();
    script.hash(&mut hasher);
    let made_by = format!("debian-{:016x}-", hasher.finish());
    let image = folder.join(format!("{made_by}{}.img", form.kind()));
    if image.exists() {
        return Ok(image);
    }
    setup::ensure(&[&setup::DEBOOTSTRAP, &setup::SFDISK], setup::Without::Refused)?;
    for old in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?.flatten() {
        let name = old.file_name().to_string_lossy().into_owned();
        if name.starts_with("debian-") && !name.starts_with(&made_by) {
            fs::remove_file(old.path()).with_context(|| format!("remove {name}"))?;
        }
    }
    let part = folder.join("debian-part.img");
    shell::run(Command::new(SCRIPT).arg(form.kind()).arg(&part))?;
    install_loader(&part, folder)?;
    for end in ["vmlinuz", "initrd"] {
        let _ = fs::remove_file(part.with_extension(format!("img.{end}")));
    }
    // Renamed when complete, so that one whose making was killed is not taken for an image.
    fs::rename(&part, &image).with_context(|| format!("name {}", image.display()))?;
    Ok(image)
}

/// The first boot, with the kernel given by QEMU: the guest puts GRUB on its own disk.
fn install_loader(disk: &Path, folder: &Path) -> Result<()> {
    let log = folder.join("debian-prepare.log");
    let machine = Machine { disk, writes: None, tools: None, variables: None, log: &log };
    let kernel = [disk.with_extension("img.vmlinuz"), disk.with_extension("img.initrd")];
    let words = "root=/dev/vda1 ro console=ttyS0 quiet tsc=reliable no_timer_check mitigations=off panic=-1 \
                 init=/usr/local/sbin/planish-prepare";
    match machine.prepare(&kernel, words)? {
        End::Last => Ok(()),
        End::Next(_) | End::Cut(_) => {
            bail!("the guest that installs GRUB named a stage; see {}", log.display())
        }
        End::Lost(why) => bail!("GRUB was not installed: {why}; see {}", log.display()),
    }
}

/// A file system with the programs that the guest runs.
pub fn of_programs(programs: &Programs, folder: &Path, image: &Path) -> Result<()> {
    let tree = folder.join("disk-programs");
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree).with_context(|| format!("make {}", tree.display()))?;
    let planish = programs.planish.as_deref().context("there is no planish to put into the guest")?;
    // Without a compiler there is none, which the guest tells.
    let place = programs.others.iter().find(|other| other.name == "bin/place-glibc");
    let place = place.map(|other| ("place-glibc", other.bytes.as_slice()));
    let mut size_bytes = 0;
    for (name, bytes) in [("init", programs.init.as_slice()), ("planish", planish)].into_iter().chain(place) {
        let path = tree.join(name);
        fs::write(&path, bytes).with_context(|| format!("write {}", path.display()))?;
        executable(&path)?;
        size_bytes += bytes.len();
    }
    let _ = fs::remove_file(image);
    // Twice the content and room for the file system's own.
    let size_kib = size_bytes / 512 + 4096;
    let mut command = Command::new("mke2fs");
    command.args(["-q", "-t", "ext4", "-O", "^has_journal", "-d"]).arg(&tree).arg(image);
    shell::run(command.arg(format!("{size_kib}k")))?;
    fs::remove_dir_all(&tree).with_context(|| format!("remove {}", tree.display()))
}

fn executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("mode of {}", path.display()))
}
