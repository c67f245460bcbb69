//! The report's parts: how each quota stands, who spent it, and who was made to wait.

use super::rows::Limited;
use crate::decide::reading::{Each, Quota};
use crate::settings::budget::Budget;

/// How a quota stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// At or above the pace line.
    Ok,
    /// Under the pace line: unattended calls are slowed.
    Pacing,
    /// Under the floor: unattended calls wait.
    Waiting,
    /// The reset time has passed since the read: the number is the last window's.
    Reset,
}

impl State {
    /// Every state.
    pub const ALL: [State; 4] = [State::Ok, State::Pacing, State::Waiting, State::Reset];

    /// The name that documents use.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Pacing => "pacing",
            State::Waiting => "waiting",
            State::Reset => "reset",
        }
    }

    pub(super) fn of(quota: &Quota, floor: u64, pace: u64, now_s: u64) -> State {
        match quota {
            quota if quota.reset_at <= now_s => State::Reset,
            quota if quota.remaining < floor => State::Waiting,
            quota if quota.remaining < pace => State::Pacing,
            _ => State::Ok,
        }
    }
}

/// One quota in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What the forge said.
    pub quota: Quota,
    /// How it stands now.
    pub state: State,
    /// Measured spend of the token in the last hour; `None` where it is not measured.
    pub spent: Option<u64>,
}

/// One caller's calls of the last hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spender {
    /// The folder, plus `/kind`.
    pub caller: String,
    /// The session, or `-`.
    pub session: String,
    /// How many calls.
    pub calls: u64,
    /// What they spent at least.
    pub cost: Each<u64>,
    /// How many were answered with a rate limit.
    pub rate_limited: u64,
}

/// Calls of one quota in the ledger's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Calls.
    pub count: u64,
    /// How many of them were background calls.
    pub background: u64,
    /// The most there may be; 0 for no limit.
    pub ceiling: u64,
    /// How many a background caller may find there.
    pub share: u64,
    /// Whether background calls were deferred or refused inside the window.
    pub deferred: bool,
}

/// Waits of one kind in the last hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How many.
    pub count: u64,
    /// How long in all, in seconds.
    pub seconds: u64,
}

/// What callers were made to wait for in the last hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// For a reset.
    pub waits: Waits,
    /// Under the pace line.
    pub paced: Waits,
    /// Before a retry.
    pub retries: Waits,
    /// For room in the window.
    pub holds: Waits,
    /// The same, background calls.
    pub defers: Waits,
    /// Refused background calls.
    pub refused: u64,
    /// Calls that went ahead or fell through because their bound was spent.
    pub capped: u64,
}

/// The whole report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// When it was made, in epoch seconds.
    pub now_s: u64,
    /// When the quotas were read, in epoch seconds.
    pub fetched_at: Option<u64>,
    /// The quotas.
    pub quotas: Each<Option<Standing>>,
    /// The ledger.
    pub rates: Each<Rate>,
    /// Who made this machine's calls, the busiest first.
    pub spenders: Vec<Spender>,
    /// What callers were made to wait for.
    pub held_back: HeldBack,
    /// Rate-limited answers of the last seven days.
    pub limited: u64,
    /// The last of them.
    pub last_limited: Option<Limited>,
    /// The settings it was judged by.
    pub budget: Budget,
    /// Whether the budget has anything on file; calls alone, which are recorded without it, are nothing.
    pub is_known: bool,
}
