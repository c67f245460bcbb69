//! The use cases: load, decide, commit. Called by the shim, the command and the addon alike.

pub mod record;
