//! Datagrams, with what the kernel says of who sent them.
//!
//! Source: unix(7), SCM_CREDENTIALS. The number of a sender that this PID namespace does not know is 0, for which the
//! credentials of rustix have no value; so the call is made here.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::raw::check;

/// Who sent a datagram, by the word of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Its process, by its number here; 0 for one outside of our PID namespace.
    pub pid: u32,
    /// Its real user id.
    pub user: u32,
}

/// Has the kernel name the sender of each datagram that this socket is sent from here on.
///
/// # Errors
/// It is no socket.
pub fn name_senders(socket: BorrowedFd<'_>) -> Result<()> {
    let wanted = rustix::net::sockopt::set_socket_passcred(socket, true);
    wanted.map_err(|errno| Error::of("setsockopt", errno))
}

/// Takes the next datagram into `bytes`, without waiting: how many of them it filled, and its sender. `None` where
/// none waits. Files that come with it are closed.
///
/// # Errors
/// The kernel's, and a datagram without a sender: see [`name_senders`].
pub fn receive(socket: impl AsFd, bytes: &mut [u8]) -> Result<Option<(usize, Sender)>> {
    // A header and credentials, in whole words; aligned as the header is. There is no room for anything else, so that
    // files somebody sends along never become ours.
    let mut control = [0u64; 4];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: a `msghdr` is integers and pointers, for which all-zero is a value; some libcs pad it.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    let length = loop {
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        // SAFETY: the message names two buffers that outlive the call, with their lengths.
        let returned = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, flags) };
        match check(returned as libc::c_long) {
            Ok(length) => break length,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(Error::of("recvmsg", errno)),
        }
    };
    let sender = sender(&message).ok_or(Error::of("recvmsg", Errno::NODATA))?;
    Ok(Some((length, sender)))
}

/// The credentials in what came with a message.
fn sender(message: &libc::msghdr) -> Option<Sender> {
    // SAFETY: the kernel has filled the control buffer, and its length, which is not below that of a header when the
    // pointer is not null.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    let is_it = header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_CREDENTIALS;
    // SAFETY: of these, the kernel has written a `ucred` behind the header; it may lie unaligned.
    let credentials =
        is_it.then(|| unsafe { libc::CMSG_DATA(header).cast::<libc::ucred>().read_unaligned() })?;
    Some(Sender { pid: credentials.pid.unsigned_abs(), user: credentials.uid })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn the_kernel_names_the_sender() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        name_senders(ours.as_fd()).unwrap();
        let mut bytes = [0u8; 8];
        assert_eq!(receive(&ours, &mut bytes).unwrap(), None);
        theirs.send(b"hello").unwrap();
        let me = Sender { pid: std::process::id(), user: rustix::process::getuid().as_raw() };
        assert_eq!(receive(&ours, &mut bytes).unwrap(), Some((5, me)));
        assert_eq!(&bytes[..5], b"hello");
    }

    #[test]
    fn files_that_are_sent_along_do_not_become_ours() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        name_senders(ours.as_fd()).unwrap();
        let (kept, other) = UnixDatagram::pair().unwrap();
        let files = [other.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
        assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&files)));
        let part = [std::io::IoSlice::new(b"x")];
        rustix::net::sendmsg(&theirs, &part, &mut control, rustix::net::SendFlags::empty()).unwrap();
        let (length, sender) = receive(&ours, &mut [0; 8]).unwrap().unwrap();
        assert_eq!((length, sender.pid), (1, std::process::id()));
        drop(other);
        // Were there another end still, nobody would be missed.
        assert!(kept.send(b"x").is_err(), "the file that was sent is open");
    }

    #[test]
    fn who_has_not_asked_for_senders_is_told_none() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        theirs.send(b"x").unwrap();
        assert!(receive(&ours, &mut [0; 8]).is_err());
    }
}
