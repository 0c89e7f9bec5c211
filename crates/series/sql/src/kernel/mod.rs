//! Kernels under ordinary SQL: which operators over a scan they stand for, and operators that run them.

mod average;
mod bars;
mod rule;
mod shape;
mod threads;

pub(crate) use bars::{Bars, BarsExec, Cell, Obstacle, obstacle};
pub(crate) use rule::KernelRule;
pub(crate) use shape::{Width, aggregate_of};
pub(crate) use threads::Threads;
