//! The pipeline on hosts that may be harmed: written, killed at every operation, edited by strangers, put back.

mod crash;
mod faults;
mod life;
mod random;
mod tree;
mod watch;
