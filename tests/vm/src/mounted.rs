//! File systems of the guest's own, of which each is there as long as somebody looks at what is on it.
//!
//! Those of a disk are empty images that the host side packed (`xtask/src/vm/images.rs`): files in memory behind a loop
//! device. What the host side could not make, or this kernel cannot mount, is told as such and is no failure.

use std::ffi::{CString, c_ulong};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

const IMAGES: &str = "/images";
const HERE: &str = "/tmp/mounted";
const PIECE_BYTES: usize = 4096;
/// As a copier of files writes them: in pieces of this size and no larger, which leave no huge page in the page cache
/// where nobody asks for one.
const WRITE_BYTES: usize = 128 << 10;
/// Room on a tmpfs for a program and its copy.
const TMPFS_SIZE: &str = "64m";
/// `LOOP_SET_FD`, `LOOP_CLR_FD` and `LOOP_CTL_GET_FREE` of include/uapi/linux/loop.h.
const SET_FD: c_ulong = 0x4C00;
const CLEAR_FD: c_ulong = 0x4C01;
const GET_FREE: c_ulong = 0x4C82;

/// A file system that a program is put on.
pub struct FileSystem {
    /// In names of checks.
    pub word: &'static str,
    /// As people call it.
    pub what: &'static str,
    kind: Kind,
}

enum Kind {
    /// With this value of `huge`.
    Tmpfs(&'static str),
    Disk(Disk),
    /// The upper layer is on that disk; the program is in the lower one, or in the upper one.
    Overlay {
        on: Disk,
        is_lower: bool,
    },
}

/// An image, and what mounts it.
#[derive(Clone, Copy)]
struct Disk {
    image: &'static str,
    driver: &'static str,
}

const EXT4: Disk = Disk { image: "ext4", driver: "ext4" };
const EXT4_1K: Disk = Disk { image: "ext4-1k", driver: "ext4" };
const XFS: Disk = Disk { image: "xfs", driver: "xfs" };

const fn row(word: &'static str, what: &'static str, kind: Kind) -> FileSystem {
    FileSystem { word, what, kind }
}

/// In the order of the table in `docs/text-huge.md`.
pub const ALL: &[FileSystem] = &[
    row("ext4", "ext4, blocks of 4 KiB", Kind::Disk(EXT4)),
    row("ext4-1k", "ext4, blocks of 1 KiB", Kind::Disk(EXT4_1K)),
    row("xfs", "xfs", Kind::Disk(XFS)),
    row("overlay-ext4", "overlayfs, upper on ext4", Kind::Overlay { on: EXT4, is_lower: false }),
    row("overlay-xfs", "overlayfs, upper on xfs", Kind::Overlay { on: XFS, is_lower: false }),
    row("lower-ext4", "overlayfs, lower on ext4", Kind::Overlay { on: EXT4, is_lower: true }),
    row("lower-xfs", "overlayfs, lower on xfs", Kind::Overlay { on: XFS, is_lower: true }),
    row("tmpfs-never", "tmpfs, huge=never", Kind::Tmpfs("never")),
    row("tmpfs-advise", "tmpfs, huge=advise", Kind::Tmpfs("advise")),
    row("tmpfs-always", "tmpfs, huge=always", Kind::Tmpfs("always")),
];

/// A file system with a program on it.
pub struct Mounted {
    /// The program, where it can be started.
    pub program: PathBuf,
    /// In the order in which they were mounted.
    places: Vec<PathBuf>,
    image: Option<PathBuf>,
}

/// One that is there, or why this guest cannot have it.
pub type Made = std::result::Result<Mounted, String>;

impl FileSystem {
    /// Makes it anew and writes a program on it, of which nothing is in the page cache but what was written.
    pub fn with(&self, program: &[u8]) -> Result<Made> {
        let mut made = Mounted { program: PathBuf::new(), places: Vec::new(), image: None };
        let why = match self.kind {
            Kind::Tmpfs(huge) => {
                made.mount("tmpfs", "tmpfs", "disk", &format!("huge={huge},size={TMPFS_SIZE}"))?
            }
            Kind::Disk(disk) | Kind::Overlay { on: disk, .. } => made.mount_disk(disk)?,
        };
        let disk = Path::new(HERE).join("disk");
        let why = match (why, &self.kind) {
            (None, Kind::Overlay { is_lower, .. }) => {
                let layer = |name: &str| disk.join(name);
                for name in ["lower", "upper", "work"] {
                    fs::create_dir(layer(name)).with_context(|| format!("make the {name} layer"))?;
                }
                write(&layer(if *is_lower { "lower" } else { "upper" }), program)?;
                let of = |name: &str| layer(name).display().to_string();
                let layers =
                    format!("lowerdir={},upperdir={},workdir={}", of("lower"), of("upper"), of("work"));
                made.program = Path::new(HERE).join("overlay/engine");
                made.mount("overlay", "overlay", "overlay", &layers)?
            }
            (None, _) => {
                made.program = write(&disk, program)?;
                None
            }
            (why, _) => why,
        };
        let Some(why) = why else { return Ok(Ok(made)) };
        made.give_back()?;
        Ok(Err(why))
    }
}

/// Writes a program as a copier of files would, down to the disk.
fn write(folder: &Path, program: &[u8]) -> Result<PathBuf> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = folder.join("engine");
    let failed = || format!("write {}", path.display());
    let file = File::options().write(true).create_new(true).mode(0o755).open(&path);
    let mut file = file.with_context(failed)?;
    program.chunks(WRITE_BYTES).try_for_each(|piece| file.write_all(piece)).with_context(failed)?;
    file.sync_all().with_context(failed)?;
    Ok(path)
}

