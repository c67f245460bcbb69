//! Observations → state, reason, sample (the specification's classification rules, #1748, #3191).

use super::signal::Signal;

/// One recorded call, as a line of `observations.log` holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// When the call ended, in epoch seconds.
    pub at: u64,
    /// gh's exit code (128 + N for a death by signal N).
    pub exit: i32,
    /// Latency in milliseconds, from a monotonic clock.
    pub ms: u64,
    /// The classified outcome.
    pub signal: Signal,
    /// Command and subcommand (`issue list`).
    pub subcommand: String,
    /// The quota the call spends (`graphql`, `core`, `search`), or `-`.
    pub quota: String,
    /// 1 for a call that spends a quota, 0 for one that spends none.
    pub cost: u64,
    /// The folder the call was made from, plus `/kind` where the caller names itself; or `-`.
    pub caller: String,
    /// First eight characters of the session id, or `-`.
    pub session: String,
}
