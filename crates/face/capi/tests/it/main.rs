//! libplanish as its users meet it: the header, the built libraries, the packages, and what C gets wrong.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a helper fails its test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests read the checkout and install into folders of their own"
)]

mod header;
mod hugify;
mod hugify_hard;
mod install;
mod misuse;
mod programs;