impl Mounted {
    /// Takes away what was mounted, and what it was on.
    pub fn give_back(mut self) -> Result<()> {
        while let Some(place) = self.places.pop() {
            unmount(&place, UnmountFlags::empty()).with_context(|| format!("unmount {}", place.display()))?;
        }
        let Some(image) = self.image.take() else { return Ok(()) };
        fs::remove_file(&image).with_context(|| format!("remove {}", image.display()))
    }

    /// Why the kernel does not mount it, where that is no failure: it has no such file system.
    fn mount(&mut self, source: &str, driver: &str, name: &str, data: &str) -> Result<Option<String>> {
        let place = Path::new(HERE).join(name);
        fs::create_dir_all(&place).with_context(|| format!("make {}", place.display()))?;
        let data = CString::new(data)?;
        match mount(source, &place, driver, MountFlags::empty(), &*data) {
            Ok(()) => {}
            Err(Errno::NODEV) => return Ok(Some(format!("this kernel has no {driver}"))),
            // The tools of the host side may be newer than this kernel.
            Err(Errno::INVAL) if driver != "overlay" => {
                return Ok(Some(format!("this kernel mounts no such {driver}")));
            }
            Err(error) => return Err(error).with_context(|| format!("mount {driver} with {data:?}")),
        }
        self.places.push(place);
        Ok(None)
    }

    fn mount_disk(&mut self, disk: Disk) -> Result<Option<String>> {
        let Ok(packed) = fs::read(Path::new(IMAGES).join(disk.image)) else {
            return Ok(Some(format!("no image of {} was packed", disk.image)));
        };
        if !Path::new("/dev/loop-control").exists() {
            return Ok(Some("this kernel has no loop devices".to_owned()));
        }
        fs::create_dir_all(HERE).with_context(|| format!("make {HERE}"))?;
        let image = Path::new(HERE).join("image");
        let file = unpack(&packed, &image).with_context(|| format!("write {}", image.display()))?;
        self.image = Some(image);
        // It goes with its last user, which is the file system from here on.
        let device = Loop::over(&file)?;
        self.mount(&device.node, disk.driver, "disk", "")
    }
}

/// Writes an image with its holes.
fn unpack(packed: &[u8], image: &Path) -> Result<File> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(image)?;
    let (length, pieces) = packed.split_first_chunk().context("the image is cut")?;
    file.set_len(u64::from_le_bytes(*length))?;
    for piece in pieces.chunks(8 + PIECE_BYTES) {
        let (offset, bytes) = piece.split_first_chunk().context("the image is cut")?;
        file.write_all_at(bytes, u64::from_le_bytes(*offset))?;
    }
    Ok(file)
}

/// A block device that a file is behind.
struct Loop {
    node: String,
    device: File,
}

impl Loop {
    fn over(image: &File) -> Result<Self> {
        let control = File::open("/dev/loop-control").context("open /dev/loop-control")?;
        let number = ioctl(&control, GET_FREE, 0).context("find a loop device that is free")?;
        let node = format!("/dev/loop{number}");
        let device = File::options().read(true).write(true).open(&node);
        let device = device.with_context(|| format!("open {node}"))?;
        ioctl(&device, SET_FD, c_ulong::try_from(image.as_raw_fd())?)
            .with_context(|| format!("put a file behind {node}"))?;
        Ok(Self { node, device })
    }
}

impl Drop for Loop {
    /// Taken off at once where nobody has mounted it, else with its last user.
    fn drop(&mut self) {
        let _ = ioctl(&self.device, CLEAR_FD, 0);
    }
}

fn ioctl(file: &File, request: c_ulong, argument: c_ulong) -> Result<i32> {
    // SAFETY: none of the three requests takes a pointer; the descriptor is open as long as `file` lives.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) };
    ensure!(answer >= 0, "{}", std::io::Error::last_os_error());
    Ok(answer)
}
