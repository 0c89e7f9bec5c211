//! Two pieces of work at once, for who waits for both: reading a host is calls to its kernel, one after the other.

use std::panic::resume_unwind;
use std::thread;

/// What the main thread of a program has by default. Rust gives other threads a quarter of it, and work that recurses
/// is not to end earlier because it runs beside other work.
const STACK_BYTES: usize = 8 << 20;

/// Does `other` on a thread of its own while this one does `here`, and returns what both gave. Where no thread can be
/// had (a limit of processes), one is done behind the other. A panic of either comes to the caller.
pub fn beside<Other: Send, Here>(
    other: impl Fn() -> Other + Sync,
    here: impl FnOnce() -> Here,
) -> (Other, Here) {
    thread::scope(|scope| {
        let started = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, &other);
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
