//! A write and the sync behind it as one call, by io_uring.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, Probe, opcode, squeue, types};

use crate::storage::WriteError;

/// A write and a sync: no more is ever on its way.
const ENTRIES: u32 = 4;
/// Of one write: the kernel's own limit is a page less than 2 GiB.
const WRITE_BYTES_MAX: usize = 1 << 30;
const WRITE: u64 = 1;
const SYNC: u64 = 2;

/// A ring that one thread uses at a time.
pub(crate) struct Ring(IoUring);

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ring")
    }
}

impl Ring {
    /// Asks the kernel for a ring that can do both.
    ///
    /// # Errors
    /// ENOSYS and EPERM where there is none or a filter forbids it; `Unsupported` before Linux 5.6.
    pub(crate) fn new() -> io::Result<Self> {
        let ring = IoUring::new(ENTRIES)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if probe.is_supported(opcode::Write::CODE) && probe.is_supported(opcode::Fsync::CODE) {
            return Ok(Self(ring));
        }
        Err(io::Error::new(io::ErrorKind::Unsupported, "io_uring of this kernel has no write"))
    }

    /// Writes all bytes and syncs the data. A short write breaks the chain to the sync; the rest is then sent anew.
    pub(crate) fn write_and_sync(
        &mut self,
        file: &File,
        mut offset: u64,
        mut bytes: &[u8],
    ) -> Result<(), WriteError> {
        loop {
            let (written, synced) = self.once(file, offset, bytes).map_err(WriteError::Sync)?;
            let written = match written {
                Err(error) if again(&error) => 0,
                Err(error) => return Err(WriteError::Write(error)),
                Ok(0) if !bytes.is_empty() => {
                    return Err(WriteError::Write(io::Error::from(io::ErrorKind::WriteZero)));
                }
                Ok(written) => written,
            };
            if written == bytes.len() {
                return synced.map_err(WriteError::Sync);
            }
            (offset, bytes) = (offset + written as u64, &bytes[written..]);
        }
    }

    /// One chain: what the write says, and the sync. An error of its own when nobody can tell what became of it.
    fn once(
        &mut self,
        file: &File,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<(io::Result<usize>, io::Result<()>)> {
        let fd = types::Fd(file.as_raw_fd());
        let length = bytes.len().min(WRITE_BYTES_MAX);
        let length_of_call = u32::try_from(length).expect("at most 1 GiB");
        let write = opcode::Write::new(fd, bytes.as_ptr(), length_of_call).offset(offset);
        let write = write.build().user_data(WRITE).flags(squeue::Flags::IO_LINK);
        let sync = opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build().user_data(SYNC);
        // SAFETY: `bytes` and the file behind `fd` are borrowed for this call, and it does not return before both
        // completions were taken from the ring, so the kernel is through with them. No panic lies between.
        unsafe { self.0.submission().push_multiple(&[write, sync]) }
            .expect("the ring is empty between calls and has room for both");
        let (mut written, mut synced) = (None, None);
        while written.is_none() || synced.is_none() {
            match self.0.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if again(&error) => {}
                // The kernel holds on to the buffer, which this thread must not let go of: there is no way on.
                Err(error) => {
                    eprintln!("io_uring lost a write of the log: {error}");
                    std::process::abort();
                }
            }
            for entry in self.0.completion() {
                let result = match entry.result() {
                    code if code < 0 => Err(io::Error::from_raw_os_error(-code)),
                    count => Ok(usize::try_from(count).expect("not negative")),
                };
                match entry.user_data() {
                    WRITE => written = Some(result),
                    _ => synced = Some(result.map(drop)),
                }
            }
        }
        let lost = || io::Error::other("io_uring gave no answer");
        Ok((written.ok_or_else(lost)?, synced.ok_or_else(lost)?))
    }
}

/// Whether the call was only disturbed.
fn again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
        || error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error())
}
