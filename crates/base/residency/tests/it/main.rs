//! Processes of this machine and of recorded ones.

mod actor;
mod differential;
mod hosts;
mod map;
mod older;
mod restless;
