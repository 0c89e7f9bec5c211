//! Two pieces of work at once, for who waits for both: reading a host is calls to its kernel, one after the other.

use std::panic::resume_unwind;
use std::thread;

use rustix::process::{Resource, getrlimit};

/// Does `other` on a thread of its own while this one does `here`, and returns what both gave. A panic of either comes
/// to the caller.
///
/// One is done behind the other where no thread can be had (a limit of processes), and where address space is limited:
/// a stack might be the last that fits, and Rust ends the program where what comes behind it does not.
pub fn beside<Other: Send, Here>(
    other: impl Fn() -> Other + Sync,
    here: impl FnOnce() -> Here,
) -> (Other, Here) {
    if getrlimit(Resource::As).current.is_some() {
        return (other(), here());
    }
    thread::scope(|scope| {
        let started = thread::Builder::new().spawn_scoped(scope, &other);
        let here = here();
        let other = match started {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => other(),
        };
        (other, here)
    })
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn both_run_at_once() {
        // Either waits for the other: one behind the other they would never end.
        let both = Barrier::new(2);
        let wait = |name: &'static str| {
            both.wait();
            (name, thread::current().id())
        };
        let ((other, there), (here, main)) = beside(|| wait("other"), || wait("here"));
        assert_eq!((other, here, main), ("other", "here", thread::current().id()));
        assert_ne!(there, main);
    }

    #[test]
    fn a_panic_of_either_comes_to_the_caller() {
        let of_other = catch_unwind(|| beside(|| panic!("other"), || 1)).unwrap_err();
        assert_eq!(of_other.downcast_ref(), Some(&"other"));
        let of_here = catch_unwind(|| beside(|| 1, || panic!("here"))).unwrap_err();
        assert_eq!(of_here.downcast_ref(), Some(&"here"));
    }
}
