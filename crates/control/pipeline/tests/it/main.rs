//! The pipeline on hosts that may be harmed: written, killed at every operation, edited by strangers, put back.

mod boot;
mod cards;
mod crash;
mod damage;
mod derived;
mod disk;
mod exchange;
mod faults;
mod foreign;
mod hosts;
mod install;
mod kill;
mod life;
mod limits;
mod links;
mod live;
mod once;
mod partition;
mod persist;
mod placement;
mod random;
mod reboot;
mod size;
mod speed;
mod tree;
mod watch;
