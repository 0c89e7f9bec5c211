//! The one door to system calls that neither rustix nor libc wraps.

use std::ffi::c_long;

use rustix::io::Errno;

/// Turns the return value of a libc-style call (-1 and `errno`) into a result.
///
/// Must be called straight after the call, before anything else can change `errno`.
pub(crate) fn check(returned: c_long) -> Result<usize, Errno> {
    if returned >= 0 {
        return Ok(returned as usize);
    }
    let os_error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&os_error).unwrap_or(Errno::INVAL))
}

/// `syscall!(NUMBER, args...)`: the call, its arguments widened to `long`, as a result.
///
/// Expands to an unsafe operation: the caller writes the `unsafe` block and its SAFETY comment.
macro_rules! syscall {
    ($number:expr $(, $argument:expr)* $(,)?) => {
        $crate::raw::check(libc::syscall($number as std::ffi::c_long $(, $argument as std::ffi::c_long)*))
    };
}
pub(crate) use syscall;
