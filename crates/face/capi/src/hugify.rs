//! `planish_hugify_self`: the text of the program that asks, on huge pages.

use planish_hugify::{HugifyError, Own, OwnRoute, hugify_self};

use crate::guard::{Fault, guard};
use crate::pointer::Place;
use crate::result::planish_result;

/// By which route text came to lie on huge pages.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum planish_hugify_route {
    /// By none.
    PLANISH_HUGIFY_NONE = 0,
    /// It did already.
    PLANISH_HUGIFY_ALREADY = 1,
    /// As pages of the file.
    PLANISH_HUGIFY_FILE = 2,
    /// As a copy of this process alone.
    PLANISH_HUGIFY_ANONYMOUS = 3,
    /// As a copy that processes share which this one forks.
    PLANISH_HUGIFY_MEMFD = 4,
    /// As a copy on reserved pages.
    PLANISH_HUGIFY_HUGETLB = 5,
}

/// What was achieved.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct planish_hugified {
    /// Bytes of text.
    pub text_bytes: usize,
    /// The most that can lie on huge pages.
    pub whole_bytes: usize,
    /// On huge pages before.
    pub before_bytes: usize,
    /// On huge pages now.
    pub huge_bytes: usize,
    /// A `planish_hugify_route`.
    pub route: u32,
}

impl planish_hugified {
    fn of(own: &Own) -> Self {
        use planish_hugify_route::*;
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let route = match own.route {
            OwnRoute::None => PLANISH_HUGIFY_NONE,
            OwnRoute::Already => PLANISH_HUGIFY_ALREADY,
            OwnRoute::File => PLANISH_HUGIFY_FILE,
            OwnRoute::Anonymous => PLANISH_HUGIFY_ANONYMOUS,
            OwnRoute::Memfd => PLANISH_HUGIFY_MEMFD,
            OwnRoute::Hugetlb => PLANISH_HUGIFY_HUGETLB,
        };
        Self {
            text_bytes: bytes(own.text_bytes),
            whole_bytes: bytes(own.whole_bytes),
            before_bytes: bytes(own.before_bytes),
            huge_bytes: bytes(own.huge_bytes),
            route: route as u32,
        }
    }
}

impl From<HugifyError> for Fault {
    fn from(error: HugifyError) -> Self {
        let result = match &error {
            HugifyError::NoThp => planish_result::PLANISH_ERROR_NO_SUCH_PAGE,
            HugifyError::File { .. } | HugifyError::Process(_) => planish_result::PLANISH_ERROR_READ_BACK,
            _ => planish_result::PLANISH_ERROR_SYSTEM,
        };
        let cure = error.cure().to_owned();
        Self::of(result, &error, cure)
    }
}

/// Puts the text of the calling program on huge pages.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_hugify_self(hugified: *mut planish_hugified) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::if_wanted(hugified, "hugified") }?;
        let own = hugify_self()?;
        if let Some(place) = place {
            place.put(planish_hugified::of(&own));
        }
        if own.route != OwnRoute::None {
            return Ok(());
        }
        let (on, whole) = (own.huge_bytes >> 20, own.whole_bytes >> 20);
        let why = own.why_not.join("; ");
        let message = format!("{on} of {whole} MiB of text lie on huge pages: {why}");
        let cure = "planish text check, and planish text huge, tell what the program's file lacks";
        Err(Fault::new(planish_result::PLANISH_ERROR_NOT_BACKED, message, cure))
    })
}
