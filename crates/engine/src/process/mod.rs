//! CHILDREN, SIGNALS, CLOCK, ENVIRONMENT: the only user of `std::process`, `std::env`, the clock, and
//! of `unsafe`, which stays in `sys` and `kernel` (raw calls behind safe names) and `signals` (what may run
//! inside a signal handler).
#![allow(clippy::disallowed_methods)]

pub mod ambient;
pub mod capture;
pub mod channel;
pub mod clock;
pub mod exit;
mod feed;
pub mod find;
pub mod foreground;
pub mod invocation;
pub mod job;
pub mod kernel;
pub mod recorder;
pub mod run;
pub mod signals;
pub mod sleep;
mod sys;
