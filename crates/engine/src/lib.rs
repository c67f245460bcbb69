//! Forge Health's engine: everything that is decided, written or started, in one crate that the
//! `gh` shim, the `forge` command and the Node addon share, so that they cannot drift apart.
//!
//! # One way for data
//!
//! ```text
//! gh argv → plan → gate → run → classify → record → fall back → drain → exit
//!          (pure)  (pure) (child) (pure)    (files)  (files)    (child)
//! ```
//!
//! # Dependencies point one way
//!
//! - [`decide`] holds the decisions. Values in, values out: it reads no file, clock, environment or
//!   process, and it prints nothing. clippy's disallowed lists and a test enforce that.
//! - [`store`] is the only user of files (but for the programs on PATH and a measured command's record, see
//!   [`process::find`] and [`process::recorder`]), [`process`] the only user of children, signals, the clock
//!   and the environment. They do not know each other.
//! - [`ops`] are the use cases: load, decide, commit. The shim, the command and the addon call them.
//!
//! # Invariants
//!
//! - No decision, store or use case prints or ends the process: that is in [`process::exit`], for the
//!   shim to call.
//! - Before `gh` has started, every failure of ours ends in becoming `gh`. After it, nothing of ours
//!   can change the outcome but the declared fallbacks (cache, queue).
//! - Ambient state (argv, environment, clock, terminals, working directory) is read once, in
//!   [`process::invocation`], and passed on.

#[cfg(feature = "control")]
pub mod checkpoint;
#[cfg(not(feature = "control"))]
mod checkpoint;
mod control;
pub mod decide;
pub mod error;
pub mod ops;
pub mod process;
pub mod settings;
pub mod store;
