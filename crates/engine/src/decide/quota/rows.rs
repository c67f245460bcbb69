//! What the budget's logs hold: reads of the quota, rate-limited answers, and what was done about them.

use crate::decide::reading::Quota;
use crate::decide::signal::Limit;

/// One read of the quota: a line of `quota.log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// When, in epoch seconds.
    pub at: u64,
    /// GraphQL's, where the forge named it.
    pub graphql: Option<Counter>,
    /// REST's.
    pub core: Option<Counter>,
}

/// A quota's counter in one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Points spent in the window.
    pub used: u64,
    /// Points left.
    pub remaining: u64,
    /// When the window ends, in epoch seconds.
    pub reset_at: u64,
}

impl From<Quota> for Counter {
    fn from(Quota { used, remaining, reset_at, .. }: Quota) -> Counter {
        Counter { used, remaining, reset_at }
    }
}

/// One rate-limited answer: a line of `ratelimit.log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limited {
    /// When, in epoch seconds.
    pub at: u64,
    /// The quota, or `-`.
    pub quota: String,
    /// Command and subcommand.
    pub subcommand: String,
    /// The caller.
    pub caller: String,
    /// The session, or `-`.
    pub session: String,
    /// Which limit it met.
    pub limit: Limit,
}

/// What the budget did: the second column of `budget.log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The quota was read.
    Refresh,
    /// It could not be read.
    RefreshUnreadable,
    /// A call was slowed under the pace line.
    Pace,
    /// A call waited for a reset, or for a closed quota.
    Wait,
    /// A wait would have been longer than a call may wait: it went ahead.
    WaitCapped,
    /// A call waited before its retry.
    Backoff,
    /// A retry would have passed the bound: the call fell through.
    BackoffCapped,
    /// A call waited for room in the window.
    Hold,
    /// The same for a background call.
    Defer,
    /// A background call was refused.
    Refuse,
}

impl Event {
    /// Every event.
    pub const ALL: [Event; 10] = [
        Event::Refresh,
        Event::RefreshUnreadable,
        Event::Pace,
        Event::Wait,
        Event::WaitCapped,
        Event::Backoff,
        Event::BackoffCapped,
        Event::Hold,
        Event::Defer,
        Event::Refuse,
    ];

    /// The name that `budget.log` uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Event::Refresh => "refresh",
            Event::RefreshUnreadable => "refresh-unreadable",
            Event::Pace => "pace",
            Event::Wait => "wait",
            Event::WaitCapped => "wait-capped",
            Event::Backoff => "backoff",
            Event::BackoffCapped => "backoff-capped",
            Event::Hold => "hold",
            Event::Defer => "defer",
            Event::Refuse => "refuse",
        }
    }

    /// The event with this name.
    pub fn parse(name: &str) -> Option<Event> {
        Event::ALL.into_iter().find(|event| event.as_str() == name)
    }
}

/// One line of `budget.log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, in epoch seconds.
    pub at: u64,
    /// What the budget did.
    pub event: Event,
    /// Whose quota, or `-`.
    pub quota: String,
    /// Points left; the window's count for hold, defer and refuse; `None` for unknown.
    pub remaining: Option<u64>,
    /// Seconds waited.
    pub seconds: u64,
    /// Command and subcommand, or `-`.
    pub subcommand: String,
}
