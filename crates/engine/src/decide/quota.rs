//! Rows of the budget's files → one document, `bob-forge-quota/1`, and its lines of text (#3190, #3978).

use super::gate::{Slot, share};
use super::reading::{Each, Quota, Reading};
use super::resource::Resource;
use super::signal::{Limit, Signal};
use super::verdict::Observation;
use crate::settings::budget::Budget;

mod document;
mod text;

pub use document::{compact, to_json};
pub use text::{Level, doctor_line, limit_name, lines};

/// What was measured and what callers waited for is shown for this long, in seconds.
pub const HOUR_S: u64 = 3_600;

/// A rate-limited answer is shown as the defect it is for this long, in seconds.
pub const WEEK_S: u64 = 7 * 24 * HOUR_S;

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

/// What the files hold.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// `budget.env`.
    pub reading: &'a Reading,
    /// `quota.log`, oldest first.
    pub reads: &'a [Read],
    /// `observations.log`.
    pub observations: &'a [Observation],
    /// `ratelimit.log`.
    pub limited: &'a [Limited],
    /// `budget.log`.
    pub entries: &'a [Entry],
    /// `rate.log`.
    pub ledger: &'a [Slot],
}

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

    fn of(quota: &Quota, floor: u64, pace: u64, now_s: u64) -> State {
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

/// Turns the files' rows into the report.
pub fn report(files: &Files, budget: &Budget, now_s: u64) -> Report {
    let mut quotas = Each::default();
    let mut rates = Each::default();
    for r in Resource::ALL {
        quotas[r] = files.reading.quotas[r].map(|quota| Standing {
            quota,
            state: State::of(&quota, budget.floor[r], budget.pace[r], now_s),
            spent: spent(files.reads, r, now_s),
        });
        rates[r] = rate(files, budget, r, now_s);
    }
    let week: Vec<&Limited> = files.limited.iter().filter(|l| is_recent(l.at, WEEK_S, now_s)).collect();
    Report {
        now_s,
        fetched_at: files.reading.fetched_at,
        quotas,
        rates,
        spenders: spenders(files.observations, now_s),
        held_back: held_back(files.entries, now_s),
        limited: week.len() as u64,
        last_limited: week.last().map(|last| (*last).clone()),
        budget: budget.clone(),
        is_known: is_known(files),
    }
}

fn is_known(files: &Files) -> bool {
    let Files { reading, reads, limited, entries, ledger, .. } = files;
    let nothing = reads.is_empty() && limited.is_empty() && entries.is_empty() && ledger.is_empty();
    reading.fetched_at.is_some() || !nothing
}

fn is_recent(at: u64, window_s: u64, now_s: u64) -> bool {
    now_s.saturating_sub(at) <= window_s
}

/// The token's spend in the last hour, on every machine that holds it: between two reads the rise in
/// `used`, or what the new window had used when the quota was reset between them.
fn spent(reads: &[Read], resource: Resource, now_s: u64) -> Option<u64> {
    let counter = |read: &Read| match resource {
        Resource::Graphql => read.graphql,
        Resource::Core => read.core,
        Resource::Search => None,
    };
    let known: Vec<(u64, Counter)> = reads.iter().filter_map(|r| Some((r.at, counter(r)?))).collect();
    known.last()?;
    let pairs = known.windows(2).filter(|pair| is_recent(pair[1].0, HOUR_S, now_s));
    let rise = |pair: &[(u64, Counter)]| {
        let (before, after) = (pair[0].1, pair[1].1);
        if is_same_window(before, after) { after.used.saturating_sub(before.used) } else { after.used }
    };
    Some(pairs.map(rise).sum())
}

/// The forge names the end of one window with a second of jitter.
fn is_same_window(before: Counter, after: Counter) -> bool {
    const JITTER_S: u64 = 5;
    before.reset_at.abs_diff(after.reset_at) <= JITTER_S
}

fn rate(files: &Files, budget: &Budget, resource: Resource, now_s: u64) -> Rate {
    let window_s = budget.rate_window_s;
    let live = |slot: &&Slot| slot.resource == resource && now_s.saturating_sub(slot.at) < window_s;
    let deferred = |entry: &Entry| {
        let is_deferral = matches!(entry.event, Event::Defer | Event::Refuse);
        is_deferral && entry.quota == resource.as_str() && is_recent(entry.at, window_s, now_s)
    };
    Rate {
        count: files.ledger.iter().filter(live).count() as u64,
        background: files.ledger.iter().filter(live).filter(|slot| slot.background).count() as u64,
        ceiling: budget.rate[resource],
        share: share(budget.rate[resource], budget.background_share),
        deferred: files.entries.iter().any(deferred),
    }
}

fn spenders(observations: &[Observation], now_s: u64) -> Vec<Spender> {
    let mut spenders: Vec<Spender> = Vec::new();
    for o in observations.iter().filter(|o| is_recent(o.at, HOUR_S, now_s)) {
        let known = spenders.iter_mut().position(|s| s.caller == o.caller && s.session == o.session);
        let at = known.unwrap_or_else(|| {
            let (caller, session) = (o.caller.clone(), o.session.clone());
            spenders.push(Spender { caller, session, calls: 0, cost: Each::default(), rate_limited: 0 });
            spenders.len() - 1
        });
        let spender = &mut spenders[at];
        spender.calls += 1;
        spender.rate_limited += u64::from(o.signal == Signal::RateLimit);
        if let Some(resource) = Resource::parse(&o.quota) {
            spender.cost[resource] += o.cost;
        }
    }
    spenders.sort_by_key(|spender| std::cmp::Reverse(spender.calls));
    spenders
}

fn held_back(entries: &[Entry], now_s: u64) -> HeldBack {
    let mut held = HeldBack::default();
    for entry in entries.iter().filter(|entry| is_recent(entry.at, HOUR_S, now_s)) {
        let waits = match entry.event {
            Event::Wait => &mut held.waits,
            Event::Pace => &mut held.paced,
            Event::Backoff => &mut held.retries,
            Event::Hold => &mut held.holds,
            Event::Defer => &mut held.defers,
            Event::Refuse => {
                held.refused += 1;
                continue;
            }
            Event::WaitCapped | Event::BackoffCapped => {
                held.capped += 1;
                continue;
            }
            Event::Refresh | Event::RefreshUnreadable => continue,
        };
        waits.count += 1;
        waits.seconds += entry.seconds;
    }
    held
}

#[cfg(test)]
#[path = "quota_tests.rs"]
mod tests;
