//! Images of file systems for the guests, empty as their tools make them. Nothing is mounted here: that is the guest's.
//!
//! An image is nearly all zeroes, so that it is packed as the pieces that are not:
//!
//! ```text
//! length of the image | offset, 4096 bytes | offset, 4096 bytes | ...        numbers of 64 bits, little-endian
//! ```

use super::programs::Packed;
use crate::{ground, shell};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;

const PIECE_BYTES: usize = 4096;
const MIB: u64 = 1 << 20;

/// An image to be made.
struct Wanted {
    /// Its name in the guest, below `images`.
    name: &'static str,
    mib: u64,
    tool: &'static str,
    args: &'static [&'static str],
}

const ALL: &[Wanted] = &[
    Wanted { name: "ext4", mib: 64, tool: "mke2fs", args: &["-q", "-F", "-t", "ext4", "-b", "4096"] },
    Wanted { name: "ext4-1k", mib: 64, tool: "mke2fs", args: &["-q", "-F", "-t", "ext4", "-b", "1024"] },
    // Its tool makes none below 300 MiB, of which nearly nothing is written.
    Wanted { name: "xfs", mib: 320, tool: "mkfs.xfs", args: &["-q", "-f"] },
];

/// What could be made, and a line for each that could not.
pub fn make() -> Result<(Vec<Packed>, Vec<String>)> {
    let folder = ground::target_dir()?.join("vm-images");
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let (mut packed, mut skips) = (Vec::new(), Vec::new());
    for wanted in ALL {
        match wanted.make(&folder.join(wanted.name)) {
            Ok(bytes) => packed.push(Packed { name: format!("images/{}", wanted.name), bytes }),
            Err(error) => skips.push(format!("SKIP vm.image-{}: {error:#}", wanted.name)),
        }
    }
    Ok((packed, skips))
}

impl Wanted {
    fn make(&self, image: &Path) -> Result<Vec<u8>> {
        let tool = shell::which(self.tool).with_context(|| format!("no {}", self.tool))?;
        let file = File::create(image).with_context(|| format!("make {}", image.display()))?;
        let bytes = self.mib * MIB;
        file.set_len(bytes).with_context(|| format!("lengthen {}", image.display()))?;
        shell::run(Command::new(tool).args(self.args).arg(image))?;
        let file = File::open(image).with_context(|| format!("open {}", image.display()))?;
        let pieces = pieces(file, bytes).with_context(|| format!("read {}", image.display()))?;
        fs::remove_file(image).with_context(|| format!("remove {}", image.display()))?;
        Ok(pieces)
    }
}

/// What is not zero of so many bytes, which are whole pieces.
fn pieces(mut from: impl Read, bytes: u64) -> Result<Vec<u8>> {
    let mut packed = bytes.to_le_bytes().to_vec();
    let mut piece = [0; PIECE_BYTES];
    for offset in (0..bytes).step_by(PIECE_BYTES) {
        from.read_exact(&mut piece)?;
        if piece.iter().any(|byte| *byte != 0) {
            packed.extend(offset.to_le_bytes());
            packed.extend(piece);
        }
    }
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use super::{PIECE_BYTES, pieces};

    #[test]
    fn only_what_is_written_is_packed() {
        let mut image = vec![0; 4 * PIECE_BYTES];
        image[2 * PIECE_BYTES + 7] = 9;
        let packed = pieces(image.as_slice(), image.len() as u64).unwrap();
        assert_eq!(packed.len(), 8 + 8 + PIECE_BYTES);
        assert_eq!(packed[..16], [0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
        assert_eq!(packed[16 + 7], 9);
    }
}
