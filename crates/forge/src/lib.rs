//! The two front ends of the engine that are programs: the `gh` shim and the `forge` command.

pub mod cli;
pub mod shim;
