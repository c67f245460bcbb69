//! What the end-to-end tests stand on.

pub mod bytes;
pub mod command;
pub mod dice;
pub mod forge;
pub mod queued;
pub mod record;
pub mod running;
pub mod sandbox;
pub mod spawn;
pub mod streams;
