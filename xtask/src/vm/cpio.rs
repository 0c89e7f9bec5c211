//! The archive format that the kernel unpacks as its first root
//! (`Documentation/driver-api/early-userspace/buffer-format.rst`).
//!
//! Only what a guest needs: folders, plain files, and the console node that must exist before
//! devtmpfs is mounted. Owner and times are zero, so that the same content gives the same bytes.

use std::io::{Result, Write};

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// Writes one archive; [`Archive::finish`] must be called.
pub struct Archive<W: Write> {
    out: W,
    inode: u32,
    position: usize,
}

impl<W: Write> Archive<W> {
    /// Starts an archive.
    pub fn new(out: W) -> Self {
        Self { out, inode: 0, position: 0 }
    }

    /// Adds a folder; parents must come first.
    pub fn folder(&mut self, name: &str) -> Result<()> {
        self.entry(name, FOLDER, (0, 0), &[])
    }

    /// Adds a file that may be executed.
    pub fn program(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.entry(name, PROGRAM, (0, 0), bytes)
    }

    /// Adds a character device; numbers as in `Documentation/admin-guide/devices.txt`.
    pub fn character_device(&mut self, name: &str, major: u32, minor: u32) -> Result<()> {
        self.entry(name, CHARACTER_DEVICE, (major, minor), &[])
    }

    /// Writes the closing entry and returns the writer.
    pub fn finish(mut self) -> Result<W> {
        self.inode = 0;
        self.entry("TRAILER!!!", 0, (0, 0), &[])?;
        Ok(self.out)
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), bytes: &[u8]) -> Result<()> {
        let size = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
        let name_size = name.len() as u32 + 1;
        let link_count = 1;
        // magic, then: inode mode uid gid links mtime size devmajor devminor rdevmajor rdevminor name check
        let fields = [self.inode, mode, 0, 0, link_count, 0, size, 0, 0, device.0, device.1, name_size, 0];
        let mut header = String::from("070701");
        for field in fields {
            header.push_str(&format!("{field:08x}"));
        }
        self.inode += 1;
        self.put(header.as_bytes())?;
        self.put(name.as_bytes())?;
        self.put(b"\0")?;
        self.align()?;
        self.put(bytes)?;
        self.align()
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.position += bytes.len();
        self.out.write_all(bytes)
    }

    /// Header with name, and content, each end on a multiple of four bytes.
    fn align(&mut self) -> Result<()> {
        let rest = self.position.next_multiple_of(4) - self.position;
        self.put(&[0; 3][..rest])
    }
}

#[cfg(test)]
mod tests {
    use super::Archive;

    #[test]
    fn entries_are_aligned_and_closed() {
        let mut archive = Archive::new(Vec::new());
        archive.folder("dev").unwrap();
        archive.program("init", b"12345").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        // 110 bytes of header, "dev\0" ends at 114, padded to 116: the next header starts there.
        assert_eq!(&bytes[116..122], b"070701");
        // "init\0" of the second entry ends at 231, padded to 232.
        assert_eq!(&bytes[232..240], b"12345\0\0\0");
        assert!(bytes.windows(10).any(|window| window == b"TRAILER!!!"));
    }
}
