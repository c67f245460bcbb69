//! Rows of the budget's files → one document, `bob-forge-quota/1`, and its lines of text (#3190, #3978).

use super::gate::{Slot, share};
use super::reading::{Each, Reading};
use super::resource::Resource;
use super::signal::Signal;
use super::verdict::Observation;
use crate::settings::budget::Budget;

mod document;
mod report;
mod rows;
mod text;

pub use document::{compact, to_json};
pub use report::{HeldBack, Rate, Report, Spender, Standing, State, Waits};
pub use rows::{Counter, Entry, Event, Limited, Read};
pub use text::{Level, doctor_line, limit_name, lines};

/// What was measured and what callers waited for is shown for this long, in seconds.
pub const HOUR_S: u64 = 3_600;

/// A rate-limited answer is shown as the defect it is for this long, in seconds.
pub const WEEK_S: u64 = 7 * 24 * HOUR_S;

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
