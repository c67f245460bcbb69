//! The decisions. PURE: values in, values out; no files, clock, environment, processes, printing.

pub mod argv;
pub mod plan;
pub mod repo;
pub mod resource;
pub mod signal;
pub mod verdict;
