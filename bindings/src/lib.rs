//! The addon crate: no logic of its own.
