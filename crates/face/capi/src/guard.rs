//! The wall that every call runs behind: no panic crosses it, and a failure leaves its reason with the thread.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CString, c_char};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::result::planish_result;

/// Why a call fails.
pub(crate) struct Fault {
    result: planish_result,
    message: String,
    cure: String,
}

impl Fault {
    /// An error with all of its causes.
    pub(crate) fn of(result: planish_result, error: &dyn Error, cure: String) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self { result, message, cure }
    }

    /// A failure that this crate found itself.
    pub(crate) fn new(result: planish_result, message: impl Into<String>, cure: &str) -> Self {
        Self { result, message: message.into(), cure: cure.to_owned() }
    }

    /// An argument that makes no sense.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(
            planish_result::PLANISH_ERROR_INVALID,
            message,
            "see planish.h for what the argument may be",
        )
    }

    fn panicked(payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        // Its drop could panic once more, outside of any guard.
        mem::forget(payload);
        let message = format!("libplanish met a state that cannot be: {text}");
        Self::new(planish_result::PLANISH_ERROR_BUG, message, "report it with this text")
    }
}

/// What the last failed call of a thread left behind.
#[derive(Default)]
struct Last {
    message: CString,
    cure: CString,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// Runs a call: its result, and nothing that unwinds.
pub(crate) fn guard(call: impl FnOnce() -> Result<(), Fault>) -> planish_result {
    // A panic in the middle of a change poisons the lock of what was changed, so that later calls fail, too.
    let fault = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return planish_result::PLANISH_OK,
        Ok(Err(fault)) => fault,
        Err(payload) => Fault::panicked(payload),
    };
    let text = |text: String| CString::new(text.replace('\0', " ")).expect("it has no zero byte any more");
    let last = Last { message: text(fault.message), cure: text(fault.cure) };
    // A thread that is ending has no place for it any more.
    let _ = LAST.try_with(|place| place.replace(last));
    fault.result
}

fn last(text: impl Fn(&Last) -> *const c_char) -> *const c_char {
    LAST.try_with(|last| text(&last.borrow())).unwrap_or(c"".as_ptr())
}

/// Why the last call of this thread that failed did.
#[unsafe(no_mangle)]
pub extern "C" fn planish_error_message() -> *const c_char {
    last(|last| last.message.as_ptr())
}

/// What to do about it.
#[unsafe(no_mangle)]
pub extern "C" fn planish_error_cure() -> *const c_char {
    last(|last| last.cure.as_ptr())
}

/// The version of the library, `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn planish_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn texts() -> [String; 2] {
        // SAFETY: both functions return a text that lives until the next failure of this thread.
        [planish_error_message(), planish_error_cure()]
            .map(|text| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_panic_ends_at_the_wall() {
        assert_eq!(guard(|| panic!("row {}", 7)), planish_result::PLANISH_ERROR_BUG);
        assert!(texts()[0].ends_with("row 7"), "{:?}", texts());
        let odd = guard(|| std::panic::panic_any(7u32));
        assert_eq!(odd, planish_result::PLANISH_ERROR_BUG);
    }

    #[test]
    fn a_failure_leaves_its_reason_with_its_own_thread_until_the_next() {
        std::thread::spawn(|| assert_eq!(texts(), ["", ""])).join().unwrap();
        let fails = |text: &'static str| guard(|| Err(Fault::invalid(text)));
        assert_eq!(fails("one\0two"), planish_result::PLANISH_ERROR_INVALID);
        assert_eq!(guard(|| Ok(())), planish_result::PLANISH_OK);
        assert_eq!(texts()[0], "one two", "a call that succeeds leaves it");
        std::thread::spawn(move || fails("other")).join().unwrap();
        assert_eq!(texts()[0], "one two");
        fails("three");
        assert_eq!(texts()[0], "three");
    }

    #[test]
    fn causes_are_told() {
        let cause = planish_sys::affinity::set(None, &planish_sys::CpuSet::new()).unwrap_err();
        assert_eq!(guard(|| Err(cause.into())), planish_result::PLANISH_ERROR_SYSTEM);
        assert!(texts()[0].starts_with("sched_setaffinity failed: "), "{:?}", texts());
    }
}
