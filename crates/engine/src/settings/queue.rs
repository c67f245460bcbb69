//! The variables of the write queue and its replay (#1750).

use super::{Lookup, Reader};

/// `BOB_FORGE_QUEUE`: 0 turns the queue off. Default 1.
pub const QUEUE: &str = "BOB_FORGE_QUEUE";
/// `BOB_FORGE_QUEUE_MAX`: most entries that may wait. Default 500.
pub const QUEUE_MAX: &str = "BOB_FORGE_QUEUE_MAX";
/// `BOB_FORGE_QUEUE_ATTEMPTS`: attempts before an entry is set aside. Default 3.
pub const ATTEMPTS: &str = "BOB_FORGE_QUEUE_ATTEMPTS";
/// `BOB_FORGE_QUEUE_BATCH`: entries delivered per automatic replay; 0 for all. Default 25.
pub const BATCH: &str = "BOB_FORGE_QUEUE_BATCH";
/// `BOB_FORGE_QUEUE_SETTLE`: seconds after a lost answer before the entry is looked at or sent again.
/// Default 10.
pub const SETTLE: &str = "BOB_FORGE_QUEUE_SETTLE";
/// `BOB_FORGE_REPLAY`: 0 turns automatic replay off. Default 1.
pub const REPLAY: &str = "BOB_FORGE_REPLAY";
/// `BOB_FORGE_REPLAY_SPACING_MS`: milliseconds between two deliveries. Default 1000: the forge asks for
/// a second between two writes.
pub const SPACING_MS: &str = "BOB_FORGE_REPLAY_SPACING_MS";
/// `BOB_FORGE_REPLAY_SECONDS`: after this long an automatic replay starts no new delivery. Default 20.
pub const REPLAY_SECONDS: &str = "BOB_FORGE_REPLAY_SECONDS";

/// The settings of the write queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Whether writes are queued at all.
    pub enabled: bool,
    /// Most entries that may wait.
    pub max: u64,
    /// Attempts before an entry is set aside; at least 1.
    pub attempts_max: u32,
    /// Entries per automatic replay; 0 for all.
    pub batch: u64,
    /// Seconds after a lost answer.
    pub settle_s: u64,
    /// Whether the shim replays on its own.
    pub replay: bool,
    /// Milliseconds between two deliveries.
    pub spacing_ms: u64,
    /// Seconds after which an automatic replay starts no new delivery.
    pub replay_s: u64,
}

impl Queue {
    pub(super) fn read(reader: &mut Reader<'_, impl Lookup>) -> Queue {
        Queue {
            enabled: reader.flag(QUEUE, true),
            max: reader.number(QUEUE_MAX, 500),
            attempts_max: u32::try_from(reader.number(ATTEMPTS, 3)).unwrap_or(u32::MAX).max(1),
            batch: reader.number(BATCH, 25),
            settle_s: reader.number(SETTLE, 10),
            replay: reader.flag(REPLAY, true),
            spacing_ms: reader.number(SPACING_MS, 1_000),
            replay_s: reader.number(REPLAY_SECONDS, 20),
        }
    }
}
