//! Processes of this machine and of recorded ones.

mod actor;
mod hosts;
mod map;
mod restless;
